"""`dagflow peek APP OPERATOR.PORT`: the records that flow through a port."""

from __future__ import annotations

import gc
import json
import sys

import click

from dagflow.cli.app_arguments import AppArguments, app_command
from dagflow.cli.exit_codes import DONE
from dagflow.cli.prepare import built, configure_logs
from dagflow.cli.report_error import exit_code, style_of
from dagflow.lineage.peek import SAMPLE, peek_at, peekable_ports
from dagflow.render.errors import error_text
from dagflow.render.peek import peek_json, peek_text, ports_json, ports_text


@app_command(
    "peek",
    help="Show the first records that flow through a port. The operators upstream of it run in this process, on a sample of the "
    "input. No other operator is set up, and nothing is written. Without a port, list the ports.\n\n"
    "OPERATOR.PORT is an output port or an input port. The input port of a sink shows what would be written.",
    params=[
        click.Argument(["port"], metavar="[OPERATOR.PORT]", required=False),
        click.Option(["-n", "n"], type=click.IntRange(min=1), default=20, metavar="N", help="Show N records (default: 20)."),
        click.Option(
            ["--sample"],
            type=click.IntRange(min=1),
            default=SAMPLE,
            metavar="N",
            help=f"Read at most N records of each reader (default: {SAMPLE:,}).",
        ),
    ],
    example="dagflow peek apps/line_filter keep.output -D input=logs -D output=out",
)
def command(arguments: AppArguments, port: str | None, n: int, sample: int) -> int:
    """Print the records, or the ports."""
    application = built(arguments)
    if port is None:
        ports = peekable_ports(application)
        if arguments.json:
            print(json.dumps(ports_json(ports), indent=2, ensure_ascii=False))
        else:
            print(ports_text(application.dag.name, ports, style_of(sys.stdout)))
            print(f"\nTo see records: dagflow peek {arguments.application} {ports[-1].port}, with the same settings.")
        return DONE
    configure_logs(application.run)
    gc.enable()  # `main` turned it off; operators make garbage
    peeked = peek_at(application, port, n=n, sample=sample)
    if arguments.json:
        print(json.dumps(peek_json(peeked), indent=2, ensure_ascii=False), flush=True)
    elif peeked.records or peeked.problem is None:
        print(peek_text(peeked, style_of(sys.stdout)), flush=True)
    if peeked.problem is None:
        return DONE
    if not arguments.json:
        print(error_text(peeked.problem, style_of(sys.stderr)), file=sys.stderr)
    return exit_code(peeked.problem)
