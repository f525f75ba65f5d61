"""Rows that cannot be read: what is told of them, and what becomes of them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import attrs

OnBadRow = Literal["fail", "drop", "route"]
SHOWN_CHARACTERS = 1_000


@attrs.frozen
class BadRow:
    """A row that could not be read, and why: what the port `errors` of a ScanReader carries.

    `position`: where the row starts, bytes from the file's start (of a compressed file: of what it holds); `line`: its number
    from 1, None where that is not known (a reader that began inside the file). `column`: the column's name, None when it is no
    one's fault. `raw`: the row's text, cut at 1,000 characters.
    """

    file_path: str
    position: int | None
    line: int | None
    column: str | None
    reason: str
    raw: str


class RowOrigin(NamedTuple):
    """The place in a file that a row of a batch comes from: made only for rows that are bad, and for a row that is traced.

    `data`: its bytes as they stand, its terminator included; None where the format does not read row by row, or has let
    go of them.
    """

    position: int | None = None
    line: int | None = None
    raw: str = ""
    data: memoryview | None = None
