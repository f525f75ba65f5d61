"""Random DAGs with exchanges, and what they come to by a plain interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from dagflow import (
    DAG,
    InputOperator,
    InputPort,
    MapState,
    Module,
    Operator,
    OutputPort,
    ProxyInputPort,
    ProxyOutputPort,
    State,
    WindowState,
)
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector
from operators import Average, Count, Deduplicate, KeyValue, Map, Max, Sum, TopN


@attrs.frozen
class Pair:
    key: int
    n: int


Records = Counter[tuple[int, int]]


@attrs.define
class Given(InputOperator):
    """Emits one list of pairs after the other, each in a window of its own."""

    windows: list[list[tuple[int, int]]]
    output = OutputPort[Pair]()
    at = State(0)

    def setup(self, context: Any) -> None:
        self.context = context

    def emit_tuples(self) -> None:
        if self.at < len(self.windows):
            self.output.emit_all(Pair(*pair) for pair in self.windows[self.at])
            self.at += 1
            self.context.close_window()

    def is_exhausted(self) -> bool:
        return self.at >= len(self.windows)


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
    """The sum of the numbers of each key, one less for each record: so a record that is lost or doubled shows."""

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


@attrs.define
class Running(Operator):
    """The sum of the numbers of each key over all windows so far; of the keys that a window has."""

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


def by_key(pair: Pair) -> int:
    return pair.key


def n_of(pair: Pair) -> int:
    return pair.n


def pair_of(result: KeyValue[int, int]) -> Pair:
    return Pair(result.key % 3, result.value)


def whole(result: KeyValue[int, float]) -> Pair:
    return Pair(result.key % 3, round(result.value))


@attrs.frozen
class Node:
    """One operator: its kind, the nodes that it gets its records from, how it is partitioned, in how many partitions.

    Attributes:
        modules: in how many modules, one in the other, it is.
    """

    kind: str
    inputs: tuple[int, ...]
    how: str
    partitions: int
    combiner: bool = True
    modules: int = 0


@attrs.define
class Inside(Module):
    """A node in a module."""

    node: Node
    input = ProxyInputPort[Pair]()
    output = ProxyOutputPort[Pair]()

    def populate_dag(self, dag: DAG) -> None:
        first, last = add(dag, "inside", self.node)
        self.input.set(first.input)
        self.output.set(last.output)


ADDING = ("add", "add batches")
SUMMING = ("sums", "combined", "combined batches", "running")
AGGREGATES = ("Count", "Sum", "Max", "Average", "TopN", "Deduplicate", "Count running", "Sum running")
WAYS = ("parallel", "counted", "single", "by column", "by function")


@st.composite
def shapes(draw: st.DrawFn, most: int = 7) -> list[Node]:
    """Nodes in an order in which all get their records from earlier ones; node 0 is the first operator in tasks."""
    nodes = [Node("add", (), "counted", draw(st.integers(1, 3)))]
    for number in range(1, draw(st.integers(2, most))):
        kind = draw(st.sampled_from([*ADDING, *SUMMING, *AGGREGATES, "both"]))
        inputs = tuple(draw(st.integers(-1 if kind == "both" else 0, number - 1)) for _ in range(1 + (kind == "both")))
        ways = WAYS if kind in ADDING or kind == "both" else WAYS[3:] if kind == "running" else WAYS[2:]
        modules = 0 if kind == "both" else draw(st.sampled_from([0, 0, 1, 2]))
        how, partitions = draw(st.sampled_from(ways)), draw(st.integers(1, 4))
        nodes.append(Node(kind, inputs if inputs != (-1, -1) else (0, -1), how, partitions, draw(st.booleans()), modules))
    return nodes


def unfused(nodes: Sequence[Node]) -> list[Node]:
    """The same, with an exchange before each operator."""
    return [attrs.evolve(node, how="counted") if node.how == "parallel" else node for node in nodes]


def repartitioned(nodes: Sequence[Node], launch: int) -> list[Node]:
    """The same in other numbers of partitions."""
    return [attrs.evolve(node, partitions=(node.partitions + 2 * launch) % 5 + 1) for node in nodes]


PAIRS = st.tuples(st.integers(0, 9), st.integers(-99, 99))
WINDOWS = st.lists(st.lists(PAIRS, min_size=1, max_size=30), min_size=1, max_size=4)


def interpreted(nodes: Sequence[Node], windows: Sequence[Sequence[tuple[int, int]]]) -> dict[int, Records]:
    """What each node emits in all windows."""
    total: dict[int, Records] = {number: Counter() for number in range(len(nodes))}
    before: dict[int, dict[int, int]] = {number: {} for number in range(len(nodes))}
    for window in windows:
        emitted: dict[int, Records] = {-1: Counter(window)}
        for number, node in enumerate(nodes):
            given = [emitted[source] for source in node.inputs or (-1,)]
            emitted[number] = _emitted(node.kind, given, before[number])
            total[number].update(emitted[number])
    return total


def _emitted(kind: str, given: list[Records], before: dict[int, int]) -> Records:
    """What a node emits in a window. `before`: the totals of earlier ones, which are added to."""
    if kind in ADDING:
        return Counter({(key, n + 1): times for (key, n), times in given[0].items()})
    if kind == "both":
        return given[0] + Counter({(key, -n): times for (key, n), times in given[1].items()})
    if kind == "Deduplicate":
        return Counter(given[0].keys())
    groups: dict[int, list[int]] = {}
    for key, n in given[0].elements():
        groups.setdefault(key, []).append(n)
    if kind == "TopN":
        return Counter((key, n) for key, group in groups.items() for n in sorted(group, reverse=True)[:2])
    results = {key: _RESULTS.get(kind.partition(" ")[0], sum)(group) for key, group in groups.items()}
    if kind.endswith("running"):
        before.update({key: before.get(key, 0) + result for key, result in results.items()})
        results = {key: before[key] for key in results}
    return Counter((key % 3, result) for key, result in results.items())


_RESULTS: dict[str, Any] = {"Count": len, "Max": max, "Average": lambda group: round(sum(group) / len(group))}


_CLASSES: dict[str, Any] = {
    "add": lambda: Add(1),
    "add batches": lambda: AddToBatches(1),
    "sums": Sums,
    "combined": CombinedSums,
    "combined batches": BatchCombinedSums,
    "running": Running,
    "both": Both,
}


def _aggregate(node: Node) -> Operator:
    by: Any = by_key if node.how == "by function" else "key"
    of: Any = n_of if node.how == "by function" else "n"
    kind, _, running = node.kind.partition(" ")
    if kind == "Deduplicate":
        return Deduplicate[Pair](combiner=node.combiner)
    if kind == "TopN":
        return TopN[Pair](2, of, by=by, combiner=node.combiner)
    if kind == "Count":
        return Count[Pair, int](by=by, combiner=node.combiner, running=bool(running))
    return {"Sum": Sum, "Max": Max, "Average": Average}[kind](of, by=by, combiner=node.combiner, running=bool(running))


def add(dag: DAG, name: str, node: Node) -> tuple[Any, Any]:
    """Adds a node; what has its input, and what has its output."""
    if node.modules:
        inside = dag.add_module(name, Inside(attrs.evolve(node, modules=node.modules - 1)))
        return inside, inside
    if node.kind not in AGGREGATES:
        operator = dag.add_operator(name, _CLASSES[node.kind]())
        _partition(dag, node, operator)
        return operator, operator
    partitions = 1 if node.how == "single" else node.partitions
    operator: Any = dag.add_operator(name, _aggregate(node), partitioner=StatelessPartitioner(partitions))
    if node.kind in ("TopN", "Deduplicate"):
        return operator, operator
    make: Any = whole if node.kind == "Average" else pair_of
    pairs: Any = dag.add_operator(f"{name}_pairs", Map(make))
    dag.add_stream(f"results of {name}", operator.output, pairs.input)
    return operator, pairs


def populate(nodes: Sequence[Node], windows: Sequence[Sequence[tuple[int, int]]], seen: dict[int, Collector[Pair]]) -> Any:
    """An application of these nodes; a collector gets what each of them emits."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        given = dag.add_operator("given", Given([list(window) for window in windows]))
        added = [add(dag, f"n{number}", node) for number, node in enumerate(nodes)]
        sinks: dict[int, list[Any]] = {number: [] for number in range(-1, len(nodes))}
        for number, (node, (first, _)) in enumerate(zip(nodes, added, strict=True)):
            ports = [first.left, first.right] if node.kind == "both" else [first.input]
            for source, port in zip(node.inputs or (-1,), ports, strict=True):
                sinks[source].append(port)
            collector = dag.add_operator(f"seen{number}", seen[number])
            sinks[number].append(collector.input)
        for number, ports in sinks.items():
            dag.add_stream(f"of {number}", (given if number < 0 else added[number][1]).output, *ports)

    return populate_dag


def _partition(dag: DAG, node: Node, operator: Any) -> None:
    if node.how == "single":
        dag.set_attributes(operator, partitioner=StatelessPartitioner(1), partition_by=None)
    elif node.how == "by column":
        dag.set_attributes(operator, partition_by="key", partitioner=StatelessPartitioner(node.partitions))
    elif node.how == "by function":
        dag.set_attributes(operator, partition_by=by_key, partitioner=StatelessPartitioner(node.partitions))
    elif node.how == "counted" or (node.kind == "both" and -1 in node.inputs):
        dag.set_attributes(operator, partitioner=StatelessPartitioner(node.partitions))
    elif node.kind == "both":
        dag.set_port_attributes(operator.right, partition_parallel=False)
