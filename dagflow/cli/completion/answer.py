"""The answer to a press of Tab."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dagflow.cli.completion.scripts import SCRIPTS
from dagflow.cli.completion.table import table


@attrs.frozen
class Candidate:
    """A completion. `kind`: `plain`, or `file` where the shell completes a path that begins with `value`."""

    value: str
    help: str = ""
    kind: str = "plain"


def answer(instruction: str, environ: Mapping[str, str]) -> int:
    """Print the script of a shell (`bash_source`), or the completions that it asks for (`bash_complete`)."""
    shell, _, what = instruction.partition("_")
    if shell not in SCRIPTS or what not in ("source", "complete"):
        return 1
    if what == "source":
        print(SCRIPTS[shell], end="")
        return 0
    try:
        words, incomplete = _words(shell, environ)
        for candidate in completions(words, incomplete):
            print(_line(shell, candidate, incomplete))
        sys.stdout.flush()
    except Exception:  # noqa: BLE001  # a message here would land in the line that the user is typing
        return 1
    return 0


def completions(words: Sequence[str], incomplete: str) -> list[Candidate]:
    """Return the completions of a word after the words before it, the program's name not among them."""
    commands = table()
    if not words:
        return [Candidate(name, command["help"]) for name, command in commands.items() if name.startswith(incomplete)]
    command = commands.get(words[0])
    if command is None:
        return []
    options = {name: option for option in command["options"] for name in option["names"]}
    arguments: list[str] = []
    waiting: dict[str, Any] | None = None  # the option whose value is the next word
    for word in words[1:]:
        if waiting is not None:
            waiting = None
        elif word in options:
            waiting = options[word] if options[word]["value"] else None
        elif not word.startswith("-"):
            arguments.append(word)
    if waiting is not None:
        return _values(waiting, incomplete, arguments)
    name, equals, value = incomplete.partition("=")
    if equals and name in options:
        return [attrs.evolve(each, value=f"{name}={each.value}") for each in _values(options[name], value, arguments)]
    if incomplete.startswith("-"):
        shown = [option for option in command["options"] if not option["hidden"]]
        return [Candidate(name, each["help"]) for each in shown for name in each["names"] if name.startswith(incomplete)]
    if words[0] == "operators":
        from dagflow.cli.completion.keys import TOP
        from dagflow.exports import modules_of_names

        library = sorted(modules_of_names((TOP / "operators" / "__init__.pyi").read_bytes()))
        return [Candidate(name) for name in library if name.lower().startswith(incomplete.lower())]
    if words[0] == "peek" and len(arguments) == 1:
        from dagflow.cli.completion.keys import ports_of

        return [Candidate(port) for port in ports_of(arguments[0]) if port.startswith(incomplete)]
    open_ = command["arguments"][len(arguments) : len(arguments) + 1]
    return _values(open_[0], incomplete, arguments) if open_ else []


def _values(wanted: Mapping[str, Any], incomplete: str, arguments: Sequence[str]) -> list[Candidate]:
    if wanted.get("kind") == "file":
        return [Candidate(incomplete, kind="file")]
    if wanted.get("kind") == "key":
        return _settings(incomplete, arguments[0]) if arguments else []
    return [Candidate(choice) for choice in wanted.get("choices", ()) if choice.startswith(incomplete)]


def _settings(incomplete: str, application: str) -> list[Candidate]:
    """Return the settings of an application as `KEY=`, or the values of the one that is being given."""
    from dagflow.cli.completion.keys import keys_of

    keys = {key.name: key for key in reversed(list(keys_of(application)))}
    name, equals, text = incomplete.partition("=")
    of_run = {option["setting"]: option for option in table()["launch"]["options"] if option["setting"]}
    if equals:
        key = keys.get(name)
        if key is None:
            values = of_run[name]["choices"] if name in of_run else ()
            return [Candidate(f"{name}={value}") for value in values if value.startswith(text)]
        if key.values:
            return [Candidate(f"{name}={value}") for value in key.values if value.startswith(text)]
        return [Candidate(text, kind="file")] if "str" in key.annotation else []
    fitting = [key for key in reversed(keys.values()) if key.name.startswith(incomplete)]
    if not incomplete.startswith("operator."):
        own = [Candidate(f"{key.name}=", key.annotation) for key in fitting if not key.name.startswith("operator.")]
        if incomplete:
            own += [Candidate(f"{name}=", of_run[name]["help"]) for name in of_run if name.startswith(incomplete)]
        return [*own, *([Candidate("operator.")] if any(key.name.startswith("operator.") for key in fitting) else [])]
    depth = incomplete.count(".")
    candidates: dict[str, Candidate] = {}
    for key in fitting:
        parts = key.name.split(".")
        head = ".".join(parts[: depth + 1])
        candidates.setdefault(head, Candidate(f"{head}.") if len(parts) > depth + 1 else Candidate(f"{head}=", key.annotation))
    return list(candidates.values())


def _words(shell: str, environ: Mapping[str, str]) -> tuple[list[str], str]:
    """Return the words before the cursor, without the program, and the word at the cursor."""
    if shell == "bash" and environ.get("COMP_LINE"):  # bash itself would split at =
        line = environ["COMP_LINE"].encode()[: int(environ["COMP_POINT"])].decode(errors="replace")
        words = _split(line)
        incomplete = "" if line[-1:].isspace() or not words else words.pop()
        return words[1:], incomplete
    words = _split(environ["COMP_WORDS"])
    if shell == "fish":
        incomplete = environ["COMP_CWORD"]
        if incomplete and words and words[-1] == (_split(incomplete) or [incomplete])[0]:
            words.pop()
        return words[1:], incomplete
    at = int(environ["COMP_CWORD"])
    return words[1:at], words[at] if at < len(words) else ""


def _split(line: str) -> list[str]:
    """Split a line as a shell does; an open quote is closed."""
    for end in ("", "'", '"'):
        try:
            return shlex.split(line + end)
        except ValueError:
            continue
    return line.split()


def _line(shell: str, candidate: Candidate, incomplete: str) -> str:
    value, text = candidate.value, " ".join(candidate.help.split())
    if shell == "zsh":
        return f"{candidate.kind}\n{value}\n{text or '_'}"
    if shell == "fish":
        return f"{candidate.kind},{value}\t{text}" if text else f"{candidate.kind},{value}"
    if candidate.kind == "plain" and "=" in incomplete:
        value = value.rpartition("=")[2]  # bash replaces only what stands behind the =
    return f"{candidate.kind},{value}"
