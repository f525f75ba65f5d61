"""Connections that type checkers must accept, as users write them. They are run too: the DAG's own check agrees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import pyarrow.compute as pc

from dagflow import (
    DAG,
    ErrorRecord,
    FileBlockMetadata,
    FileMetadata,
    InputOperator,
    InputPort,
    MapState,
    Module,
    Operator,
    OperatorContext,
    OutputPort,
    ProxyInputPort,
    ProxyOutputPort,
    ReaderRecord,
    State,
    WindowState,
)
from dagflow.testing import Collector, FakeClock, Window, run_operator
from operators import (
    BlockReader,
    Console,
    Count,
    Deduplicate,
    FileInput,
    FileSplitterInput,
    Filter,
    FixedBytesReaderContext,
    FlatMap,
    FSSliceReader,
    KeyValue,
    Map,
    RecordWriter,
    Sample,
    Split,
    Sum,
    TopN,
    Union,
)


def to_int(data: bytes) -> int | None:
    return int(data) if data else None


def is_kept(line: ReaderRecord[str]) -> bool:
    return not line.record.startswith(".")


def words_of(line: ReaderRecord[str]) -> Iterable[str]:
    return line.record.split()


def joined(parts: list[dict[str, int]]) -> dict[str, int]:
    return {key: value for part in parts for key, value in part.items()}


@attrs.define
class IntSink(Operator):
    input = InputPort[ReaderRecord[int]]()
    total = WindowState(0)
    kept = WindowState[list[int]](factory=list)
    count = State(0, merge=sum)
    ratio = State(0.0, merge=max)
    seen = State[dict[str, int]](factory=dict, merge=joined)

    @input.process
    def each(self, record: ReaderRecord[int]) -> None:
        self.total += record.record
        self.kept.append(self.total)

    def end_window(self) -> None:
        number: int = self.total
        self.total = number


@attrs.define
class Anything(Operator):
    """Takes all records: a port of object takes any type, since ports take what is more special."""

    input = InputPort[object]()

    @input.stream
    def all(self, records: Iterator[object]) -> None:
        for _ in records:
            pass


@attrs.define
class Numbers(InputOperator):
    last: int = 3
    output = OutputPort[int]()
    next_number = State(0)
    squares = MapState[int, str]()

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    def emit_tuples(self) -> None:
        if self.next_number < self.last:
            self.output.emit(self.next_number)
            self.squares[self.next_number] = str(self.next_number**2)
            self.squares.pop(self.next_number - 9, None)
            self.next_number += 1
        self.context.count("numbers", 1)


@attrs.define
class Found(Operator):
    input = InputPort[FileMetadata]()

    @input.process
    def each(self, file: FileMetadata) -> None:
        length: int = file.file_length
        assert length >= 0


class OwnWriter(RecordWriter[ReaderRecord[str]]):
    def get_file_name(self, record: ReaderRecord[str]) -> str | None:
        return f"{record.block_id}.txt"


@attrs.define
class Lengths(Module):
    """The lengths of the words in lines."""

    least: int = 1

    input = ProxyInputPort[ReaderRecord[str]]()
    output = ProxyOutputPort[int]()

    def populate_dag(self, dag: DAG) -> None:
        words = dag.add_operator("words", FlatMap(words_of))
        lengths = dag.add_operator("lengths", Map[str, int](len))
        anything = dag.add_operator("anything", Anything())
        dag.add_stream("words", words.output, lengths.input)
        self.input.set(words.input, anything.input)
        self.output.set(lengths.output)


def populate_dag(dag: DAG, conf: Any = None) -> None:
    splitter = dag.add_operator("splitter", FileSplitterInput(files=["/"]))
    reader = dag.add_operator("reader", BlockReader())
    found = dag.add_operator("found", Found())
    dag.add_stream("files", splitter.files_metadata_output, found.input)
    numbers = dag.add_operator("numbers", BlockReader(to_int))
    slices = dag.add_operator("slices", FSSliceReader(reader_context=FixedBytesReaderContext(length=4)))
    dag.add_stream(
        "blocks",
        splitter.blocks_metadata_output,
        reader.blocks_metadata_input,
        numbers.blocks_metadata_input,
        slices.blocks_metadata_input,
    )
    # a lambda's operator is of Any, and fits everywhere
    by_lambda = dag.add_operator("by_lambda", Filter(lambda line: not line.record.startswith(".")))
    by_function = dag.add_operator("by_function", Filter(is_kept))
    by_expression = dag.add_operator("by_expression", Filter[ReaderRecord[str]](pc.field("record") != ""))
    words = dag.add_operator("words", FlatMap(words_of))
    dag.add_stream("lines", reader.messages, by_lambda.input, by_function.input, by_expression.input, words.input)
    writer = dag.add_operator("writer", RecordWriter("/tmp/typing-out"))
    dag.add_stream("kept", by_lambda.output, writer.input)
    own = dag.add_operator("own", OwnWriter("/tmp/typing-own"))
    dag.add_stream("kept too", by_function.output, own.input)
    counts(dag, words)
    sink = dag.add_operator("sink", IntSink())
    dag.add_stream("numbers", numbers.messages, sink.input)
    anything = dag.add_operator("anything", Anything())
    dag.add_stream("slices", slices.messages, anything.input)
    errors = dag.add_operator("errors", Collector[ErrorRecord]())
    dag.add_stream("bad", numbers.errors, errors.input)
    files = dag.add_module("files", FileInput(["/"]))
    inside = dag.add_module("inside", Lengths(least=2))
    dag.add_stream("their lines", files.messages, inside.input)
    dag.add_stream("their lengths", inside.output, dag.add_operator("show_lengths", Console[int]()).input)
    ints = dag.add_module("ints", FileInput("/", convert_to_record=to_int))
    dag.add_stream("ints", ints.messages, dag.add_operator("int_sink", IntSink()).input)


def initial(word: str) -> str:
    return word[0]


def counts(dag: DAG, words: FlatMap[ReaderRecord[str], str]) -> None:
    """Branches and aggregates."""
    sample = dag.add_operator("sample", Sample[str](0.5))
    split = dag.add_operator("split", Split[str]({"short": lambda word: len(word) < 3}))
    both = dag.add_operator("both", Union[str](2))
    lengths = dag.add_operator("lengths", Map(len))
    dag.add_stream("all words", words.output, sample.input, lengths.input)
    dag.add_stream("all lengths", lengths.output, dag.add_operator("show", Console[int]()).input)
    dag.add_stream("some", sample.output, split.input)
    dag.add_stream("short", split.outputs["short"], both.inputs[0])
    dag.add_stream("rest", split.rest, both.inputs[1])
    by_initial = dag.add_operator("by_initial", Count(by=initial))
    by_name = dag.add_operator("by_name", Count[str, str](by="value"))
    letters = dag.add_operator("letters", Sum(str.__len__, by=initial))
    distinct, longest = dag.add_operator("distinct", Deduplicate[str]()), dag.add_operator("longest", TopN[str](3, len))
    dag.add_stream("again", both.output, by_initial.input, by_name.input, letters.input, distinct.input, longest.input)
    for name, totals in (("a", by_initial), ("b", by_name)):
        dag.add_stream(name, totals.output, dag.add_operator(f"show_{name}", Console[KeyValue[str, int]]()).input)
    dag.add_stream("c", letters.output, dag.add_operator("show_c", Console[KeyValue[str, int]]()).input)
    dag.add_stream("d", longest.output, dag.add_operator("show_d", Console[str]()).input)


def in_tests() -> None:
    found: list[Any] = run_operator(Filter(bool), {"input": [0, 1]})["output"]
    run_operator(Filter[int](lambda n: n > 1), {"input": [Window([1]), Window([2])]}, clock=FakeClock())
    lines: list[str] = Collector[str]().records
    block = FileBlockMetadata(1, "path", start=0, stop=1, file_length=1)
    position: int = block.stop
    print(found, lines, position, Numbers(last=3))
