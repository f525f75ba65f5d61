from __future__ import annotations

import collections
import datetime
import enum
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import FileBlockMetadata, ReaderRecord
from dagflow.model.types.columns import RecordMisfit
from dagflow.model.types.forms import arrow_type, schema_of, to_batch, to_records

T = TypeVar("T")


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


@attrs.frozen
class Point3(Point):
    z: int = 0


@attrs.frozen
class Box(Generic[T]):
    held: list[T]


class Tag(str):
    __slots__ = ()


class Level(enum.IntEnum):
    LOW = 1


class Marked(ReaderRecord[str]):
    __slots__ = ()


UserId = NewType("UserId", int)
AWARE = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


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
    (UserId, st.integers(0, 9)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
    (Annotated[list[UserId], []], st.lists(st.integers(0, 9), max_size=3)),
    (list[Annotated[int, []]], st.lists(st.integers(0, 9), max_size=3)),
    (Box[Point], st.builds(Box, st.lists(POINTS, max_size=3))),
    (Point | None, st.none() | POINTS),
    (dict[str, Point], st.dictionaries(st.text(max_size=3), POINTS, max_size=3)),
    (list[list[Point] | None], st.lists(st.none() | st.lists(POINTS, max_size=2), max_size=3)),
    (list[ReaderRecord[Point]], st.lists(st.builds(ReaderRecord, st.integers(0, 9), st.integers(0, 9), POINTS), max_size=3)),
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


MISFITS: list[tuple[Any, Any, Any, str]] = [
    (Point, Point(1), Point3(1), "Point3 is a subclass of Point: in a batch it would become a plain Point"),
    (Point, Point(1), None, "None is not Point"),
    (Shape, Shape([], Point(1), 1.0), Shape([], Point3(1), 1.0), "Point3 is a subclass of Point"),
    (list[Point], [Point(1)], [Point(1), Point3(1)], "Point3 is a subclass of Point"),
    (dict[str, Point], {"a": Point(1)}, {"a": Point3(1)}, "Point3 is a subclass of Point"),
    (Point | None, None, Point3(1), "Point3 is a subclass of Point"),
    (Point, Point(1), Point(True), "bool is not int"),
    (ReaderRecord[str], ReaderRecord(1, 2, "a"), Marked(1, 2, "a"), "Marked is a subclass of ReaderRecord"),
    (ReaderRecord[Point], ReaderRecord(1, 2, Point(1)), ReaderRecord(1, 2, Point3(1)), "Point3 is a subclass of Point"),
    (datetime.datetime, AWARE.replace(tzinfo=None), AWARE, "a datetime with a time zone would lose it in a batch: pass on"),
    (ReaderRecord[datetime.datetime], ReaderRecord(1, 2, None), ReaderRecord(1, 2, AWARE), "a datetime with a time zone"),
    (datetime.date, AWARE.date(), AWARE.replace(tzinfo=None), "datetime is a subclass of date"),
    (int, 1, True, "bool is not int"),
    (int, 1, Level.LOW, "Level is a subclass of int"),
    (int, 1, np.float64(1.5), "float is not int"),
    (int, 1, 2**70, "too large"),
    (float, 1, 2**60 + 1, "outside of the range"),
    (str, "a", Tag("a"), "Tag is a subclass of str"),
    (str, "a", b"a", "bytes is not str"),
    (str, "a", "\ud800", "surrogates not allowed"),
    (bytes, b"a", "a", "str is not bytes"),
    (list[int], [1], (1,), "tuple is not list"),
    (dict[str, int], {"a": 1}, {1: 1}, "int is not str"),
    (dict[str, int], {"a": 1}, collections.Counter("a"), "Counter is a subclass of dict"),
    (datetime.timedelta, datetime.timedelta(1), datetime.timedelta.max, "too large|overflow|out of bounds"),
]


@pytest.mark.parametrize(("tp", "good", "bad", "reason"), MISFITS, ids=[f"{t}-{r}" for t, _, _, r in MISFITS])
@pytest.mark.parametrize("place", [0, 3, 6])
def test_the_first_record_that_would_change_is_named(tp: Any, good: Any, bad: Any, reason: str, place: int) -> None:
    records = [good] * place + [bad] + [good] * (6 - place)
    if place < 6:
        records[-1] = bad
    with pytest.raises(RecordMisfit, match=f"a record does not fit its type .*({reason})") as caught:
        to_batch(records, tp)
    assert isinstance(caught.value, TypeError)
    assert caught.value.index == place
    assert len(to_batch(records[:place], tp)) == place


@pytest.mark.parametrize(
    ("tp", "records", "back"),
    [
        (float, [1, 2.5], [1.0, 2.5]),
        (int, [np.int64(1), 2], [1, 2]),
        (float, [np.float32(0.5), np.int8(1)], [0.5, 1.0]),
        (bool, [np.bool_(True)], [True]),
        (str, [None, "a", np.str_("b")], [None, "a", "b"]),
    ],
    ids=str,
)
def test_what_is_equal_may_stand_for_it(tp: Any, records: list[Any], back: list[Any]) -> None:
    assert to_records(to_batch(records, tp), tp) == back


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


def test_records_are_made_as_their_constructors_want() -> None:
    @attrs.define
    class Named:
        a: int = attrs.field(kw_only=True)
        _b: str = "x"

    @attrs.define
    class OwnInit:
        a: int

        def __init__(self, *, a: int) -> None:
            self.a = a

    class Below(Named):
        def __init__(self, *, a: int, b: str) -> None:
            super().__init__(a=a, b=b)

    made: list[Any] = [Named(a=1, b="y"), OwnInit(a=2), Below(a=3, b="z")]
    for record in made:
        kind = type(record)
        again = to_records(to_batch([record, record], kind), kind)
        assert [type(each) for each in again] == [kind, kind]
        assert [attrs.asdict(each) for each in again] == [attrs.asdict(record)] * 2
