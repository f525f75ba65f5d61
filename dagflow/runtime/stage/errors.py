"""Errors of user code in a task: what an operator raised, and records that it changed."""

from __future__ import annotations

from dagflow.errors import RunError
from dagflow.errors.base import error


@error("DF301")
class OperatorFailed(RunError):
    """User code in an operator raised.

    `window` is None outside windows; `source` is `PATH` or `PATH, position N` of the record where known; `frames` is the
    traceback of the user's own code, innermost last; `help`: the remedy, where it is not the usual one; `trace` the whole one, for `--debug`.
    """

    operator: str
    doing: str
    error: str
    window: int | None = None
    source: str | None = None
    record: str | None = None
    frames: str = ""
    help: str = ""
    trace: str = ""
    template = (
        "operator {operator!r} failed in {doing}: {error}"
        "{frames:?\n{frames}}{window:?\n  window  {window}}"
        "{source:?\n  source  {source}}"
        "{record:?\n  record  {record}}"
        "{help:?\n  help: {help}}"
    )
    example = {
        "operator": "parse",
        "doing": "process()",
        "error": "ValueError: invalid literal for int() with base 10: 'x'",
        "window": 3,
        "source": "logs/a.txt, position 120",
        "record": "'x'",
        "frames": "  at app.py:12 in process: return int(record)",
    }
    general_remedy = "fix the line that is named and launch again, which resumes with this window; or let such records be skipped: -D operator.NAME.on_error=skip. Exceptions of operators are not retried"


@error("DF781", kw_only=True)
class RecordsWithoutColumns(RunError, TypeError):
    """An operator takes batches, and records arrive of a type whose columns nothing says: a dict, a set, a class without fields.

    `emitter`: the operator that emitted it; `where`: its function or handler, with file and line; `row`: a class that would do;
    `columns`: the columns that a `Map` could declare.
    `keeps_rows`: it does so because it covers all input.
    """

    operator: str
    port: str
    type: str
    record: str
    columns: str = ""
    emitter: str = ""
    where: str = ""
    row: str = ""
    keeps_rows: bool = False
    template = (
        "operator {operator!r} takes batches on port {port!r}, and nothing says the columns of a {type}\n"
        "  record  {record}{emitter:?\n  from    operator {emitter!r}{where:?, {where}}}\n"
        "  help: {columns:?declare the columns where it is made: Map(function, columns={columns}); or }emit objects of an attrs "
        "class instead, whose annotations say the columns: @attrs.frozen class Row: {row:?{row}|name: str} (one line a field), "
        'and annotate what emits them: -> Row{keeps_rows:?; or, for results of each window alone, scope="window"}'
    )
    example = {
        "operator": "writer",
        "port": "input",
        "type": "dict",
        "record": "{'n': 3}",
        "emitter": "parse",
        "where": "parse() (app.py:12)",
        "row": "n: int",
        "columns": '"n: int"',
    }


@error("DF385", is_fatal=True)
class RecordChanged(RunError):
    """An operator changed a record that other operators may have, too.

    `doing`: the call after which it was found; `how`: `received` or `emitted`.
    """

    operator: str
    port: str
    how: str
    doing: str
    before: str
    after: str
    window: int | None = None
    template = (
        "operator {operator!r} has changed a record that it had {how} on port {port!r}, found after {doing}\n"
        "  before  {before}\n"
        "  after   {after}{window:?\n  window  {window}}\n"
        "  help: other operators may have the same object: emit a new one, attrs.evolve(record, …), {{**record, …}} or [*record]"
    )
    example = {"operator": "clean", "port": "input", "how": "received", "doing": "process()", "before": "[1, 2]", "after": "[2]"}


@error("DF349", kw_only=True, is_fatal=True)
class ResultNotEmitted(RunError, TypeError):
    """A handler returned records, and its operator emitted none in the window: what a handler returns goes nowhere.

    `returned`: the value; `output`, `emit`: the port and its method that emit such a value; `where`: the line of the handler.
    """

    operator: str
    handler: str
    port: str
    output: str
    returned: str
    emit: str = "emit"
    where: str = ""
    template = (
        "operator {operator!r}: {handler}() of port {port!r} returned {returned}, and the operator emitted nothing ({where})\n"
        "  help: emit it instead of returning it: self.{output}.{emit}(…)"
    )
    example = {
        "operator": "double",
        "handler": "each",
        "port": "input",
        "output": "output",
        "returned": "14",
        "where": "app.py:12",
    }
