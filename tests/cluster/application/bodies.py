"""A body of DataFrames between levels that depend on the order of what comes to them."""

from __future__ import annotations

from typing import Any

import attrs
from helpers import kills

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, WindowState
from dagflow.scaling import StatelessPartitioner
from operators import BlockReader, FileSplitterInput, FlatMap, RecordWriter, SparkOperator


@attrs.define
class Settings:
    """Counts words, joins the counts with themselves, and numbers what comes of that."""

    input: list[str]
    output: str
    kill: str = ""  # a folder: an executor is killed there, once, behind the body


@attrs.frozen
class Word:
    """A word, and how often it is there."""

    word: str
    n: int


def words(line: ReaderRecord[str]) -> list[Word]:
    return [Word(word, 1) for word in line.record.split()]


def joined(frame: Any) -> Any:
    counts = frame.groupBy("word").sum("n").withColumnRenamed("sum(n)", "n")
    return counts.join(frame.select("word").distinct(), "word")


@attrs.define
class Numbered(Operator):
    """Puts its number before each record: in the order in which they come."""

    scope = "window"

    kill: str = ""
    input = InputPort[Word]()
    output = OutputPort[str]()
    count = WindowState(0)

    @input.process
    def each(self, word: Word) -> None:
        self.count += 1
        if self.kill and word.word == "kill":
            kills.once(self.kill, "executor")
        self.output.emit(f"{self.count}:{word.word}:{word.n}")


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Reader → words → the body → numbered → dealt and numbered → written."""
    files = dag.add_operator("files", FileSplitterInput(files=conf.input, block_size=200))
    lines = dag.add_operator("lines", BlockReader[str](min_readers=2, max_readers=2))
    split = dag.add_operator("split", FlatMap(words))
    body: Any = dag.add_operator("body", SparkOperator[Word, Word](joined), partitioner=StatelessPartitioner(2))
    numbered: Any = dag.add_operator("numbered", Numbered(conf.kill), partitioner=StatelessPartitioner(3))
    writer = dag.add_operator("writer", RecordWriter[str](path=conf.output))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, split.input)
    dag.add_stream("words", split.output, body.input)
    dag.add_stream("counted", body.output, numbered.input)
    dag.add_stream("out", numbered.output, writer.input)
