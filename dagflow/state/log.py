"""The log of the changes in maps: each window writes one segment with its changes, and old segments are swept away.

A map consists of the entries in its segments; newer ones take precedence. Two mechanisms bound the number and size of segments:

- *Levels.* A tail of small segments is merged like the digits of a number: if the last `fan_out - 1` segments have the same
  level, the next one also holds their keys, with current values, and replaces them one level higher. Once the tail weighs
  `1/share` of all maps (and `least_top`, or as much as the maps), the next segment replaces all of it: a *top*.
- *Sweeps.* When the log weighs twice the maps, or has more than `most` segments, a sweep begins: from then on, every top also
  holds `sweep` times its own weight of the keys that existed when the sweep began. When all of them are written, older segments
  do not count any more, and old values and removed keys are gone with them. After a restart, the keys that are still to be swept
  are those that are not in any segment since the beginning of the sweep.

Let n be the weight of all maps. An entry is written once when it changes, once for each level of the tail (the logarithm of its
windows to the base `fan_out`, at most 2 in practice), once in a top, and on average about once in sweeps: 4 to 5 times. The log
weighs at most 3.5 n (2 n when a sweep begins, n for the swept keys, n/2 for the changes meanwhile; several times that for maps
below 64 KiB) and has some hundreds of segments. No window writes more than three times its own changes plus 3 n / `share`. A
restart reads the log once. No work is done for all keys at once, except for the list of keys that a sweep begins with.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

import attrs

from dagflow.model.operator.map_state import ABSENT, Changes, TrackedDict
from dagflow.model.types.plain_data import encode
from dagflow.state.segment import (
    MapEntries,
    MapHead,
    MapId,
    SegmentHead,
    SegmentRef,
    keys_of,
    read,
    segments,
    weight_of,
    window_of,
    write,
)
from dagflow.state.values import encode_keys
from dagflow.storage import Store

TOP = 9
T = TypeVar("T")
Keys = dict[MapId, dict[Any, None]]


class Retry(Protocol):
    """A function that calls an action, and repeats it after transient failures."""

    def __call__(self, window: int, doing: str, action: Callable[[], T]) -> T:
        """Return the result of the action."""
        ...


def _once(window: int, doing: str, action: Callable[[], T]) -> T:
    return action()


@attrs.frozen
class Policy:
    """The parameters of the log; see the module. `least_top`, `slack` and `tiny` are numbers of bytes."""

    fan_out: int = 64
    share: int = 256
    least_top: int = 64 << 10
    slack: int = 256 << 10
    tiny: int = 2 << 10
    most: int = 1000
    sweep: int = 2

    def top(self, live: int) -> int:
        """Return the weight of the tail from which on a top is written; for a small map, the weight of the map itself."""
        return max(live // self.share, min(self.least_top, max(live, self.tiny)))

    def heavy(self, live: int) -> int:
        """Return the weight of the log that begins a sweep."""
        return 2 * live + min(self.slack, 4 * max(live, self.tiny))


@attrs.define
class _Segment:
    ref: SegmentRef
    window: int
    level: int
    weight: int
    keys: Keys  # empty for tops


@attrs.define
class _Map:
    since: int
    weight: int = 0


class MapLog:
    """The maps of a run, saved window by window in a store, which no other writer uses at the same time.

    Args:
        retry: calls the actions that read or write, with the window and a phrase for messages; it may repeat them.

    Attributes:
        store: where the segments are.
        changed: the maps that had changes in the last call of `save`.

    >>> from dagflow.storage import MemoryStore
    >>> store, seen = MemoryStore(), TrackedDict()
    >>> log = MapLog(store)
    >>> seen["a"] = 1
    >>> ref = log.save(0, {("files", "seen"): seen})
    >>> ref.name.partition("-")[0]
    'state/0000000000'
    >>> log.save(1, {("files", "seen"): seen}) == ref  # nothing has changed
    True
    >>> MapLog(store).restore(ref, 1, [("files", "seen")])
    {('files', 'seen'): {'a': 1}}
    """

    def __init__(self, store: Store, policy: Policy | None = None, retry: Retry = _once) -> None:
        self.store = store
        self.changed: set[MapId] = set()
        self._policy = policy or Policy()
        self._retry = retry
        self._newest: SegmentRef | None = None
        self._chain: list[_Segment] = []  # the segments that count, the oldest one first
        self._maps: dict[MapId, _Map] = {}
        self._has_forgotten = False  # the newest segment still has a map that was dropped
        self._first = 0
        self._sweeping: int | None = None
        self._unswept: list[tuple[MapId, list[Any]]] = []
        self._dead: list[tuple[int, str]] = []  # a heap of (the window from which on a segment does not count, its name)
        self._dead_from: dict[str, int] = {}  # the same by name; a segment that is not in it counts again

    @property
    def weight(self) -> int:
        """About the number of bytes of the segments that count."""
        return sum(segment.weight for segment in self._chain)

    @property
    def segments(self) -> list[SegmentRef]:
        """The segments that count, the oldest one first."""
        return [segment.ref for segment in self._chain]

    @property
    def count(self) -> int:
        """The number of segments that count."""
        return len(self._chain)

    def restore(self, newest: SegmentRef | None, window: int, ids: Iterable[MapId]) -> dict[MapId, dict[Any, Any]]:
        """Return the maps after a window, by its newest segment: keys and encoded values, in no order.

        Maps that are not in `ids` are dropped: a later map of the same name begins empty. Called at most once, before anything is
        saved. Raises SegmentMissing, SegmentDamaged.
        """
        entries: dict[MapId, dict[Any, Any]] = {map_id: {} for map_id in ids}
        removed_keys: dict[MapId, set[Any]] = {map_id: set() for map_id in entries}
        swept_keys: dict[MapId, set[Any]] = {map_id: set() for map_id in entries}
        since: dict[MapId, int] = {}
        in_tail = True
        self._newest = newest
        for ref, head, parts in self._segments(newest, window):
            if not self._chain:
                self._maps = {
                    (m.operator, m.state): _Map(m.since, m.weight) for m in head.maps if (m.operator, m.state) in entries
                }
                since = {map_id: info.since for map_id, info in self._maps.items()}
                self._has_forgotten = len(since) < len(head.maps)
                self._first, self._sweeping = head.first, head.sweeping
            in_tail = in_tail and head.level < TOP
            keys = keys_of(parts, since, head.window) if in_tail else {}
            self._chain.append(_Segment(ref, head.window, head.level, head.weight, keys))
            is_swept = self._sweeping is not None and head.window >= self._sweeping
            for part in parts:
                if part.id not in since or head.window < since[part.id]:
                    continue
                into, removed = entries[part.id], removed_keys[part.id]
                pairs = zip(part.keys, part.values, strict=True)
                into.update({k: v for k, v in pairs if k not in into and k not in removed} if into or removed else pairs)
                removed.update(key for key in part.removed if key not in into)
                if is_swept:
                    swept_keys[part.id].update(part.keys)
        self._chain.reverse()
        if self._sweeping is not None:
            self._unswept = [(map_id, [key for key in entries[map_id] if key not in swept_keys[map_id]]) for map_id in self._maps]
        counting = {segment.ref.name for segment in self._chain}
        for name in self._retry(window, "listing segments of MapState", partial(segments, self.store)):
            if name not in counting:  # its window has no plan yet: the segment stays until it has one
                self._bury(name, max(window, window_of(name)))
        return entries

    def save(self, window: int, maps: Mapping[MapId, TrackedDict[Any, Any]]) -> SegmentRef | None:
        """Save all changes durably, before the plan of a window. Return the segment for the plan; None if there is none yet.

        Windows come in order; one may come again if its plan was not published. Raises StateNotPlain, StorageError.
        """
        changes = {map_id: current.changes() for map_id, current in maps.items()}
        changes = {map_id: each for map_id, each in changes.items() if each.assigned or each.removed}
        self.changed = set(changes)
        if changes or self._has_forgotten:
            self._write(window, maps, changes)
        for current in maps.values():
            current.saved()
        return self._newest

    def sweep(self, needed_from: int) -> int:
        """Remove the segments that no window from `needed_from` on needs, and return their number."""
        count = 0
        while self._dead and self._dead[0][0] <= needed_from:
            since, name = heapq.heappop(self._dead)
            if self._dead_from.get(name) == since:
                del self._dead_from[name]
                self._retry(needed_from, "removing old segments of MapState", partial(self.store.discard, name))
                count += 1
        return count

    def _bury(self, name: str, since: int) -> None:
        self._dead_from[name] = since
        heapq.heappush(self._dead, (since, name))

    def _segments(self, newest: SegmentRef | None, window: int) -> Iterator[tuple[SegmentRef, SegmentHead, list[MapEntries]]]:
        """Yield the segments that count, the newest one first. Raises SegmentMissing, SegmentDamaged."""
        ref, first = newest, 0
        while ref is not None and window_of(ref.name) >= first:
            head, parts = self._retry(window, "reading its MapState", partial(read, self.store, ref, window))
            first = max(first, head.first)
            yield ref, head, parts
            ref = head.previous

    def _write(
        self, window: int, maps: Mapping[MapId, TrackedDict[Any, Any]], changes: Mapping[MapId, Changes[Any, Any]]
    ) -> None:
        change_weight = 0
        keys: Keys = {}
        for map_id, change in changes.items():
            info = self._maps.setdefault(map_id, _Map(window))
            growth, written = _weights(change, _where(map_id))
            info.weight = max(0, info.weight + growth)
            change_weight += written
            keys[map_id] = dict.fromkeys([*change.assigned, *change.removed])
        stop, level = self._replaced(change_weight)
        for segment in self._chain[stop:]:
            for map_id, segment_keys in segment.keys.items():
                keys.setdefault(map_id, {}).update(segment_keys)
        if level == TOP:
            self._add_swept_keys(window, maps, keys, change_weight + sum(segment.weight for segment in self._chain[stop:]))
        is_done = self._sweeping is not None and not self._unswept
        if is_done and self._sweeping is not None:
            self._first, self._sweeping = self._sweeping, None
        remaining = [segment for segment in self._chain[:stop] if segment.window >= self._first]
        parts, weight = _parts(maps, keys, keep_removed=bool(remaining))
        head = SegmentHead(
            window=window,
            level=level,
            weight=weight,
            log=weight + sum(segment.weight for segment in remaining),
            maps=[MapHead(*map_id, info.since, info.weight) for map_id, info in self._maps.items()],
            first=self._first,
            sweeping=self._sweeping,
            previous=remaining[-1].ref if remaining else None,
        )
        self._newest = self._retry(window, "saving its MapState", partial(write, self.store, head, parts))
        self._has_forgotten = False
        self._dead_from.pop(self._newest.name, None)  # a launch that died before its plan wrote the same segment
        stay = {segment.ref.name for segment in remaining} | {self._newest.name}
        for segment in self._chain:
            if segment.ref.name not in stay:
                self._bury(segment.ref.name, window)
        self._chain = [*remaining, _Segment(self._newest, window, level, weight, {} if level == TOP else keys)]

    def _replaced(self, change_weight: int) -> tuple[int, int]:
        """Return the number of segments that stay when the next one replaces the others, and the level of the next one."""
        start = len(self._chain)
        tail = 0
        while start and self._chain[start - 1].level != TOP:
            start -= 1
            tail += self._chain[start].weight
        live = sum(info.weight for info in self._maps.values())
        if tail + change_weight >= self._policy.top(live):
            return start, TOP
        stop, level = len(self._chain), 0
        while True:
            run = stop
            while run > start and self._chain[run - 1].level == level:
                run -= 1
            if stop - run < self._policy.fan_out - 1:
                return stop, level
            stop, level = run, min(level + 1, TOP - 1)

    def _add_swept_keys(self, window: int, maps: Mapping[MapId, TrackedDict[Any, Any]], keys: Keys, weight: int) -> None:
        """Add the keys that a top sweeps to its own keys. Begin a sweep if it is time."""
        live = sum(entries.weight for entries in self._maps.values())
        if self._sweeping is None and (self.weight + weight > self._policy.heavy(live) or len(self._chain) >= self._policy.most):
            self._sweeping = window
            self._unswept = [(map_id, list(maps[map_id])) for map_id in self._maps if map_id in maps]
        budget = self._policy.sweep * weight
        while self._unswept and budget > 0:
            map_id, waiting = self._unswept[-1]
            entries, swept_keys = maps[map_id], keys.setdefault(map_id, {})
            while waiting and budget > 0:
                key = waiting.pop()
                if key in entries and key not in swept_keys:
                    swept_keys[key] = None
                    budget -= weight_of(key) + weight_of(encode(entries[key], _where(map_id)))
            if not waiting:
                self._unswept.pop()


def _weights(change: Changes[Any, Any], where: str) -> tuple[int, int]:
    """Return the weight that a change adds to a map, and its weight in a segment. Raises StateNotPlain."""
    encode_keys(change.assigned, where)
    encode_keys(change.removed, where)
    assigned = sum(weight_of(key) + weight_of(encode(value, where)) for key, value in change.assigned.items())
    before = sum(weight_of(key) + weight_of(encode(value, where)) for key, value in change.before.items())
    return assigned - before, assigned + sum(weight_of(key) for key in change.removed)


def _parts(maps: Mapping[MapId, TrackedDict[Any, Any]], keys: Keys, keep_removed: bool) -> tuple[list[MapEntries], int]:
    """Return the parts of a segment with the current entries of keys, and their weight."""
    parts, weight = [], 0
    for map_id, map_keys in keys.items():
        entries: TrackedDict[Any, Any] = maps.get(map_id, TrackedDict())
        assigned: dict[Any, Any] = {}
        removed = []
        for key in map_keys:
            value = entries.get(key, ABSENT)
            if value is not ABSENT:
                assigned[key] = value
            elif keep_removed:
                removed.append(key)
        values = encode(list(assigned.values()), _where(map_id))
        weight += sum(map(weight_of, assigned)) + sum(map(weight_of, values)) + sum(map(weight_of, removed))
        if assigned or removed:
            parts.append(MapEntries(map_id, list(assigned), values, removed))
    return parts, weight


def _where(map_id: MapId) -> str:
    return f"MapState {map_id[1]!r} of operator {map_id[0]!r}"
