"""What can be wrong with a file when its blocks are read.

RunError: ReadError
├── FileChanged   DF330
└── FileGone      DF331   also a LookupError
"""

from __future__ import annotations

import datetime
from typing import ClassVar

import attrs

from dagflow.errors import definition
from operators.contexts.errors import ReadError


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class FileChanged(ReadError):
    """A file is not the one that its blocks were planned from.

    Lengths in bytes, times in nanoseconds since the epoch (None: unknown).
    """

    code: ClassVar[str] = "DF330"

    path: str
    planned_length: int
    found_length: int
    planned_modified_ns: int | None
    found_modified_ns: int | None

    def message(self) -> str:
        return (
            f"{self.path}: the file has changed since its blocks were planned\n"
            f"  planned  {self.planned_length} bytes, modified {_time(self.planned_modified_ns)}\n"
            f"  found    {self.found_length} bytes, modified {_time(self.found_modified_ns)}\n"
            "  help: put the planned file back, or launch with --fresh to plan anew; files must not change while they are read:\n"
            "        write a new file and rename it\n"
            f"        (if this one is only ever appended to: {definition(self.reader, 'allow_growth', 'true')})"
        )


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class FileGone(ReadError, LookupError):
    """A file was deleted or moved after its blocks were planned. `planned_length` in bytes."""

    code: ClassVar[str] = "DF331"

    path: str
    planned_length: int

    def message(self) -> str:
        return (
            f"{self.path}: the file is gone; it had {self.planned_length} bytes when its blocks were planned\n"
            "  help: put it back and launch again, or launch with --fresh to go on without it"
        )


def _time(nanoseconds: int | None) -> str:
    if not nanoseconds:
        return "at an unknown time"
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"
