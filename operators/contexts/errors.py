"""What can be wrong with the bytes that a reader context reads (all end a run: exit code 1).

RunError
├── RecordTooLong   DF310
├── FileShortened   DF311
├── BadText         DF312   also a ValueError
└── PartialRecord   DF313   also a ValueError
"""

from __future__ import annotations

from typing import ClassVar

import attrs
from typing_extensions import override

from dagflow.errors import RunError


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class RecordTooLong(RunError):
    """A record has more than `limit` bytes: the file has other terminators than were asked for, or is no text."""

    code: ClassVar[str] = "DF310"

    path: str
    position: int
    limit: int

    @override
    def message(self) -> str:
        return (
            f"{self.path}: the record that starts at byte {self.position} is longer than max_record_bytes = {self.limit}.\n"
            "Either the records end with something else (see the reader context's `terminators`), or the file holds no lines,\n"
            f"or records may be longer: set max_record_bytes, for example to {self.limit * 4}."
        )


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class FileShortened(RunError):
    """A file ends before the byte that its block was planned to reach."""

    code: ClassVar[str] = "DF311"

    path: str
    expected: int
    found: int

    @override
    def message(self) -> str:
        return (
            f"{self.path}: the file has {self.found} bytes, but had {self.expected} when its blocks were planned.\n"
            "It was shortened or replaced since. Files must not change while they are read: write a new file and rename it."
        )


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class BadText(RunError, ValueError):
    """The bytes of a record are no text in the encoding that was asked for.

    `position` is where the record starts in its file, `byte_offset` where in the file the first bad byte is.
    """

    code: ClassVar[str] = "DF312"

    path: str
    position: int
    byte_offset: int
    encoding: str
    reason: str = ""
    found: bytes = b""

    @override
    def message(self) -> str:
        shown = f" ({self.found.hex(' ')})" if self.found else ""
        why = f": {self.reason}" if self.reason else ""
        advice = (
            "Name the real encoding (-D operator.READER.encoding=cp1252, say), or let bad bytes be replaced by U+FFFD "
            "(-D operator.READER.text_errors=replace)."
        )
        if self.byte_offset == 1 and self.found == b"\x8b":
            advice = "It looks like gzip, which is not read as text: unpack it, or leave it out (the scanner's ignore pattern)."
        return (
            f"{self.path}: byte {self.byte_offset}{shown}, in the record that starts at byte {self.position}, "
            f"is not {self.encoding}{why}.\n{advice}"
        )


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class PartialRecord(RunError, ValueError):
    """The last record of a file of fixed-length records is cut short."""

    code: ClassVar[str] = "DF313"

    path: str
    position: int
    expected: int
    found: int

    @override
    def message(self) -> str:
        return (
            f"{self.path}: the last record, at byte {self.position}, has {self.found} bytes instead of {self.expected}.\n"
            "The file is incomplete, or `length` is wrong. To read it all the same:\n"
            'partial = "emit" (pass the short record on) or "drop" (leave it out).'
        )
