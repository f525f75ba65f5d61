"""`dagflow log DATASET`: what happened to a dataset, newest first."""

from __future__ import annotations

import datetime
import json
import sys
from itertools import islice

import click

from dagflow.cli.dataset_arguments import DatasetArguments, dataset_command
from dagflow.cli.report_error import style_of
from dagflow.ledger import Ledger
from dagflow.ledger.history import history, step
from dagflow.render.datasets.ledger import MOST, LogHead, entry_text, log_end, log_head, log_lines

_AT_ONCE = 200  # lines whose columns are made to fit each other


def instant_of(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """A date, or a date and time, UTC unless it says its zone: microseconds since the epoch."""
    if value is None:
        return None
    try:
        moment = datetime.datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time: write 2026-11-20 or 2026-11-20T08:30") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return (moment - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(microseconds=1)


@dataset_command(
    "log",
    examples=("dagflow log out", "dagflow log out 3"),
    help="List the entries of a dataset's ledger, newest first. With ENTRY, show that entry in full.",
    params=[
        click.Argument(["entry"], required=False, type=click.IntRange(min=0), metavar="[ENTRY]"),
        click.Option(
            ["-n", "--limit"],
            type=click.IntRange(min=0),
            metavar="N",
            help=f"List the N newest, 0 for all (default: {MOST}, with --json all).",
        ),
        click.Option(
            ["--since"],
            callback=instant_of,
            metavar="TIME",
            help="List entries committed at TIME or later: 2026-11-20 or 2026-11-20T08:30, UTC.",
        ),
        click.Option(["--data-only"], is_flag=True, help="List only entries that added rows."),
    ],
)
def command(arguments: DatasetArguments, entry: int | None, limit: int | None, since: int | None, data_only: bool) -> None:
    """Print the entries."""
    ledger = Ledger.open(arguments.dataset, durable=False)
    style = style_of(sys.stdout)
    if entry is not None:
        shown_step = step(ledger, ledger.entry(entry))
        if arguments.json:
            print(json.dumps(shown_step.as_json(), indent=2, ensure_ascii=False))
        else:
            print(entry_text(shown_step, arguments.dataset, style))
        return
    steps = history(ledger, since=since, data_only=data_only)
    most = limit if limit is not None else 0 if arguments.json else MOST
    shown = islice(steps, most) if most else steps
    if arguments.json:
        for each in shown:
            print(json.dumps(each.as_json(), ensure_ascii=False))
        return
    head = LogHead.of(ledger, arguments.dataset)
    print(log_head(head, style), end="\n\n")
    titled = True
    last = None
    while chunk := list(islice(shown, _AT_ONCE)):
        print("\n".join(log_lines(chunk, head, style, titled=titled)))
        titled = False
        last = chunk[-1].entry.seq
    if last is None:
        print("no such entries")
    elif (older := next(steps, None)) is not None:
        print(log_end(None if data_only or since is not None else older, style))
