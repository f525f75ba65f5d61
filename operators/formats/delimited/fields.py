"""Single records split into fields, and column names made of a header's fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import attrs

from operators.formats.delimited.dialect import Dialect

NAME_BYTES = 1024


class Field(NamedTuple):
    """A field: its text, its spelling in the file (without blanks around it, if they are trimmed), and whether it is quoted."""

    text: bytes
    raw: bytes
    is_quoted: bool


@attrs.frozen(slots=False)
class FieldSplitter:
    r"""Splits records by the rules of Dialect, one at a time, for headers and malformed rows.

    >>> [field.text for field in FieldSplitter(Dialect()).split(b'a,"b ""c""\n",\r\n')]
    [b'a', b'b "c"\n', b'']
    """

    dialect: Dialect

    def split(self, record: bytes) -> list[Field]:
        """Return the fields of a record, with or without its line end, in the dialect's `bytes_encoding` or UTF-8."""
        return list(self._fields(self.without_line_end(record)))

    def without_line_end(self, record: bytes) -> bytes:
        """Return the record without its line end."""
        if record.endswith(b"\n"):
            record = record[:-1]
            if record.endswith(b"\r") and not self._is_escaped(record, len(record) - 1):
                record = record[:-1]
        elif record.endswith(b"\r") and not self._is_escaped(record, len(record) - 1):
            record = record[:-1]
        return record

    def _is_escaped(self, record: bytes, at: int) -> bool:
        escape, first = self.dialect.escape_bytes, at
        while escape and first > 0 and record[first - 1] == escape[0]:
            first -= 1
        return (at - first) % 2 == 1

    def _fields(self, record: bytes) -> Iterator[Field]:
        dialect, at = self.dialect, 0
        quote, blanks = dialect.quote_bytes, dialect.blanks if dialect.trim else b""
        while True:
            begin, inner = at, None
            if blanks:
                begin = at = len(record) - len(record[at:].lstrip(blanks))
            if quote and record.startswith(quote, at):
                quoted = self._quoted.match(record, at + 1)
                stop = len(record) if quoted is None else quoted.end()
                inner = self._unquoted(record[at + 1 :] if quoted is None else record[at + 1 : stop - 1])
                at = stop
            end, next_at = self._end_of_field(record, at)
            rest = record[at:end].rstrip(blanks) if blanks else record[at:end]
            text = self._unescaped(rest)
            yield Field(text if inner is None else inner + text, record[begin : at + len(rest)], inner is not None)
            if next_at is None:
                return
            at = next_at

    def _end_of_field(self, record: bytes, at: int) -> tuple[int, int | None]:
        """Return the end of the field and the start of the next one, None without a next one."""
        while (delimiter := self._delimiter.search(record, at)) is not None:
            if delimiter.group() == self.dialect.delimiter_bytes:
                return delimiter.start(), delimiter.end()
            at = delimiter.end()
        return len(record), None

    def _unquoted(self, text: bytes) -> bytes:
        quote = self.dialect.quote_bytes
        if not self.dialect.escape_bytes:
            return text.replace(quote + quote, quote)
        return self._pair.sub(lambda pair: pair.group()[-1:], text)

    def _unescaped(self, text: bytes) -> bytes:
        return self._escape.sub(rb"\1", text) if self.dialect.escape_bytes else text

    @cached_property
    def _quoted(self) -> re.Pattern[bytes]:
        quote, escape = re.escape(self.dialect.quote_bytes), re.escape(self.dialect.escape_bytes)
        pairs = quote + quote + (b"|" + escape + rb"[\s\S]" if escape else b"")
        return re.compile(b"(?:[^" + quote + escape + b"]|" + pairs + b")*+" + quote)

    @cached_property
    def _delimiter(self) -> re.Pattern[bytes]:
        escape = re.escape(self.dialect.escape_bytes)
        return re.compile((escape + rb"[\s\S]|" if escape else b"") + re.escape(self.dialect.delimiter_bytes))

    @cached_property
    def _pair(self) -> re.Pattern[bytes]:
        quote, escape = re.escape(self.dialect.quote_bytes), re.escape(self.dialect.escape_bytes)
        return re.compile(quote + quote + b"|" + escape + rb"[\s\S]")

    @cached_property
    def _escape(self) -> re.Pattern[bytes]:
        return re.compile(re.escape(self.dialect.escape_bytes) + rb"([\s\S])")


def column_names(fields: Iterable[str], *, clean: bool = True) -> list[str]:
    """Return the column names of a header. They differ from each other in more than case, as in Apache Drill.

    `clean`: letters of any script, digits and `_` stay, and all else becomes `_`. A name begins with a letter: `col_` comes
    before a digit, and replaces any other first character. Without `clean`, only blanks around names are removed.
    A name without letters becomes `column_N`, where N is its place from 1. Repeated names get `_2`, `_3`, …, if no other column
    is called so.

    >>> column_names(["id", " order date ", "9a", "ID", "", "+"])
    ['id', 'order_date', 'col_9a', 'ID_2', 'column_5', 'column_6']
    >>> column_names(["order date", "order date", ""], clean=False)
    ['order date', 'order date_2', 'column_3']

    Raises ValueError for a name of more than 1,024 bytes.
    """
    bases: list[str] = []
    for number, field in enumerate(fields, 1):
        text = field.strip()
        if len(text.encode()) > NAME_BYTES:
            raise ValueError(f"has a name of more than {NAME_BYTES} bytes: {text[:40]!r}…")
        bases.append((cleaned(text) if clean else text) or f"column_{number}")
    names: list[str] = []
    own, taken = {base.casefold() for base in bases}, set[str]()
    for base in bases:
        name, copy = base, 2
        while name.casefold() in taken or (name != base and name.casefold() in own):
            name, copy = f"{base}_{copy}", copy + 1
        taken.add(name.casefold())
        names.append(name)
    return names


def cleaned(text: str) -> str:
    """Return a name of letters, digits and `_`, as in `column_names`; empty if it has no letter."""
    if not text or (len(text) == 1 and not text.isalnum()):
        return ""
    if text[0].isdigit():
        text = f"col_{text}"
    elif not text[0].isalpha():
        text = f"col_{text[1:]}"
    return "".join(c if f"a{c}".isidentifier() else "_" for c in text)
