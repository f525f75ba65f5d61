"""The step `spark`: a description of what Spark is given for a window."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from dagflow.planning.forms import BATCHES
from dagflow.planning.plan import DATAFRAME, Plan, Stage

CONTROL_ROWS = "each task returns one control row (its name; figures or the error), no records"
OUTCOMES = "each task of the last level returns one control row; the others leave theirs in the run folder"
PICKLED_WHY = "their type has no Arrow form"
BODY_COSTS = (
    "its input crosses into the JVM as columns and what it makes crosses back (about 3 ms a MiB each way), with an exchange on "
    "each side; other rows on their way to the same level are shuffled twice"
)


def spark_lines(plan: Plan, tasks: Mapping[str, tuple[int | None, int | None]]) -> tuple[str, ...]:
    """Describe what Spark is given for a window. `tasks`: the least and the greatest number of each stage's, None if unknown."""
    if not plan.stages:
        return ("no Spark job: everything runs on the driver",)
    levels = [[s for s in plan.stages if s.level == level] for level in range(plan.stages[-1].level + 1)]
    passes = [f"mapInArrow({'; '.join(f'{stage.name}: {_passing(plan, stage)}' for stage in level)})" for level in levels]
    lines = ["one job a window, none for a window without work items:"]
    if len(levels) == 1:
        lines.append(f"  range(0, n, 1, n) → {passes[0]} → collect")
    else:
        lines.append(f"  range(0, n0, 1, n0) → {passes[0]}")
        for number, one in enumerate(passes[1:], 1):
            lines += _body_lines(plan, number)
            lines.append(f"  → repartitionById(n{number}, dst) → sortWithinPartitions(src, seq) → {one}")
        lines.append("  → collect")
    for stage in plan.stages:
        least, most = tasks[stage.name]
        bounds = "its tasks" if most is None else f"{least} to {most} tasks"
        if stage.level == 0:
            what = f"{stage.name}: {bounds} share the window's work items for {stage.head}, neighbours together"
            lines.append(f"{what}; {CONTROL_ROWS}" if len(levels) == 1 else what)
    for exchange in plan.exchanges.values():
        carried = plan.forms.crossing[exchange.sink]
        blob = "Arrow IPC batches" if carried == BATCHES else f"pickled records: {PICKLED_WHY}"
        lines.append(f"tag {exchange.tag}: {exchange.source} → {exchange.sink}, {exchange}, as {blob}")
    lines += [f"{e.sink.operator}: {BODY_COSTS}" for e in plan.exchanges.values() if e.kind == DATAFRAME]
    if len(levels) == 1:
        lines.append("n: the tasks of all stages together; task i looks its work items up by i, so nothing is shuffled")
    else:
        lines.append("n0, n1, …: the tasks of all stages of a level together; rows are (dst, tag, src, seq, blob)")
        lines.append(OUTCOMES)
    return tuple(lines)


def _body_lines(plan: Plan, level: int) -> list[str]:
    """Describe what happens to rows on their way to a level with DataFrame operators."""
    bodies = [e for e in plan.exchanges.values() if e.kind == DATAFRAME and plan.stage_of(e.sink.operator).level == level]
    if not bodies:
        return []
    lines = [f"  → repartitionById(n{level}, dst), read once for each of:"]
    for body in bodies:
        reading = f"rows of tag {body.tag} → sortWithinPartitions(src, seq) → mapInArrow(columns)"
        lines.append(f"      {reading} → the body of {body.sink.operator} → sortWithinPartitions(its columns) → mapInArrow(rows)")
    lines.append("      all other rows")
    return [*lines, "    → union"]


def _passing(plan: Plan, stage: Stage) -> str:
    """Return the operators of a stage: a chain with arrows, anything else with commas."""
    names = stage.operators
    chain = all([s.operator for s, _ in plan.dag.upstream(b)] == [a] for a, b in pairwise(names))
    return (" → " if chain else ", ").join(names)
