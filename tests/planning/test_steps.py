"""The steps of the planner: each is a pure function that changes only what it decides."""

from __future__ import annotations

import attrs
import pytest

from dagflow import DAG
from dagflow.model.graph.expand import ExpandedDag
from dagflow.planning.plan import Forms, Plan
from dagflow.planning.relays import Relay, add_relays
from dagflow.planning.stages import fuse_stages
from dagflow.planning.steps import PHASES, STEPS, after, make_plan
from operators import BlockReader, Console, Count, FileSplitterInput
from tests.render import sample

DECIDED = {
    "checked": {"dag", "written"},
    "columns": {"dag"},
    "current": {"dag"},
    "partial": {"dag"},
    "relayed": {"dag"},
    "placed": {"placement", "groups", "levels", "exchanges"},
    "forms": {"forms"},
    "staged": {"stages"},
}


def counted() -> DAG:
    """Blocks are counted where they are read, and by the driver, whose records cross an exchange too."""
    dag = DAG("counted")
    files = dag.add_operator("files", FileSplitterInput(files=["logs"]))
    reader = dag.add_operator("reader", BlockReader())
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    for name, port in (("lines", reader.messages), ("paths", files.files_metadata_output)):
        count = dag.add_operator(f"count {name}", Count(by=str))
        dag.add_stream(name, port, count.input)
        dag.add_stream(f"counted {name}", count.output, dag.add_operator(f"show {name}", Console()).input)
    return dag


def plan_after(dag: DAG, step: str) -> Plan:
    plan = after(dag, step)
    assert isinstance(plan, Plan)
    return plan


def test_the_steps_are_what_can_be_shown() -> None:
    assert ("logical", "expanded", *DECIDED, "spark") == PHASES
    assert isinstance(after(counted(), "logical"), DAG)
    assert isinstance(after(counted(), "expanded"), ExpandedDag)


@pytest.mark.parametrize(("before", "step"), list(zip(list(DECIDED), list(DECIDED)[1:], strict=False)))
def test_a_step_changes_only_what_it_decides(before: str, step: str) -> None:
    plan = plan_after(counted(), before)
    fields = {field.name: getattr(plan, field.name) for field in attrs.fields(Plan)}
    rewritten = next(each for each in STEPS if each.name == step).apply(plan)
    assert {name for name, value in fields.items() if getattr(rewritten, name) is not value} == DECIDED[step]
    assert plan == Plan(**fields)


@pytest.mark.parametrize("step", DECIDED)
def test_what_later_steps_decide_is_empty(step: str) -> None:
    plan = plan_after(counted(), step)
    later = list(DECIDED)[list(DECIDED).index(step) + 1 :]
    undecided = {name for each in later for name in DECIDED[each]} - {"dag"}
    assert all(getattr(plan, name) in ({}, (), Forms()) for name in undecided)


def test_a_plan_is_taken_back_to_its_checked_dag() -> None:
    plan = make_plan(counted())
    assert after(plan, "staged") is plan
    assert after(plan, "checked") == Plan(dag=plan.written, written=plan.written)
    placed = after(plan, "placed")
    assert isinstance(placed, Plan)
    assert (placed.placement, placed.exchanges) == (plan.placement, plan.exchanges)


def test_relays_stand_only_before_exchanges() -> None:
    plan = add_relays(plan_after(counted(), "partial"))
    relays = [name for name, node in plan.dag.nodes.items() if isinstance(node.operator, Relay)]
    assert relays == ["relay to count paths.input"]
    chain = plan_after(sample.chain(), "partial")
    assert add_relays(chain) is chain


def test_stages_are_named_in_the_order_of_their_levels() -> None:
    plan = fuse_stages(plan_after(counted(), "forms"))
    assert [stage.name for stage in plan.stages] == [f"s{n}" for n in range(len(plan.stages))]
    assert [stage.level for stage in plan.stages] == sorted(stage.level for stage in plan.stages)
    assert {name for stage in plan.stages for name in stage.operators} | set(plan.driver) == set(plan.dag.nodes)
