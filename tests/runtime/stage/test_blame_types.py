"""Records of the wrong type: the operator that emitted them is named in every run, not the one that could not handle them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort
from dagflow.errors import OperatorFailed, WrongRecordType
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag, run_operator
from operators import Count
from tests.conformance.windows import InWindows


@attrs.frozen
class Pair:
    key: str
    n: int


@attrs.define
class Emits(Operator):
    """Emits pairs, and for the number 3 a record or batch of another type."""

    how: str = "record"
    input = InputPort[int]()
    output = OutputPort[Pair]()

    @input.process
    def each(self, n: int) -> None:
        wrong: Any = "three"
        if n != 3:
            self.output.emit(Pair("a", n))
        elif self.how == "record":
            self.output.emit(wrong)
        elif self.how == "given batch":
            wrong = pa.record_batch({"key": ["a"], "n": [3]})
            self.output.emit(wrong)
        elif self.how == "field":
            self.output.emit(Pair("a", wrong))
        else:
            self.output.emit_batch(pa.record_batch({"other": [3]}))


@attrs.define
class Doubles(Operator):
    input = InputPort[Pair]()
    output = OutputPort[Pair]()

    @input.process
    def each(self, pair: Pair) -> None:
        self.output.emit(Pair(pair.key, pair.n * 2))


@attrs.define
class DoublesMany(Operator):
    input = InputPort[Pair]()
    output = OutputPort[Pair]()

    @input.stream
    def all(self, pairs: Iterator[Pair]) -> None:
        self.output.emit_all(Pair(pair.key, pair.n * 2) for pair in pairs)


@attrs.define
class DoublesBatches(Operator):
    input = InputPort[Pair]()
    output = OutputPort[Pair]()

    @input.batch
    def batch(self, pairs: pa.RecordBatch) -> None:
        doubled = pc.call_function("multiply", [pairs.column("n"), 2])
        self.output.emit_batch(pa.RecordBatch.from_arrays([pairs.column("key"), doubled], schema=pairs.schema))


BEHIND = {
    "record": Doubles,
    "stream": DoublesMany,
    "batch": DoublesBatches,
    "key": lambda: Count[Pair, str](by="key", scope="window"),
}


def application(emits: Operator, behind: Operator, exchange: bool) -> Any:
    def populate_dag(dag: DAG, conf: object) -> None:
        given = dag.add_operator("given", InWindows[int]([[1, 2], [3, 4]]))
        source: Any = dag.add_operator("emits", emits)
        dag.set_attributes(source, partitioner=StatelessPartitioner(1))
        after: Any = dag.add_operator("behind", behind)
        if exchange:
            dag.set_attributes(after, partitioner=StatelessPartitioner(2))
        seen: Any = dag.add_operator("seen", Collector[Any]())
        dag.add_stream("numbers", given.output, source.input)
        dag.add_stream("pairs", source.output, after.input)
        dag.add_stream("rest", after.output, seen.input)

    return populate_dag


@pytest.mark.parametrize("on_error", ["fail", "skip"])
@pytest.mark.parametrize("exchange", [False, True], ids=["fused", "exchange"])
@pytest.mark.parametrize("form", BEHIND)
@pytest.mark.parametrize("how", ["record", "given batch", "columns"])
def test_the_operator_that_emitted_it_is_named(how: str, form: str, exchange: bool, on_error: Any) -> None:
    behind: Any = BEHIND[form]()
    behind.on_error = on_error
    with pytest.raises(WrongRecordType) as caught:
        run_dag(application(Emits(how), behind, exchange))
    error = caught.value
    assert (error.port, error.expected, error.window) == ("emits.output", "Pair", 1)
    assert error.where_in_run["operator"] == "emits"
    if how == "given batch":
        assert error.got == "RecordBatch"
        assert "help: emit a batch with self.output.emit_batch(batch)" in str(error)
    if how != "columns":
        assert "test_blame_types.py:" in error.frames
        assert " in each: self.output.emit(wrong)" in error.frames


@attrs.define
class Bad(Operator):
    """Refuses two rows with different words; the batch as a whole with those of the second."""

    input = InputPort[int]()

    @input.batch
    def batch(self, numbers: pa.RecordBatch) -> None:
        values = numbers.column(0).to_pylist()
        for refused in (7, 5):
            if refused in values:
                raise ValueError(f"{refused} is refused")


def test_text_and_record_of_a_batch_are_of_the_same_row() -> None:
    with pytest.raises(OperatorFailed) as caught:
        run_operator(Bad(), {"input": [1, 5, 2, 7]}, form="batch")
    words = caught.value.error.split()
    assert (words[0], words[1]) == ("ValueError:", caught.value.record)


@attrs.define
class WrongItems(InWindows[int]):
    def emit_tuples(self) -> None:
        wrong: Any = "no number"
        self.output.emit(wrong)


def test_an_input_operator_that_emits_what_it_must_not_is_named_with_its_line() -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        given = dag.add_operator("given", WrongItems([]))
        seen = dag.add_operator("seen", Collector[int]())
        dag.add_stream("numbers", given.output, seen.input)

    with pytest.raises(WrongRecordType, match=r"given\.output carries int, but str was emitted: 'no number'") as caught:
        run_dag(populate_dag)
    assert "in emit_tuples: self.output.emit(wrong)" in caught.value.frames
