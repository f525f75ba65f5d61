"""The rows that come into a result and leave it, counted until it is emitted."""

from __future__ import annotations

from collections.abc import Sequence

from dagflow import OperatorContext


def added_up(parts: Sequence[Sequence[int]]) -> list[int]:
    """Return the sums of the counts that partitions have kept: rows inserted, rows retracted.

    >>> added_up([[1, 0], [2, 5]])
    [3, 5]
    """
    return [sum(column) for column in zip(*parts, strict=True)]


def count_changes(context: OperatorContext, kept: Sequence[int], inserted: int, retracted: int) -> list[int]:
    """Add a window's counts to those that are kept, and count all of them at an emission point. Return those to be kept."""
    inserted, retracted = added_up([kept, [inserted, retracted]])
    if not context.emits:
        return [inserted, retracted]
    context.count_result(inserted, retracted)
    return [0, 0]
