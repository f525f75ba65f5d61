"""The steps of the planner in order: `STEPS` is its table of contents, and `dagflow plan --step NAME` shows each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from dagflow.model.graph.checks import check
from dagflow.model.graph.dag import DAG
from dagflow.model.graph.expand import ExpandedDag, expand
from dagflow.planning.columns_read import leave_out_columns
from dagflow.planning.current_results import add_current_results
from dagflow.planning.emission import Emission
from dagflow.planning.forms import choose_forms
from dagflow.planning.partial_aggregation import add_partial_aggregations
from dagflow.planning.place import place
from dagflow.planning.plan import Plan
from dagflow.planning.relays import add_relays
from dagflow.planning.stages import fuse_stages

Application = DAG | ExpandedDag | Plan
"""An application as it is after some step."""


def check_dag(dag: ExpandedDag) -> Plan:
    """Report all problems of a DAG together, and infer the types of its ports."""
    checked = check(dag)
    return Plan(dag=checked, written=checked)


@attrs.frozen
class Rewrite:
    """A step of the planner: a pure function from an application after the step before to the application after this one."""

    name: str
    apply: Callable[[Any], ExpandedDag | Plan]


STEPS = (
    Rewrite("expanded", expand),
    Rewrite("checked", check_dag),
    Rewrite("columns", leave_out_columns),
    Rewrite("current", add_current_results),
    Rewrite("partial", add_partial_aggregations),
    Rewrite("relayed", add_relays),
    Rewrite("placed", place),
    Rewrite("forms", choose_forms),
    Rewrite("staged", fuse_stages),
)
PHASES = ("logical", *(step.name for step in STEPS), "spark")
"""The phases that can be shown: the DAG as written, as it is after each step, and what Spark is given."""


def after(of: Application, phase: str) -> Application:
    """Return an application as it is after a step. A plan is taken back to its checked DAG, but not further."""
    if isinstance(of, Plan):
        if of.stages and PHASES.index(phase) >= PHASES.index("staged"):
            return of
        of, done = Plan(dag=of.written, written=of.written, emission=of.emission), "checked"
    else:
        done = "logical" if isinstance(of, DAG) else "expanded"
    for step in STEPS[PHASES.index(done) : PHASES.index(phase)]:
        of = step.apply(of)
    return of


def make_plan(dag: DAG | ExpandedDag, emission: Emission | None = None) -> Plan:
    """Check a DAG and plan it. `emission`: when changing streams reach sinks. Raises DagError."""
    checked = after(dag, "checked")
    assert isinstance(checked, Plan)
    plan = after(attrs.evolve(checked, emission=emission or checked.emission), "staged")
    assert isinstance(plan, Plan)
    return plan
