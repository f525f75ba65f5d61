from __future__ import annotations

from pathlib import Path

import pytest

from dagflow import DAG
from dagflow.errors import DagError
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, RecordWriter


def populate_dag(dag: DAG, conf: dict[str, str]) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=[conf["input"]]))
    lines = dag.add_operator("lines", BlockReader())
    out = dag.add_operator("out", RecordWriter(path=conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, out.input)


def test_settings_and_options_reach_the_run(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    settings = {"input": str(tmp_path / "a.txt"), "output": str(tmp_path / "out"), "operator.out.suffix": ".txt"}
    report = run_dag(populate_dag, settings, windows_in_flight=1)
    assert (report.runner, report.status, report.windows, report.files) == ("local", "done", 1, 1)
    assert (tmp_path / "out" / "part-000000-0000.txt").read_text() == "one\n"


def test_what_ends_the_run_is_raised() -> None:
    with pytest.raises(DagError, match="has no operators"):
        run_dag(lambda dag, conf: None)
