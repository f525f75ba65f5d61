"""The memory that a Python worker of Spark takes beyond its imports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.lines import inputs, ours
from benchmarks.lines.place import Place
from benchmarks.rounds import Case, Contestant, Limit

MB = 1_000_000
ALLOWED = 200  # MB, and six times the longest record


def memory(place: Place) -> Iterator[Case]:
    """A huge file, a huge block, huge records; each in a session of its own, so that no worker remembers an earlier case."""
    source = place.lines()
    length = 2 * MB if place.quick else 20 * MB
    long = inputs.make_long(place.disk / "long.txt", place.size // 4, length)
    rows: list[tuple[str, Path, dict[str, int], int]] = [
        ("huge file", source, {}, 0),
        ("one huge block", source, {"block_size": source.stat().st_size}, 0),
        (f"records of {length // MB} MB", long, {}, length // MB),
    ]
    contestants, goals = [], []
    for application in ("vectorised", "by_function"):
        for title, path, options, longest in rows:
            name = f"{title}, {application.replace('_', ' ')}"
            most = ALLOWED + 6 * longest
            contestants.append(
                Contestant(
                    name,
                    partial(_apart, application, path, place.target("memory"), options),
                    clean=partial(place.clean, "memory"),
                )
            )
            goals.append(Limit(name, most, "MB"))
    title = "Memory of a Python worker beyond its imports: the highest peak of all workers"
    yield Case("memory", title, contestants, goals, unit="MB", rounds=1, warm_up=0)
    ours.remove(source, long)


def _apart(application: str, source: Path, target: Path, options: dict[str, int]) -> float:
    command = [sys.executable, "-m", "benchmarks.lines.cases.memory", application, str(source), str(target)]
    command += [f"{name}={value}" for name, value in options.items()]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise RuntimeError(answer.stderr)
    return float(answer.stdout.split()[-1])


def _measure(application: str, source: Path, target: Path, options: dict[str, Any]) -> float:
    """MB by which the largest worker has grown at its peak, since it had done a tiny window."""
    from benchmarks.lines.peers import Spark

    spark, tiny = Spark(), target.with_name("tiny")
    tiny.mkdir()
    for number in range(4):
        (tiny / f"{number}.txt").write_text("a line\n")
    try:
        _ = spark.session
        ours.run(getattr(ours, application), tiny, target)
        ours.remove(target)
        before = {pid: machine.memory(pid, "VmRSS") for pid in machine.python_workers()}
        for pid in before:
            machine.forget_peak(pid)
        ours.run(getattr(ours, application), source, target, **options)
        least = min(before.values())
        grown = [machine.memory(pid, "VmHWM") - before.get(pid, least) for pid in machine.python_workers()]
        return max(grown) / MB
    finally:
        spark.close()
        ours.remove(target, tiny)


if __name__ == "__main__":
    given = dict(word.split("=") for word in sys.argv[4:])
    print(_measure(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), {name: int(value) for name, value in given.items()}))
    sys.stdout.flush()
    os._exit(0)  # what the JVM leaves behind is of no interest
