"""The cause of an exception: the row of a batch that raises it, or the operator that emitted a record of the wrong type.

A run does not look at each record, as `run_operator` does. It looks at those that could not be handled; and, where an operator
has emitted nothing, at what its handler returned.
"""

from __future__ import annotations

import contextlib
import datetime
import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.errors.frames import is_ours
from dagflow.model.errors.running import WrongRecordType
from dagflow.model.operator.base import InputOperator, fields_of
from dagflow.model.operator.call_sites import shown
from dagflow.model.operator.ports import RECORD
from dagflow.model.types.comparison import type_name
from dagflow.model.types.forms import to_records
from dagflow.model.types.records import excerpt
from dagflow.model.types.typecheck import fits, type_check
from dagflow.runtime.stage.errors import RecordsWithoutColumns
from dagflow.runtime.stage.failure import Abort
from dagflow.runtime.stage.node import Node
from dagflow.runtime.stage.program import SourcePlan

if TYPE_CHECKING:
    import pyarrow as pa


@attrs.frozen
class FailingRow:
    """A record to blame, its row in the batch, and what was raised for it alone."""

    record: Any
    error: Exception
    row: int = 0


def first_failing_row(batch: pa.RecordBatch, tp: Any, raises: Callable[[pa.RecordBatch], Exception | None]) -> FailingRow | None:
    """Return the first row that raises on its own; None if no single row does. `tp`: the type of the records."""
    low, high = 0, batch.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if raises(batch.slice(low, middle - low)) is not None else (middle, high)
    error = raises(batch.slice(low, 1)) if high > low else None
    return None if error is None else FailingRow(record_of(batch.slice(low, 1), tp), error, low)


def raising(call: Callable[[pa.RecordBatch], object]) -> Callable[[pa.RecordBatch], Exception | None]:
    """Return a function that calls another one with rows, and returns the exception that it raises; None without one.

    >>> [raising(lambda row: 1 // row)(row) for row in (1, 0)]
    [None, ZeroDivisionError('integer division or modulo by zero')]
    """

    def raises(rows: pa.RecordBatch) -> Exception | None:
        try:
            call(rows)
        except Exception as error:  # noqa: BLE001  # user code may raise anything
            return error
        return None

    return raises


def record_of(row: pa.RecordBatch, tp: Any) -> Any:
    """Return the record of one row, or its columns if it has none; text in place of what Python cannot hold."""
    from dagflow.arrow_types import held

    try:
        return to_records(row, tp)[0]
    except Exception:  # noqa: BLE001  # the class of a user may raise anything
        return held.rows(row)[0]


def shown_records(batch: pa.RecordBatch, tp: Any) -> list[Any]:
    """Return the records of a batch, to be shown: the columns of rows that have none, or are not of the type."""
    return [record_of(batch.slice(row, 1), tp) for row in range(batch.num_rows)]


def refuse_mistyped(record: Any, source: SourcePlan, window: int | None, emitter: Node | None) -> None:
    """End the task if a record is not of the type that its port carries: that is not the record's fault, nor the receiver's.

    `emitter`: the operator that emitted it, where it is in this task.
    """
    check = type_check(f"{source.operator}.{source.port}", source.type)
    if check is None:
        return
    try:
        check(record)
    except WrongRecordType as error:
        error.window = window
        error.happened(operator=source.operator, window=window)
        if emitter is not None:
            error.frames = _frames(emitter, source)
        raise Abort(error) from None


def _frames(emitter: Node, source: SourcePlan) -> str:
    """Return the user's lines that emitted it. The emitter's last call is repeated: the task has failed in any case."""
    outlet, last = emitter.outlets.get(source.port), emitter.last
    check = type_check(f"{source.operator}.{source.port}", source.type)
    if outlet is None or check is None or last is None or emitter.is_busy or isinstance(emitter.operator, InputOperator):
        return ""
    inlet, chunk = last
    with emitter.discarding(), contextlib.suppress(Exception):
        getattr(emitter.operator, source.port).emit = outlet.check_all(check)
        try:
            if inlet.form == RECORD:
                for record in chunk:
                    inlet.handler(record)
            else:
                inlet.handler(iter(chunk) if isinstance(chunk, list) else chunk)
        except Abort as found:
            return found.error.frames if isinstance(found.error, WrongRecordType) else ""
    return ""


def no_arrow_form(
    record: Any, receiver: Node, port: str, source: SourcePlan | None, emitter: Node | None
) -> RecordsWithoutColumns:
    """Return the error for a record of a type without columns. `emitter`: see `refuse_mistyped`."""
    fields = record.items() if isinstance(record, dict) else ()
    named = [f"{key}: {type(value).__name__}" for key, value in fields if isinstance(key, str) and key.isidentifier()]
    return RecordsWithoutColumns(
        operator=receiver.name,
        port=port,
        type=type_name(type(record)),
        record=excerpt(record),
        emitter="" if source is None else source.operator,
        where="" if emitter is None else _code_of(emitter),
        row="; ".join(named[:5]),
        columns=_declaration(record),
        keeps_rows=receiver.operator.scope == "all",
    )


_NAMED_TYPES = frozenset({bool, int, float, str, bytes, datetime.date, datetime.datetime})


def _declaration(record: Any) -> str:
    """Return the columns of a dict, as `Map(function, columns=…)` takes them; empty for others."""
    if not isinstance(record, dict) or not all(isinstance(key, str) and key.isidentifier() for key in record):
        return ""
    kinds = {key: type(value).__name__ if type(value) in _NAMED_TYPES else "…" for key, value in record.items()}
    return f'"{", ".join(f"{key}: {kind}" for key, kind in kinds.items())}"'


def _code_of(emitter: Node) -> str:
    """Return the user's function of an operator, or else its handler, with file and line."""
    operator = emitter.operator
    for function in [*fields_of(operator).values(), *([emitter.last[0].handler] if emitter.last is not None else [])]:
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
        if code is not None and not is_ours(code.co_filename):
            name = getattr(function, "__name__", "function")
            return f"{'the lambda' if name == '<lambda>' else f'{name}()'} ({line_of(function)})"
    return ""


_SEVERAL = (list, tuple, set, frozenset, Iterator)


def may_be_of(value: Any, tp: Any) -> bool:
    """Return whether a value that a handler has returned may be a record of a type, or several records.

    A bool is none, unless records are: a handler that other methods call may return one to them.

    >>> [may_be_of(value, tp) for value, tp in ((2, int), ([2], int), (2, str), (True, Any), (True, bool))]
    [True, True, False, False, True]
    """
    if isinstance(value, bool):
        return tp is bool
    return fits(value, tp) or isinstance(value, _SEVERAL) or _is_batch(value)


def emit_method(value: Any, tp: Any) -> str:
    """Return the method of a port of a type that emits a value.

    >>> emit_method(2, int), emit_method([2], int), emit_method([2], list[int])
    ('emit', 'emit_all', 'emit')
    """
    if _is_batch(value):
        return "emit_batch"
    is_record = (tp is not Any and fits(value, tp)) or hasattr(value, "_fields")  # of a named tuple
    return "emit_all" if isinstance(value, _SEVERAL) and not is_record else "emit"


def line_of(handler: Callable[..., Any]) -> str:
    """Return the file and the line at which a handler begins; empty where it has none."""
    code = getattr(inspect.unwrap(handler), "__code__", None)
    return "" if code is None else f"{shown(code.co_filename)}:{code.co_firstlineno}"


def _is_batch(value: Any) -> bool:
    return type(value).__name__ == "RecordBatch" and type(value).__module__.startswith("pyarrow")
