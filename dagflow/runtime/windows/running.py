"""A window at work."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

import attrs

from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.task.program import TaskOutcome, TaskSpec


@attrs.define
class Running:
    """A window whose tasks run; or wait, for the states that the window before leaves (`future` is None)."""

    plan: WindowPlan
    tasks: tuple[TaskSpec, ...]
    future: Future[list[TaskOutcome]] | None
    round: str
    attempt: int = 1
    outcomes: tuple[TaskOutcome, ...] = ()
    """Of the jobs before the one at work: what their tasks have left is its work."""

    def further(self, tasks: tuple[TaskSpec, ...], future: Future[list[TaskOutcome]], outcomes: Iterable[TaskOutcome]) -> Running:
        """The window, of which a further job has begun. `outcomes`: of the one before."""
        return attrs.evolve(self, tasks=(*self.tasks, *tasks), future=future, outcomes=(*self.outcomes, *outcomes))
