"""References to the states of operators in tasks: listed by the decision of a window, given to the tasks of the next one.

The number of partitions may change between windows. Plain states go to the partition with the same number modulo the number of
partitions. Maps go where their keys go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from dagflow.model.types.keys import GROUPS, KeyAssignment
from dagflow.state.segment import SegmentRef
from dagflow.storage import hash_bytes


@attrs.frozen
class StateRef:
    """The states that one operator left in one partition.

    Attributes:
        hash, size: those of the states as one line of JSON.
        name: the object in the run folder that holds them; empty if they are in `values`.
        values: the states by name, as plain data, if they are small.
        segment: the newest segment of the operator's maps (`dagflow.state.log`).
        keys: the mark of the assignment under which the maps have their keys.
        replaced: the segments that this reference makes superfluous, once it counts.
        unshared: it may have made segments superfluous that other partitions need or have needed.
        pieces: the other segments that the same window has written, and that count.
    """

    hash: str
    size: int
    name: str = ""
    values: Any = None
    segment: SegmentRef | None = None
    replaced: list[str] = attrs.field(factory=list)
    keys: str = ""
    unshared: bool = False
    pieces: list[str] = attrs.field(factory=list)


PartitionStates = dict[str, list[StateRef]]
"""The states of operators in tasks, by operator, in the order of their partitions."""


@attrs.frozen
class Chain:
    """The maps that one partition of an operator left, by their newest segment.

    `continues`: they hold the keys of the partition that begins with them, and no others.
    """

    partition: int
    newest: SegmentRef
    continues: bool = False


@attrs.frozen(kw_only=True)
class StartStates:
    """The states that a task's operators begin with, by operator.

    `states`: the plain states that earlier partitions left; `chains`: maps. `saves`: False in a final
    launch: no later window continues with what the task leaves.
    """

    states: PartitionStates = attrs.field(factory=dict)
    chains: dict[str, tuple[Chain, ...]] = attrs.field(factory=dict)
    saves: bool = True


def predecessors(
    before: Mapping[str, Sequence[StateRef]], names: Iterable[str], partition: int, partitions: int
) -> PartitionStates:
    """Return the plain states that a partition begins with: those of all partitions with its number modulo `partitions`.

    >>> left = {"count": [StateRef(f"of {n}", 0) for n in range(5)]}
    >>> [ref.hash for ref in predecessors(left, ["count", "new"], 1, 2)["count"]]
    ['of 1', 'of 3']
    """
    begins = {name: list(before.get(name, ())[partition::partitions]) for name in names}
    return {name: refs for name, refs in begins.items() if refs}


def assignment_mark(keys: KeyAssignment) -> str:
    """Return a text that identifies an assignment of keys; empty if no partitioner made it."""
    return hash_bytes(repr(keys.owners).encode())[:16] if keys.owners else ""


def chains(left: Sequence[StateRef], partition: int, keys: KeyAssignment) -> tuple[Chain, ...]:
    """Return the maps that a partition begins with: those of all earlier partitions that may have any of its keys.

    >>> left = [StateRef("", 0, segment=SegmentRef(f"state/{n}", "", 0)) for n in range(4)]
    >>> [chain.partition for chain in chains(left, 0, KeyAssignment(3))]
    [0, 1]
    >>> [chain.partition for chain in chains(left, 2, KeyAssignment(4))]
    [2]
    >>> [chain.partition for chain in chains(left, 1, KeyAssignment(2, owners=(0, 1)))]
    [0, 1, 2, 3]
    """
    return ChainAssignment(left, keys).of(partition)


class ChainAssignment:
    """The maps that each partition begins with, for one assignment of keys to partitions. Made once for all tasks of a stage."""

    def __init__(self, left: Sequence[StateRef], keys: KeyAssignment) -> None:
        self.left, self.keys = left, keys
        marks = {ref.keys for ref in left if ref.segment is not None}
        self._continues = len(left) == keys.partitions and marks <= {assignment_mark(keys)}
        self._are_neighbours = not keys.owners and not marks - {""}

    def of(self, partition: int) -> tuple[Chain, ...]:
        """Return the maps that a partition begins with."""
        left = self.left
        pairs = ((number, left[number].segment) for number in self._before(partition))
        return tuple(Chain(number, segment, self._continues) for number, segment in pairs if segment is not None)

    def _before(self, partition: int) -> Iterable[int]:
        """Return the earlier partitions that may have had any key of a partition."""
        if self._continues:
            return (partition,)
        if not self._are_neighbours or not self.left:
            return range(len(self.left))
        before = KeyAssignment(len(self.left))
        first, last = _first_group(partition, self.keys.partitions), _first_group(partition + 1, self.keys.partitions) - 1
        return range(before.of_group(first), before.of_group(last) + 1)


def _first_group(partition: int, partitions: int) -> int:
    """Return the first key group of a partition."""
    return -(-partition * GROUPS // partitions)


def states_after(before: Mapping[str, Sequence[StateRef]], tasks: Iterable[Mapping[str, StateRef]]) -> PartitionStates:
    """Return the states after a window: those that its tasks left, in the order of partitions, else those from before."""
    left: PartitionStates = {}
    unchanged = {name: [attrs.evolve(ref, replaced=[], unshared=False) for ref in refs] for name, refs in before.items()}
    for task in tasks:
        for name, ref in task.items():
            left.setdefault(name, []).append(ref)
    return {**unchanged, **left}


@attrs.define
class StateAssignment:
    """The states that the window loop assigns to tasks.

    Attributes:
        stateful: the operators with State in tasks, by stage.
        on_driver: the operators with State on the driver.
        left: the states that the last decision lists.
    """

    stateful: Mapping[str, Sequence[str]]
    on_driver: Collection[str]
    left: PartitionStates = attrs.field(factory=dict)
    _assigned: dict[str, ChainAssignment] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def is_needed(self) -> bool:
        """Return whether a window's tasks must wait for the decision before."""
        return any(self.stateful.values())

    def begin(self, left: PartitionStates, on_driver_then: Collection[str]) -> list[str]:
        """Take the states of the last decision of an earlier launch; return the operators that are not stateful any more.

        Raises ValueError when an operator has moved between driver and tasks since: its State cannot follow.
        """
        now = {name for names in self.stateful.values() for name in names}
        for name in left:
            if name in self.on_driver:
                raise ValueError(f"operator {name!r} kept its State in partitions, and runs on the driver now")
        for name in on_driver_then:
            if name in now:
                raise ValueError(f"operator {name!r} kept its State on the driver, and runs in partitions now")
        self.left = {name: refs for name, refs in left.items() if name in now}
        return [name for name in left if name not in now]

    def start(self, stage: str, partition: int, keys: KeyAssignment) -> StartStates:
        """Return the states that a task begins with."""
        names = self.stateful[stage]
        begins = {name: self._chains(name, keys).of(partition) for name in names}
        return StartStates(
            states=predecessors(self.left, names, partition, keys.partitions),
            chains={name: each for name, each in begins.items() if each},
        )

    def _chains(self, name: str, keys: KeyAssignment) -> ChainAssignment:
        left, known = self.left.get(name, ()), self._assigned.get(name)
        if known is None or known.left is not left or known.keys != keys:
            known = self._assigned[name] = ChainAssignment(left, keys)
        return known
