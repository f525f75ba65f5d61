"""The reasons why operators wait, from live records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from dagflow.model.types.records import FileBlockMetadata
from dagflow.planning.plan import Plan
from dagflow.runtime.live.record import WAITS, LiveRecord
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.stage.program import TaskSpec

SOON = 2.0  # seconds in which tasks may begin before it is said that they wait


@attrs.frozen
class OpenWindow:
    """A window that is planned and not decided. `since`: when its tasks were handed to the runner; None: they were not."""

    plan: WindowPlan
    epoch: str = ""
    tasks: tuple[TaskSpec, ...] = ()
    since: float | None = None

    def is_in_bytes(self, head: str, plan: Plan) -> bool:
        """Return whether the items of an operator are blocks of files, whose weights are bytes."""
        types = [plan.dag.types[sink] for _, sink in plan.dag.upstream(head)]
        return any(isinstance(tp, type) and issubclass(tp, FileBlockMetadata) for tp in types)


def reasons(
    plan: Plan, windows: Sequence[OpenWindow], records: Mapping[int, Sequence[LiveRecord]], slots: int, now: float
) -> dict[str, str]:
    """Return by operator the reason why it waits; under the empty name, the reason why all do."""
    by_operator: dict[str, str] = {}
    for window in windows:
        number = window.plan.window
        if window.since is None:
            by_operator.setdefault("", f"window {number} waits until the window before it is decided")
        elif now - window.since >= SOON:
            for name, reason in _in_window(plan, window, records[number], slots):
                by_operator.setdefault(name, reason)
    if any(not record.has_ended and record.doing != WAITS for group in records.values() for record in group):
        by_operator.pop("", None)
    return by_operator


def _in_window(plan: Plan, window: OpenWindow, records: Sequence[LiveRecord], slots: int) -> Iterable[tuple[str, str]]:
    running = sum(not record.has_ended for record in records)
    if window.tasks and not records:
        yield "", "no task has begun: the runner has no free slot, or starts its workers"
        return
    for stage in plan.stages:
        tasks = sum(task.stage == stage.name for task in window.tasks)
        begun = [record for record in records if record.stage == stage.name]
        if not tasks:
            continue
        waiting = sum(record.doing == WAITS and not record.has_ended for record in begun)
        before = [each.head for each in plan.stages_before(stage)]
        if stage.level > 0 and before and len(begun) == waiting:
            yield stage.head, f"for the records of {', '.join(before)}"
        elif waiting and stage.level == 0:
            yield stage.head, f"{waiting} of {tasks} readers have nothing left, and look for work to steal"
        elif len(begun) < tasks and running >= slots:
            yield stage.head, f"{tasks - len(begun)} of {tasks} tasks, for a free slot"
