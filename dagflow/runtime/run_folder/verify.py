"""Verifying a run folder: every record that is there is whole and in its place, and none is gone that a launch would read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.runtime.run_folder.errors import RecordMissing
from dagflow.runtime.run_folder.folders import read_app_id
from dagflow.runtime.run_folder.layout import (
    APP_ID,
    DECISION,
    DONE,
    KEYED_STATE,
    KINDS,
    PLAN,
    REJECTED,
    STATE,
    record_name,
    stored,
)
from dagflow.runtime.run_folder.progress import progress_of
from dagflow.runtime.run_folder.window_log import Decision, Rejection, WindowLog, WindowPlan
from dagflow.state import SegmentRef, check_segments, segments, task_states, unseal_segment
from dagflow.state.driver_state import newest_segment
from dagflow.storage import Store, open_store, read_sealed
from dagflow.storage.records.errors import PlanMismatch, RecordMisplaced, RecordRefused

_TRIES = 3  # while a launch goes on, what is listed may be gone when it is read
_LINKED = (PLAN, DECISION, REJECTED, DONE, APP_ID)
_SEGMENTS = (STATE, KEYED_STATE)
_SINGLE = tuple(k for k in KINDS if k.sealed and not k.in_outputs and k not in (*_LINKED, *_SEGMENTS))
"""The kinds whose records stand for themselves."""


@attrs.frozen(kw_only=True)
class FolderReport:
    """The result of verifying a run folder.

    Attributes:
        folder: the run folder.
        records: the number of records that were read and checked.
        problems: what is damaged, out of place or missing.
        rejected: the windows that sinks have left out, of those whose records are kept.
        undecided: the windows that are planned and not decided: a launch is running them, or has ended before it was done.
    """

    folder: str
    records: int
    problems: tuple[DagflowError, ...]
    undecided: tuple[int, ...] = ()
    rejected: tuple[Rejection, ...] = ()


def verify_run_folder(folder: str) -> FolderReport:
    """Read all records of a run folder, and check seals, names and links, and that states are there. Changes nothing."""
    tries = 0
    while True:
        tries += 1
        log = WindowLog.open(folder, durable=False)
        before = _ends(log)
        report = _Verifying(folder, log).report()
        if not report.problems or tries == _TRIES or _ends(log) == before:
            return report


def _ends(log: WindowLog) -> list[list[int]]:
    return [log.windows(kind)[-1:] for kind in ("plan", "decision", "done")]


@attrs.define
class _Verifying:
    folder: str
    log: WindowLog
    records: int = 0
    problems: dict[str, DagflowError] = attrs.field(factory=dict)
    rejected: list[Rejection] = attrs.field(factory=list)

    def report(self) -> FolderReport:
        """Verify the folder, and return the result."""
        try:
            self._verify()
        except PlanMismatch as error:  # of another version: nothing more can be said
            self.problems = {"": error}
        newest = max(self.log.windows("decision"), default=-1)
        planned = (window for window in self.log.windows("plan") if window > newest)
        undecided = tuple(window for window in planned if self.log.store.read(record_name("decision", window)) is None)
        problems = tuple(self.problems.values())
        return FolderReport(
            folder=self.folder,
            records=self.records,
            problems=problems,
            undecided=undecided,
            rejected=tuple(self.rejected),
        )

    def _verify(self) -> None:
        log, store = self.log, self.log.store
        planned, decided, marked = (log.windows(kind) for kind in ("plan", "decision", "done"))
        self._read(read_app_id, store)
        if (planned or decided) and store.read(APP_ID.form) is None:
            self._tell(RecordMissing(store.url, APP_ID.form, "ledgers know the run by it"))
        plans = [self._read(log.read_plan, window) for window in planned]
        decisions = [self._read(log.read_decision, window) for window in decided]
        for window in marked:
            self._read(self._mark, window)
        rejections = (self._read(log.read_rejection, window) for window in log.rejected())
        self.rejected = [each for each in rejections if each is not None]
        for kind, windows in (("plan", planned), ("decision", decided)):
            for window, after in _gaps(windows):
                others = f", and {after - window - 1:,} after it are missing too" if after - window > 1 else ""
                builds = f"{record_name(kind, after)} builds on it{others}"
                self._tell(RecordMissing(store.url, record_name(kind, window), builds))
        self._read(progress_of, log, counts=False)
        for name in stored(store, _SINGLE):
            self._read(read_sealed, store, name)
        keyed = open_store(task_states.keyed_folder(self.folder), durable=False)
        for place in (store, keyed):
            for name in segments(place):
                self._read(_segment, place, name)
        self._verify_states(plans[-1] if plans else None, decisions[-1] if decisions else None, keyed)

    def _verify_states(self, plan: WindowPlan | None, decision: Decision | None, keyed: Store) -> None:
        """Check that what a further launch begins with is there."""
        store = self.log.store
        if plan is not None:
            self._read(_maps, store, newest_segment(plan.states), plan.window, counts=False)
        if decision is not None:
            for operator, refs in decision.partition_states.items():
                for ref in refs:
                    self._read(task_states.read_states, store, operator, ref, counts=False)
                    self._read(_maps, keyed, ref.segment, decision.window, counts=False)

    def _mark(self, window: int) -> Any:
        name, decision = record_name("done", window), record_name("decision", window)
        record = read_sealed(self.log.store, name)
        expected = self.log.hash_of(decision)
        if record is not None and expected is not None and record.builds_on != {decision: expected}:
            raise RecordMisplaced(self.folder, name, f"it builds on another {decision} than the one that is there")
        return record

    def _read(self, reading: Callable[..., Any], *what: Any, counts: bool = True) -> Any:
        try:
            value = reading(*what)
        except PlanMismatch:
            raise
        except DagflowError as problem:
            self.records += counts
            self._tell(problem)
            return None
        self.records += counts and value is not None
        return value

    def _tell(self, problem: DagflowError) -> None:
        """Note a problem, one for each record."""
        if isinstance(problem, RecordRefused):
            place = f"{problem.folder}/{problem.name}"
        else:
            place = getattr(problem, "path", problem.message())
        self.problems.setdefault(place, problem)


def _maps(store: Store, newest: SegmentRef | None, window: int) -> None:
    if newest is not None:
        check_segments(store, newest, window)


def _segment(store: Store, name: str) -> Any:
    return unseal_segment(store, name) or None


def _gaps(windows: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the first window of each gap with the next existing one. The oldest are removed in time."""
    return ((before + 1, after) for before, after in itertools.pairwise(windows) if after - before > 1)
