from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dagflow
from dagflow.errors import DagError, MissingSetting, UnknownName
from operators import BlockReader, Console, FileSplitterInput, RecordWriter

LINE_FILTER = str(Path(__file__).parents[2] / "apps" / "line_filter")


def reading(source: Path, out: Path, is_whole: bool = True) -> Any:
    def populate_dag(dag: dagflow.DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)]))
        lines = dag.add_operator("lines", BlockReader())
        sink = dag.add_operator("out", RecordWriter(str(out)))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, sink.input)
        if not is_whole:
            dag.add_operator("lonely", Console())

    return populate_dag


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs"


def test_what_is_right(source: Path, tmp_path: Path) -> None:
    found = dagflow.validate(reading(source, tmp_path / "out"))
    assert found.is_ok
    found.check()
    assert str(found) == "populate_dag: ok (3 operators, 2 streams, 1 stage)"
    assert found.as_json() == {"ok": True, "application": "populate_dag", "operators": 3, "streams": 2, "stages": 1}
    assert not (tmp_path / "out").exists()


def test_all_that_is_wrong(source: Path, tmp_path: Path) -> None:
    found = dagflow.validate(reading(source / "gone", source / "out", is_whole=False), {"operator.lines.max_reader": 1})
    assert [problem.code for problem in found.problems] == ["DF203", "DF015", "DF264"]
    assert "did you mean" in found.text()
    assert found.as_json()["ok"] is False
    assert len(json.loads(json.dumps(found.as_json()))["problems"]) == 3
    with pytest.raises(type(found.problems[0])):
        found.check()


def test_by_the_name_that_the_command_line_takes() -> None:
    found = dagflow.validate(LINE_FILTER)
    assert [type(problem) for problem in found.problems] == [MissingSetting, MissingSetting]


def test_settings_of_the_run_count(source: Path, tmp_path: Path) -> None:
    found = dagflow.validate(reading(source, tmp_path / "out"), run_folder=str(source / "run"))
    assert [problem.code for problem in found.problems] == ["DF259"]


def test_a_plan_and_a_graph(source: Path, tmp_path: Path) -> None:
    found = dagflow.plan(reading(source, tmp_path / "out"))
    assert str(found).startswith("populate_dag: staged ")
    assert "● files  FileSplitterInput" in str(dagflow.graph(reading(source, tmp_path / "out")))
    assert found.svg().startswith("<svg ")
    assert found.dot().startswith("digraph ")
    assert found.mermaid().startswith("flowchart LR")
    assert [operator["name"] for operator in found.as_json()["operators"]] == ["files", "lines", "out"]
    assert [operator.name for operator in found.data.operators] == ["files", "lines", "out"]


def test_a_graph_of_a_dag_with_mistakes(source: Path, tmp_path: Path) -> None:
    populate_dag = reading(source, tmp_path / "out", is_whole=False)
    assert "lonely" in str(dagflow.graph(populate_dag, step="logical"))
    with pytest.raises(DagError):
        dagflow.plan(populate_dag)
    with pytest.raises(UnknownName):
        dagflow.plan(reading(source, tmp_path / "out"), step="later")


def test_importing_dagflow_loads_none_of_it() -> None:
    heavy = ("dagflow.render", "dagflow.planning", "pyarrow")
    code = f"import dagflow, sys; print([name for name in sys.modules if name.startswith({heavy})])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
