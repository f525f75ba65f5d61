"""Join: the rows of two streams that have equal keys, and meet a condition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from operators.join.change import How
from operators.join.hash_join import HashJoin
from operators.names import one_or_more


@attrs.define(init=False)
class Join(HashJoin[Any, Any, Any]):
    """Join rows: each of `left` with all of `right` that have its key and meet a condition. `JOIN` of SQL.

    It is a `HashJoin` of rows over all input: what comes later meets what came before. The columns of the key come once.

    Args:
        on: the columns of the key: a name, names, or a mapping of names on the left side to those on the right. `()`: none, so
            each row of `left` is joined with all of `right` (a cross join), in one partition.
        how: `inner`; `left`, `right` or `full`, which also emit rows of that side, or of both, without a partner, with nulls for
            it; `semi` or `anti`, which emit the rows of `left` that have a partner, or do not have one.
        where: a condition, as an expression over the columns of joined rows: a column of the right side that the left one has
            too is called `NAME_right`. A row whose pairs do not meet it has no partner. An inner join tries the rows that come or
            go in a window; the other kinds all rows with its keys.
        properties: others of `HashJoin`, such as `suffix`.

    >>> from dagflow.testing import run_operator
    >>> from operators import col
    >>> import pyarrow as pa
    >>> orders = pa.table({"shop": ["a", "a", "b"], "day": [1, 5, 2]})
    >>> prices = pa.table({"shop": ["a", "a"], "since": [0, 4], "until": [4, 9], "price": [10, 12]})
    >>> join = Join("shop", how="left", where=col("day").between(col("since"), col("until") - 1))
    >>> rows = run_operator(join, {"left": [orders], "right": [prices]})["output"]
    >>> sorted((row["shop"], row["day"], row["price"]) for row in rows)
    [('a', 1, 10), ('a', 5, 12), ('b', 2, None)]
    """

    def __init__(
        self,
        on: str | Iterable[str] | Mapping[str, str] = (),
        how: How = "inner",
        where: Any = None,
        **properties: Any,
    ) -> None:
        if "by" not in properties:
            properties["by"] = one_or_more(on)
            if isinstance(on, Mapping):
                properties["right_by"] = tuple(on.values())
        self.__attrs_init__(how=how, where=where, **properties)  # pyright: ignore[reportAttributeAccessIssue]  # made by attrs
