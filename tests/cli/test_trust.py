"""Commands that read a dataset run no code that only a file in it names."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.errors import CodeNotNamed
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator, trace
from tests.cli.conftest import Answer

Dagflow = Callable[..., Answer]

APP = """
    import pathlib

    from operators import BlockReader, FileSplitterInput, RecordWriter

    (pathlib.Path(__file__).parent / "was_run").touch()

    def populate_dag(dag, conf):
        files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
        lines = dag.add_operator("lines", BlockReader())
        sink = dag.add_operator("out", RecordWriter(conf.get("output", "out")))
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, sink.input)
"""


@pytest.fixture
def was_run(dagflow: Dagflow, write: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset `out` that a stranger's application has made; the file that the application touches whenever it is loaded."""
    write("stranger/app.py", APP)
    write("logs/a.txt", "one\ntwo\n")
    given = ["-D", "output=out", "--runner", "local", "--progress", "none"]
    assert dagflow("launch", "stranger", *given).code == 0
    marker = tmp_path / "stranger" / "was_run"
    marker.unlink()

    def loads(*_: object, **__: object) -> object:
        raise AssertionError("a command that reads has unpickled something")

    for name in [name for name in sys.modules if "stranger" in (getattr(sys.modules[name], "__file__", None) or "")]:
        del sys.modules[name]
    monkeypatch.setattr(pickle, "loads", loads)
    monkeypatch.setattr(pickle, "load", loads)
    return marker


@pytest.mark.parametrize(
    "command",
    [
        ["log", "out"],
        ["log", "out", "3"],
        ["verify", "out"],
        ["trace", "out", "--offset", "0"],
        ["trace", "out/part-000000-0000", "--line", "1"],
    ],
)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_reading_runs_nothing(dagflow: Dagflow, was_run: Path, command: list[str], form: list[str]) -> None:
    assert dagflow(*command, *form).code == 0
    assert not was_run.exists()


RUNNING = [["trace", "out", "--offset", "0", "--exact"], ["verify", "out", "--replay"]]


@pytest.mark.parametrize("command", RUNNING)
def test_what_would_run_code_says_which_and_how_to_allow_it(dagflow: Dagflow, was_run: Path, command: list[str]) -> None:
    answer = dagflow(*command)
    assert answer.code == 2
    head, settings, way = answer.err.splitlines()
    assert head.startswith(f"error[DF267] this would run the application 'stranger' of {was_run.parents[1]}, which only ")
    assert settings == "  with the settings output=out"
    assert "--trust" in way
    assert "--app APP" in way
    assert dagflow(*command, "-D", "output=elsewhere").code == 2, "a setting names no code"
    assert json.loads(dagflow(*command, "--json").out)["problems"][0]["code"] == "DF267"
    assert not was_run.exists()


@pytest.mark.parametrize("command", RUNNING)
def test_the_user_allows_it(
    dagflow: Dagflow, was_run: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, write: Callable[..., None]
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(was_run.parents[1])
    write("mine/app.py", APP)
    assert dagflow(*command, "--app", "mine", "-D", "output=out").code == 0
    assert not was_run.exists(), "only what the user names runs"
    assert dagflow(*command, "--trust").code == 0
    assert was_run.exists()


def test_from_python_too(was_run: Path) -> None:
    assert isinstance(trace("out", 0, exact=True).problem, CodeNotNamed)
    with pytest.raises(CodeNotNamed):
        replay("out")
    with pytest.raises(CodeNotNamed):
        replay("out", locator=ApplicationLocator(definitions=["output=elsewhere"]))
    assert not was_run.exists()
