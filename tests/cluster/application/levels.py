"""An application of four levels whose output depends on the order in which records arrive, unless that is always the same."""

from __future__ import annotations

from typing import Any

import attrs
from helpers import kills

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, WindowState
from dagflow.scaling import StatelessPartitioner
from operators import BlockReader, FileSplitterInput, FlatMap, RecordWriter


@attrs.define
class Settings:
    """Numbers the words of all files as they come, deals them, numbers them again."""

    input: list[str]
    output: str
    kill: str = ""  # a folder: an executor is killed there, once
    at: str = ""  # the name of the operator that does it


def words(line: ReaderRecord[str]) -> list[str]:
    return line.record.split()


@attrs.define
class Numbered(Operator):
    """Puts its number before each record: in the order in which they come."""

    scope = "window"

    kill: str = ""
    input = InputPort[str]()
    output = OutputPort[str]()
    count = WindowState(0)

    @input.process
    def each(self, word: str) -> None:
        self.count += 1
        if self.kill and word.endswith("kill"):
            kills.once(self.kill, "executor")
        self.output.emit(f"{self.count}:{word}")


@attrs.define
class First(Operator):
    """Of each hundred records only the first ones with their ends: what they are depends on the order."""

    scope = "window"

    input = InputPort[str]()
    output = OutputPort[str]()
    seen = WindowState[dict[str, str]](factory=dict)
    count = WindowState(0)

    @input.process
    def each(self, word: str) -> None:
        self.count += 1
        self.seen.setdefault(word.rpartition(":")[2], word)
        if self.count % 100 == 0:
            self.flush()

    def end_window(self) -> None:
        self.flush()

    def flush(self) -> None:
        """Emits what has been kept."""
        self.output.emit_all(self.seen.values())
        self.seen = {}


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Reader → words → dealt and numbered → the first by word → dealt and numbered → written."""
    two = StatelessPartitioner(2)

    def killing(name: str) -> str:
        return conf.kill if conf.at == name else ""

    files = dag.add_operator("files", FileSplitterInput(files=conf.input, block_size=200))
    lines = dag.add_operator("lines", BlockReader[str]())
    split = dag.add_operator("split", FlatMap(words))
    dealt: Any = dag.add_operator("dealt", Numbered(killing("dealt")), partitioner=two)
    first = dag.add_operator("first", First(), partition_by=last_part, partitioner=two)
    again = dag.add_operator("again", Numbered(killing("again")), partitioner=StatelessPartitioner(3))
    writer = dag.add_operator("writer", RecordWriter[str](path=conf.output))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, split.input)
    dag.add_stream("words", split.output, dealt.input)
    dag.add_stream("numbered", dealt.output, first.input)
    dag.add_stream("firsts", first.output, again.input)
    dag.add_stream("out", again.output, writer.input)


def last_part(word: str) -> str:
    return word.rpartition(":")[2][:1]
