"""DAGs with exchanges, of many shapes, to plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import attrs

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord
from dagflow.scaling import StatelessPartitioner
from operators import BlockReader, Console, FileSplitterInput, FlatMap, Map, RecordWriter, SparkOperator


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


def along() -> DAG:
    """One port is parallel, the other is dealt: what is parallel goes along."""
    dag, _, lines, tally = counted("along")
    join = dag.add_operator("join", Join(), partition_by=None)
    dag.set_port_attributes(join.right, partition_parallel=False)
    dag.add_stream("totals", tally.output, join.left)
    dag.add_stream("errors", lines.errors, join.right)
    return dag


def dealt() -> DAG:
    """A number of partitions of its own, and a sink in one."""
    dag, _, lines = read("dealt")
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
    dag.add_stream("made", body.output, dag.add_operator("out", RecordWriter[Counted]("out")).input)
    dag.add_stream("totals", tally.output, dag.add_operator("show", Console()).input)
    return dag


SHAPES: tuple[Callable[[], DAG], ...] = (keyed, two_levels, fan_in, along, dealt, alone, pickled, in_spark)
