"""The numbers of lines, counted when somebody asks."""

from __future__ import annotations

from typing import Any

import attrs

from operators.contexts.sizes import MIB


@attrs.define(eq=False)
class LineNumbers:
    r"""Counts line ends from the file's start on, and goes on from the place that was asked for before, if it can.

    `can_seek`: whether places of the stream are the places that are asked for; else no number is known.

    >>> import io
    >>> lines = LineNumbers(io.BytesIO(b"a\nb\nc"), True)
    >>> lines.at(4), lines.at(2)
    (3, 2)
    """

    stream: Any
    can_seek: bool
    _known: tuple[int, int] = (0, 1)

    def at(self, position: int) -> int | None:
        """The number of the line (from 1) that has the byte at a position."""
        if not self.can_seek:
            return None
        at, line = self._known if self._known[0] <= position else (0, 1)
        before = self.stream.tell()
        self.stream.seek(at)
        while at < position:
            data = self.stream.read(min(MIB, position - at))
            if not data:
                break
            line += data.count(b"\n")
            at += len(data)
        self.stream.seek(before)
        self._known = (at, line)
        return line
