"""Records that an operator changes after it has received or emitted them: found in one operator, and in a whole DAG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from dagflow import DAG, InputPort, Operator, OutputPort, WindowState
from dagflow.errors import RecordChanged
from dagflow.runtime.stage.outlet import CHUNK, SAMPLED_EVERY
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, check_operator, run_dag
from tests.conformance.windows import InWindows

Row = dict[str, int]


@attrs.define
class Base(Operator):
    input = InputPort[Row]()
    output = OutputPort[Row]()


@attrs.define
class ChangesReceived(Base):
    @Base.input.process
    def each(self, row: Row) -> None:
        row["n"] = -1
        self.output.emit({"n": row["n"]})


@attrs.define
class ChangesReceivedInStreams(Base):
    @Base.input.stream
    def all(self, rows: Iterator[Row]) -> None:
        for row in rows:
            row.clear()


@attrs.define
class ChangesReceivedLater(Base):
    rows = WindowState[list[Row]](factory=list)

    @Base.input.process
    def each(self, row: Row) -> None:
        self.rows.append(row)

    def end_window(self) -> None:
        for row in self.rows:
            row["n"] = -1


@attrs.define
class ChangesEmitted(Base):
    @Base.input.process
    def each(self, row: Row) -> None:
        made = dict(row)
        self.output.emit(made)
        made["n"] = -1


@attrs.define
class EmitsOneObject(Base):
    made = WindowState[Row](factory=dict)

    @Base.input.process
    def each(self, row: Row) -> None:
        self.made.update(row, n=row["n"] + 1)
        self.output.emit(self.made)


@attrs.define
class ChangesEmittedLater(Base):
    made = WindowState[list[Row]](factory=list)

    @Base.input.process
    def each(self, row: Row) -> None:
        self.made.append(dict(row))
        self.output.emit(self.made[-1])

    def end_window(self) -> None:
        for row in self.made:
            row["n"] = -1


@attrs.define
class ChangesBuffers(Operator):
    """Emits batches of a numpy array that it uses again."""

    input = InputPort[int]()
    output = OutputPort[int]()

    @input.batch
    def batch(self, numbers: pa.RecordBatch) -> None:
        values = np.array(numbers.column(0).to_pylist(), dtype=np.int64)
        self.output.emit_batch(pa.record_batch({"value": pa.array(values)}))
        values[:] = -1


@attrs.define
class LeavesThem(Base):
    """Changes what is its own only; passes records on as they are."""

    count = WindowState[Row](factory=dict)

    @Base.input.process
    def each(self, row: Row) -> None:
        self.count["n"] = self.count.get("n", 0) + 1
        self.output.emit(row)
        self.output.emit({**row, "n": row["n"] + 1})


ROWS = st.fixed_dictionaries({"n": st.integers(0, 9)})
CULPRITS = [
    (ChangesReceived, "received", "input", "each() of port 'input'"),
    (ChangesReceivedInStreams, "received", "input", "all() of port 'input'"),
    (ChangesReceivedLater, "received", "input", "end_window()"),
    (ChangesEmitted, "emitted", "output", "each() of port 'input'"),
    (EmitsOneObject, "emitted", "output", "each() of port 'input'"),
    (ChangesEmittedLater, "emitted", "output", "end_window()"),
]


@pytest.mark.parametrize(("culprit", "how", "port", "doing"), CULPRITS)
def test_check_operator_finds_it(culprit: type[Operator], how: str, port: str, doing: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_operator(culprit(), ROWS, max_examples=10)
    text = str(caught.value)
    assert text.startswith(f"{culprit.__name__}: records stay as they are: ")
    assert f"has changed a record that it had {how} on port '{port}', found after " in text


def test_check_operator_finds_buffers_of_batches_that_are_used_again() -> None:
    with pytest.raises(AssertionError, match=r"had emitted on port 'output', found after batch\(\)"):
        check_operator(ChangesBuffers(), st.integers(0, 9), max_examples=10)


def test_records_that_stay_as_they_are_are_no_finding() -> None:
    check_operator(LeavesThem(), ROWS, max_examples=10)


def application(*, left: Operator, right: Operator, exchange: bool, seen: Collector[Row]) -> Any:
    """Two operators that get the same records."""

    def populate_dag(dag: DAG, conf: object) -> None:
        given = dag.add_operator("given", InWindows[Row]([[{"n": 1}, {"n": 2}], [{"n": 3}, {"n": 4}]]))
        shared = dag.add_operator("shared", LeavesThem())
        dag.set_attributes(shared, partitioner=StatelessPartitioner(1))
        dag.add_operator("left", left)
        dag.add_operator("right", right)
        dag.add_operator("seen", seen)
        others: Any = dag.add_operator("others", Collector[Row]())
        if exchange:
            dag.set_attributes(right, partitioner=StatelessPartitioner(1))
        sinks: list[Any] = [left, right]
        dag.add_stream("rows", given.output, shared.input)
        dag.add_stream("both", shared.output, *(sink.input for sink in sinks))
        dag.add_stream("seen", sinks[1].output, seen.input)
        dag.add_stream("others", sinks[0].output, others.input)

    return populate_dag


@pytest.mark.parametrize(("culprit", "how", "port", "doing"), CULPRITS)
def test_a_dag_is_checked_and_the_culprit_is_named(culprit: Any, how: str, port: str, doing: str, runner: str) -> None:
    if runner == "spark" and culprit is not ChangesReceived:
        pytest.skip("the same code in tasks: one is enough")
    application_of = application(left=culprit(), right=LeavesThem(), exchange=False, seen=Collector[Row]())
    with pytest.raises(RecordChanged) as caught:
        run_dag(application_of, runner=runner, enforce_immutability=True)
    error = caught.value
    assert (error.operator, error.how, error.port, error.doing, error.window) == ("left", how, port, doing, 0)
    assert error.before != error.after


@pytest.mark.parametrize("exchange", [False, True])
def test_a_dag_that_changes_nothing_runs_as_ever(exchange: bool) -> None:
    seen = [Collector[Row](), Collector[Row]()]
    for number, collector in enumerate(seen):
        application_of = application(left=LeavesThem(), right=LeavesThem(), exchange=exchange, seen=collector)
        run_dag(application_of, enforce_immutability=bool(number))
    assert seen[0].records == seen[1].records
    assert len(seen[0].records) == 16


@attrs.define
class Refills(Base):
    """Emits `n` rows for each, from a place on the same one again and again, by `emit` or by `emit_all`."""

    from_row: int = 0
    at_once: bool = False

    def filled(self, count: int) -> Iterator[Row]:
        same: Row = {}
        for n in range(count):
            same["n"] = n
            yield same if n >= self.from_row else dict(same)

    @Base.input.process
    def each(self, row: Row) -> None:
        if self.at_once:
            self.output.emit_all(self.filled(row["n"]))
        else:
            for each in self.filled(row["n"]):
                self.output.emit(each)


def run_refilling(operator: Operator, windows: list[list[Row]]) -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        given = dag.add_operator("given", InWindows[Row](windows))
        refills: Any = dag.add_operator("refills", operator)
        seen = dag.add_operator("seen", Collector[Row]())
        dag.set_attributes(refills, partitioner=StatelessPartitioner(1))
        dag.add_stream("rows", given.output, refills.input)
        dag.add_stream("seen", refills.output, seen.input)

    run_dag(populate_dag)


@pytest.mark.parametrize("at_once", [False, True])
def test_a_run_finds_a_row_that_is_filled_again_after_it_was_emitted(at_once: bool) -> None:
    with pytest.raises(RecordChanged) as caught:
        run_refilling(Refills(at_once=at_once), [[{"n": 1}], [{"n": 2}]])
    assert str(caught.value) == (
        "operator 'refills' has changed a record that it had emitted on port 'output', found after more was emitted\n"
        "  before  {'n': 0}\n  after   {'n': 1}\n  window  1\n"
        "  help: other operators may have the same object: emit a new one, attrs.evolve(record, …), {**record, …} or [*record]"
    )


def test_a_run_looks_at_the_first_rows_of_a_window_and_again_after_many() -> None:
    count = SAMPLED_EVERY + 2 * CHUNK
    run_refilling(Refills(from_row=count - 4), [[{"n": count}]])  # not sampled
    with pytest.raises(RecordChanged):
        run_refilling(Refills(from_row=SAMPLED_EVERY - CHUNK), [[{"n": count}]])
