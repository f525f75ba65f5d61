"""JSON lines: one object per line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.json as pj
from numpy.typing import NDArray

from dagflow.scan import FileSchemaNegotiator, Format, RowOrigin
from operators.compression import DecompressingContext
from operators.contexts import Piece, ReadAheadLineReaderContext
from operators.contexts.errors import RecordTooLong
from operators.contexts.piece import int64_array
from operators.formats.text.json_rows import BOM, DANGER, BadLine, JsonRows, has_infinite, is_dangerous, is_deep, type_of_rows
from operators.formats.text.lines import PIECE_BYTES, LinesReader, parts_of

if TYPE_CHECKING:
    from dagflow.storage import BinaryReader

SAMPLE_BYTES = 1 << 20
Parser: TypeAlias = "Callable[[Piece, int], pa.RecordBatch | None]"
"""Parses a piece with a number of lines, or returns None if it cannot."""
_EXPONENT = re.compile(rb"[:\[,]\s*\"?-?[0-9][0-9.]*[eE]\+?[0-9]+\"?\s*[,}\]]")
"""Numbers with an exponent that is not negative, also as text: they may be longer than they look."""
DIGITS = 76
"""The most digits of a decimal of Arrow."""
_NOT_JSON = re.compile(rb"[:\[,]\s*-?(?:Inf(?!inity)|(?<=-)NaN)")
"""Words that pyarrow parses as numbers, and Python does not."""


@attrs.define
class JsonLinesFormat(Format):
    r"""JSON lines: each line is an object, and its members are columns. Nested objects are structs, arrays are lists.

    Files can be cut at any byte, and may be compressed. Special cases:

    =====================================  =========================================================================
    a missing member, or null              null
    fractions among the numbers            the column is float64, if the sample has a fraction
    integers that float64 would change     the column (or list, or field of a struct) is text, if the sample has one: beyond
                                           int64, or beyond 2**53 beside fractions. In a column that is float64, each number
                                           is the nearest one; only `Infinity` is infinite
    values of several types in a column    the column is text: strings as they are, other values as JSON
    only nulls in a column                 text (see ScanReader, `null_type`)
    text that looks like a time            text; for times, give the column a type (`schema`)
    a value of another type                see `drift.changed`; "3" and 3.0 are the integer 3
    a member that no sample had            see `drift.extra`, its values are text; within structs see `drift.changed`
    a key twice in an object               a bad row, if the column is read
    an integer of 4,300 digits or more     a bad row, if the column is read
    a blank line                           skipped
    a line that is not a JSON object       a bad row; so are invalid UTF-8 and more than 100 levels of nesting
    a scan without columns (`[]`)          lines are counted by their ends, `{` and `}`, and not parsed
    =====================================  =========================================================================

    >>> import pathlib, tempfile
    >>> from dagflow.testing import scan_table
    >>> from operators import JsonLinesFormat, ScanReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.jsonl")
    ...     _ = path.write_text('{"n": 1, "l": [1, 2]}\n\n{"n": 2.5}\n')
    ...     scan_table(ScanReader(JsonLinesFormat()), path, block_size=5).to_pylist()
    [{'n': 1.0, 'l': [1, 2]}, {'n': 2.5, 'l': None}]
    """

    cuts: ClassVar[Literal["any", "none"]] = "any"
    suffixes: ClassVar[tuple[str, ...]] = ("jsonl", "ndjson", "json")

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Return True for a line end."""
        return end == "\n" and quote is None

    def make_reader(self) -> JsonLinesReader:
        """Return a reader for one block."""
        return JsonLinesReader()

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
        """Return the columns of the first MiB of a file. Lines that cannot be parsed are left out."""
        lines = _first_lines(stream, path, length)
        return type_of_rows(lines) if lines.strip() else None


def _first_lines(stream: BinaryReader, path: str, length: int) -> bytes:
    """Return the first lines of a file, which may be compressed."""
    from dagflow import FileBlockMetadata

    context = DecompressingContext(ReadAheadLineReaderContext())
    parts, size = [], 0
    try:
        context.initialize(stream, FileBlockMetadata(0, path, 0, min(length, SAMPLE_BYTES), length), False)
        while size < SAMPLE_BYTES and (piece := context.next_piece()) is not None:
            parts.append(piece.data[piece.begin : piece.end])
            size += piece.used_bytes
    except RecordTooLong:
        pass  # its reader says so
    finally:
        context.close()
    return b"".join(parts)


@attrs.define(eq=False)
class JsonLinesReader(LinesReader):
    """Reads the lines of a block: with pyarrow's parser where it can, else line by line, with the same result."""

    piece_bytes: ClassVar[int] = PIECE_BYTES

    _loader: Any = attrs.field(init=False, default=None)
    _rows: Any = attrs.field(init=False, default=None)
    _parsers: Any = attrs.field(init=False, default=())

    def begin(self, negotiator: FileSchemaNegotiator) -> None:
        """Leave the schema open: it is known late, when lines have been read."""
        self._loader = negotiator.build()
        types = {f.name: f.type for f in negotiator.provided_schema or () if negotiator.is_projected(f.name)}
        self._rows = JsonRows(types, negotiator.columns)
        parsers = (make(types, is_open=negotiator.columns is None) for make in (compiled_parser, fast_parser))
        self._parsers = [parser for parser in parsers if parser is not None]

    def load(self, piece: Piece) -> None:
        """Load a piece."""
        if not self._load_at_once(piece, piece, 0):
            for start, part in parts_of(piece):
                if part is piece or not self._load_at_once(part, piece, start):
                    self._load_slowly(part, piece, start)

    def _load_at_once(self, part: Piece, piece: Piece, start: int) -> bool:
        """Load a part of a piece that begins with line `start` of it, unless its lines have to be read one by one."""
        lines = filled(part)
        if lines is None:
            return False
        if self._negotiator.is_projection_empty:  # the ends of lines are all that is looked at
            self._loader.skip_rows(len(lines), int64_array(part.positions[lines]))
            return True
        batches = (parse(part, len(lines)) for parse in self._parsers)
        batch = next((batch for batch in batches if batch is not None), None)
        if batch is None:
            return False
        self._loader.add_batch(batch, self._origin_of(piece, lines + start), int64_array(part.positions[lines]))
        return True

    def _origin_of(self, piece: Piece, lines: NDArray[np.int64]) -> Callable[[int], RowOrigin]:
        return lambda row: self.origin(piece, int(lines[row]))

    def _load_slowly(self, part: Piece, piece: Piece, start: int) -> None:
        """Line by line: lines that cannot be read are reported and left out."""
        rows, kept = [], []
        positions = part.positions
        for number, data in enumerate(part.bytes_list()):
            line = data.removeprefix(BOM) if positions[number] == 0 else data
            if not line.strip():
                continue
            try:
                rows.append(self._rows.row(line))
                kept.append(number)
            except BadLine as bad:
                where = self.origin(piece, start + number)
                self._negotiator.bad_row(str(bad), position=where.position, line=where.line, column=bad.column, raw=where.raw)
        if rows:
            lines = np.array(kept, np.int64)
            self._loader.add_batch(self._rows.batch(rows), self._origin_of(piece, lines + start), int64_array(positions[lines]))


def filled(piece: Piece) -> NDArray[np.int64] | None:
    """Return the numbers of the lines that are not blank; None if one of them does not begin with `{` and end with `}`."""
    offsets = piece.offsets
    octets = np.frombuffer(piece.data, np.uint8)
    first, last = offsets[:-1], offsets[1:] - (2 if piece.is_terminated else 1)  # before the newline
    last = np.where((last > first) & (octets[np.maximum(last, 0)] == ord("\r")), last - 1, last)
    is_blank = (last < first) | ((last == first) & (octets[first] == ord("\r")))
    is_object = (octets[first] == ord("{")) & (octets[np.maximum(last, 0)] == ord("}"))
    if not (is_object | is_blank).all():
        return None
    return np.flatnonzero(~is_blank)


def compiled_parser(types: dict[str, pa.DataType], is_open: bool) -> Parser | None:
    """Return the parser of `dagflow-native`, if it is installed and knows the types; it returns None as `fast_parser` does."""
    from operators.formats.native import json_parser

    parse_lines = json_parser({name: parsed_as(kind) for name, kind in types.items()}, skips_others=not is_open)
    if parse_lines is None:
        return None

    def parse(piece: Piece, rows: int) -> pa.RecordBatch | None:
        if not rows or not piece.is_terminated:
            return None
        batch = parse_lines(memoryview(piece.data)[piece.begin : piece.end])
        return batch if batch is not None and batch.num_rows == rows else None

    return parse


def fast_parser(types: dict[str, pa.DataType], is_open: bool) -> Parser | None:
    """Return a parser of pieces, which returns None for lines to be parsed one by one; None if all lines are.

    What it accepts it reads as the slow way does. Each line begins with `{` and ends with `}`: since no valid JSON has `}` and
    then `{` but between two objects, and there are as many rows as lines, each line is one object.
    """
    if any(_has(kind, pa.types.is_map) for kind in types.values()):
        return None
    explicit = pa.schema([pa.field(name, parsed_as(kind)) for name, kind in types.items()])
    scale = max((scale for kind in types.values() for scale in _scales(kind)), default=None)
    # unknown members of structs may not get lost, which "ignore" would let happen
    is_ignoring = not is_open and not any(_has(kind, pa.types.is_struct) for kind in types.values())
    behaviour: Literal["ignore", "infer"] = "ignore" if is_ignoring else "infer"
    options = pj.ParseOptions(explicit_schema=explicit, unexpected_field_behavior=behaviour)

    def parse(piece: Piece, rows: int) -> pa.RecordBatch | None:
        size = piece.end - piece.begin
        if not rows or not _is_plain(piece) or _is_dangerous(piece):
            return None
        if scale is not None and _may_have_more_digits(piece, DIGITS - scale):
            return None
        view = memoryview(piece.data)[piece.begin : piece.end]
        reading = pj.ReadOptions(use_threads=False, block_size=size + 1)
        try:
            table = pj.read_json(pa.BufferReader(pa.py_buffer(view)), reading, options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if is_deep(table.schema.types) or any(map(has_infinite, table.columns)):
            return None  # a number that is too large, if it is not the word
        if table.num_rows != rows or (is_open and len(table.schema) > len(types)):
            return None  # unknown columns are text, whatever stands beside them in a piece
        if any(not table.schema.field(f.name).type.equals(f.type) for f in explicit):
            return None  # unknown members of structs
        batches = table.to_batches()
        return batches[0] if len(batches) == 1 else None

    return parse


def _is_plain(piece: Piece) -> bool:
    """Return True if bytes are UTF-8, and none of the numbers is one that only pyarrow reads."""
    import codecs

    data, begin, end = piece.data, piece.begin, piece.end
    try:
        codecs.utf_8_decode(memoryview(data)[begin:end], "strict", True)
    except UnicodeDecodeError:
        return False
    is_suspect = _has_word(piece, b"Inf") or _has_word(piece, b"NaN")  # a search for the pattern is slow
    return not is_suspect or _NOT_JSON.search(data, begin, end) is None


def _may_have_more_digits(piece: Piece, most: int) -> bool:
    """Return True if a number may have more digits before its point: with the scale of a decimal, they could go beyond its bits.

    Arrow makes other numbers of these.
    """
    octets = np.frombuffer(piece.data, np.uint8, piece.end - piece.begin, piece.begin)
    is_digit = (octets - np.uint8(ord("0"))) < 10
    others = np.flatnonzero(~is_digit)  # the ends of lines are among them
    if (np.diff(others) > most + 1).any():
        return True
    marks = np.flatnonzero((octets[1:] | 32) == ord("e")) + 1
    return bool(is_digit[marks - 1].any()) and _EXPONENT.search(piece.data, piece.begin, piece.end) is not None


def _is_dangerous(piece: Piece) -> bool:
    long = np.flatnonzero(np.diff(piece.offsets) > DANGER).tolist()
    return any(is_dangerous(piece.data, int(piece.offsets[n]), int(piece.offsets[n + 1])) for n in long)


def _has_word(piece: Piece, word: bytes) -> bool:
    """Return True if a word of three bytes occurs: `bytes.find` takes five times as long."""
    octets = np.frombuffer(piece.data, np.uint8, piece.end - piece.begin, piece.begin)
    at = np.flatnonzero(octets[:-2] == word[0])
    return bool(at.size and ((octets[at + 1] == word[1]) & (octets[at + 2] == word[2])).any())


def _has(kind: pa.DataType, test: Callable[[pa.DataType], bool]) -> bool:
    return test(kind) or any(_has(kind.field(n).type, test) for n in range(kind.num_fields))


def _scales(kind: pa.DataType) -> Iterator[int]:
    """Yield the scales of the decimals in a type."""
    if pa.types.is_decimal(kind):
        yield kind.scale
    for n in range(kind.num_fields):
        yield from _scales(kind.field(n).type)


def parsed_as(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column is parsed as, before the framework converts it: text for types that JSON does not have.

    Decimals are parsed with all digits that Arrow has: it does not check that they fit.
    """
    types = pa.types
    if types.is_decimal(kind):
        return pa.decimal256(DIGITS, kind.scale)
    if types.is_struct(kind):
        return pa.struct([pa.field(f.name, parsed_as(f.type)) for f in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        return pa.list_(parsed_as(kind.value_type))
    if types.is_float16(kind):
        return pa.float64()
    is_own = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    return kind if is_own else pa.string()
