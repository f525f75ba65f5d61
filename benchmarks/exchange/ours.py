"""Our side: word counts, vectorised and by keyed operators of plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pyarrow.compute

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, WindowState
from dagflow.config import Bytes, MiB
from operators import BlockReader, Count, CsvWriter, FileSplitterInput, FlatMap

pc: Any = pyarrow.compute


@attrs.define
class Settings:
    """The settings of the applications below."""

    input: list[str]
    output: str
    block_size: Bytes = 64 * MiB


@attrs.define
class WordCount:
    """A word and the number of its occurrences."""

    word: str
    count: int


@attrs.define
class CountWords(Operator):
    """Counts words, as one would without knowing of batches, combiners, or operators that count."""

    input = InputPort[str](partition_by="value")
    output = OutputPort[WordCount]()
    counts = WindowState[dict[str, int]](factory=dict)

    @input.process
    def each(self, word: str) -> None:
        """Takes a word in."""
        self.counts[word] = self.counts.get(word, 0) + 1

    def end_window(self) -> None:
        """Emits the count of each word."""
        self.output.emit_all(WordCount(word, count) for word, count in self.counts.items())


@attrs.define
class CountHere(CountWords):
    """The same without a key: counts the words of its partition, as Spark does before it shuffles."""

    input = InputPort[str]()

    @input.process
    def each_here(self, word: str) -> None:
        """Takes a word in."""
        self.counts[word] = self.counts.get(word, 0) + 1


@attrs.define
class AddUp(Operator):
    """Adds up the counts of each word."""

    input = InputPort[WordCount](partition_by="word")
    output = OutputPort[WordCount]()
    counts = WindowState[dict[str, int]](factory=dict)

    @input.process
    def each(self, found: WordCount) -> None:
        """Takes a count in."""
        self.counts[found.word] = self.counts.get(found.word, 0) + found.count

    def end_window(self) -> None:
        """Emits the count of each word."""
        self.output.emit_all(WordCount(word, count) for word, count in self.counts.items())


def words_of(line: ReaderRecord[str]) -> list[str]:
    """The words of a line."""
    return line.record.split(" ")


def _chain(dag: DAG, conf: Settings, split: FlatMap[ReaderRecord[str], str], *counting: Operator) -> None:
    """Reads lines, splits them into words, hands these from one of the operators to the next, and writes what the last makes."""
    files = dag.add_operator("files", FileSplitterInput(files=conf.input, block_size=conf.block_size))
    lines = dag.add_operator("lines", BlockReader())
    words = dag.add_operator("words", split)
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, words.input)
    before: Any = words
    for number, operator in enumerate((*counting, CsvWriter[Any](conf.output, header=False))):
        after: Any = dag.add_operator(f"step{number}", operator)
        dag.add_stream(f"stream{number}", before.output, after.input)
        before = after


def vectorised(dag: DAG, conf: Settings) -> None:
    """Words by an expression, counted by an operator of the library."""
    _chain(dag, conf, FlatMap[ReaderRecord[str], str](pc.split_pattern(pc.field("record"), " ")), Count(by="value"))


def by_record(dag: DAG, conf: Settings) -> None:
    """Words by a Python function, counted by operators that get them one by one, before and behind the exchange."""
    _chain(dag, conf, FlatMap(words_of), CountHere(), AddUp())


def by_record_only_behind(dag: DAG, conf: Settings) -> None:
    """The same, but all words cross the exchange."""
    _chain(dag, conf, FlatMap(words_of), CountWords())


Application = Callable[[DAG, Settings], None]
