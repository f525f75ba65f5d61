"""The plan: from a DAG to stages by named steps, each a pure function; `PHASES` is the table of contents."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.model.checks import CheckedDag, check, partitioner_of
from dagflow.model.dag import DAG, PortName
from dagflow.model.expand import ExpandedDag
from dagflow.plan.forms import Forms, choose_forms
from dagflow.plan.place import DRIVER, place, stages

PHASES = ("logical", "expanded", "checked", "placed", "staged", "spark")


@attrs.frozen
class Stage:
    """Operators fused into one pass of one task; `head` is the operator that gets the work items."""

    name: str
    operators: tuple[str, ...]
    head: str


@attrs.frozen
class Plan:
    """All that the runners need to know of an application.

    Attributes:
        dag: the checked DAG.
        placement: `driver` or `parallel`, by operator.
        driver: the operators on the driver, upstream first.
        stages: the stages of the partitioned part; all of them together are one level.
        forms: in which form records travel.
    """

    dag: CheckedDag
    placement: dict[str, str]
    driver: tuple[str, ...]
    stages: tuple[Stage, ...]
    forms: Forms

    def partitioner(self, stage: Stage) -> Any:
        """Who says how many partitions a stage has: a `dagflow.scaling.Partitioner`."""
        found = partitioner_of(self.dag.nodes[stage.head])
        return self.dag.nodes[stage.head].operator if found == "self" else found

    def work_ports(self) -> list[PortName]:
        """The input ports that work items cross to, from the driver to the stages."""
        heads = {stage.head for stage in self.stages}
        return [
            k
            for s in self.dag.streams.values()
            for k in s.sinks
            if k.operator in heads and self.placement[s.source.operator] == DRIVER
        ]


def make_plan(dag: DAG | ExpandedDag) -> Plan:
    """Checks a DAG and plans it. Raises DagError."""
    checked = check(dag)
    placement = place(checked)
    groups = stages(checked, placement)
    forms = choose_forms(checked)
    driver = tuple(name for name in checked.nodes if placement[name] == DRIVER)
    staged = []
    for number, group in enumerate(groups):
        head = next(n for n in group if all(placement[s.operator] == DRIVER for s, _ in checked.upstream(n)))
        staged.append(Stage(f"s{number}", group, head))
    return Plan(checked, placement, driver, tuple(staged), forms)
