"""A part of a work item: how much it is, and where it can be cut. Positions mean something to its tracker only."""

from __future__ import annotations

import functools
from typing import Any

import attrs

from dagflow.model.plain import shown
from dagflow.model.protocols import DividesItems, WeighsItems
from dagflow.ranges import RangeTracker, SplitsItems
from dagflow.ranges.splitting import cut_at, cuts, fraction_at, tracker_between
from dagflow.runtime.stage.parts import Part, narrowed

LEAST = 64  # of a part that weighs less, a record that is being read is taken to be at least one of so many
NEXT_TO_NOTHING = (
    1e-9  # of an item: a part of it is at least that, also where its positions lie too near to one another for fractions
)


@attrs.frozen
class Held:
    """A part of an item that a task has: the item as it travels and as its operator gets it, and how much the part is.

    `weight`: of a part, the item's share of what the operator says of all of it.
    """

    part: Part
    item: tuple[str, str, Any]
    value: Any
    operator: Any
    weight: float
    can_cut: bool

    @classmethod
    def of(cls, part: Part, item: Any, value: Any, operator: Any) -> Held:
        """What the operator says of an item: `can_split(value)` and `item_weight(value)`, where it has them."""
        whole, can_cut = weight_of(operator, value), _can_cut(operator, value)
        weight = max(whole * NEXT_TO_NOTHING, whole * _share(operator, value, part)) if can_cut else whole
        return cls(part, item, value, operator, weight, can_cut)

    @property
    def start(self) -> Any:
        """The position at which it starts; None: the item says."""
        return getattr(self.value, "start", None) if self.part.start is None else self.part.start

    @property
    def stop(self) -> Any:
        """The position at which it stops; None: the item says."""
        return getattr(self.value, "stop", None) if self.part.stop is None else self.part.stop

    @property
    def least(self) -> float:
        """How much a record is taken to be while nothing else is known."""
        return min(1.0, self.weight / LEAST)

    def tracker(self) -> RangeTracker[Any] | None:
        """A new tracker of its range; None where it cannot be cut."""
        if not self.can_cut:
            return None
        return _tracker(self.operator, self.value if self.part.is_whole else narrowed(self.value, self.part))

    def cut(self, fraction: float) -> tuple[Held, Held] | None:
        """Two parts, cut at about a fraction; None: no position lies there."""
        tracker = self.tracker()
        position = None if tracker is None else cut_at(tracker, fraction)
        if tracker is None or position is None:
            return None
        first = fraction_at(tracker, position)
        number, start, stop = self.part[:3]
        return (
            attrs.evolve(self, part=Part(number, start, position), weight=self.weight * first),
            attrs.evolve(self, part=Part(number, position, stop), weight=self.weight * (1 - first)),
        )

    def pieces(self, count: int) -> list[Held]:
        """At most so many parts, about equally large."""
        tracker = self.tracker()
        between = [] if tracker is None else list(cuts(tracker, count))
        number, start, stop = self.part[:3]
        bounds = [start, *between, stop]
        parts = [Part(number, bounds[n], bounds[n + 1]) for n in range(len(bounds) - 1)]
        return [Held.of(part, self.item, self.value, self.operator) for part in parts]

    @property
    def name(self) -> str:
        """What it is called where users read of it."""
        path = getattr(self.value, "file_path", None)
        if path is None:
            return f"{shown(self.value)} of {self.item[0]!r}"
        start = getattr(self.value, "start", 0)
        return f"{path} from byte {start} on" if start else str(path)


def weight_of(operator: Any, value: Any) -> float:
    """How much an item is: what its operator says (`item_weight`), the size of a range of integers, else 1."""
    if _is(operator, WeighsItems):
        return max(1.0, float(operator.item_weight(value)))
    start, stop = getattr(value, "start", None), getattr(value, "stop", None)
    return float(max(1, stop - start)) if isinstance(start, int) and isinstance(stop, int) else 1.0


def _can_cut(operator: Any, value: Any) -> bool:
    return (
        _is(operator, DividesItems)
        and bool(operator.can_split(value))
        and (_is(operator, SplitsItems) or isinstance(value.start, int | bytes))
    )


def _is(operator: Any, protocol: Any) -> bool:
    kind: Any = type(operator)
    return _has(kind, protocol)


@functools.cache  # the test of a protocol costs microseconds
def _has(kind: Any, protocol: Any) -> bool:
    return issubclass(kind, protocol)


def _tracker(operator: Any, value: Any) -> RangeTracker[Any] | None:
    if _is(operator, SplitsItems):
        made: RangeTracker[Any] = operator.tracker_of(value)
        return made
    return tracker_between(value.start, value.stop)


def _share(operator: Any, value: Any, part: Part) -> float:
    """How much of an item a part of it is, from 0 to 1."""
    if part.is_whole:
        return 1.0
    whole = _tracker(operator, value)
    assert whole is not None
    first = 0.0 if part.start is None else fraction_at(whole, part.start)
    return (1.0 if part.stop is None else fraction_at(whole, part.stop)) - first
