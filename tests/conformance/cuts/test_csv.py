"""CSV with line ends in quotes: the same rows on both runners, however files are cut, and whichever task reads which part."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort
from dagflow.launching.launch import launch
from dagflow.runtime.events import Event, Stolen
from dagflow.testing import Collector
from operators import CsvFormat, FileSplitterInput, ScanReader
from tests.conformance.apps import wait_for_file

ROWS = [(n, f'slow "{n}"\n,{n}\r\n"' if n % 3 else f"row {n}") for n in range(300)]


@attrs.define
class Slow(Operator):
    """Takes its time for the rows of the first file, after another task has come to the end of the second one."""

    other_read: str
    input = InputPort[Any]()
    output = OutputPort[Any]()

    @input.batch
    def wait(self, rows: pa.RecordBatch) -> None:
        numbers = rows.column("n").to_pylist()
        if len(ROWS) - 1 in numbers:
            Path(self.other_read).touch()
        if slow := sum(n < len(ROWS) // 2 for n in numbers):
            wait_for_file(self.other_read)
            time.sleep(0.005 * slow)
        self.output.emit_batch(rows)


def rows_of(source: Path, runner: str, middle: Operator | None = None, *, splitter: Any = None, **settings: Any) -> Any:
    seen, events = Collector[Any](), list[Event]()

    def populate(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(source)], **(splitter or {})))
        reader = dag.add_operator("reader", ScanReader(CsvFormat(), min_readers=2, max_readers=2))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        port: Any = reader.batches
        for number, operator in enumerate([each for each in (middle, seen) if each is not None]):
            added: Any = dag.add_operator(f"m{number}", operator)
            dag.add_stream(f"s{number}", port, added.input)
            port = getattr(added, "output", None)

    report = launch(populate, runner=runner, durability="process", subscribers=[events.append], **settings).report
    return sorted((row["n"], row["text"]) for row in seen.records), report, events


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, rows in [("1.csv", ROWS[:150]), ("2.csv", ROWS[150:])]:
        with (folder / name).open("w", newline="") as out:
            csv.writer(out).writerows([("n", "text"), *rows])
    return folder


@pytest.mark.parametrize("runner", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_blocks_and_windows_may_be_cut_anywhere(source: Path, runner: str) -> None:
    rows, report, _ = rows_of(source, runner, splitter={"block_size": 97, "blocks_threshold": 30})
    assert rows == ROWS
    assert report.windows > 1


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_skewed_work_on_spark_is_taken_over(source: Path, tmp_path: Path) -> None:
    rows, _, events = rows_of(source, "spark", Slow(str(tmp_path / "other has read")), rebalance="auto")
    assert rows == ROWS
    assert [event for event in events if isinstance(event, Stolen)]
