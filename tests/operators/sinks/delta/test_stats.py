"""Statistics in the log of a Delta table never hide rows from the readers that the documentation names."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dagflow.testing import Window, run_operator
from operators import DeltaWriter

END = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001  # without a zone
COLUMNS: dict[str, Any] = {
    "id": [1, 2, 3],
    "real": [1.5, 2.5, 3.5],
    "float": pa.array([1.5, 0.0, -0.0], pa.float32()),
    "infinite": [1.0, float("inf"), float("-inf")],
    "nan": [1.0, float("nan"), 3.0],
    "flag": [True, False, True],
    "price": pa.array([Decimal("1.10"), Decimal("2.20"), Decimal("3.30")], pa.decimal128(38, 2)),
    "huge": pa.array([Decimal("1.10"), Decimal("12345678901234567890.12"), None], pa.decimal128(38, 2)),
    "long": ["x" * 100, "y" * 64 + "\U0010ffff" * 9, "z"],
    "last": ["\U0010ffff" * 70, "a", None],
    "day": [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None],
    "at": pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5, 999), END, None], pa.timestamp("us")),  # noqa: DTZ001
    "zoned": pa.array([datetime.datetime(1969, 12, 31, 23, 59, 59, 1), END, None], pa.timestamp("us", "UTC")),  # noqa: DTZ001
    "data": [b"a", b"\xff", None],
    "part": [{"x": 1, "y": True}, {"x": 2, "y": None}, None],
    "empty": pa.array([None, None, None], pa.int64()),
}


def of_deltalake(path: str, column: str, value: Any) -> list[int]:
    table = deltalake.DeltaTable(path).to_pyarrow_dataset().to_table(filter=pc.field(column) == value)
    return sorted(table.column("id").to_pylist())


def of_pandas(path: str, column: str, value: Any) -> list[int]:
    return sorted(deltalake.DeltaTable(path).to_pyarrow_table(filters=[(column, "=", value.as_py())]).column("id").to_pylist())


def of_query(path: str, column: str, value: Any) -> list[int]:
    import duckdb

    dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
    connection = duckdb.connect()
    connection.register("t", dataset)
    return sorted(row[0] for row in connection.execute(f'SELECT id FROM t WHERE "{column}" = ?', [value.as_py()]).fetchall())


def of_polars(path: str, column: str, value: Any) -> list[int]:
    import polars

    scan = polars.scan_delta(path).filter(polars.col(column) == polars.lit(value.as_py()))
    return sorted(scan.select("id").collect()["id"].to_list())


READERS = [of_deltalake, of_pandas, of_query, of_polars]
FILTERED = [name for name in COLUMNS if name not in ("id", "part", "empty", "data")]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("alone", [True, False])
def test_a_filter_finds_each_row_whatever_the_statistics(read: Callable[..., list[int]], alone: bool, tmp_path: Path) -> None:
    """With each column beside `id` alone, so that one value without bounds does not take those of all others away."""
    everything = pa.table(COLUMNS)
    if not alone:
        run_operator(DeltaWriter(str(tmp_path / "all")), {"input": [everything]})
    for name in FILTERED:
        path = str(tmp_path / (name if alone else "all"))
        if alone:
            run_operator(DeltaWriter(path), {"input": [everything.select(["id", name])]})
        column = everything.column(name).combine_chunks()
        for row, value in enumerate(column):
            if value.as_py() is None or value.as_py() != value.as_py() or (read is not of_deltalake and _is_foreign(value)):
                continue
            expected = [n + 1 for n, other in enumerate(column.to_pylist()) if other == value.as_py()]
            assert read(path, name, value) == expected, (name, row)


def _is_foreign(value: Any) -> bool:
    """Return whether a reader takes a value for a Python object that it has another type for."""
    return pa.types.is_decimal(value.type) or pa.types.is_temporal(value.type) or pa.types.is_float32(value.type)


def stats(path: Path) -> list[dict[str, Any]]:
    lines = [line for log in sorted((path / "_delta_log").glob("*.json")) for line in log.read_text().splitlines()]
    return [json.loads(json.loads(line)["add"]["stats"]) for line in lines if '"add"' in line]


def test_all_columns_have_bounds_or_none(tmp_path: Path) -> None:
    table = pa.table({"n": [1, 2], "x": [0.5, 1.5], "s": ["a" * 70, "b" * 70], "b": [b"x", b"y"]})
    windows = [Window([table]), Window([table.set_column(1, "x", [[0.5, float("nan")]])])]
    run_operator(DeltaWriter(str(tmp_path)), {"input": windows})
    first, second = stats(tmp_path)
    assert first["minValues"] == {"n": 1, "x": 0.5, "s": "a" * 64}
    assert first["maxValues"] == {"n": 2, "x": 1.5, "s": "b" * 63 + "c"}
    assert second == {"numRecords": 2, "nullCount": {"n": 0, "x": 0, "s": 0, "b": 0}}


def test_the_end_of_time_is_kept(tmp_path: Path) -> None:
    run_operator(DeltaWriter(str(tmp_path)), {"input": [pa.table({"at": pa.array([END], pa.timestamp("us"))})]})
    assert deltalake.DeltaTable(tmp_path).to_pyarrow_table().column("at").to_pylist() == [END]
    assert stats(tmp_path)[0]["maxValues"] == {"at": "9999-12-31T23:59:59.999999"}
