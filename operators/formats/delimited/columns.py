"""Columns from the text of whole rows, by pyarrow's CSV parser, which is faster here than Polars and DuckDB."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from functools import cached_property

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from dagflow.scan import has_negative, is_overflown
from operators.formats.native import column_cutter

TRUE_VALUES = ["1", "true", "True", "TRUE", "t", "T", "yes", "Yes", "YES", "y", "Y", "on", "On", "ON"]
FALSE_VALUES = ["0", "false", "False", "FALSE", "f", "F", "no", "No", "NO", "n", "N", "off", "Off", "OFF"]
INFERRED_TRUE, INFERRED_FALSE = TRUE_VALUES[1:4], FALSE_VALUES[1:4]
"""The booleans of columns whose type was inferred."""
_BLANK = " \t"
_WHERE = re.compile(r"In CSV column #(\d+): ")


def is_direct(kind: pa.DataType) -> bool:
    """Return True if the parser makes columns of a type; others are made of text.

    Decimals are made of text, too: the parser does not check that their digits fit.

    >>> is_direct(pa.date32()), is_direct(pa.list_(pa.int64()))
    (True, False)
    """
    tests = (
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_date,
        pa.types.is_time,
        pa.types.is_timestamp,
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
    )
    return any(test(kind) for test in tests) or kind in (pa.float32(), pa.float64())


def is_text(kind: pa.DataType) -> bool:
    """Return True if its values are text as it stands: a quoted "" is a text without characters, and no null."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind))


@attrs.frozen(slots=False)
class ColumnParser:
    """Parses rows of UTF-8 text that all have a field for each of `names`.

    - `types`: of the needed columns, by name, in the order of the result.
    - `delimiter`, `quote`, `escape`: one byte each; `quote` and `escape` may be empty.
    - `nulls`: strings that mean null. In columns of strings, a quoted one is a string; in all others it is null.
    - `has_inferred_booleans`: only `true` and `false` are booleans.
    """

    names: Sequence[str]
    types: dict[str, pa.DataType]
    delimiter: str = ","
    quote: str = '"'
    escape: str = ""
    nulls: Sequence[str] = ("",)
    has_inferred_booleans: bool = False

    def parse(self, text: pa.Buffer, *, has_blank_rows: bool = False) -> pa.RecordBatch:
        """Return the columns of some rows. `has_blank_rows`: a blank line is a row of one null.

        Raises pa.ArrowInvalid for rows of too many or too few fields and for values that do not fit.

        >>> parser = ColumnParser(["a", "b", "c"], {"c": pa.string(), "a": pa.int64()})
        >>> parser.parse(pa.py_buffer(b'1,x,""' + bytes([10]) + b'"",y,')).to_pylist()
        [{'c': '', 'a': 1}, {'c': None, 'a': None}]
        """
        batch = self._cut_and_parse(text)
        if batch is not None:
            return batch
        try:
            return self._read(text, self._plain, has_blank_rows)
        except pa.ArrowInvalid:
            if not self._has_both or self.quote == "" or bytes(text).find(self._quoted_null) < 0:
                raise
        parts = [self._read(text, options, has_blank_rows) for options in self._apart]
        columns = {name: part.column(name) for part in parts for name in part.schema.names}
        return pa.RecordBatch.from_arrays([columns[name] for name in self.types], names=list(self.types))

    def _cut_and_parse(self, text: pa.Buffer) -> pa.RecordBatch | None:
        """Parse only the wanted columns, cut out before; None where that cannot be done or something is wrong with a row."""
        cut = None if self._cut is None else self._cut(text)
        if cut is None:
            return None
        rows, kept = cut
        try:
            batch = self._narrow.parse(kept, has_blank_rows=len(self.types) == 1)  # an empty field alone is a blank line
        except pa.ArrowInvalid:
            return None  # names the wrong column
        return batch if batch.num_rows == rows else None

    def odd_rows(self, text: pa.Buffer) -> dict[int, int]:
        """Return which rows have too many or too few fields, and their number of fields. Blank lines count as rows.

        >>> ColumnParser(["a", "b"], {"a": pa.string()}).odd_rows(pa.py_buffer(b"1,2,3 4,5 6".replace(b" ", bytes([10]))))
        {0: 3, 2: 1}
        """
        odd: dict[int, int] = {}

        def note(row: arrow_csv.InvalidRow) -> str:
            odd[row.number - 1] = row.actual_columns
            return "skip"

        name = self.names[0]
        convert = arrow_csv.ConvertOptions(include_columns=[name], column_types={name: pa.binary()})
        text = pa.py_buffer(text.to_pybytes().translate(self._as_ascii))  # pyarrow cannot tell of a row that is not UTF-8
        arrow_csv.read_csv(pa.BufferReader(text), self._read_options(text), self._options(note, has_blank_rows=True), convert)
        return odd

    def first_bad_column(self, error: pa.ArrowInvalid) -> str | None:
        """Return the name of the column in the parser's error; None if it names none."""
        match = _WHERE.search(str(error))
        return None if match is None else self.names[int(match.group(1))]

    def _read(self, text: pa.Buffer, convert: arrow_csv.ConvertOptions, has_blank_rows: bool) -> pa.RecordBatch:
        options = self._with_blanks if has_blank_rows else self._parse
        if text.slice(0, min(len(BOM_UTF8), text.size)).to_pybytes() == BOM_UTF8:  # here it is text, but pyarrow skips one
            text = pa.py_buffer(BOM_UTF8 + text.to_pybytes())
        batch = _one_batch(arrow_csv.read_csv(pa.BufferReader(text), self._read_options(text), options, convert))
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if _may_be_overflown(column, text):
                self._refuse_overflow(text, options, name, column)
        return batch

    def _refuse_overflow(self, text: pa.Buffer, options: arrow_csv.ParseOptions, name: str, column: pa.Array) -> None:
        """Raise ArrowInvalid, as the parser does, where a number of a column is too large for its type."""
        convert = arrow_csv.ConvertOptions(include_columns=[name], column_types={name: pa.string()})
        cells = _one_batch(arrow_csv.read_csv(pa.BufferReader(text), self._read_options(text), options, convert)).column(0)
        if is_overflown(column, cells):
            raise pa.ArrowInvalid(f"In CSV column #{self.names.index(name)}: too large a number")

    def _read_options(self, text: pa.Buffer) -> arrow_csv.ReadOptions:
        return arrow_csv.ReadOptions(use_threads=False, block_size=text.size + 1, column_names=self.names)

    def _options(self, handler: object = None, *, has_blank_rows: bool = False) -> arrow_csv.ParseOptions:
        return arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char=self.quote or False,
            escape_char=self.escape or False,
            newlines_in_values=True,
            ignore_empty_lines=not has_blank_rows,
            invalid_row_handler=handler,
        )

    @cached_property
    def _cut(self) -> Callable[[pa.Buffer], tuple[int, pa.Buffer] | None] | None:
        return None if self.escape else column_cutter(self.names, self.types, self.delimiter, self.quote)

    @cached_property
    def _narrow(self) -> ColumnParser:
        return attrs.evolve(self, names=[name for name in self.names if name in self.types])

    @cached_property
    def _parse(self) -> arrow_csv.ParseOptions:
        return self._options()

    @cached_property
    def _with_blanks(self) -> arrow_csv.ParseOptions:
        return self._options(has_blank_rows=True)

    def _convert(self, types: dict[str, pa.DataType], quoted_nulls: bool) -> arrow_csv.ConvertOptions:
        return arrow_csv.ConvertOptions(
            include_columns=list(types),
            column_types=types,
            null_values=list(self.nulls),
            true_values=INFERRED_TRUE if self.has_inferred_booleans else TRUE_VALUES,
            false_values=INFERRED_FALSE if self.has_inferred_booleans else FALSE_VALUES,
            strings_can_be_null=True,
            quoted_strings_can_be_null=quoted_nulls,
        )

    @cached_property
    def _plain(self) -> arrow_csv.ConvertOptions:
        return self._convert(self.types, quoted_nulls=not any(map(is_text, self.types.values())))

    @cached_property
    def _apart(self) -> list[arrow_csv.ConvertOptions]:
        texts = {name: kind for name, kind in self.types.items() if is_text(kind)}
        others = {name: kind for name, kind in self.types.items() if not is_text(kind)}
        return [self._convert(texts, quoted_nulls=False), self._convert(others, quoted_nulls=True)]

    @property
    def _has_both(self) -> bool:
        texts = sum(map(is_text, self.types.values()))
        return 0 < texts < len(self.types)

    @cached_property
    def _as_ascii(self) -> bytes:
        letter = next(letter for letter in "abcd" if letter not in (self.delimiter, self.quote, self.escape))
        return bytes(range(128)) + letter.encode() * 128

    @cached_property
    def _quoted_null(self) -> bytes:
        return (self.quote * 2).encode()


def _may_be_overflown(values: pa.Array, text: pa.Buffer) -> bool:
    """Return True if values may be other numbers than those of their text (see `is_overflown`), which is looked at then."""
    if pa.types.is_floating(values.type):
        return bool(pc.any(pc.is_inf(values)).as_py())
    data = text.to_pybytes() if has_negative(values) else b""
    return b"0x" in data or b"0X" in data


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return (
        batches[0] if batches else pa.RecordBatch.from_arrays([pa.array([], f.type) for f in table.schema], schema=table.schema)
    )


def without_nulls(cells: pa.Array, nulls: Sequence[str]) -> pa.Array:
    """Return text cells with null in place of the strings that mean it, quoted or not.

    >>> without_nulls(pa.array(["7", " NA ", ""]), ("NA", "")).to_pylist()
    ['7', None, None]
    """
    is_null = pc.is_in(pc.utf8_trim(cells, _BLANK), value_set=pa.array([*nulls, ""], pa.string()))
    return pc.if_else(is_null, pa.scalar(None, pa.string()), cells)
