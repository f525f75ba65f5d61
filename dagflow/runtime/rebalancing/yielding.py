"""The form of work for stores that are too slow for ownership logs: a task stops early when another one's slot is idle.

A further job of the window reads the rest, cut up for all slots (`dagflow.runtime.windows.rebalance`). This takes one small file,
which tasks look for twice a second, and no clock of another machine. The first task that ends writes the file. A task that has
little left reads on.
"""

from __future__ import annotations

from types import TracebackType

from dagflow.model.operator.context import Clock
from dagflow.runtime.rebalancing.background import BACKGROUND, POLL
from dagflow.runtime.rebalancing.items import ItemInProgress
from dagflow.runtime.rebalancing.policy import is_worth, remaining
from dagflow.runtime.rebalancing.task_work import MovableWork
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.parts import Part
from dagflow.runtime.stage.program import TaskSpec
from dagflow.storage import seal

LOOK_EVERY = 0.5  # seconds between looks for an idle slot
YIELD_COST = 0.5  # seconds until all tasks have looked and reported, and a further job has begun


class YieldingWork(MovableWork):
    """The work of one attempt of a task that stops early where that is worth it. A context manager."""

    every = POLL  # see `BackgroundTask`

    def __init__(self, spec: TaskSpec, log: WindowLog, clock: Clock | None = None) -> None:
        super().__init__(spec, log, clock)
        self._store = log.unsynced
        self._first_parts = list(planned_parts(spec))
        self._looked_at = self._clock.monotonic()
        self._is_wanted = False

    def __enter__(self) -> YieldingWork:
        self._is_ticking = True
        BACKGROUND.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._is_ticking = False
        BACKGROUND.remove(self)

    def has_left(self, report: TaskReport) -> bool:
        """Return whether the task has stopped before the end of what was planned."""
        return report.parts != [part.to_list() for part in planned_parts(self.spec)]

    def _next(self) -> bool:
        if super()._next():
            return True
        if not self._is_wanted and self._has_idle_slot():
            self._store.create(self.spec.slot_is_free, seal(self.spec.slot_is_free, b""))
        return False

    def _has_idle_slot(self) -> bool:
        """Return whether peers still work while neither they nor tasks of other windows wait for this task's slot."""
        spec = self.spec
        left = spec.partitions - 1 - len(self._store.names(f"{spec.reports_of_stage}-"))
        return 0 < left < spec.work.room and self._store.read(spec.slots_wanted) is None

    def _completes(self, item: ItemInProgress, part: Part) -> bool:
        return False  # a further job reads the rest of the item; stages that tell what was read whole do not yield

    def tick(self) -> None:
        """Look for an idle slot now and then, and stop early if there is one."""
        try:
            now = self._clock.monotonic()
            if not self._is_wanted and now - self._looked_at >= LOOK_EVERY:
                self._looked_at = now
                self._is_wanted = self._store.read(self.spec.slot_is_free) is not None
            with self._lock:
                if self._item is not None:
                    self._item.look(now)
                if self._is_wanted and self._is_ticking:
                    self._stop(now)
        except BaseException as failure:  # noqa: BLE001  # it is raised where the task works
            self._failure = failure

    def _stop(self, now: float) -> None:
        item = self._item
        if item is not None and item.tracker is not None and not item.tracker.split_points()[0]:
            item = None  # it has only begun, so its rate is not known
        left = remaining(item, self._queue, self._throughput, now)
        if left is None or not is_worth(left, YIELD_COST):
            return
        while self._queue:
            self._queue.take_last()
        if item is not None and item.rest > 0:
            item.split(1.0)


def planned_parts(spec: TaskSpec) -> tuple[Part, ...]:
    """Return the parts of items that the plan assigns to a task."""
    return spec.work.parts or tuple(Part(number) for number in spec.work.numbers)
