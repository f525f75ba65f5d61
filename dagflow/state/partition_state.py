"""State of operators in tasks: how it gets from a window's tasks to those of the next. The decision is the checkpoint.

Each task reads what its predecessors have left, and leaves its own; the decision of the window lists what all tasks have left.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dagflow.model.map_state import MapState, decode_state, encode_state
from dagflow.model.operator import Operator
from dagflow.model.plain import dumps, loads
from dagflow.model.state import State, state_fields
from dagflow.state import SegmentRef
from dagflow.state.errors import StateLost
from dagflow.state.state_types import checked
from dagflow.storage import Store, hash_bytes, read_sealed, seal
from dagflow.storage.record_errors import RecordRefused

INLINE = 8 << 10
"""States of more bytes than this get an object of their own: decisions stay small, though as many of them are kept as windows."""
_FOLDER = "task-states"
_NAMES = re.compile(rf"{_FOLDER}/(\d{{10}})\.[0-9a-f]{{64}}")

Encoded = dict[str, Any]
"""The states of one operator by their names, as plain data."""


@attrs.frozen
class StateRef:
    """Where the states are that one operator kept in one partition.

    Attributes:
        hash, size: of the bytes that they are as one line of JSON.
        name: the object in the run folder that holds them; empty when `values` does.
        values: the states by their names, as plain data, when they are small.
        segment: of a keyed operator with `MapState`, the newest segment of its maps (`dagflow.state.keyed_state`).
        keys: how the keys were dealt, of which these are the entries: `dagflow.state.keyed_state.mark`.
        replaced: the segments that nobody needs once this counts.
    """

    hash: str
    size: int
    name: str = ""
    values: Any = None
    segment: SegmentRef | None = None
    replaced: list[str] = attrs.field(factory=list)
    keys: str = ""


PartitionStates = dict[str, list[StateRef]]
"""What operators kept, by operator, in the order of their partitions."""


def states_of(operator: Operator) -> dict[str, State[Any]]:
    """The `State` that an operator keeps, by name."""
    declared = state_fields(type(operator)).items()
    return {name: kept for name, kept in declared if isinstance(kept, State) and operator.keeps(name)}


def keyed_maps(operator: Operator) -> dict[str, MapState[Any, Any]]:
    """The maps of which a keyed operator has the entries of its keys: those without a `merge`."""
    return {name: kept for name, kept in states_of(operator).items() if isinstance(kept, MapState) and kept.merge is None}


def predecessors(
    before: Mapping[str, Sequence[StateRef]], names: Iterable[str], partition: int, partitions: int
) -> PartitionStates:
    """What a partition's operators begin with: of the partitions before, those whose number modulo `partitions` is its own.

    >>> left = {"count": [StateRef(f"of {n}", 0) for n in range(5)]}
    >>> [ref.hash for ref in predecessors(left, ["count", "new"], 1, 2)["count"]]
    ['of 1', 'of 3']
    """
    found = {name: list(before.get(name, ())[partition::partitions]) for name in names}
    return {name: refs for name, refs in found.items() if refs}


def read(store: Store, begin: Mapping[str, Sequence[StateRef]]) -> dict[str, list[Encoded]]:
    """The states that a task begins with, by operator. Raises StateLost when an object is gone, or is not what it was."""
    return {name: [_read(store, name, ref) for ref in refs] for name, refs in begin.items()}


def _read(store: Store, operator: str, ref: StateRef) -> Encoded:
    found: Encoded
    if not ref.name:
        found = ref.values
        if found and hash_bytes(dumps(found)) != ref.hash:
            raise StateLost(operator, store.url, "the values that the last decision holds do not have the hash beside them")
        return found
    try:
        sealed = read_sealed(store, ref.name)
    except RecordRefused as error:
        raise StateLost(operator, f"{store.url}/{ref.name}", error.reason) from error
    if sealed is None:
        raise StateLost(operator, f"{store.url}/{ref.name}", "it is gone")
    if hash_bytes(sealed.body) != ref.hash:
        raise StateLost(operator, f"{store.url}/{ref.name}", "its bytes have changed")
    found = loads(sealed.body)
    return found


def left_to(operator: Operator, parts: Sequence[Encoded]) -> Iterator[tuple[State[Any], list[Any]]]:
    """The states that an operator's predecessors have left, each with its values; in the order of the partitions."""
    for name, declared in states_of(operator).items():
        values = [decode_state(declared, part[name]) for part in parts if name in part]
        if values:
            yield declared, values


def kept_states(operator: Operator, name: str, leaving_out: Collection[str] = ()) -> Encoded:
    """The states of an operator as plain data, but for some. Raises StateNotPlain, StateMistyped."""
    found: Encoded = {}
    for state, declared in states_of(operator).items():
        if state in leaving_out:
            continue
        value = checked(getattr(operator, state), declared, name, state)
        found[state] = encode_state(declared, value, f"{type(declared).__name__} {state!r} of operator {name!r}")
    return found


def publish(
    store: Store, window: int, kept: Mapping[str, Encoded], begun: Mapping[str, Sequence[StateRef]]
) -> dict[str, StateRef]:
    """Keeps what a task's operators have left: small states in the reference itself, others durably in an object of their own.

    `begun`: what the task began with: a state that has not changed since is not written again.
    """
    return {name: _publish(store, window, states, begun.get(name, ())) for name, states in kept.items()}


def _publish(store: Store, window: int, states: Encoded, begun: Sequence[StateRef]) -> StateRef:
    data = dumps(states)
    found = hash_bytes(data)
    if len(begun) == 1 and begun[0].hash == found:
        return attrs.evolve(begun[0], segment=None, replaced=[])
    if len(data) <= INLINE:
        return StateRef(found, len(data), values=states)
    name = f"{_FOLDER}/{window:010d}.{found.partition(':')[2]}"
    store.create(name, seal(name, data))  # another attempt, or another partition, may have made the same
    return StateRef(found, len(data), name)


def carried(before: Mapping[str, Sequence[StateRef]], tasks: Iterable[Mapping[str, StateRef]]) -> PartitionStates:
    """What operators keep after a window: what its tasks have left (in the order of partitions), else what was there before."""
    left: PartitionStates = {}
    carried_on = {name: [attrs.evolve(ref, replaced=[]) for ref in refs] for name, refs in before.items()}
    for task in tasks:
        for name, ref in task.items():
            left.setdefault(name, []).append(ref)
    return {**carried_on, **left}


@attrs.define
class Handover:
    """What the window loop knows of states in tasks: who keeps any, and what the last decision says of them.

    Attributes:
        keeping: the operators that keep State in tasks, by stage.
        on_driver: those that keep it on the driver.
        left: what partitions have left with the last decision.
    """

    keeping: Mapping[str, Sequence[str]]
    on_driver: Collection[str]
    left: PartitionStates = attrs.field(factory=dict)

    def is_needed(self) -> bool:
        """Whether a window's tasks must wait for the decision before."""
        return any(self.keeping.values())

    def begin(self, left: PartitionStates, on_driver_then: Collection[str]) -> list[str]:
        """Takes what the last decision of an earlier launch says; the operators that keep nothing any longer.

        Raises ValueError when an operator has moved between driver and tasks since: its State cannot follow.
        """
        now = {name for names in self.keeping.values() for name in names}
        for name in left:
            if name in self.on_driver:
                raise ValueError(f"operator {name!r} kept its State in partitions, and runs on the driver now")
        for name in on_driver_then:
            if name in now:
                raise ValueError(f"operator {name!r} kept its State on the driver, and runs in partitions now")
        self.left = {name: refs for name, refs in left.items() if name in now}
        return [name for name in left if name not in now]

    def given(self, stage: str, partition: int, partitions: int) -> PartitionStates:
        """What a task begins with; but for maps of keys."""
        return predecessors(self.left, self.keeping[stage], partition, partitions)


def sweep(store: Store, window: int, states: Mapping[str, Sequence[StateRef]]) -> None:
    """Removes what tasks have left up to a decided window, except what its decision refers to."""
    needed = {ref.name for refs in states.values() for ref in refs}
    for name in store.names(f"{_FOLDER}/"):
        found = _NAMES.fullmatch(name)
        if found and int(found[1]) <= window and name not in needed:
            store.discard(name)


def erase(store: Store) -> None:
    """Removes all of it."""
    for name in store.names(f"{_FOLDER}/"):
        if _NAMES.fullmatch(name):
            store.discard(name)
