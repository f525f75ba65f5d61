"""A task's view of the other tasks of its stage: their logs, and the gauges that show how much work they have left."""

from __future__ import annotations

import json

import attrs

from dagflow.model.operator.context import Clock, SystemClock
from dagflow.runtime.rebalancing.ownership_log import OwnershipLog
from dagflow.runtime.rebalancing.policy import Peer
from dagflow.runtime.run_folder.layout import gauge_name
from dagflow.storage import Gauge, Store

SILENT = 2.0  # seconds without a new figure after which a task counts as dead: it will have to begin again


@attrs.define
class _KnownPeer:
    """The facts that earlier looks at a peer have left."""

    gauge: Gauge
    at: float
    text: bytes | None = None
    attempts: int = 0
    works_since: float | None = None
    key: str = ""
    asked: str | None = None


class PeerView:
    """The other tasks of a stage, as one task sees them.

    Args:
        folder: of the store, on this machine's disk.
        slots_wanted: the record that tells that tasks of other stages or windows want slots.
    """

    def __init__(
        self,
        store: Store,
        folder: str,
        area: str,
        slots_wanted: str,
        ownership: OwnershipLog,
        partitions: int,
        clock: Clock | None = None,
    ) -> None:
        self._store = store
        self._slots_wanted = slots_wanted
        self._ownership = ownership
        self._clock = clock or SystemClock()
        now = self._clock.monotonic()
        self._known = {n: _KnownPeer(gauge_of(folder, area, n), now) for n in range(partitions) if n != ownership.partition}

    def want_slots(self) -> bool:
        """Return whether tasks of another window or stage wait for slots."""
        return self._store.read(self._slots_wanted) is not None

    def wait_for_slots(self, room: int) -> bool:
        """Return whether peers cannot start before a slot is free, by a single look."""
        return len(self._known) >= room and not self._have_all_begun()

    def _have_all_begun(self) -> bool:
        """Return whether the last task has begun: tasks begin in the order of their numbers, and the last one never quietly."""
        last = max(self._known, default=-1)
        return last < self._ownership.partition or bool(self._ownership.log_of(last).catch_up().attempts)

    def look(self, since: float) -> list[Peer]:
        """Return the present state of the peers. `since`: when this task became idle, on the monotonic clock."""
        have_begun = self._have_all_begun()
        return [self._peer(number, since, have_begun) for number in self._known]

    def _peer(self, number: int, since: float, has_begun: bool) -> Peer:
        peer, now = self._known[number], self._clock.monotonic()
        working_since = max(since, now if peer.works_since is None else peer.works_since)
        peer.works_since = None
        state = self._ownership.log_of(number).catch_up()
        if state.report is not None:
            return Peer(partition=number, state="done")
        if not state.attempts and has_begun:  # quietly
            peer.works_since = working_since
            return Peer(partition=number, state="working", watched=now - working_since)
        if not state.attempts:
            return Peer(partition=number, state="waiting")
        text = peer.gauge.read()
        if text != peer.text or peer.attempts != len(state.attempts):
            peer.text, peer.at, peer.attempts = text, now, len(state.attempts)
        if now - peer.at > SILENT:
            return Peer(partition=number, state="waiting")
        try:
            figures = json.loads(text) if text is not None else {}
        except ValueError:  # a torn write: the next look sees all of it
            figures = {}
        if figures.get("by") != state.attempts[-1]:  # an earlier attempt has left it
            figures = {}
        if figures.get("idle"):
            return Peer(partition=number, state="idle")
        peer.works_since = working_since
        peer.key = str(figures.get("key", ""))
        return Peer(
            partition=number,
            state="working",
            remaining=figures.get("left"),
            is_last=figures.get("last", False),
            asked=peer.key in (peer.asked, figures.get("refused") or None),
            watched=now - working_since,
        )

    def asked(self, number: int) -> None:
        """Note that a peer is asked; during its present record it is not asked again."""
        self._known[number].asked = self._known[number].key


def gauge_of(folder: str, area: str, partition: int) -> Gauge:
    """Return the gauge in which a task publishes its remaining work."""
    return Gauge(f"{folder}/{gauge_name(area, partition)}")
