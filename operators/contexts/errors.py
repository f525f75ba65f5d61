"""Errors of reader contexts: bytes that are not the expected records."""

from __future__ import annotations

from typing import Self

from typing_extensions import override

from dagflow.errors import RunError, definition, error


@error(kw_only=True)
class ReadError(RunError):
    """The base class of errors of readers. `reader`: the operator's name, for the settings that a message shows.

    `unit`: the unit of positions, which is "" for bytes of the file, "stream" for bytes of the decompressed text, and "bgzf"
    for virtual offsets.
    """

    reader: str = "READER"
    unit: str = ""

    def at(self, position: int) -> str:
        """Return a phrase for a position."""
        if self.unit == "bgzf":
            member, byte = divmod(position, 1 << 16)
            return f"virtual offset {position} (byte {byte} within the member at byte {member})"
        return f"byte {position} of the decompressed text" if self.unit else f"byte {position}"

    def of(self, reader: str) -> Self:
        """Set the name of the reader, and return this error."""
        self.reader = reader
        return self


@error("DF310", kw_only=True)
class RecordTooLong(ReadError):
    """A record is longer than `limit` bytes. The terminators may be wrong, or the file is not text."""

    path: str
    position: int
    limit: int
    example = {"reader": "lines", "path": "logs/a.txt", "position": 0, "limit": 67_108_864}
    general_remedy = "name the terminators that the file has, or allow longer records: reader_context.max_record_bytes"

    @override
    def message(self) -> str:
        return (
            f"{self.path}: the record that starts at {self.at(self.position)} is longer than max_record_bytes = {self.limit}.\n"
            "Either its records have another terminator (`terminators` of the reader context), or the file does not consist of lines,\n"
            f"or records may be longer: {definition(self.reader, 'reader_context.max_record_bytes', self.limit * 4)}"
        )


@error("DF311", kw_only=True)
class FileShortened(ReadError):
    """A file ends before the byte that its block was planned to reach."""

    path: str
    expected: int
    found: int
    template = (
        "{path}: the file has {found} bytes, but had {expected} when its blocks were planned.\n"
        "It was shortened or replaced since. Files must not change while they are read: write a new file and rename it."
    )
    example = {"reader": "lines", "path": "logs/a.txt", "expected": 4096, "found": 100}
    general_remedy = "put the file back as it was; write a new file and rename it instead of changing one"


@error("DF312", kw_only=True)
class BadText(ReadError, ValueError):
    """The bytes of a record are not text in the given encoding.

    `position`: the start of the record in its file; `byte_offset`: the position of the first bad byte in the file.
    """

    path: str
    position: int
    byte_offset: int
    encoding: str
    reason: str = ""
    found: bytes = b""
    example = {"reader": "lines", "path": "logs/a.txt", "position": 0, "byte_offset": 3, "encoding": "utf-8", "found": b"\xfc"}
    general_remedy = "name the encoding that the file has, or let bad bytes be replaced: encoding_errors=replace"

    @override
    def message(self) -> str:
        # Virtual offsets do not add up with lengths.
        where = f"byte {self.byte_offset - self.position}" if self.unit == "bgzf" else f"byte {self.byte_offset}"
        shown = f" ({self.found.hex(' ')})" if self.found else ""
        why = f": {self.reason}" if self.reason else ""
        advice = (
            f"Name the real encoding ({definition(self.reader, 'encoding', 'cp1252')}, say), or let bad bytes be replaced "
            f"by U+FFFD ({definition(self.reader, 'encoding_errors', 'replace')})."
        )
        if self.byte_offset == 1 and self.found == b"\x8b":
            auto = definition(self.reader, "compression", "auto")
            advice = f"It looks like gzip, which is not read as text: unpack it, or let the reader do it (a BlockReader: {auto})."
        return f"{self.path}: {where}{shown}, in the record that starts at {self.at(self.position)}, is not {self.encoding}{why}.\n{advice}"


@error("DF313", kw_only=True)
class PartialRecord(ReadError, ValueError):
    """The last record of a file of fixed-length records is cut short."""

    path: str
    position: int
    expected: int
    found: int
    example = {"reader": "lines", "path": "logs/a.bin", "position": 96, "expected": 32, "found": 4}
    general_remedy = "correct `length`, or accept the short record: reader_context.partial=emit or drop"

    @override
    def message(self) -> str:
        return (
            f"{self.path}: the last record, at {self.at(self.position)}, has {self.found} bytes instead of {self.expected}.\n"
            "The file is incomplete, or `length` is wrong. To accept the short record:\n"
            f"{definition(self.reader, 'reader_context.partial', 'emit')} (emit it), or drop (leave it out)"
        )
