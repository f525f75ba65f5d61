"""Lines of text, parsed by a regular expression."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dagflow.scan import FileSchemaNegotiator, Format, NumberText, ResultSetLoader, RowOrigin, format_problem, not_text, to_type
from operators.contexts import Piece
from operators.contexts.errors import BadText
from operators.contexts.piece import without_mark
from operators.contexts.text import decode_text, text_codec
from operators.formats.options import a_text, texts, texts_by_name, types_by_name
from operators.formats.text.lines import LinesReader
from operators.formats.text.log_patterns import LOG_PATTERNS, LogPattern
from operators.formats.text.times import time_type, times_of

if TYPE_CHECKING:
    from dagflow.storage import BinaryReader


def _is_pattern(_: object, __: object, value: str) -> None:
    if value in LOG_PATTERNS:
        return
    try:
        groups = re.compile(value, re.ASCII).groupindex
    except re.error as error:
        raise ValueError(f"pattern {value!r} is not a regular expression: {error}") from None
    if not groups:
        ready = ", ".join(LOG_PATTERNS)
        raise ValueError(f"pattern {value!r} has no named groups, (?P<name>…), which would be columns; ready-made are {ready}")


def _are_formats(_: object, __: object, value: Mapping[str, str]) -> None:
    for name, written in value.items():
        if (problem := format_problem(written, time_type(written))) is not None:
            raise ValueError(f"times, column {name!r}: {problem} (it is {written!r})")


def _is_encoding(_: object, __: object, value: str) -> None:
    text_codec(value)


def to_null(value: Any) -> tuple[str, ...]:
    """Return the strings for null as a tuple."""
    return texts("null", value)


@attrs.define
class RegexFormat(Format):
    r"""Lines of text, one row each. The named groups of a regular expression are the columns.

    The whole line must match. A line that does not match, or cannot be decoded, is a bad row. A group that took no part or
    matched nothing is null. Files can be cut at any byte, and may be compressed.

    Args:
        pattern: the expression with groups `(?P<name>…)`, or the name of a ready-made one: `common` and `combined` (access logs
            of Apache and nginx), `syslog` (RFC 3164), `syslog5424`; see `log_patterns.py` for their columns. Classes such as `\w`
            and `\d` match ASCII only. Arrow's RE2 matches a thousand lines at a time. Patterns that it does not support
            (lookaround, backreferences, unnamed groups) are matched by Python, which is slower.
        types: the types of columns that are not strings, by name: `{"status": "int16"}`.
        times: the formats of columns that are times, by name, as `Column(format=…)` takes them. Times in ISO 8601 need only a
            type.
        null: strings that mean null; the ready-made access logs also use `-`.
        encoding: the encoding of the text.

    Raises ValueError for a pattern that is not a regular expression, or has no named groups.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import scan_table
    >>> from operators import RegexFormat, ScanReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "app.log")
    ...     _ = path.write_text("WARN  disk 91\nINFO  cpu 7\n")
    ...     format = RegexFormat(r"(?P<level>\w+) +(?P<name>\w+) (?P<value>\d+)", types={"value": "int64"})
    ...     scan_table(ScanReader(format), path).to_pylist()
    [{'level': 'WARN', 'name': 'disk', 'value': 91}, {'level': 'INFO', 'name': 'cpu', 'value': 7}]
    """

    cuts: ClassVar[Literal["any", "none"]] = "any"
    has_encoding: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = ("log",)

    pattern: str = attrs.field(validator=[a_text, _is_pattern])
    types: Mapping[str, str] = attrs.field(factory=dict, kw_only=True, validator=types_by_name)
    times: Mapping[str, str] = attrs.field(factory=dict, kw_only=True, validator=[texts_by_name, _are_formats])
    null: Sequence[str] = attrs.field(default=("",), kw_only=True, converter=to_null)
    encoding: str = attrs.field(default="utf-8", kw_only=True, validator=[a_text, _is_encoding])

    @property
    def whole(self) -> LogPattern:
        """The pattern with its types, times and nulls, those of a ready-made one included."""
        ready = LOG_PATTERNS.get(self.pattern, LogPattern(self.pattern))
        null = self.null if self.null != ("",) else ready.null
        return LogPattern(ready.pattern, {**ready.types, **self.types}, {**ready.times, **self.times}, (*null,))

    @property
    def numbers(self) -> NumberText:
        """The spelling of numbers. `types` declares the columns that are numbers."""
        return NumberText()

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(re.compile(self.whole.pattern, re.ASCII).groupindex)

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Return True for a line end."""
        return end == "\n" and quote is None

    def make_reader(self) -> RegexReader:
        """Return a reader for one block."""
        return RegexReader()

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema:
        """Return the groups. The file is not read."""
        return self.schema

    @property
    def schema(self) -> pa.Schema:
        """The groups, with their types. Raises ValueError for types of columns that are not there."""
        whole, names = self.whole, self.names
        for name in (*whole.types, *whole.times):
            if name not in names:
                raise ValueError(f"a type is given for {name!r}, but the pattern's groups are {', '.join(names)}")
        kinds = {name: to_type(text) for name, text in whole.types.items()}
        kinds |= {name: time_type(written) for name, written in whole.times.items()}
        return pa.schema([(name, kinds.get(name, pa.string())) for name in names])


@attrs.define(eq=False)
class RegexReader(LinesReader):
    """Matches the lines of a block."""

    _loader: ResultSetLoader = attrs.field(init=False)
    _format: RegexFormat = attrs.field(init=False)
    _log: LogPattern = attrs.field(init=False)

    def begin(self, negotiator: FileSchemaNegotiator) -> None:
        """Declare the schema: it is known early."""
        assert isinstance(negotiator.options, RegexFormat)
        self._format = negotiator.options
        self._log = self._format.whole
        negotiator.set_table_schema(self._format.schema, complete=True)
        self._loader = negotiator.build()

    def load(self, piece: Piece) -> None:
        """Match the lines of a piece, and load the groups of those that match."""
        texts, numbers = without_mark(piece, self._texts(piece)), np.arange(len(piece))
        if texts.null_count:
            numbers = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
            texts = texts.drop_null()
        matched = matches(texts, self._log.pattern)
        if matched.null_count:
            is_match = matched.is_valid().to_numpy(zero_copy_only=False)
            for row in numbers[~is_match].tolist():
                self._bad(piece, row, "the line does not match the pattern")
            numbers, matched = numbers[is_match], matched.drop_null()
        columns, names = matched.flatten(), [field.name for field in matched.type]
        is_good = np.ones(len(numbers), bool)
        for number, name in enumerate(names):
            nothing = pc.is_in(columns[number], value_set=pa.array(self._log.null, pa.string()))
            columns[number] = pc.if_else(nothing, None, columns[number])
            if name in self._log.times and self._negotiator.is_projected(name):
                columns[number], bad = self._times(columns[number], self._log.times[name], name, piece, numbers)
                is_good &= ~bad
        batch = pa.RecordBatch.from_arrays(columns, names=names)
        if not is_good.all():
            batch, numbers = batch.filter(pa.array(is_good)), numbers[is_good]
        positions = piece.positions[numbers]
        self._loader.add_batch(batch, lambda row: self.origin(piece, int(numbers[row])), pa.array(positions))

    def _texts(self, piece: Piece) -> Any:
        """Return the lines as text; null for those that cannot be decoded, which are bad rows."""
        encoding = self._format.encoding
        try:
            return piece.string_array(encoding)
        except BadText:
            texts: list[str | None] = []
            for row, (line, position) in enumerate(zip(piece.bytes_list(), piece.positions.tolist(), strict=True)):
                try:
                    texts.append(decode_text(line, encoding, "strict", path=piece.path, position=position))
                except BadText as error:
                    texts.append(None)
                    at = error.byte_offset - error.position
                    self._bad(piece, row, not_text(f"byte {at} of the line", error.found, encoding))
            return pa.array(texts, pa.string())

    def _times(self, texts: Any, written: str, name: str, piece: Piece, numbers: Any) -> tuple[Any, Any]:
        times, wrong = times_of(texts, written)
        bad = np.zeros(len(texts), bool) if wrong is None else wrong.to_numpy(zero_copy_only=False)
        for row in bad.nonzero()[0].tolist():
            self._bad(piece, int(numbers[row]), f"{texts[row].as_py()!r} is not a time as {written!r} has it", name)
        return times, bad

    def _bad(self, piece: Piece, row: int, reason: str, column: str | None = None) -> None:
        where: RowOrigin = self.origin(piece, row)
        self._negotiator.bad_row(reason, position=where.position, line=where.line, column=column, raw=where.raw)


def matches(texts: Any, pattern: str) -> Any:
    r"""The named groups of texts that match as a whole: structs, null where a text does not; "" for a group that took no part.

    >>> import pyarrow as pa
    >>> matches(pa.array(["a1", "b", "c33"]), r"(?P<letter>.)(?P<number>\d+)?").to_pylist()
    [{'letter': 'a', 'number': '1'}, {'letter': 'b', 'number': ''}, {'letter': 'c', 'number': '33'}]
    """
    return pc.extract_regex(texts, rf"\A(?:{pattern})\z") if is_known_to_arrow(pattern) else matches_by_python(texts, pattern)


@functools.lru_cache(maxsize=64)
def is_known_to_arrow(pattern: str) -> bool:
    """Return True if Arrow can match a pattern, and finds the same groups in it as Python."""
    try:
        groups = pc.extract_regex(pa.array([], pa.string()), rf"\A(?:{pattern})\z")
    except pa.ArrowInvalid:
        return False
    return [field.name for field in groups.type] == list(re.compile(pattern, re.ASCII).groupindex)


def matches_by_python(texts: Any, pattern: str) -> Any:
    """Match as `matches` does, with Python."""
    compiled = re.compile(pattern, re.ASCII)
    matched = [compiled.fullmatch(text) for text in texts.to_pylist()]
    groups = [None if match is None else match.groupdict("") for match in matched]
    return pa.array(groups, pa.struct([(name, pa.string()) for name in compiled.groupindex]))
