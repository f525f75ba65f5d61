"""Where each operator runs: on the driver, or in the partitioned part."""

from __future__ import annotations

from dagflow.errors.dag import MergeMissing, NotSupported
from dagflow.model.checks import CheckedDag, partitioner_of
from dagflow.model.dag import OperatorNode
from dagflow.model.graph import components
from dagflow.model.kept import State, WindowState, kept_by
from dagflow.model.ports import ports_of

DRIVER, PARALLEL = "driver", "parallel"


def place(dag: CheckedDag) -> dict[str, str]:
    """The placement of every operator.

    Input operators and what follows them run on the driver, up to the first operator with a partitioner; from there on,
    everything runs in its partitions.

    Raises NotSupported for shapes that need an exchange, MergeMissing for State that could not follow the partitions.
    """
    placement: dict[str, str] = {}
    for name, node in dag.nodes.items():
        upstream = {placement[source.operator] for source, _ in dag.upstream(name)}
        head = partitioner_of(node) is not None and upstream
        if head and PARALLEL in upstream:
            raise NotSupported(
                f"operator {name!r} is partitioned by itself but follows one that is partitioned already: that needs an exchange",
                node.where,
                "set its partitioner to None, so that it runs in the partitions of the operator upstream",
            )
        if len(upstream) > 1:
            raise NotSupported(
                f"operator {name!r} gets records both from the driver and from partitioned operators",
                node.where,
                "feed it from one side only; exchanges are not built yet",
            )
        placement[name] = PARALLEL if head or PARALLEL in upstream else DRIVER
        if placement[name] == PARALLEL:
            _check_states(node)
        for _, sink in dag.upstream(name):
            declared = getattr(ports_of(type(node.operator))[sink.port], "partition_parallel", None)
            if node.port_attributes.get(sink.port, {}).get("partition_parallel", declared) is False and PARALLEL in upstream:
                raise NotSupported(
                    f"port {sink} says partition_parallel = false, which asks for an exchange",
                    node.where,
                    "leave the attribute out: the operator then runs in the partitions of the operator upstream",
                )
    return placement


def _check_states(node: OperatorNode) -> None:
    """Raises MergeMissing, or NotSupported, when an operator cannot run in partitions for what it keeps."""
    missing = {}
    for name, kept in kept_by(type(node.operator)).items():
        if isinstance(kept, WindowState):
            continue
        if not isinstance(kept, State):
            raise NotSupported(
                f"operator {node.name!r} keeps {type(kept).__name__} {name!r}, but runs in partitions, where it would be lost",
                node.where,
                "use a State with merge, or keep it in an operator before the readers",
            )
        if kept.merge is None:
            missing[name] = kept.with_merge()
    if missing:
        raise MergeMissing(node.name, type(node.operator).__qualname__, tuple(missing), tuple(missing.values()), node.where)


def stages(dag: CheckedDag, placement: dict[str, str]) -> list[tuple[str, ...]]:
    """The operators of the partitioned part that run together in one pass: groups that hang together, upstream first.

    Raises NotSupported for a group with two partitioned operators at its head: their partitions have nothing in common.
    """
    parallel = [name for name in dag.nodes if placement[name] == PARALLEL]
    edges = [(s.source.operator, k.operator) for s in dag.streams.values() for k in s.sinks]
    groups = components(parallel, [e for e in edges if e[0] in parallel and e[1] in parallel])
    for group in groups:
        heads = [name for name in group if all(placement[s.operator] == DRIVER for s, _ in dag.upstream(name))]
        if len(heads) > 1:
            meeting = next(name for name in group if len(_heads_above(dag, name, set(heads))) > 1)
            raise NotSupported(
                f"operator {meeting!r} cannot run in the partitions of {' and '.join(map(repr, heads))}: they are not related",
                dag.nodes[meeting].where,
                "give each branch an operator of its own, or one reader for both inputs; exchanges are not built yet",
            )
    return [tuple(group) for group in groups]


def _heads_above(dag: CheckedDag, name: str, heads: set[str]) -> set[str]:
    if name in heads:
        return {name}
    return set().union(*(_heads_above(dag, source.operator, heads) for source, _ in dag.upstream(name)))
