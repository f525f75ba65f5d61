"""Ctrl-C and SIGTERM, on real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import LINE_FILTER, ROOT
from tests.tiers import mostly_nightly

Begin = Callable[..., "subprocess.Popen[str]"]
Write = Callable[..., None]
SIGNALS = [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")]

SLEEPS = """
import subprocess, time
from operators import BlockReader, FileSplitterInput, Map, RecordWriter

def sleep(record):
    open("handling", "w").close()
    HOW
    return record.record

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader())
    slow = dag.add_operator("slow", Map(sleep))
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, slow.input)
    dag.add_stream("all", slow.output, writer.input)
"""

# Does not listen to the first signal, and has a child of its own.
DEAF = """
    child = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    open("child", "w").write(str(child.pid))
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            open("deaf", "w").close()
"""


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Waits until something is so."""
    for _ in range(1200):
        if condition():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError("it never happened")


CALLED_BACK = """
import os, signal, time, weakref

class Thing:
    pass

thing = Thing()
reference = weakref.ref(thing, lambda _: os.kill(os.getpid(), signal.SIGINT))
del thing  # Python prints and ignores what the callback raises
time.sleep(60)
"""


@pytest.mark.full
@pytest.mark.parametrize(("number", "word"), SIGNALS)
def test_a_continuous_run_ends_cleanly_and_can_go_on(begin: Begin, write: Write, tmp_path: Path, number: int, word: str) -> None:
    write("logs/a.txt", "one\n")
    given = ["launch", LINE_FILTER, "-D", "input=logs", "-D", "output=out", "--runner", "local"]
    process = begin(*given, "--continuous")
    wait_for(lambda: any((tmp_path / "out").glob("part-*")), process)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert f"{word}: stopping; once more stops at once" in err
    assert f"stopped by {word}: committed windows are kept; launch again with the same settings to resume" in err
    assert "Traceback" not in err
    assert "line_filter: interrupted" in out
    write("logs/b.txt", "two\n")
    again = begin(*given)
    out, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert "windows  1 (number 1)" in out
    assert sorted(f.read_text() for f in (tmp_path / "out").glob("part-*")) == ["one\n", "two\n"]


@pytest.mark.full
@pytest.mark.parametrize("slots", ["1", "2"])
@pytest.mark.parametrize(("number", "word"), SIGNALS)
def test_user_code_that_takes_its_time_is_interrupted(
    begin: Begin, write: Write, tmp_path: Path, number: int, word: str, slots: str
) -> None:
    write("logs/a.txt", "one\n")
    write("app.py", SLEEPS.replace("HOW", "time.sleep(600)"))
    process = begin("launch", ".", "--runner", "local", "--slots", slots)
    wait_for((tmp_path / "handling").exists, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"stopped by {word}" in err
    assert "Traceback" not in err
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["_dagflow"]


def test_a_second_signal_stops_at_once_and_leaves_no_process(begin: Begin, write: Write, tmp_path: Path) -> None:
    write("logs/a.txt", "one\n")
    write("app.py", SLEEPS.replace("    HOW\n", DEAF))
    process = begin("launch", ".", "--runner", "local", "--slots", "1")
    wait_for(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text() != "", process)
    process.send_signal(signal.SIGINT)
    wait_for((tmp_path / "deaf").exists, process)
    child = int((tmp_path / "child").read_text())
    assert is_running(child)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    wait_until_gone(child)


def is_running(process: int) -> bool:
    answer = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return answer.stdout.strip()[:1] not in ("", "Z")


def wait_until_gone(process: int) -> None:
    for _ in range(200):
        if not is_running(process):
            return
        time.sleep(0.05)
    raise AssertionError(f"process {process} is still there")


@pytest.mark.full
def test_an_ignored_interrupt_stays_ignored(begin: Begin, write: Write, tmp_path: Path) -> None:
    """As for a job in the background of a shell: Ctrl-C is meant for another process."""
    write("logs/a.txt", "one\n")
    process = begin(
        "launch",
        LINE_FILTER,
        *["-D", "input=logs", "-D", "output=out", "--runner", "local", "--continuous"],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    wait_for(lambda: any((tmp_path / "out").glob("part-*")), process)
    process.send_signal(signal.SIGINT)
    write("logs/b.txt", "two\n")
    wait_for(lambda: len(list((tmp_path / "out").glob("part-*"))) == 2, process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 130


@pytest.mark.parametrize("number", [number for number, _ in SIGNALS])
def test_these_tests_may_run_in_the_background(number: int) -> None:
    # tests/conftest.py sees to it that what the tests start hears signals, also where the shell ignores them
    child = f"import os; os.kill(os.getpid(), {number}); print('ignored')"
    start = f"subprocess.run([sys.executable, '-c', {child!r}])"
    ignore = f"import signal, subprocess, sys; signal.signal({number}, signal.SIG_IGN)"
    printed = [
        subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT, capture_output=True, text=True).stdout
        for code in (f"{ignore}; {start}", f"{ignore}; import tests.conftest; {start}")
    ]
    assert printed == ["ignored\n", ""]


def test_an_interrupt_in_a_callback_is_not_lost(begin: Begin, write: Write) -> None:
    write("app.py", CALLED_BACK)
    process = begin("validate", "app.py")
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "")


INTERRUPTS_AN_IMPORT = """
import os, signal, sys

left = None

def audited(event, arguments):
    global left
    if event != "import":
        return
    if left is None and "dagflow.interrupts" in sys.modules and "dagflow.exports" == arguments[0]:
        left = int(os.environ["AFTER"])
    if left is not None:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(audited)
"""
"""A `sitecustomize` that sends a Ctrl-C when the command has begun so many imports."""


@pytest.mark.parametrize("command", [[str(Path(sys.executable).with_name("dagflow"))], [sys.executable, "-m", "dagflow"]])
@pytest.mark.parametrize("after", mostly_nightly(range(1, 400, 7), 1, 8, 50, 120, 211, 302))
def test_ctrl_c_while_modules_are_imported_shows_no_traceback(
    write: Write, tmp_path: Path, command: list[str], after: int
) -> None:
    write("sitecustomize.py", INTERRUPTS_AN_IMPORT)
    given = [*command, "plan", LINE_FILTER, "-D", f"input={tmp_path}", "-D", "output=out"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "AFTER": str(after)}
    ended = subprocess.run(given, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


def test_a_program_that_uses_the_package_keeps_its_own_ctrl_c() -> None:
    program = "import signal, dagflow; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "True\n"


def test_descendants_are_found() -> None:
    from dagflow.cli.stopping import descendants

    with subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        below = int(shell.stdout.readline())
        found = descendants()
        assert shell.pid in found
        assert below in found
        assert os.getpid() not in found
        os.kill(below, signal.SIGKILL)
        shell.kill()


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("signals", [1, 2])
def test_on_spark(begin: Begin, write: Write, tmp_path: Path, signals: int) -> None:
    write("logs/a.txt", "one\n")
    write("app.py", SLEEPS.replace("HOW", "time.sleep(600)"))
    process = begin("launch", ".", "--master", "local[1]", start_new_session=True)
    wait_for((tmp_path / "handling").exists, process)
    for _ in range(signals):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Ctrl-C: stopping" in err
    assert "Traceback" not in err
    answer = subprocess.run(["ps", "-s", str(process.pid), "-o", "pid=,stat="], capture_output=True, text=True, check=False)
    assert [line for line in answer.stdout.splitlines() if " Z" not in line] == []


@pytest.mark.spark
@pytest.mark.full
def test_spark_that_is_stopped_while_it_starts(begin: Begin, write: Write, tmp_path: Path) -> None:
    write("logs/a.txt", "one\n")
    write("app.py", SLEEPS.replace("HOW", "pass"))
    process = begin("launch", ".", "--master", "local[1]", start_new_session=True)
    wait_for(lambda: (tmp_path / "out" / "_dagflow" / "events").exists(), process)  # it has begun; Spark starts for seconds
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in out
    assert "failed" not in out
    assert "Traceback" not in err
