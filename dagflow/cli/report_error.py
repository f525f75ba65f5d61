"""Error reports of commands, and the exit codes that follow from them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import traceback
from typing import TextIO

from dagflow.cli.exit_codes import FAILED
from dagflow.cli.group import ErrorOutput
from dagflow.errors import DagflowError, error
from dagflow.errors.shown import visible_lines
from dagflow.launching.shadowing import hidden_module
from dagflow.render.errors import each, error_json, error_text
from dagflow.render.style import Style, style_for


@error
class Refused(DagflowError):
    """All problems of an application and its settings, or of a dataset."""

    problems: tuple[DagflowError, ...]

    def message(self) -> str:
        """All messages."""
        return "\n\n".join(problem.message() for problem in self.problems)


def style_of(stream: TextIO) -> Style:
    """Return the style for text on a stream."""
    is_terminal = stream.isatty()
    return style_for(is_terminal, shutil.get_terminal_size().columns if is_terminal else None, os.environ)


def report_error(error: BaseException, state: ErrorOutput, events: TextIO | None = None) -> int:
    """Report an error on standard error and return the exit code. No traceback for a user's mistake unless `--debug`.

    `events`: the stream of events in JSON, where that is not standard error.
    """
    style = style_of(sys.stderr)
    if state.debug:
        print(visible_lines("".join(_traces(error))), file=sys.stderr)
    if not isinstance(error, DagflowError):
        error = hidden_module(error) or error
    if not isinstance(error, DagflowError):
        text = visible_lines("".join(traceback.format_exception_only(error)).strip())
        print(f"{style.paint('bold red', 'internal error:')} {text}", file=sys.stderr)
        if not state.debug:
            print("  help: --debug shows the traceback", file=sys.stderr)
        return FAILED
    if state.json:
        print(json.dumps({"ok": False, "problems": error_json(error)}, indent=2, ensure_ascii=False), flush=True)
    if state.json_progress:
        print(json.dumps({"event": "problems", "problems": error_json(error)}, ensure_ascii=False), file=events or sys.stderr)
    else:
        print(error_text(error, style), file=sys.stderr)
    return exit_code(error)


def exit_code(error: DagflowError) -> int:
    """Return the exit code for an error; of several errors, that of the first."""
    return each(error)[0].exit_code


def _traces(error: BaseException) -> list[str]:
    """Return the tracebacks, with those from tasks."""
    singles = each(error) if isinstance(error, DagflowError) else []
    remote = [f"in the task:\n{trace}" for single in singles if (trace := getattr(single, "trace", ""))]
    return [*traceback.format_exception(error), *remote]
