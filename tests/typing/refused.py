"""Connections that type checkers must refuse: exactly the lines that say so, and no others. Never run."""

from __future__ import annotations

import attrs

from dagflow import DAG, FileBlockMetadata, InputPort, Module, Operator, OutputPort, ProxyInputPort, ProxyOutputPort, ReaderRecord
from dagflow.testing import Collector, run_operator
from operators import (
    BlockReader,
    Console,
    Count,
    FileInput,
    FileSplitterInput,
    Filter,
    FSSliceReader,
    KeyValue,
    Map,
    RecordWriter,
    Split,
    Union,
)


@attrs.define
class IntSink(Operator):
    input = InputPort[ReaderRecord[int]]()

    @input.process
    def each(self, record: ReaderRecord[int]) -> None: ...


@attrs.define
class Words(Operator):
    least: int = 1

    input = InputPort[str]()
    output = OutputPort[str]()

    @input.process
    def each(self, line: str) -> None:
        self.output.emit(len(line))  # error
        self.output.emit_all([1, 2])  # error
        self.outptu.emit(line)  # error


@attrs.define
class Lengths(Module):
    least: int = 1

    input = ProxyInputPort[str]()
    output = ProxyOutputPort[int]()

    def populate_dag(self, dag: DAG) -> None:
        words = dag.add_operator("words", Words())
        lengths = dag.add_operator("lengths", Map[str, int](len))
        self.input.set(words.input)
        self.output.set(lengths.output)
        # ports of other types, and the wrong way round
        self.output.set(words.output)  # error
        self.input.set(words.input, dag.add_operator("sink", IntSink()).input)  # error
        self.input.set(words.output)  # error
        self.input.set(words)  # error


def to_int(data: bytes) -> int:
    return int(data)


def is_dotted(line: ReaderRecord[str]) -> bool:
    return line.record.startswith(".")


def populate_dag(dag: DAG) -> None:
    splitter = dag.add_operator("splitter", FileSplitterInput(files=["logs"]))
    reader = dag.add_operator("reader", BlockReader())
    slices = dag.add_operator("slices", FSSliceReader())
    numbers = dag.add_operator("numbers", BlockReader(to_int))
    keep = dag.add_operator("keep", Filter(is_dotted))
    lengths = dag.add_operator("lengths", Map[str, int](len))
    words = dag.add_operator("words", Words())
    sink = dag.add_operator("sink", IntSink())

    dag.add_stream("blocks", splitter.blocks_metadata_output, numbers.blocks_metadata_input)
    # blocks are not lines, and lines are not blocks
    dag.add_stream("1", splitter.blocks_metadata_output, words.input)  # error
    dag.add_stream("2", splitter.files_metadata_output, reader.blocks_metadata_input)  # error
    dag.add_stream("3", reader.messages, reader.blocks_metadata_input)  # error
    # records of another type
    dag.add_stream("4", reader.messages, sink.input)  # error
    dag.add_stream("5", slices.messages, sink.input)  # error
    dag.add_stream("6", numbers.messages, keep.input)  # error
    dag.add_stream("7", keep.output, sink.input)  # error
    dag.add_stream("8", lengths.output, words.input)  # error
    # the second sink is as wrong as the first would be
    dag.add_stream("9", numbers.messages, sink.input, words.input)  # error
    # ports the wrong way round, operators in the place of ports, ports that are not there
    dag.add_stream("10", words.input, words.output)  # error
    dag.add_stream("11", words, words.input)  # error
    dag.add_stream("12", words.outptu, words.input)  # error
    dag.add_operator("13", "no operator")  # error
    # through the ports of modules
    files = dag.add_module("files", FileInput(["logs"]))
    ints = dag.add_module("ints", FileInput(["logs"], convert_to_record=to_int))
    inside = dag.add_module("inside", Lengths(least=2))
    dag.add_stream("14", words.output, inside.input)
    dag.add_stream("15", files.messages, inside.input)  # error
    dag.add_stream("16", inside.output, words.input)  # error
    dag.add_stream("17", files.messages, sink.input)  # error
    dag.add_stream("18", ints.messages, keep.input)  # error
    dag.add_stream("19", files.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("20", files.files_metadata_output, reader.blocks_metadata_input)  # error
    dag.add_stream("21", inside.input, words.input)  # error
    dag.add_operator("22", Lengths())  # error
    dag.add_module("23", Words())  # error
    Lengths(most=3)  # error
    FileInput(["logs"], block_size=["64 MiB"])  # error


def initial(word: str) -> str:
    return word[0]


def counts(dag: DAG, words: Words) -> None:
    count = dag.add_operator("count", Count(by=initial))
    both = dag.add_operator("both", Union[str](2))
    split = dag.add_operator("split", Split[str]({"short": lambda word: len(word) < 3}))
    lengths = dag.add_operator("lengths", Map[str, int](len))
    shown = dag.add_operator("shown", Console[KeyValue[int, int]]())
    dag.add_stream("30", lengths.output, count.input)  # error
    dag.add_stream("31", count.output, shown.input)  # error
    dag.add_stream("32", lengths.output, both.inputs[0])  # error
    dag.add_stream("33", split.outputs["short"], shown.input)  # error
    dag.add_stream("34", count.output, both.inputs[1])  # error
    dag.add_stream("35", words.output, count.input)
    Union[str]("3")  # error
    Split[str](["short"])  # error


def properties() -> None:
    from operators import RecordWrite  # error

    Words(most=3)  # error
    Words("3")  # error
    Words(on_error="ignore")  # error
    RecordWriter()  # error
    BlockReader(reader_context="lines")  # error
    Filter[str](is_dotted)  # error
    run_operator("no operator", {})  # error
    numbers: list[str] = Collector[int]().records  # error
    FileBlockMetadata(1, "path", begin=0, stop=1, file_length=1)  # error
    Console(limit="many")  # error
    print(numbers, RecordWrite)
