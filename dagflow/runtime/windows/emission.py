"""Emission points of a window: the operators that emit what they keep, and the changes that wait after it."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from dagflow.planning.plan import Plan
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import Decision, WindowPlan
from dagflow.runtime.windows.event_time import followers


def waiting(plan: Plan) -> tuple[str, ...]:
    """Return the operators in tasks that wait for emission points."""
    return tuple(name for stage in plan.stages for name in stage.operators if plan.dag.nodes[name].operator.waits_for_emission)


def withheld(plan: Plan, window: WindowPlan, before: Decision | None) -> tuple[str, ...]:
    """Return the operators that emit nothing in a window: it is not an emission point, or nothing has come to them since one.

    `before`: the decision of the window before.
    """
    held = {} if before is None else before.held
    reached = _reached(plan, window)
    return tuple(name for name in waiting(plan) if not (window.emits and (held.get(name) or name in reached)))


def held_after(before: Decision | None, withheld: Iterable[str], reports: Iterable[TaskReport]) -> dict[str, int]:
    """Return how many changes wait after a window, by the operator that keeps them: those that wait no more are left out."""
    held, kept, reports = dict({} if before is None else before.held), set(withheld), list(reports)
    for name in {name for report in reports for name in report.operators} - kept:
        held.pop(name, None)  # it has emitted them
    for report in reports:
        for name, more in report.held.items():
            held[name] = held.get(name, 0) + more
    return {name: count for name, count in held.items() if count}


def with_holders(plan: Plan, window: WindowPlan) -> WindowPlan:
    """Return the plan of a window with partitions of all operators that wait for emission points.

    A launch whose windows all were emission points may have planned it: it kept nothing where changing streams end.
    """
    partitions = dict(window.partitions)
    for stage in plan.stages:  # those of lower levels first
        before = [partitions[each.head] for each in plan.stages_before(stage) if each.head in partitions]
        if before and plan.dag.nodes[stage.head].operator.waits_for_emission:
            partitions.setdefault(stage.head, max(before))
    return window if partitions == window.partitions else attrs.evolve(window, partitions=partitions)


def _reached(plan: Plan, window: WindowPlan) -> set[str]:
    """Return the operators that records of a window may come to."""
    reached = {*followers(plan), *(head for head, items in window.items.items() if items)}
    for name in plan.dag.nodes:  # in an order in which every stream leads forward
        if any(source.operator in reached for source, _ in plan.dag.upstream(name)):
            reached.add(name)
    return reached
