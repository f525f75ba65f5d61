"""The code that runs in Spark's Python workers, here without Spark."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import traceback
import types

import pytest

from dagflow.errors import DagflowError, OperatorFailed, error
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.task.execute import outcome_bytes
from dagflow.spark.connection.answers import row
from dagflow.spark.task import settle, tidy_output


def outcome(error: DagflowError | None = None) -> TaskOutcome:
    return TaskOutcome(task="s0-0000", attempt="1", started=0.0, ended=1.0, error=error)


def test_a_row_is_one_binary_value() -> None:
    assert row(b"").to_pylist() == [{"answer": b""}]
    row(bytes(range(256))).validate(full=True)


@pytest.mark.full
def test_making_a_row_imports_no_pandas() -> None:
    code = "import sys; from dagflow.spark.connection.answers import row; row(b'x'); print('pandas' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


def test_errors_of_classes_that_nobody_can_import_come_through() -> None:
    @error
    class Mine(DagflowError):
        reason: str

        def message(self) -> str:
            return f"mine: {self.reason}"

    found = pickle.loads(outcome_bytes(outcome(Mine("x")))).error
    assert str(found) == "mine: x"
    assert type(found) is Mine


def test_errors_that_do_not_pickle_are_told_all_the_same() -> None:
    @error
    class Locked(DagflowError):
        lock: object

        def message(self) -> str:
            return "locked"

    found = pickle.loads(outcome_bytes(outcome(Locked(threading.Lock())))).error
    assert isinstance(found, OperatorFailed)
    assert "Locked: locked" in str(found)


def test_a_worker_that_spark_lets_go_of_says_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    daemon = types.ModuleType("daemon")
    daemon.traceback = traceback  # type: ignore[attr-defined]
    daemon.manager = print  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", daemon)
    with monkeypatch.context() as patch:
        merged: list[tuple[int, int]] = []
        patch.setattr(os, "dup2", lambda *numbers: merged.append(numbers))
        tidy_output.__wrapped__()
    assert merged == [(1, 2)]
    for each in (BrokenPipeError(32, "Broken pipe"), ValueError("loud")):
        try:
            raise each
        except (OSError, ValueError):
            daemon.traceback.print_exc()
    told = capsys.readouterr().err
    assert "Broken pipe" not in told
    assert "ValueError: loud" in told
    assert daemon.traceback.format_exc is traceback.format_exc


def test_nothing_but_sparks_daemon_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    script = types.ModuleType("script")
    script.traceback = traceback  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", script)
    with monkeypatch.context() as patch:
        merged: list[tuple[int, int]] = []
        patch.setattr(os, "dup2", lambda *numbers: merged.append(numbers))
        tidy_output.__wrapped__()
    assert (script.traceback is traceback, merged) == (True, [])


def test_a_settled_worker_does_not_look_through_its_imports_again() -> None:
    code = (
        "import gc; from dagflow.spark.task import settle; settle(); "
        "print(gc.get_freeze_count() > 10_000, len(gc.get_objects()) < 5_000)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "True True\n"
    # Python 3.12 starts with some hundred objects frozen
    assert gc.get_freeze_count() < 1_000 or settle.cache_info().currsize, "the tests themselves stay as they are"
