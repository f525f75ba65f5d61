"""Errors in functions of the user's name operator, window, where the record comes from, and the user's line: everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG, InputPort, Module, Operator, OperatorContext, OutputPort, ProxyInputPort, ProxyOutputPort, WindowState
from dagflow.errors import OperatorFailed
from dagflow.testing import Collector, run_dag
from operators import Count, Deduplicate, Filter, FlatMap, HashJoin, Map, Min, Sample, Split, Sum, TopN, Tumbling
from tests.conformance.keys.exchanges import Counted, read, words


def text(counted: Counted) -> str:
    if counted.word == "dog":
        raise ValueError("this line")
    return counted.word


def number(counted: Counted) -> int:
    return len(text(counted))


def both(one: Counted, other: Counted | None) -> str:
    return text(one)


@attrs.define
class ByKey(Operator):
    """Passes on what comes by a key of the user's."""

    input = InputPort[Counted](partition_by=text)
    output = OutputPort[Counted]()

    @input.process
    def each(self, counted: Counted) -> None:
        self.output.emit(counted)


@attrs.define
class Combined(Operator):
    input = InputPort[Counted](partition_by="n")
    output = OutputPort[Counted]()

    @input.process
    def each(self, counted: Counted) -> None:
        self.output.emit(counted)

    @input.combine
    def combine(self, one: Counted, other: Counted) -> Counted:
        return Counted(text(other), one.n)


@attrs.define
class CombinedInBatches(Operator):
    input = InputPort[Counted](partition_by="n")
    output = OutputPort[Counted]()

    @input.process
    def each(self, counted: Counted) -> None:
        self.output.emit(counted)

    @input.combine_batch
    def combine_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        for word in batch["word"].to_pylist():
            text(Counted(word, 1))
        return batch


@attrs.define
class Later(Operator):
    """Handles records when all have come, and says which one fails."""

    scope = "window"

    input = InputPort[Counted](partition_by="word")
    output = OutputPort[str]()
    waiting = WindowState[list[Any]](factory=list)

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    @input.process
    def each(self, counted: Counted) -> None:
        self.waiting.append((counted, self.context.place))

    def end_window(self) -> None:
        for counted, place in self.waiting:
            try:
                self.output.emit(text(counted))
            except ValueError as error:
                self.context.blame(error, counted, place)
                raise


@attrs.define
class AtTheEnd(Operator):
    scope = "window"
    input = InputPort[Counted](partition_by="word")
    output = OutputPort[Counted]()
    seen = WindowState[list[Counted]](factory=list)

    @input.process
    def each(self, counted: Counted) -> None:
        self.seen.append(counted)

    def end_window(self) -> None:
        for counted in self.seen:
            text(counted)


@attrs.define
class Within(Module):
    input = ProxyInputPort[Counted]()
    output = ProxyOutputPort[Any]()

    def populate_dag(self, dag: DAG) -> None:
        inner = dag.add_operator("inner", Count(by=text, combiner=False))
        self.input.set(inner.input)
        self.output.set(inner.output)


BEFORE = "a.txt, at or after position"
BEHIND = "task s0-0000, which was given bytes 0 to"
CASES: dict[str, tuple[Callable[[], Any], str, str | None]] = {
    "map": (lambda: Map(text), "it", BEFORE),
    "filter": (lambda: Filter(text), "it", BEFORE),
    "sample": (lambda: Sample(0.5, key=text), "it", BEFORE),
    "key": (ByKey, "it", BEFORE),
    "combiner": (Combined, "it", BEFORE),
    "combiner of batches": (CombinedInBatches, "it", BEHIND),
    "later": (Later, "it", BEHIND),
    "end of a window": (AtTheEnd, "it", None),
    "module": (Within, "it.inner", BEFORE),
    "ahead": (lambda: Count(by=text), "it.partial", BEFORE),
    "values ahead": (lambda: Sum(number, by="word"), "it.partial", BEFORE),
    "values": (lambda: Min(number, by="word", combiner=False), "it", BEHIND),
    "top": (lambda: TopN(2, number, by="word", combiner=False), "it", BEHIND),
    "equal": (lambda: Deduplicate(by=text), "it.partial", BEFORE),
    "event time": (lambda: Tumbling(60, time=number, by="word"), "it", BEHIND),
    "windows": (lambda: Tumbling(60, time=lambda _: 1, by="word", aggregate="sum", of=number), "it", BEHIND),
    "join's key": (lambda: HashJoin(text, combine=both), "it", BEFORE),
    "join": (lambda: HashJoin("word", combine=both), "it", BEHIND),
    "join without a partner": (lambda: HashJoin("word", right_by="n", how="left", combine=both), "it", BEHIND),
}


def failing(operator: Any, source: Path) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source, block_size=1 << 20)
        split = dag.add_operator("words", FlatMap(words))
        it = dag.add_module("it", operator) if isinstance(operator, Module) else dag.add_operator("it", operator)
        dag.add_stream("text", lines.messages, split.input)
        sinks = (it.left, it.right) if isinstance(operator, HashJoin) else (it.input,)
        dag.add_stream("ones", split.output, *sinks)
        dag.add_stream("out", it.output, dag.add_operator("seen", Collector[Any]()).input)

    return populate_dag


def check(runner: str, folder: Path, name: str) -> None:
    make, operator, source = CASES[name]
    (folder / "in").mkdir()
    (folder / "in" / "a.txt").write_text("the cat\nthe dog\nand dogs\n")
    with pytest.raises(OperatorFailed) as caught:
        run_dag(failing(make(), folder / "in"), runner=runner)
    error = caught.value
    assert (error.operator, error.window) == (operator, 0)
    assert (source or "") in (error.source or "")
    assert (error.record is None) == (source is None)
    assert source is None or "dog" in str(error.record)
    told = str(error).splitlines()
    assert told[0].endswith("ValueError: this line")
    assert "test_errors.py" in told[1], "the user's line comes first"
    assert 'raise ValueError("this line")' in told[1]
    assert "dagflow/" not in str(error)


@pytest.mark.parametrize("name", CASES)
def test_in_process(tmp_path: Path, name: str) -> None:
    check("local", tmp_path, name)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["ahead", "values", "event time", "module", "combiner of batches", "join"])
def test_on_spark(spark_session: Any, tmp_path: Path, name: str) -> None:
    check("spark", tmp_path, name)


def test_a_port_of_split_names_it_too(tmp_path: Path) -> None:
    """Its ports are of its own."""
    (tmp_path / "a.txt").write_text("dog\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, tmp_path)
        split = dag.add_operator("words", FlatMap(words))
        it = dag.add_operator("it", Split[Counted]({"some": text}))
        dag.add_stream("text", lines.messages, split.input)
        dag.add_stream("ones", split.output, it.input)
        dag.add_stream("out", it.outputs["some"], dag.add_operator("seen", Collector[Any]()).input)

    with pytest.raises(OperatorFailed, match=r"operator 'it' failed .*this line") as caught:
        run_dag(populate_dag)
    assert caught.value.window == 0
