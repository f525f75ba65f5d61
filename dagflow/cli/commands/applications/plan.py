"""`dagflow plan APP`: how an application will run, step by step."""

from __future__ import annotations

import json
import sys

import click

from dagflow.cli.app_arguments import AppArguments, app_command
from dagflow.cli.prepare import built, planned
from dagflow.cli.report_error import style_of
from dagflow.planning.steps import PHASES
from dagflow.planning.view import PlanView, plan_view
from dagflow.render.plan import hint, plan_text

DEFAULT = "staged"


@app_command(
    "plan",
    help="Show where each operator will run, and which ones are fused into a stage. Nothing runs.",
    params=[
        click.Option(
            ["--step"],
            type=click.Choice(PHASES),
            metavar="NAME",
            help=f"Show the application as it is after this step of the planner: {', '.join(PHASES)} (default: {DEFAULT}).",
        )
    ],
)
def command(arguments: AppArguments, step: str | None) -> None:
    """Print one step of the plan."""
    view = view_of(arguments, step or DEFAULT)
    if arguments.json:
        print(json.dumps(view.as_json(), indent=2, ensure_ascii=False))
        return
    print(plan_text(view, style_of(sys.stdout)))
    if step is None:
        print(f"\n{hint(view)}")


def view_of(arguments: AppArguments, step: str) -> PlanView:
    """Return the view of a step. The first two work for a DAG with mistakes too. Raises DagflowError."""
    if step in ("logical", "expanded"):
        application = built(arguments)
        return plan_view(application.dag if step == "logical" else application.expanded, step, application.applied)
    application, plan = planned(arguments)
    return plan_view(plan, step, application.applied)
