"""`StreamColumns`: what is known about the rows of a stream before there are any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs


def _sets(unique: Iterable[Iterable[str]]) -> frozenset[frozenset[str]]:
    return frozenset(map(frozenset, unique))


@attrs.frozen
class StreamColumns:
    """The columns of a stream, as far as they are known before there are rows.

    Attributes:
        types: the names of all columns, each with its Arrow type as text, or None where the type is not known; None altogether
            where the columns are not known.
        unique: the sets of columns by which a row differs from all others that stand. An empty set: at most one row stands.
    """

    types: Mapping[str, str | None] | None = None
    unique: frozenset[frozenset[str]] = attrs.field(default=frozenset(), converter=_sets)

    def identifies(self, columns: Iterable[str]) -> bool:
        """Return whether no two rows that stand are equal in all of these columns.

        >>> totals = StreamColumns(unique=[["shop", "day"]])
        >>> totals.identifies(["day", "shop", "till"]), totals.identifies(["shop"])
        (True, False)
        """
        return any(each.issubset(columns) for each in self.unique)

    def also_unique(self, *columns: str) -> StreamColumns:
        """Return the same rows, which these columns are known to identify."""
        return attrs.evolve(self, unique=[*self.unique, columns])
