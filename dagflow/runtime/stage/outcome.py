"""The outcome of a task, as the driver gets it."""

from __future__ import annotations

import attrs

from dagflow.errors import DagflowError


@attrs.frozen
class BusyInterval:
    """An interval in which the current item of a task could not be split, with the reason. Seconds since the epoch."""

    since: float
    until: float
    reason: str

    @property
    def seconds(self) -> float:
        """The length of the interval."""
        return self.until - self.since


@attrs.define(kw_only=True)
class TaskEndStats:
    """Figures of a task's work at its end, for the driver.

    Attributes:
        begun, until: the times of its beginning and of the end of its last part, in seconds since the epoch.
        longest: the longest interval in which its current item could not be split; None: it has read nothing.
        refusals: the number of its requests that brought nothing; `refusal`: the last answer.
        stopped: the reason why it then looked for work no longer.
        room: the number of slots that the tasks of its stage had for themselves.
    """

    begun: float
    until: float
    room: int
    longest: BusyInterval | None = None
    refusals: int = 0
    refusal: str = ""
    stopped: str = ""


@attrs.frozen
class TimesByPurpose:
    """The time of a task in seconds.

    Attributes:
        read: in the operator that gets its work items, and in loading states.
        compute: in all other operators, and in the framework.
        write: in operators that write files or stage for a store, and in storing files, states and its report.
        wait: for the rows of exchanges, for room to send some, and for further work.
    """

    read: float = 0.0
    compute: float = 0.0
    write: float = 0.0
    wait: float = 0.0

    def plus(self, other: TimesByPurpose) -> TimesByPurpose:
        """Return the sum of these and other times."""
        pairs = zip(attrs.astuple(self), attrs.astuple(other), strict=True)
        return TimesByPurpose(*(round(one + more, 4) for one, more in pairs))


@attrs.frozen(kw_only=True)
class TaskOutcome:
    """The outcome of a task for its runner: figures of an attempt, or why it failed. The results are in the task's report.

    `records_in`, `records`: what came to the head of its stage, and what that passed on. `parts`: how many parts of items it has
    read, if parts can move, and `end_stats`: figures of that; `counters`: of what its work items went to; `has_left`:
    a further job must read the rest of its parts. `is_retry`: the runner had begun the task before.

    `stage`, `partition`: of the task. `times`: its time by purpose; `operators`: the figures of its operators by name.
    """

    task: str
    attempt: str
    started: float
    ended: float
    records: int = 0
    records_in: int = 0
    parts: int = 0
    counters: dict[str, int] = attrs.field(factory=dict)
    error: DagflowError | None = None
    end_stats: TaskEndStats | None = None
    has_left: bool = False
    is_retry: bool = False
    stage: str = ""
    partition: int = 0
    times: TimesByPurpose = attrs.field(factory=TimesByPurpose)
    operators: dict[str, dict[str, float]] = attrs.field(factory=dict)
