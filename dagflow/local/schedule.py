"""The order of the tasks of a job, and the retry rules: levels one after the other, each task a few times."""

from __future__ import annotations

from collections import deque

import attrs

from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job, TaskSpec

MAX_ATTEMPTS = 4
"""The number of attempts of a task, as in `local[*,4]` of Spark."""


@attrs.frozen
class Attempt:
    """An attempt of a task. `number` counts from 1; `place`: the number of the task in its job."""

    spec: TaskSpec
    place: int
    number: int = 1


class JobSchedule:
    """The tasks of a job: which one begins next, and how the job ends.

    A level begins with `begin_level` once `is_between_levels`. The first task that reports an error ends the job, and so does one
    that has died in all its attempts.
    """

    def __init__(self, job: Job) -> None:
        tasks = [Attempt(spec, place) for place, spec in enumerate(job.tasks)]
        self._levels = deque([each for each in tasks if each.spec.layout.level == level] for level in _levels_of(job))
        self._waiting: deque[Attempt] = deque()
        self._running: set[int] = set()
        self._outcomes: dict[int, TaskOutcome] = {}
        self.failure: Exception | None = None
        self.is_over = not self._levels

    @property
    def is_between_levels(self) -> bool:
        """Return whether all tasks so far have ended, and another level follows."""
        return not (self.is_over or self._waiting or self._running)

    @property
    def next_level(self) -> int:
        """The number of the level that `begin_level` begins."""
        return self._levels[0][0].spec.layout.level

    @property
    def outcomes(self) -> list[TaskOutcome]:
        """The outcomes so far, in the order of the tasks."""
        return [outcome for _, outcome in sorted(self._outcomes.items())]

    def begin_level(self) -> None:
        """Make the tasks of the next level ready."""
        self._waiting.extend(self._levels.popleft())

    def next(self) -> Attempt | None:
        """Begin the next attempt; None: none is ready."""
        if self.is_over or not self._waiting:
            return None
        attempt = self._waiting.popleft()
        self._running.add(attempt.place)
        return attempt

    def ended(self, attempt: Attempt, outcome: TaskOutcome) -> None:
        """Note the outcome of an attempt."""
        self._running.remove(attempt.place)
        if self.is_over:
            return
        self._outcomes[attempt.place] = outcome
        self.is_over = outcome.error is not None or not (self._running or self._waiting or self._levels)

    def died(self, attempt: Attempt, reason: str) -> None:
        """Note that an attempt has ended without an outcome: its task is next in line, unless this was the last attempt."""
        self._running.remove(attempt.place)
        if self.is_over:
            return
        if attempt.number < MAX_ATTEMPTS:
            self._waiting.appendleft(attrs.evolve(attempt, number=attempt.number + 1))
            return
        name = attempt.spec.name
        self.fail(TasksDied(f"task {name} has died {MAX_ATTEMPTS} times, the last time because {reason}", (name,)))

    def fail(self, failure: Exception) -> None:
        """End the job with a failure, unless it is over."""
        if not self.is_over:
            self.failure, self.is_over = failure, True


def _levels_of(job: Job) -> list[int]:
    return sorted({spec.layout.level for spec in job.tasks})
