"""CSV, TSV and other delimited text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import pyarrow as pa

from dagflow.config import integer_from, one_of
from dagflow.scan import Format
from operators.formats.delimited.dialect import Dialect
from operators.formats.options import a_text, a_text_or_none, texts

if TYPE_CHECKING:
    from dagflow.storage import BinaryReader
    from operators.formats.delimited.reader import CsvReader


def to_delimiter(value: Any) -> Any:
    r"""The delimiter; the two characters that stand for a tab in most languages, which a shell leaves as they are, are one.

    >>> to_delimiter(r"\t"), to_delimiter("||")
    ('\t', '||')
    """
    return "\t" if value == r"\t" else value


def to_nulls(value: Any) -> tuple[str, ...]:
    """Return the texts for null as a tuple."""
    return texts("nulls", value)


@attrs.define
class CsvFormat(Format):
    r"""Delimited text with a header or without: CSV, TSV and their relatives (RFC 4180; seed: Drill's EVF).

    Files can be cut at any byte, also within quotes, and are read in parallel. `operators.formats.delimited.dialect.Dialect` says
    what is a record and a field, `docs/reference/csv.md` how cuts are survived, and all that can be wrong with a file.
    Compressed files are known by their first bytes and read as one.

    Args:
        header: whether the first record names the columns (Drill's rules: `column_names`). Without a header and a schema, the
            scan has one column `columns`, a list of texts; with a schema, its columns are taken by position.
        delimiter: one character or more, say "\t" or "||".
        quote: one character, or None (or ""): there are no quotes. Within quotes it is doubled.
        escape: one character that makes the next one text; None: there is none.
        comment: lines that begin so are skipped; None: there are none.
        encoding: any that Python knows. UTF-8 and those of single bytes can be cut anywhere; of all others, a file is one block.
        infer_types: types are told from the first MiB of each file, before data flows: integers, floats, truth values,
            dates, times, timestamps, text. False: all columns are text.
        skip_lines: so many lines before the header are not part of the table.
        trim: blanks around fields are not part of them.
        nulls: what stands for null. Where it is quoted, it is text in columns of text.
        clean_header: names of columns are made of letters, digits and `_`. False: they are as they stand.
        extra_fields: fields beyond the last column: "ignore" them (counter `rows_with_extra_fields`), or the row is "bad".
        missing_fields: fields that a row lacks are "null" (counter `rows_with_missing_fields`), or the row is "bad".

    >>> import pathlib, tempfile
    >>> from dagflow.testing import scan_table
    >>> from operators import ScanReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.csv")
    ...     _ = path.write_text('id,order date,note\n1,2026-11-20,"two\nlines"\n2,,\n')
    ...     scan_table(ScanReader(CsvFormat()), path, block_size=30).to_pylist()
    [{'id': 1, 'order_date': datetime.date(2026, 11, 20), 'note': 'two\nlines'}, {'id': 2, 'order_date': None, 'note': None}]

    Raises NotDelimited, HeaderBad, QuoteLeftOpen, RowTooLarge, FileShortened; what is wrong with single rows is told as BadRow.
    """

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

    def __attrs_post_init__(self) -> None:
        problem = self.dialect.problem()
        if problem is not None:
            raise ValueError(problem)

    @property
    def dialect(self) -> Dialect:
        """The separation of fields and records."""
        escape = None if self.escape == self.quote else self.escape
        return Dialect(self.delimiter, self.quote or None, escape, self.comment or None, self.encoding, self.trim)

    @property
    def cuts(self) -> Literal["any", "none"]:  # type: ignore[override]  # the encoding decides
        """`any` if files can be cut anywhere, because marks can be found among bytes."""
        return "any" if self.dialect.is_bytewise else "none"

    @property
    def has_header(self) -> bool:  # type: ignore[override]  # it is another word for `header`
        """True if files name their columns."""
        return self.header

    def column_name(self, asked: str) -> str:
        """The name that a header gives a column which it writes so: `order date` is `order_date`."""
        from operators.formats.delimited.fields import cleaned

        return cleaned(asked.strip()) if self.header and self.clean_header else asked

    def ends_records(self, end: str, quote: str | None) -> bool:
        """A line end outside of quotes does. Beside escapes or comments, counting quotes does not tell where that is."""
        is_countable = not self.quote or (self.dialect.escape is None and not self.comment)
        return end == "\n" and quote == (self.quote or None) and is_countable and self.dialect.is_bytewise

    def make_reader(self) -> CsvReader:
        """A reader for one block."""
        from operators.formats.delimited.reader import CsvReader

        return CsvReader(self)

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
        """The columns that the header names, with the types that the first MiB shows. None: the file has neither."""
        from operators.formats.delimited.sample import sample_schema

        return sample_schema(self, stream, path, length)
