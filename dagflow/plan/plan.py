"""The plan: from a DAG to stages by named steps, each a pure function; `PHASES` is the table of contents."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.model.checks import CheckedDag, check
from dagflow.model.dag import DAG, PortName
from dagflow.model.expand import ExpandedDag
from dagflow.model.partitioning import partitioner_of
from dagflow.plan.forms import Forms, choose_forms
from dagflow.plan.place import BY_KEY, DRIVER, Exchange, place, stages

PHASES = ("logical", "expanded", "checked", "placed", "staged", "spark")


@attrs.frozen
class Stage:
    """Operators fused into one pass of one task.

    `head` is the operator at the head of its partitions: in level 0 it gets the work items. Of a stage that goes along with one
    of a lower level, it is the head of that one.
    """

    name: str
    operators: tuple[str, ...]
    head: str
    level: int = 0

    @property
    def is_leading(self) -> bool:
        """Whether its partitions are its own, and not those of a stage before it."""
        return self.head in self.operators


@attrs.frozen
class Plan:
    """All that the runners need to know of an application.

    Attributes:
        dag: the checked DAG, with its relays.
        placement: `driver`, `parallel`, `keyed`, `counted` or `single`, by operator.
        driver: the operators on the driver, upstream first.
        stages: the stages of the partitioned part, those of lower levels first.
        forms: in which form records travel.
        exchanges: where records cross from one level to another, by the port that they lead to.
        written: the checked DAG without what the planner has added.
    """

    dag: CheckedDag
    placement: dict[str, str]
    driver: tuple[str, ...]
    stages: tuple[Stage, ...]
    forms: Forms
    exchanges: dict[PortName, Exchange] = attrs.field(factory=dict)
    written: CheckedDag = attrs.field(kw_only=True)

    def stage_of(self, operator: str) -> Stage:
        """The stage of an operator in tasks."""
        return next(stage for stage in self.stages if operator in stage.operators)

    def stages_before(self, stage: Stage) -> list[Stage]:
        """The stages whose records cross an exchange to a stage."""
        above = {e.source.operator for e in self.exchanges.values() if e.sink.operator in stage.operators}
        return [each for each in self.stages if above & set(each.operators)]

    def keyed_ports(self, stage: Stage) -> tuple[str, ...]:
        """The input ports of the head of a stage whose records find their partition by key."""
        into = [each for each in self.exchanges.values() if each.sink.operator == stage.head]
        return tuple(each.sink.port for each in into if each.kind == BY_KEY)

    def partitioner(self, stage: Stage) -> Any:
        """Who says how many partitions a stage has: a `dagflow.scaling.Partitioner`."""
        found = partitioner_of(self.dag.nodes[stage.head])
        return self.dag.nodes[stage.head].operator if found == "self" else found

    def work_ports(self) -> list[PortName]:
        """The input ports that work items cross to, from the driver to the stages."""
        heads = {stage.head for stage in self.stages if stage.level == 0}
        return [
            k
            for s in self.dag.streams.values()
            for k in s.sinks
            if k.operator in heads and self.placement[s.source.operator] == DRIVER
        ]


def make_plan(dag: DAG | ExpandedDag) -> Plan:
    """Checks a DAG and plans it. Raises DagError."""
    written = check(dag)
    placed = place(written)
    checked = placed.dag
    forms = choose_forms(checked, placed.exchanges)
    driver = tuple(name for name in checked.nodes if placed.where[name] == DRIVER)
    staged = tuple(Stage(f"s{n}", names, head, level) for n, (level, head, names) in enumerate(stages(placed)))
    return Plan(checked, placed.where, driver, staged, forms, placed.exchanges, written=written)
