"""Our side: word counts, vectorised and by keyed operators of plain Python."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pyarrow.compute as pc

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, WindowState
from dagflow.config import Bytes, MiB
from operators import BlockReader, Count, CsvWriter, FileSplitterInput, FlatMap


@attrs.define
class Settings:
    """What the applications below are told."""

    input: list[str]
    output: str
    block_size: Bytes = 64 * MiB


@attrs.define
class WordCount:
    """How often a word came."""

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


def words_of(line: ReaderRecord[str]) -> list[str]:
    """The words of a line."""
    return line.record.split(" ")


def _chain(dag: DAG, conf: Settings, split: FlatMap[ReaderRecord[str], str], count: Operator) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=conf.input, block_size=conf.block_size))
    lines = dag.add_operator("lines", BlockReader())
    words = dag.add_operator("words", split)
    counts = dag.add_operator("counts", count)
    writer = dag.add_operator("writer", CsvWriter(conf.output, header=False))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("text", lines.messages, words.input)
    dag.add_stream("each", words.output, counts.input)
    dag.add_stream("totals", counts.output, writer.input)


def vectorised(dag: DAG, conf: Settings) -> None:
    """Words by an expression, counted by an operator of the library."""
    _chain(dag, conf, FlatMap[ReaderRecord[str], str](pc.split_pattern(pc.field("record"), " ")), Count(by="value"))


def by_record(dag: DAG, conf: Settings) -> None:
    """Words by a Python function, counted by an operator that gets them one by one."""
    _chain(dag, conf, FlatMap(words_of), CountWords())


Application = Callable[[DAG, Settings], None]
