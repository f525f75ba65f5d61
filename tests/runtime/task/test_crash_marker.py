"""A record that kills its worker is found by its position."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from dagflow import ReaderRecord
from dagflow.errors import WindowFailed
from dagflow.launching.launch import launch
from dagflow.local.runner import LocalRunner
from dagflow.model.operator.context import Cursor
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job, TaskSpec
from dagflow.runtime.task.crash_marker import Place, open_crash_marker, places
from dagflow.runtime.task.execute import execute
from dagflow.testing import FakeClock
from operators import BlockReader, Filter, Map, RecordWriter
from tests.conformance.apps import chain, lines_in

ROOT = Path(__file__).parents[3]
POISON = "poison"


class Forking(LocalRunner):
    """Runs each job in a child process, as often as Spark would: a task that kills it leaves the run alive."""

    in_process = True

    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self.slots = 2
        self._times = times
        self.died: list[int] = []

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        log, future = WindowLog.open(job.run_folder, job.durable), Future[list[TaskOutcome]]()
        outcomes, status = [], 0
        for spec in job.tasks:
            for time in range(self._times):
                self._attempts += 1
                child = os.fork()
                if not child:
                    try:
                        execute(job.programs[spec.stage], spec, log, str(self._attempts), again=time > 0)
                    finally:
                        os._exit(0)
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                if status == 0:
                    outcomes.append(TaskOutcome(task=spec.name, attempt=str(self._attempts), started=0, ended=0))
                    break
                self.died.append(status)
            else:
                future.set_exception(TasksDied(f"a process ended with {status}"))
                return future
        future.set_result(outcomes)
        return future


def dies(record: Any) -> bool:
    if POISON in record.record:
        os._exit(3)
    return True


def crashes(record: Any) -> Any:
    if POISON in record.record:
        os.kill(os.getpid(), signal.SIGKILL)
    return record


def text_that_kills(data: bytes) -> str:
    if POISON.encode() in data:
        os._exit(3)
    return data.decode()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [f"line {n:06d}\n" for n in range(30_000)]
    (folder / "a.txt").write_text("".join(lines[:10]))
    lines[20_000] = "a poisoned one\n"
    (folder / "b.txt").write_text("".join(lines))
    return folder


POSITION = 20_000 * len("line 000000\n")

MIDDLES: dict[str, Any] = {
    "records": lambda: {"middle": Filter(dies)},
    "behind batches": lambda: {"middle": Filter(pc.field("record") != "line 000005"), "then": Map(crashes)},
    "in the conversion": lambda: {"reader": BlockReader(text_that_kills)},
}


def application(source: Path, output: Path, middle: Any = None, then: Any = None, reader: Any = None, **splitter: Any) -> Any:
    return chain(
        source, *(each for each in (middle, then) if each is not None), sink=RecordWriter(str(output)), reader=reader, **splitter
    )


@pytest.mark.full
@pytest.mark.parametrize("middle", list(MIDDLES))
@pytest.mark.parametrize(("times", "attempts"), [(1, 3), (4, 1)], ids=["window tried again", "tasks tried again"])
def test_the_record_is_named(source: Path, tmp_path: Path, middle: str, times: int, attempts: int) -> None:
    runner = Forking(times)
    with pytest.raises(WindowFailed) as caught:
        launch(
            application(source, tmp_path / "out", **MIDDLES[middle]()),
            runner=runner,
            window_attempts=attempts,
            clock=FakeClock(),
            durability="process",
        )
    told = str(caught.value).splitlines()
    assert told[0].startswith(f"window 0 failed {'once' if attempts == 1 else '3 times'}; the last time: a process ended with ")
    assert told[1].strip().partition(" died at ")[2] == f"{source}/b.txt, position {POSITION:,}"
    assert told[2:] == [
        f"  help: `tail -c +{POSITION + 1} {source}/b.txt | head -1` shows what is there; launch again to resume from this window"
    ]
    command = told[2].split("`")[1]
    assert subprocess.run(command, shell=True, capture_output=True, check=True).stdout == b"a poisoned one\n"
    assert len(runner.died) == max(times, attempts)


@pytest.mark.full
def test_once_it_is_gone_the_window_gets_through_and_nothing_stays(source: Path, tmp_path: Path) -> None:
    poisoned = (source / "b.txt").read_bytes()
    stamp = os.stat(source / "b.txt").st_mtime_ns
    with pytest.raises(WindowFailed):
        launch(application(source, tmp_path / "out", Filter(dies)), runner=Forking(), clock=FakeClock())
    (source / "b.txt").write_bytes(poisoned.replace(b"a poisoned one", b"a harmless one"))
    os.utime(source / "b.txt", ns=(stamp, stamp))
    heard: list[Any] = []
    launch(application(source, tmp_path / "out", Filter(dies)), runner=Forking(), clock=FakeClock(), subscribers=[heard.append])
    warned = [event.text for event in heard if event.kind == "warned"]
    assert len(warned) == 1
    assert warned[0].startswith("window 0: an earlier launch has ended while it was running; task s0-000")
    assert warned[0].endswith(f"died at {source}/b.txt, position {POSITION:,}")
    assert sum(lines_in(tmp_path / "out").values()) == 30_010
    assert not list((tmp_path / "out" / "_dagflow").glob("reports/*.at.*"))


PROGRAM = """
import sys
from pathlib import Path
from dagflow.launching.launch import launch
from operators import Filter
from tests.runtime.task.test_crash_marker import application, dies

launch(application(Path(sys.argv[1]), Path(sys.argv[2]), Filter(dies)), runner="local",
       subscribers=[lambda event: print(event.text, flush=True) if event.kind == "warned" else None])
"""


@pytest.mark.full
def test_launches_that_it_kills_tell_the_next_ones(source: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(source), str(tmp_path / "out")]
    told = []
    for _ in range(4):
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == 3, ran.stderr
        told.append(ran.stdout.strip())
    assert told[:2] == ["", ""], "the first has left nothing, the second was the first to write down where it is"
    assert told[2].startswith("window 0: an earlier launch has ended while it was running; task s0-000")
    assert told[3].endswith(f"died at {source}/b.txt, position {POSITION:,}")


class TestCrashMarker:
    def spec(self) -> TaskSpec:
        return TaskSpec(window=3, epoch="r", stage="s0", partition=1, partitions=2)

    def test_is_gone_when_the_task_has_ended_by_itself(self, tmp_path: Path) -> None:
        log = WindowLog.open(str(tmp_path), durable=False)
        one = open_crash_marker(log, self.spec())
        assert one is not None
        assert places(log, [self.spec()]) == [], "it has not begun"
        one.note("a b.txt", 7)
        assert places(log, [self.spec()]) == [Place("s0-0001", "a b.txt", 7)]
        assert places(log, [self.spec()], among=("s0-0000",)) == []
        one.note(None, None)
        assert [str(place) for place in places(log, [self.spec()])] == ["task s0-0001 died behind its last record"]
        one.leave()
        assert places(log, [self.spec()]) == []

    def test_portions(self, tmp_path: Path) -> None:
        log = WindowLog.open(str(tmp_path), durable=False)
        records = [ReaderRecord(0, position, "x") for position in range(0, 100, 10)]
        first = open_crash_marker(log, self.spec())
        assert first is not None
        assert list(first.portions("f", records)) == [records]
        assert list(first.portions("f", ["no", "positions"])) == [["no", "positions"]]
        second = open_crash_marker(log, self.spec())
        assert second is not None
        assert list(second.portions("f", records)) == [[record] for record in records]
        assert list(second.portions("other", records)) == [records]
        assert list(second.portions("f", records[1:])) == [records[1:]]
        first.leave()
        second.leave()

    def test_no_local_run_folder_has_none(self) -> None:
        assert open_crash_marker(WindowLog.open("memory://run", durable=False), self.spec()) is None

    def test_without_one_a_cursor_only_moves(self) -> None:
        cursor = Cursor()
        cursor.move("f", 3)
        assert (cursor.path, cursor.position) == ("f", 3)
