"""`dagflow operators [NAME]`: the catalogue of operators."""

from __future__ import annotations

import json
import sys

import click

from dagflow.catalogue.entries import catalogue, entry_named
from dagflow.cli.group import ErrorOutput, epilog
from dagflow.cli.report_error import style_of
from dagflow.render.catalogue import catalogue_json, catalogue_text, entry_json, entry_text


@click.command(
    "operators",
    help="List the operators of the library and of installed packages. With NAME: what it does, its ports and properties, "
    "an example, and its source.",
    epilog=epilog("dagflow operators", "dagflow operators Filter"),
    params=[
        click.Argument(["name"], required=False, metavar="[NAME]"),
        click.Option(["--json", "as_json"], is_flag=True, help="Print JSON on standard output."),
    ],
)
@click.pass_context
def command(context: click.Context, name: str | None, as_json: bool) -> None:
    """Print the list, or one entry."""
    context.ensure_object(ErrorOutput).json = as_json
    entries, broken = catalogue()
    entry = None if name is None else entry_named(name, entries)
    for each in broken if entry is None else ():
        print(f"warning: {each.package} offers {each.name!r}, which cannot be used: {each.problem}", file=sys.stderr)
    if as_json:
        data = catalogue_json(entries, broken) if entry is None else entry_json(entry, entries)
        print(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        style = style_of(sys.stdout)
        print(catalogue_text(entries, style) if entry is None else entry_text(entry, entries, style))
