"""The log of what windows have changed in maps: each window writes one segment with its changes; what is old is swept away.

A map is what its segments say, where newer ones are right. So that neither their number nor their size grows without bounds:

- *Levels.* A tail of small segments is put together like the digits of a number: where `fan_out - 1` segments of a level stand at
  the end, the next one says what they said, with today's values, and takes their place one level higher. Once the tail weighs a
  `1/share` of all maps (and `least_top`, or as much as the maps), the next segment takes the place of all of it: a *top*.
- *Sweeps.* When the log weighs twice the maps, or has more than `most` segments, a sweep begins: from now on every top also says
  `sweep` times its own weight of the keys that were there when it began. When all have been said, the segments from before it do
  not count any more, and with them old values and the notes of removed keys are gone. A restart finds what is left to be swept:
  the keys of which no segment since the beginning says anything.

With n the weight of all maps: an entry is written once when it changes, once for each level of the tail (the logarithm of its
windows to the base of `fan_out`, at most 2 in practice), once in a top, and on average about once in sweeps: 4 to 5 times. The
log weighs at most 3.5 n (2 n when a sweep begins, n for the swept keys, n/2 for the changes meanwhile; of maps below 64 KiB some
times that) and has some hundreds of segments. No window writes more than three times its own changes and 3 n / `share`. A restart
reads the log once. Nothing is ever done for all keys at once, but for the list of them that a sweep begins with.
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
    """Calls an action, perhaps again and again until it succeeds."""

    def __call__(self, window: int, doing: str, action: Callable[[], T]) -> T:
        """Return the result of the action."""
        ...


def _once(window: int, doing: str, action: Callable[[], T]) -> T:
    return action()


@attrs.frozen
class Policy:
    """See the module. `share`, `most`, `fan_out` and `sweep` are numbers, `least_top`, `slack` and `tiny` bytes."""

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
        retry: calls what reads or writes for a window, as often as it likes; told the window, and what is being done.

    Attributes:
        store: where the segments are.
        changed: the maps that the last call of `save` has found changed.

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
        self._chain: list[_Segment] = []  # that count, the oldest one first
        self._maps: dict[MapId, _Map] = {}
        self._has_forgotten = False  # a map that the newest segment still knows
        self._first = 0
        self._sweeping: int | None = None
        self._unswept: list[tuple[MapId, list[Any]]] = []
        self._dead: list[tuple[int, str]] = []  # a heap: from which window on a segment does not count
        self._dead_from: dict[str, int] = {}  # the same; what is not in here any more counts again

    @property
    def weight(self) -> int:
        """About how many bytes the segments are that count."""
        return sum(segment.weight for segment in self._chain)

    @property
    def segments(self) -> list[SegmentRef]:
        """Those that count, the oldest one first."""
        return [segment.ref for segment in self._chain]

    @property
    def count(self) -> int:
        """The number of segments that count."""
        return len(self._chain)

    def restore(self, newest: SegmentRef | None, window: int, ids: Iterable[MapId]) -> dict[MapId, dict[Any, Any]]:
        """Return the maps after a window, by its newest segment: keys and encoded values, in no order.

        What is there of other maps is forgotten: should there be one of its name again, it begins anew. To be called once at the
        most, before anything is saved. Raises SegmentMissing, SegmentDamaged.
        """
        found: dict[MapId, dict[Any, Any]] = {map_id: {} for map_id in ids}
        gone: dict[MapId, set[Any]] = {map_id: set() for map_id in found}
        said: dict[MapId, set[Any]] = {map_id: set() for map_id in found}
        since: dict[MapId, int] = {}
        in_tail = True
        self._newest = newest
        for ref, head, parts in self._segments(newest, window):
            if not self._chain:
                self._maps = {(m.operator, m.state): _Map(m.since, m.weight) for m in head.maps if (m.operator, m.state) in found}
                since = {map_id: kept.since for map_id, kept in self._maps.items()}
                self._has_forgotten = len(since) < len(head.maps)
                self._first, self._sweeping = head.first, head.sweeping
            in_tail = in_tail and head.level < TOP
            keys = keys_of(parts, since, head.window) if in_tail else {}
            self._chain.append(_Segment(ref, head.window, head.level, head.weight, keys))
            is_swept = self._sweeping is not None and head.window >= self._sweeping
            for part in parts:
                if part.id not in since or head.window < since[part.id]:
                    continue
                into, removed = found[part.id], gone[part.id]
                pairs = zip(part.keys, part.values, strict=True)
                into.update({k: v for k, v in pairs if k not in into and k not in removed} if into or removed else pairs)
                removed.update(key for key in part.removed if key not in into)
                if is_swept:
                    said[part.id].update(part.keys)
        self._chain.reverse()
        if self._sweeping is not None:
            self._unswept = [(map_id, [key for key in found[map_id] if key not in said[map_id]]) for map_id in self._maps]
        counting = {segment.ref.name for segment in self._chain}
        for name in self._retry(window, "listing segments of MapState", partial(segments, self.store)):
            if name not in counting:  # of a window that has no plan: it stays until that window has another one
                self._bury(name, max(window, window_of(name)))
        return found

    def save(self, window: int, maps: Mapping[MapId, TrackedDict[Any, Any]]) -> SegmentRef | None:
        """Make durable what has changed, before the plan of a window; what that plan has to name, None while nothing was ever.

        Windows come in order; one may come again when its plan was not published. Raises StateNotPlain, StorageError.
        """
        changes = {map_id: kept.changes() for map_id, kept in maps.items()}
        changes = {map_id: each for map_id, each in changes.items() if each.assigned or each.removed}
        self.changed = set(changes)
        if changes or self._has_forgotten:
            self._write(window, maps, changes)
        for kept in maps.values():
            kept.saved()
        return self._newest

    def sweep(self, needed_from: int) -> int:
        """Remove the segments that no window from `needed_from` on needs; how many."""
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
        """Return the segments that count, the newest one first. Raises SegmentMissing, SegmentDamaged."""
        ref, first = newest, 0
        while ref is not None and window_of(ref.name) >= first:
            head, parts = self._retry(window, "reading its MapState", partial(read, self.store, ref, window))
            first = max(first, head.first)
            yield ref, head, parts
            ref = head.previous

    def _write(
        self, window: int, maps: Mapping[MapId, TrackedDict[Any, Any]], changes: Mapping[MapId, Changes[Any, Any]]
    ) -> None:
        own = 0
        keys: Keys = {}
        for map_id, change in changes.items():
            kept = self._maps.setdefault(map_id, _Map(window))
            added, noted = _weights(change, _where(map_id))
            kept.weight = max(0, kept.weight + added)
            own += noted
            keys[map_id] = dict.fromkeys([*change.assigned, *change.removed])
        taken, level = self._taken(own)
        for segment in self._chain[taken:]:
            for map_id, said in segment.keys.items():
                keys.setdefault(map_id, {}).update(said)
        if level == TOP:
            self._swept(window, maps, keys, own + sum(segment.weight for segment in self._chain[taken:]))
        is_done = self._sweeping is not None and not self._unswept
        if is_done and self._sweeping is not None:
            self._first, self._sweeping = self._sweeping, None
        left = [segment for segment in self._chain[:taken] if segment.window >= self._first]
        parts, weight = _parts(maps, keys, keep_removed=bool(left))
        head = SegmentHead(
            window=window,
            level=level,
            weight=weight,
            log=weight + sum(segment.weight for segment in left),
            maps=[MapHead(*map_id, kept.since, kept.weight) for map_id, kept in self._maps.items()],
            first=self._first,
            sweeping=self._sweeping,
            previous=left[-1].ref if left else None,
        )
        self._newest = self._retry(window, "saving its MapState", partial(write, self.store, head, parts))
        self._has_forgotten = False
        self._dead_from.pop(self._newest.name, None)  # a launch that died before its plan had written the same
        stay = {segment.ref.name for segment in left} | {self._newest.name}
        for segment in self._chain:
            if segment.ref.name not in stay:
                self._bury(segment.ref.name, window)
        self._chain = [*left, _Segment(self._newest, window, level, weight, {} if level == TOP else keys)]

    def _taken(self, own: int) -> tuple[int, int]:
        """From which segment on the next one takes the place of those that there are, and its level."""
        start = len(self._chain)
        tail = 0
        while start and self._chain[start - 1].level != TOP:
            start -= 1
            tail += self._chain[start].weight
        live = sum(kept.weight for kept in self._maps.values())
        if tail + own >= self._policy.top(live):
            return start, TOP
        taken, level = len(self._chain), 0
        while True:
            run = taken
            while run > start and self._chain[run - 1].level == level:
                run -= 1
            if taken - run < self._policy.fan_out - 1:
                return taken, level
            taken, level = run, min(level + 1, TOP - 1)

    def _swept(self, window: int, maps: Mapping[MapId, TrackedDict[Any, Any]], keys: Keys, weight: int) -> None:
        """Add to the keys of a top those that it is to sweep, or begins a sweep if it is time."""
        live = sum(kept.weight for kept in self._maps.values())
        if self._sweeping is None and (self.weight + weight > self._policy.heavy(live) or len(self._chain) >= self._policy.most):
            self._sweeping = window
            self._unswept = [(map_id, list(maps[map_id])) for map_id in self._maps if map_id in maps]
        budget = self._policy.sweep * weight
        while self._unswept and budget > 0:
            map_id, waiting = self._unswept[-1]
            kept, said = maps[map_id], keys.setdefault(map_id, {})
            while waiting and budget > 0:
                key = waiting.pop()
                if key in kept and key not in said:
                    said[key] = None
                    budget -= weight_of(key) + weight_of(encode(kept[key], _where(map_id)))
            if not waiting:
                self._unswept.pop()


def _weights(change: Changes[Any, Any], where: str) -> tuple[int, int]:
    """By how much a change makes a map heavier, and how much it weighs in a segment. Raises StateNotPlain."""
    encode_keys(change.assigned, where)
    encode_keys(change.removed, where)
    assigned = sum(weight_of(key) + weight_of(encode(value, where)) for key, value in change.assigned.items())
    before = sum(weight_of(key) + weight_of(encode(value, where)) for key, value in change.before.items())
    return assigned - before, assigned + sum(weight_of(key) for key in change.removed)


def _parts(maps: Mapping[MapId, TrackedDict[Any, Any]], keys: Keys, keep_removed: bool) -> tuple[list[MapEntries], int]:
    """Return the parts of a segment with the entries of keys as they are now, and their weight."""
    parts, weight = [], 0
    for map_id, said in keys.items():
        kept: TrackedDict[Any, Any] = maps.get(map_id, TrackedDict())
        assigned: dict[Any, Any] = {}
        removed = []
        for key in said:
            value = kept.get(key, ABSENT)
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
