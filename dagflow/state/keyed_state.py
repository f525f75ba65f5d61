"""`MapState` of keyed operators: each partition has the entries of its keys, and saves with a window those that it has changed.

A partition's maps are a chain of segments (`dagflow.state`), of which the decision names the newest one. A task reads the chain,
unless this process has it from the window before, and adds one segment to it. Where the number of partitions has changed,
or the way in which keys are dealt to them, a task reads the chains of all partitions that may have had any of its keys, takes its
own keys and begins a chain of its own.

Until the decision nothing of the chains before is removed: a window that is run again begins with what it began with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from dagflow.model.keys import GROUPS, KeyAssignment, group_of
from dagflow.model.map_state import MapState, TrackedDict, decode_map
from dagflow.model.operator import Operator
from dagflow.state import MapId, MapLog, SegmentRef, erase_segments
from dagflow.state.errors import ForeignStateKey
from dagflow.state.partition_state import StateRef, keyed_maps
from dagflow.state.state_types import checked
from dagflow.storage import Store, hash_bytes, join, open_store

FOLDER = "keyed-state"
_KEPT = 4
"""So many partitions' maps stay in memory for the next window."""
_known: dict[tuple[str, str], tuple[MapLog, dict[MapId, TrackedDict[Any, Any]]]] = {}


@attrs.frozen
class Chain:
    """What one partition of an operator has left: the newest segment of its maps.

    `goes_on`: its entries are those of the keys that the partition has which begins with it.
    """

    partition: int
    newest: SegmentRef
    goes_on: bool = False


def place_of(run_folder: str) -> str:
    """Where the segments of a run are."""
    return join(run_folder, FOLDER)


def mark(keys: KeyAssignment) -> str:
    """What tells two ways of dealing keys to as many partitions from each other; empty where nobody has dealt them."""
    return hash_bytes(repr(keys.owners).encode())[:16] if keys.owners else ""


def chains(left: Sequence[StateRef], partition: int, keys: KeyAssignment) -> tuple[Chain, ...]:
    """The chains that a partition begins with: of all partitions before that may have had any of its keys.

    >>> left = [StateRef("", 0, segment=SegmentRef(f"state/{n}", "", 0)) for n in range(4)]
    >>> [chain.partition for chain in chains(left, 0, KeyAssignment(3))]
    [0, 1]
    >>> [chain.partition for chain in chains(left, 2, KeyAssignment(4))]
    [2]
    >>> [chain.partition for chain in chains(left, 1, KeyAssignment(2, owners=(0, 1)))]
    [0, 1, 2, 3]
    """
    marks = {ref.keys for ref in left if ref.segment is not None}
    goes_on = len(left) == keys.partitions and marks <= {mark(keys)}
    found = []
    for number, ref in enumerate(left):
        if goes_on:
            is_shared = number == partition
        elif keys.owners or marks - {""}:
            is_shared = True
        else:
            first, last = _first_group(number, len(left)), _first_group(number + 1, len(left)) - 1
            is_shared = keys.of_group(first) <= partition <= keys.of_group(last)
        if is_shared and ref.segment is not None:
            found.append(Chain(number, ref.segment, goes_on))
    return tuple(found)


def _first_group(partition: int, partitions: int) -> int:
    """The first key group of a partition."""
    return -(-partition * GROUPS // partitions)


@attrs.define
class KeyedStates:
    """The maps of one task's keyed operators.

    Args:
        run_folder: of the run; `durable`: segments are on disk before the task reports.
        window, partition: of the task; `keys`: which partition has which.
        begun: the chains that it begins with, by operator.
    """

    run_folder: str
    durable: bool
    window: int
    partition: int
    keys: KeyAssignment
    begun: Mapping[str, Sequence[Chain]]
    _operators: dict[str, dict[str, MapState[Any, Any]]] = attrs.field(factory=dict, init=False)
    _logs: dict[str, MapLog] = attrs.field(factory=dict, init=False)
    _maps: dict[str, dict[MapId, TrackedDict[Any, Any]]] = attrs.field(factory=dict, init=False)
    _left_behind: dict[str, list[str]] = attrs.field(factory=dict, init=False)

    def restore(self, operators: Iterable[tuple[str, Operator]]) -> None:
        """Gives keyed operators their maps. Raises SegmentMissing, SegmentDamaged."""
        for name, operator in operators:
            declared = keyed_maps(operator)
            if not declared:
                continue
            self._operators[name] = declared
            log, found = self._begin(name, declared)
            maps = {key: _in_order(kept) for key, kept in found.items()}
            self._logs[name], self._maps[name] = log, maps
            for (_, state), kept in maps.items():
                operator.__dict__[state] = kept

    def save(self) -> dict[str, StateRef]:
        """Saves what has changed; what the decision has to name, by operator.

        Raises ForeignStateKey, StateMistyped, StateNotPlain, StorageError.
        """
        found = {}
        for name, log in self._logs.items():
            maps = self._maps[name]
            for (_, state), kept in maps.items():
                changes = kept.changes()
                declared = self._operators[name][state]
                self._check(name, declared, [*changes.assigned, *changes.removed])
                checked(changes.assigned, declared, name, state)
            before = {each.name for each in log.segments}
            newest = log.save(self.window, maps)
            if newest is None:  # named all the same: the place in the decision's list is the partition's number
                found[name] = StateRef("", 0, values={}, replaced=self._left_behind[name])
                continue
            gone = sorted(before - {each.name for each in log.segments})
            replaced = self._left_behind[name] + gone
            found[name] = StateRef(newest.hash, newest.size, values={}, segment=newest, replaced=replaced, keys=mark(self.keys))
            _remember((place_of(self.run_folder), newest.name), (log, maps))
        return found

    def _begin(self, name: str, declared: Mapping[str, MapState[Any, Any]]) -> tuple[MapLog, dict[MapId, TrackedDict[Any, Any]]]:
        chains = self.begun.get(name, ())
        store = open_store(place_of(self.run_folder), durable=self.durable)
        self._left_behind[name] = []
        if len(chains) == 1 and chains[0].goes_on:
            known = _known.pop((place_of(self.run_folder), chains[0].newest.name), None)
            if known is not None and {state for _, state in known[1]} == set(declared):
                return known
            log = MapLog(store)
            found = log.restore(chains[0].newest, self.window - 1, [(name, state) for state in declared])
            return log, {key: decode_map(declared[key[1]], each.keys(), each.values()) for key, each in found.items()}
        log = MapLog(store)
        maps: dict[MapId, TrackedDict[Any, Any]] = {(name, state): TrackedDict() for state in declared}
        for chain in chains:
            self._left_behind[name] += self._taken(store, chain, declared, maps)
        return log, maps

    def _taken(
        self, store: Store, chain: Chain, declared: Mapping[str, MapState[Any, Any]], into: dict[MapId, TrackedDict[Any, Any]]
    ) -> list[str]:
        """Takes this partition's keys out of a chain of another one; the segments of that."""
        log = MapLog(store)
        for key, each in log.restore(chain.newest, self.window - 1, list(into)).items():
            mine = {k: v for k, v in each.items() if self._has(declared[key[1]], k)}
            into[key].update(decode_map(declared[key[1]], mine.keys(), mine.values()))
        return [segment.name for segment in log.segments]

    def _has(self, declared: MapState[Any, Any], key: Any) -> bool:
        of_record = key if declared.partition_by is None else declared.partition_by(key)
        return self.keys.of_group(group_of(of_record)) == self.partition

    def _check(self, operator: str, declared: MapState[Any, Any], keys: Iterable[Any]) -> None:
        for key in keys if self.keys.partitions > 1 else ():
            if not self._has(declared, key):
                raise ForeignStateKey(operator, declared.name, repr(key)[:200])


def with_maps(states: Mapping[str, StateRef], maps: Mapping[str, StateRef]) -> dict[str, StateRef]:
    """What a task's operators keep: plain states, and the maps of those that are keyed."""
    both = {
        name: attrs.evolve(states[name], segment=ref.segment, replaced=ref.replaced, keys=ref.keys)
        for name, ref in maps.items()
        if name in states
    }
    return {**states, **maps, **both}


def _in_order(kept: TrackedDict[Any, Any]) -> TrackedDict[Any, Any]:
    """A map with its keys in their order: what an operator makes of them must not depend on whether they were read or were here.

    Takes little time where they nearly are, as those of the window before are.
    """
    ordered = sorted(kept, key=None if len({type(key) for key in kept}) < 2 else _by_type)
    if ordered == list(kept):
        return kept
    made: TrackedDict[Any, Any] = TrackedDict({key: kept[key] for key in ordered})
    if kept.changes().assigned:  # taken over from other partitions: all of it is to be saved
        whole: TrackedDict[Any, Any] = TrackedDict()
        whole.update(made)
        return whole
    return made


def _by_type(key: Any) -> tuple[str, Any]:
    return type(key).__name__, key


def _remember(key: tuple[str, str], value: tuple[MapLog, dict[MapId, TrackedDict[Any, Any]]]) -> None:
    _known[key] = value
    while len(_known) > _KEPT:
        _known.pop(next(iter(_known)))


def erase(run_folder: str) -> None:
    """Removes all of it."""
    erase_segments(open_store(place_of(run_folder), durable=False))


def sweep(run_folder: str, window: int, states: Mapping[str, Sequence[StateRef]]) -> None:
    """Removes the segments that a decided window has replaced, and those of its other attempts."""
    refs = [ref for each in states.values() for ref in each if ref.segment is not None]
    if not refs:
        return
    store = open_store(place_of(run_folder), durable=False)
    named = {ref.segment.name for ref in refs if ref.segment is not None}
    for name in {name for ref in refs for name in ref.replaced} - named:
        store.discard(name)
    for name in store.names(f"state/{window:010d}-"):
        if name not in named:
            store.discard(name)
