"""The interface between the window loop and a runner."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job


class TasksDied(Exception):
    """Tasks ended without a report, for a transient reason: a killed process, a lost machine. The window may run again.

    `tasks`: the names of those that died, where the runner knows; others may have been given up with them.
    """

    def __init__(self, reason: str, tasks: tuple[str, ...] = ()) -> None:
        super().__init__(reason)
        self.tasks = tasks


class Runner(Protocol):
    """Runs the tasks of windows. Knows no operators, no plans and no commits."""

    name: str
    in_process: bool
    """True if tasks run in this process, with the user's own modules."""

    grows: bool
    """True if there will be more slots when more tasks wait: Spark's dynamic allocation."""

    @property
    def warnings(self) -> Sequence[str]:
        """The findings of `open` that a user should know of, and that do not end the run."""
        ...

    @property
    def rebalancing_obstacle(self) -> str | None:
        """The reason that excludes rebalancing; None if tasks run at the same time, and one attempt of each."""
        ...

    @property
    def slots(self) -> int:
        """The number of tasks that can work at once, now. The loop asks before each window."""
        ...

    @property
    def ui(self) -> str | None:
        """The address at which a browser shows its work."""
        ...

    @property
    def address(self) -> str | None:
        """The address that tasks will run at, also before `open`; None: in this process."""
        ...

    def open(self, application: str, run_folder: str) -> None:
        """Prepare for jobs. Raises InfrastructureError when it cannot, also when its tasks do not see the run folder."""

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        """Run the tasks of a window. The future raises TasksDied when tasks died, not when they reported a failure."""
        ...

    def cancel(self) -> None:
        """Cancel everything that is running, soon."""

    def close(self) -> None:
        """Release all resources."""
