"""Rows that cannot be read: their description, and the choice what to do with them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import attrs

OnBadRow = Literal["fail", "drop", "route"]
SHOWN_CHARACTERS = 1_000


@attrs.frozen
class BadRow:
    """A row that could not be read, and why. The port `errors` of a ScanReader carries these.

    `position`: the first byte of the row, from the start of the file (of a compressed file: of its content); `line`: its number
    from 1; None if it is not known, as in a reader that began inside the file. `column`: the column that is to blame; None if
    there is none. `raw`: the text of the row, at most 1,000 characters.
    """

    file_path: str
    position: int | None
    line: int | None
    column: str | None
    reason: str
    raw: str

    @property
    def problem(self) -> str:
        """The reason with the column that is to blame.

        >>> BadRow("a.csv", 0, 1, "age", "is null, but the column must have a value", "ada,").problem
        "column 'age' is null, but the column must have a value"
        """
        if self.column is None:
            return self.reason
        return f"column {self.column!r}{' ' if self.reason.startswith('is ') else ': '}{self.reason}"


def not_text(place: str, wrong: bytes, encoding: str) -> str:
    r"""Return the reason for a row with bytes that are not text of its encoding.

    >>> not_text("byte 11", b"\xff", "utf-8")
    'byte 11 (0xff) is not utf-8'
    """
    return f"{place} ({' '.join(f'0x{byte:02x}' for byte in wrong)}) is not {encoding}"


class RowOrigin(NamedTuple):
    """The place in a file that a row of a batch comes from. Made only for bad rows, and for a row that is traced.

    `data`: its bytes, with the terminator; None if the format does not read row by row, or does not keep them. `row`: its number
    in the file, from 0, where such a format knows it; `position` is then that of the rows that are read together.
    """

    position: int | None = None
    line: int | None = None
    raw: str = ""
    data: memoryview | None = None
    row: int | None = None
