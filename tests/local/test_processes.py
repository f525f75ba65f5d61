"""Tasks in worker processes: what reaches them, what becomes of those that die, and that none is left behind."""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from dagflow import ReaderRecord, launch
from dagflow.errors import OperatorFailed, WindowFailed
from dagflow.local import boot
from dagflow.local.pool import WorkerDied, WorkerPool
from dagflow.local.processes import ProcessRunner
from dagflow.runtime.events import Event, WindowRetried
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.testing import Collector
from tests.local.processes import lives, mapped, processes_below, results, until

ROOT = Path(__file__).parents[2]
LINES = [f"{name}{n}" for name in "abcd" for n in range(3)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abcd":
        (folder / f"{name}.txt").write_text("".join(f"{name}{n}\n" for n in range(3)))
    return folder


def process_of(line: ReaderRecord[str]) -> int:
    return os.getpid()


def once(folder: Path, name: str) -> bool:
    """Return whether this is the first call with that name, in all processes."""
    try:
        os.close(os.open(folder / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def test_tasks_run_in_processes_that_are_used_again_and_end_with_the_run(source: Path) -> None:
    before = set(processes_below(os.getpid()))
    found = set(results(source, process_of, windows=True))
    assert 1 <= len(found) <= 2, "no more than there are slots"
    assert os.getpid() not in found
    assert not any(map(lives, found))
    assert set(processes_below(os.getpid())) <= before


def test_no_more_processes_than_tasks(source: Path) -> None:
    assert len(set(results(source, process_of, readers=1, slots=8))) == 1


def test_one_slot_is_this_process(source: Path) -> None:
    assert set(results(source, process_of, slots=1)) == {os.getpid()}


def test_a_killed_process_is_replaced_and_its_task_tried_again(source: Path, tmp_path: Path) -> None:
    events: list[Event] = []

    def dies(line: ReaderRecord[str]) -> str:
        if line.record == "b1" and once(tmp_path, "killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        return line.record

    assert sorted(results(source, dies, subscribers=[events.append])) == LINES
    assert (tmp_path / "killed").exists()
    assert not [event for event in events if isinstance(event, WindowRetried)]


@pytest.mark.full
def test_a_task_whose_process_always_ends_fails_the_window(source: Path) -> None:
    def ends(line: ReaderRecord[str]) -> str:
        return os._exit(7) if line.record == "b1" else line.record

    with pytest.raises(WindowFailed) as caught:
        results(source, ends, window_attempts=2, retry_delay=0)
    text = str(caught.value)
    assert text.startswith("window 0 failed 2 times; the last time: task s0-000")
    assert "has died 4 times, the last time because its process ended with exit status 7" in text
    assert f"died at {source}/b.txt, position 3" in text


@pytest.mark.full
def test_the_first_error_ends_the_window_and_the_tasks_beside(source: Path) -> None:
    def fails(line: ReaderRecord[str]) -> str:
        if line.record == "a0":
            raise ValueError("not this one")
        time.sleep(600)
        return line.record

    began = time.monotonic()
    with pytest.raises(OperatorFailed, match="ValueError: not this one") as caught:
        results(source, fails, rebalance="off")
    assert "test_processes.py" in str(caught.value), "the user's line comes first"
    assert time.monotonic() - began < 60


class Locked(Exception):
    def __reduce__(self) -> Any:
        raise TypeError("not to be pickled")


@pytest.mark.full
def test_an_error_that_does_not_pickle_is_described(source: Path) -> None:
    def fails(line: ReaderRecord[str]) -> str:
        raise Locked("no key")

    with pytest.raises(OperatorFailed, match="Locked: no key"):
        results(source, fails)


@pytest.mark.full
def test_what_user_code_prints_and_logs_arrives(
    source: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def says(line: ReaderRecord[str]) -> str:
        print(f"printed {line.record}")
        print(f"to stderr {line.record}", file=sys.stderr)
        logging.getLogger("loud").debug("logged %s", line.record)
        logging.getLogger("quiet").info("not to be seen")
        return line.record

    monkeypatch.setattr(logging.getLogger("loud"), "level", logging.DEBUG)
    monkeypatch.setattr(logging.getLogger("quiet"), "level", logging.WARNING)
    results(source, says)
    assert sorted(record.getMessage() for record in caplog.records) == [f"logged {name}" for name in LINES]
    out, err = capfd.readouterr()
    assert out == "", "standard output is the report's"
    assert sorted(err.splitlines()) == sorted([f"{how} {name}" for how in ("printed", "to stderr") for name in LINES])


@pytest.mark.full
def test_the_environment_of_a_task(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    def about(line: ReaderRecord[str]) -> tuple[Any, ...]:
        import pyarrow

        return sys.stdin.read(), pyarrow.cpu_count(), sys.argv, os.getcwd(), os.getpgid(0) == os.getpid()

    [found] = {repr(each) for each in results(source, about)}
    assert found == repr(("", 1, sys.argv, os.getcwd(), True))


@pytest.mark.full
def test_random_numbers_differ_between_processes(source: Path) -> None:
    import numpy as np

    def numbers(line: ReaderRecord[str]) -> tuple[int, float, float]:
        time.sleep(0.05)  # so that both processes get some
        return os.getpid(), random.random(), np.random.random()

    found = results(source, numbers, rebalance="off")
    assert len({each[1] for each in found}) == len({each[2] for each in found}) == len(found)


class Watched(ProcessRunner):
    """Counts the threads of the server."""

    threads = 0

    def start(self, job: Any) -> Future[list[TaskOutcome]]:
        future = super().start(job)
        future.exception()
        assert self._pool is not None
        self.threads = len(os.listdir(f"/proc/{self._pool._server.popen.pid}/task"))
        return future


@pytest.mark.full
def test_the_process_that_forks_has_one_thread(source: Path) -> None:
    runner = Watched(2)
    launch(mapped(source, process_of, Collector[int]()), runner=runner, durability="process")
    assert runner.threads == 1


@pytest.mark.full
@pytest.mark.parametrize("when", ["idle", "at work"])
def test_a_killed_server_is_replaced(source: Path, tmp_path: Path, when: str) -> None:
    class Killing(Watched):
        def start(self, job: Any) -> Future[list[TaskOutcome]]:
            future = ProcessRunner.start(self, job)
            if when == "at work":
                until((tmp_path / "working").exists)
            assert self._pool is not None
            if once(tmp_path, "killed"):
                self._pool._server.popen.kill()
                if when == "idle":
                    future.exception()
            return future

    def slow(line: ReaderRecord[str]) -> str:
        once(tmp_path, "working")
        time.sleep(0.05)
        return line.record

    seen = Collector[str]()
    launch(mapped(source, slow, seen), runner=Killing(2), durability="process", max_windows=None)
    assert sorted(seen.records) == LINES


@pytest.mark.full
def test_cancelled_tasks_have_ended_when_cancel_returns(source: Path, tmp_path: Path) -> None:
    class Cancelling(ProcessRunner):
        def start(self, job: Any) -> Future[list[TaskOutcome]]:
            future = super().start(job)
            if once(tmp_path, "first"):
                pid = int(until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
                assert lives(pid)
                self.cancel()
                assert not lives(pid)
                assert isinstance(future.exception(0), TasksDied)
            return future

    def slow(line: ReaderRecord[str]) -> str:
        if once(tmp_path, "sleeping"):
            (tmp_path / "pid").write_text(str(os.getpid()))
            time.sleep(600)
        return line.record

    seen = Collector[str]()
    launch(mapped(source, slow, seen), runner=Cancelling(2), durability="process", retry_delay=0)
    assert sorted(seen.records) == LINES


def test_an_idle_process_that_dies_costs_no_attempt() -> None:
    pool = WorkerPool()
    try:
        worker = pool.take()
        pool.give_back(worker)
        assert pool.take() is worker
        pool.give_back(worker)
        os.kill(worker.pid, signal.SIGKILL)
        until(lambda: not worker.is_idle)
        other = pool.take()
        assert other.pid != worker.pid
        assert other.is_idle
        pool.give_back(other)
        assert Path(pool.folder).stat().st_mode & 0o777 == 0o700
    finally:
        pool.close()
    assert not lives(other.pid)
    assert not Path(pool.folder).exists()


def test_a_server_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boot, "_BOOT", "raise SystemExit(3)")
    pool = WorkerPool()
    try:
        with pytest.raises(WorkerDied, match=r"no process could be started: .*ended with status 3"):
            pool.take()
    finally:
        pool.close()


def test_a_server_that_is_not_needed_ends_at_once() -> None:
    server = boot.boot()
    server.close()
    assert server.popen.returncode == -signal.SIGKILL
    server.close()


FORKING = """
import os, sys, threading
from dagflow.local.boot import boot_as_fork
from dagflow.local.pool import WorkerPool

other = threading.Event()
if "threads" in sys.argv:
    threading.Thread(target=other.wait).start()
server = boot_as_fork()
other.set()
print(type(server.popen).__name__, "OMP_NUM_THREADS" in os.environ)
pool = WorkerPool(server)
worker = pool.take()
print("pyarrow" in sys.modules, len(os.listdir(f"/proc/{server.popen.pid}/task")), os.getsid(worker.pid) != os.getsid(0))
pool.close()
print(server.popen.returncode, os.path.exists(f"/proc/{worker.pid}"))
"""


@pytest.mark.full  # they import everything
@pytest.mark.parametrize(("arguments", "kind"), [((), "ForkedProcess"), (("threads",), "Popen")])
def test_a_command_forks_the_server_from_itself_unless_it_has_threads(arguments: tuple[str, ...], kind: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", FORKING, *arguments], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines() == [f"{kind} False", "True 1 True", "0 False"]
    assert not done.stderr


LAUNCHED = """
import os, sys
from dagflow.local import boot

def refuse():
    threads = len(os.listdir("/proc/self/task"))
    sys.exit(f"{threads} threads; imported: {sys.modules.keys() & {'pyarrow', 'numpy'}}")

boot.boot = refuse
from dagflow.cli.main import main
sys.exit(main(sys.argv[1:], is_process=True))
"""


@pytest.mark.full  # a whole launch
def test_a_launch_can_fork_its_server(source: Path, tmp_path: Path) -> None:
    """Nothing that the command imports starts a thread, which would cost each launch a second import of everything."""
    definitions = ["-D", f"input={source}", "-D", f"output={tmp_path / 'out'}"]
    command = [sys.executable, "-c", LAUNCHED, "launch", "apps/line_filter", *definitions, "--runner", "local", "--slots", "2"]
    environment = {name: value for name, value in os.environ.items() if name not in boot.SINGLE_THREADED}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr


SCRIPT = """
import os, sys
from dagflow import launch
from dagflow.testing import Collector
from tests.local.processes import mapped

print("the script runs")

class Mine:
    def __init__(self, line):
        self.text, self.process = line.record, os.getpid()

seen = Collector()
launch(mapped(sys.argv[1], Mine, seen), runner="local", slots=2, durability="process")
assert os.getpid() not in {each.process for each in seen.records}
print(*sorted(each.text for each in seen.records))
"""


@pytest.mark.full
@pytest.mark.parametrize("how", ["file", "standard input", "shell"])
def test_a_script_needs_no_main_guard(source: Path, tmp_path: Path, how: str) -> None:
    """Nor does code that is in no file at all, as in a notebook."""
    (tmp_path / "script.py").write_text(SCRIPT)
    arguments, given = {
        "file": ([str(tmp_path / "script.py")], None),
        "standard input": (["-"], SCRIPT),
        "shell": (["-c", SCRIPT], None),
    }[how]
    ran = subprocess.run(
        [sys.executable, *arguments, str(source)],
        input=given,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"the script runs\n{' '.join(LINES)}\n"
    assert ran.stderr == ""


SLEEPING = """
import os, subprocess, time
from operators import BlockReader, FileSplitterInput, Map, RecordWriter

def sleep(line):
    child = subprocess.Popen(["sleep", "600"])
    open(f"at-work-{os.getpid()}-{child.pid}", "w").close()
    while True:
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            pass

def populate_dag(dag, conf):
    files = dag.add_operator("files", FileSplitterInput(files=["in"]))
    lines = dag.add_operator("lines", BlockReader(min_readers=2))
    slow = dag.add_operator("slow", Map(sleep))
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, slow.input)
    dag.add_stream("all", slow.output, writer.input)
"""


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_launch_that_is_stopped_or_killed_leaves_nothing(source: Path, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "app.py").write_text(textwrap.dedent(SLEEPING))
    (tmp_path / "temporary").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "dagflow", "launch", ".", "--runner", "local", "--slots", "2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "temporary")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until(lambda: len(list(tmp_path.glob("at-work-*"))) == 2)
    below = processes_below(process.pid)
    named = {int(part) for path in tmp_path.glob("at-work-*") for part in path.name.split("-")[2:]}
    assert named < set(below), "a server, two workers, and what those have started"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    until(lambda: not any(map(lives, below)), 10)
    assert list((tmp_path / "temporary").iterdir()) == []
    assert "Traceback" not in err
    if number != signal.SIGKILL:
        assert process.returncode == 130
        assert f"stopped by {'Ctrl-C' if number == signal.SIGINT else 'SIGTERM'}" in err
