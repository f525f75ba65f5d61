"""Scans in a DAG: the same rows on both runners, however the files are cut and whichever task reads which part."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow.compute as pc
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort
from dagflow.errors import ColumnExtra, ColumnUnknown
from dagflow.launching.launch import launch
from dagflow.ledger import Ledger, read_dataset
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator
from dagflow.planning.view import plan_view
from dagflow.render.plan import plan_text
from dagflow.runtime.events import Event, Stolen
from dagflow.scan import BadRow
from dagflow.testing import Collector, run_dag
from operators import CsvFormat, FileSplitterInput, Filter, JsonLinesFormat, ParquetWriter, ScanReader
from tests.conformance.apps import wait_for_file

JSON_LINES = JsonLinesFormat()


def rows_of(folder: Path, runner: str, **properties: Any) -> tuple[list[dict[str, Any]], Any]:
    seen = Collector[Any]()

    def populate(dag: DAG, conf: Any) -> None:
        splitter = dag.add_operator("splitter", FileSplitterInput([str(folder)], block_size=300))
        reader = dag.add_operator("reader", ScanReader(JsonLinesFormat(), **properties))
        some = dag.add_operator("some", Filter(pc.field("n") >= 10))
        keep = dag.add_operator("keep", seen)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("batches", reader.batches, some.input)
        dag.add_stream("kept", some.output, keep.input)

    report = run_dag(populate, {}, runner=runner)
    return seen.records, report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "in"
    source.mkdir()
    for number in range(3):
        lines = [
            {"n": n, "name": f"row {n}", **({"late": n / 2} if number == 2 else {})} for n in range(number * 40, number * 40 + 40)
        ]
        (source / f"{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return source


@pytest.mark.parametrize("runner", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_all_files_have_the_schema_that_was_agreed_on(folder: Path, runner: str) -> None:
    rows, _ = rows_of(folder, runner)
    assert sorted(rows, key=lambda row: row["n"]) == [
        {"n": n, "name": f"row {n}", "late": n / 2 if n >= 80 else None} for n in range(10, 120)
    ]


def to_parquet(source: Path, output: Path, format: Any = JSON_LINES, **properties: Any) -> Callable[[DAG, Any], None]:
    def populate(dag: DAG, conf: Any) -> None:
        splitter = dag.add_operator("splitter", FileSplitterInput([str(source)], block_size=300))
        reader = dag.add_operator("reader", ScanReader(format, **properties))
        some = dag.add_operator("some", Filter(pc.field("n") >= 10))
        writer = dag.add_operator("writer", ParquetWriter[Any](str(output)))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("batches", reader.batches, some.input)
        dag.add_stream("kept", some.output, writer.input)

    return populate


def schema_in_ledger(output: Path) -> dict[str, str]:
    ledger = Ledger.open(str(output))
    head = ledger.head()
    assert head is not None
    schema = ledger.schema_at(head.seq)
    assert schema is not None
    return {field.name: field.type for field in schema.schema}


def test_what_was_agreed_on_is_the_schema_in_the_ledger_and_stays(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run_dag(to_parquet(folder, output), {})
    assert schema_in_ledger(output) == {"n": "int64", "name": "string", "late": "double"}
    (folder / "3.jsonl").write_text('{"n": 500, "name": "later", "new": 1}\n')
    with pytest.raises(ColumnExtra, match="new"):
        run_dag(to_parquet(folder, output), {})
    run_dag(to_parquet(folder, output, drift={"extra": "ignore"}), {})
    assert read_dataset(str(output)).to_table().num_rows == 111
    assert schema_in_ledger(output) == {"n": "int64", "name": "string", "late": "double"}


def test_columns_of_later_windows(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run_dag(to_parquet(folder, output, columns=["n", "name"]), {})
    (folder / "3.jsonl").write_text('{"n": 500, "new": 1}\n')
    with pytest.raises(ColumnUnknown, match="no file has a column 'neu'"):
        run_dag(to_parquet(folder, output, columns=["n", "name", "neu"]), {})
    run_dag(to_parquet(folder, output, columns=["n", "name", "new"]), {})
    assert schema_in_ledger(output) == {"n": "int64", "name": "string", "new": "int64"}
    (folder / "4.jsonl").write_text('{"n": 501, "newer": true}\n')
    run_dag(to_parquet(folder, output, drift={"extra": "widen"}), {})
    assert schema_in_ledger(output) == {"n": "int64", "name": "string", "new": "int64", "late": "double", "newer": "bool"}


@pytest.mark.parametrize("blank", ["", "\n\n"])
@pytest.mark.parametrize(("format", "text"), [(JsonLinesFormat(), '{"n": 50}\n'), (CsvFormat(), "n\n50\n")], ids=["json", "csv"])
def test_files_that_tell_nothing_do_not_decide_what_later_ones_may_have(
    tmp_path: Path, format: Any, blank: str, text: str
) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for number, content in enumerate([blank, text]):
        (source / f"{number}").write_text(content)
        run_dag(to_parquet(source, output, format), {})
    assert read_dataset(str(output)).to_table().to_pylist() == [{"n": 50}]
    assert schema_in_ledger(output) == {"n": "int64"}


def test_types_that_become_wider_are_in_the_ledger(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run_dag(to_parquet(folder, output, drift={"changed": "widen"}), {})
    assert schema_in_ledger(output) == {"n": "int64", "name": "string", "late": "double"}
    for number, (value, kind) in enumerate([("600.5", "double"), ("700", "double")]):
        (folder / f"{number + 3}.jsonl").write_text(f'{{"n": {value}, "name": "later"}}\n')
        run_dag(to_parquet(folder, output, drift={"changed": "widen"}), {})
        assert schema_in_ledger(output) == {"n": kind, "name": "string", "late": "double"}
    rows = read_dataset(str(output)).to_table().column("n").to_pylist()
    assert sorted(rows)[-3:] == [119.0, 600.5, 700.0]
    assert not Ledger.open(str(output)).verify().problems


APPLICATION = """
from operators import FileSplitterInput, JsonLinesFormat, ParquetWriter, ScanReader

def populate_dag(dag, conf):
    splitter = dag.add_operator("splitter", FileSplitterInput(["in"], block_size=300))
    reader = dag.add_operator("reader", ScanReader(JsonLinesFormat()))
    writer = dag.add_operator("writer", ParquetWriter("out"))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("batches", reader.batches, writer.input)
"""


def test_windows_that_are_run_again_read_with_the_schema_of_then(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "scan_application.py").write_text(APPLICATION)
    application = importlib.import_module("scan_application")
    run_dag(application.populate_dag, {})
    report = replay(str(tmp_path / "out"), locator=ApplicationLocator(trust=True))
    assert (report.windows, report.rows, report.problems, report.left_out) == (1, 120, (), ())


def test_the_plan_says_where_the_columns_come_from(folder: Path, tmp_path: Path) -> None:
    def shown(**properties: Any) -> str:
        dag = DAG("scan")
        to_parquet(folder, tmp_path / "out", **properties)(dag, None)
        return plan_text(plan_view(dag, "staged"))

    assert "columns of batches: agreed on before window 0, from a sample of at most 64 files" in shown()
    assert "columns of batches: n: int64" in shown(schema="n: int64, x: date32", columns=["n"])


def test_rows_that_cannot_be_read_go_their_own_way(folder: Path) -> None:
    (folder / "1.jsonl").write_text('{"n": 50, "name": "ok"}\n{"n": 51\n{"n": "many", "name": "odd"}\n')
    bad = Collector[BadRow]()

    def populate(dag: DAG, conf: Any) -> None:
        splitter = dag.add_operator("splitter", FileSplitterInput([str(folder)], block_size=10))
        reader = dag.add_operator("reader", ScanReader(JsonLinesFormat(), schema="n: int64", on_bad_row="route"))
        keep = dag.add_operator("keep", bad)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("bad", reader.errors, keep.input)

    run_dag(populate, {})
    assert sorted((row.position, row.column, row.raw) for row in bad.records) == [
        (24, None, '{"n": 51'),
        (33, "n", '{"n": "many", "name": "odd"}'),
    ]


@attrs.define
class SlowRows(Operator):
    """Takes its time for the first rows, after another task has come to the last one."""

    other_read: str
    input = InputPort[Any]()
    output = OutputPort[Any]()

    @input.process
    def wait(self, row: Any) -> None:
        if row["n"] < 150:
            wait_for_file(self.other_read)
            time.sleep(0.01)
        elif row["n"] == 599:
            Path(self.other_read).touch()
        self.output.emit(row["n"])


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
@pytest.mark.parametrize("format", [JsonLinesFormat(), CsvFormat()], ids=["json", "csv"])
def test_blocks_of_slow_rows_are_taken_over_on_spark_while_they_are_read(tmp_path: Path, format: Any) -> None:
    source, seen = tmp_path / "in", Collector[Any]()
    source.mkdir()
    line = '{{"n": {}}}\n' if isinstance(format, JsonLinesFormat) else "{}\n"
    head = "" if isinstance(format, JsonLinesFormat) else "n\n"
    (source / "a").write_text(head + "".join(line.format(n) for n in range(600)))
    size = (source / "a").stat().st_size

    def populate(dag: DAG, conf: Any) -> None:
        splitter = dag.add_operator("splitter", FileSplitterInput([str(source)], block_size=-(-size // 4)))
        reader = dag.add_operator("reader", ScanReader(format, min_readers=2, max_readers=2))
        slow = dag.add_operator("slow", SlowRows(str(tmp_path / "other has read")))
        keep = dag.add_operator("keep", seen)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("batches", reader.batches, slow.input)
        dag.add_stream("numbers", slow.output, keep.input)

    events: list[Event] = []
    report = launch(populate, runner="spark", durability="process", rebalance="auto", subscribers=[events.append]).report
    assert sorted(seen.records) == list(range(600))
    assert [event for event in events if isinstance(event, Stolen)]
    assert report.operators["reader"].counters["bytes"] == size
