"""Windows into tables: after many others, and beside the packages' own writers."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa

from benchmarks.rounds import Case, Contestant, Goal, Limit
from dagflow import StagedWindow
from dagflow.testing import OperatorTask
from operators import DeltaWriter, IcebergWriter

MARKS = (100, 1_000)  # windows, and as many as are asked for
AT_ONCE = 20  # windows of a round
GROWTH = 1.5  # times as long after many windows as at first
LIMITS = {"delta": 50.0, "iceberg": 150.0}  # ms


def catalog(folder: Path) -> dict[str, str]:
    """An Iceberg catalog in a folder."""
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}


def delta(folder: Path) -> Any:
    """A sink of a Delta table."""
    return DeltaWriter(str(folder / "delta"))


def iceberg(folder: Path) -> Any:
    """A sink of an Iceberg table."""
    return IcebergWriter("shop.sales", catalog(folder))


def iceberg_long(folder: Path) -> Any:
    """A sink of an Iceberg table, which keeps all snapshots."""
    return IcebergWriter("shop.sales", catalog(folder), keep_snapshots=0)


SINKS: dict[str, Callable[[Path], Any]] = {"delta": delta, "iceberg": iceberg, "iceberg, all snapshots": iceberg_long}


@attrs.define
class Table:
    """A table, and the sink that publishes windows to it."""

    sink: Any
    numbers: Iterator[int] = attrs.field(factory=itertools.count)

    def staged(self, batches: list[pa.RecordBatch]) -> StagedWindow:
        """Stage a window as a task does."""
        number = next(self.numbers)
        with OperatorTask(self.sink, name="sink", window=number) as task:
            task.context.application = "benchmark"
            for batch in batches:
                task.give("input", batch, "batch")
            task.end_window()
            return StagedWindow("benchmark", number, (self.sink.stage(),), "sink")

    def publish(self, window: StagedWindow) -> float:
        """Publish it as the driver does: the seconds that it took."""
        began = time.perf_counter()
        self.sink.publish(window)
        self.sink.sweep(window)
        return time.perf_counter() - began

    def grow(self, windows: int, say: Callable[[str], None]) -> None:
        """Publish windows of a row."""
        for number in range(windows):
            self.publish(self.staged([ROW]))
            if number % 500 == 499:
                say(f"{number + 1} windows are there")

    def milliseconds(self) -> float:
        """The milliseconds to publish a window of a row: the median of some."""
        return 1000 * statistics.median(self.publish(self.staged([ROW])) for _ in range(AT_ONCE))


ROW = pa.record_batch({"id": [1], "name": ["a name"], "value": [0.5]})


def history(kind: str, folder: Path, windows: int, say: Callable[[str], None]) -> Case:
    """Windows of a row into a new table, and into tables that have many windows."""
    numbers = itertools.count()
    grown: dict[str, Table] = {}
    for mark in sorted({*(each for each in MARKS if each < windows), windows}):
        place = folder / f"{mark}"
        place.mkdir(parents=True)
        old = grown[f"after {mark:,} windows"] = Table(SINKS[kind](place))
        old.grow(mark, say)

    def first() -> float:
        place = folder / f"new-{next(numbers)}"
        place.mkdir()
        new = Table(SINKS[kind](place))
        new.grow(1, say)
        return new.milliseconds()

    last = f"after {windows:,} windows"
    limit = [Limit(last, LIMITS[kind], "ms")] if kind in LIMITS else []
    return Case(
        f"history {kind}",
        f"Publish a window of one row to a table: {kind}",
        [Contestant("the first windows", first), *(Contestant(name, old.milliseconds) for name, old in grown.items())],
        [Goal(last, "the first windows", most=GROWTH), *limit],
        unit="ms",
    )


def beside(kind: str, folder: Path, rows: list[pa.RecordBatch]) -> Case:
    """One window of many rows, beside the package's own writer."""
    numbers = itertools.count()
    table = pa.Table.from_batches(rows)

    def place() -> Path:
        made = folder / f"{kind}-{next(numbers)}"
        made.mkdir()
        return made

    def ours() -> None:
        sink = Table((delta if kind == "delta" else iceberg)(place()))
        sink.publish(sink.staged(rows))

    def deltalake() -> None:
        from deltalake import write_deltalake

        write_deltalake(str(place() / "delta"), table, mode="append")

    def pyiceberg() -> None:
        from pyiceberg.catalog import load_catalog

        opened = load_catalog("default", **catalog(place()))
        opened.create_namespace("shop")
        opened.create_table("shop.sales", table.schema).append(table)

    peer: tuple[str, Callable[[], None]] = ("deltalake", deltalake) if kind == "delta" else ("pyiceberg", pyiceberg)
    return Case(
        kind,
        f"Append {table.num_rows:,} rows of 5 columns to a new table: {kind}",
        [Contestant(*peer), Contestant("dagflow", ours)],
    )
