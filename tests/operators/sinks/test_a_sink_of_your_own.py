"""The sink of docs/how-to/write_a_sink.md, as it stands there."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import pytest

from dagflow import DAG, Sink, StagedWindow, launch
from dagflow.errors import OperatorFailed
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


def test_run_operator_stages_and_publishes(sqlite_writer: Any, tmp_path: Path) -> None:
    path = tmp_path / "lines.db"
    run_operator(sqlite_writer(str(path)), {"input": [Window(["a", "b"]), Window([]), Window(["c"])]})
    assert rows(path) == ["a", "b", "c"]
    assert rows(path, "staged_lines") == [2]  # of the newest window only


def test_what_attempts_that_do_not_count_have_staged_is_never_seen(sqlite_writer: Any, tmp_path: Path) -> None:
    path = tmp_path / "lines.db"
    sink = sqlite_writer(str(path))
    with sink._transaction() as database:
        database.execute("INSERT INTO staged_lines VALUES (0, 'of a killed attempt', 'x')")
        database.execute("INSERT INTO staged_lines VALUES (0, 'counts', 'y')")
    window = StagedWindow("app", 0, ("counts",))
    assert not sink.is_published(window)
    sink.publish(window)
    sink.publish(window)
    assert sink.is_published(window)
    assert rows(path) == ["y"]
    sink.sweep(StagedWindow("app", 1))
    assert rows(path, "staged_lines") == []


def run(sink: Any, folder: Path) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        lines = dag.add_module("lines", FileInput(str(folder / "in")))
        only = dag.add_operator("only", Map[Any, str](attrgetter("record")))
        dag.add_operator("sink", sink)
        dag.add_stream("read", lines.messages, only.input)
        dag.add_stream("kept", only.output, sink.input)

    return launch(populate_dag, {"run_folder": str(folder / "run")}, runner="local").wait()


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


def test_a_sink_must_say_how_it_publishes() -> None:
    sink = Sink()
    with pytest.raises(NotImplementedError, match="Sink does not publish: override publish"):
        sink.publish(StagedWindow("app", 0))
    with pytest.raises(NotImplementedError, match=r"override is_published\(window\)"):
        sink.is_published(StagedWindow("app", 0))
