"""Every check of a DAG, with the words that a user reads; places in the user's code are shown as LINE."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import pytest

from dagflow import DAG, InputOperator, InputPort, MapState, Operator, OutputPort, ReaderRecord, State
from dagflow.errors import (
    ClassWrong,
    Cycle,
    DagErrors,
    DuplicateName,
    EmptyDag,
    EmptyName,
    ForeignPort,
    InputUnconnected,
    NotAnOperator,
    NotPartitionable,
    OutputUnconnected,
    PortTaken,
    PortTypeError,
    PropertyRefused,
    RootNotInput,
    SourceTaken,
    StreamWithoutSink,
    UnknownName,
)
from dagflow.model.graph.checks import check
from operators import BlockReader, FileSplitterInput, Filter


@attrs.define
class Source(InputOperator):
    output = OutputPort[str]()


@attrs.define
class Step(Operator):
    input = InputPort[str]()
    output = OutputPort[str]()

    @input.process
    def each(self, record: str) -> None:
        self.output.emit(record)


@attrs.define
class Join(Operator):
    """Two inputs, one of which must be there; an output that must be connected."""

    left = InputPort[str]()
    right = InputPort[str](optional=True)
    output = OutputPort[str](optional=False)


@attrs.define
class IntSink(Operator):
    input = InputPort[ReaderRecord[int]]()


def cycle(dag: DAG) -> None:
    source, a, b = dag.add_operator("source", Source()), dag.add_operator("a", Join()), dag.add_operator("b", Step())
    dag.add_stream("s1", source.output, a.left)
    dag.add_stream("s2", a.output, b.input)
    dag.add_stream("s3", b.output, a.right)


def chain(dag: DAG) -> tuple[Source, Step]:
    source, step = dag.add_operator("source", Source()), dag.add_operator("step", Step())
    dag.add_stream("stream", source.output, step.input)
    return source, step


def wrong_types(dag: DAG) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    reader = dag.add_operator("reader", BlockReader())
    keep = dag.add_operator("keep", Filter(lambda line: True))
    sink = dag.add_operator("sink", IntSink())
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, keep.input)
    dag.add_stream("kept", keep.output, sink.input)


def two_of_a_name(dag: DAG) -> None:
    chain(dag)
    dag.add_operator("source", Source())


def two_streams_of_a_name(dag: DAG) -> None:
    _, step = chain(dag)
    dag.add_stream("stream", step.output, dag.add_operator("last", Step()).input)
    dag.add_stream("other", step.output, dag.operators["last"].operator.input)  # type: ignore[attr-defined]


def no_name(dag: DAG) -> None:
    chain(dag)
    dag.add_operator("", Source())


def no_operator(dag: DAG) -> None:
    chain(dag)
    dag.add_operator("text", "no operator")  # type: ignore[type-var]


def operator_as_port(dag: DAG) -> None:
    source = dag.add_operator("source", Source())
    chained: Any = source
    step = dag.add_operator("step", Step())
    dag.add_stream("stream", chained, step.input)
    dag.add_stream("right", source.output, step.input)


def foreign(dag: DAG) -> None:
    chain(dag)
    dag.add_stream("far", Source().output, Step().input)


def two_into_one(dag: DAG) -> None:
    _, step = chain(dag)
    dag.add_stream("second", dag.add_operator("other", Source()).output, step.input)


def two_from_one(dag: DAG) -> None:
    source, _ = chain(dag)
    dag.add_stream("second", source.output, dag.add_operator("other", Step()).input)
    dag.add_stream("third", dag.add_operator("more", Source()).output, dag.operators["other"].operator.input)  # type: ignore[attr-defined]


def no_sink(dag: DAG) -> None:
    _, step = chain(dag)
    dag.add_stream("nowhere", step.output)


def refused_properties(dag: DAG) -> None:
    files = dag.add_operator("files", FileSplitterInput(files=["/"]))
    reader = dag.add_operator("reader", BlockReader(min_readers=5, max_readers=2))
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)


class Places(Operator):
    input = InputPort[str]()

    seen = MapState[tuple[int, int], int]()
    named = MapState[str, tuple[int, int]]()
    either = MapState[str | int, int]()


def keys_that_cannot_be_written(dag: DAG) -> None:
    _, step = chain(dag)
    dag.add_stream("places", step.output, dag.add_operator("places", Places()).input)


@attrs.frozen
class At:
    time: datetime.datetime


class Unsaved(Operator):
    input = InputPort[str](partition_by=len)

    names = MapState[str, list[set[str]]]()
    times = MapState[str, At | None]()
    numbers = MapState[str, dict[int, int]]()
    total = State[Any](factory=set, merge=lambda parts: set().union(*parts))
    tree = MapState[str, dict[str, list[tuple[int, ...] | None]]]()


def states_that_cannot_be_saved(dag: DAG) -> None:
    _, step = chain(dag)
    dag.add_stream("unsaved", step.output, dag.add_operator("unsaved", Unsaved()).input)


class Shared(Operator):
    input = InputPort[str]()

    seen = set()  # type: ignore[var-annotated]  # the mistake
    CODES = {"a": 1}
    known: ClassVar[list[str]] = []


def a_shared_set(dag: DAG) -> None:
    _, step = chain(dag)
    dag.add_stream("shared", step.output, dag.add_operator("shared", Shared()).input)


class Lost(Operator):
    input = InputPort[str]()

    def output_folders(self) -> list[str]:
        return [{}["path"]]


def broken_output_folders(dag: DAG) -> None:
    _, step = chain(dag)
    dag.add_stream("lost", step.output, dag.add_operator("sink", Lost()).input)


def partitioned_splitter(dag: DAG) -> None:
    chain(dag)
    dag.set_attributes(dag.operators["source"].operator, partitioner=object())


def unconnected_input(dag: DAG) -> None:
    source, join = dag.add_operator("source", Source()), dag.add_operator("join", Join())
    dag.add_stream("right", source.output, join.right)
    dag.add_stream("out", join.output, dag.add_operator("last", Step()).input)


def unconnected_output(dag: DAG) -> None:
    source, join = dag.add_operator("source", Source()), dag.add_operator("join", Join())
    dag.add_stream("left", source.output, join.left)


def root(dag: DAG) -> None:
    chain(dag)
    dag.add_operator("alone", Step())


def unknown_attribute(dag: DAG) -> None:
    _, step = chain(dag)
    dag.set_attributes(step, partitoner=3)


CASES: list[tuple[Callable[[DAG], object], type, str, str]] = [
    (
        lambda dag: None,
        EmptyDag,
        "DF016",
        "application 'app' has no operators\n  help: populate_dag(dag, conf) adds them with dag.add_operator(name, operator)",
    ),
    (
        two_of_a_name,
        DuplicateName,
        "DF001",
        "two operators are called 'source'\n  first   LINE\n  second  LINE\n  help: give one of them another name",
    ),
    (
        two_streams_of_a_name,
        DuplicateName,
        "DF001",
        "two streams are called 'stream'\n  first   LINE\n  second  LINE\n  help: give one of them another name",
    ),
    (
        no_name,
        EmptyName,
        "DF002",
        "'' is not a valid name for an operator (LINE)\n"
        "  help: a name is not empty, and consists of letters, digits, '_', '-' and blanks",
    ),
    (no_operator, NotAnOperator, "DF003", "'no operator' was given where an operator (named 'text') is expected (LINE)"),
    (
        operator_as_port,
        NotAnOperator,
        "DF003",
        "the operator Source (its ports: errors, output) was given where an output port (stream 'stream') is expected (LINE)",
    ),
    (
        two_into_one,
        PortTaken,
        "DF005",
        "two streams lead into step.input\n  'stream'  LINE\n  'second'  LINE\n"
        "  help: an input port takes one stream: merge the two with Union, or give the operator a second input port",
    ),
    (
        two_from_one,
        SourceTaken,
        "DF006",
        "two streams start at source.output\n  'stream'  LINE\n  'second'  LINE\n"
        "  help: one stream may have many sinks: add the sink to 'stream'",
    ),
    (
        refused_properties,
        PropertyRefused,
        "DF007",
        "operator 'reader' has invalid properties: min_readers is 5, more than max_readers = 2\n  LINE",
    ),
    (
        keys_that_cannot_be_written,
        ClassWrong,
        "DF018",
        "class Places: the keys of MapState 'seen' are tuple[int, int] (LINE)\n  help: keys are str or int: make text of them",
    ),
    (
        a_shared_set,
        ClassWrong,
        "DF018",
        "class Shared: seen is a set that all copies of the operator share, over windows and partitions (LINE)\n"
        "  help: write seen = WindowState(factory=set), which begins anew with each window, or State(…) or MapState(…) for what "
        "is kept over windows; if nothing changes it, write it in capitals, SEEN, or make it a tuple, a frozenset or a "
        "MappingProxyType",
    ),
    (
        broken_output_folders,
        PropertyRefused,
        "DF007",
        "operator 'sink' has invalid properties: output_folders() raised KeyError: 'path'\n  LINE",
    ),
    (
        partitioned_splitter,
        NotPartitionable,
        "DF008",
        "operator 'source' is not partitionable, but it has a partitioner\n  LINE\n"
        "  help: use one partition, or remove the line `partitionable = False` from its class",
    ),
    (
        unconnected_input,
        InputUnconnected,
        "DF009",
        "input port join.left (str) is not connected\n  LINE\n  help: dag.add_stream(name, source, join.left)",
    ),
    (
        unconnected_output,
        OutputUnconnected,
        "DF011",
        "output port join.output (str) must be connected, but is not\n  LINE\n  help: dag.add_stream(name, join.output, sink)",
    ),
    (
        wrong_types,
        PortTypeError,
        "DF012",
        "stream 'kept' joins ports of different types (LINE)\n"
        "  from keep.output  ReaderRecord[str]  LINE\n"
        "  to   sink.input   ReaderRecord[int]  LINE\n"
        "  difference: str is not int\n"
        "  help: put an operator between them that makes ReaderRecord[int] of ReaderRecord[str], such as Map(function)",
    ),
    (
        cycle,
        Cycle,
        "DF013",
        "the streams form a cycle: a → b → a\n  a → b  stream 's2'  LINE\n  b → a  stream 's3'  LINE\n"
        "  help: a DAG has no cycles: remove one of these streams",
    ),
    (
        no_sink,
        StreamWithoutSink,
        "DF014",
        "stream 'nowhere' has no sink (LINE)\n  help: name at least one input port: dag.add_stream('nowhere', source, sink)",
    ),
    (
        root,
        RootNotInput,
        "DF015",
        "operator 'alone' (Step) gets no records: nothing is connected to it, and it is not an input operator\n  LINE\n"
        "  help: connect one of its input ports, or derive its class from InputOperator",
    ),
    (
        unknown_attribute,
        UnknownName,
        "DF017",
        "there is no attribute of an operator 'partitoner' (LINE). Did you mean 'partitioner'?",
    ),
]


@pytest.mark.parametrize(("populate", "kind", "code", "text"), CASES, ids=[case[0].__name__ for case in CASES])
def test_each_mistake_has_its_words(populate: Callable[[DAG], object], kind: type, code: str, text: str) -> None:
    dag = DAG("app")
    populate(dag)
    with pytest.raises(kind) as caught:
        check(dag)
    assert caught.value.code == code  # type: ignore[attr-defined]
    assert caught.value.exit_code == 2  # type: ignore[attr-defined]
    assert re.sub(r"tests/model/graph/test_checks\.py:\d+", "LINE", str(caught.value)) == text


def test_foreign_ports_at_both_ends() -> None:
    dag = DAG()
    foreign(dag)
    with pytest.raises(DagErrors) as caught:
        check(dag)
    assert [type(problem) for problem in caught.value.problems] == [ForeignPort, ForeignPort]
    assert re.sub(r" \(.*:\d+\)", "", str(caught.value.problems[0])) == (
        "stream 'far' names port Source.output, whose operator is not in this DAG\n"
        "  help: add the operator with dag.add_operator(name, operator) first, and use the ports of the operator that it returns"
    )


def test_all_problems_are_reported_together() -> None:
    dag = DAG()
    wrong_types(dag)
    root(dag)
    no_sink_here = dag.add_operator("last", Step())
    dag.add_stream("nowhere", no_sink_here.output)
    with pytest.raises(DagErrors) as caught:
        check(dag)
    assert [problem.code for problem in caught.value.problems] == ["DF014", "DF015", "DF015", "DF012"]
    assert str(caught.value).startswith("4 problems in the DAG\n\nDF014 stream 'nowhere' has no sink")


def test_a_dag_without_problems_is_sorted_and_typed() -> None:
    dag = DAG()
    sink = dag.add_operator("sink", Step())
    keep = dag.add_operator("keep", Filter(str.isalpha))
    source = dag.add_operator("source", Source())
    dag.add_stream("kept", keep.output, sink.input)
    dag.add_stream("all", source.output, keep.input)
    checked = check(dag)
    assert list(checked.nodes) == ["source", "keep", "sink"]
    assert {str(port): tp for port, tp in checked.types.items() if port.port != "errors"} == {
        "source.output": str,
        "keep.input": str,
        "keep.output": str,
        "sink.input": str,
        "sink.output": str,
    }
    assert [(str(a), str(b)) for a, b in checked.upstream("sink")] == [("keep.output", "sink.input")]


def test_an_unknown_operator_is_answered_with_the_nearest() -> None:
    dag = DAG()
    chain(dag)
    assert isinstance(dag.operator("step"), Step)
    with pytest.raises(UnknownName, match=r"there is no operator 'stpe'\. Did you mean 'step'\?"):
        dag.operator("stpe")


def test_one_operator_object_has_one_name() -> None:
    dag = DAG()
    source = dag.add_operator("one", Source())
    dag.add_operator("one", source)  # saying it twice does no harm
    assert not dag.problems
    dag.add_operator("two", source)
    assert "an operator of its own (this one is 'one' already)" in str(dag.problems[0])


def test_states_that_can_never_be_saved_are_refused_together() -> None:
    dag = DAG("unsaved")
    states_that_cannot_be_saved(dag)
    with pytest.raises(DagErrors) as caught:
        check(dag)
    assert [re.sub(r" \(.*", "", problem.message().partition("\n")[0]) for problem in caught.value.problems] == [
        "class Unsaved: MapState 'names' keeps a set, which cannot be saved",
        "class Unsaved: MapState 'times' keeps a datetime in At, which cannot be saved",
        "class Unsaved: MapState 'numbers' keeps a dict with keys of type int, which cannot be saved",
        "class Unsaved: State 'total' keeps a set, which cannot be saved",
    ]
