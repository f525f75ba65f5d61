"""The outcome of a task, as the driver hears of it."""

from __future__ import annotations

import attrs

from dagflow.errors import DagflowError


@attrs.frozen
class BusyInterval:
    """How long a task had something at hand of which nothing could be given away, and why. Seconds since the epoch."""

    since: float
    until: float
    reason: str

    @property
    def seconds(self) -> float:
        """How long that was."""
        return self.until - self.since


@attrs.define(kw_only=True)
class TaskEndStats:
    """What a task tells of its work when it ends.

    Attributes:
        begun, until: when it began, and when it had read its last part: seconds since the epoch.
        longest: the longest time in which it could give away nothing of what was at hand; None: it has read nothing.
        vain: how often it has asked others in vain; `refusal` is what the last of them said.
        stopped: why it then looked for work no longer.
        room: how many slots the tasks of its stage had for themselves.
    """

    begun: float
    until: float
    room: int
    longest: BusyInterval | None = None
    vain: int = 0
    refusal: str = ""
    stopped: str = ""


@attrs.frozen(kw_only=True)
class TaskOutcome:
    """What a runner hears of a task: figures of an attempt, or why it failed. What it did stands in its report.

    `records_in`, `records`: what came to the head of its stage, and what that passed on. `parts`: how many parts of items it has
    read, where work is shared, and `ending`: what it tells of that; `counters`: of what its work items went to; `has_left`:
    whether it has stopped before it had read all that it was dealt.
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
    ending: TaskEndStats | None = None
    has_left: bool = False
