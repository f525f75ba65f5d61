"""Columns out of pieces of whole records: all at once where rows are in order, row by row where they are odd."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from operators.contexts.piece import Piece
from operators.formats.delimited.columns import ColumnParser, canonical, is_text
from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.fields import FieldSplitter


class BadRecord(NamedTuple):
    """A record of a piece (by its number in it) that is no row, and why; `column` if it is one's fault."""

    number: int
    reason: str
    column: str | None = None


class Rows(NamedTuple):
    """The rows of a piece: their columns, and which record each is, for whoever asks."""

    batch: pa.RecordBatch
    record_of: Callable[[int], int]


@attrs.frozen(slots=False)
class RowParser:
    """Makes columns of the records of pieces.

    - `names`: of all columns; `types`: of those that are wanted, in the order of the result.
    - `extra_fields`: "ignore" those that a row has more than there are columns, or the row is "bad".
    - `missing_fields`: those that a row lacks are "null", or the row is "bad".
    - `report` is told of bad records, `count(name)` of the others that are odd.
    """

    dialect: Dialect
    names: Sequence[str]
    types: dict[str, pa.DataType]
    nulls: Sequence[str] = ("",)
    extra_fields: Literal["ignore", "bad"] = "ignore"
    missing_fields: Literal["null", "bad"] = "null"
    report: Callable[[Piece, BadRecord], None] = attrs.field(default=lambda piece, record: None)
    count: Callable[[str], None] = attrs.field(default=lambda name: None)

    def rows(self, piece: Piece, *, is_open: bool = False) -> Rows:
        """The rows of a piece. `is_open`: its only record ends within quotes."""
        if is_open:
            self.report(piece, BadRecord(0, "a quote is never closed"))
            return Rows(self._empty(), int)
        text = self._as_it_stands(piece)
        if text is not None:
            try:
                parser, text = self._one_byte_delimiter(text)
                return Rows(self._restored(parser.parse(text), parser, text), self._numbers_of(piece))
            except pa.ArrowInvalid:
                pass
        return self._odd_rows(piece)

    def row_count(self, piece: Piece) -> int:
        """How many rows a piece has."""
        return len(self.record_numbers(piece))

    def record_numbers(self, piece: Piece) -> NDArray[np.int64]:
        """Which records of a piece are rows: neither blank lines nor comments."""
        data, offsets = np.frombuffer(piece.data, np.uint8), piece.offsets
        starts, sizes = offsets[:-1], np.diff(offsets)
        is_line_end = (data[starts] == 10) | (data[starts] == 13)
        is_blank = is_line_end & ((sizes == 1) | ((sizes == 2) & (data[np.minimum(starts + 1, len(data) - 1)] == 10)))
        comment = self.dialect.comment_bytes
        if comment:
            is_blank |= np.array([piece.data.startswith(comment, at) for at in starts.tolist()], bool)
        return np.flatnonzero(~is_blank)

    def _numbers_of(self, piece: Piece) -> Callable[[int], int]:
        known: list[Any] = []

        def number(row: int) -> int:
            if not known:
                known.append(self.record_numbers(piece))
            return int(known[0][row])

        return number

    # Pieces in order

    def _as_it_stands(self, piece: Piece) -> pa.Buffer | None:
        """The text of a piece in which every record but blank lines is a row as the parser wants it; None: some are not."""
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

    @cached_property
    def _comments(self) -> re.Pattern[bytes]:
        return re.compile(rb"[\r\n]" + re.escape(self.dialect.comment_bytes))

    @cached_property
    def _blanks_around(self) -> re.Pattern[bytes]:
        mark, blank = re.escape(self.dialect.delimiter_bytes), b"[" + self.dialect.blanks + b"]"
        edge = b"(?:" + mark + rb"|[\r\n])"
        return re.compile(rb"\A" + blank + b"|" + edge + blank + b"|" + blank + edge + b"|" + blank + rb"\Z")

    def _one_byte_delimiter(self, text: pa.Buffer) -> tuple[ColumnParser, pa.Buffer]:
        """A parser for some text, and the text with a delimiter of one byte, which is all that the parser knows."""
        delimiter = self.dialect.delimiter.encode()
        if len(delimiter) == 1:
            return self._parser, text
        data = bytes(text)
        marks = (self.dialect.quote or "") + (self.dialect.escape or "") + "\r\n\0"
        free = next((chr(n) for n in range(31, 127) if chr(n) not in marks and bytes([n]) not in data), None)
        free = free or next((chr(n) for n in range(1, 31) if chr(n) not in marks and bytes([n]) not in data), None)
        if free is None:
            raise pa.ArrowInvalid("every byte of ASCII is in use")
        return self._parser_of(free), pa.py_buffer(data.replace(delimiter, free.encode()))

    def _restored(self, batch: pa.RecordBatch, parser: ColumnParser, text: pa.Buffer) -> pa.RecordBatch:
        """The columns with the delimiter in their texts as it was, where another stood for it."""
        delimiter = self.dialect.delimiter
        if parser.delimiter == delimiter or not self._has_marks(text):
            return batch
        columns = [
            pc.replace_substring(c, parser.delimiter, delimiter) if is_text(c.type) else c for c in batch.columns
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _has_marks(self, text: pa.Buffer) -> bool:
        data = bytes(text)
        return any(mark and mark.encode() in data for mark in (self.dialect.quote, self.dialect.escape))

    @cached_property
    def _parser(self) -> ColumnParser:
        return self._parser_of(self.dialect.delimiter)

    def _parser_of(self, delimiter: str, types: dict[str, pa.DataType] | None = None) -> ColumnParser:
        dialect = self.dialect
        own = self.types if types is None else types
        return ColumnParser(self.names, own, delimiter, dialect.quote or "", dialect.escape or "", self.nulls)

    def _empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in self.types.values()], names=list(self.types))

    # Odd pieces

    def _odd_rows(self, piece: Piece) -> Rows:
        """The same row by row: comments are left out, ragged rows evened, bad rows reported."""
        numbers: list[int] = []
        rows: list[bytes] = []
        for number, row in self._records(piece):
            numbers.append(number)
            rows.append(row)
        rows, numbers = self._evened(piece, rows, numbers)
        batch, rows_kept = self._converted(piece, rows, numbers)
        kept = numbers if rows_kept is None else [numbers[at] for at in rows_kept]
        return Rows(batch, kept.__getitem__)

    def _records(self, piece: Piece) -> Iterator[tuple[int, bytes]]:
        """Which records are rows, each with its text as UTF-8, without line end and without blanks around its fields."""
        records, splitter, encoding = piece.bytes_list(), self._splitter, self.dialect.bytes_encoding
        trims = self.dialect.trim
        for number in self.record_numbers(piece).tolist():
            row = splitter.without_line_end(records[number])
            if trims:
                row = self.dialect.delimiter_bytes.join(field.raw for field in splitter.split(row))
            if encoding != "utf-8":
                try:
                    row = row.decode(encoding).encode()
                except UnicodeDecodeError:
                    self._report_bytes(piece, number, None)
                    continue
            elif self.dialect.escape_bytes and splitter.without_line_end(row + b"\r") != row:
                row = row[:-1]  # an escape that escapes nothing: the file ends
            yield number, row

    @cached_property
    def _splitter(self) -> FieldSplitter:
        return FieldSplitter(self.dialect)

    @cached_property
    def _utf8_splitter(self) -> FieldSplitter:
        return FieldSplitter(attrs.evolve(self.dialect, encoding="utf-8", trim=False))

    def _evened(self, piece: Piece, rows: list[bytes], numbers: list[int]) -> tuple[list[bytes], list[int]]:
        """The rows, each with as many fields as there are columns."""
        parser, text = self._one_byte_delimiter(_lines(rows))
        odd = parser.odd_rows(text) if rows else {}
        wanted = len(self.names)
        delimiter = self.dialect.delimiter.encode()
        dropped = set()
        for at, found in odd.items():
            if found < wanted:
                if self.missing_fields == "bad":
                    self.report(piece, BadRecord(numbers[at], f"has {found} fields instead of {wanted}"))
                    dropped.add(at)
                    continue
                rows[at] += (delimiter + (self.nulls[0].encode() if self.nulls else b"")) * (wanted - found)
                self.count("rows_with_missing_fields")
            else:
                if self.extra_fields == "bad":
                    self.report(piece, BadRecord(numbers[at], f"has {found} fields instead of {wanted}"))
                    dropped.add(at)
                    continue
                rows[at] = delimiter.join(field.raw for field in self._utf8_splitter.split(rows[at])[:wanted])
                self.count("rows_with_extra_fields")
        if not dropped:
            return rows, numbers
        kept = [at for at in range(len(rows)) if at not in dropped]
        return [rows[at] for at in kept], [numbers[at] for at in kept]

    def _converted(self, piece: Piece, rows: list[bytes], numbers: list[int]) -> tuple[pa.RecordBatch, list[int] | None]:
        """The columns of evened rows; those with values that do not fit as text. And which rows are left; None: all."""
        if not rows:
            return self._empty(), None
        types, failed = dict(self.types), dict[str, pa.DataType]()
        text = _lines(rows)
        while True:
            parser, one_byte = self._one_byte_delimiter(text)
            parser = self._parser_of(parser.delimiter, types)
            try:
                batch = self._restored(parser.parse(one_byte, has_blank_rows=True), parser, one_byte)
                break
            except pa.ArrowInvalid as error:
                column = parser.first_bad_column(error)
                if column is None or column in failed:
                    raise
                failed[column], types[column] = types[column], pa.binary()
        bad: set[int] = set()
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in failed:
            columns[name] = self._as_text(piece, columns[name], name, numbers, bad)
        kept = None
        if bad:
            kept = [at for at in range(len(rows)) if at not in bad]
            taken = pa.array(kept, pa.int64())
            columns = {name: column.take(taken) for name, column in columns.items()}
        for name, kind in failed.items():
            columns[name] = columns[name].cast(pa.string())
            if not is_text(kind):
                columns[name] = canonical(columns[name], kind, self.nulls)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)), kept

    def _as_text(self, piece: Piece, cells: pa.Array, name: str, numbers: list[int], bad: set[int]) -> pa.Array:
        """The cells; rows of those that are no UTF-8 are reported and added to `bad`."""
        try:
            cells.cast(pa.string())
        except pa.ArrowInvalid:
            for at, cell in enumerate(cells.to_pylist()):
                try:
                    _ = cell and cell.decode()
                except UnicodeDecodeError:
                    if at not in bad:
                        bad.add(at)
                        self._report_bytes(piece, numbers[at], name)
        return cells

    def _report_bytes(self, piece: Piece, number: int, column: str | None) -> None:
        """Reports a record with bytes that are no text; the first of them is named by its place in the file."""
        begin = int(piece.offsets[number])
        record = piece.data[begin : int(piece.offsets[number + 1])]
        try:
            record.decode(self.dialect.bytes_encoding)
        except UnicodeDecodeError as error:
            wrong, at = record[error.start : error.end], int(piece.positions[number]) + error.start
            self.report(piece, BadRecord(number, f"byte {at} ({wrong.hex(' ')}) is not {self.dialect.encoding}", column))


def _lines(rows: Sequence[bytes]) -> pa.Buffer:
    return pa.py_buffer(b"\n".join([*rows, b""]))
