"""From an exception in user code to an error that names operator, window, record and the user's line."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Sequence
from typing import Any

from dagflow.errors import DagflowError
from dagflow.errors.frames import is_ours
from dagflow.model.operator.call_sites import shown
from dagflow.model.operator.context import Cursor, RecordOrigin
from dagflow.model.types.records import ReaderRecord, excerpt
from dagflow.runtime.stage.errors import OperatorFailed

_ERROR_CHARACTERS = 1000
_RUNTIME = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
_OF_SPARK = re.compile(r"[/\\](pyspark|py4j)[/\\]|[/\\]contextlib\.py$")  # whose errors come through context managers


class Abort(BaseException):
    """Ends a task. No `Exception`: user code that catches everything around `emit` must not swallow what failed downstream."""

    def __init__(self, error: DagflowError) -> None:
        super().__init__(error)
        self.error = error


def abort(operator: str, window: int | None, doing: str, error: BaseException, record: Any, cursor: Cursor) -> Abort:
    """Return an `Abort` with everything known about an exception. dagflow's own errors keep their class."""
    came_from: Cursor | RecordOrigin = cursor
    if cursor.blame is not None and cursor.blame.error is error:
        record, came_from = cursor.blame.record, cursor.blame.place
    at = record.position if isinstance(record, ReaderRecord) else None  # the cursor's would be that of a chunk
    where = {"operator": operator, "window": window, "path": came_from.path, "position": at}
    if isinstance(error, DagflowError):
        error.happened(**where)
        if not error.notes and not hasattr(error, "operator"):
            place = f"  operator {operator!r} in {doing}" + ("" if window is None else f", window {window}")
            error.add_note(f"{place}, record {excerpt(record)}" if isinstance(record, str | bytes | ReaderRecord) else place)
        return Abort(error)
    failed = OperatorFailed(
        operator=operator,
        doing=doing,
        error=describe(error),
        window=window,
        source=source_of(record, came_from),
        record=None if record is None else excerpt(record),
        frames=user_frames(error),
        trace="".join(traceback.format_exception(error)),
    )
    failed.happened(**where)
    return Abort(failed)


def is_fatal(error: BaseException) -> bool:
    """Return True for an error that is not a fault of one record, so that `on_error` does not skip it."""
    return isinstance(error, DagflowError) and error.is_fatal


def describe(error: BaseException) -> str:
    """`ValueError: text`."""
    return "".join(traceback.format_exception_only(error)).strip()


def sample(error: BaseException, record: Any, path: str | None, position: int | None) -> str:
    """Describe a skipped record in one line of the report: what is wrong with it, and where it is.

    >>> from dagflow.model.types.records import FileBlockMetadata
    >>> sample(ValueError("no number"), "one", "a.txt", 4)
    "ValueError: no number ('one', a.txt, position 4)"
    >>> sample(OSError("gone"), FileBlockMetadata(1, "a.txt", start=0, stop=4096, file_length=4096), "a.txt", 0)
    'OSError: gone (bytes 0 to 4,096 of a.txt)'
    """
    what = f"[{error.code}] {error.message()}" if isinstance(error, DagflowError) else describe(error)
    place = [excerpt(record)]
    if path is not None and not place[0].endswith(path):
        place += [path] if position is None else [path, f"position {position}"]
    return f"{what.partition(chr(10))[0].rstrip('.')} ({', '.join(place)})"


def text_of(record: Any) -> str:
    """Return a record as text for an `ErrorRecord`: strings as they are, other values by `repr`."""
    inner = record.record if isinstance(record, ReaderRecord) else record
    return (inner if isinstance(inner, str) else repr(inner))[:_ERROR_CHARACTERS]


def source_of(record: Any, cursor: Cursor | RecordOrigin) -> str | None:
    """`PATH, position N` of a record; of one that has come over an exchange, the task that sent it."""
    if cursor.path is None:
        return cursor.sender
    if isinstance(record, ReaderRecord):
        return f"{cursor.path}, position {record.position}"
    return cursor.path if cursor.position is None else f"{cursor.path}, at or after position {cursor.position}"


def user_frames(error: BaseException) -> str:
    """Return the frames of an exception that are neither dagflow's nor Spark's, the innermost first."""
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if not is_ours(f.filename) and not _OF_SPARK.search(f.filename)
    ]
    return _told(frames)


def emitting_frames() -> str:
    """Return the frames of the user's code that emits, the innermost first; none if an operator of the library emits."""
    frames: list[traceback.FrameSummary] = []
    has_left = False  # what `emit` itself is made of
    for frame in reversed(traceback.extract_stack()):
        is_runtime = frame.filename.startswith(_RUNTIME)
        if is_runtime and has_left:
            break  # what called the operator
        has_left = has_left or not is_runtime
        if not is_runtime and not is_ours(frame.filename):
            frames.insert(0, frame)
    return _told(frames)


def _told(frames: Sequence[traceback.FrameSummary]) -> str:
    lines = []
    for frame in reversed(frames[-8:]):
        code = f": {frame.line}" if frame.line else ""
        lines.append(f"  at {shown(frame.filename)}:{frame.lineno} in {frame.name}{code}")
    return "\n".join(lines)
