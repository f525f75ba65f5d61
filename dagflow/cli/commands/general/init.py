"""`dagflow init NAME`: a new application, from a template."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

import dagflow.cli
from dagflow.cli.group import epilog, expanded
from dagflow.storage import explained

TEMPLATES = Path(dagflow.cli.__file__).with_name("templates")
"""A folder per template: an application as its user gets it. Nothing in it is replaced."""

DEFAULT = "lines"


def templates() -> dict[str, str]:
    """Return the first line of each template's `app.py` by the template's name, the default first."""
    folders = {}
    for app in sorted(TEMPLATES.glob("*/app.py"), key=lambda app: (app.parent.name != DEFAULT, app)):
        folders[app.parent.name] = (ast.get_docstring(ast.parse(app.read_text(encoding="utf-8"))) or "").splitlines()[0]
    return folders


def files_of(template: str) -> list[Path]:
    """Return the files of a template, relative to its folder."""
    top = TEMPLATES / template
    paths = (path.relative_to(top) for path in top.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sorted(paths, key=lambda path: (len(path.parts), path))


def checked_name(context: click.Context, parameter: click.Parameter, value: str) -> Path:
    """Return the folder. Its name must be one that other applications, and Python, can use."""
    folder = Path(os.path.abspath(expanded(value)))
    name = folder.name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise click.BadParameter(f"{name!r} is not a name: it begins with a letter, and has letters, digits, _ and - only")
    if name in sys.stdlib_module_names or name in ("dagflow", "operators"):
        owner = "Python" if name in sys.stdlib_module_names else "dagflow"
        raise click.BadParameter(f"{name!r} is a module of {owner}, which the folder could hide. Try {f'{name}_app'!r}.")
    if folder.is_dir() and any(folder.iterdir()):
        raise click.BadParameter(f"{value} has files, and nothing is overwritten. Choose another name, or an empty folder.")
    if os.path.lexists(folder) and not folder.is_dir():
        raise click.BadParameter(f"{value} is a file, and nothing is overwritten. Choose another name.")
    return folder


def command_line(name: str) -> str:
    """Return the command as a shell finds it: its name where that is the one of this Python, else its path."""
    beside = Path(sys.executable).with_name(name)
    by_path = shutil.which(name)
    if by_path is not None and (not beside.exists() or os.path.samefile(by_path, beside)):
        return name
    return shlex.quote(str(beside)) if beside.exists() else f"{shlex.quote(sys.executable)} -m {name}"


def next_commands(folder: Path) -> Iterator[str]:
    """Yield the lines to paste."""
    dagflow_command = command_line("dagflow")
    yield f"cd {shlex.quote(str(folder))}"
    if find_spec("pytest") is None:
        yield f"{shlex.quote(sys.executable)} -m pip install pytest"
        yield f"{shlex.quote(sys.executable)} -m pytest"
    else:
        yield command_line("pytest")
    yield f"{dagflow_command} launch . --conf settings.toml --runner local"
    yield f"{dagflow_command} show out"


@click.command(
    "init",
    help="Make a folder with a new application: settings, an operator of its own, tests and a little input.\n\n\b\nTemplates:\n"
    + "\n".join(f"  {name:<14} {text}" for name, text in templates().items()),
    epilog=epilog("dagflow init slow_requests", "dagflow init sales --template csv-to-parquet"),
    params=[
        click.Argument(["folder"], metavar="NAME", callback=checked_name),
        click.Option(
            ["-t", "--template"],
            type=click.Choice(list(templates())),
            default=DEFAULT,
            help=f"The template (default: {DEFAULT}).",
        ),
    ],
)
def command(folder: Path, template: str) -> None:
    """Copy the template, and print what to do next."""
    names = files_of(template)
    with explained(str(folder), "writing a new application"):
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(TEMPLATES / template / name, folder / name)
    print(f"{folder.name}: {templates()[template]}\n")
    print("".join(f"  {name}\n" for name in names))
    print("Next:\n")
    print("".join(f"  {line}\n" for line in next_commands(folder)), end="")
