"""Errors in the use of a range, mostly of a reader that breaks the rules of positions."""

from __future__ import annotations

from typing import Any

from dagflow.errors import RunError
from dagflow.errors.base import error


@error("DF339", is_fatal=True)
class RangeError(RunError, ValueError):
    """A range, or a position in one, breaks a rule. It is not the fault of a record, so `on_error` does not skip it."""


@error("DF340")
class NoRange(RangeError):
    """A range ends before it starts."""

    start: Any
    stop: Any
    template = "a range starts at {start} and stops at {stop}, before its start: give (start, stop), start <= stop"
    example = {"start": 10, "stop": 4}
    general_remedy = "give (start, stop) with start <= stop"


@error("DF341")
class FirstNotSplitPoint(RangeError):
    """The first record returned from a range is not a split point."""

    position: Any
    start: Any
    stop: Any
    template = (
        "the first record returned of the range [{start}, {stop}) is at {position}, which is not a split point:\n"
        "  the reader is within a group of records that cannot be divided, which belongs to the range before\n"
        "  help: skip to the first split point at or after the range's start, and claim that one first"
    )
    example = {"position": 12, "start": 10, "stop": 20}


@error("DF342")
class RecordBeforeRange(RangeError):
    """A split point lies before the start of the range."""

    position: Any
    start: Any
    template = (
        "the split point at {position} lies before the range's start, {start}: the range before returns it too\n"
        "  help: skip to the first split point at or after the start"
    )
    example = {"position": 8, "start": 10}


@error("DF343")
class PositionsDecrease(RangeError):
    """A record lies before the record that was returned before it."""

    position: Any
    last: Any
    template = "the record at {position} comes after the one at {last}: a range's records come in the order of their positions"
    example = {"position": 12, "last": 14}
    general_remedy = "return the records of a range in the order of their positions"


@error("DF344")
class SplitPointTwice(RangeError):
    """Two split points have the same position."""

    position: Any
    last: Any
    template = (
        "the split point at {position} has the position of the split point before it, {last}: "
        "no range could hold one of them only\n"
        "  help: claim each split point once; records that share its position are not split points (is_at_split_point=False)"
    )
    example = {"position": 12, "last": 12}


@error("DF345")
class UnboundedRange(RangeError):
    """A position at a fraction of a range without an end."""

    start: Any
    template = "the range from {start} on has no end, so there is no position at a fraction of it: split it at a position first"
    example = {"start": 10}
    general_remedy = "split the range at a position first"


@error("DF346")
class NoFraction(RangeError):
    """A fraction is not between 0 and 1."""

    fraction: Any
    template = "a fraction of a range lies between 0 and 1, but {fraction!r} does not"
    example = {"fraction": 1.5}
    general_remedy = "give a number from 0 to 1"


@error("DF347")
class KeyOutsideRange(RangeError):
    """A key does not lie in its range."""

    key: Any
    start: Any
    stop: Any
    template = "the key {key} is not in the range from {start} to {stop:?{stop}|no end}"
    example = {"key": b"\x01", "start": b"\x02", "stop": b"\x05"}
    general_remedy = "give a key that is in the range"
