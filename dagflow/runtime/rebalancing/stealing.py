"""A task's queue of work, of which parts are given to whoever asks, also while the task is inside a slow record."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import attrs

from dagflow.runtime.rebalancing import failpoints
from dagflow.runtime.rebalancing.background import BACKGROUND
from dagflow.runtime.rebalancing.items import ItemInProgress
from dagflow.runtime.rebalancing.ownership_log import OwnershipLog
from dagflow.runtime.rebalancing.peers import PeerView
from dagflow.runtime.rebalancing.policy import SLOT_IS_WANTED, StolenParts, choose, remaining, steal_from
from dagflow.runtime.rebalancing.task_work import TaskWork
from dagflow.runtime.stage.outcome import BusyInterval, TaskEndStats
from dagflow.runtime.stage.parts import Part, part_of
from dagflow.runtime.stage.program import TaskSpec, Work
from dagflow.storage import Gauge

SHORTEST_SLEEP, SLEEP = 0.002, 0.02  # seconds between looks at the others while idle
LOOKING = 10  # an idle task sleeps at least so many times as long as it looks: there may be very many others
ANSWER_POLL = 0.005
PATIENCE = 1.0  # seconds to wait for an answer
QUIET = 0.02  # seconds for which nobody is told that an attempt has begun: a small task is over by then, and has written less
GAUGE_EVERY = 0.05  # seconds between writings of what is left


class StealingWork(TaskWork):
    """The work of one attempt of a task; a context manager, within which who asks is answered.

    Args:
        claims: the attempt at the logs; used under a lock only, as two threads write.
        others: what is known of the other tasks.
        gauge: where this one tells how much is left.
        room: how many slots the tasks of its stage have for themselves.
        again: an attempt before has died: this one fences it at once.
    """

    def __init__(self, claims: OwnershipLog, others: PeerView, gauge: Gauge, room: int, again: bool = False) -> None:
        super().__init__(claims.items)
        self._is_again = again
        self._claims = claims
        self._others = others
        self._gauge = gauge
        self._room = room
        self._noted = 0
        self._noted_at = self._begun_at = 0.0
        self._is_idle = False
        self._refused = ""  # during which record somebody was refused last
        self._ending = TaskEndStats(begun=time.time(), until=time.time(), room=room)
        self.report_before: Any = None
        """The report of an earlier attempt, encoded: there is nothing to do."""

    def __enter__(self) -> StealingWork:
        self._begun = self._claims.begin(quietly=not (self._is_again or self._claims.is_last))
        self.report_before = self._claims.own.state.report
        if self.report_before is None:
            self._is_served, self._begun_at = True, time.monotonic()
            self._noted_at = self._begun_at
            BACKGROUND.begin(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            is_served, self._is_served = self._is_served, False
            if self._noted and error is None:
                self._write_gauge(time.monotonic())  # that all has been read
            self._gauge.close()
        if is_served:
            BACKGROUND.end(self)

    # The task's own thread

    def _put(self, parts: Iterable[Part]) -> None:
        super()._put(sorted(parts, key=lambda part: part.place))

    def _next(self) -> bool:
        """Looks for it with others, too. Raises AttemptFenced."""
        while True:
            if super()._next():
                return True
            if not self._seek():
                with self._lock:
                    late = self._claims.recover()
                    self._put(late)
                if not late:
                    return False

    def _finish(self) -> ItemInProgress:
        with self._lock:
            hand = super()._finish()
            ending = self._ending
            ending.until = time.time()
            seconds = time.monotonic() - hand.held_up_since
            if ending.longest is None or seconds > ending.longest.seconds:
                ending.longest = BusyInterval(ending.until - seconds, ending.until, hand.held_up_by)
            return hand

    def _completes(self, hand: ItemInProgress, part: Part) -> bool:
        """Raises AttemptFenced."""
        hand.completes = self._claims.finish(part)
        return hand.completes

    def ending(self) -> TaskEndStats | None:
        """What there is to tell of the work at its end; None where an earlier attempt has done it."""
        return self._ending if self.report_before is None else None

    def again(self, spec: TaskSpec, parts: Sequence[Sequence[Any]]) -> TaskSpec:
        """The task that reads just these parts, which an earlier attempt has reported, in their order."""
        known = self._claims.known_items()
        read = tuple(part_of(part) for part in parts)
        items = tuple(tuple(known[part.number]) for part in read)
        return attrs.evolve(spec, work=Work(items=items, numbers=tuple(part.number for part in read), parts=read))

    def report(self, report: Any) -> None:
        """Publishes the task's report, encoded. Raises AttemptFenced."""
        self.check()
        with self._lock:
            self._claims.report(report)

    # Asking

    def _seek(self) -> bool:
        """Looks for work with the others: whether there is some now."""
        if self._others.wait_for_slots(self._room):
            return self._stop(SLOT_IS_WANTED)
        idle_since = time.monotonic()
        is_first = True
        while True:
            self.check()
            began = time.monotonic()
            readers = self._others.look(idle_since)
            now = time.monotonic()
            look, is_first = 0.0 if is_first else now - began, False  # the first one has more to read than those that follow
            choice = choose(readers, room=self._room, idle=now - idle_since, is_wanted=self._others.want_slots())
            if choice.action != "end" or any(reader.state == "idle" for reader in readers):
                self._tell_idle(True)
            if choice.action == "end":
                return self._stop(choice.reason)
            if choice.partition is None:
                time.sleep(max(min(SLEEP, max(SHORTEST_SLEEP, (now - idle_since) / 4)), LOOKING * look))
            elif self._ask(choice.partition):
                self._tell_idle(False)
                return True

    def _stop(self, reason: str) -> bool:
        self._ending.stopped = reason
        return False

    def _tell_idle(self, is_idle: bool) -> None:
        """Tells at once: others that are idle, too, wait for nobody then."""
        with self._lock:
            if self._is_idle != is_idle:
                self._is_idle = is_idle
                self._claims.announce()
                self._write_gauge(time.monotonic())

    def _ask(self, partition: int) -> bool:
        self._others.asked(partition)
        with self._lock:
            asked = self._claims.ask(partition)
        if asked is None:
            return False
        until = time.monotonic() + PATIENCE
        while True:
            self.check()
            with self._lock:
                parts = self._claims.answer(asked)
                if parts is None and time.monotonic() >= until:
                    parts = self._claims.withdraw(asked)
                if parts is not None:
                    self._put(parts)
                    if not parts:
                        self._ending.vain += 1
                        self._ending.refusal = self._claims.refusal(asked)
                    return bool(parts)
            time.sleep(ANSWER_POLL)

    # Giving, in a thread of its own

    def tick(self) -> None:
        """Answers who asks, and tells how much is left."""
        with self._lock:
            if not self._is_served or self._failure is not None:
                return
            try:
                now = time.monotonic()
                if self._hand is not None:
                    self._hand.look(now)
                if now - self._begun_at >= QUIET:
                    self._claims.announce()
                self._answer()
                if now - self._noted_at >= GAUGE_EVERY:
                    self._write_gauge(now)
            except BaseException as failure:  # noqa: BLE001  # it is raised where the task works
                self._failure = failure

    def _answer(self) -> None:
        for ask in self._claims.asks():
            if self._claims.own.state.report is not None or self._flow is None:
                return
            failpoints.hit("asked")
            found = steal_from(self._hand, self._queue, self._pace, time.monotonic())
            if isinstance(found, str):
                self._claims.refuse(ask, found)
                self._refused = self._key
                self._write_gauge(time.monotonic())  # at once: others need not ask
            elif found is not None:
                failpoints.hit("narrowed")
                self._give(ask, found)

    def _give(self, ask: int, given: StolenParts) -> None:
        if not self._claims.give(ask, given.parts, given.size):
            self._put(given.parts)  # nobody wanted it any more

    @property
    def _key(self) -> str:
        """What names the present record."""
        return self._hand.key if self._hand is not None else ""

    def _write_gauge(self, now: float) -> None:
        self._noted += 1
        self._noted_at = now
        left = remaining(self._hand, self._queue, self._pace, now)
        told = {
            "by": self._claims.attempt,
            "left": None if left is None else round(left, 3),
            "last": not self._queue and self._hand is not None and self._hand.cannot_be_split,
            "key": self._key,
            "refused": self._refused,
            "n": self._noted,
            "idle": self._is_idle,
            "done": round(self._read + (0.0 if self._hand is None else self._hand.consumed), 3),
        }
        self._gauge.write(json.dumps(told).encode())
