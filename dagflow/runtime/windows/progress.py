"""The progress of a window's readers, from the gauges that they write for each other. Nothing depends on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import attrs

from dagflow.runtime.events import Event, WindowProgress
from dagflow.runtime.rebalancing.peers import gauge_of
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.stage.program import TaskSpec
from dagflow.storage import local_path

EVERY = 1.0  # seconds between looks


@attrs.define
class ProgressWatch:
    """Reads the gauges of a window's tasks once a second, and sends the fraction of its work that is consumed.

    Only tasks that share their work have gauges. What small tasks have done that wrote none does not count.
    """

    send: Callable[[Event], None]
    _window: tuple[int, str] | None = attrs.field(init=False, default=None)
    _looked_at: float = attrs.field(init=False, default=0.0)
    _fraction: float = attrs.field(init=False, default=0.0)

    def look(self, log: WindowLog, plan: WindowPlan, tasks: Sequence[TaskSpec], now: float) -> None:
        """Read the gauges if it is time. `now`: of the monotonic clock."""
        shared = [task for task in tasks if task.work.form == "steal"]
        folder = local_path(log.unsynced.url) if shared else None
        if folder is None:
            return
        window = plan.window, shared[0].epoch
        if self._window != window:
            self._window, self._looked_at, self._fraction = window, now, 0.0
        if now - self._looked_at < EVERY:
            return
        self._looked_at = now
        work = sum(sum(plan.weights.get(head, ())) for head in {task.head for task in shared})
        done = sum(_done(folder, task) for task in shared)
        fraction = min(1.0, done / work) if work else 0.0
        if fraction > self._fraction:
            self._fraction = fraction
            self.send(WindowProgress(window=plan.window, fraction_consumed=round(fraction, 4)))


def _done(folder: str, task: TaskSpec) -> float:
    try:
        told = json.loads(gauge_of(folder, task.claims_area, task.partition).read() or b"{}")
        return float(told.get("done", 0))
    except (OSError, ValueError, AttributeError, TypeError):  # torn, or gone: the next look will see it
        return 0.0
