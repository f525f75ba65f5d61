"""The states of operators in tasks: given back before a task, saved after it.

Plain `State` is saved whole: in the task's report, or in an object of its own if it is large. Where there are several values from
the partitions before, `merge` makes one of them.

A `MapState` or `TableState` belongs to a keyed operator, and a partition has the entries of its keys. They are a log of segments
(`dagflow.state.log`), to which a window adds the entries that it has changed. Where the number of partitions or the assignment of
keys has changed, a task begins a log of its own, which refers to the segments of all partitions that may have had its keys.

What the decisions of windows name is kept as long as these: a window that runs again, even much later, begins with the same
states. So a state that later ones have replaced stays until the window that replaced it is old.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import attrs

from dagflow.model.operator.base import Operator
from dagflow.model.operator.map_state import KeyedState, MapState, TrackedDict
from dagflow.model.operator.state import State, state_fields
from dagflow.model.operator.table_state import KeyedTable, TableState
from dagflow.model.types.keyed_rows import KeyedRows, groups_of
from dagflow.model.types.keys import KeyAssignment
from dagflow.model.types.plain_data import dumps, loads
from dagflow.state.errors import ForeignStateKey, StateLost
from dagflow.state.log import StateLog, groups_of_partition
from dagflow.state.maps import Kept, MapLog, first_foreign, table_of
from dagflow.state.page_cache import with_cache
from dagflow.state.references import PartitionStates, StartStates, StateRef, assignment_mark
from dagflow.state.segment import MapId, SegmentRef, TableId, erase_segments, segments, window_of
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


@attrs.define(eq=False)
class KeptStates:
    """The maps and tables of an operator in one partition, and their log. `is_ordered`: the keys of the maps are sorted."""

    maps: MapLog
    values: dict[MapId, Kept]
    is_ordered: bool = True


@attrs.define
class MapCache:
    """The maps of the partitions that a process has worked on last, kept for the next window. Each process has its own.

    `size`: the number of partitions. A map is found by the folder of the segments and the name of its newest one.
    """

    size: int = 4
    _entries: dict[tuple[str, str], KeptStates] = attrs.field(factory=dict, init=False)

    def take(self, folder: str, segment: str) -> KeptStates | None:
        """Return maps and their log, which the caller may change: they are no longer in the cache."""
        return self._entries.pop((folder, segment), None)

    def put(self, folder: str, segment: str, entry: KeptStates) -> None:
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


def declared_maps(operator: Operator) -> dict[str, KeyedState[Any]]:
    """Return the `MapState` and `TableState` declarations that an operator uses, by name."""
    return {name: each for name, each in declared_states(operator).items() if isinstance(each, KeyedState)}


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
        return attrs.evolve(initial[0], segment=None, replaced=[], unshared=False)
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
        if not self.start.saves:
            return {}
        initial = self.start.states
        refs = {name: publish_states(self.store, self.window, each, initial.get(name, ())) for name, each in self._plain.items()}
        for name, maps in self._maps.items():
            ref = maps.save()
            if name in refs:
                ref = attrs.evolve(
                    refs[name],
                    segment=ref.segment,
                    replaced=ref.replaced,
                    keys=ref.keys,
                    unshared=ref.unshared,
                    pieces=ref.pieces,
                )
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
    """The maps and tables of one keyed operator in one task."""

    def __init__(self, task: TaskStates, name: str, declared: Mapping[str, KeyedState[Any]]) -> None:
        self._task = task
        self._name = name
        self._declared = {(name, state): each for state, each in declared.items()}
        self._record_keys = {
            map_id: each.partition_by
            for map_id, each in self._declared.items()
            if isinstance(each, MapState) and each.partition_by is not None
        }
        self._folder = keyed_folder(task.store.url)
        self._shares = False

    def restore(self, operator: Operator) -> None:
        """Give the operator the entries of this partition's keys, maps in the order of the keys."""
        self._kept = self._read()
        for (_, state), each in self._kept.values.items():
            operator.__dict__[state] = each
            if isinstance(each, TrackedDict):
                each.watch()

    def save(self) -> StateRef:
        """Add a segment with the entries that have changed."""
        maps, values = self._kept.maps, self._kept.values
        grows = False
        for (_, state), each in values.items():
            if isinstance(each, TrackedDict):
                changes = each.changes()
                checked(changes.assigned, self._declared[self._name, state], self._name, state)
                grows = grows or len(changes.assigned) > len(changes.before)
        before = maps.log.own
        newest = maps.save(self._task.window, values, self._record_keys, self._check)
        if newest is None:  # named all the same: the place in the decision's list is the partition's number
            return StateRef("", 0, values={})
        self._kept.is_ordered = not grows
        self._task.cache.put(self._folder, newest.name, self._kept)
        replaced = sorted(before - maps.log.needed.keys())
        unshared = self._shares and newest.window == self._task.window and maps.log.has_manifest
        mark = assignment_mark(self._task.keys)
        pieces = [each.name for each in maps.log.needed.values() if each.window == self._task.window and each != newest]
        return StateRef(
            newest.hash,
            newest.size,
            values={},
            segment=newest,
            replaced=replaced,
            keys=mark,
            unshared=unshared,
            pieces=sorted(pieces),
        )

    def _read(self) -> KeptStates:
        chains = self._task.start.chains.get(self._name, ())
        continues = len(chains) == 1 and chains[0].continues
        if continues:
            cached = self._task.cache.take(self._folder, chains[0].newest.name)
            if cached is not None and cached.values.keys() == self._declared.keys():
                if not cached.is_ordered:
                    cached.values = {map_id: _in_order(each) for map_id, each in cached.values.items()}
                self._shares = cached.maps.log.shares
                return cached
        maps = MapLog(with_cache(open_store(self._folder, durable=self._task.durable)))
        window, keys = self._task.window - 1, self._task.keys
        if continues:
            maps.log.restore(chains[0].newest, window, list(self._declared))
        elif keys.partitions > 1 or chains:
            groups = groups_of_partition(keys, self._task.partition)
            maps.log.take_over([chain.newest for chain in chains], window, list(self._declared), groups)
        self._shares = maps.log.shares
        by_id = maps.entries([map_id for map_id, each in self._declared.items() if isinstance(each, MapState)])
        values: dict[MapId, Kept] = {}
        for map_id, each in self._declared.items():
            if isinstance(each, MapState):
                entries = by_id[map_id]
                values[map_id] = _in_order(decode_map(each, entries.keys(), entries.values()))
            elif isinstance(each, TableState):
                table = values[map_id] = table_of(maps.log, map_id, each)
                table.is_saved = self._task.start.saves
        return KeptStates(maps, values)

    def _check(self, table: TableId, rows: KeyedRows) -> None:
        """Raise ForeignStateKey for rows of keys that belong to another partition."""
        if self._task.keys.partitions > 1:
            is_foreign = self._task.keys.of_groups(groups_of(rows.codes)) != self._task.partition
            if is_foreign.any():
                raise ForeignStateKey(self._name, table[1], first_foreign(rows, table[2], is_foreign))


def _in_order(entries: Kept) -> Kept:
    """Return a map with sorted keys: the output of an operator must not depend on whether they were read or in memory.

    This is fast if they are nearly sorted, as those of the last window are.
    """
    if isinstance(entries, KeyedTable):
        return entries
    ordered = sorted(entries, key=None if len(set(map(type, entries))) < 2 else _by_type)
    return entries if ordered == list(entries) else TrackedDict({key: entries[key] for key in ordered})


def _by_type(key: Any) -> tuple[str, Any]:
    return type(key).__name__, key


def sweep_attempts(store: Store, window: int, states: PartitionStates, *, lists: bool = True) -> None:
    """Remove the states that attempts of a decided window have left, except those that its decision names.

    `lists`: False leaves whole states to `sweep_replaced`.
    """
    refs = [ref for each in states.values() for ref in each]
    needed = {name for ref in refs for name in (ref.name, *ref.pieces)}
    for name in store.names(f"{_FOLDER}/{window:010d}.") if lists else ():
        if name not in needed:
            store.discard(name)
    newest = {ref.segment.name for ref in refs if ref.segment is not None}
    if newest:
        keyed = open_store(keyed_folder(store.url), durable=False)
        keyed.discard_all(sorted({*keyed.names(f"state/{window:010d}-")} - newest - needed))


def sweep_replaced(store: Store, states: Mapping[int, PartitionStates]) -> None:
    """Remove the states that no window behind some needs: `states` are those that the decisions of these windows name.

    These windows, and those before them, cannot be run again then.
    """
    refs = {window: [ref for each in left.values() for ref in each] for window, left in states.items()}
    if not any(refs.values()):
        return
    last = max(refs)
    needed = {ref.name for ref in refs[last]}
    for name in filter(_NAMES.fullmatch, store.names(f"{_FOLDER}/")):
        if int(name.partition("/")[2].partition(".")[0]) <= last and name not in needed:
            store.discard(name)
    keyed = open_store(keyed_folder(store.url), durable=False)
    gone = {name for each in refs.values() for ref in each for name in ref.replaced}
    if any(ref.unshared for each in refs.values() for ref in each):
        gone |= _not_needed(
            keyed, last, {ref.segment.name: ref.segment for ref in refs[last] if ref.segment is not None}.values()
        )
    keyed.discard_all(sorted(gone))


def _not_needed(keyed: Store, window: int, newest: Iterable[SegmentRef]) -> set[str]:
    """Return the segments up to a window that no partition needs: those that several had shared, after the last of them."""
    needed: set[str] = set()
    for ref in newest:
        log = StateLog(keyed)
        log.restore(ref, window)
        needed |= log.needed.keys()
    return {name for name in segments(keyed) if window_of(name) <= window and name not in needed}


def erase(store: Store) -> None:
    """Remove the states of all tasks from a run folder."""
    for name in filter(_NAMES.fullmatch, store.names(f"{_FOLDER}/")):
        store.discard(name)
    erase_segments(open_store(keyed_folder(store.url), durable=False))
