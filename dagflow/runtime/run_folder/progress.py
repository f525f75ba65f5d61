"""The progress of a run: which windows are decided, which are to be followed or run, and that no record of them is missing.

Windows are decided in order, and what follows from a decision is done before the next one. The oldest records are removed, a plan
before its decision. So what must be there is known from the names: the newest decision's plan, and all plans after it.

Listings of object stores may be old. So the newest records are looked for by their names, which have numbers: those that are not
listed yet, and those that are listed and gone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import attrs

from dagflow.runtime.run_folder.errors import RecordMissing
from dagflow.runtime.run_folder.files import difference, file_paths
from dagflow.runtime.run_folder.layout import record_name
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.storage import FolderLock, explained, file_system
from dagflow.storage.errors import LeaseLost


@attrs.frozen(kw_only=True)
class RunProgress:
    """The progress of a run, checked against its window log.

    Attributes:
        planned, decided: the windows that have a plan, and a decision.
        undone: those decided windows for which it is not certain that all has followed.
        newest: the newest decided window; -1 for none.
        marked: the windows that have a mark of done.
        waiting: the windows that have a plan and no decision.
        last_plan, last_decision: the newest plan, and the newest decision.
        strays: old windows without a mark that nothing follows from. A launch that was paused, and did not know that another one
            had taken over, has planned or decided them when their records had been removed.
    """

    planned: list[int]
    decided: list[int]
    undone: list[int]
    marked: list[int]
    newest: int
    waiting: list[int]
    strays: list[int]
    last_plan: WindowPlan | None
    last_decision: Decision | None


@attrs.frozen
class Listing:
    """The windows that are listed with a plan, a decision and a mark of done. On object stores, each kind is a request."""

    planned: list[int]
    decided: list[int]
    marked: list[int]

    @classmethod
    def of(cls, log: WindowLog) -> Listing:
        """List a log."""
        return cls(*(log.windows(kind) for kind in ("plan", "decision", "done")))

    def first_undecided(self) -> int:
        """Return the first window that is to be run: one that is planned and not decided, or a new one."""
        newest = max(self.decided, default=-1)
        return min((window for window in self.planned if window > newest), default=max(self.planned, default=-1) + 1)


def progress_of(log: WindowLog, listing: Listing | None = None) -> RunProgress:
    """Return the progress of a log's run. Raises RecordRefused for a missing, damaged or misplaced record; PlanMismatch."""
    listing = listing or Listing.of(log)
    planned, decided = list(listing.planned), list(listing.decided)
    last_plan: WindowPlan | None = None
    last_decision: Decision | None = None
    while planned and (last_plan := log.read_plan(planned[-1])) is None:
        planned.pop()
    while decided and (last_decision := log.read_decision(decided[-1])) is None:
        decided.pop()
    last, newest = (windows[-1] if windows else -1 for windows in (planned, decided))
    if newest > last and (plan := log.read_plan(newest)) is not None:
        planned.append(last := newest)
        last_plan = plan
    while (plan := log.read_plan(max(last, newest) + 1)) is not None:
        planned.append(last := plan.window)
        last_plan = plan
    while newest < last and (decision := log.read_decision(newest + 1)) is not None:
        decided.append(newest := newest + 1)
        last_decision = decision
    marked = list(listing.marked)
    while marked and marked[-1] > newest:
        mark = record_name("done", marked.pop())
        if log.store.read(mark) is not None:
            raise _missing(log, "decision", int(mark.rpartition("/")[2]), needed_by=mark)
    if decided and newest not in planned:
        raise _missing(log, "plan", newest, needed_by=record_name("decision", newest))
    waiting = [window for window in planned if window > newest]
    for expected, window in enumerate(waiting, newest + 1):
        if window != expected:
            raise _missing(log, "plan", expected, needed_by=record_name("plan", window))
        log.read_plan(window)
        _refuse_published(log, window)
    # Before a window was marked, all has followed from those before it, whether or not their marks are still there.
    complete = next((window for window in reversed(marked) if log.is_done(window)), -1)
    return RunProgress(
        planned=planned,
        decided=decided,
        undone=[window for window in decided if window > complete],
        marked=marked,
        newest=newest,
        waiting=waiting,
        strays=[window for window in _strays(planned, decided, marked, complete) if not log.is_done(window)],
        last_plan=last_plan,
        last_decision=last_decision,
    )


def withdraw(log: WindowLog, lock: FolderLock, windows: Iterable[int]) -> None:
    """If this launch no longer holds the folder, remove what it has planned and decided when the windows had been removed by age.

    Such a window has no mark, and a later one has. `windows`: those that the launch has begun.
    """
    try:
        lock.confirm()
    except LeaseLost:
        marked = log.windows("done")
        unmarked = [window for window in windows if any(later > window for later in marked) and not log.is_done(window)]
        log.drop(unmarked)


def _strays(planned: list[int], decided: list[int], marked: list[int], complete: int) -> list[int]:
    """Return the windows that are certainly not of the history that is kept: of that, each has a plan, a decision and a mark."""
    undecided = [window for window in planned if window < max(decided, default=-1) and window not in decided]
    gap = next((older for newer, older in itertools.pairwise(reversed(decided)) if newer != older + 1), -1)
    unmarked = [window for window in decided if window < complete and window not in marked]
    return undecided + [window for window in unmarked if window <= gap or window not in planned]


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


def decided_windows(log: WindowLog) -> list[int]:
    """Return the windows that may have a decision: those that are listed, and those that follow them without a gap."""
    decided = log.windows("decision")
    following = decided[-1] + 1 if decided else 0
    while any(log.store.read(record_name(kind, following)) is not None for kind in ("plan", "decision")):
        decided.append(following)
        following += 1
    return decided


def _missing(log: WindowLog, kind: str, window: int, *, needed_by: str) -> RecordMissing:
    return RecordMissing(log.store.url, record_name(kind, window), f"{needed_by} builds on it")
