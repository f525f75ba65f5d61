"""Small DAGs to plan and to draw."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow.compute as pc

from dagflow import DAG, InputPort, Module, Operator, OutputPort, ProxyInputPort, ProxyOutputPort, ReaderRecord
from dagflow.config import Secret
from operators import BlockReader, Console, FileInput, FileSplitterInput, Filter, Map, RecordWriter


@attrs.define
class Both(Operator):
    """Two inputs, one output."""

    left = InputPort[ReaderRecord[str]]()
    right = InputPort[ReaderRecord[str]]()
    output = OutputPort[ReaderRecord[str]]()

    @left.process
    def from_left(self, record: Any) -> None:
        self.output.emit(record)

    @right.process
    def from_right(self, record: Any) -> None:
        self.output.emit(record)


@attrs.define
class Keyed(Operator):
    """Has a secret."""

    password: Secret = ""
    input = InputPort[Any]()

    @input.process
    def take(self, record: Any) -> None: ...


def chain() -> DAG:
    """Splitter, reader, filter, writer: everything in batches."""
    dag = DAG("chain")
    splitter = dag.add_operator("splitter", FileSplitterInput(files=["logs"]))
    reader = dag.add_operator("reader", BlockReader(min_readers=2, max_readers=8))
    keep = dag.add_operator("keep", Filter(~pc.starts_with(pc.field("record"), ".")))
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, keep.input)
    dag.add_stream("kept", keep.output, writer.input)
    return dag


def starts(record: ReaderRecord[str]) -> bool:
    return record.record.startswith("a")


def diamond() -> DAG:
    """A stream with two sinks that meet again, a sink beside them, and a conversion."""
    dag = DAG("diamond")
    splitter = dag.add_operator("splitter", FileSplitterInput(files=["logs"]))
    reader = dag.add_operator("reader", BlockReader())
    first = dag.add_operator("first", Filter(pc.starts_with(pc.field("record"), "a")))
    second = dag.add_operator("second", Filter(starts))
    both = dag.add_operator("both", Both())
    writer = dag.add_operator("writer", RecordWriter("out"))
    errors = dag.add_operator("errors", Console())
    found = dag.add_operator("found", Console(prefix="> "))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("files", splitter.files_metadata_output, found.input)
    dag.add_stream("lines", reader.messages, first.input, second.input)
    dag.add_stream("bad", reader.errors, errors.input)
    dag.add_stream("a", first.output, both.left)
    dag.add_stream("b", second.output, both.right)
    dag.add_stream("joined", both.output, writer.input)
    return dag


@attrs.define
class Cleaned(Module):
    """Without what begins as is said; that goes to the console."""

    prefix: str = "."

    input = ProxyInputPort[ReaderRecord[str]]()
    output = ProxyOutputPort[ReaderRecord[str]]()

    def populate_dag(self, dag: DAG) -> None:
        keep = dag.add_operator("keep", Filter(~pc.starts_with(pc.field("record"), self.prefix)))
        drop = dag.add_operator("drop", Filter(pc.starts_with(pc.field("record"), self.prefix)))
        show = dag.add_operator("show", Console())
        dag.add_stream("dropped", drop.output, show.input)
        self.input.set(keep.input, drop.input)
        self.output.set(keep.output)


@attrs.define
class CleanedFiles(Module):
    """Modules in a module, on the driver and in a stage."""

    files: list[str]
    output = ProxyOutputPort[ReaderRecord[str]]()

    def populate_dag(self, dag: DAG) -> None:
        files = dag.add_module("input", FileInput(self.files, max_readers=8))
        cleaned = dag.add_module("cleaned", Cleaned(prefix="#"))
        dag.add_stream("lines", files.messages, cleaned.input)
        self.output.set(cleaned.output)


def modules() -> DAG:
    """A module with two more in it, and a sink."""
    dag = DAG("modules")
    lines = dag.add_module("lines", CleanedFiles(["logs"]))
    writer = dag.add_operator("writer", RecordWriter("out"))
    dag.add_stream("kept", lines.output, writer.input)
    return dag


def circle() -> DAG:
    """Two operators that feed each other: no DAG, but it can be drawn as written."""
    dag = DAG("circle")
    one = dag.add_operator("one", Map(str))
    two = dag.add_operator("two", Map(str))
    dag.add_stream("there", one.output, two.input)
    dag.add_stream("back", two.output, one.input)
    return dag
