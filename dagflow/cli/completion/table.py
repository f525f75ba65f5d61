"""The commands with their options, as plain data: made once from the commands themselves, then read from the cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

PREFIX = "completion-"


def table() -> dict[str, Any]:
    """Return the commands: name → `help`, `options`, `arguments`. From the cache folder, unless a command has changed since."""
    file = _file()
    if file is not None:
        with contextlib.suppress(OSError, ValueError):
            known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return known
    made = make_table()
    if file is not None:
        with contextlib.suppress(OSError):
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for old in file.parent.glob(f"{PREFIX}*.json"):
                old.unlink()
            part = file.with_suffix(f".{os.getpid()}")
            part.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
            part.replace(file)
    return made


def make_table() -> dict[str, Any]:
    """Return the table, from the commands. Imports all of them."""
    import click

    from dagflow.cli.group import COMMANDS, commands

    context = click.Context(commands)
    entries: dict[str, Any] = {}
    for name, text in COMMANDS.items():
        command = commands.get_command(context, name)
        assert command is not None
        options = [_option(each) for each in command.params if isinstance(each, click.Option)]
        arguments = [_values(each) for each in command.params if isinstance(each, click.Argument)]
        options.append(
            {"names": ["--help"], "hidden": False, "value": False, "setting": None, "help": "Show this message and exit."}
        )
        entries[name] = {"help": text, "options": options, "arguments": arguments}
    return entries


def _option(option: Any) -> dict[str, Any]:
    from dagflow.config import RUN_NAMES

    takes_value = not option.is_flag and not option.count
    return {
        "names": [*option.opts, *option.secondary_opts],
        "hidden": option.hidden,
        "value": takes_value,
        "help": option.help or "",
        "setting": option.name if takes_value and option.name in RUN_NAMES else None,
        **(_values(option) if takes_value else {}),
    }


def _values(parameter: Any) -> dict[str, Any]:
    """Return what completes a value: `choices`, or the kind `file` or `key`."""
    from dagflow.cli.group import paths
    from dagflow.render.explanations import explanations

    if parameter.name == "define":
        return {"kind": "key"}
    if parameter._custom_shell_complete is paths:
        return {"kind": "file"}
    if parameter.name == "code":
        return {"choices": list(explanations())}
    choices = getattr(parameter.type, "choices", None)
    if choices is None:
        choices = (parameter.metavar or "").split("|") if "|" in (parameter.metavar or "") else []
    return {"choices": list(choices)}


def _file() -> Path | None:
    """Return the file in the cache folder, by a hash of the commands' sizes and times."""
    from dagflow.storage.local.cache import lasting

    folder = lasting(os.environ)
    if folder is None:
        return None
    top = Path(__file__).parents[2]
    marks = [str(top)]
    for source in [*sorted((top / "cli").rglob("*.py")), top / "config" / "run_settings.py"]:
        status = source.stat()
        marks.append(f"{source.name}:{status.st_size}:{status.st_mtime_ns}")
    return folder / f"{PREFIX}{hashlib.sha256('|'.join(marks).encode()).hexdigest()[:16]}.json"
