"""Applications of random DAGs: the operators of their nodes."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import (
    DAG,
    InputPort,
    MapState,
    Module,
    Operator,
    OperatorContext,
    OutputPort,
    ProxyInputPort,
    ProxyOutputPort,
    WindowState,
)
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_operator
from operators import (
    Average,
    Count,
    Deduplicate,
    HashJoin,
    KeyValue,
    Map,
    Max,
    Min,
    Sample,
    Split,
    Sum,
    TopN,
    Tumbling,
    Union,
    WindowValue,
)
from tests.conformance.dags.random_dags import (
    ALONE,
    AT_BEGIN,
    AT_END,
    JOINS,
    LATE,
    MARKS,
    MERGING,
    PASSING,
    SIZE,
    SUMMING,
    TOP,
    WINDOWING,
    Node,
    Windows,
)
from tests.conformance.windows import InThreeParts

MICROSECONDS = 1e-6


@attrs.frozen
class Pair:
    key: int
    n: int


@attrs.define
class Add(Operator):
    """Adds to the numbers, record by record."""

    by: int
    input = InputPort[Pair]()
    output = OutputPort[Pair]()

    @input.process
    def each(self, pair: Pair) -> None:
        self.output.emit(Pair(pair.key, pair.n + self.by))


@attrs.define
class AddToBatches(Add):
    """The same by batches."""

    @Add.input.batch
    def each_batch(self, pairs: pa.RecordBatch) -> None:
        columns = [pairs.column("key"), pc.call_function("add", [pairs.column("n"), self.by])]
        self.output.emit_batch(pa.RecordBatch.from_arrays(columns, schema=pairs.schema))


@attrs.define
class Sums(Operator):
    """The sum of the numbers of each key: so a record that is lost or doubled shows."""

    scope = "window"

    input = InputPort[Pair](partition_by="key")
    output = OutputPort[Pair]()
    sums = WindowState[dict[int, int]](factory=dict)

    @input.process
    def each(self, pair: Pair) -> None:
        self.sums[pair.key] = self.sums.get(pair.key, 0) + pair.n

    def end_window(self) -> None:
        self.output.emit_all(Pair(key % 3, n) for key, n in self.sums.items())


@attrs.define
class CombinedSums(Sums):
    @Sums.input.combine
    def combine(self, one: Pair, other: Pair) -> Pair:
        return Pair(one.key, one.n + other.n)


@attrs.define
class BatchCombinedSums(Sums):
    @Sums.input.combine_batch
    def combine_batch(self, pairs: pa.RecordBatch) -> pa.RecordBatch:
        grouped = pa.Table.from_batches([pairs]).group_by("key", use_threads=False).aggregate([("n", "sum")])
        columns = [grouped.column("key").combine_chunks(), grouped.column("n_sum").combine_chunks()]
        return pa.RecordBatch.from_arrays(columns, schema=pairs.schema)


@attrs.define
class Running(Operator):
    """The sum of the numbers of each key over all windows so far; of the keys that a window has."""

    scope = "window"

    input = InputPort[Pair](partition_by="key")
    output = OutputPort[Pair]()
    totals = MapState[int, int]()
    seen = WindowState[dict[int, None]](factory=dict)

    @input.process
    def each(self, pair: Pair) -> None:
        self.totals[pair.key] = self.totals.get(pair.key, 0) + pair.n
        self.seen[pair.key] = None

    def end_window(self) -> None:
        self.output.emit_all(Pair(key % 3, self.totals[key]) for key in self.seen)


@attrs.define
class Begins(Operator):
    """Passes pairs on, and emits one of its own when a window begins and one when it ends."""

    scope = "window"

    windows: int
    input = InputPort[Pair]()
    output = OutputPort[Pair]()

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    def begin_window(self, window: int) -> None:
        if self._is_speaking():
            self.output.emit(Pair(*AT_BEGIN))

    @input.process
    def each(self, pair: Pair) -> None:
        self.output.emit(pair)

    def end_window(self) -> None:
        if self._is_speaking():
            self.output.emit(Pair(*AT_END))

    def _is_speaking(self) -> bool:
        return self.context.partition == 0 and self.context.window < self.windows


@attrs.define
class Holds(Operator):
    """Keeps pairs until the window ends: loses what comes before its own window has begun."""

    scope = "window"

    input = InputPort[Pair]()
    output = OutputPort[Pair]()
    held = WindowState[list[Pair]](factory=list)

    @input.process
    def each(self, pair: Pair) -> None:
        self.held.append(pair)

    def end_window(self) -> None:
        self.output.emit_all(self.held)


@attrs.define
class Both(Operator):
    """The pairs of two streams."""

    left = InputPort[Pair]()
    right = InputPort[Pair]()
    output = OutputPort[Pair]()

    @left.process
    def from_left(self, pair: Pair) -> None:
        self.output.emit(pair)

    @right.process
    def from_right(self, pair: Pair) -> None:
        self.output.emit(Pair(pair.key, -pair.n))


def by_key(pair: Pair) -> int:
    return pair.key


def n_of(pair: Pair) -> int:
    return pair.n


def is_even(pair: Pair) -> bool:
    return pair.n % 2 == 0


def is_negative(pair: Pair) -> bool:
    return pair.n < 0


def pair_of(result: KeyValue[int, int]) -> Pair:
    return Pair(result.key % 3, result.value)


def whole(result: KeyValue[int, float]) -> Pair:
    return Pair(result.key % 3, round(result.value))


def fired(window: WindowValue[int, int]) -> Pair:
    return Pair(window.key % 3, (window.value or 0) + window.firing)


def joined(one: Pair, other: Pair | None) -> Pair:
    return Pair(one.key % 3, one.n + (ALONE if other is None else other.n))


def joined_row(row: Any) -> Pair:
    return Pair(row["key"] % 3, row["n"] + (ALONE if row["n_right"] is None else row["n_right"]))


@functools.cache
def is_sampled(pair: tuple[int, int]) -> bool:
    """Return True if a record, looked at alone, is one of the sample: so nothing else may count."""
    return bool(run_operator(Sample[Pair](0.5), {"input": [Pair(*pair)]})["output"])


@attrs.define
class Inside(Module):
    """A node in a module."""

    node: Node
    input = ProxyInputPort[Pair]()
    output = ProxyOutputPort[Pair]()

    def populate_dag(self, dag: DAG) -> None:
        (first,), last = add(dag, "inside", self.node)
        self.input.set(first)
        self.output.set(last)


Ends = tuple[list[Any], Any]
"""The input ports of a node, and its output port."""


def add(dag: DAG, name: str, node: Node) -> Ends:
    """Adds a node."""
    if node.modules:
        inside: Any = dag.add_module(name, Inside(attrs.evolve(node, modules=node.modules - 1)))
        return [inside.input], inside.output
    operator: Any = dag.add_operator(name, _operator(node))
    if node.kind in PASSING or node.kind in SUMMING or node.kind in MERGING:
        _partition(dag, node, operator)
    else:
        dag.set_attributes(operator, partitioner=StatelessPartitioner(1 if node.how == "single" else node.partitions))
    if node.kind == "Split":
        marked = {
            port: _followed(dag, f"{name}_{port}", source, Add(by) if node.combiner else AddToBatches(by))
            for port, by in MARKS.items()
            for source in [operator.rest if port == "rest" else operator.outputs[port]]
        }
        return [operator.input], _united(dag, name, *marked.values())
    if node.kind in WINDOWING:
        windows = _followed(dag, f"{name}_fired", operator.output, Map(fired))
        return [operator.input], _united(dag, name, windows, _followed(dag, f"{name}_late", operator.late, Add(LATE)))
    if node.kind in JOINS:
        ports = [operator.left, operator.right]
        return ports, operator.output if operator.combine else _followed(dag, f"{name}_rows", operator.output, Map(joined_row))
    if node.kind in MERGING:
        return [*operator.inputs] if node.kind == "Union" else [operator.left, operator.right], operator.output
    if node.kind in PASSING or node.kind in SUMMING or node.kind.startswith(("TopN", "Deduplicate")):
        return [operator.input], operator.output
    make: Any = whole if node.kind.startswith("Average") else pair_of
    return [operator.input], _followed(dag, f"{name}_pairs", operator.output, Map(make))


def _followed(dag: DAG, name: str, port: Any, operator: Any) -> Any:
    """The output port of an operator that is put behind another one."""
    added = dag.add_operator(name, operator)
    dag.add_stream(f"to {name}", port, added.input)
    return added.output


def _united(dag: DAG, name: str, *ports: Any) -> Any:
    union = dag.add_operator(f"{name}_all", Union[Pair](len(ports)))
    for number, port in enumerate(ports):
        dag.add_stream(f"{number} of {name}", port, union.inputs[number])
    return union.output


def _partition(dag: DAG, node: Node, operator: Any) -> None:
    partitioner = StatelessPartitioner(node.partitions)
    if node.how == "single":
        dag.set_attributes(operator, partitioner=StatelessPartitioner(1), partition_by=None)
    elif node.how == "by column":
        dag.set_attributes(operator, partition_by="key", partitioner=partitioner)
    elif node.how == "by function":
        dag.set_attributes(operator, partition_by=by_key, partitioner=partitioner)
    elif node.how == "counted" or (node.kind in MERGING and -1 in node.inputs):
        dag.set_attributes(operator, partitioner=partitioner)
    elif node.kind in MERGING:
        second = operator.right if node.kind == "both" else operator.inputs[1]
        dag.set_port_attributes(second, partition_parallel=False)


_OWN: dict[str, Any] = {
    "add": lambda: Add(1),
    "add batches": lambda: AddToBatches(1),
    "sums": Sums,
    "combined": CombinedSums,
    "combined batches": BatchCombinedSums,
    "running": Running,
    "both": Both,
    "holds": Holds,
    "Union": lambda: Union[Pair](2),
    "Sample": lambda: Sample[Pair](0.5),
}


def _operator(node: Node) -> Operator:
    if node.kind == "begins":
        return Begins(node.windows)
    if node.kind in _OWN:
        made: Operator = _OWN[node.kind]()
        return made
    by_function = node.how == "by function" or (node.kind == "Split" and node.choice > 5)
    by: Any = by_key if by_function else "key"
    of: Any = n_of if by_function else "n"
    kind, _, how = node.kind.partition(" ")
    if kind == "Split":
        remainder = pc.bit_wise_and(pc.field("n"), 1)
        predicates: Any = {"even": remainder == 0, "negative": pc.field("n") < 0}
        predicates = {"even": is_even, "negative": is_negative} if by_function else predicates
        return Split[Pair](predicates, matches="all" if node.choice % 2 else "first")
    if kind == "HashJoin":
        combine: Any = joined if by_function or node.combiner else None
        return HashJoin[Pair, Pair, Any](by, how="left" if how == "left" else "inner", combine=combine, scope="window")
    if kind == "Tumbling":
        more: dict[str, Any] = {} if how == "count" else {"of": of}
        bounds = {"allowed_lateness": node.lateness * MICROSECONDS, "out_of_orderness": node.bound * MICROSECONDS}
        # options of several types
        return Tumbling[Pair, int, int](SIZE * MICROSECONDS, time=of, by=by, aggregate=how, scope="window", **more, **bounds)  # type: ignore[arg-type]
    if kind == "Deduplicate":
        return Deduplicate[Pair](combiner=node.combiner, scope="all" if how else "window")
    if kind == "TopN":
        return TopN[Pair](TOP, of, by=by, combiner=node.combiner, scope="window")
    if kind == "Count":
        return Count[Pair, int](by=by, combiner=node.combiner, scope="window")
    return _VALUES[kind](of, by=by, combiner=node.combiner, scope="window")


_VALUES: dict[str, Any] = {"Sum": Sum, "Min": Min, "Max": Max, "Average": Average}


def populate(nodes: Sequence[Node], windows: Windows, seen: dict[int, Collector[Pair]]) -> Any:
    """An application of these nodes; a collector gets what each of them emits."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("source", InThreeParts[Pair]([[Pair(*pair) for pair in window] for window in windows]))
        given = dag.add_operator("given", Holds())  # on the driver, as the source
        dag.add_stream("source", source.output, given.input)
        added = [add(dag, f"n{number}", attrs.evolve(node, windows=len(windows))) for number, node in enumerate(nodes)]
        sinks: dict[int, list[Any]] = {number: [] for number in range(-1, len(nodes))}
        for number, (node, (ports, _)) in enumerate(zip(nodes, added, strict=True)):
            for source, port in zip(node.inputs or (-1,), ports, strict=True):
                sinks[source].append(port)
            collector = dag.add_operator(f"seen{number}", seen[number])
            sinks[number].append(collector.input)
        for number, ports in sinks.items():
            dag.add_stream(f"of {number}", given.output if number < 0 else added[number][1], *ports)

    return populate_dag
