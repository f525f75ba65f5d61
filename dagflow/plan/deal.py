"""How a window's work items are dealt to partitions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence


def deal(weights: Sequence[int], partitions: int) -> list[int]:
    """The partition of every item: neighbours stay together, weights are shared as evenly as whole items allow.

    >>> deal([1, 1, 1, 1], 2)
    [0, 0, 1, 1]
    >>> deal([10, 1, 1], 2)
    [0, 1, 1]
    """
    if len(weights) <= partitions:  # then nothing is to be shared; empty partitions come last
        return list(range(len(weights)))
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


def deal_groups(
    weights: Sequence[int],
    groups: Sequence[Hashable | None],
    partitions: int,
    before: Mapping[Hashable, int] | None = None,
) -> list[int]:
    """The partition of every item, where all items of a group go to one; None: the item is a group of its own.

    Groups are dealt as `deal` deals items, in the order of their first items. A group of which the window before had items stays
    with the partition that it had then (`before`), where there still is one.

    >>> deal_groups([1, 1, 1, 1], ["a", "a", "a", "b"], 2)
    [0, 0, 0, 1]
    >>> deal_groups([1, 1, 1, 1], ["a", "a", "a", "b"], 2, {"a": 1})
    [1, 1, 1, 1]
    """
    names: list[Hashable] = [("", number) if group is None else ("group", group) for number, group in enumerate(groups)]
    whole: dict[Hashable, int] = {}
    for name, weight in zip(names, weights, strict=True):
        whole[name] = whole.get(name, 0) + weight
    places = dict(zip(whole, deal(list(whole.values()), partitions), strict=True))
    for group, partition in (before or {}).items():
        if ("group", group) in places and partition < partitions:
            places["group", group] = partition
    return [places[name] for name in names]
