"""Places in the user's code."""

from __future__ import annotations

import os
import re
import sys

_DAGFLOW = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def caller() -> str:
    """Return `FILE:LINE` of the innermost frame outside dagflow."""
    frame = sys._getframe(1)
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(_DAGFLOW + os.sep):
        frame = frame.f_back
    return f"{shown(frame.f_code.co_filename)}:{frame.f_lineno}"


def shown(path: str) -> str:
    """Return a path as short as it is clear: relative to the working folder when it lies below it. URLs stay as they are.

    >>> shown(os.path.join(os.getcwd(), "logs", "a.txt")), shown("s3://bucket/logs"), shown("file:///logs")
    ('logs/a.txt', 's3://bucket/logs', 'file:///logs')
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path):  # relpath would take `//` for a slip
        return path
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return path
    return path if relative.startswith("..") else relative
