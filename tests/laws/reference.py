"""The reference: keyed operators as functions of multisets of rows, in plain Python. Nothing is optimised, and sums are exact."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.laws.columns import INFINITY, NAN, Row, Rows

Key = tuple[Any, ...]


def where(rows: Rows, predicate: Callable[[Row], bool]) -> Rows:
    """Return the rows for which a predicate holds."""
    return Counter({row: n for row, n in rows.items() if predicate(row)})


def flat_map(rows: Rows, function: Callable[[Row], Iterable[Row]]) -> Rows:
    """Return the results of a function of rows."""
    results: Rows = Counter()
    for row, n in rows.items():
        for result in function(row):
            results[result] += n
    return results


def union(several: Sequence[Rows]) -> Rows:
    """Return the rows of several streams."""
    return sum(several, Counter())


def picked(row: Row, at: Sequence[int]) -> Key:
    """Return some values of a row."""
    return tuple(row[each] for each in at)


def groups_of(rows: Rows, by: Sequence[int]) -> dict[Key, Rows]:
    """Return the rows of each key. Nulls are one key, and so are all NaN."""
    groups: dict[Key, Rows] = {}
    for row, n in rows.items():
        groups.setdefault(picked(row, by), Counter())[row] += n
    return groups


def aggregated(function: str, values: Sequence[Any]) -> Any:
    """Return an aggregate of the values of a group; nulls are none."""
    values = [value for value in values if value is not None]
    if function == "count":
        return len(values)
    if function == "count_distinct":
        return len({rank_of(value) for value in values})
    if not values:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, key=rank_of)
    if function == "collect":
        return tuple(sorted(values, key=rank_of))
    if function == "quantile":
        return exact_quantile(values)
    if function == "stddev":
        return exact_stddev(values)
    if function == "sum":
        return rounded(total_of(values), 1) if isinstance(values[0], float) else sum(values)
    return rounded(total_of(values), len(values))


def total_of(values: Sequence[Any]) -> Fraction | float:
    """Return the exact sum of numbers, or the one that is not finite."""
    odd = {value for value in values if isinstance(value, float) and not math.isfinite(value)}
    if not odd:
        return sum(map(Fraction, values), Fraction(0))
    return odd.pop() if len(odd) == 1 else NAN


def rounded(total: Fraction | float, count: int) -> float:
    """Return a total by a count, rounded once."""
    if isinstance(total, float):
        return total
    try:
        return float(total / count)
    except OverflowError:
        return INFINITY if total > 0 else -INFINITY


def grouped(
    rows: Rows, by: Sequence[int], aggregates: Sequence[tuple[str, int | None]], orders: Sequence[Sequence[int]] = ()
) -> Rows:
    """Return a row for each group: its key, and aggregates of columns; without a column, of the rows.

    `orders`: for each aggregate, the columns that decide which row is the first; none for most.
    """

    def result(every: Sequence[Row], what: str, at: int | None, order: Sequence[int]) -> Any:
        if at is None:
            return len(every)
        return of_row(what, every, at, order) if order else aggregated(what, [row[at] for row in every])

    results: Rows = Counter()
    each = list(zip(aggregates, orders or [()] * len(aggregates), strict=True))
    for key, group in groups_of(rows, by).items():
        every = list(group.elements())
        results[*key, *(result(every, what, at, order) for (what, at), order in each)] += 1
    return results


_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  # times with a zone are in UTC
_MICROSECOND = dt.timedelta(microseconds=1)


def windows_of(value: Any, size: int, slide: int, offset: int) -> list[tuple[Any, Any]] | None:
    """Return the starts and ends of the time windows that a date or a datetime is in; None where one is not within 1 to 9999.

    Durations are in microseconds. The first window that ends after the time is looked for; then the others, one by one.
    """
    if value is None:
        return [(None, None)]
    is_day, zone = not isinstance(value, dt.datetime), getattr(value, "tzinfo", None)
    at = (dt.datetime(value.year, value.month, value.day) if is_day else value.replace(tzinfo=None)) - _EPOCH  # noqa: DTZ001
    time = at // _MICROSECOND
    start = math.ceil(Fraction(time - size - offset + 1, slide)) * slide + offset
    found = []
    try:
        while start <= time:
            both = tuple((_EPOCH + each * _MICROSECOND).replace(tzinfo=zone) for each in (start, start + size))
            found.append(tuple(each.date() for each in both) if is_day else both)
            start += slide
    except OverflowError:
        return None
    return found


def of_row(function: str, rows: Sequence[Row], at: int, order: Sequence[int]) -> Any:
    """Return the value of a column in the first row or the last one. Nulls are never preferred; NaN is the largest number."""
    if function.startswith("arg_"):
        rows = [row for row in rows if row[order[0]] is not None]
    if not rows:
        return None
    if function in ("first", "arg_min"):
        return min(rows, key=lambda row: [rank_of(row[each]) for each in order])[at]
    return max(rows, key=lambda row: [(-1,) if row[each] is None else rank_of(row[each]) for each in order])[at]


def distinct(rows: Rows, by: Sequence[int]) -> Rows:
    """Return the different values of some columns."""
    return Counter({picked(row, by): 1 for row in rows})


def rank_of(value: Any) -> tuple[Any, ...]:
    """Return what values are compared by: numbers before NaN, and nulls last."""
    if value is None:
        return (2,)
    return (1,) if value != value else (0, value)


def in_order(rows: Iterable[Row], columns: Sequence[tuple[int, bool]]) -> list[Row]:
    """Return rows in the order of columns, each with whether it descends. NaN and nulls come last in either case."""
    ordered = list(rows)
    for at, descends in reversed(columns):
        if descends:
            ordered.sort(key=lambda row: (rank_of(row[at])[0] == 0, rank_of(row[at])[0] == 1, rank_of(row[at])), reverse=True)
        else:
            ordered.sort(key=lambda row: rank_of(row[at]))
    return ordered


def top(rows: Rows, n: int, of: int, by: Sequence[int], ties: Sequence[int], *, smallest: bool) -> Rows:
    """Return the first `n` rows of each key in the order of a column, then of all columns in ascending order."""
    with_value = where(rows, lambda row: rank_of(row[of])[0] == 0)
    order = [(of, not smallest), *((at, False) for at in ties)]
    return Counter(
        itertools.chain.from_iterable(in_order(group.elements(), order)[:n] for group in groups_of(with_value, by).values())
    )


def top_in_order(rows: Rows, n: int, by: Sequence[int], order: Sequence[tuple[int, bool]], ties: Sequence[int]) -> Rows:
    """Return the first `n` rows of each key in the order of columns, as `first_in_order` does."""
    groups = groups_of(rows, by).values()
    return sum((first_in_order(group, n, order, ties, nulls_first=False) for group in groups), Counter())


def first_in_order(
    rows: Rows, limit: int | None, order: Sequence[tuple[int, bool]], ties: Sequence[int], *, nulls_first: bool
) -> Rows:
    """Return the first rows in the order of columns, each with whether it descends; then of all columns in ascending order.

    NaN is larger than all numbers, and nulls are first or last in either case.
    """
    ordered = in_order(rows.elements(), [(at, False) for at in ties])
    for at, descends in reversed(order):
        ordered.sort(key=lambda row: () if row[at] is None else rank_of(row[at]), reverse=descends)
        ordered.sort(key=lambda row: (row[at] is None) != nulls_first)
    return Counter(ordered[:limit])


def first_of_each(rows: Rows, by: Sequence[int], order_by: Sequence[int], ties: Sequence[int], *, last: bool) -> Rows:
    """Return the first row, or the last one, of each key in the order of some columns, then of all columns."""
    order = [(at, last) for at in (*order_by, *ties)]
    return Counter(in_order(group, order)[0] for group in groups_of(rows, by).values())


def joined(
    left: Rows,
    right: Rows,
    by: Sequence[int],
    right_by: Sequence[int],
    how: str,
    widths: tuple[int, int],
    holds: Callable[[Row, Row], bool] = lambda row, other: True,
) -> Rows:
    """Return the joined rows: the columns of the left side, then those of the right one but its key. A null matches nothing.

    `widths`: the number of columns of each side. `holds`: a further condition of two rows with equal keys.
    """
    others = [at for at in range(widths[1]) if at not in right_by]
    partners, results, matched = groups_of(right, right_by), Counter[Row](), set[Row]()
    for row, n in left.items():
        key = picked(row, by)
        found = {} if None in key else {other: m for other, m in partners.get(key, {}).items() if holds(row, other)}
        matched |= found.keys()
        if how == "semi" or how == "anti":
            if bool(found) == (how == "semi"):
                results[row] += n
            continue
        for other, m in found.items():
            results[*row, *picked(other, others)] += n * m
        if not found and how in ("left", "full"):
            results[*row, *(None for _ in others)] += n
    if how in ("right", "full"):
        for key, group in partners.items():
            for other, m in group.items():
                if other not in matched:
                    results[*(key[by.index(at)] if at in by else None for at in range(widths[0])), *picked(other, others)] += m
    return results


SHARE = 0.3
"""The share of quantiles."""


def exact_quantile(values: Sequence[Any]) -> float | None:
    """Return the quantile of values, texts of them for decimals: between two floats in proportion."""
    numbers = sorted((float(value) for value in values), key=rank_of)
    if not numbers:
        return None
    at = SHARE * (len(numbers) - 1)
    low, high = numbers[math.floor(at)], numbers[math.ceil(at)]
    return low if at == math.floor(at) else low + (high - low) * (at - math.floor(at))


def exact_stddev(values: Sequence[Any]) -> float | None:
    """Return the sample standard deviation of values, texts of them for decimals, rounded once; None for less than two."""
    if len(values) < 2:
        return None
    if any(isinstance(value, float) and not math.isfinite(value) for value in values):
        return NAN
    numbers = [Fraction(value) for value in values]
    middle = sum(numbers, Fraction(0)) / len(numbers)
    square = sum(((number - middle) ** 2 for number in numbers), Fraction(0)) / (len(numbers) - 1)
    shift = max(0, 64 + (square.denominator.bit_length() - square.numerator.bit_length()) // 2 + 1)  # 128 bits of the root
    whole = square * 4 ** (shift + 64)
    root = math.isqrt(whole.numerator // whole.denominator)
    return float(Fraction(2 * root + (root * root != whole), 2 ** (shift + 65)))  # beyond the half, where it is


def exact_sum(values: Sequence[Any]) -> float:
    """Return the sum of floats, rounded once: the aggregate of DuckDB, whose own is rounded with each value."""
    return rounded(total_of(values), 1)


def exact_mean(values: Sequence[Any]) -> float:
    """Return the mean of numbers, rounded once."""
    return rounded(total_of([Decimal(value) if isinstance(value, str) else value for value in values]), len(values))
