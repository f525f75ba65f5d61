"""What the tasks of a window have left when they stopped early, as the tasks of a further job of the same window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs

from dagflow.runtime.program import TaskOutcome, TaskSpec
from dagflow.runtime.report import TaskReport
from dagflow.runtime.sharing.parts import Part, Steal, part_of, without
from dagflow.runtime.window_log import WindowLog, WindowPlan

READERS = 16  # threads that read reports


def further(log: WindowLog, plan: WindowPlan, tasks: Sequence[TaskSpec], outcomes: Iterable[TaskOutcome]) -> tuple[TaskSpec, ...]:
    """The tasks of a further job; none where nothing has been left, or where reports are wrong: then the window is not decided.

    The number of each follows those before, so that its report and files have names of their own.
    """
    yielded = {outcome.task.rpartition("-")[0] for outcome in outcomes if outcome.has_left}
    found: list[TaskSpec] = []
    for stage in sorted(yielded):
        mine = [task for task in tasks if task.stage == stage]
        parts = _left(log, mine, len(plan.items[mine[0].head]))
        dealt = [own for own in _dealt(parts, plan.items[mine[0].head], mine[0].room) if own]
        for partition, own in enumerate(dealt, len(mine)):
            found.append(
                attrs.evolve(
                    mine[0],
                    partition=partition,
                    partitions=len(mine) + len(dealt),
                    items=tuple((mine[0].head, *plan.items[mine[0].head][part.number]) for part in own),
                    numbers=tuple(part.number for part in own),
                    parts=tuple(own),
                    number=len(tasks) + len(found),
                    place=len(tasks) + len(found),
                )
            )
    return tuple(found)


def _left(log: WindowLog, tasks: Sequence[TaskSpec], items: int) -> list[Part]:
    """What nobody has read of so many items; nothing where what they say cannot be."""
    reports = reports_of_yielding(log, tasks)
    read = [part_of(part) for report in reports if report is not None for part in report.parts]
    whole = {part.number for part in read if part.is_whole}
    try:
        left = without([Part(n) for n in range(items) if n not in whole], [part for part in read if not part.is_whole])
    except ValueError:
        return []
    return left if all(report is not None for report in reports) else []


def reports_of_yielding(log: WindowLog, tasks: Sequence[TaskSpec]) -> list[TaskReport | None]:
    """The reports of tasks from a store that is slow at small files: several at a time."""
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(log.read_report, (task.report_name for task in tasks)))


def _dealt(parts: Iterable[Part], items: Sequence[Any], slots: int) -> list[list[Part]]:
    """Parts for each of so many slots: of what had been begun each gets a piece, as its pace is that of one; else in turn.

    Those not begun come first: what begins with a piece that is slow would take them to be as slow.
    """
    found: list[list[Part]] = [[] for _ in range(slots)]
    turn = 0
    for part in parts:
        for piece in [part] if part.start is None else _pieces(part, items[part.number][1]["stop"], slots):
            found[turn % slots].append(piece)
            turn += 1
    return [sorted(own, key=lambda part: (part.start is not None, part.place)) for own in found]


def _pieces(part: Part, end: int, count: int) -> Iterator[Part]:
    """A part that ends at `end` where its item does, cut into so many about equal ones.

    >>> list(map(tuple, _pieces(Part(3, 10, None), 20, 2)))
    [(3, 10, 15, False), (3, 15, None, False)]
    """
    assert part.start is not None
    stop = end if part.stop is None else part.stop
    count = max(1, min(count, stop - part.start))
    bounds = [part.start + (stop - part.start) * n // count for n in range(count)]
    for start, after in zip(bounds, [*bounds[1:], part.stop], strict=True):
        yield Part(part.number, start, after)


def moved(tasks: Sequence[TaskSpec]) -> list[Steal]:
    """Who has taken over what of whom in further jobs."""
    had: dict[tuple[str, int], str] = {}
    found = []
    for task in tasks:
        by_victim: dict[str, list[int]] = {}
        for (_, _, value), part in zip(task.items, task.parts, strict=False):
            by_victim.setdefault(had[task.stage, part.number], []).append(_size(value, part))
        found += [Steal(victim=name, thief=task.name, parts=len(own), size=sum(own)) for name, own in by_victim.items()]
        for number in task.numbers:
            had.setdefault((task.stage, number), task.name)
    return found


def _size(value: Any, part: Part) -> int:
    """How much a part of an item is, which travels as `value`: bytes, where it has some."""
    if not isinstance(value, dict) or not {"start", "stop"} <= value.keys():
        return 1
    start = value["start"] if part.start is None else part.start
    return int((value["stop"] if part.stop is None else part.stop) - start)
