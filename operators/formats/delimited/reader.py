"""The reader of blocks of delimited text: pieces of whole records, and columns out of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pyarrow as pa

from dagflow.errors import RowTooLarge
from dagflow.scan import FileSchemaNegotiator, ResultSetLoader, RowOrigin
from operators.contexts.piece import Piece, int64_array
from operators.formats.delimited.columns import is_direct, is_text
from operators.formats.delimited.context import WINDOW, DelimitedContext
from operators.formats.delimited.errors import HeaderBad, QuoteLeftOpen
from operators.formats.delimited.fields import FieldSplitter, column_names
from operators.formats.delimited.rows import ListParser, ParsedRows, RowParser
from operators.formats.delimited.text import BadRecord, PieceText
from operators.formats.text.line_numbers import LineNumbers, LinesSoFar
from operators.formats.text.lines import PIECE_BYTES, LinesReader, parts_of

if TYPE_CHECKING:
    from operators.formats.csv import CsvFormat

SHOWN_BYTES = 4_000
REACHED = "delimited.reached"
BYTES_A_COLUMN = 4096  # of a piece, at least: each column of each piece costs some microseconds


@attrs.define(eq=False)
class CsvReader(LinesReader):
    """Reads a block of a file of delimited text."""

    format: CsvFormat

    def make_context(self, negotiator: FileSchemaNegotiator) -> DelimitedContext:
        """Return the context that finds the records."""
        self._inner = context_of(self.format, negotiator.limits.max_record_bytes)
        self._inner.known = negotiator.left_behind.get(REACHED)
        return self._inner

    def begin(self, negotiator: FileSchemaNegotiator) -> bool:
        """Declare the columns of the header, which has been read wherever the block begins."""
        if self._context.is_elsewhere:
            return False
        self._text = PieceText(self.format.dialect, self._report)
        parser = self._list_parser(negotiator) if negotiator.is_array else self._row_parser(negotiator)
        if parser is None:
            return False
        self._parser = parser
        self._lines: LineNumbers | LinesSoFar | None = None
        if self._context.unit == "" and self.format.cuts == "any":
            self._lines = LineNumbers(negotiator.stream)
        elif negotiator.split.start == 0:
            self._lines = LinesSoFar(self._inner.lines_before_records)
        self._loader: ResultSetLoader = negotiator.build()
        return True

    def _list_parser(self, negotiator: FileSchemaNegotiator) -> ListParser:
        negotiator.set_table_schema(pa.schema([("columns", pa.list_(pa.string()))]))
        return ListParser(self._text)

    def _row_parser(self, negotiator: FileSchemaNegotiator) -> RowParser | None:
        """Return the parser of rows; None for a file without even a header."""
        if self.format.header:
            names = header_names(self.format, self._inner, negotiator.split.path)
        else:
            names = [] if negotiator.provided_schema is None else list(negotiator.provided_schema.names)
        if names is None:
            return None
        self._inner.piece_bytes = min(max(PIECE_BYTES, len(names) * BYTES_A_COLUMN), 2 * PIECE_BYTES)
        types = {name: negotiator.type_of(name) or pa.string() for name in names}
        negotiator.set_table_schema(pa.schema(list(types.items())))
        self._claiming.columns = sum(map(negotiator.is_projected, names))
        texts = negotiator.parsed.union(name for name, kind in types.items() if not is_direct(kind))
        booleans = {name for name, kind in types.items() if pa.types.is_boolean(kind)}
        if not booleans <= negotiator.inferred:  # the parser has one list of their spellings for all columns
            texts = texts | (booleans & negotiator.inferred)
        return RowParser(
            self._text,
            names,
            {n: pa.string() if n in texts else kind for n, kind in types.items() if negotiator.is_projected(n)},
            self.format.nulls,
            self.format.extra_fields,
            self.format.missing_fields,
            inferred=negotiator.inferred - texts,
            parsed=frozenset(name for name in texts if not is_text(types.get(name, pa.string()))),
            count=negotiator.context.count,
        )

    def next(self) -> bool:
        """Load a piece, see LinesReader. An error about a record that is too long names the column."""
        try:
            return super().next()
        except (QuoteLeftOpen, RowTooLarge) as error:
            names = self._parser.names if isinstance(self._parser, RowParser) else []
            number = self._inner.field_at_limit()
            error.column = names[number] if number is not None and number < len(names) else None
            raise

    def load(self, piece: Piece) -> None:
        """Convert whole records into columns."""
        if self._context.unit == "" and self._inner.reached is not None:
            self._negotiator.left_behind[REACHED] = self._inner.reached
        self._load(piece)
        if len(piece) == 1 and piece.used_bytes > WINDOW:  # what is made of it takes memory enough
            piece.let_go(SHOWN_BYTES)
            pa.default_memory_pool().release_unused()

    def _load(self, piece: Piece) -> None:
        self._piece, self._first = piece, 0
        if self._lines is not None:
            self._lines.come_to(piece)
        if self._inner.opened is not None:
            self._report(piece, BadRecord(0, "a quote is never closed"))
            return
        parser = self._parser
        if self._negotiator.is_projection_empty or (isinstance(parser, RowParser) and not parser.types):
            self._loader.skip_rows(len(self._text.record_numbers(piece)))
            return
        if isinstance(parser, ListParser):
            self._add(piece, parser.rows(piece))
            return
        rows = parser.rows_at_once(piece)
        if rows is not None:
            self._add(piece, rows)
            return
        for first, part in parts_of(piece):
            self._first = first
            self._add(part, parser.odd_rows(part) if part is piece else parser.rows(part))

    def _add(self, part: Piece, rows: ParsedRows) -> None:
        """Load the rows of a part of the piece at hand."""
        if rows.batch.num_rows:
            piece, first, records, positions = self._piece, self._first, rows.records, part.positions
            self._loader.add_batch(
                rows.batch,
                lambda number: self.origin(piece, first + (number if records is None else int(records[number]))),
                int64_array(positions if records is None else positions[records]),
            )

    def origin(self, piece: Piece, row: int) -> RowOrigin:
        """Return the place of record `row` of a piece."""
        position = int(piece.positions[row])
        begin, end = int(piece.offsets[row]), int(piece.offsets[row + 1])
        raw = piece.data[begin : min(end, begin + SHOWN_BYTES)].rstrip(b"\r\n")
        line = None if self._lines is None else self._lines.at(begin)
        text = raw.decode(self.format.dialect.bytes_encoding, "backslashreplace")
        return RowOrigin(position, line, text, memoryview(piece.data)[begin:end] if end <= len(piece.data) else None)

    def _report(self, part: Piece, record: BadRecord) -> None:
        position, line, raw, *_ = self.origin(self._piece, self._first + record.number)
        reason, opened, opened_at = record.reason, self._inner.opened, self._inner.opened_at
        if opened_at is not None:
            where = "" if self._lines is None else f" (line {self._lines.at(opened_at)})"
            reason = f"the quote at byte {opened}{where} is never closed"
        self._negotiator.bad_row(reason, position=position, line=line, column=record.column, raw=raw)


def context_of(format: CsvFormat, max_record_bytes: int) -> DelimitedContext:
    """Return the context that finds the records of files of a format."""
    return DelimitedContext(
        format.dialect, has_header=format.header, skip_lines=format.skip_lines, max_record_bytes=max_record_bytes
    )


def header_names(format: CsvFormat, context: DelimitedContext, path: str) -> list[str] | None:
    """Return the column names of the header; None for an empty file. Raises HeaderBad."""
    beginning, dialect = context.beginning, format.dialect
    record = beginning.header
    if record is None:
        return None
    if b"\0" in record:
        advice = "If the text is UTF-16 without a byte order mark, say so: encoding='utf-16-le' (or 'utf-16-be')."
        raise HeaderBad(path=path, position=beginning.header_at, reason="has NUL bytes", advice=advice)
    try:
        fields = [field.text.decode(dialect.bytes_encoding) for field in FieldSplitter(dialect).split(record)]
        return column_names(fields, clean=format.clean_header)
    except UnicodeDecodeError as error:
        reason = f"has bytes that are not {dialect.encoding} (0x{error.object[error.start]:02x})"
        raise HeaderBad(path=path, position=beginning.header_at, reason=reason, is_not_text=True) from None
    except ValueError as error:
        raise HeaderBad(path=path, position=beginning.header_at, reason=str(error)) from None
