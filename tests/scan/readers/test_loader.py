from __future__ import annotations

import datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.errors import RowTooLarge
from dagflow.scan import BatchLimits, ResultSetLoader, RowOrigin
from dagflow.scan.readers.loader import LEAST_BYTES, array_of
from tests.tiers import examples


def harvested(loader: ResultSetLoader, *, is_last: bool = True) -> list[pa.RecordBatch]:
    found = []
    while (harvest := loader.harvest(is_last=is_last)) is not None:
        found.append(harvest.batch)
    return found


def load_rows(loader: ResultSetLoader, rows: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    """As a reader does that loads rows until the loader is full."""
    found = []
    for row in rows:
        while not loader.start():
            found += harvested(loader, is_last=False)
        for name, value in row.items():
            loader.set(name, value)
        loader.save()
    return found + harvested(loader)


def test_rows_become_columns_and_what_was_not_set_is_null() -> None:
    (batch,) = load_rows(ResultSetLoader(), [{"a": 1}, {}, {"b": "x", "a": 2}])
    assert batch.to_pylist() == [{"a": 1, "b": None}, {"a": None, "b": None}, {"a": 2, "b": "x"}]


def test_a_row_that_is_not_saved_is_forgotten() -> None:
    loader = ResultSetLoader()
    loader.start()
    loader.set("a", 1)
    assert [b.to_pylist() for b in load_rows(loader, [{"a": 2}])] == [[{"a": 2}]]


@pytest.mark.parametrize("call", [lambda loader: loader.set("a", 1), lambda loader: loader.save()])
def test_the_order_of_calls_is_checked(call: Any) -> None:
    with pytest.raises(RuntimeError, match="start"):
        call(ResultSetLoader())


def test_columns_that_nobody_wants_are_dropped() -> None:
    loader = ResultSetLoader(columns={"a"}, limits=BatchLimits(max_record_bytes=100))
    (batch,) = load_rows(loader, [{"a": 1, "huge": "x" * 1000}])
    assert batch.to_pylist() == [{"a": 1}]
    loader.add_batch(pa.record_batch({"b": [1, 2], "a": [3, 4], "c": [5, 6]}))
    assert [b.to_pydict() for b in harvested(loader)] == [{"a": [3, 4]}]
    loader.add_batch(pa.record_batch({"b": [1, 2]}))
    assert [(b.num_rows, b.num_columns) for b in harvested(loader)] == [(2, 0)]


def test_whole_columns_are_not_copied() -> None:
    column = pa.array(range(1000))
    loader = ResultSetLoader()
    loader.add_batch(pa.record_batch({"a": column}))
    (batch,) = harvested(loader)
    assert batch.column("a").buffers()[1].address == column.buffers()[1].address


def test_rows_that_are_only_counted() -> None:
    loader = ResultSetLoader(columns=())
    loader.skip_rows(100_000)
    assert [(b.num_rows, b.num_columns) for b in harvested(loader)] == [(65_536, 0), (34_464, 0)]


@settings(max_examples=examples(50))
@given(
    sizes=st.lists(st.integers(0, 150_000), max_size=25),
    rows=st.integers(1, 10),
    whole=st.booleans(),
)
def test_batches_keep_the_limits_and_lose_nothing(sizes: list[int], rows: int, whole: bool) -> None:
    values = ["x" * size for size in sizes]
    loader = ResultSetLoader(limits=BatchLimits(rows=rows, bytes=LEAST_BYTES))
    if whole:
        loader.add_batch(pa.record_batch({"a": pa.array(values, pa.string())}))
        batches = harvested(loader)
    else:
        batches = load_rows(loader, [{"a": value} for value in values])
    assert [value for batch in batches for value in batch.column("a").to_pylist()] == values
    for batch in batches:
        assert 0 < batch.num_rows <= rows
        assert batch.nbytes <= LEAST_BYTES + 8 or batch.num_rows == 1
    for batch, following in pairwise(batches):
        if batch.num_rows < rows:  # it ended because the next row would not have fitted
            assert batch.nbytes + following.slice(0, 1).nbytes > LEAST_BYTES - 16


def test_a_large_row_is_a_batch_alone_and_a_larger_one_is_refused_by_its_place() -> None:
    limits = BatchLimits(bytes=LEAST_BYTES, max_record_bytes=2 * LEAST_BYTES)
    rows = [{"a": "s"}, {"a": "x" * (LEAST_BYTES + 1)}, {"a": "s"}]
    assert [b.num_rows for b in load_rows(ResultSetLoader(limits=limits), rows)] == [1, 1, 1]
    loader = ResultSetLoader(limits=limits, path="/data/f")
    loader.start(RowOrigin(position=77))
    with pytest.raises(RowTooLarge, match=r"/data/f: byte 77: a row of .* larger than max_record_bytes = 524288"):
        loader.set("a", "x" * (2 * LEAST_BYTES))
    loader.add_batch(pa.record_batch({"a": ["y", "x" * (2 * LEAST_BYTES)]}), lambda row: RowOrigin(position=100 + row))
    assert loader.harvest() is not None
    with pytest.raises(RowTooLarge, match="byte 101"):
        loader.harvest()


def test_origins_and_positions_stay_with_their_rows() -> None:
    loader = ResultSetLoader(limits=BatchLimits(rows=2))
    loader.add_batch(pa.record_batch({"a": [0, 1, 2]}), lambda row: RowOrigin(position=10 * row), positions=[0, 10, 20])
    seen = []
    while (harvest := loader.harvest()) is not None:
        assert harvest.origin is not None
        assert harvest.positions is not None
        seen += [
            (a, harvest.origin(n).position, harvest.positions[n].as_py())
            for n, a in enumerate(harvest.batch.column("a").to_pylist())
        ]
    assert seen == [(0, 0, 0), (1, 10, 10), (2, 20, 20)]


columns = st.dictionaries(st.sampled_from("abc"), st.sampled_from([None, 1, 1.5, "x"]), max_size=3)


@given(st.lists(st.lists(columns, min_size=1, max_size=3), max_size=6))
def test_the_version_rises_if_and_only_if_the_schema_changes_by_value(batches: list[list[dict[str, Any]]]) -> None:
    loader = ResultSetLoader()
    known, version = None, 0
    for rows in batches:
        load_rows(loader, rows)
        assert (loader.schema_version > version) == (known is None or not loader.schema.equals(known))
        assert loader.schema_version - version in (0, 1)
        known, version = loader.schema, loader.schema_version


def test_the_same_schema_made_anew_is_no_change() -> None:
    loader = ResultSetLoader()
    for _ in range(3):
        loader.add_batch(pa.record_batch({"a": [1], "b": ["x"]}))
        loader.harvest()
    loader.add_batch(pa.record_batch({"a": [1]}))  # a piece that lacks a column says nothing of it
    loader.harvest()
    assert loader.schema_version == 1


def test_a_column_of_values_of_several_kinds_is_text() -> None:
    assert array_of([1, {"a": [2]}, None, "x", True]).to_pylist() == ["1", '{"a": [2]}', None, "x", "true"]


NOON = datetime.datetime(2026, 1, 31, 12, 0, 0, 7)  # noqa: DTZ001
ABROAD = NOON.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2)))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (Decimal("1.5"), pa.int64()),
        (1e300, pa.float32()),
        (5, pa.timestamp("us")),
        (NOON, pa.date32()),
        (NOON, pa.timestamp("s")),
        (NOON.time(), pa.time32("s")),
        (ABROAD, pa.timestamp("us")),
        (datetime.timedelta(microseconds=1), pa.duration("s")),
        ({"a": 1, "b": 2}, pa.struct([("a", pa.int64())])),
        ([NOON], pa.list_(pa.date32())),
    ],
)
def test_no_value_is_changed_into_the_type_of_its_column(value: Any, kind: pa.DataType) -> None:
    """Arrow would change these; `converted`, which comes later, tells which are bad."""
    assert array_of([value], kind).to_pylist() == [value]


def test_times_of_several_forms_are_text() -> None:
    day, clock = NOON.date(), datetime.time(12, tzinfo=datetime.UTC)
    assert array_of([day, NOON]).to_pylist() == ["2026-01-31", "2026-01-31T12:00:00.000007"]
    assert array_of([NOON, ABROAD]).to_pylist() == ["2026-01-31T12:00:00.000007", "2026-01-31T12:00:00.000007+02:00"]
    assert array_of([clock], pa.time64("us")).to_pylist() == ["12:00:00+00:00"]
    assert array_of([Decimal("1.50"), 0.5]).to_pylist() == ["1.50", "0.5"]


def test_objects_may_be_maps() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    assert array_of([{"a": 1}, None, {}], kind).type == kind


def test_the_limits_are_checked() -> None:
    with pytest.raises(ValueError, match="bytes"):
        BatchLimits(bytes=LEAST_BYTES - 1)
    with pytest.raises(ValueError, match="rows"):
        BatchLimits(rows=65_537)
