"""The step `staged`: operators with the same partitions and level are fused into one stage."""

from __future__ import annotations

import attrs

from dagflow.planning.plan import DRIVER, Plan, Stage


def fuse_stages(plan: Plan) -> Plan:
    """Fuse the operators of one group and level into a stage. Stages of lower levels come first, then those written first."""
    fused: dict[tuple[int, str], list[str]] = {}
    for name in plan.dag.nodes:
        if plan.placement[name] != DRIVER:
            fused.setdefault((plan.levels[name], plan.groups[name]), []).append(name)
    ordered = sorted(fused.items(), key=lambda item: item[0][0])
    stages = tuple(Stage(f"s{n}", tuple(names), head, level) for n, ((level, head), names) in enumerate(ordered))
    return attrs.evolve(plan, stages=stages)
