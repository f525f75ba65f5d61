"""`dagflow completion SHELL`: the script for completion by Tab."""

from __future__ import annotations

import click

from dagflow.cli.completion.scripts import INSTALL, SCRIPTS
from dagflow.cli.group import epilog


@click.command(
    "completion",
    help="Print the script for completion by Tab: of commands, options, paths and settings (-D).\n\nSHELL is bash, zsh or fish.",
    epilog=epilog("dagflow completion bash", *INSTALL.values()),
    params=[click.Argument(["shell"], type=click.Choice(list(SCRIPTS)), metavar="SHELL")],
)
def command(shell: str) -> None:
    """Print the script, with the line that installs it as a comment."""
    print(f"# {INSTALL[shell]}\n{SCRIPTS[shell]}", end="")
