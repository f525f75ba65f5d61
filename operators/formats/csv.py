"""CSV, TSV and other delimited text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import pyarrow as pa

from dagflow.config import integer_from, one_of
from dagflow.scan import Format, NumberText
from operators.formats.delimited.dialect import Dialect
from operators.formats.options import a_text, a_text_or_none, texts

if TYPE_CHECKING:
    from dagflow.storage import BinaryReader
    from operators.formats.delimited.reader import CsvReader


def to_delimiter(value: Any) -> Any:
    r"""Return the delimiter, with a tab for the two characters `\t`, as a shell passes them.

    >>> to_delimiter(r"\t"), to_delimiter("||")
    ('\t', '||')
    """
    return "\t" if value == r"\t" else value


def to_nulls(value: Any) -> tuple[str, ...]:
    """Return the strings for null as a tuple."""
    return texts("nulls", value)


@attrs.define
class CsvFormat(Format):
    r"""Delimited text with a header or without: CSV, TSV and their relatives (RFC 4180).

    Files can be cut at any byte, also within quotes, and are read in parallel. `operators.formats.delimited.dialect.Dialect`
    defines records and fields. `docs/reference/csv.md` explains how readers find records after a cut, and lists all errors
    in files. Compressed files are recognised by their first bytes, and each is read as a whole.

    Args:
        header: whether the first record names the columns (by Apache Drill's rules: `column_names`). Without a header and a
            schema, the scan has one column `columns`, a list of strings; with a schema, fields get its columns by position.
        delimiter: one character or more, such as "||", taken from the left; `\t` is a tab, also on the command line.
        quote: one character; None or "" for files without quotes. Within quotes it is doubled.
        escape: one character that makes the next one plain text, in quotes or not; None for none.
        comment: the beginning of lines to skip where a record would begin; None for none.
        encoding: any that Python knows; a byte order mark is skipped. Files in UTF-8 and in encodings of single bytes can be
            cut anywhere; in all others, a file is one block.
        infer_types: infer types from the first MiB of each file, before the first window: integers, floats, booleans, dates,
            times, timestamps, strings. False: all columns are strings.
        skip_lines: the number of lines to skip before the header.
        trim: remove blanks around fields, not in quotes.
        nulls: strings that mean null. In columns of strings, a quoted one is a string.
        decimal, thousands: the decimal point of numbers, and the character between groups of three digits: `decimal=","` and
            `thousands="."` for `1.234,50`. `Column` sets them for a single column.
        clean_header: make column names of letters, digits and `_` only. False: keep them as they are.
        extra_fields: "ignore" fields beyond the last column (counter `rows_with_extra_fields`), or treat the row as "bad".
        missing_fields: use "null" for missing fields (counter `rows_with_missing_fields`), or treat the row as "bad".

    >>> import pathlib, tempfile
    >>> from dagflow.testing import scan_table
    >>> from operators import ScanReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text('id,order date,note\n1,2026-11-20,"two\nlines"\n2,,\n')
    ...     scan_table(ScanReader(CsvFormat()), path, block_size=30).to_pylist()
    [{'id': 1, 'order_date': datetime.date(2026, 11, 20), 'note': 'two\nlines'}, {'id': 2, 'order_date': None, 'note': None}]

    Raises NotDelimited, HeaderBad, QuoteLeftOpen, RowTooLarge, FileShortened. Bad rows are reported one by one (`BadRow`).
    """

    has_encoding: ClassVar[bool] = True
    suffixes: ClassVar[tuple[str, ...]] = ("csv", "tsv", "txt")
    offers_array: ClassVar[bool] = True

    header: bool = attrs.field(default=True, validator=attrs.validators.instance_of(bool))
    delimiter: str = attrs.field(default=",", converter=to_delimiter, validator=a_text)
    quote: str | None = attrs.field(default='"', validator=a_text_or_none)
    escape: str | None = attrs.field(default=None, validator=a_text_or_none)
    comment: str | None = attrs.field(default=None, validator=a_text_or_none)
    encoding: str = attrs.field(default="utf-8", validator=a_text)
    infer_types: bool = attrs.field(default=True, validator=attrs.validators.instance_of(bool))
    skip_lines: int = attrs.field(default=0, kw_only=True, validator=integer_from(0))
    trim: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))
    nulls: tuple[str, ...] = attrs.field(default=("",), kw_only=True, converter=to_nulls)
    clean_header: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    extra_fields: Literal["ignore", "bad"] = attrs.field(default="ignore", kw_only=True, validator=one_of(("ignore", "bad")))
    missing_fields: Literal["null", "bad"] = attrs.field(default="null", kw_only=True, validator=one_of(("null", "bad")))
    decimal: str = attrs.field(default=".", kw_only=True, validator=a_text)
    thousands: str = attrs.field(default="", kw_only=True, validator=a_text)

    def __attrs_post_init__(self) -> None:
        problem = self.dialect.problem() or self.numbers.problem() or self.number_problem(self.numbers)
        if problem is not None:
            raise ValueError(problem)

    @property
    def dialect(self) -> Dialect:
        """The separation of fields and records."""
        escape = None if self.escape == self.quote else self.escape
        return Dialect(self.delimiter, self.quote or None, escape, self.comment or None, self.encoding, self.trim)

    @property
    def numbers(self) -> NumberText:
        """The spelling of numbers. Types are inferred."""
        return NumberText(self.decimal, self.thousands, is_inferred=True)

    def number_problem(self, numbers: NumberText) -> str | None:
        """Return the problem of a spelling of numbers in these files, None without any."""
        if self.quote:  # fields with the delimiter in them are quoted
            return None
        for name, mark in (("decimal", numbers.decimal), ("thousands", numbers.thousands)):
            if mark and mark in self.delimiter:
                return (
                    f"delimiter and {name} are both {mark!r}, and there is no quote: set delimiter to what separates the fields"
                )
        return None

    @property
    def cuts(self) -> Literal["any", "none"]:  # type: ignore[override]  # the encoding decides
        """`any` if files can be cut anywhere, because marks can be found among bytes."""
        return "any" if self.dialect.is_bytewise else "none"

    @property
    def has_header(self) -> bool:  # type: ignore[override]  # it is another word for `header`
        """True if files name their columns."""
        return self.header

    def column_name(self, asked: str) -> str:
        """Return the column name for a name as a header writes it: `order_date` for `order date`."""
        from operators.formats.delimited.fields import cleaned

        return cleaned(asked.strip()) if self.header and self.clean_header else asked

    def ends_records(self, end: str, quote: str | None) -> bool:
        """Return True for a line end outside of quotes. With escapes or comments, counting quotes does not find it."""
        is_countable = not self.quote or (self.dialect.escape is None and not self.comment)
        return end == "\n" and quote == (self.quote or None) and is_countable and self.dialect.is_bytewise

    def make_reader(self) -> CsvReader:
        """Return a reader for one block."""
        from operators.formats.delimited.reader import CsvReader

        return CsvReader(self)

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
        """Return the columns of the header with types inferred from the first MiB; None for a file without either."""
        from operators.formats.delimited.sample import sample_schema

        return sample_schema(self, stream, path, length)
