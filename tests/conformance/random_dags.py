"""Random DAGs with exchanges, and what they come to by a plain interpreter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

from dagflow import DAG, InputOperator, InputPort, Operator, OutputPort, State, WindowState
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector


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


def by_key(pair: Pair) -> int:
    return pair.key


@attrs.frozen
class Node:
    """One operator: its kind, the nodes that it gets its records from, how it is partitioned, in how many partitions."""

    kind: str
    inputs: tuple[int, ...]
    how: str
    partitions: int


@st.composite
def shapes(draw: st.DrawFn, most: int = 7) -> list[Node]:
    """Nodes in an order in which all get their records from earlier ones; node 0 is the first operator in tasks."""
    nodes = [Node("add", (), "counted", draw(st.integers(1, 3)))]
    for number in range(1, draw(st.integers(2, most))):
        kind = draw(st.sampled_from(["add", "add batches", "sums", "combined", "combined batches", "both"]))
        inputs = tuple(draw(st.integers(-1 if kind == "both" else 0, number - 1)) for _ in range(1 + (kind == "both")))
        ways = ["parallel", "counted", "single", "by column", "by function"]
        how = draw(st.sampled_from(ways if kind[:3] in ("add", "bot") else ways[2:]))
        nodes.append(Node(kind, inputs if inputs != (-1, -1) else (0, -1), how, draw(st.integers(1, 4))))
    return nodes


WINDOWS = st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(-99, 99)), min_size=1, max_size=30), min_size=1, max_size=3)


def interpreted(nodes: Sequence[Node], windows: Sequence[Sequence[tuple[int, int]]]) -> dict[int, Records]:
    """What each node emits in all windows."""
    total: dict[int, Records] = {number: Counter() for number in range(len(nodes))}
    for window in windows:
        emitted: dict[int, Records] = {-1: Counter(window)}
        for number, node in enumerate(nodes):
            given = [emitted[source] for source in node.inputs or (-1,)]
            emitted[number] = _emitted(node.kind, given)
            total[number].update(emitted[number])
    return total


def _emitted(kind: str, given: list[Records]) -> Records:
    found: Records = Counter()
    if kind.startswith("add"):
        for (key, n), times in given[0].items():
            found[key, n + 1] += times
    elif kind == "both":
        found.update(given[0])
        for (key, n), times in given[1].items():
            found[key, -n] += times
    else:
        sums: dict[int, int] = {}
        for (key, n), times in given[0].items():
            sums[key] = sums.get(key, 0) + n * times
        for key, n in sums.items():
            found[key % 3, n] += 1
    return found


_CLASSES: dict[str, Any] = {
    "add": lambda: Add(1),
    "add batches": lambda: AddToBatches(1),
    "sums": Sums,
    "combined": CombinedSums,
    "combined batches": BatchCombinedSums,
    "both": Both,
}


def populate(nodes: Sequence[Node], windows: Sequence[Sequence[tuple[int, int]]], seen: dict[int, Collector[Pair]]) -> Any:
    """An application of these nodes; a collector gets what each of them emits."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        given = dag.add_operator("given", Given([list(window) for window in windows]))
        operators = [dag.add_operator(f"n{number}", _CLASSES[node.kind]()) for number, node in enumerate(nodes)]
        sinks: dict[int, list[Any]] = {number: [] for number in range(-1, len(nodes))}
        for number, (node, operator) in enumerate(zip(nodes, operators, strict=True)):
            ports = [operator.left, operator.right] if node.kind == "both" else [operator.input]
            for source, port in zip(node.inputs or (-1,), ports, strict=True):
                sinks[source].append(port)
            _partition(dag, node, operator)
            collector = dag.add_operator(f"seen{number}", seen[number])
            sinks[number].append(collector.input)
        for number, ports in sinks.items():
            dag.add_stream(f"of {number}", (given if number < 0 else operators[number]).output, *ports)

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
