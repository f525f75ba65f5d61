"""The window log: what a window will do, what it did, and that all of it has followed. The decision is the commit."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar

import attrs

from dagflow.errors.run import PlanMismatch
from dagflow.model.plain import decode, dumps, encode, loads
from dagflow.runtime.report import AttemptFileInfo, OperatorFigures, TaskReport
from dagflow.storage import Store, open_store

FORMAT = 1
Record = TypeVar("Record")


@attrs.frozen(kw_only=True)
class WindowPlan:
    """What a window will do, durable before its first task.

    Attributes:
        items: the work items by stage: `(port of the head, encoded item)`.
        partitions: the number of partitions by stage, and for each item its partition.
        states: the encoded states of the driver's operators after the window, by operator and name.
        driver: what the driver's operators did while they planned it.
    """

    window: int
    items: dict[str, list[list[Any]]]
    partitions: dict[str, int]
    places: dict[str, list[int]]
    states: dict[str, dict[str, Any]]
    driver: TaskReport
    planned_at: float = 0.0


@attrs.frozen
class PublishedFile:
    """A file of a decided window: `attempt` is where it lies until it is `folder/name`."""

    operator: str
    folder: str
    name: str
    attempt: str
    size: int
    records: int


@attrs.frozen(kw_only=True)
class Decision:
    """What a window did."""

    window: int
    round: str
    files: list[PublishedFile]
    operators: dict[str, OperatorFigures]
    notes: dict[str, list[str]]
    states: dict[str, dict[str, Any]]
    decided_at: float = 0.0


class WindowLog:
    """Plans, decisions and marks of done, each published once.

    Args:
        store: for plans and decisions.
        passing: for what may be lost in a power cut: reports (the window then runs again) and marks of done (what follows from
            the decision is then done again). The same place as `store`, without its syncs.
    """

    def __init__(self, store: Store, passing: Store | None = None) -> None:
        self.store = store
        self.passing = passing or store

    @classmethod
    def open(cls, run_folder: str, durable: bool) -> WindowLog:
        """The log in a run folder; `durable`: decided windows survive a power cut."""
        return cls(open_store(run_folder, durable=durable), open_store(run_folder, durable=False))

    def plan(self, plan: WindowPlan) -> WindowPlan:
        """Publishes a plan; what counts when there is one already is that one."""
        return self._publish("plan", plan.window, plan)

    def decide(self, decision: Decision) -> Decision:
        """Publishes a decision; what counts when there is one already is that one."""
        return self._publish("decision", decision.window, decision)

    def done(self, window: int) -> None:
        """Marks that all that follows from a decision has been done."""
        self.passing.create(_name("done", window), b"{}\n")

    def read_plan(self, window: int) -> WindowPlan | None:
        """The plan of a window."""
        return self._read("plan", window, WindowPlan)

    def read_decision(self, window: int) -> Decision | None:
        """The decision of a window."""
        return self._read("decision", window, Decision)

    def is_done(self, window: int) -> bool:
        """Whether all that follows from the decision of a window has been done."""
        return self.store.read(_name("done", window)) is not None

    def windows(self, kind: str) -> list[int]:
        """The windows that have a `plan`, `decision` or `done`."""
        return [int(name.rpartition("/")[2]) for name in self.store.names(f"{kind}/")]

    def report(self, name: str, report: TaskReport) -> TaskReport:
        """Publishes a task's report; the first one counts."""
        data = dumps(encode(report, name))
        if self.passing.create(name, data):
            return report
        found = self.passing.read(name)
        return decode(loads(found), TaskReport) if found is not None else report

    def read_report(self, name: str) -> TaskReport | None:
        """The report of a task."""
        data = self.passing.read(name)
        return None if data is None else decode(loads(data), TaskReport)

    def forget(self, windows: Collection[int]) -> None:
        """Removes the reports of windows that are done."""
        for name in self.passing.names("reports/"):
            if int(name.rpartition("/")[2].partition(".")[0]) in windows:
                self.passing.discard(name)

    def _publish(self, kind: str, window: int, record: Record) -> Record:
        data = dumps({"format": FORMAT, **encode(record, f"{kind} of window {window}")})
        if self.store.create(_name(kind, window), data):
            return record
        found = self._read(kind, window, type(record))
        return record if found is None else found

    def _read(self, kind: str, window: int, cls: type[Record]) -> Record | None:
        data = self.store.read(_name(kind, window))
        if data is None:
            return None
        try:
            found = loads(data)
            written = found.pop("format")
            if written != FORMAT:
                raise PlanMismatch(
                    self.store.url, f"it was written by another version of dagflow (format {written}, this one reads {FORMAT})"
                )
            record: Record = decode(found, cls)
            return record
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, PlanMismatch):
                raise
            raise PlanMismatch(self.store.url, f"{_name(kind, window)} is damaged ({error})") from error


def _name(kind: str, window: int) -> str:
    return f"{kind}/{window:010d}"


__all__ = ["AttemptFileInfo", "Decision", "PublishedFile", "WindowLog", "WindowPlan"]
