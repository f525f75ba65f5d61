"""The findings of a run: why it was slow, and what did not go as planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dagflow.page.run.inputs import TaskInput

TIMED = 1.0
"""Seconds that a task must have worked alone to be named, and a run must have lasted for its use of slots to matter."""
MOST = 0.6
"""The share of its window's time that such a task took."""
ALONE = 0.25
"""The share of its window's time in which no other task of the window was left."""
IDLE = 0.6
"""The share of the slots' time below which their use is a finding."""


def findings(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings of a run, the most important first: a sentence, the part of the page that shows it, and its window.

    `data`: the run as `RunReader` returns it.
    """
    return list(_findings(data))


def _findings(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    live, rejects = data["live"], sorted(data["rejects"], key=lambda each: -each["errors"])
    if rejects:
        names = ", ".join(f"{each['operator']} {each['errors']:,}" for each in rejects)
        yield {"text": f"{_records(sum(each['errors'] for each in rejects))} rejected: {names}.", "part": "rejects"}
    if (task := _longest_alone(data)) is not None:
        yield task
    if "was idle for" in (reason := live.get("rebalancing") or ""):  # else the work was even, or there was one reader
        yield {"text": f"Work was not rebalanced: {reason}.", "part": "curves"}
    if (use := data["run"]["slot_use"]) is not None and use < IDLE and (data["run"]["seconds"] or 0.0) >= TIMED:
        slots = data["run"]["slots"]
        text = f"Tasks used {100 * use:.0f} % of the time of the {slots} slots, from the first plan to the last decision."
        yield {"text": text, "part": "timeline"}


def _longest_alone(data: dict[str, Any]) -> dict[str, Any] | None:
    """Return a finding about the task that its window waited for longest; None if no window waited for one task."""
    windows, tasks = data["windows"], data["tasks"]
    by_window: dict[int, list[list[Any]]] = {}
    for row in tasks["rows"]:
        by_window.setdefault(row[0], []).append(row)
    best: tuple[float, str, int] | None = None
    for number, began, decided in zip(windows["window"], windows["planned"], windows["decided"], strict=True):
        rows = sorted(by_window.get(number, ()), key=lambda row: row[3])
        if decided is None or began is None or len(rows) < 2:
            continue
        last, took, whole = rows[-1], (rows[-1][3] - rows[-1][2]) / 1000, (decided - began) / 1000
        alone = (last[3] - max(rows[-2][3], last[2])) / 1000
        if alone >= max(TIMED, ALONE * whole, 0 if best is None else best[0]) and took >= MOST * whole:
            text = f"One task took most of the time of window {number}: {last[1]}, {took:.1f} s of {whole:.1f} s"
            best = (alone, f"{text}{_reads(last[9])}.", number)
    return None if best is None else {"text": best[1], "part": "timeline", "window": best[2]}


def _reads(task_input: TaskInput | None) -> str:
    if task_input is None or task_input[0] is None or "path" not in task_input[0]:
        return ""
    more = f" and {task_input[1]:,} more" if task_input[1] else ""
    return f". It read {task_input[0]['path']}{more}"


def slot_use(windows: dict[str, Any], slots: int | None) -> float | None:
    """Return the time of the tasks of committed windows as a share of the time of all slots; None where that is not known."""
    spans, busy = [], 0.0
    for n, (began, ended) in enumerate(zip(windows["planned"], windows["decided"], strict=True)):
        if began is not None and ended is not None:
            spans.append((began, ended))
            busy += sum(windows[part][n] for part in ("read", "compute", "write"))
    seconds, until = 0.0, float("-inf")
    for began, ended in sorted(spans):  # windows overlap
        seconds += max(0.0, ended - max(began, until)) / 1000
        until = max(until, ended)
    return min(1.0, busy / (slots * seconds)) if slots and seconds and busy else None


def _records(number: int) -> str:
    return f"{number:,} record was" if number == 1 else f"{number:,} records were"
