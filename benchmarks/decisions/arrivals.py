"""A day of work that comes in bursts: ranges with the times at which they arrive, and the seconds that each takes."""

from __future__ import annotations

import math
import random

import attrs

DAY = 86_400.0
MIB = 1024 * 1024


@attrs.frozen(slots=True)
class Range:
    """One range: when it arrives, seconds of work, bytes, and the seconds of its slowest record, which cannot be cut."""

    arrives: float
    seconds: float
    size: int
    record: float


def day(count: int, seconds: float = DAY, seed: int = 1) -> list[Range]:
    """So many ranges, a third of them one by one, the others in bursts of a few to thousands; busier by day than at night.

    Work for a byte differs: a range of 4 to 64 MiB takes a second or so (lognormal), one in 1,000 thirty times that; in one of
    500 nearly all of it is a single record.

    >>> work = day(1_000, 3_600.0)
    >>> len(work), work == sorted(work, key=lambda each: each.arrives)
    (1000, True)
    """
    chance = random.Random(seed)
    moments: list[float] = []
    while len(moments) < count // 3:
        moment = chance.uniform(0, seconds)
        if chance.random() < 0.6 - 0.4 * math.cos(2 * math.pi * moment / seconds):
            moments.append(moment)
    while len(moments) < count:
        begins = chance.uniform(0, seconds * 0.95)
        many = min(count - len(moments), int(chance.paretovariate(0.9) * 8))
        lasts = chance.choice((0.0, 5.0, 60.0))
        moments += [begins + chance.uniform(0, lasts) for _ in range(many)]
    return [_range(moment, chance) for moment in sorted(moments)]


def _range(moment: float, chance: random.Random) -> Range:
    size = chance.randint(4, 64) * MIB
    seconds = size / (40 * MIB) * chance.lognormvariate(0, 0.6)
    if chance.random() < 0.001:
        seconds *= 30
    record = seconds * 0.9 if chance.random() < 0.002 else seconds / 10_000
    return Range(moment, seconds, size, record)
