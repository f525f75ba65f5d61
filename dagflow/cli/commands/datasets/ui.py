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
from dagflow.page.server import HOST, PORT, RunServer


def token_of(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a token that is not easily guessed."""
    if value is not None and (len(value) < 16 or not value.isascii() or not value.isprintable() or " " in value):
        command = "python -c 'import secrets; print(secrets.token_urlsafe(24))'"
        raise click.BadParameter(f"it needs at least 16 printable ASCII characters without blanks. To make one: {command}")
    return value


@dataset_command(
    "ui",
    examples=("dagflow ui out", "dagflow ui out --port 0 --open"),
    help="Serve the page of a run on this machine, and keep it up to date while launches run. The server only reads. Without "
    "--host, only this machine can reach it; with --token, only those who have the token. You can start it before the first "
    "launch. Ctrl-C stops it.",
    params=[
        click.Option(
            ["--port"],
            type=click.IntRange(0, 65535),
            metavar="N",
            help=f"Listen on this port; 0: on any free port (default: {PORT}, or a free port if it is taken).",
        ),
        click.Option(
            ["--host"],
            metavar="ADDRESS",
            help=f"Listen on this address, 0.0.0.0 for all (default: {HOST}). Beyond this machine, a token is needed: without "
            "--token, a new one. The page is not encrypted.",
        ),
        click.Option(
            ["--token"],
            metavar="TOKEN",
            envvar="DAGFLOW_UI_TOKEN",
            callback=token_of,
            help="Answer only requests with this token, at least 16 characters; also DAGFLOW_UI_TOKEN, which no list of "
            "processes shows. Browsers get it by the address that is printed, other clients send Authorization: Bearer TOKEN.",
        ),
        click.Option(["--open", "opens"], is_flag=True, help="Open the page in a browser."),
    ],
    has_ledger=False,
    codes={0: "stopped (Ctrl-C, SIGTERM)", 130: "interrupted before it serves"},
)
def command(arguments: DatasetArguments, port: int | None, host: str | None, token: str | None, opens: bool) -> int:
    """Serve until interrupted."""
    host = HOST if host is None else host
    try:
        server = RunServer(arguments.place, PORT if port is None else port, host=host, token=token)
    except PortInUse:
        if port is not None:
            raise
        server = RunServer(arguments.place, 0, host=host, token=token)
    # SIGTERM, by which a background job or a service is stopped, ends it as Ctrl-C does
    with contextlib.closing(server), contextlib.suppress(KeyboardInterrupt):
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        print(f'{{"url": "{server.url}"}}' if arguments.json else f"{server.url}  (Ctrl-C stops it)", flush=True)
        if opens:
            webbrowser.open(server.url)
        server.serve()
    return DONE
