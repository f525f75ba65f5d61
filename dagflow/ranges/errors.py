"""What is wrong with the use of a range: mostly a reader that breaks the rules of positions.

RunError
└── RangeError (ValueError)
    ├── NoRange              DF340
    ├── FirstNotSplitPoint   DF341
    ├── RecordBeforeRange    DF342
    ├── PositionsDecrease    DF343
    ├── SplitPointTwice      DF344
    ├── UnboundedRange       DF345
    ├── NoFraction           DF346
    └── KeyOutsideRange      DF347
"""

from __future__ import annotations

from typing import Any, ClassVar

from dagflow.errors import RunError
from dagflow.errors.base import error


def shown(position: object) -> str:
    """A position as messages have it: keys in hexadecimal digits."""
    return f"[{position.hex()}]" if isinstance(position, bytes) else str(position)


@error
class RangeError(RunError, ValueError):
    """A range, or a position in one, breaks a rule. No fault of a record: `on_error` does not let it pass."""

    code: ClassVar[str] = "DF339"
    is_fatal: ClassVar[bool] = True


@error
class NoRange(RangeError):
    """A range ends before it starts."""

    start: Any
    stop: Any
    code: ClassVar[str] = "DF340"

    def message(self) -> str:
        return f"a range starts at {shown(self.start)} and stops at {shown(self.stop)}, before its start: give (start, stop), start <= stop"


@error
class FirstNotSplitPoint(RangeError):
    """The first record that is returned of a range is no split point."""

    position: Any
    start: Any
    stop: Any
    code: ClassVar[str] = "DF341"

    def message(self) -> str:
        return (
            f"the first record returned of the range [{shown(self.start)}, {shown(self.stop)}) is at {shown(self.position)} and no split point:\n"
            "  the reader is in the middle of what cannot be divided, which belongs to the range before\n"
            "  help: skip to the first split point at or after the range's start, and claim that one first"
        )


@error
class RecordBeforeRange(RangeError):
    """A split point lies before the start of the range that is read."""

    position: Any
    start: Any
    code: ClassVar[str] = "DF342"

    def message(self) -> str:
        return (
            f"the split point at {shown(self.position)} lies before the range's start, {shown(self.start)}: the range before returns it too\n"
            "  help: skip to the first split point at or after the start"
        )


@error
class PositionsDecrease(RangeError):
    """A record lies before the one that was returned last."""

    position: Any
    last: Any
    code: ClassVar[str] = "DF343"

    def message(self) -> str:
        return f"the record at {shown(self.position)} comes after the one at {shown(self.last)}: a range's records come in the order of their positions"


@error
class SplitPointTwice(RangeError):
    """Two split points have one position."""

    position: Any
    last: Any
    code: ClassVar[str] = "DF344"

    def message(self) -> str:
        return (
            f"the split point at {shown(self.position)} has the position of the split point before it, {shown(self.last)}: no range could hold one of them only\n"
            "  help: claim each split point once; records that share a position with one are no split points (is_at_split_point=False)"
        )


@error
class UnboundedRange(RangeError):
    """A fraction is asked for of a range that has no end."""

    start: Any
    code: ClassVar[str] = "DF345"

    def message(self) -> str:
        return f"the range from {shown(self.start)} on has no end, so there is no position at a fraction of it: split it at a position first"


@error
class NoFraction(RangeError):
    """A fraction is not between 0 and 1."""

    fraction: Any
    code: ClassVar[str] = "DF346"

    def message(self) -> str:
        return f"a fraction of a range lies between 0 and 1, but {self.fraction!r} does not"


@error
class KeyOutsideRange(RangeError):
    """A key is not in a range."""

    key: Any
    start: Any
    stop: Any
    code: ClassVar[str] = "DF347"

    def message(self) -> str:
        end = shown(self.stop) if self.stop else "no end"
        return f"the key {shown(self.key)} is not in the range from {shown(self.start)} to {end}"
