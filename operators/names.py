"""Properties that hold names: of columns, topics or subjects."""

from __future__ import annotations

from collections.abc import Iterable


def one_or_more(value: Iterable[str] | str) -> tuple[str, ...]:
    """Return names as a tuple; one of them may come alone.

    >>> one_or_more("id"), one_or_more(["country", "id"])
    (('id',), ('country', 'id'))
    """
    return (value,) if isinstance(value, str) else tuple(value)
