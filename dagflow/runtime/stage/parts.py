"""Parts of work items, and whether they make up the whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import attrs

from dagflow.model.operator.protocols import FollowsBlock
from dagflow.model.types.plain_data import decode, encode

_WHERE = "a position at which a work item was split"


class Part(NamedTuple):
    """A part of a work item: the item's number in the stage's plan, and a range of it; None: as far as the item goes.

    Positions are of any kind that has an order and is plain data: integers, strings, bytes, tuples of them.

    `completes`: of a part that has been read: when it had been, all of the item had.

    >>> Part(3)[:3], Part(3, 10, None).is_whole
    ((3, None, None), False)
    """

    number: int
    start: Any = None
    stop: Any = None
    completes: bool = False

    def to_list(self) -> list[Any]:
        """Return the part as plain data for records; the inverse of `part_of`."""
        values = [self.number, encode(self.start, _WHERE), encode(self.stop, _WHERE)]
        return [*values, True] if self.completes else values

    @property
    def is_whole(self) -> bool:
        """Return whether it is all of the item."""
        return self.start is None and self.stop is None

    @property
    def place(self) -> tuple[int, bool, Any]:
        """The key by which parts are sorted: by items, and by positions within each.

        >>> sorted([Part(1, 5), Part(1), Part(0, 7)], key=lambda part: part.place) == [Part(0, 7), Part(1), Part(1, 5)]
        True
        """
        return self.number, self.start is not None, 0 if self.start is None else self.start


def part_of(data: Sequence[Any]) -> Part:
    """Return the part for a list of its fields, as `to_list` has made it.

    >>> part_of(Part(1, b"a", ("b", 2)).to_list())
    Part(number=1, start=b'a', stop=('b', 2), completes=False)
    """
    if len(data) == 3 and data[1] is None and data[2] is None:  # of a million items, most are read as a whole
        return Part(data[0])
    number, start, stop, *completes = data
    return Part(number, _position(start), _position(stop), *completes)


def _position(data: Any) -> Any:
    """Return a position as its tracker knows it: a tuple for a list of plain data."""
    value = decode(data)
    return tuple(map(_position, value)) if isinstance(value, list) else value


def narrowed(item: Any, part: Part) -> Any:
    """Return a part of a work item as an item: the same block with another `start` or `stop`. It follows no other block."""
    changes: dict[str, Any] = {}
    if part.start is not None:
        changes["start"] = part.start
        if isinstance(item, FollowsBlock):
            changes["previous_block_id"] = -1  # that one is read elsewhere
    if part.stop is not None:
        changes["stop"] = part.stop
    return attrs.evolve(item, **changes)


def contains(outer: Part, inner: Part) -> bool:
    """Return whether a part lies within another one.

    >>> contains(Part(1, 5, None), Part(1, 7, 9)), contains(Part(1, 5, 9), Part(1, 7, None))
    (True, False)
    """
    if outer.number != inner.number:
        return False
    begins = outer.start is None or (inner.start is not None and inner.start >= outer.start)
    ends = outer.stop is None or (inner.stop is not None and inner.stop <= outer.stop)
    return begins and ends


def without(parts: Iterable[Part], gone: Iterable[Part]) -> list[Part]:
    """Return the rest of parts without others. Raises ValueError if these are not in them.

    >>> without([Part(1), Part(2)], [Part(2), Part(1, 5, 7)])
    [Part(number=1, start=None, stop=5, completes=False), Part(number=1, start=7, stop=None, completes=False)]
    """
    left = [[part] for part in parts]  # what is left of each
    of_item: dict[int, list[list[Part]]] = {}
    for pieces in left:
        of_item.setdefault(pieces[0].number, []).append(pieces)
    for part in gone:
        candidates = ((pieces, n) for pieces in of_item.get(part.number, ()) for n in range(len(pieces)))
        at = next(((pieces, n) for pieces, n in candidates if contains(pieces[n], part)), None)
        if at is None:
            raise ValueError(f"{part} was stolen from a task that does not own it")
        pieces, n = at
        whole = pieces[n]
        rest = []
        if part.start != whole.start:
            rest.append(Part(part.number, whole.start, part.start))
        if part.stop != whole.stop:
            rest.append(Part(part.number, part.stop, whole.stop))
        pieces[n : n + 1] = rest
    return [piece for pieces in left for piece in pieces]


def uncovered(parts: Iterable[Sequence[Any]], items: int) -> list[str]:
    """Return the problems of parts that do not make up a number of items, each byte once. Empty without any.

    The parts may be plain data, as `to_list` makes them: of a million parts, few are not whole items.

    >>> uncovered([Part(1, 5, None), Part(0), Part(1, None, 5)], 2)
    []
    >>> uncovered([Part(1, 5, None), Part(1, None, 4)], 2)
    ['item 0: it has not been read', 'item 1: 4 to 5 has not been read']
    """
    by_number: dict[int, list[Part]] = {}
    is_whole = bytearray(items)  # most items are read by one task
    for part in parts:
        number = part[0]
        if part[1] is None and part[2] is None and 0 <= number < items and not is_whole[number]:
            is_whole[number] = True
        else:
            by_number.setdefault(number, []).append(part if isinstance(part, Part) else part_of(part))
    wrong = [f"item {number}: there is no such item" for number in by_number if not 0 <= number < items]
    for number in range(items):
        if is_whole[number]:
            if number not in by_number:
                continue
            by_number[number].append(Part(number))
        mine = sorted(by_number.get(number, ()), key=lambda part: part.place)
        problem = _gap(mine) if mine else "it has not been read"
        if problem:
            wrong.append(f"item {number}: {problem}")
    return wrong


def _gap(parts: list[Part]) -> str | None:
    at: Any = None  # where it is read to; None: the item's own start
    for number, part in enumerate(parts):
        if number and part.start is None:
            return "it has been read twice"
        if part.start != at:
            if at is not None and part.start is not None and part.start < at:
                return f"{part.start} to {at} have been read twice"
            return f"{'its start' if at is None else at} to {part.start} has not been read"
        if part.stop is None and number < len(parts) - 1:
            return "its end has been read twice"
        at = part.stop
    return None if at is None else f"{at} to its end has not been read"
