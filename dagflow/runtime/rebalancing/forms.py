"""The forms of a task's work behind one interface: opened by the task, and collected by the driver."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from dagflow.model.types.plain_data import decode
from dagflow.runtime.rebalancing.ownership_log import TaskLog
from dagflow.runtime.rebalancing.stealing import StealingWork
from dagflow.runtime.rebalancing.task_work import TaskWork
from dagflow.runtime.rebalancing.yielding import YieldingWork
from dagflow.runtime.run_folder.layout import task_name
from dagflow.runtime.run_folder.reports import Steal, TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.program import TaskSpec
from dagflow.storage import at_once


def open_work(spec: TaskSpec, log: WindowLog, attempt: str, again: bool) -> TaskWork:
    """Return the work of one attempt of a task, in the form that the driver has chosen."""
    if spec.work.form == "steal":
        return StealingWork.of(spec, log, attempt, again)
    return YieldingWork(spec, log) if spec.work.form == "yield" else TaskWork(spec, log)


def collect(log: WindowLog, tasks: Sequence[TaskSpec]) -> tuple[list[TaskReport | None], list[Steal]]:
    """Return the reports of a window's tasks, None for a missing one, and the steals among the tasks."""
    stealing = [task for task in tasks if task.work.form == "steal"]
    others = [task for task in tasks if task.work.form != "steal"]
    read = at_once(functools.partial(_log_of, log), stealing, log.unsynced.url)
    logs = {task.name: task_log for task, task_log in zip(stealing, read, strict=True)}
    reports = {task.name: report for task, report in zip(others, read_reports(log, others), strict=True)}
    reports |= {name: _report_in(task_log) for name, task_log in logs.items()}
    return [reports[task.name] for task in tasks], [*_moved_by_jobs(tasks), *_granted(tasks, logs)]


def read_reports(log: WindowLog, tasks: Sequence[TaskSpec]) -> list[TaskReport | None]:
    """Read the reports of tasks, None for a missing one; several at a time from an object store."""
    return at_once(log.read_report, (task.report_name for task in tasks), log.unsynced.url)


def _log_of(log: WindowLog, task: TaskSpec) -> TaskLog:
    task_log = TaskLog(log.unsynced, task_name(task.claims_area, task.partition))
    task_log.catch_up()
    return task_log


def _report_in(log: TaskLog) -> TaskReport | None:
    data = log.state.report
    return None if data is None else decode(data, TaskReport)


def _granted(tasks: Sequence[TaskSpec], logs: dict[str, TaskLog]) -> list[Steal]:
    """Return the steals in the logs of tasks."""
    names = {(task.stage, task.partition): task.name for task in tasks}
    return [
        Steal(victim=task.name, thief=names[task.stage, thief], parts=len(entry.parts), size=entry.size)
        for task in tasks
        if task.name in logs
        for thief, entry in logs[task.name].state.grants
    ]


def _moved_by_jobs(tasks: Sequence[TaskSpec]) -> list[Steal]:
    """Return the parts that tasks of further jobs have read in place of earlier tasks."""
    if not any(task.work.sizes for task in tasks):
        return []
    owners: dict[tuple[str, int], str] = {}
    steals = []
    for task in tasks:
        by_victim: dict[str, list[int]] = {}
        for size, part in zip(task.work.sizes, task.work.parts, strict=True):
            by_victim.setdefault(owners[task.stage, part.number], []).append(size)
        steals += [Steal(victim=name, thief=task.name, parts=len(own), size=sum(own)) for name, own in by_victim.items()]
        for number in task.work.numbers:
            owners.setdefault((task.stage, number), task.name)
    return steals
