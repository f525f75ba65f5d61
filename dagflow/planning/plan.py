"""The values of a plan: where operators run, how records cross from one level to the next, and in which form."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.model.graph.checks import CheckedDag
from dagflow.model.graph.dag import PortName
from dagflow.model.graph.partitioning import partitioner_of
from dagflow.model.types.keys import Key
from dagflow.planning.emission import Emission

DRIVER, PARALLEL, KEYED, COUNTED, SINGLE = "driver", "parallel", "keyed", "counted", "single"
HASH, ROUND_ROBIN, GATHER, FORWARD, DATAFRAME = "hash", "round-robin", "gather", "forward", "DataFrame"


@attrs.frozen(kw_only=True)
class Exchange:
    """The way of a stream to one sink in another level.

    Attributes:
        tag: its number; rows carry it.
        kind: `hash`: records with equal keys go to one partition; `round-robin`: each record goes to the next partition;
            `gather`: all go to one partition; `forward`: records keep their partition; `DataFrame`: the input of a DataFrame
            operator goes round-robin, and its output to the partitions of that operator.
        key: of the kind `hash`.
    """

    tag: int
    source: PortName
    sink: PortName
    kind: str
    key: Key | None = None

    def __str__(self) -> str:
        """Return how records find their partition.

        >>> str(Exchange(tag=0, source=PortName("a", "output"), sink=PortName("b", "input"), kind="hash", key=Key(("word",))))
        'hash by word'
        """
        return f"{self.kind} by {self.key}" if self.kind == HASH else self.kind


@attrs.frozen
class Forms:
    """The forms in which records travel.

    Attributes:
        emitted: the form (`record` or `batch`) of every output port in use.
        handled: the form of the handler that is called on every input port in use.
        converted: input ports before which records are converted, with the direction.
        crossing: what exchanges carry, by the port that they lead to: `batches`, or `pickled` records of a type without an Arrow
            form.
    """

    emitted: dict[PortName, str] = attrs.field(factory=dict)
    handled: dict[PortName, str] = attrs.field(factory=dict)
    converted: dict[PortName, str] = attrs.field(factory=dict)
    crossing: dict[PortName, str] = attrs.field(factory=dict)


@attrs.frozen
class Stage:
    """Operators fused into one pass of one task.

    `head` is the operator at the head of its partitions: in level 0 it gets the work items. A stage that is parallel with one of
    a lower level has the head of that one.
    """

    name: str
    operators: tuple[str, ...]
    head: str
    level: int = 0

    @property
    def is_leading(self) -> bool:
        """True if its partitions are its own, and not those of a stage before it."""
        return self.head in self.operators


@attrs.frozen(kw_only=True)
class Plan:
    """Everything that runners need to know about an application. Fields that later steps fill are empty until then.

    Attributes:
        dag: the checked DAG, with the operators that the planner has added.
        written: the checked DAG without them.
        emission: when changing streams reach sinks.
        placement: `driver`, `parallel`, `keyed`, `counted` or `single`, by operator.
        groups: by operator in tasks, the one at the head of its partitions. All of a group have the same partitions.
        levels: by operator in tasks; 0 before the first exchange.
        exchanges: where records cross from one level to another, by the port that they lead to.
        forms: the forms in which records travel.
        stages: the stages of the partitioned part, those of lower levels first.
    """

    dag: CheckedDag
    written: CheckedDag
    emission: Emission = attrs.field(factory=Emission)
    placement: dict[str, str] = attrs.field(factory=dict)
    groups: dict[str, str] = attrs.field(factory=dict)
    levels: dict[str, int] = attrs.field(factory=dict)
    exchanges: dict[PortName, Exchange] = attrs.field(factory=dict)
    forms: Forms = attrs.field(factory=Forms)
    stages: tuple[Stage, ...] = ()

    @property
    def driver(self) -> tuple[str, ...]:
        """The operators on the driver, upstream first."""
        return tuple(name for name in self.dag.nodes if self.placement[name] == DRIVER)

    def stage_of(self, operator: str) -> Stage:
        """Return the stage of an operator in tasks."""
        return next(stage for stage in self.stages if operator in stage.operators)

    def stages_before(self, stage: Stage) -> list[Stage]:
        """Return the stages whose records cross an exchange to a stage."""
        above = {e.source.operator for e in self.exchanges.values() if e.sink.operator in stage.operators}
        return [each for each in self.stages if above & set(each.operators)]

    def keyed_ports(self, stage: Stage) -> tuple[str, ...]:
        """Return the input ports of the head of a stage whose records find their partition by key."""
        into = [each for each in self.exchanges.values() if each.sink.operator == stage.head]
        return tuple(each.sink.port for each in into if each.kind == HASH)

    def partitioner(self, stage: Stage) -> Any:
        """Return the `dagflow.scaling.Partitioner` that decides how many partitions a stage has; None for the default."""
        partitioner = partitioner_of(self.dag.nodes[stage.head])
        return self.dag.nodes[stage.head].operator if partitioner == "self" else partitioner

    def leading_to(self, operator: str) -> Plan:
        """Return the plan with only an operator and those upstream of it. Their other streams lead nowhere."""
        kept = {operator}
        while more := {source.operator for name in kept for source, _ in self.dag.upstream(name)} - kept:
            kept |= more
        nodes = {name: node for name, node in self.dag.nodes.items() if name in kept}
        streams = {
            name: attrs.evolve(stream, sinks=tuple(sink for sink in stream.sinks if sink.operator in kept))
            for name, stream in self.dag.streams.items()
            if stream.source.operator in kept
        }
        parts = [attrs.evolve(stage, operators=tuple(name for name in stage.operators if name in kept)) for stage in self.stages]
        return attrs.evolve(
            self,
            dag=attrs.evolve(self.dag, nodes=nodes, streams=streams),
            exchanges={sink: exchange for sink, exchange in self.exchanges.items() if sink.operator in kept},
            stages=tuple(stage for stage in parts if stage.operators),
        )

    def work_ports(self) -> list[PortName]:
        """Return the input ports that work items cross to, from the driver to the tasks."""
        driver = {name for name, place in self.placement.items() if place == DRIVER}
        streams = [stream for stream in self.dag.streams.values() if stream.source.operator in driver]
        return [sink for stream in streams for sink in stream.sinks if sink.operator not in driver]
