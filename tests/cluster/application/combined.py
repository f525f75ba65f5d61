"""Records that are combined before they cross an exchange, a hundred keys at a time: what comes of it is told in order."""

from __future__ import annotations

from typing import Any

import attrs
from helpers import kills

from dagflow import DAG, InputPort, Operator, OperatorContext, OutputPort, ReaderRecord, WindowState
from dagflow.runtime.exchange import sender
from dagflow.scaling import StatelessPartitioner
from operators import BlockReader, FileSplitterInput, RecordWriter


@attrs.define
class Settings:
    """Tells of each word where it stands: in the order, and in the pieces, in which that came."""

    input: list[str]
    output: str
    kill: str = ""  # a folder: an executor is killed there, once
    at: str = ""  # the method that does it


@attrs.frozen
class Trail:
    """A word, and where it stands."""

    word: str
    places: str


@attrs.define
class Words(Operator):
    """The words of lines. Combiners of its process give away what they have when they know a hundred keys."""

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[Trail]()

    def setup(self, context: OperatorContext) -> None:
        sender.KEYS = 100

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        self.output.emit_all(Trail(word, str(line.position)) for word in line.record.split())


@attrs.define
class Trails(Operator):
    """Puts together what there is of each word."""

    scope = "window"

    kill: str
    at: str
    input = InputPort[Trail](partition_by="word")
    output = OutputPort[str]()
    found = WindowState[dict[str, list[str]]](factory=dict)

    @input.process
    def process(self, trail: Trail) -> None:
        self._may_kill("process", trail.word)
        self.found.setdefault(trail.word, []).append(trail.places)

    @input.combine
    def combine(self, one: Trail, other: Trail) -> Trail:
        self._may_kill("combine", one.word)
        return Trail(one.word, f"{one.places}+{other.places}")

    def end_window(self) -> None:
        self.output.emit_all(f"{word},{','.join(pieces)}" for word, pieces in self.found.items())

    def _may_kill(self, at: str, word: str) -> None:
        if self.kill and self.at == at and word == "kill":
            kills.once(self.kill, "executor")


@attrs.define
class Numbered(Operator):
    """Puts its number before each record: in the order in which they come."""

    scope = "window"

    kill: str
    at: str
    input = InputPort[str]()
    output = OutputPort[str]()
    count = WindowState(0)

    @input.process
    def each(self, trail: str) -> None:
        self.count += 1
        if self.kill and self.at == "numbered" and trail.startswith("kill,"):
            kills.once(self.kill, "executor")
        self.output.emit(f"{self.count},{trail}")


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Reader → words → trails, combined → dealt and numbered → written."""
    files = dag.add_operator("files", FileSplitterInput(files=conf.input, block_size=200))
    lines = dag.add_operator("lines", BlockReader[str](min_readers=2, max_readers=2))
    words = dag.add_operator("words", Words())
    trails: Any = dag.add_operator("trails", Trails(conf.kill, conf.at), partitioner=StatelessPartitioner(2))
    numbered: Any = dag.add_operator("numbered", Numbered(conf.kill, conf.at), partitioner=StatelessPartitioner(3))
    writer = dag.add_operator("writer", RecordWriter[str](path=conf.output))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, words.input)
    dag.add_stream("words", words.output, trails.input)
    dag.add_stream("trails", trails.output, numbered.input)
    dag.add_stream("out", numbered.output, writer.input)
