"""What the window loop asks of a runner."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from dagflow.runtime.program import Job, TaskOutcome


class TasksDied(Exception):
    """Tasks ended without a report, for a reason that may pass: a killed process, a lost machine. The window may run again."""


class Runner(Protocol):
    """Runs the tasks of windows. Knows no operators, no plans and no commits."""

    name: str
    in_process: bool
    """Whether tasks run in this process, with the user's own modules."""

    @property
    def slots(self) -> int:
        """How many tasks can work at once."""
        ...

    @property
    def ui(self) -> str | None:
        """Where a browser can see it work."""
        ...

    def open(self, application: str, run_folder: str) -> None:
        """Gets ready. Raises SurroundingsError when it cannot, also when its tasks do not see the run folder."""

    def start(self, job: Job) -> Future[list[TaskOutcome]]:
        """Runs the tasks of a window. The future raises TasksDied when tasks died, not when they reported a failure."""
        ...

    def cancel(self) -> None:
        """Gives up everything that is running, soon."""

    def close(self) -> None:
        """Lets go of all resources."""
