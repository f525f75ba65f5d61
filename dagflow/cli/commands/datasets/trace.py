"""`dagflow trace DATASET --offset N`: where a row comes from."""

from __future__ import annotations

import json
import sys

import click

from dagflow.cli.dataset_arguments import DatasetArguments, application_options, dataset_command, locator
from dagflow.cli.exit_codes import DONE
from dagflow.cli.report_error import exit_code, style_of
from dagflow.lineage.trace import row_of, trace
from dagflow.render.datasets.trace import trace_json, trace_text
from dagflow.render.errors import error_text


@dataset_command(
    "trace",
    examples=("dagflow trace out --offset 17", "dagflow trace out --offset 17 --exact --app apps/line_filter -D input=logs"),
    help="Find the input that a row of a dataset came from: the entry that committed it, its window, and the ranges of the "
    "sources that its task read. With --exact, find the record itself. For that the task runs again up to the row, in this "
    "process, without output; --app or --trust says which code may run.",
    params=[
        click.Option(["--offset"], type=click.IntRange(min=0), metavar="N", help="Number of the row in the dataset, from 0."),
        click.Option(
            ["--line"],
            type=click.IntRange(min=1),
            metavar="N",
            help="Number of the row in its file, from 1. DATASET is then that file.",
        ),
        click.Option(["--exact"], is_flag=True, help="Find the record, and read it again from its source."),
        *application_options(),
    ],
)
def command(
    arguments: DatasetArguments,
    offset: int | None,
    line: int | None,
    exact: bool,
    run_folder: str | None,
    app: str | None,
    trust: bool,
    define: tuple[str, ...],
    conf: tuple[str, ...],
) -> int:
    """Print what was found."""
    if (offset is None) == (line is None):
        raise click.UsageError("Which row? Either --offset N, its number in the dataset, or --line N, its number in its file.")
    if not exact and (app is not None or trust or define or conf):
        raise click.UsageError("--app, --trust, -D and --conf go with --exact: without it, nothing is run again.")
    again = locator(run_folder, app, trust, define, conf)
    row = offset if offset is not None else row_of(arguments.place, line or 0)
    origin = trace(arguments.dataset, row, exact=exact, locator=again)
    if arguments.json:
        print(json.dumps(trace_json(origin), indent=2, ensure_ascii=False))
    else:
        print(trace_text(origin, style_of(sys.stdout)), flush=True)
    if origin.problem is None:
        return DONE
    if not arguments.json:
        print(error_text(origin.problem, style_of(sys.stderr)), file=sys.stderr)
    return exit_code(origin.problem)
