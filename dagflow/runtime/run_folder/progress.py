"""The progress of a run: which windows are decided, which are to be followed or run, and that no record of them is missing.

Windows are decided in order, and what follows from a decision is done before the next one. The oldest records are removed, a plan
before its decision. So what must be there is known from the names: the newest decision's plan, and all plans after it.
"""

from __future__ import annotations

import attrs

from dagflow.runtime.run_folder.errors import RecordMissing
from dagflow.runtime.run_folder.files import difference, file_paths
from dagflow.runtime.run_folder.layout import record_name
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.storage import explained, file_system


@attrs.frozen(kw_only=True)
class RunProgress:
    """The progress of a run, checked against its window log.

    Attributes:
        planned, decided: the windows that have a plan, and a decision.
        undone: those decided windows for which it is not certain that all has followed.
        newest: the newest decided window; -1 for none.
        waiting: the windows that have a plan and no decision.
    """

    planned: list[int]
    decided: list[int]
    undone: list[int]
    newest: int
    waiting: list[int]


def progress_of(log: WindowLog) -> RunProgress:
    """Return the progress of a log's run. Raises RecordRefused for a missing, damaged or misplaced record; PlanMismatch."""
    planned, decided, marked = (log.windows(kind) for kind in ("plan", "decision", "done"))
    newest = max(decided, default=-1)
    if marked and marked[-1] > newest:
        last = marked[-1]
        raise _missing(log, "decision", last, needed_by=record_name("done", last))
    if decided:
        log.read_decision(newest)
        if newest not in planned:
            raise _missing(log, "plan", newest, needed_by=record_name("decision", newest))
    waiting = [window for window in planned if window > newest]
    for expected, window in enumerate(waiting, newest + 1):
        if window != expected:
            raise _missing(log, "plan", expected, needed_by=record_name("plan", window))
        log.read_plan(window)
        _refuse_published(log, window)
    undone = set(decided) - set(marked)
    for window in reversed(marked):  # the newest one that holds: those before it were made before it
        if log.is_done(window):
            break
        undone.add(window)
    return RunProgress(planned=planned, decided=decided, undone=sorted(undone & set(decided)), newest=newest, waiting=waiting)


def _refuse_published(log: WindowLog, window: int) -> None:
    """Raise RecordMissing where files of a window without a decision have their final names: only a decision gives them.

    An earlier launch has left reports, which name the files. They would be published once more, under other names.
    """
    for file in log.reported_files(window):
        attempt, target = file_paths(file)
        system = file_system(target)
        with explained(target, "looking for files of an earlier launch"):
            if not system.exists(attempt) and system.exists(target) and difference(file, target) is None:
                raise _missing(log, "decision", window, needed_by=f"{target}, which has its final name,")


def _missing(log: WindowLog, kind: str, window: int, *, needed_by: str) -> RecordMissing:
    return RecordMissing(log.store.url, record_name(kind, window), f"{needed_by} builds on it")
