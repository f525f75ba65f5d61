"""A window at work."""

from __future__ import annotations

from concurrent.futures import Future

import attrs

from dagflow.runtime.program import TaskOutcome, TaskSpec
from dagflow.runtime.window_log import WindowPlan


@attrs.define
class Running:
    """A window whose tasks run; or wait, for the states that the window before leaves (`future` is None)."""

    plan: WindowPlan
    tasks: tuple[TaskSpec, ...]
    future: Future[list[TaskOutcome]] | None
    round: str
    attempt: int = 1
