"""Streams whose rows are taken back: signs pass functions of rows, exchanges and keyed operators, on all runners."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow import DAG, InputPort, MapState, Operator, OperatorContext, OutputPort, WindowState
from dagflow.errors import ChangesRefused, RetractionUndeclared
from dagflow.launching.build import build
from dagflow.lineage.peek import peek_at
from dagflow.render.peek import peek_text
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, OperatorTask, check_operator, run_dag, run_operator
from operators import Distinct, Expect, Filter, GroupBy, Map, RecordWriter, agg
from tests.conformance.orders import Newest, Order, doubled
from tests.conformance.windows import InWindows
from tests.tiers import examples


@attrs.frozen
class Worth:
    """The worth of all orders of a customer."""

    customer: str
    worth: float


@attrs.define
class Totals(Operator):
    """Sums up by customer. A customer without orders has no total."""

    takes_changes: ClassVar[bool] = True
    emits_changes: ClassVar[bool | None] = True

    input = InputPort[Order](partition_by="customer")
    output = OutputPort[Worth]()
    changes = WindowState[dict[str, list[Any]]](factory=dict)
    totals = MapState[str, list[Any]]()

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    @input.process
    def add(self, order: Order) -> None:
        sign = -1 if self.context.retracts else 1
        change = self.changes.setdefault(order.customer, [0, 0])
        change[0] += sign
        change[1] += sign * order.worth

    def end_window(self) -> None:
        for customer, (count, worth) in self.changes.items():
            count_before, worth_before = self.totals.get(customer, [0, 0])
            if count_before:
                self.output.retract(Worth(customer, worth_before))
            if count_before + count:
                self.output.emit(Worth(customer, worth_before + worth))
                self.totals[customer] = [count_before + count, worth_before + worth]
            elif count_before:
                del self.totals[customer]


def as_pair(order: Order) -> tuple[str, int]:  # without an Arrow form: it is pickled where it crosses
    return order.customer, order.worth


def application(windows: list[list[Order]], orders: Collector[Order], totals: Collector[Worth], pairs: Collector[Any]) -> Any:
    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](windows))
        newest = dag.add_operator("newest", Newest())
        large = dag.add_operator("large", Filter[Order](pc.field("worth") > 2))
        double = dag.add_operator("double", Map(doubled))
        by_customer = dag.add_operator("totals", Totals())
        pair = dag.add_operator("pair", Map(as_pair))
        for name, sink in (("orders", orders), ("by_customer", totals), ("pairs", pairs)):
            dag.add_operator(name, sink)
        dag.set_attributes(newest, partitioner=StatelessPartitioner(2))
        dag.set_attributes(pairs, partitioner=StatelessPartitioner(3))
        dag.add_stream("all", source.output, newest.input)
        dag.add_stream("current", newest.output, large.input)
        dag.add_stream("larges", large.output, double.input)
        dag.add_stream("doubles", double.output, by_customer.input, orders.input, pair.input)
        dag.add_stream("worths", by_customer.output, totals.input)
        dag.add_stream("customers", pair.output, pairs.input)

    return populate_dag


def expected(windows: list[list[Order]]) -> tuple[Counter[Order], Counter[Worth]]:
    newest = {order.number: order for window in windows for order in window}
    standing = [doubled(order) for order in newest.values() if order.worth > 2]
    totals: dict[str, int] = defaultdict(int)
    for order in standing:
        totals[order.customer] += order.worth
    return Counter(standing), Counter(Worth(*total) for total in totals.items())


ORDERS = st.builds(Order, st.integers(0, 4), st.sampled_from("abc"), st.integers(0, 6))
WINDOWS = st.lists(st.lists(ORDERS, max_size=8), max_size=5)
CORRECTED = [[Order(n, "abc"[n % 3], n) for n in range(9)], [Order(3, "b", 1), Order(4, "c", 9)], [Order(8, "c", 7)] * 2]


def check(windows: list[list[Order]], launches: int = 1, **options: Any) -> None:
    orders, totals, pairs = Collector[Order](), Collector[Worth](), Collector[Any]()
    for launch in range(launches):
        run_dag(application(windows[: len(windows) - launches + launch + 1], orders, totals, pairs), **options)
    standing, sums = expected(windows)
    assert Counter(orders.records) == standing
    assert Counter(totals.records) == sums
    assert Counter(pairs.records) == Counter(map(as_pair, standing.elements()))


def test_what_is_taken_back_is_gone_everywhere(runner: str) -> None:
    check(CORRECTED, runner=runner)


def test_a_later_launch_takes_back_what_an_earlier_one_has_emitted(runner: str, tmp_path: Path) -> None:
    check(CORRECTED, launches=3, runner=runner, run_folder=str(tmp_path / "run"))


@given(WINDOWS)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
def test_any_changes(windows: list[list[Order]]) -> None:
    check(windows)


def test_the_report_counts_what_was_taken_back(tmp_path: Path) -> None:
    collectors = Collector[Order](), Collector[Worth](), Collector[Any]()
    report = run_dag(application(CORRECTED, *collectors))
    assert report.operators["newest"].counters == {"retracted": 4}
    assert report.operators["newest"].records_out == 13 + 4
    assert report.operators["double"].counters == {"retracted": 4}


def grouped(windows: list[list[Order]], **options: Any) -> Counter[tuple[Any, ...]]:
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](windows))
        newest = dag.add_operator("newest", Newest())
        by = dag.add_operator("by", GroupBy("customer", n=agg.count(), worth=agg.sum("worth"), most=agg.max("worth")))
        dag.add_operator("seen", seen)
        dag.set_attributes(newest, partitioner=StatelessPartitioner(2))
        dag.add_stream("all", source.output, newest.input)
        dag.add_stream("current", newest.output, by.input)
        dag.add_stream("groups", by.output, seen.input)

    run_dag(populate_dag, **options)
    return Counter(tuple(row.values()) for row in seen.records)


def groups_of(windows: list[list[Order]]) -> Counter[tuple[Any, ...]]:
    by: dict[str, list[int]] = defaultdict(list)
    for order in {order.number: order for window in windows for order in window}.values():
        by[order.customer].append(order.worth)
    return Counter((customer, len(worths), sum(worths), max(worths)) for customer, worths in by.items())


def test_groups_do_not_count_what_is_taken_back(runner: str) -> None:
    assert grouped(CORRECTED, runner=runner) == groups_of(CORRECTED)


@given(WINDOWS)
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.too_slow])
def test_groups_of_any_changes(windows: list[list[Order]]) -> None:
    assert grouped(windows) == groups_of(windows)


@pytest.mark.parametrize("combiner", [True, False])
def test_distinct_rows_that_are_gone_are_taken_back(combiner: bool) -> None:
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](CORRECTED))
        newest = dag.add_operator("newest", Newest())
        worths = dag.add_operator("worths", Distinct("worth", combiner=combiner))
        dag.add_operator("seen", seen)
        dag.add_stream("all", source.output, newest.input)
        dag.add_stream("current", newest.output, worths.input)
        dag.add_stream("different", worths.output, seen.input)

    run_dag(populate_dag)
    newest = {order.number: order for window in CORRECTED for order in window}
    assert sorted(row["worth"] for row in seen.records) == sorted({order.worth for order in newest.values()})


# ------------------------------------------------------------------------------------------------ what cannot follow is refused


def refused(*operators: Operator) -> str:
    def populate_dag(dag: DAG, conf: object) -> None:
        output: Any = dag.add_operator("source", InWindows[Order]([])).output
        for number, operator in enumerate([Newest(), *operators]):
            added: Any = dag.add_operator(f"op{number}", operator)
            dag.add_stream(f"s{number}", output, added.input)
            output = getattr(added, "output", None)

    with pytest.raises(ChangesRefused) as error:
        run_dag(populate_dag)
    return str(error.value)


def test_a_sink_that_only_adds_is_refused() -> None:
    text = refused(Map(str), RecordWriter("out", mode="append"))
    assert "RecordWriter would keep rows that are taken back: port op2.input" in text
    assert "'op0' takes back rows that it has emitted" in text


def test_an_operator_that_keeps_rows_is_refused() -> None:
    assert "GroupBy emits what follows from many rows" in refused(GroupBy("customer", n=agg.count(), scope="window"), Map(str))

    class Batches(Operator):
        input = InputPort[Order]()
        output = OutputPort[list[Order]]()
        rows = WindowState[list[Order]](factory=list)

    assert "Batches emits what follows from many rows, and cannot take it back: port op1.input" in refused(Batches(), Map(str))


# ------------------------------------------------------------------------------------------------------- one operator by itself


def test_what_a_handler_emits_has_the_sign_of_its_rows() -> None:
    with OperatorTask(Map(doubled)) as task:
        task.give("input", [Order(1, "a", 2)])
        task.give("input", [Order(1, "a", 1)], retracts=True)
    assert (task.emitted["output"], task.retracted["output"]) == ([Order(1, "a", 4)], [Order(1, "a", 2)])


def test_a_retraction_that_fails_is_counted_and_no_error_record() -> None:
    def fails(order: Order) -> Order:
        raise ValueError(order)

    with OperatorTask(Map(fails, on_error="route")) as task:
        task.give("input", [Order(1, "a", 2)])
        task.give("input", [Order(1, "a", 2)], retracts=True)
    assert (len(task.emitted["errors"]), task.retracted["errors"]) == (1, [])
    assert (task.skipped, task.counters) == (1, {"failed_retractions": 1})


def test_an_operator_that_has_not_declared_it_cannot_take_rows_back() -> None:
    class Undeclared(Newest):
        emits_changes: ClassVar[bool | None] = None

    with pytest.raises(RetractionUndeclared, match="declare emits_changes = True in its class"):
        run_operator(Undeclared(), {"input": [Order(1, "a", 2), Order(1, "a", 3)]})
    assert run_operator(Newest(), {"input": [Order(1, "a", 2), Order(1, "a", 3)]}).retracted == {"output": [Order(1, "a", 2)]}


def test_peek_shows_what_is_taken_back() -> None:
    together = [[order for window in CORRECTED for order in window]]
    built = build(application(together, Collector[Order](), Collector[Worth](), Collector[Any]()))
    text = peek_text(peek_at(built, "newest.output", n=30))
    assert sum("taken back" in line for line in text.splitlines()) == 4


def test_check_operator_finds_changes_that_do_not_cancel() -> None:
    check_operator(Map(doubled), ORDERS, max_examples=examples(20))
    check_operator(Totals(), ORDERS, max_examples=examples(20))
    check_operator(GroupBy("customer", n=agg.count(), most=agg.max("worth")), ORDERS, port="input", max_examples=examples(20))

    class Forgets(Totals):
        def end_window(self) -> None:
            for customer, (_, worth) in self.changes.items():
                self.output.emit(Worth(customer, worth))  # of a customer without orders, too

    with pytest.raises(AssertionError, match="changes cancel: record, records are taken back all of them"):
        check_operator(Forgets(), ORDERS, max_examples=20)


def test_a_rejected_row_that_is_taken_back_is_not_rejected_again() -> None:
    with OperatorTask(Expect(lambda order: order.worth > 2, max_share=1.0)) as task:
        task.give("input", [Order(1, "a", 2)])
        task.give("input", [Order(1, "a", 2)], retracts=True)
    assert (task.skipped, task.counters["failed_retractions"]) == (1, 1)
