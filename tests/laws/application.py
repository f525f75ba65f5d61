"""The application of a case: its DAG, its files, its launches, and the tables that come of them."""

from __future__ import annotations

import functools
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from dagflow import DAG, launch
from dagflow.runtime.events import Event, WindowDone, WindowPlanned
from dagflow.runtime.run_report import RunReport
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import (
    CsvFormat,
    CsvWriter,
    DeltaWriter,
    FileSplitterInput,
    IcebergWriter,
    JsonLinesFormat,
    JsonLinesWriter,
    ParquetFormat,
    ParquetWriter,
    PostgresWriter,
    ScanReader,
    SqlWriter,
)
from tests.conformance.faults.dying import Deadly, dies
from tests.laws.cases import FILES, Case, Source, Target
from tests.laws.columns import Columns, Rows, names_of, table_of
from tests.laws.nodes import Stream
from tests.laws.registry import KINDS
from tests.laws.standing import catalog_of, postgres, standing, table_name

FORMATS: dict[str, Any] = {"parquet": ParquetFormat, "json_lines": JsonLinesFormat, "csv": CsvFormat}
FOLDERS: dict[str, Any] = {"parquet": ParquetWriter, "json_lines": JsonLinesWriter, "csv": CsvWriter, "delta": DeltaWriter}


class Idle:
    """A clock of continuous launches, on which waiting takes no time, and the number of waits since something has happened."""

    def __init__(self) -> None:
        self.waits = 0
        self._slept = 0.0
        self._open = set[int]()

    def now(self) -> float:
        """Return the seconds since the epoch."""
        return time.time() + self._slept

    def monotonic(self) -> float:
        """Return the seconds since some moment."""
        return time.monotonic() + self._slept

    def sleep(self, seconds: float) -> None:
        """Let a second pass."""
        time.sleep(0.001)
        self._slept += 1
        self.waits += not self._open

    def look(self, event: Event) -> None:
        """Take an event: something happens."""
        self.waits = 0
        if isinstance(event, WindowPlanned):
            self._open.add(event.window)
        elif isinstance(event, WindowDone):
            self._open.discard(event.window)


ENOUGH = 100
"""A continuous launch is stopped after so many waits in which nothing has happened."""


def results_of(case: Case, runner: str = "local") -> Iterator[tuple[int, list[Rows]]]:
    """Launch a case over its cut, in a new folder. After launches that have emitted all, yield their number and rows."""
    with tempfile.TemporaryDirectory(prefix="dagflow-laws-") as folder:
        home = Path(folder)
        launches = _Launches(case, home, runner)
        streams = case.streams()
        for number in range(len(case.sources)):
            (home / f"s{number}").mkdir()
        for launch in range(case.launches):
            _add_files(case, home, launch)
            if launches.is_complete(launch):
                yield (
                    launch,
                    [
                        standing(
                            target, streams[target.stream], home / f"out{number}", launches.collectors.get(number), case.grows
                        )
                        for number, target in enumerate(case.targets)
                    ],
                )


class _Launches:
    def __init__(self, case: Case, home: Path, runner: str) -> None:
        self.case, self.home = case, home
        self.collectors = {number: Collector[Any]() for number, target in enumerate(case.targets) if target.kind == "collector"}
        self.options: dict[str, Any] = {"run_folder": str(home / "run"), "runner": runner, "slots": case.slots, **case.options}
        self.launch = self.rows_read = 0
        self.populate_dag = _populating(case, home, self.collectors, lambda: self.launch)

    def is_complete(self, launch: int) -> bool:
        """Launch once all files of a launch are there, and return whether all has reached the sinks."""
        self.launch = launch
        case, is_last = self.case, launch == self.case.launches - 1
        is_continuous = launch in case.every
        launched = functools.partial(self._continuous, case.every[launch]) if is_continuous else self._bounded
        if launch in case.deaths:
            has_died = dies(launched, Deadly(str(self.home), case.deaths[launch]))
            if has_died and not case.is_rerun and not is_continuous and not is_last:
                return False
        for _ in range(2 if case.windows_of_launch and not launch and not is_continuous else 0):
            self._bounded(max_windows=case.windows_of_launch)
        report = launched()
        if not is_continuous:
            return True
        if is_last:
            self._bounded()
            return True
        every = sum(source.rows.total() for source in case.until(launch).sources)
        return not case.deaths and not report.held and self.rows_read == every

    def _bounded(self, **options: Any) -> RunReport:
        options["final"] = self.case.is_final
        return self._counted(run_dag(self.populate_dag, **self.options, **options))

    def _continuous(self, every: float | None) -> RunReport:
        clock = Idle()
        options = {**self.options, "every": every, "durability": "process", "subscribers": [clock.look], "clock": clock}
        run = launch(self.populate_dag, once=False, **options)
        while not run.ended and clock.waits < ENOUGH:
            time.sleep(0.005)
        run.stop()
        return self._counted(run.wait(300))

    def _counted(self, report: RunReport) -> RunReport:
        names = [f"s{number}_reader" for number in range(len(self.case.sources))]
        self.rows_read += sum(report.operators[name].records_out for name in names)
        return report


def _populating(
    case: Case, home: Path, collectors: dict[int, Collector[Any]], launch: Callable[[], int]
) -> Callable[[DAG, Any], None]:
    def populate_dag(dag: DAG, conf: Any) -> None:
        outputs: dict[str, Any] = {}
        consumers: dict[str, list[Any]] = {}
        streams = case.streams(launch())
        for number, source in enumerate(case.sources):
            outputs[f"s{number}"] = _reader(dag, f"s{number}", source, home, launch())
        for number, node in enumerate(case.nodes):
            kind = KINDS[node.kind]
            operator: Any = dag.add_operator(f"n{number}", kind.operator(node, [streams[name] for name in node.inputs]))
            if node.partitions:
                moved = launch() if case.is_moving and node.kind != "join" else 0
                dag.set_attributes(operator, partitioner=StatelessPartitioner(1 + (node.partitions - 1 + moved) % 3))
            for name, port in zip(node.inputs, kind.input_ports(node), strict=True):
                consumers.setdefault(name, []).append(getattr(operator, port))
            for name in streams:
                if name.startswith(f"n{number}."):
                    outputs[name] = getattr(operator, name.partition(".")[2])
        for number, target in enumerate(case.targets):
            place = home / f"out{number}"
            sink = collectors[number] if number in collectors else _sink(target, streams[target.stream], place, case.grows)
            dag.add_operator(f"out{number}", sink)
            consumers.setdefault(target.stream, []).append(sink.input)
        for name, inputs in consumers.items():
            dag.add_stream(f"{name.replace('.', '_')}_rows", outputs[name], *inputs)

    return populate_dag


def _reader(dag: DAG, name: str, source: Source, home: Path, launch: int) -> Any:
    splitter = FileSplitterInput([str(home / name)], block_size=source.block_size, blocks_threshold=source.blocks_threshold)
    found = dag.add_operator(f"{name}_files", splitter)
    schema = {source.columns[at].name: source.columns[at].of.text for at in source.places_in(launch)}
    reader = dag.add_operator(f"{name}_reader", ScanReader[Any](FORMATS[source.format](), schema=schema))
    dag.add_stream(f"{name}_blocks", found.blocks_metadata_output, reader.blocks_metadata_input)
    return reader.batches


def _sink(target: Target, stream: Stream, folder: Path, grows: bool) -> Any:
    options: dict[str, Any] = {"mode": target.mode}
    if target.keys:
        options["keys"] = target.keys
    if target.partition_columns:
        options["partition_columns"] = target.partition_columns
    if target.max_file_rows:
        options["max_file_rows"] = target.max_file_rows
    if grows and target.kind not in FILES:
        options["on_schema_change"] = "evolve"
    if target.kind == "sqlite":
        return SqlWriter[Any](f"sqlite:///{folder}.db", "rows", **options)
    if target.kind == "postgres":
        return PostgresWriter[Any](postgres(), table_name(folder), **options)
    if target.kind == "iceberg":
        (folder / "warehouse").mkdir(parents=True, exist_ok=True)
        return IcebergWriter[Any]("laws.rows", catalog_of(folder), **options)
    return FOLDERS[target.kind](str(folder), **options)


def _add_files(case: Case, home: Path, launch: int) -> None:
    """Write the files that are new in a launch."""
    for number, source in enumerate(case.sources):
        for at, rows in enumerate(source.files):
            if source.launches[at] == launch:
                path, places = home / f"s{number}" / f"{at}.{source.format}", source.places_in(launch)
                columns = tuple(source.columns[place] for place in places)
                own = tuple(tuple(row[place] for place in places) for row in rows)
                if source.format == "parquet":
                    pq.write_table(table_of(_as_counted(own), columns), path, row_group_size=source.rows_of_group)
                else:
                    text = _json_lines(own, columns) if source.format == "json_lines" else _csv(own, columns)
                    path.write_bytes(text.encode())


def _as_counted(rows: tuple[Any, ...]) -> Any:
    return Rows(rows)


def _json_lines(rows: tuple[Any, ...], columns: Columns) -> str:
    def text(value: Any) -> str:
        return str(value) if isinstance(value, Decimal) else json.dumps(value, default=lambda value: value.isoformat())

    names = names_of(columns)
    return "".join(
        "{" + ", ".join(f"{json.dumps(name)}: {text(value)}" for name, value in zip(names, row, strict=True)) + "}\n"
        for row in rows
    )


def _csv(rows: tuple[Any, ...], columns: Columns) -> str:
    """Return rows as CSV: a missing value is nothing, and an empty text is quoted."""

    def field(value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, str):
            return '"' + value.replace('"', '""') + '"'
        return value.isoformat() if hasattr(value, "isoformat") else str(value).lower() if isinstance(value, bool) else str(value)

    return "".join(",".join(map(field, row)) + "\n" for row in [names_of(columns), *rows])
