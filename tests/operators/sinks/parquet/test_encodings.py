"""The encodings of columns in Parquet files: they are chosen by sample, and their values come back."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.sinks.parquet.encodings import LARGE, RUN_ROWS, RUNS, encodings_of

MANY = 20_000
EARLY = datetime.datetime(1969, 12, 31, tzinfo=datetime.UTC)
WHOLE = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("s"), pa.duration("us")),
]
OTHERS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False, None]),
    (pa.float16(), [0.5, -1.0, None]),
    (pa.float32(), [0.5, -1.0, None]),
    (pa.float64(), [float("inf"), -1.0, None]),
    (pa.string(), ["a", "", None]),
    (pa.large_string(), ["a", "", None]),
    (pa.binary(), [b"\0", b"", None]),
    (pa.binary(2), [b"ab", b"cd", None]),
    (pa.decimal128(20, 2), [decimal.Decimal("1.50"), decimal.Decimal("-1.00"), None]),
    (pa.null(), [None, None, None]),
    (pa.dictionary(pa.int8(), pa.string()), ["a", "b", None]),
    (pa.list_(pa.int64()), [[1, 2], [], None]),
    (pa.list_(pa.int64(), 2), [[1, 2], [3, None], None]),
    (pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]), [{"a": 1, "b": ["x"]}, {"a": None, "b": []}, None]),
    (pa.map_(pa.string(), pa.int64()), [[("a", 1)], [], None]),
    (pa.timestamp("us", "UTC"), [EARLY, EARLY.replace(year=9999), None]),
]


def file_of(table: pa.Table, first: pa.Table | None = None) -> pq.ParquetFile:
    """A file whose encodings are those of the rows that come first."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **encodings_of(table if first is None else first)) as writer:
        writer.write_table(table)
    return pq.ParquetFile(pa.BufferReader(sink.getvalue()))


def encodings(file: pq.ParquetFile) -> dict[str, set[str]]:
    """The encodings of the columns of the first row group, by path."""
    group = file.metadata.row_group(0)
    return {group.column(n).path_in_schema: set(group.column(n).encodings) for n in range(group.num_columns)}


@pytest.mark.parametrize("kind", WHOLE, ids=str)
def test_what_is_stored_as_whole_numbers_is_packed_and_comes_back(kind: pa.DataType) -> None:
    width = 8 if kind in (pa.int8(), pa.uint8()) else 16
    values = pa.array([None, *range(100)], pa.int64()).cast(pa.int32() if width == 8 or kind.bit_width == 32 else pa.int64())
    if kind == pa.date64():
        column = values.cast(pa.int32()).cast(pa.date32()).cast(kind)
    else:
        column = values.cast(kind) if pa.types.is_integer(kind) else values.view(kind)
    table = pa.table({"x": column})
    file = file_of(table)
    assert "DELTA_BINARY_PACKED" in encodings(file)["x"]
    assert file.read()["x"].cast(kind).to_pylist() == table["x"].to_pylist()


@pytest.mark.parametrize(("kind", "values"), OTHERS, ids=lambda value: str(value) if isinstance(value, pa.DataType) else "")
@pytest.mark.parametrize("times", [1, 5])
def test_all_types_come_back(kind: pa.DataType, values: list[Any], times: int) -> None:
    table = pa.table({"x": pa.array(values * times, kind)})
    assert file_of(table).read()["x"].to_pylist() == table["x"].to_pylist()


def test_leaves_are_called_as_parquet_calls_them() -> None:
    kinds = {"s": pa.struct([("few", pa.string()), ("many", pa.int64())]), "l.m": pa.list_(pa.int64())}
    rows = [{"s": {"few": "ab"[n % 2], "many": n}, "l.m": [n, n + MANY]} for n in range(1000)]
    maps = pa.array([[("k", n)] for n in range(1000)], pa.map_(pa.string(), pa.int64()))
    table = pa.Table.from_pylist(rows, pa.schema(list(kinds.items()))).append_column("m", maps)
    found = encodings(file_of(table))
    assert {path for path, names in found.items() if "RLE_DICTIONARY" in names} == {"s.few", "m.key_value.key"}
    assert {path for path, names in found.items() if "DELTA_BINARY_PACKED" in names} == {
        "s.many",
        "l.m.list.element",
        "m.key_value.value",
    }


def test_the_sample_is_of_all_rows() -> None:
    # the first rows are all alike, the last ones all differ, and the other way round
    alike = [0] * RUN_ROWS * RUNS
    table = pa.table({"late": [*alike, *range(20 * len(alike))], "early": [*range(20 * len(alike)), *alike]})
    assert encodings_of(table)["use_dictionary"] == []
    assert encodings_of(table.slice(0, len(alike)))["use_dictionary"] == ["late"]


def test_rows_that_come_later_may_be_of_another_kind() -> None:
    table = pa.table({"few": ["a", "b"] * MANY, "many": range(2 * MANY)})
    other = pa.table({"few": [str(n) for n in range(2 * MANY)], "many": [1] * 2 * MANY})
    assert file_of(pa.concat_tables([table, other]), first=table).read() == pa.concat_tables([table, other])
    assert file_of(pa.concat_tables([table, other]), first=other).read() == pa.concat_tables([table, other])


def test_large_values_are_not_looked_at() -> None:
    few = ["x" * (2 * LARGE)] * 4
    table = pa.table({"large": few, "list": [["x"] * (LARGE // 3)] * 4, "n": [1] * 4})
    assert table["list"].nbytes > table.num_rows * LARGE
    assert encodings_of(table)["use_dictionary"] == ["list.list.element", "n"]
    file = file_of(table)
    assert file.read() == table
    assert [file.metadata.row_group(0).column(n).is_stats_set for n in range(3)] == [False, True, True]
    assert "write_statistics" not in encodings_of(table.drop_columns(["large"]))
