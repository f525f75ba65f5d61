"""The input and the outputs of `apps/orders`, read by other libraries: csv, deltalake, pyiceberg, pyarrow and sqlite3."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq

from tests.chaos import oracle

NAMES = ("order_id", "updated", "amount", "customer", "status", "country", "coupon")
Order = tuple[str, ...]


@attrs.frozen
class Orders:
    """The rows that files hold: orders that pass the check, orders that fail it, and the text of rows that cannot be read."""

    accepted: Counter[Order]
    failed: Counter[Order]
    rejected: Counter[str]

    @property
    def newest(self) -> Counter[Order]:
        """The newest row of each order."""
        rows: dict[str, Order] = {}
        for row in self.accepted:
            if row[0] not in rows or rows[row[0]][1] < row[1]:
                rows[row[0]] = row
        return Counter(rows.values())


def expected(files: Iterable[Path]) -> Orders:
    """Return the rows of CSV files."""
    orders = Orders(Counter(), Counter(), Counter())
    for path in files:
        header, *lines = path.read_text(encoding="utf-8").splitlines()
        for line in lines:
            row = dict(zip(header.split(","), next(csv.reader([line])), strict=True))
            if row["amount"] == "free":
                orders.rejected[line] += 1
            else:
                (orders.failed if row["amount"].startswith("-") else orders.accepted)[order(row)] += 1
    return orders


def order(row: Mapping[str, Any]) -> Order:
    """Return a row as texts; columns that it does not have are empty, as nulls are."""
    return tuple(_text(row.get(name)) for name in NAMES)


def _text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return f"{value.astimezone(datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"
    if isinstance(value, Decimal):
        return f"{value:.2f}"
    return "" if value is None else str(value)


def orders_of(rows: Iterable[Mapping[str, Any]]) -> Counter[Order]:
    """Return rows as a multiset."""
    return Counter(map(order, rows))


def failed(output: Path) -> Counter[Order]:
    """Return the rows of all visible Parquet files, whose columns may differ."""
    return orders_of(row for name in oracle.visible(output) for row in pq.ParquetFile(output / name).read().to_pylist())


def rows_of_parquet(data: bytes) -> int:
    """Return the number of rows in the bytes of a file."""
    return int(pq.ParquetFile(io.BytesIO(data)).metadata.num_rows)


def delta(output: Path) -> dict[int, Counter[Order]]:
    """Return the rows that each window has added to the Delta table. Raises AssertionError where a window is there twice."""
    import deltalake

    windows: dict[int, Counter[Order]] = {}
    if not deltalake.DeltaTable.is_deltatable(str(output / "delta")):
        return windows
    table = deltalake.DeltaTable(output / "delta")
    before: Counter[Order] = Counter()
    for commit in sorted(table.history(), key=lambda commit: commit["version"]):
        table.load_as_version(commit["version"])
        rows = orders_of(table.to_pyarrow_table().to_pylist())
        _add(windows, commit.get("dagflow.window"), rows, before)
        before = rows
    return windows


def iceberg(output: Path) -> dict[int, Counter[Order]]:
    """Do the same for the Iceberg table."""
    table = iceberg_table(output)
    windows: dict[int, Counter[Order]] = {}
    before: Counter[Order] = Counter()
    for snapshot in table.snapshots() if table is not None else ():
        rows = orders_of(table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist())
        _add(windows, snapshot.summary.additional_properties.get("dagflow.window"), rows, before)
        before = rows
    return windows


def iceberg_table(output: Path) -> Any:
    """Return the table, None if there is none."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import NoSuchTableError

    if not (output / "catalog.db").exists():
        return None
    catalog = SqlCatalog("default", uri=f"sqlite:///{output}/catalog.db", warehouse=f"{output}/iceberg")
    try:
        with contextlib.suppress(NoSuchTableError):
            return catalog.load_table("shop.orders")
        return None
    finally:
        catalog.engine.dispose()


def _add(windows: dict[int, Counter[Order]], window: Any, rows: Counter[Order], before: Counter[Order]) -> None:
    if window is None:  # a commit that adds columns
        assert rows == before, "a commit that names no window has changed rows"
        return
    assert int(window) not in windows, f"window {window} is there twice"
    assert not before - rows, f"window {window} has removed rows"
    windows[int(window)] = rows - before


@attrs.frozen
class Current:
    """The table of the database: its rows, its last window, and the names of staged tables."""

    rows: Counter[Order]
    window: int
    staged: list[str]


def database(output: Path) -> Current:
    """Read the SQLite database; empty if the table is not there yet."""
    path = output / "orders.db"
    if not path.exists():
        return Current(Counter(), -1, [])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        staged = [name for name in names if name.startswith("_dagflow_staged_")]
        if "orders" not in names:
            return Current(Counter(), -1, staged)
        rows = [dict(row) for row in connection.execute("SELECT * FROM orders")]
        ((window,),) = connection.execute("SELECT window_number FROM _dagflow_windows").fetchall()
    for row in rows:
        row["updated"] = row["updated"].replace(" ", "T").replace(".000000Z", "Z")
    return Current(orders_of(rows), window, staged)


def wrong_meanwhile(output: Path, orders: Orders, read: Callable[[Path], Current] = database) -> Iterator[str]:
    """Yield the promises that are broken after any launch: tables hold whole windows, and no row twice.

    `read`: reads the database.
    """
    tables = {"delta": delta(output), "iceberg": iceberg(output)}
    for name, windows in tables.items():
        if too_many := total(windows) - orders.accepted:
            yield f"{name}: {oracle.difference(too_many, Counter())}"
    if foreign := read(output).rows - orders.accepted:
        yield f"database: {oracle.difference(foreign, Counter())}"
    one, other = tables.values()
    for window in one.keys() & other.keys():
        if one[window] != other[window]:
            yield f"window {window} of delta and iceberg: {oracle.difference(one[window], other[window])}"


def wrong(output: Path, orders: Orders, read: Callable[[Path], Current] = database) -> Iterator[str]:
    """Yield the promises that are broken after the last launch."""
    yield from wrong_meanwhile(output, orders, read)
    tables, current = {"delta": delta(output), "iceberg": iceberg(output)}, read(output)
    for name, windows in tables.items():
        if total(windows) != orders.accepted:
            yield f"{name}: {oracle.difference(total(windows), orders.accepted)}"
    if tables["delta"].keys() != tables["iceberg"].keys():
        yield f"windows of delta are {sorted(tables['delta'])}, those of iceberg {sorted(tables['iceberg'])}"
    if current.rows != orders.newest:
        yield f"database: {oracle.difference(current.rows, orders.newest)}"
    if current.window < max(tables["delta"]):  # it gets its rows at the emission point, which may be a window without input
        yield f"the last window of the database is {current.window}, that of delta is {max(tables['delta'])}"
    if current.staged:
        yield f"left over in the database: {current.staged}"
    yield from _unnamed_files(output)


def _unnamed_files(output: Path) -> Iterator[str]:
    """Yield the data files that no table names, and files that tasks have staged."""
    import deltalake

    named = {Path(uri.removeprefix("file://")).name for uri in deltalake.DeltaTable(output / "delta").file_uris()}
    named |= {Path(path).name for path in iceberg_table(output).inspect.files().column("file_path").to_pylist()}
    files = [path for table in ("delta", "iceberg") for path in (output / table).rglob("*.parquet")]
    lost = [path for path in files if path.name not in named and path.parent.name != "_delta_log"]  # which has checkpoints
    if lost:
        yield f"no table names {sorted(str(path.relative_to(output)) for path in lost)}"


def total(windows: Mapping[int, Counter[Order]]) -> Counter[Order]:
    """Return the rows of all windows."""
    return sum(windows.values(), Counter())
