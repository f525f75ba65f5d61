from __future__ import annotations

import datetime
import enum
import subprocess
import sys
from decimal import Decimal
from typing import Any
from uuid import UUID

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import ColumnNotThere, KeyNotHashable
from dagflow.model.types.forms import to_batch
from dagflow.model.types.keyed_rows import row_as_bytes
from dagflow.model.types.keys import GROUPS, KeyAssignment, Router, group_of, key_hash, key_of, known_columns
from dagflow.model.types.records import ReaderRecord


@attrs.frozen
class Hit:
    host: str
    hour: int | None


class Colour(enum.Enum):
    RED = 1


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()


@given(SCALARS, SCALARS)
def test_equal_keys_have_equal_hashes(one: Any, other: Any) -> None:
    if one == other:
        assert key_hash(one) == key_hash(other)
    assert 0 <= key_hash(one) < 2**64


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0, -0.0),
        (2**53, float(2**53)),
        (1, np.int64(1)),
        (0.5, np.float64(0.5)),
        (Decimal(3), 3),
        (Decimal("0.5"), 0.5),
        (Decimal("0.1"), Decimal("0.10")),
        (Decimal("Infinity"), float("inf")),
        (datetime.time(2, fold=1), datetime.time(2)),
        (("a", 1), ("a", 1.0)),
        (
            datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC),
            datetime.datetime(2026, 1, 1, 13, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
        ),
    ],
)
def test_equal_keys_of_different_classes(one: Any, other: Any) -> None:
    assert one == other
    assert key_hash(one) == key_hash(other)


def test_hashes_are_the_same_in_every_process() -> None:
    keys = [None, True, -5, 0.25, "ä", b"x", ("a", 1), datetime.date(2026, 1, 1), UUID(int=7), Colour.RED, Hit("a", None)]
    here = [key_hash(key) for key in keys if not isinstance(key, Colour | Hit)]
    code = (
        "import datetime, uuid; from dagflow.model.types.keys import key_hash; print([key_hash(k) for k in "
        "[None, True, -5, 0.25, 'ä', b'x', ('a', 1), datetime.date(2026, 1, 1), uuid.UUID(int=7)]])"
    )
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "5"})
    assert there.stdout.strip() == str(here)
    assert key_hash(Colour.RED) != key_hash(Hit("a", None))


@given(st.lists(st.builds(Hit, st.text(), st.none() | st.integers(-(2**63), 2**63 - 1))), st.integers(1, 20))
def test_both_forms_of_records_go_to_the_same_partitions(hits: list[Hit], partitions: int) -> None:
    for names in ("host", "hour", ("host", "hour"), ("hour",)):
        key = key_of(names)
        assert key is not None
        router = Router("p", key, Hit, KeyAssignment(partitions))
        assert list(router.of_batch(to_batch(hits, Hit))) == [router.of_record(hit) for hit in hits]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1))
def test_unsigned_and_text_columns_of_all_kinds(values: list[int]) -> None:
    texts = [str(value) for value in values]
    key = key_of("value")
    assert key is not None
    router = Router("p", key, Any, KeyAssignment(16))
    expected = [KeyAssignment(16).of_group(group_of(text)) for text in texts]
    for column in (
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array(texts).dictionary_encode(),
        pa.array([*texts, None])[:-1],
    ):
        assert list(router.of_batch(pa.RecordBatch.from_arrays([column], ["value"]))) == expected
    numbers = pa.RecordBatch.from_arrays([pa.array(values, pa.uint64())], ["value"])
    assert list(router.of_batch(numbers)) == [KeyAssignment(16).of_group(group_of(value)) for value in values]


@given(
    st.lists(st.none() | st.floats(width=32) | st.integers(-(2**70), 2**70).map(float)),
    st.sampled_from([pa.float64(), pa.float32()]),
)
def test_columns_of_floats_and_nulls(values: list[float | None], kind: pa.DataType) -> None:
    key = key_of("value")
    assert key is not None
    router = Router("p", key, Any, KeyAssignment(GROUPS))
    for some in (values, [each for each in values if each is not None]):
        column = pa.array(some, kind)
        expected = [group_of(each) for each in column.to_pylist()]
        assert router.groups(pa.record_batch({"value": column})).tolist() == expected


@given(st.integers(1, 300))
def test_each_partition_has_a_run_of_groups(partitions: int) -> None:
    places = [KeyAssignment(partitions).of_group(group) for group in range(0, GROUPS, 7)]
    assert places == sorted(places)
    assert set(places) == set(range(partitions))


@given(st.lists(st.text()), st.lists(st.integers(0, 4), min_size=8, max_size=8))
def test_key_owners_are_found_by_the_lowest_bits_of_the_hash(texts: list[str], owners: list[int]) -> None:
    key = key_of("value")
    assert key is not None
    router = Router("p", key, Any, KeyAssignment(5, tuple(owners)))
    expected = [owners[key_hash(text) & 7] for text in texts]
    assert [router.of_record(text) for text in texts] == expected
    assert list(router.of_batch(pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], ["value"]))) == expected


def test_keys_spread_evenly() -> None:
    counts = np.bincount([KeyAssignment(8).of_group(group_of(number)) for number in range(8000)])
    assert counts.min() > 850


def test_columns_of_builtins_and_reader_records() -> None:
    value, position = key_of("value"), key_of("position")
    assert value is not None
    assert position is not None
    assert value.of_record(str)("abc") == "abc"
    assert position.of_record(ReaderRecord[str])(ReaderRecord(1, 5, "x")) == 5
    assert [known_columns(tp) for tp in (str, Hit, ReaderRecord[str], Any)] == [
        ("value",),
        ("host", "hour"),
        ("block_id", "position", "record"),
        None,
    ]


@attrs.frozen
class Visit:
    hit: Hit
    n: int


def test_a_field_that_has_fields_is_a_key_in_both_forms() -> None:
    visits = [Visit(Hit(host, hour), 1) for host in "abc" for hour in range(9)]
    for names in ("hit", ("hit", "n")):
        key = key_of(names)
        assert key is not None
        router = Router("p", key, Visit, KeyAssignment(7))
        assert list(router.of_batch(to_batch(visits, Visit))) == [router.of_record(visit) for visit in visits]


def test_lists_are_keys_too() -> None:
    key = key_of(lambda record: record)
    assert key is not None
    router = Router("p", key, Any, KeyAssignment(9))
    assert router.of_record([1, 2]) == router.of_record([1.0, 2]) == router.of_record((1, 2))


def test_a_key_without_a_hash_is_refused() -> None:
    key = key_of(lambda record: record)
    assert key is not None
    with pytest.raises(KeyNotHashable) as caught:
        Router("count.input", key, Any, KeyAssignment(2)).of_record({1, 2})
    text = "the key {1, 2} of port count.input has no hash: a set has no hash that all processes agree on"
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("given", [3, (), ("a", ""), [1]])
def test_what_is_no_key(given: Any) -> None:
    with pytest.raises(ValueError, match="neither a function of the record nor names of columns"):
        key_of(given)


def test_a_column_that_is_not_there_is_told_with_those_that_are() -> None:
    key = key_of(("host", "hours"))
    assert key is not None
    with pytest.raises(ColumnNotThere) as caught:
        Router("count.input", key, Hit, KeyAssignment(2)).of_batch(to_batch([Hit("a", 1)], Hit))
    assert str(caught.value) == (
        "there is no column 'hours', which the key of count.input names\n"
        "  columns  host (string), hour (int64)\n"
        "  help: did you mean 'hour'?"
    )


VALUES = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from(["", "x", "1"]), st.floats(allow_infinity=False))


@given(
    columns=st.dictionaries(st.sampled_from("abcde"), st.lists(VALUES, min_size=4, max_size=4), min_size=1),
    further=st.sets(st.sampled_from(["", "a1", "c", "z"])),
)
def test_whole_rows_are_the_same_with_further_columns_of_nulls(columns: dict[str, list[Any]], further: set[str]) -> None:
    of_one_kind = {
        name: [value for value in values if isinstance(value, type(next((v for v in values if v is not None), None)))]
        for name, values in columns.items()
    }
    rows = pa.record_batch({name: (values + [None] * 4)[:4] for name, values in of_one_kind.items()})
    wider = rows
    for name in further - {*columns}:
        wider = wider.append_column(name, pa.array([None] * 4, pa.int64()))
    router = Router("port", key_of("*"), Any, KeyAssignment(GROUPS))  # type: ignore[arg-type]  # it is a key
    groups = router.of_batch(rows).tolist()
    assert router.of_batch(wider).tolist() == groups == [router.of_record(row) for row in rows.to_pylist()]
    keys = row_as_bytes(rows).to_pylist()
    assert row_as_bytes(wider).to_pylist() == keys
    for one, key in zip(rows.to_pylist(), keys, strict=True):
        for other, other_key in zip(rows.to_pylist(), keys, strict=True):
            assert (key == other_key) == (repr(one) == repr(other) or one == other)


def test_a_value_in_another_column_is_another_row() -> None:
    rows = pa.record_batch({"a": [1, None, None], "b": [None, 1, None], "c": ["1", "1", None]})
    assert len({*row_as_bytes(rows).to_pylist()}) == 3
