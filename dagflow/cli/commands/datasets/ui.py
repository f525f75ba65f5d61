"""`dagflow ui DATASET`: the page of a run, live."""

from __future__ import annotations

import contextlib
import signal
import threading
import webbrowser

import click

from dagflow.cli.dataset_arguments import DatasetArguments, dataset_command
from dagflow.cli.exit_codes import DONE
from dagflow.page.errors import PortInUse
from dagflow.page.server import PORT, RunServer


@dataset_command(
    "ui",
    examples=("dagflow ui out", "dagflow ui out --port 0 --open"),
    help="Serve the page of a run on this machine, and keep it up to date while launches run. The server only reads, and only "
    "browsers on this machine can reach it. You can start it before the first launch. Ctrl-C stops it.",
    params=[
        click.Option(
            ["--port"],
            type=click.IntRange(0, 65535),
            metavar="N",
            help=f"Listen on this port; 0: on any free port (default: {PORT}, or a free port if it is taken).",
        ),
        click.Option(["--open", "opens"], is_flag=True, help="Open the page in a browser."),
    ],
    has_ledger=False,
    codes={0: "stopped (Ctrl-C, SIGTERM)", 130: "interrupted before it serves"},
)
def command(arguments: DatasetArguments, port: int | None, opens: bool) -> int:
    """Serve until interrupted."""
    try:
        server = RunServer(arguments.place, PORT if port is None else port)
    except PortInUse:
        if port is not None:
            raise
        server = RunServer(arguments.place, 0)
    # SIGTERM, by which a background job or a service is stopped, ends it as Ctrl-C does
    with contextlib.closing(server), contextlib.suppress(KeyboardInterrupt):
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        print(f'{{"url": "{server.url}"}}' if arguments.json else f"{server.url}  (Ctrl-C stops it)", flush=True)
        if opens:
            webbrowser.open(server.url)
        server.serve()
    return DONE
