"""Which files are read at all, told by what their paths say."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import pyarrow as pa

from dagflow.errors import ProjectionError
from dagflow.scan import FileFacts, is_implicit, to_type, value_of_key
from operators.formats.predicates import Predicate


@attrs.define
class PathFilter:
    """Conditions on what paths say: keys of folders (`year=2024`), `filename`, `dir0`.

    `keys`: the types of the keys' values; what files are asked for only once.

    >>> years = PathFilter((Predicate("year", ">=", 2024),), {"year": "int64"})
    >>> [years.keeps(FileFacts.of(f"/w/year={year}/f", "/w")) for year in (2023, 2024)]
    [False, True]
    """

    conditions: tuple[Predicate, ...]
    keys: Mapping[str, str]
    _known: dict[str, bool] = attrs.field(init=False, factory=dict)

    def check(self) -> None:
        """Raise ProjectionError for a condition on what paths do not say."""
        for condition in self.conditions:
            name = condition.column
            if name not in self.keys and (not is_implicit(name) or name == "block_offset"):
                names = ", ".join((*self.keys, "filename", "filepath", "fqn", "suffix", "dir0, …"))
                raise ProjectionError(
                    f"where has a condition on {name!r}, which paths do not say; they say {names}",
                    "conditions on columns belong to the format (ParquetFormat(where=…)), or to a Filter behind the reader",
                )

    def keeps(self, facts: FileFacts) -> bool:
        """Return True if all conditions hold for a file. Raises ValueMisfit for values that cannot be compared, KeyMisfit."""
        is_kept = self._known.get(facts.path)
        if is_kept is None:
            is_kept = self._known[facts.path] = all(self._holds(condition, facts) for condition in self.conditions)
        return is_kept

    def _holds(self, condition: Predicate, facts: FileFacts) -> bool:
        name = condition.column
        is_key = name in self.keys
        text = facts.keys.get(name) if is_key else facts.value(name)
        value = value_of_key(name, text, to_type(self.keys[name]), facts.path) if is_key else pa.scalar(text, pa.string())
        table = pa.table({name: pa.repeat(value, 1)})
        return bool(table.filter(condition.expression(table.schema, facts.path)).num_rows)
