from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dagflow.cli.commands.datasets.report import _write
from tests.cli.conftest import LINE_FILTER, Answer

Dagflow = Callable[..., Answer]
Write = Callable[..., None]


@pytest.fixture
def output(dagflow: Dagflow, tmp_path: Path) -> str:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("one\n.two\nthree\n")
    assert dagflow("launch", LINE_FILTER, "-D", "input=logs", "-D", "output=out", "--runner", "local").code == 0
    return "out"


def test_report_as_text(dagflow: Dagflow, output: str) -> None:
    answer = dagflow("report", output)
    assert answer.code == 0
    assert "line_filter: done" in answer.out
    assert re.search(r"keep +3 +2", answer.out)
    assert f"dagflow report {os.path.abspath(output)} --html page.html" in answer.out


def test_the_report_of_a_run_that_failed_ends_with_its_error(dagflow: Dagflow, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    launched = dagflow("launch", LINE_FILTER, "-D", "input=a.txt", "-D", "output=out", "--runner", "local")
    assert launched.code == 1
    (code,) = re.findall(r"error\[(DF\d+)\]", launched.err)
    answer = dagflow("report", "out")
    assert "line_filter: failed" in answer.out
    assert launched.err[launched.err.index("error[") :].rpartition("\n  operator")[0] in answer.out
    assert "\n  operator 'reader', window 0\n  help: " in answer.out
    assert answer.out.endswith(f"\n\nTo read more about it: dagflow explain {code}\n")


def test_report_as_a_page(dagflow: Dagflow, output: str, tmp_path: Path) -> None:
    answer = dagflow("report", output, "--html", "run.html")
    assert answer.code == 0
    assert answer.out.startswith("run.html: ")
    page = (tmp_path / "run.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "<title>line_filter: done</title>" in page
    assert dagflow("report", output, "--html", "-").out.startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "out", "run.html"]


def test_report_as_json(dagflow: Dagflow, output: str) -> None:
    data = json.loads(dagflow("report", output, "--json").out)
    assert data["run"]["status"] == "done"
    assert [row["source"]["text"] for row in data["rows"]] == ["one", "three"]


def test_with_an_application_rows_are_traced_to_their_records(dagflow: Dagflow, output: str) -> None:
    answer = dagflow("report", output, "--json", "--app", LINE_FILTER, "-D", "input=logs", "-D", "output=out")
    rows = json.loads(answer.out)["rows"]
    assert [row["source"]["line"] for row in rows] == [1, 3] or [row["source"]["position"] for row in rows] == [0, 9]
    assert "run again" in rows[0]["source"]["how"]


def test_report_of_nothing(dagflow: Dagflow) -> None:
    answer = dagflow("report", "nowhere")
    assert answer.code == 2
    assert "DF298" in answer.err


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("missing/run.html", "there is no folder"),
        (".", ". is a folder. Name a file: ./run.html"),
        ("", "the name is empty"),
        ("mine.html", "mine.html exists and is not a page of dagflow"),
    ],
)
def test_a_page_that_cannot_be_written(dagflow: Dagflow, output: str, write: Write, file: str, reason: str) -> None:
    write("mine.html", "<p>mine</p>\n")
    answer = dagflow("report", output, "--html", file)
    assert answer.code == 2
    assert reason in answer.err
    assert Path("mine.html").read_text() == "<p>mine</p>\n"


def test_a_page_replaces_an_earlier_one_and_nothing_but_a_file(dagflow: Dagflow, output: str, tmp_path: Path) -> None:
    for _ in range(2):
        assert dagflow("report", output, "--html", "run.html").code == 0
    (tmp_path / "link.html").symlink_to(tmp_path / "run.html")
    assert dagflow("report", output, "--html", "link.html").code == 0
    assert (tmp_path / "link.html").is_symlink()
    os.mkfifo("pipe")
    reading = os.open("pipe", os.O_RDWR)  # so that the pipe has a reader, and takes the little that there is
    page = "<!doctype html>"
    _write("pipe", page.encode())
    assert os.read(reading, 100) == page.encode()
    os.close(reading)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def test_a_tilde_is_the_home_folder(dagflow: Dagflow, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert dagflow("report", output, "--html", "~/home.html").code == 0
    assert (tmp_path / "home.html").exists()


def test_a_run_that_failed_says_why(dagflow: Dagflow, write: Write, output: str) -> None:
    (events,) = Path(output, "_dagflow", "events").iterdir()
    lines = events.read_text().splitlines()
    ended = {**json.loads(lines[-1]), "status": "failed", "error": "logs/a.txt: Operation not permitted", "error_code": "DF410"}
    events.write_text("\n".join([*lines[:-1], json.dumps(ended)]) + "\n")
    answer = dagflow("report", output)
    assert ": failed\n" in answer.out
    assert "\n\nerror[DF410] logs/a.txt: Operation not permitted\n  help: fix what" in answer.out


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ui_prints_its_address_and_ends_with_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "dagflow", "ui", str(tmp_path / "out"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert re.match(r"http://127\.0\.0\.1:\d+/ ", process.stdout.readline())
        process.send_signal(number)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


@pytest.mark.parametrize("token", ["", "short", "with blanks in its middle", "größer-als-sechzehn"])
def test_a_token_that_is_easily_guessed_or_typed_wrong(dagflow: Dagflow, token: str) -> None:
    answer = dagflow("ui", "out", "--token", token)
    assert answer.code == 2
    assert "at least 16 printable ASCII characters" in answer.err
