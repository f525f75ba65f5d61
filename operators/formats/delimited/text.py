"""The text of pieces of whole records: the records that are rows, and their bytes as UTF-8."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dagflow.scan import not_text
from operators.contexts.piece import Piece
from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.fields import FieldSplitter


class BadRecord(NamedTuple):
    """A record of a piece (by its number) that is not a row, with the reason, and the column if one is the cause."""

    number: int
    reason: str
    column: str | None = None


Report = Callable[[Piece, BadRecord], None]


@attrs.frozen(slots=False)
class PieceText:
    """Finds the rows in pieces of whole records. `report` is called for records whose bytes are not text."""

    dialect: Dialect
    report: Report = attrs.field(default=lambda piece, record: None)

    def record_numbers(self, piece: Piece) -> NDArray[np.int64]:
        """Return which records of a piece are rows: neither blank lines nor comments."""
        data, offsets = np.frombuffer(piece.data, np.uint8), piece.offsets
        starts, sizes = offsets[:-1], np.diff(offsets)
        is_blank = (sizes <= 2) & ((data[starts] == 10) | (data[starts] == 13))
        is_blank &= (sizes == 1) | (data[np.minimum(starts + 1, len(data) - 1)] == 10)
        comment = self.dialect.comment_bytes
        if comment:
            is_blank |= np.array([piece.data.startswith(comment, at) for at in starts.tolist()], bool)
        return np.flatnonzero(~is_blank)

    def as_it_stands(self, piece: Piece) -> pa.Buffer | None:
        """Return the text of a piece if all records but blank lines are rows that parsers take as they are; None otherwise."""
        data, begin, end = piece.data, piece.begin, piece.end
        dialect = self.dialect
        comment = dialect.comment_bytes
        if comment and (data.startswith(comment, begin, end) or self._comments.search(data, begin, end) is not None):
            return None
        if dialect.trim and self._blanks_around.search(data, begin, end) is not None:
            return None
        if dialect.escape_bytes and data.endswith(dialect.escape_bytes, begin, end):
            return None
        if dialect.bytes_encoding == "utf-8":
            return pa.py_buffer(data).slice(begin, end - begin)
        try:
            return pa.py_buffer(data[begin:end].decode(dialect.bytes_encoding).encode())
        except UnicodeDecodeError:
            return None

    def records(self, piece: Piece) -> Iterator[tuple[int, bytes]]:
        """Return which records are rows, each with its text as UTF-8, without line end and without blanks around its fields."""
        records, splitter, encoding = piece.bytes_list(), self.splitter, self.dialect.bytes_encoding
        for number in self.record_numbers(piece).tolist():
            row = splitter.without_line_end(records[number])
            if self.dialect.trim:
                row = self.dialect.delimiter_bytes.join(field.raw for field in splitter.split(row))
            if encoding != "utf-8":
                try:
                    row = row.decode(encoding).encode()
                except UnicodeDecodeError:
                    self.report_bytes(piece, number, None)
                    continue
            elif self.dialect.escape_bytes and splitter.without_line_end(row + b"\r") != row:
                row = row[:-1]  # an escape that escapes nothing: the file ends
            yield number, row

    def one_byte_delimiter(self, text: pa.Buffer) -> tuple[str, pa.Buffer]:
        """Return a delimiter of one byte, which parsers need, and the text with it. Raises pa.ArrowInvalid if no byte is free."""
        delimiter = self.dialect.delimiter.encode()
        if len(delimiter) == 1:
            return self.dialect.delimiter, text
        data = bytes(text)
        marks = {*(self.dialect.quote or ""), *(self.dialect.escape or ""), "\r", "\n"}
        free = next((chr(n) for n in [*range(31, 0, -1), *range(32, 127)] if chr(n) not in marks and n not in data), None)
        if free is None:
            raise pa.ArrowInvalid("every byte of ASCII is in use")
        return free, pa.py_buffer(data.replace(delimiter, free.encode()))

    def may_hold_delimiters(self, text: pa.Buffer) -> bool:
        """Return True if fields may have the delimiter in them."""
        data = bytes(text)
        return any(mark and mark.encode() in data for mark in (self.dialect.quote, self.dialect.escape))

    def report_bytes(self, piece: Piece, number: int, column: str | None) -> None:
        """Report a record with bytes that are not text; the place of the first one in the file is named."""
        begin = int(piece.offsets[number])
        record = piece.data[begin : int(piece.offsets[number + 1])]
        try:
            record.decode(self.dialect.bytes_encoding)
        except UnicodeDecodeError as error:
            wrong, at = record[error.start : error.end], int(piece.positions[number]) + error.start
            self.report(piece, BadRecord(number, not_text(f"byte {at}", wrong, self.dialect.encoding), column))

    @cached_property
    def splitter(self) -> FieldSplitter:
        """Take records apart as they stand in the file."""
        return FieldSplitter(self.dialect)

    @cached_property
    def row_splitter(self) -> FieldSplitter:
        """Take the texts apart that `records` gives."""
        return FieldSplitter(attrs.evolve(self.dialect, encoding="utf-8", trim=False))

    @cached_property
    def _comments(self) -> re.Pattern[bytes]:
        return re.compile(rb"[\r\n]" + re.escape(self.dialect.comment_bytes))

    @cached_property
    def _blanks_around(self) -> re.Pattern[bytes]:
        mark, blank = re.escape(self.dialect.delimiter_bytes), b"[" + self.dialect.blanks + b"]"
        edge = b"(?:" + mark + rb"|[\r\n])"
        return re.compile(rb"\A" + blank + b"|" + edge + blank + b"|" + blank + edge + b"|" + blank + rb"\Z")


def lines(rows: list[bytes]) -> pa.Buffer:
    """Return rows as one text, each with a line end."""
    return pa.py_buffer(b"\n".join([*rows, b""]))
