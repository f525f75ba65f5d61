"""From an exception in user code to an error that names operator, window, record and the user's line."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import dropwhile, takewhile
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.errors.frames import is_ours
from dagflow.errors.shown import without_secrets
from dagflow.model.operator.call_sites import shown
from dagflow.model.operator.context import Cursor, RecordOrigin
from dagflow.model.types.records import ReaderRecord, excerpt
from dagflow.runtime.stage.errors import OperatorFailed

_ERROR_CHARACTERS = 1000
RUNTIME = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
_CALL = re.compile(r"positional argument|doesn't apply to a|takes no arguments")
_ARITY = "the function was called with one argument, and did not begin: give one that takes the record (of a reader: line.record)"
_OF_SPARK = re.compile(r"[/\\](pyspark|py4j)[/\\]|[/\\]contextlib\.py$")  # whose errors come through context managers


class Abort(BaseException):
    """Ends a task. No `Exception`: user code that catches everything around `emit` must not swallow what failed downstream."""

    def __init__(self, error: DagflowError) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turn the end of a task into the error that a run would report."""
    try:
        yield
    except Abort as end:
        cause = end.__cause__
        raise end.error from (end.error.__cause__ if cause is end.error else cause)


def abort(
    operator: str,
    window: int | None,
    doing: str,
    error: BaseException,
    record: Any,
    cursor: Cursor,
    origin: RecordOrigin | None = None,
) -> Abort:
    """Return an `Abort` with everything known about an exception. dagflow's own errors keep their class.

    `origin`: that of the record, where it is known better than by the cursor.
    """
    came_from = origin or cursor.origin_of(record)
    if cursor.blame is not None and cursor.blame.error is error:
        record, came_from = cursor.blame.record, cursor.blame.place
    if isinstance(record, ReaderRecord) and not came_from.is_exact:
        came_from = attrs.evolve(came_from, position=record.position, is_exact=True, others=0)
    at = came_from.position if came_from.is_exact else None
    path = None if came_from.others else came_from.path
    where = {"operator": operator, "window": window, "path": path, "position": at}
    if isinstance(error, DagflowError):
        error.happened(**where)
        if not error.notes and getattr(error, "operator", None) != operator:
            place = f"  operator {operator!r} in {doing}" + ("" if window is None else f", window {window}")
            error.add_note(f"{place}, record {excerpt(record)}" if isinstance(record, str | bytes | ReaderRecord) else place)
            if came_from.path is not None and came_from.path not in error.message():
                error.add_note(f"  source {came_from}")
        return Abort(error)
    failed = OperatorFailed(
        operator=operator,
        doing=doing,
        error=describe(error),
        window=window,
        source=str(came_from) or None,
        record=None if record is None else excerpt(record),
        frames=user_frames(error),
        help=_ARITY if isinstance(error, TypeError) and _CALL.search(str(error)) and not user_frames(error) else "",
        trace="".join(traceback.format_exception(error)),
    )
    failed.happened(**where)
    return Abort(failed)


def is_of_user_code(error: BaseException) -> bool:
    """Return False for an `Abort` and a Ctrl-C, and for all else that ends a task and is no `Exception`, if dagflow raised it."""
    if isinstance(error, Abort):
        return False
    if isinstance(error, Exception | SystemExit):
        return True
    innermost = traceback.extract_tb(error.__traceback__, limit=-1)[0]
    return not (isinstance(error, KeyboardInterrupt | GeneratorExit) or is_ours(innermost.filename))


def is_fatal(error: BaseException) -> bool:
    """Return True for an error that is not a fault of one record, so that `on_error` does not skip it."""
    return isinstance(error, DagflowError) and error.is_fatal


def describe(error: BaseException) -> str:
    """`ValueError: text`, without secrets."""
    return without_secrets("".join(traceback.format_exception_only(error)).strip())


def sample(error: BaseException, record: Any, origin: RecordOrigin) -> str:
    """Describe a skipped record in one line of the report: what is wrong with it, and where it is. Secrets are masked.

    >>> from dagflow.model.types.records import FileBlockMetadata
    >>> sample(ValueError("no number"), "one", RecordOrigin("a.txt", 4, line=2, is_exact=True))
    "ValueError: no number ('one', a.txt:2, position 4)"
    >>> sample(OSError("gone"), FileBlockMetadata(1, "a.txt", start=0, stop=4096, file_length=4096), RecordOrigin("a.txt", 0))
    'OSError: gone (bytes 0 to 4,096 of a.txt)'
    >>> sample(OSError("no route to sftp://ada:pw@host/"), "one", RecordOrigin())
    "OSError: no route to sftp://ada:***@host/ ('one')"
    """
    what = f"[{error.code}] {error.message()}" if isinstance(error, DagflowError) else describe(error)
    return sample_of(what, record, origin)


def sample_of(what: str, record: Any, origin: RecordOrigin) -> str:
    """Describe a rejected record in one line of the report: `what` is wrong with it, and where it is. Secrets are masked."""
    place = [excerpt(without_secrets(record.record if isinstance(record, ReaderRecord) else record))]
    if origin.path is not None and not place[0].endswith(origin.path):
        place.append(str(origin))
    return without_secrets(f"{what.partition(chr(10))[0].rstrip('.')} ({', '.join(place)})")


def text_of(record: Any) -> str:
    """Return a record as text for an `ErrorRecord`: strings as they are, other values by `repr`."""
    inner = record.record if isinstance(record, ReaderRecord) else record
    return (inner if isinstance(inner, str) else repr(inner))[:_ERROR_CHARACTERS]


def user_frames(error: BaseException) -> str:
    """Return the frames of an exception that are neither dagflow's nor Spark's, the innermost first."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if not is_ours(f.filename) and not _OF_SPARK.search(f.filename)
    ]
    return _told(frames)


def emitting_frames() -> str:
    """Return the frames of the user's code that emits, the innermost first; none if an operator of the library emits."""
    # without what `emit` itself is made of, and without what called the operator
    below_emit = dropwhile(lambda frame: frame.filename.startswith(RUNTIME), reversed(traceback.extract_stack()))
    of_operator = takewhile(lambda frame: not frame.filename.startswith(RUNTIME), below_emit)
    return _told([frame for frame in of_operator if not is_ours(frame.filename)][::-1])


def _told(frames: Sequence[traceback.FrameSummary]) -> str:
    lines = []
    for frame in reversed(frames[-8:]):
        code = f": {frame.line}" if frame.line else ""
        lines.append(f"  at {shown(frame.filename)}:{frame.lineno} in {frame.name}{code}")
    return "\n".join(lines)
