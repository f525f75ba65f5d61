"""Parts that several expressions share, so that each is computed once."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping

from operators.expressions.columns import Expression, col


def without_repeats(expressions: Mapping[str, Expression]) -> tuple[dict[str, Expression], dict[str, Expression]]:
    """Return the largest parts that are there several times, and the expressions with columns in their place, both by name.

    What stands in a `when` is left alone: it has values for some rows only, and may be an error for others.

    >>> from operators import col
    >>> paid = col("price") * (1 - col("discount"))
    >>> without_repeats({"paid": paid, "charged": col("price") * (1 - col("discount")) * (1 + col("tax"))})
    ({'$part 0': col('price') * (1 - col('discount'))}, {'paid': col('$part 0'), 'charged': col('$part 0') * (1 + col('tax'))})
    """
    counts: Counter[str] = Counter()
    for each in expressions.values():
        counts.update(_texts(each, counts))
    names = {text: f"$part {number}" for number, text in enumerate(text for text, count in counts.items() if count > 1)}
    parts: dict[str, Expression] = {}
    rest = {name: _replaced(each, names, parts) for name, each in expressions.items()} if names else dict(expressions)
    return parts, rest


def _texts(expression: Expression, known: Mapping[str, int]) -> Iterator[str]:
    """Yield the texts of an expression and its parts, but not of the parts of what is known."""
    if expression.operation not in ("col", "lit", "when"):
        text = repr(expression)
        is_known = text in known
        yield text
        for operand in () if is_known else expression.operands:
            yield from _texts(operand, known)


def _replaced(expression: Expression, names: Mapping[str, str], parts: dict[str, Expression]) -> Expression:
    if expression.operation in ("col", "lit", "when"):
        return expression
    if (name := names.get(repr(expression))) is not None:
        parts[name] = expression
        return col(name)
    other = copy.copy(expression)
    object.__setattr__(other, "operands", tuple(_replaced(each, names, parts) for each in expression.operands))
    return other
