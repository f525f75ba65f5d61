"""Ranges of keys, which are strings of bytes in lexicographic order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any, ClassVar

import attrs

from dagflow.ranges.errors import KeyOutsideRange, NoRange
from dagflow.ranges.tracker import PositionTracker, check_fraction

PRECISION_BITS = 52


class ByteKey(bytes):
    r"""A key: bytes, compared one by one as numbers from 0 to 255; a key comes before those that it begins.

    It is a `bytes`, so it compares at the speed of C, and plain bytes are accepted as keys.
    `ByteKey.EMPTY` is before all others; as the stop of a range it stands for no end.

    >>> ByteKey(b"\x12") < ByteKey(b"\x12\x00") < ByteKey.fromhex("fe")
    True
    >>> str(ByteKey.fromhex("0123ab")), ByteKey([1, 2]), ByteKey(b"\x12").next_key()
    ('[0123ab]', ByteKey.fromhex('0102'), ByteKey.fromhex('1200'))
    """

    EMPTY: ClassVar[ByteKey]
    __slots__ = ()

    def __new__(cls, key: bytes | bytearray | memoryview | Iterable[int] = b"") -> ByteKey:
        """Make a key of bytes, or of numbers from 0 to 255."""
        if isinstance(key, (int, str)):  # bytes(5) would be five zeros
            raise TypeError(f"a key is made of bytes, not of {key!r}")
        return super().__new__(cls, key)

    def next_key(self) -> ByteKey:
        """Return the smallest key after this one."""
        return ByteKey(self + b"\0")

    def __repr__(self) -> str:
        return f"ByteKey.fromhex({self.hex()!r})"

    def __str__(self) -> str:
        return f"[{self.hex()}]"


ByteKey.EMPTY = ByteKey()


@attrs.frozen
class ByteKeyRange:
    """The keys [start, stop); an empty stop stands for no end. Raises NoRange for a stop before the start.

    Keys are read as binary fractions: 80 (hexadecimal) is 0.5, c0 is 0.75, e0 is 0.875; the empty key is 0.0 as a start
    and 1.0 as a stop. So a range without an end has sensible fractions, too.

    >>> keys = ByteKeyRange(b"", b"")
    >>> keys.interpolate_key(0.25), keys.estimate_fraction_for_key(b"@")
    (ByteKey.fromhex('40'), 0.25)
    >>> [str(part) for part in ByteKeyRange(b"0", b"8").split(2)]
    ['[[30], [34])', '[[34], [38])']
    """

    start: ByteKey = attrs.field(default=ByteKey.EMPTY, converter=ByteKey)
    stop: ByteKey = attrs.field(default=ByteKey.EMPTY, converter=ByteKey)

    ALL_KEYS: ClassVar[ByteKeyRange]

    def __attrs_post_init__(self) -> None:
        if self.stop and self.start > self.stop:
            raise NoRange(start=self.start, stop=self.stop)

    def __contains__(self, key: bytes) -> bool:
        return self.start <= key and (not self.stop or key < self.stop)

    def __iter__(self) -> Iterator[ByteKey]:
        """Start, then stop: `ByteKeyRangeTracker(*range)`."""
        yield self.start
        yield self.stop

    def __str__(self) -> str:
        return f"[{self.start}, {self.stop or 'no end'})"

    def overlaps(self, other: ByteKeyRange) -> bool:
        """Return whether each range starts before the other ends."""
        return (not other.stop or self.start < other.stop) and (not self.stop or other.start < self.stop)

    def estimate_fraction_for_key(self, key: bytes) -> float:
        """Return the fraction of the range at which a key lies: 0.0 at the start, 1.0 at the stop. Raises KeyOutsideRange.

        Where start and stop differ by zeros at the end only, all keys between them are at 0.0.
        """
        if self.stop and key == self.stop:
            return 1.0
        if key not in self:
            raise KeyOutsideRange(key=ByteKey(key), start=self.start, stop=self.stop)
        length = max(len(self.start), len(self.stop), len(key))
        low, high = self._numbers(length)
        return (_number(key, length) - low) / (high - low) if high > low else 0.0

    def interpolate_key(self, fraction: float) -> ByteKey:
        """Return the key at a fraction from 0 (the start) to 1 (the stop). Raises NoFraction.

        Between keys there are always more, so there is no rounding to a whole position: of the keys that are within 2**-52 of the
        range from that place, it is the shortest (Java: a longer one, with zeros at its end). It is never below the start and
        never past the stop. Where these differ by zeros at the end only, nothing lies between: it is the stop (Java: an error).
        """
        check_fraction(fraction)
        if fraction in (0, 1):
            return self.stop if fraction else self.start
        size = max(len(self.start), len(self.stop))
        low, high = self._numbers(size)
        if low == high:
            return self.stop
        place = (low + Fraction(fraction) * (high - low)) / 256**size
        near = Fraction(high - low, 256**size << PRECISION_BITS)
        length, number = 1, round(place * 256)
        while abs(place - Fraction(number, 256**length)) > near:
            length += 1
            number = round(place * 256**length)
        if number == 256**length:
            return self.stop  # past the last key of all: the range has no end
        key = max(self.start, ByteKey(number.to_bytes(length, "big")))
        return min(key, self.stop) if self.stop else key

    def split(self, parts: int) -> list[ByteKeyRange]:
        """Return at most `parts` neighbouring ranges, about equally wide; one if the keys are too near to one another."""
        if parts < 1:
            raise ValueError(f"a range is split into 1 part or more, not into {parts}")
        bounds = [self.start]
        for part in range(1, parts):
            key = self.interpolate_key(part / parts)
            if key > bounds[-1] and key in self:
                bounds.append(key)
        return [ByteKeyRange(start, stop) for start, stop in zip(bounds, [*bounds[1:], self.stop], strict=True)]

    def _numbers(self, length: int) -> tuple[int, int]:
        """Return start and stop as numbers of `length` bytes."""
        return _number(self.start, length), _number(self.stop, length) if self.stop else 256**length


ByteKeyRange.ALL_KEYS = ByteKeyRange()


def _number(key: bytes, length: int) -> int:
    return int.from_bytes(key, "big") << (8 * (length - len(key)))


@attrs.define(init=False, eq=False, repr=False)
class ByteKeyRangeTracker(PositionTracker[bytes]):
    """Tracks a range of keys [start, stop); an empty stop means no end. The rules are those of RangeTracker.

    >>> tracker = ByteKeyRangeTracker(b"0", b"8")
    >>> tracker.try_return_record_at(True, b"2"), tracker.fraction_consumed
    (True, 0.25)
    >>> tracker.try_split_at_fraction(0.5), tracker.stop_position
    (ByteKeyRange(start=ByteKey.fromhex('34'), stop=ByteKey.fromhex('38')), ByteKey.fromhex('34'))

    A range without an end is split by fractions like any other: see ByteKeyRange. Raises NoRange, TypeError.
    """

    def __init__(self, start: bytes, stop: bytes) -> None:
        keys = ByteKeyRange(start, stop)
        self.__attrs_init__(keys.start, keys.stop or None)  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def range(self) -> ByteKeyRange:
        """The current range."""
        return self._range(self._start, self._stop)

    @property
    def stop_position(self) -> ByteKey:
        """The end of the range, exclusive; `ByteKey.EMPTY` if it has none."""
        return ByteKey.EMPTY if self._stop is None else ByteKey(self._stop)

    def _range(self, start: bytes, stop: bytes | None) -> ByteKeyRange:
        return ByteKeyRange(start, stop or ByteKey.EMPTY)

    def _as_position(self, value: bytes) -> ByteKey:
        return ByteKey(value)

    def _after(self, position: bytes) -> bytes:
        return position + b"\0"

    def _fraction_at(self, position: bytes) -> float:
        return self.range.estimate_fraction_for_key(position)

    def _position_at(self, fraction: float) -> Any:
        return self.range.interpolate_key(fraction)
