"""`dagflow plan APP`: how an application will run, step by step."""

from __future__ import annotations

import json
import sys

import click

from dagflow.cli.ending import style_of
from dagflow.cli.options import Given, app_command
from dagflow.cli.prepare import built, planned
from dagflow.plan.steps import PHASES
from dagflow.plan.view import PlanView, plan_view
from dagflow.render.plan import hint, plan_text

DEFAULT = "staged"


@app_command(
    "plan",
    help="Shows how an application will run. Starts nothing.",
    params=[
        click.Option(
            ["--step"],
            type=click.Choice(PHASES),
            help=f"What the planner has made of the application by then (default: {DEFAULT}).",
        )
    ],
)
def command(given: Given, step: str | None) -> None:
    """Prints one step of the plan."""
    view = view_of(given, step or DEFAULT)
    if given.json:
        print(json.dumps(view.as_json(), indent=2, ensure_ascii=False))
        return
    print(plan_text(view, style_of(sys.stdout)))
    if step is None:
        print(f"\n{hint(view)}")


def view_of(given: Given, step: str) -> PlanView:
    """The view of a step; the first ones need no DAG without mistakes. Raises DagflowError."""
    if step in ("logical", "expanded"):
        made = built(given)
        return plan_view(made.dag if step == "logical" else made.expanded, step, made.applied)
    made, plan = planned(given)
    return plan_view(plan, step, made.applied)
