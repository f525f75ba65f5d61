"""How a window's work items are dealt to partitions."""

from __future__ import annotations

from collections.abc import Sequence


def deal(weights: Sequence[int], partitions: int) -> list[int]:
    """The partition of every item: neighbours stay together, weights are shared as evenly as whole items allow.

    >>> deal([1, 1, 1, 1], 2)
    [0, 0, 1, 1]
    >>> deal([10, 1, 1], 2)
    [0, 1, 1]
    """
    total = sum(weights) or len(weights)
    whole = sum(weights) > 0
    places = []
    before = 0
    for weight in weights:
        own = weight if whole else 1
        middle = before + own / 2
        places.append(min(partitions - 1, int(middle * partitions / total)))
        before += own
    return places
