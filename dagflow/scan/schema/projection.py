"""Which columns are asked for: names, parts of nested ones, `*`, and what is known of files without reading them."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from dagflow.scan.errors import ProjectionError

STAR = "*"
IMPLICIT = frozenset({"filename", "filepath", "fqn", "suffix", "block_offset"})
_DIR = re.compile(r"dir(\d+)")
_PART = re.compile(r"`([^`]+)`|([^.\[\]`]+)")
_STEP = re.compile(r"\.(?:`([^`]+)`|([^.\[\]`]+))|\[(\d+)\]")


@attrs.frozen
class Asked:
    """A column as it was asked for: `name` is what it is called in the result, `root` the column that it is part of.

    `steps` lead from there to the part: a text is a field of a struct, a number an element of a list (0 is the first).

    >>> Asked.of("m.list[2].`x.y`")
    Asked(name='m.list[2].`x.y`', root='m', steps=('list', 2, 'x.y'))
    """

    name: str
    root: str
    steps: tuple[str | int, ...] = ()
    is_star: bool = attrs.field(default=False, kw_only=True, repr=False)
    """True if it stands for all columns: a column called `*` is asked for in backticks."""

    @classmethod
    def of(cls, text: str) -> Asked:
        """Parse a column of a projection. Raises ProjectionError."""
        first = _PART.match(text)
        if first is None:
            raise ProjectionError(f"{text!r} names no column", "NAME, NAME.FIELD, NAME[0]; other names in backticks: `a.b`")
        root, at = first[1] or first[2], first.end()
        steps: list[str | int] = []
        while at < len(text):
            step = _STEP.match(text, at)
            if step is None:
                raise ProjectionError(
                    f"{text!r} names no column: {text[at:]!r} is not understood",
                    "NAME, NAME.FIELD, NAME[0]; other names in backticks: `a.b`",
                )
            steps.append(int(step[3]) if step[3] is not None else step[1] or step[2])
            at = step.end()
        return cls(root if not steps else text, root, tuple(steps))


@attrs.frozen
class Projection:
    """The columns that are asked for, understood. `asked` None: all (`*`, nothing else)."""

    asked: tuple[Asked, ...] | None

    @classmethod
    def of(cls, columns: Sequence[str] | None) -> Projection:
        """Return the projection of a list of columns; None: all. Raises ProjectionError."""
        if columns is None or list(columns) == [STAR]:
            return cls(None)
        asked = tuple(Asked(STAR, STAR, is_star=True) if text == STAR else Asked.of(text) for text in columns)
        names = [(each.name, each.is_star) for each in asked]
        twice = next((each.name for each, name in zip(asked, names, strict=True) if names.count(name) > 1), None)
        if twice is not None:
            raise ProjectionError(f"column {twice!r} is asked for twice", "ask for it once, and copy it behind the scan")
        return cls(asked)

    @property
    def has_star(self) -> bool:
        """Return whether all columns of the files are among them."""
        return self.asked is None or any(each.is_star for each in self.asked)


def is_implicit(name: str) -> bool:
    """Return whether a name is one of what is known of each file: `filename`, `dir0`.

    >>> is_implicit("dir3"), is_implicit("directory")
    (True, False)
    """
    return name in IMPLICIT or _DIR.fullmatch(name) is not None
