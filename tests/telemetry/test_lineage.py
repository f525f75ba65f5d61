from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import launch
from dagflow.launching.build import build
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.storage import open_store
from dagflow.telemetry.lineage import InputFiles, RunLineage
from operators import DatasetInput, RecordWriter, ScanReader
from operators.formats.csv import CsvFormat
from tests.conformance.apps import chain
from tests.telemetry.runs import run


def lineage(folder: Path) -> RunLineage:
    return RunLineage(build(chain(folder / "in", sink=RecordWriter(str(folder / "out")))).plan())


def test_blocks_that_follow_each_other_are_one_range() -> None:
    files = InputFiles()
    for start, stop in ((0, 10), (10, 30), (40, 50)):
        files.add("/a", start, stop)
    assert files.ranges == {"/a": [(0, 30), (40, 50)]}


def test_files_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagflow.telemetry.lineage.MAX_FILES", 2)
    files = InputFiles()
    for name in "abcdd":
        files.add(f"/{name}", 0, 1)
    files.add("/a", 1, 2)
    assert (files.ranges, files.omitted) == ({"/a": [(0, 2)], "/b": [(0, 1)]}, 3)


def test_inputs_and_outputs_of_a_run(tmp_path: Path) -> None:
    run(tmp_path)
    found = lineage(tmp_path)
    plan = WindowLog(open_store(str(tmp_path / "out" / "_dagflow"), durable=False)).read_plan(0)
    assert isinstance(plan, WindowPlan)
    found.planned(plan)
    (read,) = found.inputs.values()
    assert read.path == str(tmp_path / "in")
    assert read.files.ranges == {str(tmp_path / "in" / "a.txt"): [(0, 4)]}
    found.appended(str(tmp_path / "out"), 3)  # after the seed, the schema and the source
    (written,) = found.outputs.values()
    assert (written.row_count, written.rows, written.file_count) == (2, (0, 2), 1)
    assert written.files[0].physical_hash.startswith("blake3:")
    assert [field.name for field in written.schema] == ["value"]


def test_files_outside_of_the_declared_inputs_belong_to_their_folder(tmp_path: Path) -> None:
    run(tmp_path)
    found = lineage(tmp_path)
    plan = WindowLog(open_store(str(tmp_path / "out" / "_dagflow"), durable=False)).read_plan(0)
    assert plan is not None
    ((_, item),) = plan.items["reader"] if "reader" in plan.items else next(iter(plan.items.values()))
    elsewhere = attrs.evolve(plan, items={"reader": [["x", {**item, "file_path": "/elsewhere/b.txt"}], ["x", "no block"]]})
    found.planned(elsewhere)
    assert found.inputs["/elsewhere"].files.ranges == {"/elsewhere/b.txt": [(0, 4)]}


def test_rows_of_a_dataset_are_ranges_of_offsets_with_the_hash_of_its_ledger(tmp_path: Path) -> None:
    from operators import CsvWriter, JsonLinesWriter

    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("n\n1\n2\n3\n")

    def first(dag: Any, conf: Any) -> None:
        from operators import FileSplitterInput

        files = dag.add_operator("files", FileSplitterInput(files=str(tmp_path / "in")))
        scan = dag.add_operator("scan", ScanReader(format=CsvFormat()))
        write = dag.add_operator("write", CsvWriter(str(tmp_path / "first")))
        dag.add_stream("blocks", files.blocks_metadata_output, scan.blocks_metadata_input)
        dag.add_stream("rows", scan.batches, write.input)

    def second(dag: Any, conf: Any) -> None:
        files = dag.add_operator("files", DatasetInput(str(tmp_path / "first")))
        scan = dag.add_operator("scan", ScanReader(format=CsvFormat()))
        write = dag.add_operator("write", JsonLinesWriter(str(tmp_path / "second")))
        dag.add_stream("blocks", files.blocks_metadata_output, scan.blocks_metadata_input)
        dag.add_stream("rows", scan.batches, write.input)

    launch(first, runner="local", slots=1)
    report = launch(second, runner="local", slots=1).report
    found = RunLineage(build(second).plan())
    head = int(report.ledgers[str(tmp_path / "second")].split()[0])
    found.appended(str(tmp_path / "second"), head)
    (read,) = found.inputs.values()
    assert (read.path, read.rows) == (str(tmp_path / "first"), (0, 3))
    assert read.entry is not None
    assert read.entry.startswith("sha256:")
