"""Rules between the properties of a join."""

from __future__ import annotations

from collections.abc import Iterator

from dagflow.scan import TableSchema
from operators.aggregate.fields import names_of


def join_problems(
    by: object, right_by: object, combine: object, right_columns: str | None, how: str, scope: str, has_where: bool = False
) -> Iterator[str]:
    """Yield the problems of the properties of a join."""
    if scope == "window" and how not in ("inner", "left"):
        yield f'how={how!r} needs scope="all": the join of a window is "inner" or "left"'
    is_of_rows = scope == "all" and combine is None
    if has_where and not is_of_rows:
        yield 'where=… is a condition of joined rows: it needs scope="all", and no combine'
    if by == () and not is_of_rows:
        yield 'without a key, all rows are joined with all: that needs scope="all", and no combine'
    if combine is not None and how in ("semi", "anti"):
        yield f"how={how!r} emits rows of the left side as they are, so there is nothing for combine: name the key by columns"
    if by is None:
        yield "by is None: what is the key?"
        return
    if combine is None and (callable(by) or callable(right_by)):
        yield "a key that is a function needs combine=…, which makes a record of two; rows are joined by names"
    left, right = names_of(by), names_of(right_by)
    if left and right and len(left) != len(right):
        yield f"by names {len(left)} columns and right_by {len(right)}"
    if right_columns is not None:
        declared = TableSchema.of(right_columns).arrow.names
        missing = [name for name in right if name not in declared]
        if missing:
            yield f"right_columns lacks the key {', '.join(map(repr, missing))}: it must name all columns of the right side"
