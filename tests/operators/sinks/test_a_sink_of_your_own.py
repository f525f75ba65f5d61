"""The sink of docs/how-to/write_a_sink.md, as it stands there."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import attrs
import pytest

from dagflow import DAG, Sink, StagedWindow, launch
from dagflow.errors import DagflowError, OperatorFailed
from dagflow.testing import Window, run_operator
from operators import FileInput, Map

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "write_a_sink.md"


@pytest.fixture(scope="module")
def sqlite_writer() -> Any:
    found = re.search(r"<!-- example -->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    module = ModuleType("sink_of_the_page")
    exec(found[1], vars(module))
    return vars(module)["SqliteWriter"]


def rows(path: Path, table: str = "lines") -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return sorted(row[0] for row in database.execute(f"SELECT * FROM {table}"))


def test_it_has_less_than_80_lines() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("<!-- example -->")[2]
    assert len(page.partition("```python\n")[2].partition("```")[0].splitlines()) < 80


def test_run_operator_stages_and_publishes(sqlite_writer: Any, tmp_path: Path) -> None:
    path = tmp_path / "lines.db"
    run_operator(sqlite_writer(str(path)), {"input": [Window(["a", "b"]), Window([]), Window(["c"])]})
    assert rows(path) == ["a", "b", "c"]
    with contextlib.closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT window FROM staged_lines").fetchall() == [(2,)]  # of the newest window only


def test_what_attempts_that_do_not_count_have_staged_is_never_seen(sqlite_writer: Any, tmp_path: Path) -> None:
    path = tmp_path / "lines.db"
    sink = sqlite_writer(str(path))
    with sink._transaction() as database:
        database.execute("INSERT INTO staged_lines VALUES ('app', 0, 'of a killed attempt', 'x')")
        database.execute("INSERT INTO staged_lines VALUES ('app', 0, 'counts', 'y')")
    window = StagedWindow("app", 0, ("counts",))
    assert not sink.is_published(window)
    sink.publish(window)
    sink.publish(window)
    assert sink.is_published(window)
    assert rows(path) == ["y"]
    sink.sweep(StagedWindow("another", 1))
    assert rows(path, "staged_lines") == ["app", "app"]
    sink.sweep(StagedWindow("app", 1))
    assert rows(path, "staged_lines") == []


def run(sink: Any, folder: Path, **settings: Any) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        lines = dag.add_module("lines", FileInput(str(folder / "in")))
        only = dag.add_operator("only", Map[Any, str](attrgetter("record")))
        dag.add_operator("sink", sink)
        dag.add_stream("read", lines.messages, only.input)
        dag.add_stream("kept", only.output, sink.input)

    return launch(populate_dag, {"run_folder": str(folder / "run"), **settings}, runner="local").wait()


def test_sinks_and_tasks_know_their_application_and_their_name(sqlite_writer: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\nb\n")
    record = tmp_path / "known"

    @attrs.define
    class Writes(sqlite_writer):  # type: ignore[misc]
        def stage(self) -> Any:
            return self._context.application

        def publish(self, window: StagedWindow) -> None:
            record.write_text(f"{window.sink} {set(window.staged) == {window.application}} {len(window.application) > 30}")

    run(Writes(str(tmp_path / "lines.db")), tmp_path)
    assert record.read_text() == "sink True True"


def test_a_run_that_dies_after_publishing_does_not_publish_again(sqlite_writer: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\nb\n")
    record = tmp_path / "published"  # the class travels by value, and a list would be a copy

    @attrs.define
    class DiesOnce(sqlite_writer):  # type: ignore[misc]
        def publish(self, window: StagedWindow) -> None:
            super().publish(window)
            record.write_text(record.read_text() + f"{window.number} " if record.exists() else f"{window.number} ")
            if record.read_text() == "0 ":
                raise ValueError("the machine goes down")

    path = tmp_path / "lines.db"
    with pytest.raises(OperatorFailed, match=r"(?s)sink.*publish\(\).*the machine goes down"):
        run(DiesOnce(str(path)), tmp_path)
    assert rows(path) == ["a", "b"]
    (tmp_path / "in" / "b.txt").write_text("c\n")
    run(DiesOnce(str(path)), tmp_path)
    assert rows(path) == ["a", "b", "c"]
    assert record.read_text() == "0 1 "


def test_an_error_of_a_sink_that_is_transient_is_retried(sqlite_writer: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")
    tries = tmp_path / "tries"

    class StoreBusy(DagflowError):
        is_transient: ClassVar[bool] = True

    @attrs.define
    class TriesTwice(sqlite_writer):  # type: ignore[misc]
        def publish(self, window: StagedWindow) -> None:
            tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
            if tries.read_text() == "x":
                raise StoreBusy
            super().publish(window)

    run(TriesTwice(str(tmp_path / "lines.db")), tmp_path, retry_delay=0.01)
    assert tries.read_text() == "xx"
    assert rows(tmp_path / "lines.db") == ["a"]


def test_a_launch_warns_that_it_cannot_resume_without_a_run_folder(sqlite_writer: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("a\n")
    sink = sqlite_writer(str(tmp_path / "lines.db"))
    assert run(sink, tmp_path).warnings == []
    [warning] = run(sink, tmp_path, run_folder=None).warnings
    assert warning == "sink: without a run folder, the next launch publishes everything again: set run_folder"


def test_a_sink_must_say_how_it_publishes() -> None:
    sink = Sink()
    with pytest.raises(NotImplementedError, match="Sink does not publish: override publish"):
        sink.publish(StagedWindow("app", 0))
    with pytest.raises(NotImplementedError, match=r"override is_published\(window\)"):
        sink.is_published(StagedWindow("app", 0))
