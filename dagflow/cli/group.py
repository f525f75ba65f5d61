"""The group of commands. It imports a command only when it is invoked."""

from __future__ import annotations

import importlib
import time
from typing import Any

import attrs
import click
from click.shell_completion import CompletionItem

COMMANDS = {
    "launch": "Run an application, on Spark or in this process.",
    "dev": "Run an application again whenever its code changes.",
    "validate": "Report everything that is wrong with an application. Nothing runs.",
    "plan": "Show where each operator will run, and what is fused.",
    "graph": "Draw the operators and streams of an application.",
    "config": "Show every setting, with its value and where that comes from.",
    "warm": "Prepare this machine for faster launches on a local Spark.",
    "log": "List what was committed to a dataset, newest first.",
    "trace": "Find the input that a row of a dataset came from.",
    "verify": "Check that a dataset is as it was written.",
    "explain": "Explain an error by its code: cause, example, remedy.",
}

EXIT_CODES = """\b
Exit codes:
  0    done
  1    the run failed, or the dataset is damaged
  2    the application, its settings or the command line are wrong
  3    the environment is not ready: Java, cluster, permissions, disk
  130  interrupted (Ctrl-C, SIGTERM); launch again to resume
"""


def epilog(*examples: str) -> str:
    """Return the end of a help page: examples to copy, and the exit codes."""
    lines = ["\b", "Examples:" if len(examples) > 1 else "Example:", *(f"  {example}" for example in examples)]
    return "\n".join([*lines, "", EXIT_CODES])


@attrs.define
class ErrorOutput:
    """The options that decide how errors are reported. `began`: when the process began to work, by the monotonic clock."""

    debug: bool = False
    json: bool = False
    json_progress: bool = False
    began: float = attrs.field(factory=time.monotonic)


class OutputClosed(Exception):
    """The reader of standard output is gone."""


def paths(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete paths, as it does for other commands."""
    return [CompletionItem(incomplete, type="file")]


class Commands(click.Group):
    """A group whose commands are imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which they are used."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command. Its module is imported only now."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"dagflow.cli.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list for --help without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Resolve a command as click does, and name the nearest one if there is none."""
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
    help="Run applications that are assembled from operators, window by window, on Spark.\n\n"
    "APP is a folder with app.py, a path.py[:name] or a module[:name]. DATASET is the output folder of an application. "
    "`dagflow COMMAND --help` lists the options of a command.",
    epilog=epilog("dagflow launch apps/line_filter -D input=logs -D output=out", "dagflow log out"),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    params=[
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
        ),
    ],
)
