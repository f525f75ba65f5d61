"""Kills launches that read files which are appended to, at every touch of a file below the output.

`python -m tests.conformance.faults.crash_appended FOLDER STRIDE`; prints a line of JSON. `crash.py` makes the children.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from dagflow.testing import run_dag
from operators import Map, RecordWriter
from operators.files.scanner import TimeBasedDirectoryScanner
from tests.conformance.apps import chain, left_over, lines_in
from tests.conformance.faults import crash

TEXT = b"".join(b"%d of some length %s\n" % (n, b"x" * (n % 7)) for n in range(40))
CUTS = (95, 100, 333, len(TEXT))
"""The length of the file by each launch: the first and the second cut are in the middle of a line."""


def application(source: Path, output: Path) -> Any:
    """Copies lines with their positions, in several windows a launch."""
    scanner = TimeBasedDirectoryScanner(source, modified="append")
    text = Map(lambda line: f"{line.position} {line.record}")
    return chain(source, text, sink=RecordWriter(str(output)), scanner=scanner, block_size=40, blocks_threshold=3)


def grow(source: Path, to: int) -> None:
    """Appends, as a logger does."""
    with open(source / "log", "ab") as log:
        log.write(TEXT[log.tell() : to])
        log.flush()
        os.utime(log.fileno(), (to, to))


def case(folder: Path, kill_at: int) -> tuple[int, str | None]:
    """Kills one launch after each growth, and lets the file grow on before the next one resumes there."""
    source, output = folder / "in", folder / "out"
    source.mkdir(parents=True)
    killed = 0
    for to in CUTS:
        grow(source, to)
        killed += crash.run(source, output, kill_at) == -signal.SIGKILL
    status = crash.run(source, output, None)
    if status != 0:
        return killed, f"killed at {kill_at}: the last launch ended with {status}"
    starts = list(itertools.accumulate(map(len, TEXT.splitlines(keepends=True)), initial=0))
    expected = Counter(b"%d %s" % (at, line) for at, line in zip(starts, TEXT.splitlines(keepends=True), strict=False))
    found = Counter(line if line.endswith(b"\n") else line + b"\n" for line in lines_in(output).elements())
    if found != expected:
        return killed, f"killed at {kill_at}: {dict(found - expected)} too many, {dict(expected - found)} missing"
    return killed, f"{left_over(output)} left over" if left_over(output) else None


def main(folder: Path, stride: int) -> dict[str, Any]:
    """All cases."""
    crash.APPLICATION = application
    (folder / "warm").mkdir()
    (folder / "warm" / "log").write_bytes(TEXT)
    run_dag(application(folder / "warm", folder / "warm-out"))  # here, so that the children find everything imported
    wrong, kills = [], 0
    for touch in itertools.count(0, stride):
        killed, problem = case(folder / str(touch), touch)
        wrong += [problem] if problem else []
        kills += killed
        if not killed:
            return {"kills": kills, "cases": touch // stride, "wrong": wrong}
    raise AssertionError("unreachable")


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
