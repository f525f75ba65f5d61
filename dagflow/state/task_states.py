"""The states of operators in tasks: given back before a task, saved after it.

Plain `State` is saved whole: in the task's report, or in an object of its own if it is large. Where there are several values from
the partitions before, `merge` makes one of them.

A `MapState` belongs to a keyed operator, and a partition has the entries of its keys. They are a chain of segments
(`dagflow.state.log`), to which a window adds the entries that it has changed. Where the number of partitions or the assignment of
keys has changed, a task reads the chains of all partitions that may have had any of its keys, and begins a chain of its own.

Nothing that earlier decisions name is removed before the next decision: a window that runs again begins with the same states.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dagflow.model.operator.base import Operator
from dagflow.model.operator.map_state import MapState, TrackedDict
from dagflow.model.operator.state import State, state_fields
from dagflow.model.types.keys import KeyAssignment, group_of
from dagflow.model.types.plain_data import dumps, loads
from dagflow.state.errors import ForeignStateKey, StateLost
from dagflow.state.log import MapLog
from dagflow.state.references import Chain, StartStates, StateRef, assignment_mark
from dagflow.state.segment import MapId, erase_segments
from dagflow.state.values import checked, decode_map, decode_state, encode_state
from dagflow.storage import Store, hash_bytes, join, open_store, read_sealed, seal
from dagflow.storage.records.errors import RecordRefused

INLINE = 8 << 10
"""States of more bytes than this get an object of their own: decisions stay small, though one is kept for each window."""
KEYED_FOLDER = "keyed-state"
_FOLDER = "task-states"
_NAMES = re.compile(rf"{_FOLDER}/(\d{{10}})\.[0-9a-f]{{64}}")
EncodedStates = dict[str, Any]
"""The states of one operator by their names, as plain data."""
_Maps = dict[MapId, TrackedDict[Any, Any]]
_LogAndMaps = tuple[MapLog, _Maps]


@attrs.define
class MapCache:
    """The maps of the partitions that a process has worked on last, kept for the next window. Each process has its own.

    `size`: the number of partitions. A map is found by the folder of the segments and the name of its newest one.
    """

    size: int = 4
    _entries: dict[tuple[str, str], _LogAndMaps] = attrs.field(factory=dict, init=False)

    def take(self, folder: str, segment: str) -> _LogAndMaps | None:
        """Return maps and their log, which the caller may change: they are no longer in the cache."""
        return self._entries.pop((folder, segment), None)

    def put(self, folder: str, segment: str, entry: _LogAndMaps) -> None:
        """Keep maps and their log instead of the oldest ones."""
        self._entries[folder, segment] = entry
        while len(self._entries) > self.size:
            self._entries.pop(next(iter(self._entries)))

    def clear(self) -> None:
        """Forget all maps."""
        self._entries.clear()


class MergeFailed(Exception):
    """The `merge` of a State raised an error."""

    def __init__(self, operator: str, state: str, error: Exception) -> None:
        super().__init__(operator, state, error)
        self.operator = operator
        self.state = state
        self.error = error


def declared_states(operator: Operator) -> dict[str, State[Any]]:
    """Return the `State` declarations that an operator uses, by name."""
    declared = state_fields(type(operator)).items()
    return {name: each for name, each in declared if isinstance(each, State) and operator.keeps_state(name)}


def declared_maps(operator: Operator) -> dict[str, MapState[Any, Any]]:
    """Return the `MapState` declarations that an operator uses, by name."""
    return {name: each for name, each in declared_states(operator).items() if isinstance(each, MapState)}


def encoded_states(operator: Operator, name: str, leaving_out: Collection[str] = ()) -> EncodedStates:
    """Return the states of an operator as plain data. Raises StateNotPlain, StateMistyped."""
    encoded: EncodedStates = {}
    for state, declared in declared_states(operator).items():
        if state not in leaving_out:
            value = checked(getattr(operator, state), declared, name, state)
            encoded[state] = encode_state(declared, value, f"{type(declared).__name__} {state!r} of operator {name!r}")
    return encoded


def restore_states(operator: Operator, states: EncodedStates) -> None:
    """Give an operator the states that `encoded_states` returned."""
    for name, declared in declared_states(operator).items():
        if name in states:
            operator.__dict__[name] = decode_state(declared, states[name])


def read_states(store: Store, operator: str, ref: StateRef) -> EncodedStates:
    """Read the plain states of a reference. Raises StateLost if an object is gone or has changed."""
    states: EncodedStates
    if not ref.name:
        states = ref.values
        if states and hash_bytes(dumps(states)) != ref.hash:
            raise StateLost(operator, store.url, "the values that the last decision holds do not have the hash beside them")
        return states
    try:
        sealed = read_sealed(store, ref.name)
    except RecordRefused as error:
        raise StateLost(operator, f"{store.url}/{ref.name}", error.reason) from error
    if sealed is None:
        raise StateLost(operator, f"{store.url}/{ref.name}", "it is gone")
    if hash_bytes(sealed.body) != ref.hash:
        raise StateLost(operator, f"{store.url}/{ref.name}", "its bytes have changed")
    try:
        states = loads(sealed.body)
    except ValueError as error:
        raise StateLost(operator, f"{store.url}/{ref.name}", str(error)) from error
    return states


def publish_states(store: Store, window: int, states: EncodedStates, initial: Sequence[StateRef]) -> StateRef:
    """Save plain states: small ones in the reference itself, others durably in an object.

    `initial`: the references that the task began with. Unchanged states are not written again.
    """
    data = dumps(states)
    digest = hash_bytes(data)
    if len(initial) == 1 and initial[0].hash == digest:
        return attrs.evolve(initial[0], segment=None, replaced=[])
    if len(data) <= INLINE:
        return StateRef(digest, len(data), values=states)
    name = f"{_FOLDER}/{window:010d}.{digest.partition(':')[2]}"
    store.create(name, seal(name, data))  # another attempt, or another partition, may have made the same
    return StateRef(digest, len(data), name)


def keyed_folder(run_folder: str) -> str:
    """Return the folder of the segments of a run's tasks."""
    return join(run_folder, KEYED_FOLDER)


@attrs.define
class TaskStates:
    """The states of one task's operators: `restore` before they are set up, `capture` as the window ends, `save` after the task.

    Args:
        store: the run folder; `durable`: segments are on disk before the task reports.
        window, partition: those of the task; `keys`: the keys of its partition.
        start: the states that the task begins with.
        cache: the maps of earlier windows in this process.
    """

    store: Store
    durable: bool
    window: int
    partition: int
    keys: KeyAssignment
    start: StartStates
    cache: MapCache = attrs.field(factory=MapCache)
    _plain: dict[str, EncodedStates] = attrs.field(factory=dict, init=False)
    _operators: Mapping[str, Operator] = attrs.field(factory=dict, init=False)
    _maps: dict[str, _KeyedMaps] = attrs.field(factory=dict, init=False)

    def restore(self, operators: Mapping[str, Operator]) -> None:
        """Restore the states of operators. Raises MergeFailed, StateLost, SegmentMissing, SegmentDamaged."""
        self._operators = operators
        for name, refs in self.start.states.items():
            if name in operators:
                parts = [read_states(self.store, name, ref) for ref in refs]
                _restore_plain(name, operators[name], parts)
        for name in sorted(operators):
            if declared := declared_maps(operators[name]):
                maps = self._maps[name] = _KeyedMaps(self, name, declared)
                maps.restore(operators[name])

    def capture(self) -> None:
        """Record the plain states, before `teardown`. Raises StateNotPlain, StateMistyped."""
        plain = {name: encoded_states(each, name, declared_maps(each)) for name, each in self._operators.items()}
        self._plain = {name: states for name, states in plain.items() if states}

    def save(self) -> dict[str, StateRef]:
        """Save the captured states and the changed entries. Return the references for the decision, by operator.

        Raises ForeignStateKey, StateMistyped, StateNotPlain, StorageError.
        """
        initial = self.start.states
        refs = {name: publish_states(self.store, self.window, each, initial.get(name, ())) for name, each in self._plain.items()}
        for name, maps in self._maps.items():
            ref = maps.save()
            if name in refs:
                ref = attrs.evolve(refs[name], segment=ref.segment, replaced=ref.replaced, keys=ref.keys)
            refs[name] = ref
        return refs


def _restore_plain(name: str, operator: Operator, parts: Sequence[EncodedStates]) -> None:
    for state, declared in declared_states(operator).items():
        values = [decode_state(declared, part[state]) for part in parts if state in part]
        if len(values) > 1 and declared.merge is not None:
            try:
                operator.__dict__[state] = declared.merge(values)
            except Exception as error:
                raise MergeFailed(name, state, error) from error
        elif values:
            operator.__dict__[state] = values[0]


class _KeyedMaps:
    """The maps of one keyed operator in one task."""

    def __init__(self, task: TaskStates, name: str, declared: Mapping[str, MapState[Any, Any]]) -> None:
        self._task = task
        self._name = name
        self._declared = declared
        self._folder = keyed_folder(task.store.url)
        self._replaced: list[str] = []

    def restore(self, operator: Operator) -> None:
        """Give the operator the entries of this partition's keys, in the order of the keys."""
        self._log, maps = self._read()
        self._maps = {key: _in_order(each) for key, each in maps.items()}
        for (_, state), each in self._maps.items():
            operator.__dict__[state] = each

    def save(self) -> StateRef:
        """Add a segment with the entries that have changed."""
        for (_, state), each in self._maps.items():
            changes = each.changes()
            self._check(self._declared[state], [*changes.assigned, *changes.removed])
            checked(changes.assigned, self._declared[state], self._name, state)
        before = {each.name for each in self._log.segments}
        newest = self._log.save(self._task.window, self._maps)
        if newest is None:  # named all the same: the place in the decision's list is the partition's number
            return StateRef("", 0, values={}, replaced=self._replaced)
        replaced = self._replaced + sorted(before - {each.name for each in self._log.segments})
        self._task.cache.put(self._folder, newest.name, (self._log, self._maps))
        mark = assignment_mark(self._task.keys)
        return StateRef(newest.hash, newest.size, values={}, segment=newest, replaced=replaced, keys=mark)

    def _read(self) -> tuple[MapLog, _Maps]:
        chains = self._task.start.chains.get(self._name, ())
        store = open_store(self._folder, durable=self._task.durable)
        log = MapLog(store)
        if len(chains) == 1 and chains[0].continues:
            cached = self._task.cache.take(self._folder, chains[0].newest.name)
            if cached is not None and {state for _, state in cached[1]} == set(self._declared):
                return cached
            content = log.restore(chains[0].newest, self._task.window - 1, [(self._name, state) for state in self._declared])
            return log, {key: decode_map(self._declared[key[1]], each.keys(), each.values()) for key, each in content.items()}
        maps: _Maps = {(self._name, state): TrackedDict() for state in self._declared}
        for chain in chains:
            self._take_over(store, chain, maps)
        return log, maps

    def _take_over(self, store: Store, chain: Chain, maps: _Maps) -> None:
        """Take this partition's keys out of the chain of another one."""
        log = MapLog(store)
        for key, each in log.restore(chain.newest, self._task.window - 1, list(maps)).items():
            declared = self._declared[key[1]]
            entries = {k: v for k, v in each.items() if self._owns(declared, k)}
            maps[key].update(decode_map(declared, entries.keys(), entries.values()))
        self._replaced += [segment.name for segment in log.segments]

    def _owns(self, declared: MapState[Any, Any], key: Any) -> bool:
        of_record = key if declared.partition_by is None else declared.partition_by(key)
        return self._task.keys.of_group(group_of(of_record)) == self._task.partition

    def _check(self, declared: MapState[Any, Any], keys: Iterable[Any]) -> None:
        for key in keys if self._task.keys.partitions > 1 else ():
            if not self._owns(declared, key):
                raise ForeignStateKey(self._name, declared.name, repr(key)[:200])


def _in_order(entries: TrackedDict[Any, Any]) -> TrackedDict[Any, Any]:
    """Return a map with sorted keys: the output of an operator must not depend on whether they were read or in memory.

    This is fast if they are nearly sorted, as those of the last window are.
    """
    ordered = sorted(entries, key=None if len({type(key) for key in entries}) < 2 else _by_type)
    if ordered == list(entries):
        return entries
    result: TrackedDict[Any, Any] = TrackedDict({key: entries[key] for key in ordered})
    if entries.changes().assigned:  # taken over from other partitions: all entries must be saved
        whole: TrackedDict[Any, Any] = TrackedDict()
        whole.update(result)
        return whole
    return result


def _by_type(key: Any) -> tuple[str, Any]:
    return type(key).__name__, key


def sweep(store: Store, window: int, states: Mapping[str, Sequence[StateRef]], *, lists: bool = True) -> None:
    """Remove the states that tasks left up to a decided window, except those that its decision names.

    `lists`: False leaves the states that only a listing shows to a later call.
    """
    refs = [ref for each in states.values() for ref in each]
    needed = {ref.name for ref in refs}
    for name in _names(store) if lists else ():
        if int(name.partition("/")[2].partition(".")[0]) <= window and name not in needed:
            store.discard(name)
    segments = {ref.segment.name for ref in refs if ref.segment is not None}
    if segments:
        keyed = open_store(keyed_folder(store.url), durable=False)
        replaced = {name for ref in refs if ref.segment is not None for name in ref.replaced}
        for name in (*replaced, *keyed.names(f"state/{window:010d}-")):
            if name not in segments:
                keyed.discard(name)


def erase(store: Store) -> None:
    """Remove the states of all tasks from a run folder."""
    for name in _names(store):
        store.discard(name)
    erase_segments(open_store(keyed_folder(store.url), durable=False))


def _names(store: Store) -> Iterator[str]:
    return filter(_NAMES.fullmatch, store.names(f"{_FOLDER}/"))
