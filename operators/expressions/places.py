"""Places of expressions in the user's code."""

from __future__ import annotations

import itertools
import os
import sys

import attrs

import dagflow

_LIBRARY = tuple(
    os.path.join(os.path.dirname(path), "")
    for path in (os.path.abspath(str(dagflow.__file__)), os.path.dirname(os.path.abspath(__file__)))
)
"""The folders of dagflow and of the library of operators."""


@attrs.frozen
class WrittenAt:
    """A place in a file: the line and the column, from 1. None: Python was started without columns."""

    path: str
    line: int
    column: int | None = None

    def __str__(self) -> str:
        """Return `FILE:LINE:COLUMN`.

        >>> print(WrittenAt(os.path.abspath("app.py"), 12, 8))
        app.py:12:8
        """
        parts = (shown_path(self.path), self.line, self.column)
        return ":".join(str(part) for part in parts if part is not None)


def place_of_caller() -> WrittenAt | None:
    """Return the place in the innermost frame outside dagflow and its library; None where all frames are theirs."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith((*_LIBRARY, "<attrs generated")):
        if frame.f_back is None:
            return None
        frame = frame.f_back
    positions = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    column = None if positions[2] is None else positions[2] + 1
    return WrittenAt(frame.f_code.co_filename, positions[0] or frame.f_lineno, column)


def shown_path(path: str) -> str:
    """Return a path as it is shown: relative to the working folder where it lies below it."""
    near = os.path.relpath(path)
    return path if near.startswith("..") else near
