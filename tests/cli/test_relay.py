"""Output of worker processes on a terminal with a live display."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dagflow.cli.relay import event_line, relayed_output
from dagflow.config import RunSettings

PRINTS = """
import os
import time
from operators import BlockReader, Console, FileSplitterInput, Map

def says(line):
    print(f"<out {line.record}>")
    os.write(2, f"<err {line.record}>\\n".encode())
    time.sleep(0.02)
    return line.record

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=conf["input"], block_size=20))
    lines = dag.add_operator("lines", BlockReader())
    each = dag.add_operator("each", Map(says))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, each.input)
    dag.add_stream("texts", each.output, dag.add_operator("none", Console(limit=0)).input)
"""


def on_a_terminal(command: list[str], folder: Path) -> str:
    """Run a command whose standard error is a terminal, and return what arrives there."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    env.pop("PYTHONUNBUFFERED", None)  # with it, a line and its end are written one by one
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=theirs, env=env)
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError as error:
        if error.errno != errno.EIO:  # the terminal has no other end any more
            raise
    os.close(ours)
    assert process.wait(30) == 0, b"".join(parts)
    return b"".join(parts).decode()


@pytest.mark.full
def test_lines_of_worker_processes_stay_whole_above_the_live_display(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PRINTS)
    names = [f"{n:03d}" for n in range(60)]
    (tmp_path / "in.txt").write_text("".join(f"{name}\n" for name in names))
    command = [sys.executable, "-m", "dagflow", "launch", "app.py", "-D", "input=in.txt", "--runner", "local", "--slots", "2"]
    seen = on_a_terminal(command, tmp_path)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen).replace("\r", "\n")
    for kind in ("out", "err"):
        assert sorted(line for line in plain.splitlines() if line.startswith(f"<{kind}")) == [f"<{kind} {n}>" for n in names]


def test_without_a_terminal_nothing_changes() -> None:
    before = sys.stderr
    with relayed_output(RunSettings()) as relay:
        assert relay is None
        assert sys.stderr is before


@pytest.mark.full
def test_lines_pass_in_order_and_standard_error_comes_back(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from dagflow.cli.relay import relayed_output\n"
        "with relayed_output(None) as relay:\n"
        "    relay.start()\n"
        "    assert sys.stderr.isatty()\n"
        "    os.system('echo one >&2; echo two >&2; printf three >&2')\n"
        "os.write(2, b'four')\n"
        "assert sys.stderr.fileno() == 2\n"
    )
    assert on_a_terminal([sys.executable, "-c", script], tmp_path).split() == ["one", "two", "threefour"]


SAYS = """
import logging
from operators import BlockReader, Console, FileSplitterInput, Map

log = logging.getLogger("app")

def says(line):
    print("printed", line.record, "and", "more")
    log.warning("logged %s", line.record)
    return line.record

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=conf["input"], block_size=20))
    lines = dag.add_operator("lines", BlockReader())
    each = dag.add_operator("each", Map(says))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, each.input)
    dag.add_stream("texts", each.output, dag.add_operator("none", Console(limit=0)).input)
"""
NAMES = [f"{n:03d}" for n in range(300)]


def said(folder: Path, *options: str, runner: str = "local", **environment: str) -> list[str]:
    """Return the lines on standard error of a launch whose operators print and log."""
    (folder / "app.py").write_text(SAYS)
    (folder / "in.txt").write_text("".join(f"{name}\n" for name in NAMES))
    command = [sys.executable, "-m", "dagflow", "launch", "app.py", "-D", "input=in.txt", "--runner", runner, *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, env={**os.environ, **environment}, check=True)
    return done.stderr.decode().splitlines()


@pytest.mark.full
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_progress_stays_json_when_operators_print_and_log(tmp_path: Path, unbuffered: str) -> None:
    lines = said(tmp_path, "--progress", "json", "--slots", "2", PYTHONUNBUFFERED=unbuffered)
    check_events(lines)


@pytest.mark.full
def test_progress_stays_json_in_the_process_of_the_launch(tmp_path: Path) -> None:
    events = [json.loads(line) for line in said(tmp_path, "--slots", "1", DAGFLOW_PROGRESS="json")]
    assert sum("logged " in event.get("text", "") for event in events) == len(NAMES)


@pytest.mark.full
@pytest.mark.spark
def test_progress_stays_json_on_spark(tmp_path: Path) -> None:
    check_events(said(tmp_path, "--progress", "json", runner="spark"))


def check_events(lines: list[str]) -> None:
    events = [json.loads(line) for line in lines]
    output = [event["text"] for event in events if event["event"] == "output"]
    assert sorted(text for text in output if text.startswith("printed")) == [f"printed {name} and more" for name in NAMES]
    logged = [text.partition("app: ")[2] for text in output if "WARNING app" in text]
    assert sorted(text.partition("  ")[0] for text in logged) == [f"logged {name}" for name in NAMES]
    assert any(event["event"] == "run_ended" for event in events)


@pytest.mark.full
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_log_lines_in_json_stay_whole_beside_what_operators_print(tmp_path: Path, unbuffered: str) -> None:
    lines = said(tmp_path, "--log-format", "json", "--slots", "2", PYTHONUNBUFFERED=unbuffered)
    logs = [json.loads(line) for line in lines if line.startswith("{")]
    assert sorted(line["message"] for line in logs if line["logger"] == "app") == [f"logged {name}" for name in NAMES]
    assert sorted(line for line in lines if not line.startswith("{")) == [f"printed {name} and more" for name in NAMES]


def test_a_line_of_output_becomes_an_event_unless_it_is_a_log_record() -> None:
    record = '{"at": 1.5, "level": "INFO", "logger": "app", "message": "m"}\n'
    assert event_line(record) == record
    for line in ("text", '{"v": 1, "event": "run_ended"}', "{", "[1]", record.replace("{", '{"event": "x", ').strip()):
        event = json.loads(event_line(f"{line}\n"))
        assert (event["event"], event["text"]) == ("output", line)


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_relay_without_a_terminal_is_for_lines_of_json(form: str) -> None:
    script = (
        "import os, sys\n"
        "from dagflow.cli.relay import relayed_output\n"
        "from dagflow.config import RunSettings\n"
        f"with relayed_output(RunSettings(progress='json', log_format='{form}')) as relay:\n"
        "    relay.start()\n"
        "    os.write(2, b'from a child\\n')\n"
        "    sys.stderr.write('x' * 100_000 + chr(10))\n"
        "    sys.stderr.write('no end')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    texts = [json.loads(line)["text"] for line in done.stderr.splitlines()]
    assert [text[:12] for text in texts] == ["from a child", "x" * 12, "no end"]
