"""Errors of a file of delimited text as a whole. Single bad rows are reported as rows."""

from __future__ import annotations

from typing_extensions import override

from dagflow.errors import definition, error
from operators.contexts.errors import ReadError


@error("DF630", kw_only=True)
class NotDelimited(ReadError, ValueError):
    """The first bytes of a file are those of another format."""

    path: str
    kind: str
    advice: str
    template = "{path}: this is not delimited text: its first bytes are those of {kind}.\n{advice}"
    example = {"path": "logs/a.csv", "kind": "Parquet", "advice": "Read it with ParquetFormat()."}
    general_remedy = "read the file with the format that it has, or leave it out (the scanner's ignore pattern)"


@error("DF631", kw_only=True)
class HeaderBad(ReadError, ValueError):
    """The first record of a file cannot be its header."""

    path: str
    position: int
    reason: str
    advice: str = ""
    is_not_text: bool = False
    template = (
        "{path}: the header, at {place}, {reason}.\n"
        "{is_not_text:?Name the real encoding: {reader:-D format.encoding=latin-1} (or cp1252, …)."
        "|{advice:?{advice}|If the file has no header: {reader:-D format.header=False}.}}"
    )
    example = {"reader": "rows", "path": "logs/a.csv", "position": 0, "reason": "names 'count' twice"}
    general_remedy = "if the file has no header: -D operator.NAME.format.header=false"

    @property
    def place(self) -> str:
        """Return a phrase for the position of the header."""
        return self.at(self.position)


@error("DF632", kw_only=True)
class QuoteLeftOpen(ReadError, ValueError):
    """A quote is not closed within `limit` bytes. `column`: in which column, where that is known."""

    path: str
    position: int
    opened: int
    limit: int
    column: str | None = None
    example = {"reader": "rows", "path": "logs/a.csv", "position": 100, "opened": 110, "limit": 67_108_864}
    general_remedy = (
        "name the quote that the file has: -D operator.NAME.format.quote=…; or allow longer records: limits.max_record_bytes"
    )

    @override
    def message(self) -> str:
        return (
            f"{self.path}: the quote at {self.at(self.opened)}, in {'' if self.column is None else f'column {self.column!r} of '}"
            f"the record that starts at {self.at(self.position)}, is not closed within max_record_bytes = {self.limit}.\n"
            "Either it is not a quote (then the file has other quotes, or none: "
            f"{definition(self.reader, 'format.quote', chr(39))}),\n"
            f"or records may be longer: {definition(self.reader, 'limits.max_record_bytes', self.limit * 4)}"
        )
