"""Kills two continuous applications in a chain at random moments, while their input grows.

`python -m tests.conformance.faults.derived_random FOLDER KILLS SEED`; prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dagflow import launch
from operators import TimeBasedDirectoryScanner
from tests.conformance.faults.derived import first, ledger, run_first, run_second, second, wrong

CONTINUOUS: dict[str, Any] = {"runner": "local", "once": False, "window": 0.02, "durability": "process", "windows_in_flight": 2}


def begin(work: Callable[[], Any]) -> int:
    """Does work in a process of its own, which never ends by itself; its id."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException as error:  # noqa: BLE001  # whatever ends it is told to the test
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)


def main(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    source = folder / "in"
    source.mkdir()
    expected: Counter[bytes] = Counter()
    moment = 1_000_000

    def grow() -> None:
        nonlocal moment
        for _ in range(chance.randrange(4)):
            moment += 1
            lines = [f"{moment}-{n}" for n in range(chance.randrange(1, 9))]
            hidden = source / f".{moment}"  # appears whole
            hidden.write_text("".join(f"{line}\n.{line}\n" for line in lines))
            os.utime(hidden, ns=(moment * 1000, moment * 1000))
            hidden.rename(source / f"{moment}.txt")
            expected.update(line.encode() for line in lines)

    def scanner() -> TimeBasedDirectoryScanner:
        return TimeBasedDirectoryScanner(scan_interval_millis=10, file_pattern_regular_exp=".*[.]txt")

    def work_first() -> None:
        launch(first(source, folder / "first", scanner=scanner()), **CONTINUOUS).wait()

    def work_second() -> None:
        given = second({"lines": folder / "first"}, folder / "second", wait=True, scan_interval_millis=10)
        launch(given, **CONTINUOUS).wait()

    works = {"first": work_first, "second": work_second}
    grow()
    run_first(folder, source)  # here, so that the children find everything imported
    run_second(folder)
    running: dict[str, int] = {}
    died: list[str] = []
    killed: Counter[str] = Counter()
    while sum(killed.values()) < kills:
        for name in works.keys() - running.keys():
            running[name] = begin(works[name])
        grow()
        time.sleep(chance.choice((0.03, 0.1, 0.3)) * chance.random() + 0.01)
        for name in chance.choice((["first"], ["second"], ["first", "second"])):
            child = running.pop(name)
            if os.waitpid(child, os.WNOHANG)[0]:
                died.append(name)
                continue
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            killed[name] += 1
    for child in running.values():
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    run_first(folder, source)
    run_second(folder)
    found = wrong(folder, expected) + [f"{name} ended by itself" for name in died]
    before = [str(ledger(folder / name).head()) for name in works]
    again = (run_first(folder, source).windows, run_second(folder).windows)
    if again != (0, 0) or [str(ledger(folder / name).head()) for name in works] != before:
        found.append(f"a further launch made {again} windows")
    return {"killed": killed, "lines": sum(expected.values()), "entries": before, "wrong": found}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
