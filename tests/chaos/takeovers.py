"""Pauses a launch at every touch of a file, lets a launch on another host take over and run to its end, and continues the first.

`python -m tests.chaos.takeovers FOLDER STRIDE SUBJECT`; prints one line of JSON. Forks one child a launch, as `points` does.
The folder has no `flock`, so the lock is one of numbers with a lease. Launches on another host have another host name, and a
clock on which leases end at once.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import random
import signal
import socket
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs

from dagflow.errors import LeaseLost
from dagflow.runtime.run_folder.verify import verify_run_folder
from dagflow.testing import FakeClock, run_dag
from operators import SqlWriter
from tests.chaos import points
from tests.chaos.points import Subject

TOUCHES = ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "sqlite3.connect")
LOST = 21
"""The exit status of a launch that ended because another one had taken over."""


class Clock(FakeClock):
    """The machine's clock. `advance` moves it, as a pause does; without that, a pause is one that the machine does not notice."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic() + super().monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@attrs.frozen
class Case:
    """A launch that is paused at a touch of a file; `notices`: its clock shows the pause."""

    touch: int
    notices: bool
    retain_windows: int


def run_three_sinks(folder: Path, **options: Any) -> None:
    """Launch the application of `points`, which also writes all lines to a database."""
    run_dag(points.two_sinks(folder, SqlWriter(f"sqlite:///{folder}/lines.db", "lines")), **options)


def wrong_in_three_sinks(folder: Path) -> Iterator[str]:
    """Return the broken promises of all outputs."""
    yield from points.wrong_in(folder)
    with closing(sqlite3.connect(folder / "lines.db")) as database:
        rows = Counter(row[0] for row in database.execute("SELECT record FROM lines"))
    if rows != Counter(points.LINES):
        yield f"rows of the table: {rows}"


SUBJECTS = {
    **points.SUBJECTS,
    "lines": attrs.evolve(points.SUBJECTS["lines"], run=run_three_sinks, wrong=wrong_in_three_sinks),
}


def forked(launching: Callable[[], None]) -> int:
    """Launch in a child, and return its process number."""
    child = os.fork()
    if child:
        return child
    try:
        fcntl.flock = no_flock  # type: ignore[assignment]
        launching()
        os._exit(0)
    except LeaseLost:
        os._exit(LOST)
    except BaseException as error:  # noqa: BLE001  # whatever ends it is told to the test
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)


def no_flock(descriptor: int, operation: int) -> None:
    raise OSError(errno.ENOSYS, "Function not implemented")


def launch_elsewhere(subject: Subject, folder: Path, case: Case) -> int:
    """Launch on another host, and return the exit status."""

    def launching() -> None:
        socket.gethostname = lambda: "another host"
        subject.run(folder, clock=FakeClock(now=time.time()), retain_windows=case.retain_windows)

    return os.waitstatus_to_exitcode(os.waitpid(forked(launching), 0)[1])


def launch_paused(subject: Subject, folder: Path, case: Case) -> int:
    """Launch in a child that pauses itself, and return its process number."""

    def launching() -> None:
        clock = Clock()
        pause_at_touch(str(folder), case, clock)
        options = {"windows_in_flight": 2, "retain_windows": case.retain_windows, "retry_delay": 0.01}
        subject.run(folder, clock=clock, **options)

    return forked(launching)


def pause_at_touch(folder: str, case: Case, clock: Clock) -> None:
    left = case.touch

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in TOUCHES and any(isinstance(each, str) and each.startswith(folder) for each in arguments):
            left -= 1
            if left == -1:
                os.kill(os.getpid(), signal.SIGSTOP)
                clock.advance(1000.0 if case.notices else 0.0)

    sys.addaudithook(watch)


def run(subject: Subject, folder: Path, case: Case) -> tuple[str, list[str]]:
    """Run a case. Return the end of the paused launch (`not paused`, `done` or `lost`), and the broken promises."""
    subject.prepare(folder)
    paused = launch_paused(subject, folder, case)
    status = os.waitpid(paused, os.WUNTRACED)[1]
    if not os.WIFSTOPPED(status):
        return "not paused", list(wrong_in(subject, folder, os.waitstatus_to_exitcode(status)))
    wrong = [f"the launch that took over ended with {status}"] if (status := launch_elsewhere(subject, folder, case)) else []
    first = dict(content(subject, folder))
    os.kill(paused, signal.SIGCONT)
    status = os.waitstatus_to_exitcode(os.waitpid(paused, 0)[1])
    if dict(content(subject, folder)) != first:
        wrong.append("the launch that had been paused has changed the output")
    wrong += verify_run_folder(str(folder / subject.outputs[0] / "_dagflow")).problems
    if last := launch_elsewhere(subject, folder, case):
        wrong.append(f"the last launch ended with {last}")
    wrong += wrong_in(subject, folder, 0 if status == LOST else status)
    return {0: "done", LOST: "lost"}.get(status, "failed"), [f"{case}: {each}" for each in wrong]


def content(subject: Subject, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Return the visible files of all outputs."""
    for output in subject.outputs:
        for name in points.oracle.visible(folder / output):
            yield f"{output}/{name}", (folder / output / name).read_bytes()


def wrong_in(subject: Subject, folder: Path, status: int) -> Iterator[str]:
    """Return the broken promises of a launch, of all outputs and of the run folder."""
    if status:
        yield f"the launch ended with {status}"
    yield from subject.wrong(folder)
    yield from map(str, verify_run_folder(str(folder / subject.outputs[0] / "_dagflow")).problems)


def main(folder: Path, stride: int, subject: Subject) -> dict[str, Any]:
    """One case for every `stride`th touch, and of each stretch another one."""
    subject.run(subject.prepare(folder / "reference"))  # here, so that the children find everything imported
    ends: Counter[str] = Counter()
    wrong = list(wrong_in(subject, folder / "reference", 0))
    choice = random.Random(stride)
    for notices, retain_windows in ((False, 1000), (True, 1), (True, 1000)):
        for first in itertools.count(0, stride):
            case = Case(first + choice.randrange(stride), notices, retain_windows)
            end, problems = run(subject, folder / f"{sum(ends.values())}", case)
            ends[end] += 1
            wrong += problems
            if end == "not paused":
                break
    return {"ends": ends, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), SUBJECTS[sys.argv[3]]), default=str))
