"""The group of commands: knows their names, imports one when it is invoked."""

from __future__ import annotations

import importlib
from typing import Any

import attrs
import click
from click.shell_completion import CompletionItem

COMMANDS = {
    "launch": "Runs an application, on Spark or in this process.",
    "validate": "Finds all that is wrong with an application, without running it.",
    "plan": "Shows how an application will run, step by step.",
    "graph": "Draws an application's operators and streams.",
    "config": "Shows every effective setting, and where it comes from.",
    "log": "Shows what happened to a dataset, newest first.",
    "trace": "Finds where a row of a dataset comes from.",
    "verify": "Checks a dataset against its ledger: links, rules, hashes of files.",
    "explain": "Explains an error by its code: cause, example, remedy.",
}

EXIT_CODES = """\b
Exit codes:
  0    done
  1    the run failed, or the dataset is damaged
  2    the application, its settings or the command line are wrong
  3    the environment is: Java, cluster, permissions, disk
  130  interrupted (Ctrl-C, SIGTERM); launch again to go on
"""


@attrs.define
class ErrorOutput:
    """The options of the command line for the output of errors."""

    debug: bool = False
    json: bool = False
    json_progress: bool = False


class NobodyReads(Exception):
    """Whoever read standard output has gone."""


def paths(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Lets the shell complete paths, as it does for other commands."""
    return [CompletionItem(incomplete, type="file")]


class Commands(click.Group):
    """A group whose commands are imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command; only now is its module imported."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = importlib.import_module(f"dagflow.cli.{cmd_name}").command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list for --help, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """As click's, but names the nearest known command."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from dagflow.errors.wording import did_you_mean

            hint = did_you_mean(args[0], COMMANDS, otherwise=f" Commands: {', '.join(COMMANDS)}.")
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"dagflow {version('dagflow')}")
        except PackageNotFoundError:
            click.echo("dagflow (not installed)")
        ctx.exit()


commands = Commands(
    name="dagflow",
    help="Runs applications that are assembled from operators, window by window, on Spark.\n\n"
    "APP is a folder with app.py, a path.py[:name] or a module[:name]; DATASET an output folder of one.",
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    params=[
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="The version."
        ),
    ],
)
