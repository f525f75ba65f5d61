"""What a task knows of the others of its stage: their logs, and the gauges that tell how much is left."""

from __future__ import annotations

import json
import time

import attrs

from dagflow.runtime.rebalancing.ownership_log import OwnershipLog
from dagflow.runtime.rebalancing.policy import Peer
from dagflow.runtime.run_folder.layout import gauge_name
from dagflow.storage import Gauge, Store

SILENT = 2.0  # seconds without a new figure after which a task is taken to be dead: it will have to begin again


@attrs.define
class _Seen:
    gauge: Gauge
    text: bytes | None = None
    attempts: int = 0
    at: float = attrs.field(factory=time.monotonic)
    works_since: float | None = None
    key: str = ""
    asked: str | None = None


class PeerView:
    """Looks at all tasks of a stage but one.

    Args:
        folder: of the store, on this machine's disk.
        mark: the record that tells that tasks of others want slots.
    """

    def __init__(self, store: Store, folder: str, area: str, mark: str, claims: OwnershipLog, partitions: int) -> None:
        self._store = store
        self._mark = mark
        self._claims = claims
        self._seen = {n: _Seen(gauge_of(folder, area, n)) for n in range(partitions) if n != claims.partition}

    def want_slots(self) -> bool:
        """Whether tasks of another window or stage wait for slots."""
        return self._store.read(self._mark) is not None

    def wait_for_slots(self, room: int) -> bool:
        """Whether others cannot start before a slot is free: one look says it."""
        return len(self._seen) >= room and not self._have_all_begun()

    def _have_all_begun(self) -> bool:
        """Tasks begin in the order of their numbers, and the last one never does so quietly."""
        last = max(self._seen, default=-1)
        return last < self._claims.partition or bool(self._claims.log_of(last).catch_up().attempts)

    def look(self, since: float) -> list[Peer]:
        """The others as they are now. `since`: how long this task has been looking (`time.monotonic`)."""
        have_begun = self._have_all_begun()
        return [self._reader(number, since, have_begun) for number in self._seen]

    def _reader(self, number: int, since: float, has_begun: bool) -> Peer:
        seen, now = self._seen[number], time.monotonic()
        working_since = max(since, now if seen.works_since is None else seen.works_since)
        seen.works_since = None
        state = self._claims.log_of(number).catch_up()
        if state.report is not None:
            return Peer(partition=number, state="done")
        if not state.attempts and has_begun:  # quietly
            seen.works_since = working_since
            return Peer(partition=number, state="working", watched=now - working_since)
        if not state.attempts:
            return Peer(partition=number, state="waiting")
        text = seen.gauge.read()
        if text != seen.text or seen.attempts != len(state.attempts):
            seen.text, seen.at, seen.attempts = text, now, len(state.attempts)
        if now - seen.at > SILENT:
            return Peer(partition=number, state="waiting")
        try:
            told = json.loads(text) if text is not None else {}
        except ValueError:  # torn: the next look will see it whole
            told = {}
        if told.get("by") != state.attempts[-1]:  # an attempt before has left it
            told = {}
        if told.get("idle"):
            return Peer(partition=number, state="idle")
        seen.works_since = working_since
        seen.key = str(told.get("key", ""))
        return Peer(
            partition=number,
            state="working",
            remaining=told.get("left"),
            is_last=told.get("last", False),
            asked=seen.key in (seen.asked, told.get("refused") or None),
            watched=now - working_since,
        )

    def asked(self, number: int) -> None:
        """A task is being asked: for its present record, it is not asked again."""
        self._seen[number].asked = self._seen[number].key


def gauge_of(folder: str, area: str, partition: int) -> Gauge:
    """Where a task tells how much is left."""
    return Gauge(f"{folder}/{gauge_name(area, partition)}")
