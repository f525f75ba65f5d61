"""The usual form of work: an idle task steals from its peers through their logs, also while they are inside a slow record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from types import TracebackType

import attrs

from dagflow.model.operator.context import Clock
from dagflow.model.types.plain_data import decode, encode
from dagflow.runtime.rebalancing import failpoints
from dagflow.runtime.rebalancing.background import BACKGROUND, POLL
from dagflow.runtime.rebalancing.items import ItemInProgress
from dagflow.runtime.rebalancing.ownership_log import OwnershipLog
from dagflow.runtime.rebalancing.peers import PeerView, gauge_of
from dagflow.runtime.rebalancing.policy import SLOT_IS_WANTED, StolenParts, choose, remaining, steal_from
from dagflow.runtime.rebalancing.task_work import MovableWork
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.outcome import BusyInterval, TaskEndStats
from dagflow.runtime.stage.parts import Part, part_of
from dagflow.runtime.stage.program import TaskSpec, Work
from dagflow.storage import Gauge, local_path

MIN_SLEEP, MAX_SLEEP = 0.002, 0.02  # seconds between looks at the peers while idle
SLEEP_PER_LOOK = 10
"""An idle task sleeps at least so many times as long as a look keeps the processor: there may be very many peers. Time spent
waiting for the processor does not count: else an idle task on a busy machine would sleep through the rest of the window."""
ANSWER_POLL = 0.005
ANSWER_TIMEOUT = 1.0  # seconds to wait for an answer
QUIET = 0.02  # seconds before an attempt is announced: a small task is over by then, and has written less
GAUGE_EVERY = 0.05  # seconds between writings of the gauge


class StealingWork(MovableWork):
    """The work of one attempt of a task. A context manager, within which steal requests of peers are answered.

    Args:
        ownership: the attempt at the logs, used under the lock only, as two threads write.
        peers: the view of the other tasks of the stage.
        gauge: the file in which this task tells how much is left.
        again: an earlier attempt has died, so this one fences it at once.
        processor_time: seconds for which this thread has had the processor.
    """

    every = POLL  # see `BackgroundTask`

    def __init__(
        self,
        spec: TaskSpec,
        log: WindowLog,
        ownership: OwnershipLog,
        peers: PeerView,
        gauge: Gauge,
        *,
        again: bool = False,
        clock: Clock | None = None,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        super().__init__(spec, log, clock)
        self._items = ownership.items
        self._room = spec.work.room
        self._is_again = again
        self._processor_time = processor_time
        self._ownership = ownership
        self._peers = peers
        self._gauge = gauge
        self._written = 0
        self._written_at = self._begun_at = 0.0
        self._is_idle = False
        self._refused = ""  # the record during which a request was refused last
        now = self._clock.now()
        self._end_stats = TaskEndStats(begun=now, until=now, room=self._room)

    @classmethod
    def of(cls, spec: TaskSpec, log: WindowLog, attempt: str, again: bool) -> StealingWork:
        """Return the work of a task whose run folder is on this machine's disk, or mounted there."""
        store, area = log.unsynced, spec.claims_area
        folder = local_path(store.url)
        assert folder is not None
        assigned = dict(zip(spec.work.numbers, spec.work.items, strict=True))
        ownership = OwnershipLog(
            store, area, partition=spec.partition, partitions=spec.partitions, attempt=attempt, assigned=assigned
        )
        peers = PeerView(store, folder, area, spec.slots_wanted, ownership, spec.partitions)
        return cls(spec, log, ownership, peers, gauge_of(folder, area, spec.partition), again=again)

    def __enter__(self) -> StealingWork:
        self._first_parts = self._ownership.begin(quietly=not (self._is_again or self._ownership.is_last))
        if (report := self._ownership.own.state.report) is not None:
            self.previous_report = decode(report, TaskReport)
        else:
            self._is_ticking, self._begun_at = True, self._clock.monotonic()
            self._written_at = self._begun_at
            BACKGROUND.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            was_ticking, self._is_ticking = self._is_ticking, False
            if self._written and error is None:
                self._write_gauge(self._clock.monotonic())  # all has been read
            self._gauge.close()
        if was_ticking:
            BACKGROUND.remove(self)

    # The end of the task

    def end_stats(self) -> TaskEndStats | None:
        """Return the figures that show if the work was even; None if an earlier attempt has done it."""
        return self._end_stats if self.previous_report is None else None

    def repeated(self) -> TaskSpec:
        """Return the task that reads the reported parts of an earlier attempt again, in the same order."""
        assert self.previous_report is not None
        travelling = self._ownership.known_items()
        parts = tuple(part_of(part) for part in self.previous_report.parts)
        items = tuple(tuple(travelling[part.number]) for part in parts)
        return attrs.evolve(self.spec, work=Work(items=items, numbers=tuple(part.number for part in parts), parts=parts))

    def publish(self, report: TaskReport) -> TaskReport:
        """Publish the task's report as the last entry of its log. Raises AttemptFenced."""
        self.check()
        with self._lock:
            self._ownership.report(encode(report, self.spec.name))
        return report

    # The task's own thread

    def _put(self, parts: Iterable[Part]) -> None:
        super()._put(sorted(parts, key=lambda part: part.place))

    def _next(self) -> bool:
        """Take the next pending item, stolen ones too. Raises AttemptFenced."""
        while True:
            if super()._next():
                return True
            if not self._steal():
                with self._lock:
                    late = self._ownership.recover()
                    self._put(late)
                if not late:
                    return False

    def _finish(self) -> ItemInProgress:
        with self._lock:
            item = super()._finish()
            stats = self._end_stats
            stats.until = self._clock.now()
            seconds = self._clock.monotonic() - item.unsplittable_since
            if stats.longest is None or seconds > stats.longest.seconds:
                stats.longest = BusyInterval(stats.until - seconds, stats.until, item.unsplittable_because)
            return item

    def _completes(self, item: ItemInProgress, part: Part) -> bool:
        """Finish a part in the ownership log. Return whether that completes the item. Raises AttemptFenced."""
        item.completes = self._ownership.finish(part)
        return item.completes

    # Stealing

    def _steal(self) -> bool:
        """Look for work of peers until some is stolen; False when it is not worth looking any longer."""
        if self._peers.wait_for_slots(self._room):
            return self._stop(SLOT_IS_WANTED)
        idle_since = self._clock.monotonic()
        is_first = True
        while True:
            self.check()
            began = self._processor_time()
            peers = self._peers.look(idle_since)
            look = 0.0 if is_first else self._processor_time() - began  # the first look has more to read than later ones
            is_first = False
            now = self._clock.monotonic()
            choice = choose(peers, room=self._room, idle=now - idle_since, is_wanted=self._peers.want_slots())
            if choice.action != "end" or any(peer.state == "idle" for peer in peers):
                self._show_idle(True)
            if choice.action == "end":
                return self._stop(choice.reason)
            if choice.partition is None:
                pause = min(MAX_SLEEP, max(MIN_SLEEP, (now - idle_since) / 4))
                self._clock.sleep(max(pause, SLEEP_PER_LOOK * look))
            elif self._steal_from(choice.partition):
                self._show_idle(False)
                return True

    def _stop(self, reason: str) -> bool:
        self._end_stats.stopped = reason
        return False

    def _show_idle(self, is_idle: bool) -> None:
        """Write the gauge at once, so that idle peers do not wait for this task."""
        with self._lock:
            if self._is_idle != is_idle:
                self._is_idle = is_idle
                self._ownership.announce()
                self._write_gauge(self._clock.monotonic())

    def _steal_from(self, partition: int) -> bool:
        self._peers.asked(partition)
        with self._lock:
            request = self._ownership.ask(partition)
        if request is None:
            return False
        until = self._clock.monotonic() + ANSWER_TIMEOUT
        while True:
            self.check()
            with self._lock:
                parts = self._ownership.answer(request)
                if parts is None and self._clock.monotonic() >= until:
                    parts = self._ownership.withdraw(request)
                if parts is not None:
                    self._put(parts)
                    if not parts:
                        self._end_stats.refusals += 1
                        self._end_stats.refusal = self._ownership.refusal(request)
                    return bool(parts)
            self._clock.sleep(ANSWER_POLL)

    # Being stolen from, in the background thread

    def tick(self) -> None:
        """Answer steal requests, and write how much is left."""
        with self._lock:
            if not self._is_ticking or self._failure is not None:
                return
            try:
                now = self._clock.monotonic()
                if self._item is not None:
                    self._item.look(now)
                if now - self._begun_at >= QUIET:
                    self._ownership.announce()
                self._answer_requests()
                if now - self._written_at >= GAUGE_EVERY:
                    self._write_gauge(now)
            except BaseException as failure:  # noqa: BLE001  # it is raised where the task works
                self._failure = failure

    def _answer_requests(self) -> None:
        for request in self._ownership.requests():
            if self._ownership.own.state.report is not None or self._stage is None:
                return
            failpoints.hit("asked")
            stolen = steal_from(self._item, self._queue, self._throughput, self._clock.monotonic())
            if isinstance(stolen, str):
                self._ownership.refuse(request, stolen)
                self._refused = self._key
                self._write_gauge(self._clock.monotonic())  # at once, so that other peers need not ask
            elif stolen is not None:
                failpoints.hit("narrowed")
                self._grant(request, stolen)

    def _grant(self, request: int, stolen: StolenParts) -> None:
        if not self._ownership.grant(request, stolen.parts, stolen.size):
            self._put(stolen.parts)  # the request has been withdrawn

    @property
    def _key(self) -> str:
        """The name of the present record."""
        return self._item.key if self._item is not None else ""

    def _write_gauge(self, now: float) -> None:
        self._written += 1
        self._written_at = now
        left = remaining(self._item, self._queue, self._throughput, now)
        figures = {
            "by": self._ownership.attempt,
            "left": None if left is None else round(left, 3),
            "last": not self._queue and self._item is not None and self._item.cannot_be_split,
            "key": self._key,
            "refused": self._refused,
            "n": self._written,
            "idle": self._is_idle,
            "done": round(self._read + (0.0 if self._item is None else self._item.consumed), 3),
        }
        self._gauge.write(json.dumps(figures).encode())
