"""Event time of a window: the times that operators in its tasks are given, and the latest ones that came to them."""

from __future__ import annotations

from collections.abc import Mapping

from dagflow.model.operator.base import InputOperator
from dagflow.model.operator.context import EventTime
from dagflow.planning.plan import Plan
from dagflow.runtime.run_folder.window_log import Decision, WindowPlan


def followers(plan: Plan) -> tuple[str, ...]:
    """Return the operators in tasks that follow event time."""
    return tuple(name for stage in plan.stages for name in stage.operators if plan.dag.nodes[name].operator.follows_event_time)


def event_times(plan: Plan, window: WindowPlan, before: Decision | None) -> dict[str, EventTime]:
    """Return the event time of each operator that follows it, for a window. `before`: the decision of the window before."""
    return {name: _event_time(plan, name, window, before) for name in followers(plan)}


def _event_time(plan: Plan, name: str, window: WindowPlan, before: Decision | None) -> EventTime:
    sources = _sources(plan, name)
    return EventTime(
        seen=None if before is None else before.event_times.get(name),
        sources_before=None if before is None else _smallest(before.watermarks, sources),
        sources=_smallest(window.watermarks, sources),
        is_end=window.is_end,
    )


def latest(before: Mapping[str, int], *more: Mapping[str, int]) -> dict[str, int]:
    """Return each operator's latest event time, from before and from the tasks."""
    times = dict(before)
    for later in more:
        for name, time in later.items():
            times[name] = max(time, times.get(name, time))
    return times


def _sources(plan: Plan, name: str) -> set[str]:
    above = {source.operator for source, _ in plan.dag.upstream(name)}
    if not above and isinstance(plan.dag.nodes[name].operator, InputOperator):
        return {name}
    return set().union(*(_sources(plan, each) for each in above))


def _smallest(watermarks: Mapping[str, int], sources: set[str]) -> int | None:
    """Return the smallest watermark of the sources; None until each of them has one."""
    return min(watermarks[name] for name in sources) if sources and sources <= watermarks.keys() else None
