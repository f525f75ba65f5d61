from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from dagflow.cli import main, streams
from dagflow.cli.errors import OutputLost
from dagflow.cli.streams import OutputClosed
from tests.cli.conftest import LINE_FILTER, ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def pipe() -> Iterator[int]:
    """The writing end of a pipe whose reader is gone."""
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def close(stream: TextIO, descriptor: int) -> None:
    """Point a descriptor elsewhere, so that the end of its stream is not another error."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), descriptor)
    stream.close()


def test_output_whose_reader_is_gone(pipe: int) -> None:
    stream = streams._stream(None, pipe, streams._refuse)
    print("line", file=stream)
    with pytest.raises(OutputClosed):
        stream.flush()
    close(stream, pipe)


def test_messages_that_cannot_be_written_are_lost(pipe: int) -> None:
    with streams._stream(None, pipe, streams._forget) as stream:
        print("error", file=stream, flush=True)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_on_a_full_disk() -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        stream = streams._stream(None, full.fileno(), streams._refuse)
        print("line", file=stream)
        with pytest.raises(OutputLost, match="cannot write to standard output: No space left on device"):
            stream.flush()
        close(stream, full.fileno())


def test_a_closed_output_says_so() -> None:
    closed = os.open(os.devnull, os.O_RDONLY)
    stream = streams._stream(None, closed, streams._refuse)
    print("line", file=stream)
    with pytest.raises(OutputLost, match="it is closed"):
        stream.flush()
    close(stream, closed)
    os.close(closed)


def test_an_import_that_ctrl_c_ends_with_another_error() -> None:
    error = RuntimeError("Error calling __set_name__")
    error.__cause__ = KeyboardInterrupt()
    assert main._is_interrupt(error)
    assert not main._is_interrupt(RuntimeError())


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell, in which `dagflow` is the command."""
    line = line.replace("dagflow", f"{sys.executable} -m dagflow", 1)
    return subprocess.run(["bash", "-c", line], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)


@pytest.mark.full
@pytest.mark.parametrize("line", ["operators", "explain --json", "--help", f"config {LINE_FILTER} -D input=. -D output=o"])
def test_a_pipe_that_ends_early_ends_a_command_without_a_word(line: str, tmp_path: Path) -> None:
    answer = shell(f"dagflow {line} | true; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert (answer.returncode, answer.stderr) == (141, "")


@pytest.mark.full
@pytest.mark.parametrize("line", ["operators >&-", "--help >/dev/full", "operators --json >/dev/full", "report none --json >&-"])
def test_output_that_cannot_be_written_is_named(line: str, tmp_path: Path) -> None:
    answer = shell(f"dagflow {line}", tmp_path)
    assert answer.returncode == 3
    assert answer.stderr.startswith("error[DF489] cannot write to standard output: ")
    assert answer.stderr.count("\n") == 1


@pytest.mark.full
def test_the_exit_code_of_a_launch_says_how_the_run_ended(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb\n")
    launch = f"dagflow launch {LINE_FILTER} -D input=in.txt --runner local"
    answer = shell(f"{launch} -D output=a >&-", tmp_path)
    assert answer.returncode == 0
    assert answer.stderr.endswith("error[DF489] cannot write to standard output: it is closed\n")
    answer = shell(f"{launch} -D output=b 2>&-", tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "written  1 file" in answer.stdout


@pytest.mark.full
def test_ctrl_c_while_a_command_is_imported_shows_no_traceback(tmp_path: Path) -> None:
    begin = "import sys; print(flush=True); from dagflow.cli.main import process; sys.argv[1:] = ['--help']; sys.exit(process())"
    # the import of click, in which the signal comes
    slow = "import time; print('importing', flush=True); time.sleep(20)"
    (tmp_path / "click.py").write_text(slow)
    command = [sys.executable, "-c", begin]
    environment = {**ENVIRONMENT, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while process.stdout.readline() != "importing\n":
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == ""
