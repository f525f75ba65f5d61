"""Records of the wrong type that something behind their operator could not handle: the operator that emitted them is named.

A run does not look at each record, as `run_operator` does. It looks at those that could not be handled.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from dagflow.model.errors.running import WrongRecordType
from dagflow.model.operator.base import InputOperator
from dagflow.model.operator.ports import RECORD
from dagflow.model.types.typecheck import type_check
from dagflow.runtime.stage.failure import Abort
from dagflow.runtime.stage.program import SourcePlan

if TYPE_CHECKING:
    from dagflow.runtime.stage.node import Node


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
    """The user's lines that emitted it, of the emitter's last call, made again: the task has failed in any case."""
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
