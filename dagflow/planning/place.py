"""The step `placed`: where each operator runs, at which level, and where records cross an exchange."""

from __future__ import annotations

import attrs

from dagflow.model.graph.checks import CheckedDag
from dagflow.model.graph.dag import OperatorNode, PortName
from dagflow.model.graph.partitioning import key_of_port, parallel_of, partitioner_of
from dagflow.model.operator.dataframes import INPUT, OUTPUT, DataFrameOperator, not_in_spark
from dagflow.model.operator.map_state import KeyedState
from dagflow.model.operator.state import State, WindowState, state_fields
from dagflow.model.types.comparison import type_name
from dagflow.model.types.keys import Key
from dagflow.planning.errors import (
    BodyPartitioned,
    ColumnsUnknown,
    MapStateNotKeyed,
    MergeMissing,
    NotSupported,
    TypeNotInSpark,
    UnrelatedPartitions,
)
from dagflow.planning.plan import (
    COUNTED,
    DATAFRAME,
    DRIVER,
    FORWARD,
    GATHER,
    HASH,
    KEYED,
    PARALLEL,
    ROUND_ROBIN,
    SINGLE,
    Exchange,
    Plan,
)
from dagflow.scaling import StatelessPartitioner


@attrs.define
class _Placing:
    """The decisions so far, upstream first."""

    dag: CheckedDag
    where: dict[str, str] = attrs.field(factory=dict)
    groups: dict[str, str] = attrs.field(factory=dict)
    levels: dict[str, int] = attrs.field(factory=dict)
    kinds: dict[PortName, tuple[str, Key | None]] = attrs.field(factory=dict)

    def operator(self, name: str, node: OperatorNode) -> None:
        """Place an operator. Those upstream have been placed."""
        upstream = self.dag.upstream(name)
        if all(self.where[source.operator] == DRIVER for source, _ in upstream):
            head = bool(upstream) and partitioner_of(node) is not None
            self.where[name] = PARALLEL if head else DRIVER
            if head:
                self.groups[name], self.levels[name] = name, 0
        else:
            self._in_tasks(name, node, upstream)
        if self.where[name] != DRIVER:
            _check_states(node, is_keyed=self.where[name] == KEYED)

    def _in_tasks(self, name: str, node: OperatorNode, upstream: list[tuple[PortName, PortName]]) -> None:
        ports = [sink.port for _, sink in upstream]
        keys = {port: key_of_port(node, port) for port in ports}
        partitioner = partitioner_of(node)
        parallel: list[str] = []
        if all(key is not None for key in keys.values()):
            where, kind = KEYED, HASH
        elif not node.operator.partitionable or partitioner == StatelessPartitioner(1):
            where, kind = SINGLE, GATHER
        else:
            where, kind = COUNTED, ROUND_ROBIN
        if isinstance(node.operator, DataFrameOperator):
            _check_body(node, self.dag)
            where, kind = COUNTED, DATAFRAME
        elif where != KEYED and node.operator.partitionable:
            parallel = [p for p in ports if parallel_of(node, p) or (partitioner is None and parallel_of(node, p) is None)]
            is_unrelated = len({self.groups[source.operator] for source, _ in upstream}) > 1
            if is_unrelated and node.operator.mixes_partitions and not any(parallel_of(node, port) for port in ports):
                parallel = []
        if parallel:
            where, kind = PARALLEL, ROUND_ROBIN
        self.where[name] = where
        self.groups[name] = self._group(node, [pair for pair in upstream if pair[1].port in parallel]) if parallel else name
        for _, sink in upstream:
            if sink.port not in parallel:
                self.kinds[sink] = (kind, keys[sink.port])
        levels = [(self.levels[source.operator], sink) for source, sink in upstream]
        self.levels[name] = max(level + (sink in self.kinds) for level, sink in levels)
        for level, sink in levels:
            if sink not in self.kinds and level < self.levels[name]:
                self.kinds[sink] = (FORWARD, None)

    def _group(self, node: OperatorNode, upstream: list[tuple[PortName, PortName]]) -> str:
        """Return the head of the partitions that an operator is parallel with. Raises UnrelatedPartitions."""
        heads = {sink: self.groups[source.operator] for source, sink in upstream}
        if len(set(heads.values())) > 1:
            raise UnrelatedPartitions(node.name, tuple((sink.port, head) for sink, head in heads.items()), node.where)
        return next(iter(heads.values()))


def place(plan: Plan) -> Plan:
    """Decide where every operator runs.

    Input operators and what follows them run on the driver, up to the first operator with a partitioner. What follows is parallel
    with it, until an operator asks to be keyed (`partition_by`), counted (it has a partitioner, a port that must not be parallel,
    or `mixes_partitions` that are not related) or single (not partitionable, or `StatelessPartitioner(1)`): it gets an exchange,
    and is one level higher. An operator whose inputs are of several levels is above all of them. Records of a parallel port are
    then forwarded.

    Raises UnrelatedPartitions, MergeMissing for State that could not follow the partitions, NotSupported for other state.
    """
    placing = _Placing(plan.dag)
    for name, node in plan.dag.nodes.items():
        placing.operator(name, node)
    exchanges: dict[PortName, Exchange] = {}
    for stream in plan.dag.streams.values():
        for sink in stream.sinks:
            if sink in placing.kinds:
                kind, key = placing.kinds[sink]
                exchanges[sink] = Exchange(tag=len(exchanges), source=stream.source, sink=sink, kind=kind, key=key)
    return attrs.evolve(plan, placement=placing.where, groups=placing.groups, levels=placing.levels, exchanges=exchanges)


def _check_body(node: OperatorNode, dag: CheckedDag) -> None:
    """Raise ColumnsUnknown, TypeNotInSpark or BodyPartitioned for a DataFrame operator that cannot be placed."""
    operator = node.operator
    assert isinstance(operator, DataFrameOperator)
    for port in (INPUT, OUTPUT):
        kind = dag.types[PortName(node.name, port)]
        columns = operator.columns(port, kind)
        if columns is None:
            raise ColumnsUnknown(node.name, type(operator).__name__, port, type_name(kind), node.where)
        for field in columns:
            if (instead := not_in_spark(field.type)) is not None:
                what = "its input" if port == INPUT else "its declared output"
                raise TypeNotInSpark(node.name, what, field.name, str(field.type), instead, node.where)
    if parallel_of(node, INPUT):
        raise BodyPartitioned(node.name, "partition_parallel=True", node.where)
    if key_of_port(node, INPUT) is not None:
        raise BodyPartitioned(node.name, "a partition_by", node.where)


def _check_states(node: OperatorNode, is_keyed: bool) -> None:
    """Raise MergeMissing, MapStateNotKeyed or NotSupported where an operator cannot run in partitions because of its state."""
    missing: dict[str, str] = {}
    maps: dict[str, str] = {}
    for name, kept in state_fields(type(node.operator)).items():
        if isinstance(kept, WindowState) or not node.operator.keeps_state(name):
            continue
        if not isinstance(kept, State):
            raise NotSupported(
                f"operator {node.name!r} keeps {type(kept).__name__} {name!r}, but runs in partitions, where it would be lost",
                node.where,
                "use a State with merge, or keep it in an operator before the readers",
            )
        if isinstance(kept, KeyedState):
            if not is_keyed:  # else each partition has the entries of its keys
                maps[name] = kept.with_merge()
        elif kept.merge is None:
            missing[name] = kept.with_merge()
    if maps:
        raise MapStateNotKeyed(node.name, type(node.operator).__qualname__, tuple(maps), tuple(maps.values()), node.where)
    if missing:
        raise MergeMissing(node.name, type(node.operator).__qualname__, tuple(missing), tuple(missing.values()), node.where)
