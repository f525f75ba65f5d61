"""Kills launches of an application with several outputs between the steps of roll-forward, and lets others resume there.

`python -m tests.chaos.points FOLDER STRIDE PAIRS SUBJECT`; prints one line of JSON.
"""

from __future__ import annotations

import itertools
import json
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG, ReaderRecord, Sink
from dagflow.ledger import Ledger
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.windows import commit
from dagflow.runtime.windows.directories import Directories
from dagflow.storage.local.files import LocalFileSystem
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, Filter, RecordWriter
from tests.chaos import joins, oracle
from tests.chaos.dying import after, before, die_at, in_child
from tests.chaos.joined.app import populate_dag as joined

STEPS = {
    "after the plan": after("plan", WindowLog),
    "after the decision": after("decide", WindowLog),
    "after one name": after("rename", LocalFileSystem),
    "after all names": after("give_names", Directories),
    "before an entry": before("append", Ledger),
    "after an entry": after("append", Ledger),
    "before the mark": before("done", WindowLog),
    "after the mark": after("done", WindowLog),
    "after sweeping": after("sweep", Directories, commit),
}
"""The steps at which a launch is killed."""

Point = tuple[str, int]
"""A step, and which of its calls."""

LINES = [f"{'.' if number % 3 else ''}line {number}" for number in range(30)]


def two_sinks(folder: Path, *tables: Sink) -> Callable[[DAG, Any], None]:
    """Lines that begin with a dot go to one output, the others to the other, and all of them to `tables`."""

    def is_hidden(line: ReaderRecord[str]) -> bool:
        return line.record.startswith(".")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(folder / "in")], block_size=60, blocks_threshold=2))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        hidden = dag.add_operator("hidden", Filter(is_hidden))
        shown = dag.add_operator("shown", Filter(lambda line: not is_hidden(line)))
        added = [dag.add_operator(f"table{number}", table) for number, table in enumerate(tables)]
        dag.add_stream("lines", lines.messages, hidden.input, shown.input, *(table.input for table in added))
        for name, kept in (("one", hidden), ("two", shown)):
            sink = dag.add_operator(name, RecordWriter(str(folder / name)))
            dag.add_stream(f"to {name}", kept.output, sink.input)

    return populate_dag


def prepared(folder: Path) -> Path:
    """A folder with input."""
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    return folder


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


@attrs.frozen
class Subject:
    """An application whose launches are killed.

    Attributes:
        outputs: the folders of its datasets. The run folder is in the first of them.
        prepare: makes its input in a new folder, and brings it to where launches are killed.
        run: launches it.
        wrong: yields the promises that its outputs break.
    """

    outputs: tuple[str, ...]
    prepare: Callable[[Path], Path]
    run: Callable[..., object]
    wrong: Callable[[Path], Iterator[str]]


def prepared_parts(folder: Path) -> Path:
    """A folder with input whose first part has been read, and whose second part corrects the results."""
    joins.write(folder / "parts", joins.PARTS, 12)
    joins.arrive(folder / "parts", 0, folder / "in")
    run_joined(folder, durability="process")
    joins.arrive(folder / "parts", 1, folder / "in")
    return folder


def run_joined(folder: Path, **options: Any) -> None:
    """Launch joins and rankings of that input."""
    run_dag(joined, {"input": str(folder / "in"), "output": str(folder), "block_size": "100"}, **options)


def wrong_in_joined(folder: Path) -> Iterator[str]:
    """Return the broken promises of the two outputs, and of the database."""
    results = joins.write(folder / "parts", joins.PARTS, 12)[:2]
    yield from joins.wrong(folder, results, True)
    for output, content, expected in (("placed", joins.placed, results[-1].placed), ("top", joins.top, results[-1].top)):
        for problem in oracle.wrong(folder / output, content, expected, lambda data: data.count(b"\n")):
            yield f"{output}: {problem}"


SUBJECTS = {
    "lines": Subject(("one", "two"), prepared, lambda folder, **options: run_dag(two_sinks(folder), **options), wrong_in),
    "joined": Subject(("placed", "top"), prepared_parts, run_joined, wrong_in_joined),
}


def launched(subject: Subject, folder: Path, point: Point | None = None, **options: Any) -> int:
    """Launch in a child, which is killed at a point. Return its exit status."""

    def work() -> None:
        if point is not None:
            die_at(STEPS[point[0]], point[1])
        subject.run(folder, windows_in_flight=2, **options)

    return in_child(work)


def case(subject: Subject, folder: Path, *points: Point, **options: Any) -> tuple[list[bool], list[str]]:
    """Launches that are killed at these points, one after the other; then one that is not. Who was killed, and what is wrong."""
    subject.prepare(folder)
    statuses = [launched(subject, folder, point, **options) for point in points]
    killed = [status == -signal.SIGKILL for status in statuses]
    name = f"killed {', '.join(f'{step} ({number})' for step, number in points)} {options}"
    wrong = [f"{name}: a launch ended with {status}" for status in statuses if status not in (0, -signal.SIGKILL)]
    if (status := launched(subject, folder, **options)) != 0:
        return killed, [*wrong, f"{name}: the launch after that ended with {status}"]
    heads = [Ledger.open(str(folder / output)).head() for output in subject.outputs]
    if (status := launched(subject, folder, **options)) != 0:
        wrong.append(f"{name}: one more launch ended with {status}")
    if heads != [Ledger.open(str(folder / output)).head() for output in subject.outputs]:
        wrong.append(f"{name}: one more launch has added an entry")
    return killed, wrong + [f"{name}: {each}" for each in subject.wrong(folder)]


def main(folder: Path, stride: int, pairs: int, subject: Subject) -> dict[str, Any]:
    """Once at every `stride`th call of every step; then twice, at so many pairs of these points."""
    subject.run(subject.prepare(folder / "reference"))  # here, so that the children find everything imported
    numbers = itertools.count()
    points, wrong = [], list(subject.wrong(folder / "reference"))
    for first, step in enumerate(STEPS):
        for call in itertools.count(first % stride, stride):
            durability = "machine" if call % 4 == 0 else "process"
            place = folder / f"{next(numbers)}"
            killed, found = case(subject, place, (step, call), retain_windows=2 + call % 2, durability=durability)
            wrong += found
            if not any(killed):
                break
            points.append((step, call))
    twice = 0
    for pair in random.Random(pairs).sample(list(itertools.product(points, points)), pairs):
        killed, found = case(subject, folder / f"{next(numbers)}", *pair, durability="process")
        wrong += found
        twice += all(killed)
    return {"points": Counter(step for step, _ in points), "twice": twice, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), SUBJECTS[sys.argv[4]])))
