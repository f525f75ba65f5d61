"""The files to copy for systemd, cron and Airflow: they fit the exit codes of the commands."""

from __future__ import annotations

import configparser
import fcntl
import logging
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dagflow.cli.exit_codes import DONE, ENVIRONMENT, FAILED, INTERRUPTED, WRONG
from dagflow.cli.stopping import GRACE

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "supervise.md").read_text(encoding="utf-8")


def example(title: str) -> str:
    """Return the block of the page with this title."""
    return PAGE.split(f'title="{title}"\n')[1].split("```")[0]


def program(path: Path, script: str) -> Path:
    """Write a program that stands in for dagflow."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


class TestSystemd:
    def test_it_starts_again_what_may_succeed_and_leaves_time_to_stop(self) -> None:
        unit = configparser.RawConfigParser()
        unit.optionxform = str  # type: ignore[assignment,method-assign]
        unit.read_string(example("my_app.service"))
        service = unit["Service"]
        assert service["RestartPreventExitStatus"] == str(WRONG)
        assert service["SuccessExitStatus"] == str(INTERRUPTED)
        assert float(service["TimeoutStopSec"]) > GRACE

    @pytest.mark.full
    @pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed: it comes with systemd")
    def test_systemd_knows_all_that_is_in_it(self, tmp_path: Path) -> None:
        text = example("my_app.service").replace("/srv/my_app/.venv/bin/dagflow", str(program(tmp_path / "dagflow", ":")))
        path = tmp_path / "my_app.service"
        path.write_text(text)
        ran = subprocess.run(
            ["systemd-analyze", "verify", path], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        assert [line for line in ran.stderr.splitlines() if "my_app.service:" in line] == []


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock is not installed: it comes with util-linux")
class TestCron:
    def turn(self, folder: Path) -> str:
        """Return what a turn prints, which cron mails."""
        line = example("crontab").splitlines()[1]
        command = re.sub(r"^(\S+ ){5}", "", line).replace("/srv/my_app", str(folder))
        ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        return ran.stdout + ran.stderr

    @pytest.mark.parametrize("code", [DONE, FAILED, WRONG, ENVIRONMENT])
    def test_only_failures_are_mailed(self, tmp_path: Path, code: int) -> None:
        program(tmp_path / ".venv" / "bin" / "dagflow", f"echo {code} >&2; exit {code}")
        assert self.turn(tmp_path) == ("" if code == DONE else f"{code}\n")

    def test_a_turn_is_skipped_while_the_last_one_runs(self, tmp_path: Path) -> None:
        program(tmp_path / ".venv" / "bin" / "dagflow", "exit 1")
        (tmp_path / "last.log").write_text("of the last one")
        with (tmp_path / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert self.turn(tmp_path) == ""
        assert (tmp_path / "last.log").read_text() == "of the last one"


class Failed(Exception):
    """Stands for AirflowException."""


class FailedForGood(Failed):
    """Stands for AirflowFailException."""


class TestAirflow:
    @pytest.fixture
    def operator(self, monkeypatch: pytest.MonkeyPatch) -> Any:
        """The class of the page, below stand-ins for those of Airflow."""

        class BaseOperator:
            def __init__(self, *, task_id: str) -> None:
                self.log = logging.getLogger(task_id)

        names: dict[str, dict[str, type]] = {
            "airflow": {},
            "airflow.sdk": {"BaseOperator": BaseOperator},
            "airflow.exceptions": {"AirflowException": Failed, "AirflowFailException": FailedForGood},
        }
        for name, classes in names.items():
            module = ModuleType(name)
            vars(module).update(classes)
            monkeypatch.setitem(sys.modules, name, module)
        found: dict[str, Any] = {}
        exec(example("dagflow_operator.py"), found)
        return found["DagflowOperator"]

    @pytest.mark.parametrize(
        ("code", "error"),
        [(DONE, None), (FAILED, Failed), (WRONG, FailedForGood), (ENVIRONMENT, Failed), (INTERRUPTED, Failed)],
    )
    def test_exit_codes(
        self, operator: Any, code: int, error: type | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        dagflow = program(tmp_path / "dagflow", f'echo "$@"; exit {code}')
        task = operator(task_id="launch", arguments=["app.py", "-D", "a=b"], dagflow=str(dagflow))
        raised = None
        with caplog.at_level(logging.INFO, "launch"):
            try:
                task.execute({})
            except Failed as failed:
                raised = type(failed)
        task.process.stdout.close()
        assert raised is error
        assert caplog.messages == ["launch app.py -D a=b"]

    def test_a_task_that_is_killed_stops_its_launch(self, operator: Any, tmp_path: Path) -> None:
        dagflow = program(tmp_path / "dagflow", "echo begun; exec sleep 600")
        task = operator(task_id="launch", arguments=["app.py"], dagflow=str(dagflow))
        begun, raised = threading.Event(), []

        class Handler(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                begun.set()

        def execute() -> None:
            try:
                task.execute({})
            except Failed as failed:
                raised.append(failed)

        handler = Handler()
        task.log.addHandler(handler)
        task.log.setLevel(logging.INFO)
        thread = threading.Thread(target=execute)
        thread.start()
        try:
            assert begun.wait(60)
            task.on_kill()
            thread.join(60)
        finally:
            task.log.removeHandler(handler)
            task.log.setLevel(logging.NOTSET)
            task.process.kill()
        task.process.stdout.close()
        assert [type(failed) for failed in raised] == [Failed]
