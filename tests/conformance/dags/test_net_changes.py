"""Handlers of net changes give the same on all runners, from records and batches, behind exchanges, over windows and launches."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from dagflow import DAG, InputPort, MapState, NetRows, Operator, OutputPort, TableState
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import GroupBy, agg
from tests.conformance.dags.test_changes import CORRECTED, WINDOWS, Worth
from tests.conformance.orders import Newest, Order
from tests.conformance.windows import InWindows
from tests.tiers import examples


@attrs.define
class NetTotals(Operator):
    """Sums up the net changes of two ports by customer, those of the second with the other sign."""

    emits_changes: ClassVar[bool | None] = True

    input = InputPort[Order](partition_by="customer")
    less = InputPort[Order](partition_by="customer", optional=True)
    output = OutputPort[Worth]()
    totals = MapState[str, list[Any]]()

    @input.net
    def add(self, net: NetRows[Order]) -> None:
        self._change(net, 1)

    @less.net
    def take(self, net: NetRows[Order]) -> None:
        self._change(net, -1)

    def _change(self, net: NetRows[Order], sign: int) -> None:
        changes: dict[str, list[float]] = defaultdict(lambda: [0, 0.0])
        for order, count in net.records():
            changes[order.customer or ""][0] += count
            changes[order.customer or ""][1] += sign * count * order.worth
        for customer, (rows, worth) in changes.items():
            had, before = self.totals.get(customer, [0, 0])
            if had:
                self.output.retract(Worth(customer, before))
            if had + rows:
                self.output.emit(Worth(customer, before + worth))
                self.totals[customer] = [had + rows, before + worth]
            elif had:
                del self.totals[customer]


@attrs.define
class Once(Operator):
    """Emits each different row once."""

    input = InputPort[Order](partition_by="customer")
    output = OutputPort[Order]()
    numbers = TableState({"rows": "int64"})

    @input.net
    def count(self, net: NetRows[Order]) -> None:
        before = net.kept(self.numbers.lookup(net.keys), "rows")
        after = before + net.counts
        self.output.retract_batch(net.where((before > 0) & (after == 0)).rows)
        self.output.emit_batch(net.where((before == 0) & (after > 0)).rows)
        self.numbers.keep(net, "rows", after)


def check(windows: list[list[Order]], launches: int = 1, *, less: bool = False, **options: Any) -> None:
    """`less`: the input of a window comes at the second port, too."""
    totals, once = Collector[Worth](), Collector[Order]()

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](windows[:known]))
        newest = dag.add_operator("newest", Newest(), partitioner=StatelessPartitioner(2))
        by_customer = dag.add_operator("totals", NetTotals(), partitioner=StatelessPartitioner(3))
        different = dag.add_operator("once", Once())
        dag.add_stream("all", source.output, newest.input)
        inputs = [by_customer.input, different.input, *([by_customer.less] if less else [])]
        dag.add_stream("current", newest.output, *inputs)
        dag.add_stream("worths", by_customer.output, dag.add_operator("by_customer", totals).input)
        dag.add_stream("different", different.output, dag.add_operator("rows", once).input)

    for launch in range(launches):
        known = len(windows) - launches + launch + 1
        run_dag(populate_dag, **options)
    standing = {order.number: order for window in windows for order in window}.values()
    sums: dict[str, float] = defaultdict(float)
    for order in standing:
        sums[order.customer or ""] += 0 if less else order.worth
    assert Counter(totals.records) == Counter(Worth(*total) for total in sums.items())
    assert Counter(once.records) == Counter(standing)


@pytest.mark.parametrize("less", [False, True], ids=["one port", "two ports"])
def test_net_changes_on_all_runners(runner: str, less: bool) -> None:
    check(CORRECTED, less=less, runner=runner)


def test_over_launches(runner: str, tmp_path: Path) -> None:
    check(CORRECTED, launches=3, runner=runner, run_folder=str(tmp_path / "run"))


@given(WINDOWS)
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
def test_any_changes(windows: list[list[Order]]) -> None:
    check(windows)


@attrs.frozen
class Shop:
    """A shop with the number of its orders."""

    shop: str
    n: int


SEEN: list[Any] = []


@attrs.define
class Seen(Operator):
    """Takes shops, and emits nothing."""

    input = InputPort[Shop](partition_by="shop")

    @input.net
    def add(self, net: NetRows[Shop]) -> None:
        SEEN.extend(net.records())


def test_a_port_gets_objects_of_its_class_where_changes_are_held_before_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("shop\nnorth\nnorth\nsouth\n")
    SEEN.clear()

    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.read(tmp_path / "a.csv", "csv").to(GroupBy("shop", n=agg.count())).to(Seen(), name="seen")

    run_dag(populate_dag, {})
    assert sorted(SEEN, key=str) == [(Shop("north", 2), 1), (Shop("south", 1), 1)]
