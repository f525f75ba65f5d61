"""Batches as rows of CSV: a column of strings without line ends."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import re
from typing import Any, Literal

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from operators.sinks.encoding.plain_text import TEXT, as_text, bytes_of, kind_of_text
from operators.sinks.errors import TypeNotWritable, ValueNotWritable

Quoting = Literal["minimal", "all", "none"]


@attrs.frozen
class CsvEncoder:
    """The encoder of rows in a dialect of CSV.

    Attributes:
        operator: named in errors.
        delimiter, quote: between fields, and around those that need it.
        quoting: which fields are quoted: those that must be, `all` but nulls, or `none`.
        null: the text of a missing value, never quoted; the same text as a value is quoted.
    """

    operator: str
    delimiter: str = ","
    quote: str = '"'
    quoting: Quoting = "minimal"
    null: str = ""

    def header(self, names: list[str]) -> bytes:
        """Return the first row, without its end."""
        row = self.rows(pa.RecordBatch.from_arrays([pa.array([name]) for name in names], [str(n) for n in range(len(names))]))
        return str(row[0]).encode()

    def rows(self, batch: pa.RecordBatch) -> Any:
        """Return the rows of a batch.

        >>> import pyarrow as pa
        >>> CsvEncoder("writer").rows(pa.record_batch({"a": ["x, y", None, ""], "b": [1, 2, None]})).to_pylist()
        ['"x, y",1', ',2', '"",']

        Raises ValueNotWritable for a value that would be read as another.
        """
        cells = [self._cells(field.name, column) for field, column in zip(batch.schema, batch.columns, strict=True)]
        if len(cells) == 1:
            return self._alone(batch.schema.names[0], cells[0])
        return pc.binary_join_element_wise(*cells, self.delimiter)

    def _alone(self, name: str, cells: Any) -> Any:
        """Return the cells of a table with one column. An empty cell would be a blank line, which most readers skip."""
        if pc.any(pc.equal(cells, "")).as_py():
            raise ValueNotWritable(
                operator=self.operator,
                column=name,
                value="nothing in a row of its own",
                format="CSV",
                help="name it: null='NULL'",
            )
        return cells

    def _cells(self, name: str, column: Any) -> Any:
        texts = as_text(column, name, self.operator, "CSV")
        if kind_of_text(column.type) == TEXT:
            texts = self._quoted(name, texts)
        elif self.quoting == "all":
            texts = self._in_quotes(texts)
        return texts.fill_null(self.null)

    def _quoted(self, name: str, texts: Any) -> Any:
        """Return texts, in quotes where they need them."""
        if self.quoting == "all":
            return self._in_quotes(texts)
        must = pc.equal(texts, self.null)
        special = "[" + "".join(f"\\{mark}" if mark in "\\]^-" else mark for mark in self.delimiter + self.quote) + "\r\n]"
        if re.search(special.encode(), bytes_of(texts)):  # of all texts at once: in most columns there is none
            must = pc.or_(must, pc.match_substring_regex(texts, special))
        if not pc.any(must).as_py():
            return texts
        if self.quoting == "none":
            raise ValueNotWritable(
                operator=self.operator,
                column=name,
                value=f"{texts.filter(must)[0].as_py()!r:.60}",
                format="CSV without quotes",
                help="let fields be quoted where they must be: quoting='minimal'",
            )
        return pc.if_else(must, self._in_quotes(texts), texts)

    def _in_quotes(self, texts: Any) -> Any:
        if re.search(re.escape(self.quote.encode()), bytes_of(texts)):
            texts = pc.replace_substring(texts, self.quote, self.quote * 2)
        return pc.binary_join_element_wise(self.quote, texts, self.quote, "")


def check_types(schema: pa.Schema, operator: str, form: str) -> None:
    """Raise TypeNotWritable for columns that have no plain text."""
    for field in schema:
        if kind_of_text(field.type) is None:
            raise TypeNotWritable(
                operator=operator,
                column=field.name,
                type=str(field.type),
                format=form,
                help="make text or numbers of it before it comes here, or write Parquet",
            )
