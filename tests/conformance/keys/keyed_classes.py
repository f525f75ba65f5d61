"""Classes that are keys, each with several forms of equal keys, and operators that bring them together."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import attrs

from dagflow import InputPort, Operator, OperatorContext, OutputPort, ReaderRecord

K = TypeVar("K")

GROUPS = 20


@attrs.frozen
class Noted:
    """A field does not take part in `==`."""

    name: str
    note: int = attrs.field(eq=False)


@attrs.frozen
class Folded:
    """A field is compared by what a function makes of it."""

    name: str = attrs.field(eq=str.lower)


@attrs.frozen
class Nested:
    noted: Noted
    folded: Folded | None


@dataclasses.dataclass(frozen=True)
class Compared:
    name: str
    note: int = dataclasses.field(compare=False)


class Pair(NamedTuple):
    one: float
    folded: Folded


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 1


class Share(float, enum.Enum):
    HALF = 0.5


_EAST = datetime.timezone(datetime.timedelta(hours=5))
_WEST = datetime.timezone(-datetime.timedelta(hours=5))


def _number(group: int, form: int) -> Any:
    if group == 1 and form % 2:
        return (True, Level.HIGH)[form // 2 % 2]
    return (group, float(group), decimal.Decimal(group).scaleb(3).scaleb(-3), decimal.Decimal(f"{group}.00"))[form % 4]


def _fraction(group: int, form: int) -> Any:
    if group == 0:
        return (0.5, Share.HALF, decimal.Decimal("0.50"))[form % 3]
    return decimal.Decimal(group) + decimal.Decimal(("0.1", "0.10")[form % 2])


def _last_instant(group: int, form: int) -> datetime.datetime:
    """Of the last hours that there are, beyond them in UTC."""
    here = datetime.datetime(9999, 12, 31, 23, group, tzinfo=_WEST)
    return here if form % 2 else here.replace(hour=22, tzinfo=datetime.timezone(-datetime.timedelta(hours=6)))


def _instant(group: int, form: int) -> datetime.datetime:
    there = datetime.datetime(2026, 1, 1, group, tzinfo=datetime.UTC)
    return there.astimezone((_EAST, _WEST, datetime.UTC)[form % 3])


def _noted(group: int, form: int) -> Noted:
    return Noted(f"n{group}", form)


def _folded(group: int, form: int) -> Folded:
    return Folded((f"Name{group}", f"NAME{group}", f"name{group}")[form % 3])


def _nested(group: int, form: int) -> Nested:
    return Nested(_noted(group, form), None if group % 7 == 3 else _folded(group, form))


KINDS: dict[str, tuple[Any, Callable[[int, int], Any]]] = {
    "a field that is not compared": (Noted, _noted),
    "a field that is compared by its lower case": (Folded, _folded),
    "a class in a class": (Nested, _nested),
    "a dataclass": (Compared, lambda group, form: Compared(f"n{group}", form)),
    "a named tuple": (Pair, lambda group, form: Pair((group, float(group))[form % 2], _folded(group, form))),
    "enumerations": (object, lambda group, form: (Colour.RED, Colour.GREEN, "RED")[group % 3] if group < 3 else group),
    "numbers": (object, _number),
    "fractions": (object, _fraction),
    "zeros": (float, lambda group, form: float(group) * (1.0, -1.0)[form % 2 if group == 0 else 0]),
    "large integers": (object, lambda group, form: (10**30 + group, decimal.Decimal(10**30 + group))[form % 2]),
    "instants in several zones": (object, _instant),
    "the last instants": (object, _last_instant),
    "times of day": (
        object,
        lambda group, form: datetime.time(*((12, group), (17, group))[form % 2], tzinfo=(datetime.UTC, _EAST)[form % 2]),
    ),
    "none": (object, lambda group, form: group or None),
}
"""By name the type of the keys, and what makes the key of a group in one of its forms."""


@attrs.frozen
class Item(Generic[K]):
    key: K
    group: int


@attrs.define
class MakeItems(Operator, Generic[K]):
    """Makes an item of each line, which is a number."""

    kind: str
    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[Item[K]]()

    @input.stream
    def each(self, lines: Iterator[ReaderRecord[str]]) -> None:
        make = KINDS[self.kind][1]
        self.output.emit_all(
            Item(make(int(line.record) % GROUPS, int(line.record) // GROUPS), int(line.record) % GROUPS) for line in lines
        )


@attrs.define
class Place(Operator, Generic[K]):
    """Says in which partition each item is."""

    input = InputPort[Item[K]](partition_by="key")
    output = OutputPort[tuple[int, int]]()

    def setup(self, context: OperatorContext) -> None:
        self.__dict__["partition"] = context.partition

    @input.process
    def each(self, item: Item[K]) -> None:
        self.output.emit((item.group, self.__dict__["partition"]))
