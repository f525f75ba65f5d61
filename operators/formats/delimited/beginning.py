"""The beginning of a file of delimited text: what it is, lines to skip, the header."""

from __future__ import annotations

import codecs
import re

import attrs

from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.errors import HeaderBad, NotDelimited
from operators.formats.delimited.lexer import Lexer

# What other kinds of files begin with that is found under names of delimited text, and what to do with them.
_OTHERS = (
    (b"PAR1", "Parquet", "Read it with ParquetFormat."),
    (b"Obj\x01", "Avro", "Read it with AvroFormat."),
    (b"ORC", "ORC", "Convert it to Parquet first."),
    (b"PK\x03\x04", "a zip archive (or a spreadsheet: .xlsx, .ods)", "Unpack it, or export the sheet as CSV."),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Microsoft Office document", "Export its sheet as CSV."),
    (b"SQLite format 3\0", "an SQLite database", "Export its table as CSV."),
    (b"%PDF-", "a PDF document", "Extract its text first."),
    (b"\x1f\x8b", "gzip", "It was compressed twice, or is damaged: `gzip -t` tells."),
)
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_LINE_END = re.compile(rb"\r\n?|\n")
_SEPARATOR = re.compile(rb'"?sep=([\t -/:-@\[-`{-~])"?(?:\r\n?|\n|\Z)', re.IGNORECASE)


@attrs.frozen
class Beginning:
    """The beginning of a file before its first row, in bytes from the file's start. `header` is None without one."""

    header: bytes | None = None
    header_at: int = 0
    records_at: int = 0

    @classmethod
    def of(
        cls, data: bytes, lexer: Lexer, path: str, is_whole: bool, *, has_header: bool, skip_lines: int = 0
    ) -> Beginning | None:
        r"""Return the beginning of a file that begins with `data`; None if that is too short. `is_whole`: `data` is the file.

        Blank lines and comments before the header are skipped. Raises NotDelimited, HeaderBad.

        >>> Beginning.of(b"\xef\xbb\xbfa,b\n1,2\n", Lexer(Dialect()), "f.csv", True, has_header=True)
        Beginning(header=b'a,b', header_at=3, records_at=7)
        """
        check_kind(data, lexer.dialect, path)
        at = len(codecs.BOM_UTF8) if lexer.dialect.bytes_encoding == "utf-8" and data.startswith(codecs.BOM_UTF8) else 0
        for _ in range(skip_lines):
            end = _LINE_END.search(data, at)
            if end is None or (end.end() == len(data) and not is_whole):
                return cls(records_at=len(data)) if is_whole else None
            at = end.end()
        if skip_lines == 0:
            end_of_separator = _end_of_separator(data, at, lexer.dialect, path)
            if end_of_separator == len(data) and not is_whole:
                return None  # its line end may be half there
            at = end_of_separator
        if not has_header:
            return cls(records_at=at)
        lexed = lexer.find(data, at, len(data), is_last=is_whole)
        comment = lexer.dialect.comment_bytes
        ends: list[int] = lexed.ends.tolist()
        terminated = len(ends)
        if is_whole:
            ends.append(len(data))
        for number, end_at in enumerate(ends):
            record = data[at:end_at].rstrip(b"\r\n")
            if record and not (comment and record.startswith(comment)):
                if number == terminated and lexed.opened is not None:
                    reason = f"has a quote at byte {lexed.opened} that is never closed"
                    raise HeaderBad(path=path, position=at, reason=reason, advice="See the dialect: quote, escape, skip_lines.")
                return cls(header=record, header_at=at, records_at=end_at)
            at = end_at
        return cls(records_at=at) if is_whole else None


def _end_of_separator(data: bytes, at: int, dialect: Dialect, path: str) -> int:
    """Return the end of Excel's first line `sep=;`, which names the delimiter; `at` without one. Raises HeaderBad for another."""
    line = _SEPARATOR.match(data, at)
    if line is None:
        return at
    named = line[1].decode("ascii", "backslashreplace")
    if named != dialect.delimiter:
        reason = f"says that the delimiter is {named!r}, as Excel does, but it is read with {dialect.delimiter!r}"
        raise HeaderBad(path=path, position=at, reason=reason, advice=f"Say so: delimiter={named!r}.")
    return line.end()


def check_kind(head: bytes, dialect: Dialect, path: str) -> None:
    """Raise NotDelimited if a file that begins so is of a kind that is known to be something else."""
    for mark, kind, advice in _OTHERS:
        if head.startswith(mark):
            raise NotDelimited(path=path, kind=kind, advice=advice)
    if dialect.is_bytewise and head[:2] in _UTF16:
        encoding = "utf-32" if head.startswith(codecs.BOM_UTF32_LE) else _UTF16[head[:2]]
        raise NotDelimited(path=path, kind=f"{encoding.upper()} text", advice=f"Say so: encoding={encoding!r}.")
