"""The differences between two lists of records, in words."""

from __future__ import annotations

import pickle
from typing import Any


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same: also where `==` says no, as for NaN, or does not answer, as for arrays."""
    try:
        if bool(one == other):
            return True
    except ValueError:
        pass
    if isinstance(one, (list, tuple)) and isinstance(other, type(one)):
        return len(one) == len(other) and all(map(equal, one, other))
    try:
        return pickle.dumps(one) == pickle.dumps(other)
    except Exception:  # noqa: BLE001  # what cannot be pickled is not the same
        return False


def difference(expected: list[Any], found: list[Any]) -> str:
    """Lines that say which records were lost, came twice, or are new, near the first difference.

    >>> print(difference(["a", "b", "c"], ["a", "a", "c"]))
    <BLANKLINE>
      twice 'a'
      lost  'b'
      (3 records expected, 3 found)
    """
    first = next(
        (i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if not equal(a, b)), min(len(expected), len(found))
    )
    told, seen = [], [*found[:first]]
    for record in found[first : first + 20]:
        is_known = any(equal(record, known) for known in expected)
        if not is_known or any(equal(record, known) for known in seen):
            told.append(f"{'twice' if is_known else 'new  '} {record!r:.200}")
        seen.append(record)
    told += [f"lost  {record!r:.200}" for record in expected[first : first + 20] if not any(equal(record, f) for f in found)]
    told = told or [f"order {record!r:.200}" for record in found[first : first + 3]]
    return "".join(f"\n  {line}" for line in told[:6]) + f"\n  ({len(expected)} records expected, {len(found)} found)"
