"""Errors of block readers: files that changed or disappeared, or cannot be read in parts."""

from __future__ import annotations

import datetime
from typing import ClassVar

from dagflow.errors import ConfigError, definition, error
from operators.contexts.errors import ReadError


@error(kw_only=True)
class FileChanged(ReadError):
    """A file has changed since its blocks were planned.

    Lengths in bytes, times in nanoseconds since the epoch (None: unknown).
    """

    code: ClassVar[str] = "DF330"
    example = {
        "reader": "lines",
        "path": "logs/a.txt",
        "planned_length": 4096,
        "found_length": 100,
        "planned_modified_ns": None,
        "found_modified_ns": None,
    }

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
            "  help: put the planned file back, or launch with --fresh to plan again; files must not change while they are read:\n"
            "        write a new file and rename it\n"
            f"        (if this one is only ever appended to: {definition(self.reader, 'allow_growth', 'true')})"
        )


@error(kw_only=True)
class FileGone(ReadError, LookupError):
    """A file was deleted or moved after its blocks were planned. `planned_length` in bytes."""

    code: ClassVar[str] = "DF331"
    example = {"reader": "lines", "path": "logs/a.txt", "planned_length": 4096}

    path: str
    planned_length: int

    def message(self) -> str:
        return (
            f"{self.path}: the file is gone; it had {self.planned_length} bytes when its blocks were planned\n"
            f"  help: put it back and launch again; or continue without its blocks: {definition(self.reader, 'on_error', 'skip')}"
        )


@error(kw_only=True)
class PartsNotReadable(ConfigError):
    """A growing file is read in parts that may end in the middle of a record of its reader."""

    code: ClassVar[str] = "DF272"
    example = {"operator": "files", "path": "logs/a.gz", "end": "\n", "quote": None, "why": "the reader unpacks gzip"}

    operator: str
    path: str
    end: str
    quote: str | None
    why: str

    def message(self) -> str:
        quoted = "" if self.quote is None else f", outside of {self.quote!r}"
        return (
            f"operator {self.operator!r}: {self.path} is read in parts that end after {self.end!r}{quoted} "
            f"(scanner.modified is append): {self.why}\n"
            "  help: append works for lines and formats of one record per line; set scanner.record_end to what ends a record, and for\n"
            "        CSV with quotes scanner.record_quote to the quote; scanner.modified=reread reads other files whole"
        )


def _time(nanoseconds: int | None) -> str:
    if not nanoseconds:
        return "at an unknown time"
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"
