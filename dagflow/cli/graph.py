"""`dagflow graph APP`: the DAG as a picture."""

from __future__ import annotations

import json
import sys

import click

from dagflow.cli.ending import style_of
from dagflow.cli.options import Given, app_command
from dagflow.cli.plan import DEFAULT, view_of
from dagflow.plan.steps import PHASES
from dagflow.render.graph import graph_text, mermaid


@app_command(
    "graph",
    help="Draws an application's operators and streams. Starts nothing.",
    params=[
        click.Option(
            ["-f", "--format", "form"], type=click.Choice(["text", "mermaid"]), default="text", help="Lines of text, or Mermaid."
        ),
        click.Option(
            ["--step"], type=click.Choice(PHASES), default=DEFAULT, help="As for `plan`; `logical` draws a DAG with mistakes too."
        ),
    ],
)
def command(given: Given, form: str, step: str) -> None:
    """Prints the picture."""
    view = view_of(given, step)
    if given.json:
        print(json.dumps(view.as_json(), indent=2, ensure_ascii=False))
    elif form == "mermaid":
        print(mermaid(view))
    else:
        print(graph_text(view, style_of(sys.stdout)))
