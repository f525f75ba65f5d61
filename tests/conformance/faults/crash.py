"""Kills launches at every touch of a file below the output, and lets others resume there.

`python crash.py SOURCE FOLDER STRIDE APPLICATION`; prints one line of JSON. A process of its own, which forks one child a launch.
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

import attrs

from dagflow import DAG, InputPort, MapState, Operator, OperatorContext, OutputPort, ReaderRecord, State, WindowState
from dagflow.ledger import committed_files, read_dataset
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.scaling import StatelessPartitioner
from dagflow.state import task_states
from dagflow.testing import run_dag
from operators import BlockReader, CsvWriter, ParquetWriter, RecordWriter
from tests.chaos.dying import in_child
from tests.conformance.apps import chain, left_over, line_filter, lines_in, vectorised, written

TOUCHES = ("open", "os.rename", "os.link", "os.symlink", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")


def run(source: Path, output: Path, kill_at: int | None, **options: Any) -> int:
    """Launch in a child. `kill_at`: the number of the touch at which it is killed. Return its exit status."""

    def work() -> None:
        if kill_at is not None:
            kill_at_touch(str(output), kill_at)
        run_here(source, output, **options)

    return in_child(work)


def run_here(source: Path, output: Path, **options: Any) -> None:
    made = APPLICATION(source, output)
    populate_dag, settings = made if isinstance(made, tuple) else (made, {})
    run_dag(populate_dag, settings, windows_in_flight=2, **options)


def filters(source: Path, output: Path) -> Any:
    """Keeps nothing over windows."""
    return line_filter(source, output, vectorised(), block_size=5, blocks_threshold=3)


@attrs.define
class Told(Operator):
    """Tells at the end of each window what it began with and what there is now: one wrong state makes a line that is wrong."""

    scope = "window"

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()
    count = State(0, merge=sum)
    seen = State("", merge="".join)

    def setup(self, context: OperatorContext) -> None:
        self.context, self.before = context, self.count

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        self.count += 1
        self.seen += f"{line.record} "

    def end_window(self) -> None:
        where = f"window {self.context.window}, {self.context.partition} of {self.context.partitions}"
        self.output.emit(f"{where}: {self.before} then {self.count}, {self.seen}")


def states(source: Path, output: Path) -> Any:
    """Keeps states in two partitions, or one when there is one block only, the later ones in objects of their own."""
    task_states.INLINE = 35
    reader = BlockReader[str](min_readers=1, max_readers=2)
    sink = RecordWriter[str](str(output))
    return chain(source, Told(), sink=sink, reader=reader, block_size=5, blocks_threshold=3)


@attrs.define
class Tallied(Operator):
    """Tells at the end of each window how many lines there have been so far, by their first letters."""

    scope = "window"

    input = InputPort[ReaderRecord[str]](partition_by=lambda line: line.record[:1])
    output = OutputPort[str]()
    totals = MapState[str, int]()
    changed = WindowState[dict[str, int]](factory=dict)

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        letter = line.record[:1]
        self.totals[letter] = self.changed[letter] = self.totals.get(letter, 0) + 1

    def end_window(self) -> None:
        for letter, total in self.changed.items():
            self.output.emit(f"window {self.context.window}: {total} with {letter}")


def keyed(source: Path, output: Path) -> Any:
    """Keeps state by key behind an exchange, in two partitions."""
    populate = chain(source, Tallied(), sink=RecordWriter[str](str(output)), block_size=5, blocks_threshold=3)

    def populate_dag(dag: DAG, conf: Any) -> None:
        populate(dag, conf)
        dag.set_attributes(dag.operators["m0"].operator, partitioner=StatelessPartitioner(2))

    return populate_dag


def word_count(source: Path, output: Path) -> Any:
    """The application: totals of all words in each window, in two partitions. They replace those of the window before."""
    apart = {"block_size": 5, "operator.lines.splitter.blocks_threshold": 3, "operator.count.partitioner": "2"}
    return str(Path(__file__).parents[3] / "apps" / "word_count"), {"input": str(source), "output": str(output), **apart}


def parquet(source: Path, output: Path) -> Any:
    """Several files of a table in several folders."""
    sink = ParquetWriter[Any](str(output), partition_columns=["position"], max_file_rows=1)
    return chain(source, sink=sink, block_size=5, blocks_threshold=3)


def packed(source: Path, output: Path) -> Any:
    """Files that are packed, and closed and appended to; one after the other."""
    sink = CsvWriter[Any](str(output), partition_columns=["record"], max_file_rows=2, max_open_files=1, compression="gzip")
    return chain(source, sink=sink, block_size=5, blocks_threshold=3)


def rows_in(output: Path) -> Counter[bytes]:
    """All rows of a dataset of tables, each with how often it is there, and in how many files they are."""
    rows = read_dataset(str(output)).to_table()
    found = Counter(repr(sorted(row.items())).encode() for row in rows.to_pylist())
    found[b"files"] = len(written(output))
    return found


def rows_of_current(output: Path) -> Counter[bytes]:
    """All lines of the newest snapshot, which is what the ledger names, and how many snapshots there are."""
    files = sorted(map(os.path.realpath, written(output / "current")))
    assert files == sorted(map(os.path.realpath, committed_files(str(output))))
    kept = Counter(str(path.parent) for path in (output / "_snapshots").glob("*/*"))
    return lines_in(output / "current") + Counter({b"snapshots": len(kept)})


APPLICATIONS = {"states": states, "keyed": keyed, "word_count": word_count, "parquet": parquet, "packed": packed}
APPLICATION: Any = APPLICATIONS.get(sys.argv[-1], filters)
OUTCOME: Any = rows_in if APPLICATION in (parquet, packed) else rows_of_current if APPLICATION is word_count else lines_in


def kill_at_touch(folder: str, number: int) -> None:
    left = number

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in TOUCHES and any(isinstance(a, str) and a.startswith(folder) for a in arguments):
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def case(source: Path, output: Path, expected: Counter[bytes], *kills: int, fresh: bool = False) -> tuple[bool, list[str]]:
    """Kills launches at these touches, one after the other, then lets one run. Whether any was killed, and what is wrong.

    `fresh`: what is killed starts over, on an output that is complete.
    """
    if fresh:
        run(source, output, None)
    killed = [run(source, output, kill_at, fresh=fresh) == -signal.SIGKILL for kill_at in kills]
    wrong = []
    status = run(source, output, None)
    if status != 0:
        wrong.append(f"the launch after {kills} (fresh={fresh}) ended with {status}")
    elif OUTCOME(output) != expected:
        too_many, missing = dict(OUTCOME(output) - expected), dict(expected - OUTCOME(output))
        wrong.append(f"after {kills} (fresh={fresh}): {too_many} too many, {missing} missing")
    elif unknown_states(output):
        wrong.append(f"after {kills}: {unknown_states(output)} are no states of decisions")
    elif left_over(output):
        wrong.append(f"after {kills}: {[p.name for p in left_over(output)]} left over")
    return any(killed), wrong


def unknown_states(output: Path) -> list[str]:
    """The objects with states that no kept decision names, and those that one names and that are not there."""
    log = WindowLog.open(str(output / "_dagflow"), durable=False)
    decisions = [decision for window in log.windows("decision") if (decision := log.read_decision(window)) is not None]
    named = {ref.name for each in decisions for refs in each.partition_states.values() for ref in refs if ref.name}
    return sorted(named ^ set(log.store.names("task-states/")))


def main(source: Path, folder: Path, stride: int) -> dict[str, Any]:
    run_here(source, folder / "reference")  # here, so that the children find everything imported
    expected = OUTCOME(folder / "reference")
    wrong: list[str] = []
    cases = {"continued": 0, "fresh": 0}
    for kind in cases:
        for touch in itertools.count(0, stride):
            killed, found = case(source, folder / f"{kind}{touch}", expected, touch, fresh=kind == "fresh")
            wrong += found
            if not killed:
                break
            cases[kind] += 1
            if touch % 3 == 0:  # and again, while the next launch picks up the pieces
                kills = (touch, touch // 2, 7)
                wrong += case(source, folder / f"{kind}-thrice{touch}", expected, *kills, fresh=kind == "fresh")[1]
    return {"cases": cases, "lines": sum(expected.values()), "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))))
