"""Colours where they are wanted, and tables that fit a width."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence

import attrs

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold red": "1;31"}
_PIECES = re.compile(r"""(?:-D )?(?:(?<!\w)(?:'[^']*'|"[^"]*"|`[^`]*`)|\S)+""")
LEAST = 8  # a column that must give way keeps at least so many cells


@attrs.frozen
class Style:
    r"""The style of text. `width`: cells a line may have, None for no limit; `colour`: whether ANSI codes are used.

    >>> Style().paint("bold", "text"), Style(colour=True).paint("bold", "text")
    ('text', '\x1b[1mtext\x1b[0m')
    """

    width: int | None = None
    colour: bool = False

    def paint(self, how: str, text: str) -> str:
        """Text in a colour or weight: `bold`, `dim`, `red`, `green`, `yellow`, `cyan`, `bold red`."""
        return f"\x1b[{_CODES[how]}m{text}\x1b[0m" if self.colour and text else text

    def cut(self, text: str) -> str:
        """A line cut to the width."""
        return text if self.width is None else cut(text, self.width)


def style_for(is_terminal: bool, width: int | None, environment: Mapping[str, str]) -> Style:
    """The style for a stream: no colour and no width unless it is a terminal; NO_COLOR (any value) and TERM=dumb say no colour.

    >>> style_for(True, 80, {"NO_COLOR": "1"})
    Style(width=80, colour=False)
    """
    colour = is_terminal and not environment.get("NO_COLOR") and environment.get("TERM") != "dumb"
    return Style(width if is_terminal else None, colour)


def cells(text: str) -> int:
    r"""Return how many cells of a terminal a text takes.

    >>> cells("plan"), cells("計画"), cells("e\u0301")
    (4, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut(text: str, width: int) -> str:
    """A text cut to so many cells, with an ellipsis where something is missing.

    >>> cut("operators", 9), cut("operators", 5)
    ('operators', 'oper…')
    """
    if cells(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += cells(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def cut_middle(text: str, width: int) -> str:
    """A text cut to so many cells, with an ellipsis in its middle.

    >>> cut_middle("lines.reader", 12), cut_middle("lines_long.reader", 12)
    ('lines.reader', 'lines_…eader')
    """
    if cells(text) <= width:
        return text
    end = (width - 1) // 2
    return cut(text, width - end) + cut(text[::-1], end + 1)[:-1][::-1]


def wrap(text: str, width: int) -> list[str]:
    r"""Return a sentence as lines of so many cells. They break between words, and within quotes only where these are longer.

    >>> wrap("set it with -D 'key=a value', then launch again", 20)
    ['set it with', "-D 'key=a value',", 'then launch again']
    """
    lines = [""]
    for piece in [word for part in _PIECES.findall(text) for word in ([part] if cells(part) <= width else part.split())]:
        line = f"{lines[-1]} {piece}" if lines[-1] else piece
        if lines[-1] and cells(line) > width:
            lines.append(piece)
        else:
            lines[-1] = line
    return lines


def pad(text: str, width: int, right: bool = False) -> str:
    """A text filled up with blanks to so many cells."""
    fill = " " * max(0, width - cells(text))
    return fill + text if right else text + fill


def table(rows: Sequence[Sequence[str]], align: str = "", style: Style | None = None, gap: str = "  ") -> list[str]:
    """Rows as lines with columns below each other.

    `align`: for each column `l` (left), `r` (right; never cut) or `L` (left, gives way first when the lines are too wide).

    >>> table([["reader", "120"], ["writer", "7"]], "lr")
    ['reader  120', 'writer    7']
    """
    style = style or Style()
    if not rows:
        return []
    columns = max(len(row) for row in rows)
    align = align.ljust(columns, "l")[:columns]
    full = [[*row, *[""] * (columns - len(row))] for row in rows]
    widths = [max(cells(row[i]) for row in full) for i in range(columns)]
    if style.width is not None:
        _narrow(widths, align, style.width - len(gap) * (columns - 1))
    lines = []
    for row in full:
        parts = [pad(cut(text, width), width, right=how == "r") for text, width, how in zip(row, widths, align, strict=True)]
        lines.append(gap.join(parts).rstrip())
    return lines


def _narrow(widths: list[int], align: str, room: int) -> None:
    """Make columns narrower until the row fits: those that give way first, then the widest of the others."""
    for which in ("L", "l"):
        while sum(widths) > room:
            wide = [i for i, how in enumerate(align) if how == which and widths[i] > LEAST]
            if not wide:
                break
            widest = max(wide, key=lambda i: widths[i])
            widths[widest] -= 1


def indented(lines: Sequence[str], by: int = 2) -> list[str]:
    """Lines moved to the right."""
    return [" " * by + line if line else line for line in lines]


def narrower(style: Style, by: int) -> Style:
    """The style of what stands indented."""
    return style if style.width is None else attrs.evolve(style, width=max(1, style.width - by))
