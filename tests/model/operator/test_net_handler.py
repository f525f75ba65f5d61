"""Handlers of net changes: called once for a window with the rows that are left, of records and batches, of any port."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, InputPort, NetRows, Operator, OutputPort, TableState, WindowState
from dagflow.errors import DagErrors, NetHandlerWrong, OperatorFailed, ResultNotEmitted
from dagflow.model.graph.checks import check
from dagflow.model.graph.class_checks import handler_types, net_handlers
from dagflow.planning.forms import preferred_form
from dagflow.testing import Collector, OperatorTask, Window, check_operator, run_dag, run_operator
from tests.conformance.orders import Order, Signed
from tests.conformance.windows import InWindows
from tests.tiers import examples

ONE, OTHER = Order(1, "ada", 2.0), Order(2, "bob", 3.0)


@attrs.define
class Seen(Operator):
    """Emits what its handler is called with, as text, and when the window ends."""

    input = InputPort[Order](partition_by="customer")
    output = OutputPort[str]()

    @input.net
    def add(self, net: NetRows[Order]) -> None:
        self.output.emit(" ".join(f"{count:+}*{order.number}" for order, count in net.records()))

    def end_window(self) -> None:
        self.output.emit("end")


def seen(*chunks: tuple[Any, bool], operator: Operator | None = None) -> list[Any]:
    with OperatorTask(operator or Seen()) as task:
        for data, retracts in chunks:
            task.give("input", data, retracts=retracts)
    return task.emitted["output"]


def in_columns(*orders: Order) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([attrs.asdict(order) for order in orders])


def test_records_and_batches_are_netted_together_once() -> None:
    chunks = ([ONE, OTHER], False), (in_columns(ONE, ONE), False), ([OTHER, OTHER], True), (in_columns(ONE), True)
    assert seen(*chunks) == ["+2*1 -1*2", "end"]


def test_it_is_not_called_where_nothing_is_left_or_nothing_came() -> None:
    assert seen((in_columns(ONE), True), ([ONE], False)) == ["end"]
    with OperatorTask(Seen()) as task:
        task.begin_window()
    assert task.emitted["output"] == ["end"]


def test_each_window_begins_anew_and_append_streams_have_positive_counts() -> None:
    assert run_operator(Seen(), {"input": [Window([ONE, ONE]), Window([OTHER])]})["output"] == ["+2*1", "end", "+1*2", "end"]


def test_a_class_with_such_a_handler_takes_changes() -> None:
    assert Seen.takes_changes
    assert not Operator.takes_changes
    assert Seen().offered_forms("input") == {"net"}
    assert preferred_form("batch", Seen().offered_forms("input")) == "net"


@attrs.define
class Sides(Operator):
    """Emits the net changes of both ports together."""

    right = InputPort[Order](partition_by="customer")
    left = InputPort[Order](partition_by="customer")
    output = OutputPort[str]()
    told = WindowState[list[str]](factory=list)

    @left.net
    def add_left(self, net: NetRows[Order]) -> None:
        self.told.append(f"left {net.counts.tolist()}")

    @right.net
    def add_right(self, net: NetRows[Order]) -> None:
        self.told.append(f"right {net.counts.tolist()}")

    def end_window(self) -> None:
        self.output.emit(", ".join(self.told))


def test_several_ports_in_the_order_of_their_declaration() -> None:
    with OperatorTask(Sides()) as task:
        task.give("left", [ONE, OTHER])
        task.give("right", [ONE], retracts=True)
        task.end_window()
        task.give("left", [ONE])
    assert task.emitted["output"] == ["right [-1], left [1, 1]", "left [1]"]


@attrs.define
class ByName(Operator):
    """Counts the rows of each key."""

    keys: tuple[str, ...] = ("customer",)
    input = InputPort[Order]()
    output = OutputPort[Any]()
    rows = TableState({"rows": "int64"})

    def partition_key(self, port: str) -> Any:
        return self.keys

    @input.net(names=lambda operator: operator.keys)
    def count(self, net: NetRows[Order]) -> None:
        after = net.kept(self.rows.lookup(net.keys), "rows") + net.counts
        self.rows.keep(net, "rows", after)
        self.output.emit({str(row[self.keys[0]]): int(count) for row, count in zip(net.rows.to_pylist(), after, strict=True)})


def test_rows_are_equal_by_names_and_a_table_counts_them() -> None:
    cheaper = attrs.evolve(ONE, worth=1.0)
    with OperatorTask(ByName()) as task:
        task.give("input", [ONE, cheaper, OTHER])
        task.end_window()
        task.give("input", [cheaper, OTHER], retracts=True)
        task.end_window()
        assert [batch.column("rows").to_pylist() for batch in task.operator.rows.batches()] == [[1]]  # type: ignore[attr-defined]  # of ByName
        task.give("input", [ONE], retracts=True)
        task.give("input", [cheaper])
    assert task.emitted["output"] == [{"ada": 2, "bob": 1}, {"ada": 1, "bob": 0}]


def test_groups_of_keys_are_those_of_the_port_though_all_columns_are_compared() -> None:
    kept: list[NetRows[Any]] = []

    class Keeps(Operator):
        input = InputPort[Order](partition_by="customer")

        @input.net
        def keep(self, net: NetRows[Any]) -> None:
            kept.append(net)

    with OperatorTask(Keeps()) as task:
        task.give("input", [ONE, attrs.evolve(ONE, number=7)])
    (net,) = kept
    assert net.keys.num_rows == 2
    assert len(set(net.keys.column("$group").to_pylist())) == 1


def test_a_handler_for_some_instances_leaves_others_to_the_rest() -> None:
    @attrs.define
    class Either(Operator):
        nets: bool
        input = InputPort[Order](partition_by="*")
        output = OutputPort[str]()

        @input.process
        def each(self, order: Order) -> None:
            self.output.emit("each")

        @input.net(when=lambda operator: operator.nets)
        def all(self, net: NetRows[Order]) -> None:
            self.output.emit("net")

    assert seen(([ONE, ONE], False), operator=Either(nets=True)) == ["net"]
    assert seen(([ONE, ONE], False), operator=Either(nets=False)) == ["each", "each"]


def test_an_override_of_another_form_takes_its_place() -> None:
    class Plain(Seen):
        @Seen.input.process
        def each(self, order: Order) -> None:
            self.output.emit("each")

    assert seen(([ONE], False), operator=Plain()) == ["each", "end"]


CHANGES = st.lists(st.tuples(st.builds(Order, st.integers(1, 2), st.sampled_from("ab"), st.just(1.0)), st.booleans()), max_size=8)


@given(CHANGES, st.randoms(use_true_random=False))
def test_neither_chunks_nor_order_matter(changes: list[tuple[Order, bool]], random: Any) -> None:
    """One change at a time; or in any order and chunks, some of them batches."""
    calls = []
    for grouped in (False, True):

        class Counts(Operator):
            input = InputPort[Order](partition_by="*")
            output = OutputPort[Any]()

            @input.net
            def add(self, net: NetRows[Order]) -> None:
                self.output.emit(Counter(dict(net.records())))

        rest, chunks = list(changes), list[tuple[Any, bool]]()
        if grouped:
            random.shuffle(rest)
        while rest:
            sign, size = rest[0][1], random.randint(1, len(rest)) if grouped else 1
            some = [order for order, retracts in rest[:size] if retracts == sign]
            rest = [each for each in rest[:size] if each[1] != sign] + rest[size:]
            chunks.append((in_columns(*some) if grouped and random.random() < 0.5 else some, sign))
        calls.append(seen(*chunks, operator=Counts()))
    total: Counter[Order] = Counter()
    for order, retracts in changes:
        total[order] += -1 if retracts else 1
    left = Counter({order: count for order, count in total.items() if count})
    assert calls[0] == calls[1] == ([left] if left else [])


@attrs.define
class Standing(Operator):
    """Emits the rows that are left, and takes back the others, as batches."""

    emits_changes: ClassVar[bool | None] = None
    input = InputPort[Order](partition_by="*")
    output = OutputPort[Order]()

    @input.net
    def pass_on(self, net: NetRows[Order]) -> None:
        for order, count in net.records():
            for _ in range(abs(count)):
                (self.output.emit if count > 0 else self.output.retract)(order)


def test_the_laws_of_operators_hold() -> None:
    check_operator(Standing(), CHANGES.map(lambda changes: ONE if not changes else changes[0][0]), max_examples=examples(20))


def test_an_error_of_the_handler_ends_the_run_and_names_it() -> None:
    class Broken(Operator):
        input = InputPort[Order](partition_by="*")

        @input.net
        def add(self, net: NetRows[Order]) -> None:
            raise ValueError("no")

    with pytest.raises(OperatorFailed, match=r"failed in add\(\): ValueError: no"):
        run_operator(Broken(on_error="skip"), {"input": [ONE]})


def test_what_the_handler_returns_is_not_lost_silently() -> None:
    class Returns(Operator):
        input = InputPort[Order](partition_by="*")
        output = OutputPort[Order]()

        @input.net
        def add(self, net: NetRows[Order]) -> Any:
            return [order for order, _ in net.records()]

    with pytest.raises(ResultNotEmitted, match=r"add\(\) of port 'input' returned"):
        run_operator(Returns(), {"input": [ONE]})


class Beside(Operator):
    input = InputPort[Order](partition_by="*")

    @input.process
    def each(self, order: Order) -> None: ...

    @input.net
    def add(self, net: NetRows[Order]) -> None: ...


class Refuses(Operator):
    takes_changes = False
    input = InputPort[Order](partition_by="*")

    @input.net
    def add(self, net: NetRows[Order]) -> None: ...


class Signs(Operator):
    input = InputPort[Order](partition_by="*")

    def setup(self, context: Any) -> None:
        self.context = context

    @input.net
    def add(self, net: NetRows[Order]) -> None:
        if self.context.retracts:
            return


@pytest.mark.parametrize(
    ("cls", "text", "told"),
    [
        (
            Beside,
            r"port 'input' has @input\.net and @input\.process, but only add\(\) would be called",
            r"remove @input\.process",
        ),
        (Refuses, r"takes_changes = False, but add\(\) gets the net changes of port 'input'", "remove takes_changes"),
        (Signs, r"add\(\) reads context\.retracts, which is False there.* port 'input'", r"net\.records\(\)"),
    ],
)
def test_mistakes_are_refused_with_the_class(cls: type[Operator], text: str, told: str) -> None:
    (problem,) = net_handlers(cls())
    assert (problem.code, problem.operator) == ("DF060", cls.__name__)  # type: ignore[attr-defined]  # of NetHandlerWrong
    with pytest.raises(NetHandlerWrong, match=rf"(?s)class {cls.__name__}: {text}.*help: .*{told}"):
        run_operator(cls(), {"input": [ONE]})


def test_the_annotation_of_its_parameter_is_that_of_the_port() -> None:
    class OfText(Operator):
        input = InputPort[Order](partition_by="*")

        @input.net
        def add(self, net: NetRows[str]) -> None: ...

    (problem,) = handler_types(OfText)
    assert "takes NetRows[str], but port 'input' delivers NetRows[Order]" in str(problem)


def key_problem(operator: Any) -> Any:
    dag = DAG()
    source = dag.add_operator("source", InWindows[Order]([[ONE]]))
    dag.add_operator("net", operator)
    dag.add_stream("orders", source.output, operator.input)
    with pytest.raises((DagErrors, NetHandlerWrong)) as caught:
        check(dag)
    return caught.value


def test_equal_rows_must_meet() -> None:
    class Unkeyed(Operator):
        input = InputPort[Order]()

        @input.net
        def add(self, net: NetRows[Order]) -> None: ...

    class OtherKey(Operator):
        input = InputPort[Order](partition_by=("customer", "number"))

        @input.net(names="customer")
        def add(self, net: NetRows[Order]) -> None: ...

    assert "class test_equal_rows_must_meet.<locals>.Unkeyed: equal rows of port 'input'" in str(key_problem(Unkeyed()))
    assert "its key is customer, number" in str(key_problem(OtherKey()))


def test_signed_streams_reach_it(tmp_path: Any) -> None:
    """Behind an operator that takes rows back, in one stage."""
    told = Collector[str]()

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order]([[ONE, OTHER, attrs.evolve(ONE, worth=-2.0)], [OTHER]]))
        signed, last = dag.add_operator("signed", Signed()), dag.add_operator("seen", Seen(), partitioner=None)
        dag.add_operator("told", told)
        dag.add_stream("all", source.output, signed.input)
        dag.add_stream("signed", signed.output, last.input)
        dag.add_stream("told", last.output, told.input)

    run_dag(populate_dag, run_folder=str(tmp_path / "run"))
    assert [each for each in told.records if each != "end"] == ["+2*2"]  # a bounded launch takes it as one window


def test_a_subclass_with_another_handler_does_not_follow_changes() -> None:
    class Net(Operator):
        input = InputPort[Any](partition_by="*")

        @input.net
        def change(self, net: Any) -> None: ...

    class Still(Net): ...

    class Batches(Net):
        @Net.input.batch
        def add(self, batch: Any) -> None: ...

    class Declared(Batches):
        takes_changes = True

    assert [cls.takes_changes for cls in (Net, Still, Batches, Declared)] == [True, True, False, True]
