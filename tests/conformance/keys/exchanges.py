"""Operators and applications with exchanges, for the cases on both runners."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, WindowState
from dagflow.scaling import StatelessPartitioner
from operators import BlockReader, FileSplitterInput, FlatMap

Line = ReaderRecord[str]


@attrs.define
class Counted:
    word: str
    n: int


@attrs.define
class Tally(Operator):
    """Sums the numbers of each word."""

    scope = "window"

    input = InputPort[Counted](partition_by="word")
    output = OutputPort[Counted]()
    found = WindowState[dict[str, int]](factory=dict)

    @input.process
    def each(self, counted: Counted) -> None:
        self.found[counted.word] = self.found.get(counted.word, 0) + counted.n

    def end_window(self) -> None:
        for word, n in self.found.items():
            self.output.emit(Counted(word, n))


@attrs.define
class CombinedTally(Tally):
    """The same with a combiner."""

    @Tally.input.combine
    def merged(self, one: Counted, other: Counted) -> Counted:
        return Counted(one.word, one.n + other.n)


@attrs.define
class Noted(Operator):
    """Passes records on, and leaves a line in a file for each task in which it runs: a side effect that can be counted."""

    scope = "window"

    path: str
    input = InputPort[Line]()
    output = OutputPort[Line]()

    @input.process
    def each(self, line: Line) -> None:
        self.output.emit(line)

    def end_window(self) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b"ran\n")
        os.close(file)


ADAPTIVE = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1g",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.forceOptimizeSkewedJoin": "true",
    "spark.sql.adaptive.localShuffleReader.enabled": "true",
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": "true",
    "spark.sql.adaptive.skewJoin.enabled": "true",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.1",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1b",
}
"""Whatever adaptive execution can do with partitions, it shall do: all of them would fit into one, and any is a skewed one."""


@contextlib.contextmanager
def adaptive(session: Any) -> Iterator[None]:
    """While this lasts, adaptive execution does what it can."""
    before = {name: session.conf.get(name) for name in ADAPTIVE}
    try:
        for name, value in ADAPTIVE.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


def words(line: Line) -> list[Counted]:
    return [Counted(word, 1) for word in line.record.split()]


def lengths(counted: Counted) -> list[Counted]:
    return [Counted(str(len(counted.word)), 1)]


def read(dag: DAG, source: Path, **splitter: Any) -> tuple[FileSplitterInput, BlockReader[str]]:
    """Files and lines, connected."""
    files = dag.add_operator("files", FileSplitterInput(files=[str(source)], **{"block_size": 64, **splitter}))
    lines = dag.add_operator("lines", BlockReader[str]())
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    return files, lines


def split_and_tally(dag: DAG, tally: Tally, partitions: int = 3) -> tuple[FlatMap[Line, Counted], Tally]:
    """Operators that make words of lines and count them, not connected."""
    split = dag.add_operator("words", FlatMap(words))
    return split, dag.add_operator("tally", tally, partitioner=StatelessPartitioner(partitions))


def count_words(dag: DAG, source: Path, tally: Tally | None = None, **splitter: Any) -> Tally:
    """Files → lines → words → tally by word, connected."""
    _, lines = read(dag, source, **splitter)
    split, counted = split_and_tally(dag, tally or Tally())
    dag.add_stream("text", lines.messages, split.input)
    dag.add_stream("ones", split.output, counted.input)
    return counted


def expected(source: Path) -> Counter[str]:
    return Counter(word for path in source.iterdir() for word in path.read_text().split())


def as_counter(records: list[Counted]) -> Counter[str]:
    """The counts by word; a word that came twice would show up as twice as many."""
    found: Counter[str] = Counter()
    for counted in records:
        found[counted.word] += counted.n
    return found
