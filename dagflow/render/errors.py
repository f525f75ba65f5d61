"""Errors as users read them: `error[DF012] what is wrong`, all of them, with what helps."""

from __future__ import annotations

import copy
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.errors.shown import visible, visible_lines, without_secrets
from dagflow.render.style import LEAST, Style, narrower, wrap

INDENT = 2
_PATHS = ("path", "file", "file_path", "folder", "place", "url", "source", "output", "dataset", "run_folder")


def each(error: DagflowError) -> list[DagflowError]:
    """The single errors that an error stands for: those in its `problems` or `errors`."""
    parts = getattr(error, "problems", None) or getattr(error, "errors", None) or ()
    return [single for part in parts for single in each(part)] or [error]


def error_text(error: DagflowError, style: Style | None = None) -> str:
    """An error, or several, as text.

    >>> from dagflow.model.errors.dag import EmptyDag
    >>> print(error_text(EmptyDag("demo")))
    error[DF016] application 'demo' has no operators
      help: populate_dag(dag, conf) adds them with dag.add_operator(name, operator)
    """
    style = style or Style()
    singles = each(error)
    blocks = [_block(single, style) for single in singles]
    if len(singles) > 1:
        blocks.append(style.paint("bold", f"{len(singles)} problems found"))
    return "\n\n".join(blocks)


def _block(error: DagflowError, style: Style) -> str:
    text, help_line, help_text = _on_one_line(error).message().partition("\n  help: ")
    return error_block(error.code, "\n".join([text, *error.notes]) + help_line + help_text, style)


def error_block(code: str | None, text: str, style: Style) -> str:
    """Return an error of which the code and the message are known. Exceptions that are not dagflow's have no code."""
    first, *rest = visible_lines(text).split("\n")
    label = f"error[{code}]" if code else "error:"
    head, *more = _wrapped(f"{label} {first}", narrower(style, INDENT))
    head = " ".join(part for part in (style.paint("bold red", label), style.paint("bold", head[len(label) :].lstrip())) if part)
    # what follows the first line stands below it, however its author wrote it
    lines = [line if not line or line.startswith("  ") else f"  {line}" for line in rest]
    more = [" " * INDENT + style.paint("bold", line) for line in more]
    return "\n".join([head, *more, *(_line(line, style) for line in lines)])


def _wrapped(text: str, style: Style) -> list[str]:
    return [text] if style.width is None else wrap(text, max(LEAST, style.width))


def _on_one_line(error: DagflowError) -> DagflowError:
    """The error with paths that break no line of its message."""
    changed = {
        name: shown for name in _PATHS if isinstance(old := getattr(error, name, None), str) and (shown := visible(old)) != old
    }
    if not changed:
        return error
    error = copy.copy(error)
    for name, shown in changed.items():
        setattr(error, name, shown)
    return error


def _line(line: str, style: Style) -> str:
    """Return a line below the first one, for the terminal. Sentences are wrapped; columns and code stay as they are."""
    text = line.lstrip()
    blanks = line[: len(line) - len(text)]
    label = next((word for word in ("help:", "did you mean") if text.startswith(word)), "")
    hanging = len("help: ") if text.startswith("help: ") else 0
    is_sentence = len(blanks) == INDENT and "  " not in text
    first, *more = _wrapped(text[hanging:], narrower(style, INDENT + hanging)) if is_sentence else [text[hanging:]]
    first = style.paint("cyan", label) + (text[:hanging] + first)[len(label) :]
    return "\n".join([blanks + first, *(blanks + " " * hanging + each for each in more)])


def error_json(error: DagflowError) -> list[dict[str, Any]]:
    """An error, or several, as plain data: `code`, `class`, `message` and the structured fields as text or numbers."""
    return [
        {
            "code": e.code,
            "class": type(e).__name__,
            "message": e.message(),
            "fields": {a.name: _plain(getattr(e, a.name)) for a in attrs.fields(type(e)) if a.name != "trace"},  # type: ignore[arg-type]  # all errors are attrs classes
        }
        for e in each(error)
    ]


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return without_secrets(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return without_secrets(str(value))
