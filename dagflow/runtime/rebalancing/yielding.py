"""The fallback where a store is too slow for logs of claims: a task stops where it is when a slot has nothing to do.

What is left then is read by a further job of the window, cut up for all slots (`further`). It takes one small file that is looked
for twice a second, and no clock of another machine. The first task to be done writes that file; who has not much left goes on.
"""

from __future__ import annotations

import time
from types import TracebackType

from dagflow.runtime.rebalancing.background import BACKGROUND
from dagflow.runtime.rebalancing.items import ItemInProgress
from dagflow.runtime.rebalancing.policy import is_worth, remaining
from dagflow.runtime.rebalancing.task_work import TaskWork
from dagflow.runtime.stage.parts import Part
from dagflow.runtime.stage.program import TaskSpec
from dagflow.storage import Store, seal

LOOKS = 0.5  # seconds between looks whether a slot has nothing to do
YIELD_COST = 0.5  # seconds: until all have looked, have reported, and a job has begun


class YieldingWork(TaskWork):
    """The work of one attempt of a task; a context manager, within which it stops early where that is worth it.

    Args:
        store: of the reports of tasks.
    """

    def __init__(self, spec: TaskSpec, store: Store) -> None:
        super().__init__(dict(zip(spec.work.numbers, spec.work.items, strict=True)))
        self._spec, self._store = spec, store
        self._begun = list(given(spec))
        self._looked_at = time.monotonic()
        self._is_wanted = False

    def __enter__(self) -> YieldingWork:
        self._is_served = True
        BACKGROUND.begin(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._is_served = False
        BACKGROUND.end(self)

    def _next(self) -> bool:
        if super()._next():
            return True
        if not self._is_wanted and self._has_free_slot():
            self._store.create(self._spec.slot_is_free, seal(self._spec.slot_is_free, b""))
        return False

    def _has_free_slot(self) -> bool:
        """Whether others of the stage are at work, and none of them, nor anybody else, waits for the slot of this task."""
        spec = self._spec
        left = spec.partitions - 1 - len(self._store.names(f"{spec.reports_of_stage}-"))
        return 0 < left < spec.work.room and self._store.read(spec.slots_wanted) is None

    def _completes(self, hand: ItemInProgress, part: Part) -> bool:
        return False  # the rest of the item comes with a further job: where somebody wants to know, nothing is yielded

    def tick(self) -> None:
        """Looks whether it is to stop, and stops."""
        try:
            now = time.monotonic()
            if not self._is_wanted and now - self._looked_at >= LOOKS:
                self._looked_at = now
                self._is_wanted = self._store.read(self._spec.slot_is_free) is not None
            with self._lock:
                if self._hand is not None:
                    self._hand.look(now)
                if self._is_wanted and self._is_served:
                    self._stop(now)
        except BaseException as failure:  # noqa: BLE001  # it is raised where the task works
            self._failure = failure

    def _stop(self, now: float) -> None:
        hand = self._hand
        if hand is not None and hand.tracker is not None and not hand.tracker.split_points()[0]:
            hand = None  # it has only begun: nothing is known of its pace
        left = remaining(hand, self._queue, self._pace, now)
        if left is None or not is_worth(left, YIELD_COST):
            return
        while self._queue:
            self._queue.take_last()
        if hand is not None and hand.rest > 0:
            hand.split(1.0)


def given(spec: TaskSpec) -> tuple[Part, ...]:
    """The parts of items that a task was dealt."""
    return spec.work.parts or tuple(Part(number) for number in spec.work.numbers)
