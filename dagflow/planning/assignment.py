"""The assignment of a window's work items to partitions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence


def assign(weights: Sequence[int], partitions: int) -> list[int]:
    """Return the partition of every item. Neighbours stay together; weights are spread as evenly as items allow.

    >>> assign([1, 1, 1, 1], 2)
    [0, 0, 1, 1]
    >>> assign([10, 1, 1], 2)
    [0, 1, 1]
    """
    if len(weights) <= partitions:  # an item each; empty partitions come last
        return list(range(len(weights)))
    total = sum(weights) or len(weights)
    is_weighted = sum(weights) > 0
    places = []
    before = 0
    for weight in weights:
        size = weight if is_weighted else 1
        middle = before + size / 2
        places.append(min(partitions - 1, int(middle * partitions / total)))
        before += size
    return places


def assign_groups(
    weights: Sequence[int],
    groups: Sequence[Hashable | None],
    partitions: int,
    before: Mapping[Hashable, int] | None = None,
) -> list[int]:
    """Return the partition of every item. All items of a group go to one partition; None: the item is a group of its own.

    Groups are assigned as `assign` assigns items, in the order of their first items. A group of which the window before had items
    keeps its partition (`before`), if that still exists.

    >>> assign_groups([1, 1, 1, 1], ["a", "a", "a", "b"], 2)
    [0, 0, 0, 1]
    >>> assign_groups([1, 1, 1, 1], ["a", "a", "a", "b"], 2, {"a": 1})
    [1, 1, 1, 1]
    """
    names: list[Hashable] = [("", number) if group is None else ("group", group) for number, group in enumerate(groups)]
    sizes: dict[Hashable, int] = {}
    for name, weight in zip(names, weights, strict=True):
        sizes[name] = sizes.get(name, 0) + weight
    places = dict(zip(sizes, assign(list(sizes.values()), partitions), strict=True))
    for group, partition in (before or {}).items():
        if ("group", group) in places and partition < partitions:
            places["group", group] = partition
    return [places[name] for name in names]
