"""The selection of columns: names, parts of nested columns, `*`, and implicit columns of files."""

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
class ColumnPath:
    """The path of a selected column: `name` is its name in the result, `root` the column of the file that it is part of.

    `steps` lead from there to the part: a string is a field of a struct, a number an element of a list, from 0.

    >>> ColumnPath.of("m.list[2].`x.y`")
    ColumnPath(name='m.list[2].`x.y`', root='m', steps=('list', 2, 'x.y'))
    """

    name: str
    root: str
    steps: tuple[str | int, ...] = ()
    is_star: bool = attrs.field(default=False, kw_only=True, repr=False)
    """True if it stands for all columns. A column whose name is `*` is written in backticks."""

    @classmethod
    def of(cls, text: str) -> ColumnPath:
        """Parse a column of a projection. Raises ProjectionError."""
        first = _PART.match(text)
        if first is None:
            raise ProjectionError(
                f"{text!r} does not name a column", "NAME, NAME.FIELD, NAME[0]; other names in backticks: `a.b`"
            )
        root, at = first[1] or first[2], first.end()
        steps: list[str | int] = []
        while at < len(text):
            step = _STEP.match(text, at)
            if step is None:
                raise ProjectionError(
                    f"{text!r} does not name a column: {text[at:]!r} is not understood",
                    "NAME, NAME.FIELD, NAME[0]; other names in backticks: `a.b`",
                )
            steps.append(int(step[3]) if step[3] is not None else step[1] or step[2])
            at = step.end()
        return cls(root if not steps else text, root, tuple(steps))


@attrs.frozen
class Projection:
    """The selected columns. `paths` None: all (`*`, nothing else)."""

    paths: tuple[ColumnPath, ...] | None

    @classmethod
    def of(cls, columns: Sequence[str] | None) -> Projection:
        """Parse a list of columns; None selects all. Raises ProjectionError."""
        if columns is None or list(columns) == [STAR]:
            return cls(None)
        paths = tuple(ColumnPath(STAR, STAR, is_star=True) if text == STAR else ColumnPath.of(text) for text in columns)
        names = [(each.name, each.is_star) for each in paths]
        twice = next((each.name for each, name in zip(paths, names, strict=True) if names.count(name) > 1), None)
        if twice is not None:
            raise ProjectionError(f"column {twice!r} is asked for twice", "ask for it once, and copy it behind the scan")
        return cls(paths)

    @property
    def has_star(self) -> bool:
        """Return whether all columns of the files are selected."""
        return self.paths is None or any(each.is_star for each in self.paths)


def is_implicit(name: str) -> bool:
    """Return whether a name is that of an implicit column: `filename`, `dir0`.

    >>> is_implicit("dir3"), is_implicit("directory")
    (True, False)
    """
    return name in IMPLICIT or _DIR.fullmatch(name) is not None
