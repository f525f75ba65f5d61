"""Marks: each store of a run names the newest window that it has, and each launch compares that with the run folder.

Ledgers, tables, databases and logs are compared alike, in both directions. An older copy of a store has lost windows; beside an
older copy of the run folder, the next window would have the number of another one, and its rows would count as published.
Decisions build on each other, so two histories that agree on one decision agree on all before it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Literal

from dagflow.errors.shown import without_secrets
from dagflow.model.operator.base import Operator
from dagflow.model.operator.sink import Sink, StagedWindow, WindowMark
from dagflow.runtime.run_folder.progress import RunProgress
from dagflow.runtime.run_folder.window_log import Decision, WindowLog
from dagflow.runtime.windows.errors import HistoriesDiffer, RunFolderOlder, StoreOlder
from dagflow.runtime.windows.sinks import GuardedSink, Retry, staged_for

Disagreement = Literal["store is older", "run folder is older", "histories differ"]


def disagreement(log: WindowLog, mark: WindowMark, *, expected: int, newest: int) -> Disagreement | None:
    """Compare the mark of a store with the window log; None if both fit.

    `expected`: the newest window that the store must have, -1 for none; `newest`: the newest one that is decided.
    """
    if mark.number < expected:
        return "store is older"
    if mark.number > newest:
        return "run folder is older"
    return "histories differ" if mark.number >= 0 and mark.differs(log.mark_of(mark.number)) else None


def compare_sinks(
    log: WindowLog, progress: RunProgress, operators: Mapping[str, Operator], application: str, retry: Retry
) -> None:
    """Compare the stores of all sinks with the window log, and raise what `checked_mark` raises."""
    for name, operator in operators.items():
        if isinstance(operator, Sink):
            checked_mark(log, progress, name, operator, application, retry)


def checked_mark(
    log: WindowLog, progress: RunProgress, name: str, sink: Sink, application: str, retry: Retry
) -> WindowMark | None:
    """Return the mark of a sink's store, None if it keeps none. It fits the window log. A single read of the store.

    `progress`: of the log; `retry`: runs a step, again where an error is transient.
    Raises RunFolderOlder, StoreOlder, HistoriesDiffer, and what `Sink.newest_mark` raises.
    """
    last = last_staged(log, progress, name, application)
    doing = f"looking for the newest window in the store of {name!r}"
    look = functools.partial(GuardedSink(name, sink).newest_mark, last)
    mark: WindowMark | None = retry(max(0, progress.newest), doing, look)
    difference = None if mark is None else disagreement(log, mark, expected=last.number, newest=progress.newest)
    if mark is None or difference is None:
        return mark
    store, run_folder = without_secrets(sink.destination()), log.store.url
    if difference == "run folder is older":
        raise RunFolderOlder(sink=name, store=store, window=mark.number, newest=progress.newest, run_folder=run_folder)
    if difference == "store is older":
        raise StoreOlder(sink=name, store=store, window=mark.number, published=last.number, run_folder=run_folder)
    raise HistoriesDiffer(sink=name, store=store, window=mark.number, run_folder=run_folder)


def last_staged(log: WindowLog, progress: RunProgress, sink: str, application: str) -> StagedWindow:
    """Return the newest window with something staged for a sink, up to the newest one that all has followed from."""
    followed = max((window for window in progress.decided if window not in progress.undone), default=-1)
    read = functools.partial(_decision, progress, log.read_decision)
    decision = read(followed) if followed >= 0 else None
    while True:
        number = -1 if decision is None else decision.last_staged.get(sink, -1)
        rejection = log.read_rejection(number) if number >= 0 else None
        if rejection is None or sink not in rejection.rows:
            break
        decision = read(number - 1) if number > 0 else None  # the sink leaves that window out
    staged_in = read(number) if number >= 0 else None
    if staged_in is None:
        return StagedWindow(application, number, sink=sink)
    return staged_for(sink, staged_in, application, log)


def _decision(progress: RunProgress, read: Callable[[int], Decision | None], window: int) -> Decision | None:
    return progress.last_decision if window == progress.newest else read(window)
