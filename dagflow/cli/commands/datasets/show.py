"""`dagflow show DATASET`: rows of a dataset."""

from __future__ import annotations

import json
import sys

import click

from dagflow.cli.dataset_arguments import DatasetArguments, dataset_command
from dagflow.cli.report_error import style_of
from dagflow.ledger.dataset.first_rows import first_rows
from dagflow.render.datasets.rows import rows_json, rows_text

MOST = 20


@dataset_command(
    "show",
    examples=("dagflow show out", "dagflow show out -n 5 --columns day,amount"),
    help="Show the first rows of a dataset. Only committed files are read.",
    params=[
        click.Option(
            ["-n", "--limit"],
            type=click.IntRange(min=0),
            default=MOST,
            metavar="N",
            help=f"Show N rows, 0 for all (default: {MOST}).",
        ),
        click.Option(["--columns"], multiple=True, metavar="NAME,…", help="Show these columns, in this order. Repeatable."),
        click.Option(["--window"], type=click.IntRange(min=0), metavar="N", help="Show only rows that window N has committed."),
    ],
)
def command(arguments: DatasetArguments, limit: int, columns: tuple[str, ...], window: int | None) -> None:
    """Print the rows."""
    names = [name.strip() for text in columns for name in text.split(",") if name.strip()]
    rows = first_rows(arguments.dataset, limit or None, columns=names or None, window=window)
    if arguments.json:
        print(json.dumps(rows_json(rows, arguments.dataset, window), indent=2, ensure_ascii=False))
    else:
        print(rows_text(rows, arguments.place, style_of(sys.stdout), window))
