"""Kills launches of an application with two outputs between the steps of roll-forward, and lets others resume there.

`python -m tests.chaos.points FOLDER STRIDE PAIRS`; prints one line of JSON. Forks one child a launch, as
tests/conformance/faults/crash.py does.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dagflow import DAG, ReaderRecord
from dagflow.ledger import Ledger
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.windows import loop
from dagflow.runtime.windows.directories import Directories
from dagflow.storage.local.files import LocalFileSystem
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, Filter, RecordWriter
from tests.chaos import oracle

BEFORE, AFTER = True, False
STEPS: dict[str, tuple[list[Any], str, bool]] = {
    "after the plan": ([WindowLog], "plan", AFTER),
    "after the decision": ([WindowLog], "decide", AFTER),
    "after one name": ([LocalFileSystem], "rename", AFTER),
    "after all names": ([Directories], "give_names", AFTER),
    "before an entry": ([Ledger], "append", BEFORE),
    "after an entry": ([Ledger], "append", AFTER),
    "before the mark": ([WindowLog], "done", BEFORE),
    "after the mark": ([WindowLog], "done", AFTER),
    "after sweeping": ([Directories, loop], "sweep", AFTER),
}
"""Where a launch may be killed: around each call of a function."""

Point = tuple[str, int]
"""A step, and which of its calls."""

LINES = [f"{'.' if number % 3 else ''}line {number}" for number in range(30)]


def two_sinks(folder: Path) -> Callable[[DAG, Any], None]:
    """Lines that begin with a dot go to one output, the others to the other."""

    def is_hidden(line: ReaderRecord[str]) -> bool:
        return line.record.startswith(".")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(folder / "in")], block_size=60, blocks_threshold=2))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        hidden = dag.add_operator("hidden", Filter(is_hidden))
        shown = dag.add_operator("shown", Filter(lambda line: not is_hidden(line)))
        dag.add_stream("lines", lines.messages, hidden.input, shown.input)
        for name, kept in (("one", hidden), ("two", shown)):
            sink = dag.add_operator(name, RecordWriter(str(folder / name)))
            dag.add_stream(f"to {name}", kept.output, sink.input)

    return populate_dag


def launched(folder: Path, point: Point | None = None, **options: Any) -> int:
    """Launches in a child, which is killed at a point. Its exit status, -9 if it was killed."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if point is not None:
            kill_at(*point)
        run_dag(two_sinks(folder), windows_in_flight=2, **options)
        os._exit(0)
    except BaseException as error:  # noqa: BLE001  # whatever ends it is told to the test
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)


def kill_at(step: str, number: int) -> None:
    """This process dies at that call of the step's function."""
    places, name, is_before = STEPS[step]
    calls = itertools.count()

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            mine = next(calls)
            found = None if is_before and mine == number else function(*arguments, **options)
            if mine == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return found

        return call

    for place in places:
        setattr(place, name, counted(getattr(place, name)))


def prepared(folder: Path) -> Path:
    """A folder with input."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    return folder


def case(folder: Path, *points: Point, **options: Any) -> tuple[list[bool], list[str]]:
    """Launches that are killed at these points, one after the other; then one that is not. Who was killed, and what is wrong."""
    prepared(folder)
    statuses = [launched(folder, point, **options) for point in points]
    killed = [status == -signal.SIGKILL for status in statuses]
    name = f"killed {', '.join(f'{step} ({number})' for step, number in points)} {options}"
    wrong = [f"{name}: a launch ended with {status}" for status in statuses if status not in (0, -signal.SIGKILL)]
    if (status := launched(folder, **options)) != 0:
        return killed, [*wrong, f"{name}: the launch after that ended with {status}"]
    heads = [Ledger.open(str(folder / output)).head() for output in ("one", "two")]
    if (status := launched(folder, **options)) != 0:
        wrong.append(f"{name}: one more launch ended with {status}")
    if heads != [Ledger.open(str(folder / output)).head() for output in ("one", "two")]:
        wrong.append(f"{name}: one more launch has added an entry")
    return killed, wrong + [f"{name}: {each}" for each in wrong_in(folder)]


def wrong_in(folder: Path) -> Iterator[str]:
    """Return the broken promises of the two outputs."""
    windows = []
    for output, is_hidden in (("one", True), ("two", False)):
        expected = Counter(line.encode() for line in LINES if line.startswith(".") == is_hidden)
        for problem in oracle.wrong(folder / output, oracle.lines, expected, lambda data: data.count(b"\n")):
            yield f"{output}: {problem}"
        entries = Ledger.open(str(folder / output)).entries()
        windows.append([entry.data.txn.window_id for entry in entries if entry.data is not None])
    if windows[0] != windows[1]:
        yield f"the outputs have entries of the windows {windows}"


def main(folder: Path, stride: int, pairs: int) -> dict[str, Any]:
    """Once at every `stride`th call of every step; then twice, at so many pairs of these points."""
    run_dag(two_sinks(prepared(folder / "reference")))  # here, so that the children find everything imported
    numbers = itertools.count()
    points, wrong = [], list(wrong_in(folder / "reference"))
    for first, step in enumerate(STEPS):
        for call in itertools.count(first % stride, stride):
            durability = "machine" if call % 4 == 0 else "process"
            place = folder / f"{next(numbers)}"
            killed, found = case(place, (step, call), retain_windows=2 + call % 2, durability=durability)
            wrong += found
            if not any(killed):
                break
            points.append((step, call))
    twice = 0
    for pair in random.Random(pairs).sample(list(itertools.product(points, points)), pairs):
        killed, found = case(folder / f"{next(numbers)}", *pair, durability="process")
        wrong += found
        twice += all(killed)
    return {"points": Counter(step for step, _ in points), "twice": twice, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
