"""`dagflow explain CODE`: the cause of an error, an example and the remedy."""

from __future__ import annotations

import json
import sys

import click

from dagflow.cli.group import epilog
from dagflow.cli.report_error import style_of
from dagflow.render.explanations import errors_page, explain, explanation_text, explanations, list_text


@click.command(
    "explain",
    help="Explain an error by its code (DF012) or class: cause, example, remedy. Without a code, list all errors.",
    epilog=epilog("dagflow explain DF012"),
    params=[
        click.Argument(["code"], required=False),
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON on standard output."),
        click.Option(["--markdown"], is_flag=True, help="Print all errors as a page of Markdown."),
    ],
)
def command(code: str | None, as_json: bool, markdown: bool) -> None:
    """Print one explanation, or all."""
    if markdown:
        print(errors_page(), end="")
        return
    try:
        chosen = list(explanations().values()) if code is None else [explain(code)]
    except LookupError as error:
        raise click.UsageError(str(error.args[0])) from None
    if as_json:
        data = [each.as_json() for each in chosen]
        print(json.dumps(data if code is None else data[0], indent=2, ensure_ascii=False))
    else:
        print(list_text() if code is None else explanation_text(chosen[0], style_of(sys.stdout)))
