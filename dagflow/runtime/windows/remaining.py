"""The tasks of a further job of a window: they read the rest that tasks which stopped early have left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from dagflow.model.types.plain_data import decode
from dagflow.plan.plan import Plan
from dagflow.runtime.rebalancing.forms import read_reports
from dagflow.runtime.rebalancing.items import PendingItem
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.parts import Part, part_of, without
from dagflow.runtime.stage.program import TaskSpec

Hold = Callable[[str, Any, Part], PendingItem]
"""Makes a pending item of the head of a stage, an item as it travels, and a part of it."""


def holder(plan: Plan) -> Hold:
    """Make pending items on the driver, where tasks do not run."""

    def held(head: str, item: Any, part: Part) -> PendingItem:
        port, encoded = item
        tp = next(plan.dag.types[sink] for _, sink in plan.dag.upstream(head) if sink.port == port)
        return PendingItem.of(part, (head, port, encoded), decode(encoded, tp), plan.dag.nodes[head].operator)

    return held


def further(
    log: WindowLog, plan: WindowPlan, tasks: Sequence[TaskSpec], outcomes: Iterable[TaskOutcome], hold: Hold
) -> tuple[TaskSpec, ...]:
    """The tasks of a further job; none if nothing is left, or if reports are wrong, since then the window is not decided.

    The number of each follows those before, so that its report and files have names of their own.
    """
    yielded = {outcome.task.rpartition("-")[0] for outcome in outcomes if outcome.has_left}
    found: list[TaskSpec] = []
    for stage in sorted(yielded):
        mine = [task for task in tasks if task.stage == stage]
        head, items = mine[0].head, plan.items[mine[0].head]
        left = [hold(head, items[part.number], part) for part in _left(log, mine, len(items))]
        dealt = [own for own in _dealt(left, mine[0].work.room) if own]
        for partition, own in enumerate(dealt, len(mine)):
            found.append(
                attrs.evolve(
                    mine[0],
                    partition=partition,
                    partitions=len(mine) + len(dealt),
                    work=attrs.evolve(
                        mine[0].work,
                        items=tuple(held.item for held in own),
                        numbers=tuple(held.part.number for held in own),
                        parts=tuple(held.part for held in own),
                        sizes=tuple(round(held.weight) for held in own),
                    ),
                    layout=attrs.evolve(mine[0].layout, number=len(tasks) + len(found), place=len(tasks) + len(found)),
                )
            )
    return tuple(found)


def _left(log: WindowLog, tasks: Sequence[TaskSpec], items: int) -> list[Part]:
    """The parts of so many items that no task has read; none if the reports contradict each other."""
    reports = read_reports(log, tasks)
    read = [part_of(part) for report in reports if report is not None for part in report.parts]
    whole = {part.number for part in read if part.is_whole}
    try:
        left = without([Part(n) for n in range(items) if n not in whole], [part for part in read if not part.is_whole])
    except ValueError:
        return []
    return left if all(report is not None for report in reports) else []


def _dealt(left: Iterable[PendingItem], slots: int) -> list[list[PendingItem]]:
    """Parts for each of so many slots. Of an item that had been begun each slot gets a piece; other items are assigned in turn.

    Those not begun come first: what begins with a piece that is slow would take them to be as slow.
    """
    found: list[list[PendingItem]] = [[] for _ in range(slots)]
    turn = 0
    for held in left:
        for piece in [held] if held.part.start is None else held.pieces(slots):
            found[turn % slots].append(piece)
            turn += 1
    return [sorted(own, key=lambda held: (held.part.start is not None, held.part.place)) for own in found]
