"""Errors of block readers: files that changed or disappeared, or cannot be read in parts."""

from __future__ import annotations

import datetime

from dagflow.errors import ConfigError, definition, error
from operators.contexts.errors import ReadError


@error("DF330", kw_only=True)
class FileChanged(ReadError):
    """A file has changed since its blocks were planned.

    Lengths in bytes, times in nanoseconds since the epoch (None: unknown).
    """

    path: str
    planned_length: int
    found_length: int
    planned_modified_ns: int | None
    found_modified_ns: int | None
    example = {
        "reader": "lines",
        "path": "logs/a.txt",
        "planned_length": 4096,
        "found_length": 100,
        "planned_modified_ns": None,
        "found_modified_ns": None,
    }

    def message(self) -> str:
        return (
            f"{self.path}: the file has changed since its blocks were planned\n"
            f"  planned  {self.planned_length} bytes, modified {_time(self.planned_modified_ns)}\n"
            f"  found    {self.found_length} bytes, modified {_time(self.found_modified_ns)}\n"
            "  help: put the planned file back, or launch with --fresh to plan again; files must not change while they are read:\n"
            "        write a new file and rename it\n"
            f"        (if this one is only ever appended to: {definition(self.reader, 'allow_growth', 'true')})"
        )


@error("DF331", kw_only=True)
class FileGone(ReadError, LookupError):
    """A file was deleted or moved after its blocks were planned. `planned_length` in bytes."""

    path: str
    planned_length: int
    template = (
        "{path}: the file is gone; it had {planned_length} bytes when its blocks were planned\n"
        "  help: put it back and launch again; or continue without its blocks: {reader:-D on_error=skip}"
    )
    example = {"reader": "lines", "path": "logs/a.txt", "planned_length": 4096}


@error("DF272", kw_only=True)
class PartsNotReadable(ConfigError):
    """A growing file is read in parts that may end in the middle of a record of its reader."""

    operator: str
    path: str
    end: str
    quote: str | None
    why: str
    template = (
        "operator {operator!r}: {path} is read in parts that end after "
        "{end!r}{quote:?, outside of {quote!r}} (scanner.modified is append): {why}\n"
        "  help: append works for lines and formats of one record per line; "
        "set scanner.record_end to what ends a record, and for\n"
        "        CSV with quotes scanner.record_quote to the quote; scanner.modified=reread reads other files whole"
    )
    example = {"operator": "files", "path": "logs/a.gz", "end": "\n", "quote": None, "why": "the reader unpacks gzip"}


def _time(nanoseconds: int | None) -> str:
    if not nanoseconds:
        return "at an unknown time"
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"
