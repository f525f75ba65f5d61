"""DAGs with exchanges, of many shapes, to plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import attrs

from dagflow import DAG, InputPort, MapState, Module, Operator, OutputPort, ProxyOutputPort, ReaderRecord
from dagflow.scaling import StatelessPartitioner
from operators import (
    BlockReader,
    Console,
    Count,
    FileInput,
    FileSplitterInput,
    FlatMap,
    JsonLinesWriter,
    KeyValue,
    Map,
    RecordWriter,
    SparkOperator,
    Sum,
    TopN,
    Union,
)


@attrs.define
class Counted:
    word: str
    n: int


class Plain:
    """No Arrow form."""


@attrs.define
class Tally(Operator):
    input = InputPort[Counted](partition_by="word")
    output = OutputPort[Counted]()

    @input.process
    def each(self, counted: Counted) -> None: ...

    @input.combine
    def combine(self, one: Counted, other: Counted) -> Counted:
        return Counted(one.word, one.n + other.n)


@attrs.define
class Join(Operator):
    left = InputPort[Counted](partition_by="word")
    right = InputPort[Any](partition_by=str)
    output = OutputPort[Counted]()

    @left.process
    def from_left(self, counted: Counted) -> None: ...

    @right.process
    def from_right(self, record: Any) -> None: ...


@attrs.define
class Alone(Operator):
    partitionable: ClassVar[bool] = False
    input = InputPort[Any]()

    @input.process
    def each(self, record: Any) -> None: ...


def words(line: ReaderRecord[str]) -> list[Counted]:
    return [Counted(word, 1) for word in line.record.split()]


def plain(line: ReaderRecord[str]) -> Plain:
    return Plain()


def read(name: str) -> tuple[DAG, Any, Any]:
    dag = DAG(name)
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    lines = dag.add_operator("lines", BlockReader[str]())
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    return dag, files, lines


def counted(name: str) -> tuple[DAG, Any, Any, Tally]:
    dag, files, lines = read(name)
    split = dag.add_operator("words", FlatMap(words))
    tally = dag.add_operator("tally", Tally())
    dag.add_stream("text", lines.messages, split.input)
    dag.add_stream("ones", split.output, tally.input)
    return dag, files, lines, tally


def keyed() -> DAG:
    """Word count."""
    dag, *_, tally = counted("keyed")
    dag.add_stream("totals", tally.output, dag.add_operator("show", Console()).input)
    return dag


def two_levels() -> DAG:
    """A keyed operator behind a keyed operator, a sink in each level."""
    dag, _, lines, tally = counted("two_levels")
    second = dag.add_operator("second", Tally(), partition_by="n", partitioner=StatelessPartitioner(2))
    bad = dag.add_operator("bad", Console())
    show = dag.add_operator("show", Console())
    dag.add_stream("totals", tally.output, second.input, show.input)
    dag.add_stream("of n", second.output, dag.add_operator("last", Console()).input)
    dag.add_stream("errors", lines.errors, bad.input)
    return dag


def fan_in() -> DAG:
    """Inputs of the driver, of level 0 and of level 1: the streams cross one exchange or two."""
    dag, files, lines, tally = counted("fan_in")
    join = dag.add_operator("join", Join())
    other = dag.add_operator("other", Join())
    dag.add_stream("totals", tally.output, join.left, other.left)
    dag.add_stream("found", files.files_metadata_output, join.right)
    dag.add_stream("errors", lines.errors, other.right)
    return dag


def forwarded() -> DAG:
    """One port is parallel, the other round-robin: records of the parallel one are forwarded."""
    dag, _, lines, tally = counted("forwarded")
    join = dag.add_operator("join", Join(), partition_by=None)
    dag.set_port_attributes(join.right, partition_parallel=False)
    dag.add_stream("totals", tally.output, join.left)
    dag.add_stream("errors", lines.errors, join.right)
    return dag


def round_robin() -> DAG:
    """A number of partitions of its own, and a sink in one."""
    dag, _, lines = read("round_robin")
    copy = dag.add_operator("copy", Map(str), partitioner=StatelessPartitioner(4))
    out = dag.add_operator("out", RecordWriter[str]("out"), partitioner=StatelessPartitioner(1))
    dag.add_stream("text", lines.messages, copy.input)
    dag.add_stream("copied", copy.output, out.input)
    return dag


def alone() -> DAG:
    """An operator that is not partitionable."""
    dag, _, lines = read("alone")
    dag.add_stream("text", lines.messages, dag.add_operator("alone", Alone()).input)
    return dag


def pickled() -> DAG:
    """A type without an Arrow form."""
    dag, _, lines = read("pickled")
    made = dag.add_operator("made", Map(plain))
    deal = dag.add_operator("deal", Alone())
    dag.add_stream("text", lines.messages, made.input)
    dag.add_stream("made", made.output, deal.input)
    return dag


def totals(frame: Any) -> Any:
    return frame.groupBy("word").sum("n")


def in_spark() -> DAG:
    """A body of DataFrames beside a keyed operator, and a sink behind each."""
    dag, _, lines = read("in_spark")
    split = dag.add_operator("words", FlatMap(words))
    body = dag.add_operator("body", SparkOperator[Counted, Counted](totals))
    tally = dag.add_operator("tally", Tally())
    dag.add_stream("text", lines.messages, split.input)
    dag.add_stream("ones", split.output, body.input, tally.input)
    dag.add_stream("made", body.output, dag.add_operator("out", JsonLinesWriter[Counted]("out")).input)
    dag.add_stream("totals", tally.output, dag.add_operator("show", Console()).input)
    return dag


def two_sinks() -> DAG:
    """A diamond: two ways that meet in a keyed operator, and a sink in each level."""
    dag, _, _, tally = counted("two_sinks")
    other = dag.add_operator("other", Tally(), partition_by="n")
    both = dag.add_operator("both", Union[Counted](2), partitioner=StatelessPartitioner(3))
    dag.add_stream(
        "totals", tally.output, other.input, both.inputs[0], dag.add_operator("out", JsonLinesWriter[Counted]("out")).input
    )
    dag.add_stream("of n", other.output, both.inputs[1])
    dag.add_stream("all", both.output, dag.add_operator("all", JsonLinesWriter[Counted]("all")).input)
    return dag


@attrs.define
class Words(Module):
    """Lines, and how often each word is in them: a module in which there is another one."""

    files: list[str]
    output = ProxyOutputPort[KeyValue[str, int]]()

    def populate_dag(self, dag: DAG) -> None:
        text = dag.add_module("text", FileInput(self.files))
        split = dag.add_operator("split", FlatMap[ReaderRecord[str], str](_words))
        count = dag.add_operator("count", Count[str, str](by="value"))
        dag.add_stream("lines", text.messages, split.input)
        dag.add_stream("each", split.output, count.input)
        self.output.set(count.output)


def _words(line: ReaderRecord[str]) -> list[str]:
    return line.record.split()


def nested() -> DAG:
    """An exchange in a module that is next to a module."""
    dag = DAG("nested")
    words_of = dag.add_module("words", Words(["logs"]))
    top = dag.add_operator("top", TopN[KeyValue[str, int]](10, "value"))
    dag.add_stream("counts", words_of.output, top.input)
    dag.add_stream("top", top.output, dag.add_operator("show", Console()).input)
    return dag


@attrs.define
class Running(Tally):
    totals = MapState[str, int]()


def with_state() -> DAG:
    """Three levels; what is known of each word, and of each number, stays over windows."""
    dag, _, _, tally = counted("with_state")
    running = dag.add_operator("running", Running())
    sums = dag.add_operator("sums", Sum[Counted, int, int]("n", by="n"), partitioner=StatelessPartitioner(2))
    dag.add_stream("totals", tally.output, running.input)
    dag.add_stream("so far", running.output, sums.input)
    dag.add_stream("sums", sums.output, dag.add_operator("show", Console()).input)
    return dag


SHAPES: tuple[Callable[[], DAG], ...] = (
    keyed,
    two_levels,
    fan_in,
    forwarded,
    round_robin,
    alone,
    pickled,
    in_spark,
    two_sinks,
    nested,
    with_state,
)
