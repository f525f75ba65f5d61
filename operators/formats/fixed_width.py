"""Records of equal length, with each column at a fixed offset."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dagflow.config import one_of
from dagflow.scan import FileSchemaNegotiator, Format, NumberText, ResultSetLoader, not_text, to_type
from operators.contexts import FixedRecordsReaderContext, Piece
from operators.contexts.entity import PieceReaderContext
from operators.contexts.text import text_codec
from operators.formats.options import a_text, an_integer_or_none, types_by_name
from operators.formats.text.lines import LinesReader
from operators.problems import all_problems

if TYPE_CHECKING:
    from dagflow.storage import BinaryReader

CRLF = "\r\n"
ENDS = ("", "\n", CRLF)
BLANK = " \0"
_UTF8 = {codecs.BOM_UTF8: "utf-8"}
MARKS: Mapping[str, Mapping[bytes, str]] = {
    "utf-8": _UTF8,
    "utf-8-sig": _UTF8,
    "utf-16": {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"},
    "utf-16-le": {codecs.BOM_UTF16_LE: "utf-16-le"},
    "utf-16-be": {codecs.BOM_UTF16_BE: "utf-16-be"},
    "utf-32": {codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be"},
    "utf-32-le": {codecs.BOM_UTF32_LE: "utf-32-le"},
    "utf-32-be": {codecs.BOM_UTF32_BE: "utf-32-be"},
}
"""The byte order marks that files of an encoding may begin with."""


def places(given: Any) -> dict[str, tuple[int, int]]:
    """Return the places of columns, `(offset, width)` each. Raises TypeError."""
    message = f"columns is {given!r}, but must be a mapping of names to (offset, width)"
    if not isinstance(given, Mapping):
        raise TypeError(message)
    for name, place in given.items():
        if not isinstance(name, str) or not isinstance(place, list | tuple) or len(place) != 2:
            raise TypeError(message)
    return {name: (int(place[0]), int(place[1])) for name, place in given.items()}


@attrs.define
class FixedWidthFormat(Format):
    r"""Records of equal length in bytes, with columns at fixed offsets. Files can be cut at any byte.

    The value of a column is its bytes as text, without blanks (spaces, NUL) around it. Blanks only are null. A record is a bad
    row if its text cannot be decoded, if it lacks its line end, or if the file ends within it. Records are found by counting
    bytes, so after a line that is too short or too long, all that follow are bad rows. A byte order mark is skipped.

    Args:
        columns: `(offset, width)` of each column by name, in bytes; offsets are counted from the record's start.
        types: the types of columns that are not strings, by name: `{"amount": "decimal128(9, 2)"}`.
        line_end: the end of each record: "\n", "\r\n", or "" for none. The last record of a file may lack it.
        record_length: the bytes of a record with its line end; None: the record ends with its last column and the line end.
        encoding: the encoding of the text.

    Raises ValueError for places that do not fit.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import scan_table
    >>> from operators import FixedWidthFormat, ScanReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.txt")
    ...     _ = path.write_text("Lund   94703\nÅhus   10500\n", encoding="latin-1")
    ...     format = FixedWidthFormat({"town": (0, 7), "people": (7, 5)}, types={"people": "int64"}, encoding="latin-1")
    ...     scan_table(ScanReader(format), path).to_pylist()
    [{'town': 'Lund', 'people': 94703}, {'town': 'Åhus', 'people': 10500}]
    """

    cuts: ClassVar[Literal["any", "none"]] = "any"
    has_encoding: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = ("txt", "dat")

    columns: Mapping[str, tuple[int, int]] = attrs.field(converter=places)
    types: Mapping[str, str] = attrs.field(factory=dict, kw_only=True, validator=types_by_name)
    line_end: str = attrs.field(default="\n", kw_only=True, validator=one_of(ENDS))
    record_length: int | None = attrs.field(default=None, kw_only=True, validator=an_integer_or_none)
    encoding: str = attrs.field(default="utf-8", kw_only=True, validator=a_text)

    def __attrs_post_init__(self) -> None:
        """Raise ValueError with all problems."""
        with all_problems() as problems:
            if not self.columns:
                problems.append("columns is empty: give names, offsets and widths")
            for name, (offset, width) in self.columns.items():
                if offset < 0 or width < 1:
                    problems.append(f"column {name!r} is at {offset}, {width} bytes wide: offsets begin at 0, widths at 1")
                elif offset + width > (most := self.length - len(self.line_end)):
                    problems.append(f"column {name!r} ends at byte {offset + width}, but records have {most} bytes")
            problems += [
                f"a type is given for {name!r}, which is not a column" for name in self.types if name not in self.columns
            ]
            try:
                text_codec(self.encoding, by_lines=False)
            except ValueError as error:
                problems.append(str(error))

    @property
    def marks(self) -> Mapping[bytes, str]:
        """The byte order marks that files may begin with, and the encoding that each says."""
        return MARKS.get(codecs.lookup(self.encoding).name, {})

    @property
    def length(self) -> int:
        """Bytes of a record, its line end included."""
        if self.record_length is not None:
            return self.record_length
        return max((offset + width for offset, width in self.columns.values()), default=0) + len(self.line_end)

    @property
    def numbers(self) -> NumberText:
        """The spelling of numbers. `types` declares the columns that are numbers."""
        return NumberText()

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.schema([(name, to_type(self.types.get(name, "string"))) for name in self.columns])

    def make_reader(self) -> FixedWidthReader:
        """Return a reader for one block."""
        return FixedWidthReader()

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema:
        """Return the columns. The file is not read."""
        return self.schema


@attrs.define(eq=False)
class FixedWidthReader(LinesReader):
    """Reads the records that start in a range."""

    _loader: ResultSetLoader = attrs.field(init=False)
    _format: FixedWidthFormat = attrs.field(init=False)
    _records: FixedRecordsReaderContext = attrs.field(init=False)

    def make_context(self, negotiator: FileSchemaNegotiator) -> PieceReaderContext:
        """Return a context that finds records instead of lines."""
        assert isinstance(negotiator.options, FixedWidthFormat)
        self._format = negotiator.options
        self.counts_lines = bool(self._format.line_end)
        self._records = FixedRecordsReaderContext(self._format.length, partial="emit", marks=tuple(self._format.marks))
        return self._records

    def begin(self, negotiator: FileSchemaNegotiator) -> None:
        """Declare the schema: it is known early."""
        negotiator.set_table_schema(self._format.schema, complete=True)
        self._loader = negotiator.build()

    def load(self, piece: Piece) -> None:
        """Cut the columns out of a piece, all rows at once."""
        length, end = self._format.length, self._format.line_end.encode()
        data = piece.data[piece.begin : piece.end]
        rest = len(data) % length
        if rest and length - rest <= len(end):  # the last line end of a file may be missing
            data += end[len(end) + rest - length :]
            rest = 0
        rows = np.frombuffer(data, np.uint8)[: len(data) // length * length].reshape(-1, length)
        is_good = np.ones(len(rows), bool)
        if end:
            is_good = (rows[:, -len(end) :] == np.frombuffer(end, np.uint8)).all(axis=1)
            for row in np.flatnonzero(~is_good).tolist():
                self._bad(piece, row, self._wrong_end(bytes(rows[row])))
        if rest:  # told last: of a wrong line end, all that is behind it is out of step
            self._bad(piece, len(piece) - 1, f"the record is cut short: it has {rest} bytes, not {length}")
        columns = {}
        for name, (offset, width) in self._format.columns.items():
            if self._negotiator.is_projected(name):
                columns[name] = self._column(np.ascontiguousarray(rows[:, offset : offset + width]), name, piece, is_good)
        numbers = np.flatnonzero(is_good)
        positions = pa.array(piece.positions[numbers])
        if not columns:
            columns[next(iter(self._format.columns))] = pa.nulls(len(rows))  # only the rows count
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        batch = batch if len(numbers) == len(rows) else batch.filter(pa.array(is_good))
        self._loader.add_batch(batch, lambda row: self.origin(piece, int(numbers[row])), positions)

    def _column(self, values: Any, name: str, piece: Piece, is_good: Any) -> Any:
        """Return the texts of a column, of which `values` are the bytes, and mark rows without one as bad."""
        rows, width = values.shape
        data, encoding = values.tobytes(), self._encoding
        codec = text_codec(encoding, by_lines=False)
        texts: Any = None
        if codec != "other" and data.isascii():
            texts = pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(data)]).cast(pa.string())
        elif codec == "single":
            try:
                whole = data.decode(encoding)
                texts = pa.array([whole[at : at + width] for at in range(0, len(whole), width)], pa.string())
            except UnicodeDecodeError:
                pass
        if texts is None:
            texts = pa.array(
                [self._text(data[n * width : (n + 1) * width], n, name, piece, is_good) for n in range(rows)], pa.string()
            )
        trimmed = pc.utf8_trim(texts, BLANK)
        return pc.if_else(pc.equal(trimmed, ""), None, trimmed)

    @property
    def _encoding(self) -> str:
        """The encoding of the file at hand: of UTF-16 and UTF-32, a mark says the order of bytes."""
        return self._format.marks.get(self._records.mark, self._format.encoding)

    def _text(self, value: bytes, row: int, name: str, piece: Piece, is_good: Any) -> str | None:
        try:
            return value.decode(self._encoding)
        except UnicodeDecodeError as error:
            if is_good[row]:
                at = self._format.columns[name][0] + error.start
                reason = not_text(f"byte {at} of the record", value[error.start : error.end], self._format.encoding)
                is_good[row] = False
                self._bad(piece, row, reason, name)
            return None

    def _wrong_end(self, record: bytes) -> str:
        """Explain why a record does not end as it should."""
        end = self._format.line_end.encode()
        reason = f"{end!r} should end the record, and {record[-len(end) :]!r} stands there"
        if end == b"\n" and record.endswith(b"\r"):
            return f"{reason}: do lines end with {CRLF!r}? Then say line_end={CRLF!r}"
        at = record.find(b"\n")
        if at >= 0:
            return f"{reason}: a line ends after {at + 1} of {len(record)} bytes, and what follows is out of step"
        return reason

    def _bad(self, piece: Piece, row: int, reason: str, column: str | None = None) -> None:
        where = self.origin(piece, row)
        self._negotiator.bad_row(reason, position=where.position, line=where.line, column=column, raw=where.raw)
