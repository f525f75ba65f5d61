"""Readers that take parts of blocks from one another, back and forth; in each window an executor is killed at a step of that."""

from __future__ import annotations

import time
from pathlib import Path

import attrs
from helpers import kills

from dagflow import DAG, FileBlockMetadata, InputPort, Operator, OperatorContext, OutputPort, ReaderRecord
from dagflow.runtime.rebalancing import failpoints
from operators import BlockReader, FileSplitterInput, Map, RecordWriter


@attrs.define
class Settings:
    """Copies lines, and tells the blocks that have been read. Each file of four blocks is a window."""

    input: list[str]
    output: str
    told: str  # a folder, for the numbers of the blocks
    block_size: int
    folder: str  # has a folder for each window, in which is noted who is killed
    kills: list[str]  # for each window a step of sharing, and how often it comes before that: "after grant 1"


@attrs.define
class Slow(Operator):
    """Waits as many milliseconds as a line says. Has the executor killed at a step of sharing; both readers are there then."""

    folder: str
    kills: list[str]

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[ReaderRecord[str]]()

    def setup(self, context: OperatorContext) -> None:
        place = Path(self.folder, str(context.window))
        at, _, after = self.kills[context.window].rpartition(" ")

        def hook(step: str) -> None:
            if step == at and place.exists():  # a worker may outlive its test
                kills.once(str(place), "executor", int(after))

        failpoints.hook = hook
        self.other = place / f"begun{1 - context.partition}"
        (place / f"begun{context.partition}").touch()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        while not self.other.exists():
            time.sleep(0.01)
        time.sleep(int(line.record.partition(" ")[0]) / 1000)
        self.output.emit(line)


def number_of(block: FileBlockMetadata) -> str:
    return str(block.block_id)


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Splitter → two readers → slow → writer, and the blocks that have been read → writer."""
    files = dag.add_operator("files", FileSplitterInput(files=conf.input, block_size=conf.block_size, blocks_threshold=4))
    lines = dag.add_operator("lines", BlockReader[str](min_readers=2, max_readers=2))
    slow = dag.add_operator("slow", Slow(conf.folder, conf.kills))
    writer = dag.add_operator("writer", RecordWriter[ReaderRecord[str]](path=conf.output))
    numbers = dag.add_operator("numbers", Map(number_of))
    told = dag.add_operator("told", RecordWriter[str](path=conf.told))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, slow.input)
    dag.add_stream("copied", slow.output, writer.input)
    dag.add_stream("read", lines.blocks_metadata_output, numbers.input)
    dag.add_stream("numbers", numbers.output, told.input)
