"""The numbers of lines, counted on demand."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.config import MiB
from operators.contexts.piece import Piece


@attrs.define(eq=False)
class LineNumbers:
    r"""Counts line ends from the file's start, or from the place of the call before where that is earlier in the file.

    `stream`: the stream to which the positions of pieces refer.

    >>> import io
    >>> text = b"a\nb\nc"
    >>> lines = LineNumbers(io.BytesIO(text))
    >>> lines.come_to(Piece.of_slices(text, [2, 4, 5], position=2, path="f"))
    >>> lines.at(4), lines.at(2)
    (3, 2)
    """

    stream: Any
    _known: tuple[int, int] = (0, 1)
    _base: int = 0

    def come_to(self, piece: Piece) -> None:
        """Change to another piece."""
        self._base = piece.position - piece.begin

    def at(self, offset: int) -> int:
        """Return the number of the line (from 1) with the byte at an offset of the current piece's data."""
        position = self._base + offset
        at, line = self._known if self._known[0] <= position else (0, 1)
        before = self.stream.tell()
        self.stream.seek(at)
        while at < position:
            data = self.stream.read(min(MiB, position - at))
            if not data:
                break
            line += data.count(b"\n")
            at += len(data)
        self.stream.seek(before)
        self._known = (at, line)
        return line


@attrs.define(eq=False)
class LinesSoFar:
    r"""Counts the line ends of consecutive pieces that cannot be read again, such as those of compressed files.

    `before`: the number of line ends before the first piece.

    >>> lines = LinesSoFar(1)
    >>> for text in (b"a\nb\n", b"c\nd"):
    ...     lines.come_to(Piece.of_slices(text, [0, 2, len(text)], position=0, path="f"))
    ...     print(lines.at(0), lines.at(2))
    2 3
    4 5
    """

    before: int
    _piece: Piece | None = None
    _within: int = 0

    def come_to(self, piece: Piece) -> None:
        """Change to the next piece."""
        self.before += self._within
        self._piece, self._within = piece, piece.data.count(b"\n", piece.begin, piece.end)

    def at(self, offset: int) -> int:
        """Return the number of the line (from 1) with the byte at an offset of the current piece's data."""
        piece = self._piece
        return self.before + 1 + (0 if piece is None else piece.data.count(b"\n", piece.begin, offset))
