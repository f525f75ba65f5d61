"""Columns from pieces of whole records: all rows at once where they are well-formed, otherwise row by row."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dagflow.scan import is_number
from operators.contexts.piece import Piece, int64_array
from operators.formats.delimited.codes import LARGEST, may_have_codes, numbers_of
from operators.formats.delimited.columns import ColumnParser, is_text, without_nulls
from operators.formats.delimited.text import BadRecord, PieceText, lines


class ParsedRows(NamedTuple):
    """The rows of a piece: their columns, and the number of each row's record; None if each record is a row."""

    batch: pa.RecordBatch
    records: NDArray[np.int64] | None


@attrs.frozen(slots=False)
class RowParser:
    """Parses the rows of pieces into columns.

    - `names`: of all columns; `types`: of the needed ones, in the order of the result.
    - `extra_fields`: "ignore" fields beyond the last column, or treat the row as "bad".
    - `missing_fields`: use "null" for them, or treat the row as "bad".
    - `inferred`: columns whose types come from a sample. Of numbers and booleans among them, text that would be another when
      written again (`007`) is loaded as it is.
    - `parsed`: columns of strings here that become values of other types later: nulls are nulls also within quotes.
    - `count(name)` is called for rows with missing or extra fields, `text.report` for bad rows.
    """

    text: PieceText
    names: Sequence[str]
    types: dict[str, pa.DataType]
    nulls: Sequence[str] = ("",)
    extra_fields: Literal["ignore", "bad"] = "ignore"
    missing_fields: Literal["null", "bad"] = "null"
    inferred: frozenset[str] = frozenset()
    parsed: frozenset[str] = frozenset()
    count: Callable[[str], None] = attrs.field(default=lambda name: None)

    def rows(self, piece: Piece) -> ParsedRows:
        """Return the rows of a piece."""
        rows = self.rows_at_once(piece)
        return self.odd_rows(piece) if rows is None else rows

    def rows_at_once(self, piece: Piece) -> ParsedRows | None:
        """Return the same if all rows are well-formed, None otherwise."""
        text = self.text.as_it_stands(piece)
        if text is None:
            return None
        try:
            batch = self._parsed(text, self.types)
        except pa.ArrowInvalid:
            return None
        return ParsedRows(batch, None if batch.num_rows == len(piece) else self.text.record_numbers(piece))

    def _parsed(self, text: pa.Buffer, types: dict[str, pa.DataType], *, has_blank_rows: bool = False) -> pa.RecordBatch:
        delimiter, text = self.text.one_byte_delimiter(text)
        dialect = self.text.dialect
        numbers = [name for name in self._inferred_numbers if is_number(types[name])]
        has_codes = bool(numbers) and may_have_codes(memoryview(text), delimiter, dialect.quote or "", dialect.escape or "")
        wanted = types
        if has_codes:  # in columns of strings, perhaps
            types = {**types, **dict.fromkeys(numbers, pa.string())}
        batch = self._parser(delimiter, types).parse(text, has_blank_rows=has_blank_rows)
        if has_codes:
            batch = with_numbers(batch, {name: wanted[name] for name in numbers})
        large = [name for name in numbers if has_large_floats(batch.column(name))]
        if large:
            types = {**types, **dict.fromkeys(large, pa.string())}
            batch = self._parser(delimiter, types).parse(text, has_blank_rows=has_blank_rows)
        batch = self._with_nulls(batch)
        own = self.text.dialect.delimiter
        if delimiter == own or not self.text.may_hold_delimiters(text):
            return batch
        columns = [pc.replace_substring(c, delimiter, own) if is_text(c.type) else c for c in batch.columns]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _parser(self, delimiter: str, types: dict[str, pa.DataType]) -> ColumnParser:
        dialect = self.text.dialect
        if types is self.types and delimiter == dialect.delimiter:
            return self._usual_parser
        return self._parser_of(delimiter, types)

    @cached_property
    def _usual_parser(self) -> ColumnParser:
        return self._parser_of(self.text.dialect.delimiter, self.types)

    def _parser_of(self, delimiter: str, types: dict[str, pa.DataType]) -> ColumnParser:
        dialect = self.text.dialect
        quote, escape = dialect.quote or "", dialect.escape or ""
        has_inferred = any(pa.types.is_boolean(types.get(name, pa.null())) for name in self.inferred)
        return ColumnParser(self.names, types, delimiter, quote, escape, self.nulls, has_inferred)

    def _with_nulls(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch with nulls for quoted ones in columns of text that are parsed later."""
        if self.nulls == ("",):  # blank text is null anyway
            return batch
        for at, name in enumerate(batch.schema.names):
            is_parsed = name in self.parsed or (name in self.inferred and not is_text(self.types[name]))
            if is_parsed and pa.types.is_string(batch.schema.field(at).type):
                batch = batch.set_column(at, name, without_nulls(batch.column(at), self.nulls))
        return batch

    @cached_property
    def _inferred_numbers(self) -> list[str]:
        return [name for name, kind in self.types.items() if name in self.inferred and is_number(kind)]

    # Odd pieces

    def odd_rows(self, piece: Piece) -> ParsedRows:
        """Return the same row by row: comments are left out, ragged rows evened, bad rows reported."""
        numbers, rows = [], []
        for number, row in self.text.records(piece):
            numbers.append(number)
            rows.append(row)
        rows, numbers = self._evened(piece, rows, numbers)
        if not rows:
            empty = [pa.array([], kind) for kind in self.types.values()]
            return ParsedRows(pa.RecordBatch.from_arrays(empty, names=list(self.types)), np.zeros(0, np.int64))
        return self._converted(piece, rows, np.array(numbers))

    def _evened(self, piece: Piece, rows: list[bytes], numbers: list[int]) -> tuple[list[bytes], list[int]]:
        """Return the rows, each with one field per column."""
        delimiter, text = self.text.one_byte_delimiter(lines(rows))
        odd = self._parser(delimiter, self.types).odd_rows(text) if rows else {}
        wanted = len(self.names)
        own = self.text.dialect.delimiter.encode()
        dropped = set()
        for at, width in odd.items():
            kind, what = ("missing", self.missing_fields) if width < wanted else ("extra", self.extra_fields)
            if what == "bad":
                self.text.report(piece, BadRecord(numbers[at], f"has {width} fields instead of {wanted}"))
                dropped.add(at)
                continue
            if kind == "missing":
                rows[at] += (own + (self.nulls[0].encode() if self.nulls else b"")) * (wanted - width)
            else:
                rows[at] = own.join(field.raw for field in self.text.row_splitter.split(rows[at])[:wanted])
            self.count(f"rows_with_{kind}_fields")
        if not dropped:
            return rows, numbers
        kept = [at for at in range(len(rows)) if at not in dropped]
        return [rows[at] for at in kept], [numbers[at] for at in kept]

    def _converted(self, piece: Piece, rows: list[bytes], numbers: NDArray[np.int64]) -> ParsedRows:
        """Return the columns of evened rows. Columns with values that do not fit are text."""
        types, failed = dict(self.types), dict[str, pa.DataType]()
        text = lines(rows)
        while True:
            try:
                batch = self._parsed(text, types, has_blank_rows=True)
                break
            except pa.ArrowInvalid as error:
                column = self._usual_parser.first_bad_column(error)
                if column is None or column in failed:
                    raise
                failed[column], types[column] = types[column], pa.binary()
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        bad: set[int] = set()
        for name in failed:
            bad |= self._no_text(piece, columns[name], name, numbers, bad)
        if bad:
            kept = np.array([at for at in range(len(rows)) if at not in bad], np.int64)
            numbers, columns = (
                numbers[kept],
                {name: column.take(pa.array(kept.tolist(), pa.int64())) for name, column in columns.items()},
            )
        for name, kind in failed.items():
            columns[name] = columns[name].cast(pa.string())
            if not is_text(kind):
                columns[name] = without_nulls(columns[name], self.nulls)
        return ParsedRows(pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns)), numbers)

    def _no_text(self, piece: Piece, cells: pa.Array, name: str, numbers: NDArray[np.int64], known: set[int]) -> set[int]:
        """Return which cells are not UTF-8. Their rows are reported, unless they are known to be bad."""
        bad: set[int] = set()
        try:
            cells.cast(pa.string())
        except pa.ArrowInvalid:
            for at, cell in enumerate(cells.to_pylist()):
                try:
                    _ = cell and cell.decode()
                except UnicodeDecodeError:
                    bad.add(at)
                    if at not in known:
                        self.text.report_bytes(piece, int(numbers[at]), name)
        return bad


@attrs.frozen(slots=False)
class ListParser:
    """Parses the rows of pieces into one column, `columns`: the list of a row's fields as strings."""

    text: PieceText

    def rows(self, piece: Piece) -> ParsedRows:
        """Return the rows of a piece."""
        numbers = self.text.record_numbers(piece)
        text = self.text.as_it_stands(piece)
        if text is not None and len(numbers):
            first = piece.data[int(piece.offsets[numbers[0]]) : int(piece.offsets[numbers[0] + 1])]
            names = [str(number) for number in range(len(self.text.splitter.split(first)))]
            try:
                batch = RowParser(self.text, names, dict.fromkeys(names, pa.string()), nulls=())._parsed(
                    text, dict.fromkeys(names, pa.string())
                )
                return ParsedRows(self._batch(_interleaved(batch)), numbers)
            except pa.ArrowInvalid:
                pass
        fields, lists = [], []
        for number, row in self.text.records(piece):
            try:
                lists.append([field.text.decode() for field in self.text.row_splitter.split(row)])
                fields.append(number)
            except UnicodeDecodeError:
                self.text.report_bytes(piece, number, None)
        return ParsedRows(self._batch(pa.array(lists, pa.list_(pa.string()))), np.array(fields, np.int64))

    def _batch(self, lists: pa.Array) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([lists], names=["columns"])


def with_numbers(batch: pa.RecordBatch, types: dict[str, pa.DataType]) -> pa.RecordBatch:
    """Return a batch with numbers for the columns of text that are plain ones."""
    for name, kind in types.items():
        at = batch.schema.get_field_index(name)
        numbers = numbers_of(batch.column(at), kind)
        if numbers is not None:
            batch = batch.set_column(at, name, numbers)
    return batch


def has_large_floats(values: pa.Array) -> bool:
    """Return True if a column has floats that may be read from integers with other digits."""
    if not pa.types.is_floating(values.type):
        return False
    extremes = pc.min_max(values).as_py()
    return any(abs(each) >= LARGEST for each in extremes.values() if each is not None)


def _interleaved(batch: pa.RecordBatch) -> pa.Array:
    """Return the list of each row's values, from columns of one type."""
    rows, width = batch.num_rows, batch.num_columns
    order = np.arange(rows * width).reshape(width, rows).T.ravel()
    values = pa.concat_arrays(batch.columns).take(int64_array(order))
    offsets = np.arange(0, rows * width + 1, width, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.Array.from_buffers(pa.int32(), rows + 1, [None, pa.py_buffer(offsets)]), values)
