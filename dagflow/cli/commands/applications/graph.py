"""`dagflow graph APP`: the DAG as a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import click

from dagflow.cli.app_arguments import AppArguments, app_command
from dagflow.cli.commands.applications.plan import DEFAULT, view_of
from dagflow.cli.report_error import style_of
from dagflow.page import graph_svg
from dagflow.page.document import graph_html
from dagflow.planning.steps import PHASES
from dagflow.planning.view import PlanView
from dagflow.render.graph import graph_dot, graph_text, mermaid

_FORMS: dict[str, Callable[[PlanView], str]] = {"mermaid": mermaid, "svg": graph_svg, "dot": graph_dot, "html": graph_html}


@app_command(
    "graph",
    help="Draw the operators and streams of an application. Nothing runs.",
    params=[
        click.Option(
            ["-f", "--format", "form"],
            type=click.Choice(["text", "mermaid", "svg", "dot", "html"]),
            default="text",
            help="Draw lines of text (default), or print Mermaid, an SVG picture, DOT for Graphviz, or an HTML page.",
        ),
        click.Option(
            ["--step"],
            type=click.Choice(PHASES),
            metavar="NAME",
            default=DEFAULT,
            help=f"Draw the DAG after this step of the planner: {', '.join(PHASES)} (default: {DEFAULT}). "
            "`logical` draws one with mistakes too.",
        ),
    ],
)
def command(arguments: AppArguments, form: str, step: str) -> None:
    """Print the picture."""
    view = view_of(arguments, step)
    if arguments.json:
        print(json.dumps(view.as_json(), indent=2, ensure_ascii=False))
    elif form in _FORMS:
        print(_FORMS[form](view))
    else:
        print(graph_text(view, style_of(sys.stdout)))
