from __future__ import annotations

import datetime
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import FileBlockMetadata, ReaderRecord
from dagflow.model.forms import arrow_type, schema_of, to_batch, to_records


@attrs.frozen
class Point:
    x: int
    name: str | None = None


@attrs.frozen
class Shape:
    points: list[Point]
    origin: Point
    weight: float


@attrs.frozen
class Odd:
    anything: object


POINTS = st.builds(Point, st.integers(-(2**63), 2**63 - 1), st.none() | st.text())
RECORDS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, st.text()),
    (bytes, st.binary()),
    (int, st.integers(-(2**63), 2**63 - 1)),
    (float, st.floats(allow_nan=False)),
    (bool, st.booleans()),
    (int | None, st.none() | st.integers(0, 9)),
    (list[str], st.lists(st.text(max_size=3))),
    (list[Point], st.lists(POINTS, max_size=3)),
    (dict[str, int], st.dictionaries(st.text(max_size=3), st.integers(0, 9))),
    (datetime.datetime, st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 1, 1))),  # noqa: DTZ001
    (Point, POINTS),
    (Shape, st.builds(Shape, st.lists(POINTS, max_size=3), POINTS, st.floats(allow_nan=False))),
    (ReaderRecord[str], st.builds(ReaderRecord, st.integers(0, 9), st.integers(0, 9), st.text())),
    (ReaderRecord[Point], st.builds(ReaderRecord, st.integers(0, 9), st.integers(0, 9), POINTS)),
]


@pytest.mark.parametrize(("tp", "strategy"), RECORDS, ids=[str(tp) for tp, _ in RECORDS])
def test_records_come_back_from_batches_as_they_were(tp: Any, strategy: st.SearchStrategy[Any]) -> None:
    @given(st.lists(strategy, max_size=5))
    def there_and_back(records: list[Any]) -> None:
        batch = to_batch(records, tp)
        assert batch.schema == schema_of(tp)
        found = to_records(batch, tp)
        assert found == records
        assert [type(r) for r in found] == [type(r) for r in records]

    there_and_back()


@pytest.mark.parametrize("tp", [object, Odd, list[object], dict[int, str], str | int, ReaderRecord[Odd], complex])
def test_types_without_an_arrow_form(tp: Any) -> None:
    assert schema_of(tp) is None
    assert arrow_type(tp) is None
    with pytest.raises(TypeError, match="has no Arrow form"):
        to_batch([], tp)


@pytest.mark.parametrize(
    ("records", "tp"), [(["a"], int), ([2**63], int), ([Point(1)], Shape), ([ReaderRecord(1, 2, "three")], ReaderRecord[int])]
)
def test_a_record_that_does_not_fit_its_type_is_a_type_error(records: list[Any], tp: Any) -> None:
    with pytest.raises(TypeError, match="a record does not fit its type"):
        to_batch(records, tp)


def test_columns_are_named_as_documented() -> None:
    assert schema_of(int) == pa.schema([("value", pa.int64())])
    schema = schema_of(ReaderRecord[bytes])
    assert schema is not None
    assert schema.names == ["block_id", "position", "record"]
    assert schema_of(FileBlockMetadata) is not None


def test_batches_of_unknown_type() -> None:
    assert to_records(pa.record_batch({"value": [1, 2]}), Any) == [1, 2]
    assert to_records(pa.record_batch({"block_id": [1], "position": [2], "record": ["a"]}), Any) == [ReaderRecord(1, 2, "a")]
    assert to_records(pa.record_batch({"x": [1], "y": ["b"]}), Any) == [{"x": 1, "y": "b"}]
