"""The driver's view of tasks at work: it reads their live records once a second, and sends the sums."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from dagflow.model.operator.context import Clock
from dagflow.planning.plan import Plan
from dagflow.runtime.events import Event, OperatorProgress
from dagflow.runtime.live.reasons import OpenWindow, reasons
from dagflow.runtime.live.record import LiveRecord
from dagflow.runtime.run_folder.layout import LIVE
from dagflow.runtime.run_folder.reports import OperatorFigures, summed
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.stage.program import TaskSpec
from dagflow.scaling import Backlog

EVERY = 1.0  # seconds between two looks
RECENT = 20  # looks whose speed counts for the estimate

Figures = Mapping[str, OperatorFigures]


class LiveWatch:
    """Sends `operator_progress` while the tasks of windows run.

    Args:
        figures: returns the figures of the windows that this launch has decided.
        slots: returns the number of tasks that can work at once.
        ends: the run ends with its input, so that the rest of its time can be estimated.
    """

    def __init__(
        self, plan: Plan, log: WindowLog, figures: Callable[[], Figures], slots: Callable[[], int], clock: Clock, *, ends: bool
    ) -> None:
        self._plan, self._log, self._figures, self._slots, self._clock, self._ends = plan, log, figures, slots, clock, ends
        self.known = Backlog()
        """The work that operators on the driver know of and have not planned."""
        self._windows: dict[int, OpenWindow] = {}
        self._records: dict[str, LiveRecord] = {}
        self._looked_at = float("-inf")
        self._has_sent = False
        self._is_stale = False  # windows were decided since the last figures
        self._speeds = deque[tuple[float, float]](maxlen=RECENT)

    def planned(self, plan: WindowPlan) -> None:
        """Note a window that has a plan."""
        self._windows[plan.window] = OpenWindow(plan)
        if len(self._windows) == 1:
            self._looked_at = self._clock.monotonic()

    def started(self, window: int, epoch: str, tasks: Sequence[TaskSpec]) -> None:
        """Note that the tasks of a window were handed to the runner, perhaps once more."""
        old = self._windows.get(window)
        if old is not None:
            self._windows[window] = attrs.evolve(old, epoch=epoch, tasks=tuple(tasks), since=self._clock.monotonic())

    def decided(self, window: int) -> None:
        """Forget a window: its figures are those of its decision."""
        self._windows.pop(window, None)
        self._is_stale = self._has_sent
        prefix = LIVE.prefix(window)
        self._records = {name: record for name, record in self._records.items() if not name.startswith(prefix)}
        if self._log.live is not None and self._log.live is not self._log.unsynced:  # which nothing else sweeps
            self._log.live.discard_all(self._log.live.names(prefix))

    def look(self, send: Callable[[Event], None]) -> None:
        """Read the records of tasks and send the sums, if it is time, and a window is open or was decided since."""
        now = self._clock.monotonic()
        if not (self._windows or self._is_stale) or self._log.live is None or now - self._looked_at < EVERY:
            return
        self._looked_at = now
        try:
            progress = self.progress(now)
        except Exception:  # noqa: BLE001  # a disk that does not answer, say: the run does not depend on it
            return
        self._has_sent, self._is_stale = True, False
        send(progress)

    def close(self, send: Callable[[Event], None], *, failed: bool = False) -> None:
        """Send the final sums, if any have been sent, or if the run failed while a window was open. No task works any more."""
        if self._has_sent or (failed and self._windows and self._log.live is not None):
            last = self.progress(self._clock.monotonic())
            operators = {name: {**figures, "partitions": 0} for name, figures in last.operators.items()}
            send(attrs.evolve(last, operators=operators, running=0, pending=0, waiting={}, remaining=None))

    def progress(self, now: float) -> OperatorProgress:
        """Return the event of this moment."""
        windows = dict(self._windows)
        by_window = {number: self._read(window) for number, window in windows.items()}
        records = [record for group in by_window.values() for record in group]
        running = [record for record in records if not record.has_ended]
        totals = summed(
            [
                self._figures(),
                *(window.plan.driver.operators for window in windows.values()),
                *(record.operators for record in records),
            ]
        )
        pairs = list(zip(windows.values(), by_window.values(), strict=True))
        work = [_Work.of(self._plan, window, group) for window, group in pairs]
        left_bytes = sum(each.left_bytes for each in work) + self.known.size
        return OperatorProgress(
            operators={
                name: {
                    **totals.get(name, OperatorFigures()).as_event(),
                    "partitions": sum(name in record.operators for record in running),
                }
                for name in self._plan.dag.nodes
            },
            running=len(running),
            pending=sum(max(0, len(window.tasks) - len(group)) for window, group in pairs),
            backlog=sum(each.left_items for each in work) + self.known.items,
            backlog_bytes=left_bytes,
            waiting=reasons(self._plan, list(windows.values()), by_window, self._slots(), now),
            remaining=self._remaining(now, totals, left_bytes),
        )

    def _read(self, window: OpenWindow) -> list[LiveRecord]:
        """Return the newest record of each task of a window."""
        newest: dict[str, LiveRecord] = {}
        store = self._log.live
        if store is None or not window.tasks:
            return []
        for name in store.names(LIVE.prefix(window.plan.window)):
            if not LIVE.match(name):
                continue
            record = self._records.get(name)
            if record is None or not record.has_ended:
                try:
                    record = LiveRecord.of(store.read(name) or b"")
                except (ValueError, TypeError, KeyError, IndexError):  # torn: the next look will see it
                    if record is None:
                        continue
                self._records[name] = record
            if record.epoch == window.epoch and (record.task not in newest or newest[record.task].at <= record.at):
                newest[record.task] = record
        return list(newest.values())

    def _remaining(self, now: float, totals: Figures, left: int) -> float | None:
        """Return the seconds that the rest of the known input takes at the present speed."""
        heads = {stage.head for stage in self._plan.stages if stage.level == 0}
        read = sum(figures.bytes for name, figures in totals.items() if name in heads)
        if not read:  # workers start: no speed yet
            return None
        self._speeds.append((now, read))
        then, before = self._speeds[0]
        if not self._ends or now <= then or read <= before:
            return None
        return round(left * (now - then) / (read - before), 1)


@attrs.frozen
class _Work:
    """The work of an open window that is not done: items that are not begun, and bytes that are not read."""

    left_items: int
    left_bytes: int

    @classmethod
    def of(cls, plan: Plan, window: OpenWindow, records: Iterable[LiveRecord]) -> _Work:
        figures = summed(record.operators for record in records)
        items = size = 0
        for head, planned in window.plan.items.items():
            done = figures.get(head, OperatorFigures())
            items += max(0, len(planned) - done.records_in)
            if window.is_in_bytes(head, plan):
                size += max(0, sum(window.plan.weights.get(head, ())) - done.bytes)
        return cls(items, size)
