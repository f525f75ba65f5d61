"""The work items of tasks: which files and ranges they read, and which items a window that failed has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.lineage.history import Item, PastWindow
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan

MAX_ITEMS = 100
"""Work items of a failed window that are listed."""
MAX_TEXT = 200
_SOURCE = re.compile(r"^ +source +(?P<path>.+?)(?:, position (?P<position>\d+))?$", re.MULTILINE)

TaskInput = list[Any]
"""The range of the first work item of a task (None: it has read nothing), and the number of its further items."""


@attrs.define
class TaskInputs:
    """The inputs of tasks, from plans and decisions. `of` reads only what the call before has not read."""

    log: WindowLog
    _read: dict[tuple[int, bool], dict[str, TaskInput]] = attrs.field(factory=dict)

    def of(self, windows: Mapping[int, bool], heads: Mapping[str, str]) -> dict[int, dict[str, TaskInput]]:
        """Return the inputs of the tasks of windows, by window and task; of none whose records are gone or damaged.

        `windows`: whether each of them is decided; `heads`: the operator at the head of each stage.
        """
        self._read = {key: self._read[key] if key in self._read else self._inputs(*key, heads) for key in windows.items()}
        return {window: inputs for (window, _), inputs in self._read.items()}

    def _inputs(self, window: int, decided: bool, heads: Mapping[str, str]) -> dict[str, TaskInput]:
        inputs: dict[str, TaskInput] = {}
        with suppress(DagflowError):  # the page names damaged records elsewhere
            if (plan := self.log.read_plan(window)) is not None:
                inputs = dict(_planned(plan, heads))
                decision = self.log.read_decision(window, alone=True) if decided else None
                if decision is not None and decision.parts:
                    past = PastWindow(log=self.log, run_folder=self.log.store.url, plan=plan, decision=decision)
                    inputs.update(_moved(past, heads))
        return inputs


def _planned(plan: WindowPlan, heads: Mapping[str, str]) -> Iterator[tuple[str, TaskInput]]:
    by_task: dict[str, list[Any]] = {}
    for task, item in _items(plan, heads):
        by_task.setdefault(task, [item, -1])[1] += 1
    for task, (item, more) in by_task.items():
        yield task, [item_range(item), more]


def _moved(past: PastWindow, heads: Mapping[str, str]) -> Iterator[tuple[str, TaskInput]]:
    """Yield the inputs of tasks that gave work away, or took some."""
    names = {head: stage for stage, head in heads.items()}
    for place in past.decision.parts:
        head, _, partition = place.rpartition("-")
        if head in names:
            items = past.items(head, int(partition))
            yield f"{names[head]}-{int(partition):04d}", [item_range(items[0]), len(items) - 1] if items else [None, 0]


def _items(plan: WindowPlan, heads: Mapping[str, str]) -> Iterator[tuple[str, Item]]:
    for stage, head in heads.items():
        for item, partition in zip(plan.items.get(head, ()), plan.places.get(head, ()), strict=False):
            yield f"{stage}-{partition:04d}", Item(*item)


def item_range(item: Item) -> dict[str, Any]:
    """Return an item as plain data: a range of a file, or its text."""
    if item.path is None:
        text = str(item.value)
        return {"text": text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"}
    return {"path": item.path, "start": item.start, "stop": item.stop}


def items_of_failure(plan: WindowPlan, heads: Mapping[str, str], error: str) -> dict[str, Any]:
    """Return the work items of a window that failed, each with its task. The item with the source of the error is the first."""
    source = _SOURCE.search(error)
    rows: list[dict[str, Any]] = []
    for task, item in _items(plan, heads):
        failed = source is not None and _holds(item, source["path"], source["position"])
        rows.append({**item_range(item), "task": task, "failed": failed})
    rows.sort(key=lambda row: not row["failed"])
    failed_task = rows[0]["task"] if rows and rows[0]["failed"] else None
    return {"items": rows[:MAX_ITEMS], "more_items": max(0, len(rows) - MAX_ITEMS), "task": failed_task}


def _holds(item: Item, path: str, position: str | None) -> bool:
    """Return whether an item holds a position of a file. A reader may read a record that ends behind its item."""
    if item.path != path:
        return False
    return position is None or item.start is None or item.stop is None or item.start <= int(position) < item.stop
