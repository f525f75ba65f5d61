"""The group of commands. It imports a command only when it is invoked."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Mapping
from typing import Any

import attrs
import click
from click.shell_completion import CompletionItem

SECTIONS = {
    "applications": {
        "launch": "Run an application, on Spark or in this process.",
        "submit": "Show what a cluster needs to run an application, or run that.",
        "dev": "Run an application again whenever its code changes.",
        "validate": "Report everything that is wrong with an application. Nothing runs.",
        "plan": "Show where each operator will run, and what is fused.",
        "graph": "Draw the operators and streams of an application.",
        "peek": "Show the records that flow through a port.",
        "config": "Show every setting, with its value and where that comes from.",
        "package": "Make an archive of the libraries that an application needs.",
    },
    "datasets": {
        "show": "Show the first rows of a dataset.",
        "report": "Show how a run went, as text, JSON or one HTML page.",
        "ui": "Serve the page of a run on this machine, live.",
        "log": "List what was committed to a dataset, newest first.",
        "trace": "Find the input that a row of a dataset came from.",
        "verify": "Check that a dataset is as it was written.",
    },
    "general": {
        "init": "Make a folder with a new application and its tests.",
        "operators": "List the operators of the library, or explain one.",
        "doctor": "Check what dagflow needs: Java, Spark, Python, disk, network.",
        "warm": "Prepare this machine for faster launches on a local Spark.",
        "completion": "Print the script for completion by Tab: bash, zsh, fish.",
        "explain": "Explain an error by its code: cause, example, remedy.",
    },
}
"""The commands by the package of `dagflow.cli.commands` that holds them, in the order in which they are used."""

TITLES = {"applications": "Applications (APP)", "datasets": "Their output (DATASET)", "general": "Other commands"}

COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}

EXIT_CODES = {
    0: "done",
    1: "the run failed, or the dataset is damaged",
    2: "the application, its settings or the command line are wrong",
    3: "the environment is not ready: Java, cluster, permissions, disk",
    130: "interrupted (Ctrl-C, SIGTERM)",
}
APPLICATION_CODES = {**EXIT_CODES, 1: "the application failed", 130: "interrupted (Ctrl-C)"}
LAUNCH_CODES = {**EXIT_CODES, 1: "the run failed", 130: f"{EXIT_CODES[130]}; launch again to resume"}
DATASET_CODES = {0: "done", 1: "the dataset is damaged", 2: "the command line is wrong", 3: "the dataset cannot be read"}
DATASET_CODES |= {130: "interrupted (Ctrl-C)"}
GENERAL_CODES = {0: "done", 2: "the command line is wrong", 3: EXIT_CODES[3], 130: "interrupted (Ctrl-C)"}
"""The exit codes in help pages: of all commands together, then those of a kind."""


def epilog(*examples: str, codes: Mapping[int, str] = GENERAL_CODES) -> str:
    """Return the end of a help page: examples to copy, and the exit codes."""
    lines = ["\b", "Examples:" if len(examples) > 1 else "Example:", *(f"  {example}" for example in examples)]
    return "\n".join([*lines, "", "\b", "Exit codes:", *(f"  {code:<3}  {text}" for code, text in codes.items())])


@attrs.define
class ErrorOutput:
    """The options that decide how errors are reported.

    `began`: when the process began to work, by the monotonic clock. `is_process`: it runs one command, and nothing else.
    """

    debug: bool = False
    json: bool = False
    json_progress: bool = False
    is_process: bool = False
    began: float = attrs.field(factory=time.monotonic)


def expanded(path: str) -> str:
    """Return a path with the home folder for `~`, where the shell has left it: behind a `=`, or in quotes."""
    return os.path.expanduser(path) if path.partition("/")[0] == "~" else path


def expanded_value(definition: str) -> str:
    """Return `KEY=VALUE` with the home folder for a `~` at the beginning of the value."""
    key, equals, value = definition.partition("=")
    return f"{key}{equals}{expanded(value)}"


def is_path(word: str) -> bool:
    """Return whether a word is meant as a path, such as that of an application or a dataset."""
    return os.sep in word or word.endswith(".py") or os.path.exists(word)


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
        section = next((section for section, names in SECTIONS.items() if cmd_name in names), None)
        if section is None:
            return None
        command: click.Command = importlib.import_module(f"dagflow.cli.commands.{section}.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list for --help without importing the commands."""
        width = max(map(len, COMMANDS))
        for section, names in SECTIONS.items():
            with formatter.section(TITLES[section]):
                formatter.write_dl([(name.ljust(width), text) for name, text in names.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Resolve a command as click does, and name the nearest one if there is none."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from dagflow.errors.wording import did_you_mean

            names = f"Commands: {', '.join(COMMANDS)}."
            if is_path(args[0]):
                ctx.fail(f"{args[0]!r} stands where the command goes: dagflow launch {args[0]}. {names}")
            ctx.fail(f"There is no command {args[0]!r}.{did_you_mean(args[0], COMMANDS, otherwise=f' {names}')}")
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
    epilog=epilog("dagflow launch apps/line_filter -D input=logs -D output=out", "dagflow log out", codes=EXIT_CODES),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    params=[
        click.Option(
            ["--version"], is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
        ),
    ],
)
