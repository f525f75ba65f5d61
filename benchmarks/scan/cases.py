"""The cases by name: each makes its `Case`s for a `Place`, just before they are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Goal, Limit
from benchmarks.scan import json_peers, ours, peers
from benchmarks.scan import memory as task_memory
from benchmarks.scan.inputs import THREE, make_json, make_table, summed
from dagflow import DAG, launch
from dagflow.config import MiB

OURS, SAFE, SPARK, DUCKDB = "dagflow", "dagflow, durable", "Spark read.csv → write.parquet", "DuckDB, two threads"
FIELD = 50 * MiB
SPARK_JSON = "Spark read.json → write.parquet"
POLARS, ARROW = "Polars, streaming, two threads", "pyarrow, one process, two threads"


def _ours(place: Place, application: Callable[[DAG, ours.Settings], None], **options: str) -> peers.Work:
    def work(source: Path, target: Path, columns: Sequence[str] | None) -> None:
        if options.get("runner", "spark") == "spark":
            _ = place.spark.session
        settings = ours.Settings([str(source)], str(target), None if columns is None else list(columns))
        launch(application, settings, progress="none", **{"runner": "spark", "durability": "process", **options})

    return work


def _peers(place: Place, *, quoted: bool) -> Iterator[tuple[str, peers.Work]]:
    if not place.quick:
        yield SPARK, peers.spark(place.spark.session, multi_line=quoted)
    if peers.is_there("duckdb"):
        yield DUCKDB, peers.duckdb
    if peers.is_there("polars"):
        yield POLARS, peers.polars
    yield ARROW, peers.pyarrow


def _json_peers(place: Place) -> Iterator[tuple[str, peers.Work]]:
    if not place.quick:
        yield SPARK_JSON, json_peers.spark(place.spark.session)
    if peers.is_there("duckdb"):
        yield DUCKDB, json_peers.duckdb
    if peers.is_there("polars"):
        yield POLARS, json_peers.polars
    yield ARROW, json_peers.pyarrow


def _contestants(
    place: Place,
    source: Path,
    columns: Sequence[str] | None,
    others: Iterable[tuple[str, peers.Work]],
    application: Callable[[DAG, ours.Settings], None],
) -> list[Contestant]:
    target = place.target("memory")
    runner = {"runner": "local"} if place.quick else {}
    mine = [(OURS, _ours(place, application, **runner)), (SAFE, _ours(place, application, durability="machine", **runner))]
    return [
        Contestant(
            name=name,
            run=partial(work, source, target, columns),
            check=partial(summed, target),
            clean=partial(place.clean, "memory"),
            size=source.stat().st_size,
        )
        for name, work in [*others, *mine]
    ]


def csv(place: Place) -> Iterator[Case]:
    """CSV to Parquet in memory: without quotes, and with delimiters, quotes and line ends in quotes."""
    for quoted in (False, True):
        what = "CSV with line ends in quotes" if quoted else "CSV"
        source = make_table(place.disk / f"table{'-quoted' * quoted}.csv", place.size, quoted=quoted)
        for columns in (None, THREE):
            wide = "all 20 columns" if columns is None else "3 of 20 columns"
            notes = ["Spark reads such a file by one task (`multiLine`)."] if quoted and not place.quick else []
            yield Case(
                f"{what}, {wide}",
                f"{what} to Parquet (snappy), {wide}, to memory",
                _contestants(place, source, columns, _peers(place, quoted=quoted), ours.csv_to_parquet),
                [Goal(OURS, SPARK, 3.0), Goal(OURS, DUCKDB, 1.0)],
                notes=notes,
            )
        source.unlink()


def json(place: Place) -> Iterator[Case]:
    """JSON lines to Parquet in memory."""
    source = make_json(place.disk / "table.jsonl", place.size)
    for columns in (None, THREE):
        wide = "all 20 columns" if columns is None else "3 of 20 columns"
        yield Case(
            f"JSON lines, {wide}",
            f"JSON lines to Parquet (snappy), {wide}, to memory",
            _contestants(place, source, columns, _json_peers(place), ours.json_to_parquet),
            [Goal(OURS, SPARK_JSON, 3.0), Goal(OURS, DUCKDB, 1.0)],
        )
    source.unlink()


def memory(place: Place) -> Iterator[Case]:
    """The memory of a task that scans and writes: a large file, folders by value, a field as large as a row may be."""
    table = make_table(place.disk / "table.csv", place.size)
    folders = task_memory.with_folders(table, place.disk / "folders.csv")
    field = task_memory.with_huge_field(place.disk / "field.csv", place.size if place.quick else FIELD)
    for application, source, what in (
        ("wide", table, "CSV of 20 columns"),
        ("folders", folders, f"the same to {task_memory.FOLDERS} folders"),
        ("field", field, f"CSV with a field of {field.stat().st_size // MiB} MiB"),
    ):

        def work(application: str = application, source: Path = source) -> float:
            return task_memory.peak(application, source, place.target("memory")) / MiB

        clean = partial(place.clean, "memory")
        yield Case(
            f"memory, {what}",
            f"{what} to Parquet: the most memory of a task, beyond what it began with",
            [Contestant(name=OURS, run=work, clean=clean)],
            [Limit(OURS, 256, "MiB")],
            unit="MiB",
            rounds=1,
            warm_up=0,
        )
    for path in (table, folders, field):
        path.unlink()


CASES: dict[str, Callable[[Place], Iterator[Case]]] = {"csv": csv, "json": json, "memory": memory}
