"""Policies for the number of readers of a backlog: pure functions of numbers."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import attrs

from dagflow.errors.wording import suggest

MIB = 1024 * 1024
LARGE_BLOCK = 64 * MIB
"""A block of more bytes than this is worth several readers: within a window they share it."""
SLACK = 2
"""Readers per slot where nothing is stolen: the last ones even out the differences of the first ones."""
BLOCKS_PER_START = 2.25
"""Blocks per reader where readers must be started: one for the first block, and one for so many more (`benchmarks/decisions`)."""


@attrs.frozen(kw_only=True)
class Load:
    """The figures that a policy decides by.

    Attributes:
        backlog, size: blocks that are known and not committed, and their bytes.
        readers: how many readers there are now.
        min_readers, max_readers: the bounds, which hold whatever a policy says.
        slots: how many tasks can work at once; None: not known.
        grows: whether Spark adds slots for waiting tasks (dynamic allocation).
        shares: readers of a window steal from each other, so that it needs no more of them than there are slots.
        records_in_per_second, records_out_per_second, latency: of all readers together, as `OperatorStats` says it of each.
    """

    backlog: int
    size: int = 0
    readers: int = 1
    min_readers: int = 1
    max_readers: int = 16
    slots: int | None = None
    grows: bool = False
    shares: bool = False
    records_in_per_second: float | None = None
    records_out_per_second: float | None = None
    latency: float | None = None

    def clamped(self, readers: int) -> int:
        """Return the number of readers within the bounds that is nearest to `readers`."""
        return max(self.min_readers, min(readers, self.max_readers))


@runtime_checkable
class ScalingPolicy(Protocol):
    """A function from a load to a number of readers, with a name."""

    @property
    def name(self) -> str:
        """The name in plans and reports."""
        ...

    def readers(self, load: Load) -> int:
        """Return the number of readers. The caller applies the bounds."""
        ...


@attrs.frozen
class Steady:
    """The default: one reader per waiting block, up to the number of slots. Rises at once, falls when half would be enough.

    Blocks of more than 64 MiB count as several. There is at most one reader per slot if readers steal work from each other, else
    at most two. With dynamic allocation, readers have to be started first: beyond the first one, there is one for every 2.25
    blocks. As long as the backlog varies by less than a factor of two, the number does not fall, so it does not oscillate.

    >>> [Steady().readers(Load(backlog=n, grows=True)) for n in (0, 1, 2, 4, 5, 16, 100)]
    [1, 1, 2, 3, 3, 8, 45]
    >>> [Steady().readers(Load(backlog=n, readers=8, slots=8)) for n in (0, 3, 4, 8, 12, 100)]
    [0, 3, 4, 8, 12, 16]
    """

    name: str = attrs.field(default="steady", init=False, repr=False)

    def readers(self, load: Load) -> int:
        """See ScalingPolicy."""
        count = max(load.backlog, load.size // LARGE_BLOCK)
        if load.grows:
            count = math.ceil((count - 1) / BLOCKS_PER_START) + 1 if count else 0
        elif load.slots is not None:
            count = min(count, load.slots if load.shares else SLACK * load.slots)
        falls = 2 * load.clamped(count) <= load.readers
        return count if count > load.readers or falls else load.readers


@attrs.frozen
class PowerOfTwo:
    """The policy of Apex Malhar: the largest power of two that is not above the backlog; bounds beyond them. No hysteresis.

    Malhar leaves out the bounds where the backlog equals the number of readers, and after rounding; here they hold always.

    >>> [PowerOfTwo().readers(Load(backlog=n)) for n in (0, 1, 2, 3, 7, 12, 16, 17)]
    [1, 1, 2, 2, 4, 8, 16, 16]
    """

    name: str = attrs.field(default="power_of_two", init=False, repr=False)

    def readers(self, load: Load) -> int:
        """See ScalingPolicy."""
        if load.backlog <= load.min_readers:
            return load.min_readers
        return load.max_readers if load.backlog > load.max_readers else 1 << (load.backlog.bit_length() - 1)


POLICIES: dict[str, ScalingPolicy] = {policy.name: policy for policy in (Steady(), PowerOfTwo())}
"""The policies that have a name."""


def policy_named(policy: str | ScalingPolicy) -> ScalingPolicy:
    """Return the policy of a name. Objects with `readers(load)` stay. Raises ValueError for other names.

    >>> policy_named("steady")
    Steady()
    """
    if not isinstance(policy, str):
        if callable(getattr(policy, "readers", None)):
            return policy
        raise ValueError(f"policy is {policy!r}, but must be {_NAMES}, or an object with readers(load)")
    if policy not in POLICIES:
        near = suggest(policy, POLICIES)
        raise ValueError(f"policy is {policy!r}, but must be {_NAMES}" + (f": did you mean {near!r}?" if near else ""))
    return POLICIES[policy]


_NAMES = " or ".join(map(repr, POLICIES))
