"""The reports of tasks, and the records they are made of: figures, files, states, exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dagflow.model.types.forms import ADDED
from dagflow.state import StateRef


@attrs.define
class OperatorFigures:
    """The figures of one operator: records in and out, records converted, errors skipped, and its own counters.

    `seconds`: the time in the operator itself, without those behind it, summed over tasks; with its part of an exchange. Two
    runs of the same work differ in it, so it does not take part in comparisons.
    """

    records_in: int = 0
    records_out: int = 0
    converted: int = 0
    errors: int = 0
    counters: dict[str, int] = attrs.field(factory=dict)
    samples: list[str] = attrs.field(factory=list)
    seconds: float = attrs.field(default=0.0, eq=False, metadata={ADDED: True})

    @property
    def bytes(self) -> int:
        """The bytes that the operator has read, as it counts them; 0 where it does not."""
        return self.counters.get("bytes", 0)

    def as_event(self) -> dict[str, float]:
        """Return the figures that events hold. `bytes` is absent where the operator does not count them."""
        size = {"bytes": self.bytes} if "bytes" in self.counters else {}
        seconds = round(self.seconds, 3)
        return {"records_in": self.records_in, "records_out": self.records_out, **size, "errors": self.errors, "seconds": seconds}

    @classmethod
    def of_event(cls, own: Mapping[str, float]) -> OperatorFigures:
        """Return the figures that an event holds, of which some may be missing."""
        records_in, records_out, errors = (int(own.get(name, 0)) for name in ("records_in", "records_out", "errors"))
        counters = {"bytes": int(own["bytes"])} if "bytes" in own else {}
        return cls(records_in, records_out, errors=errors, counters=counters, seconds=float(own.get("seconds", 0.0)))

    def add(self, other: OperatorFigures) -> None:
        """Add the figures of another report to these."""
        self.records_in += other.records_in
        self.records_out += other.records_out
        self.converted += other.converted
        self.errors += other.errors
        self.seconds = round(self.seconds + other.seconds, 6)
        for name, n in other.counters.items():
            self.counters[name] = self.counters.get(name, 0) + n
        self.samples = (self.samples + other.samples)[:SAMPLES]


HOT_KEYS = 5  # that a report shows of an exchange
SAMPLES = 5  # errors that skipped or routed records are kept of, per operator


@attrs.frozen
class StagedFile:
    """A file that a task wrote: `attempt` is where it lies, `folder`/`name` what it is to become.

    `records`: as many as its writer told; a file whose writer never tells is one record. `hash`: of its bytes. `is_snapshot`: it
    takes the place of all files of earlier windows in its folder, together with the others of its window. `is_whole`: also where
    it has no rows, since the result has none. `is_partition`: it takes the place of the files of earlier windows in the folder of
    its partition.
    """

    operator: str
    folder: str
    name: str
    attempt: str
    size: int
    records: int
    hash: str = ""
    is_snapshot: bool = attrs.field(default=False, metadata={ADDED: True})
    is_whole: bool = attrs.field(default=False, metadata={ADDED: True})
    is_partition: bool = attrs.field(default=False, metadata={ADDED: True})

    @property
    def replaces(self) -> bool:
        """True if its rows take the place of others. A window without rows changes nothing, unless the result has none."""
        return self.is_snapshot and (self.records > 0 or self.is_whole)

    @property
    def is_marker(self) -> bool:
        """True if it only says that its partition has no rows any more: it is not published."""
        return self.is_partition and not self.records


@attrs.define
class ExchangeFigures:
    """The traffic over an exchange.

    Attributes:
        records: the number of records sent, after combining; `before`: their number before combining.
        rows, bytes: the number and the size of the blobs that carried them.
        hottest: the hottest keys of a sample, each with about how many records had it before combining.
    """

    records: int = 0
    before: int = 0
    rows: int = 0
    bytes: int = 0
    hottest: dict[str, int] = attrs.field(factory=dict)

    def add(self, other: ExchangeFigures) -> None:
        """Add the figures of another report to these."""
        self.records += other.records
        self.before += other.before
        self.rows += other.rows
        self.bytes += other.bytes
        for key, n in other.hottest.items():
            self.hottest[key] = self.hottest.get(key, 0) + n
        self.hottest = dict(sorted(self.hottest.items(), key=lambda item: -item[1])[: 4 * HOT_KEYS])

    def hot(self) -> dict[str, int]:
        """Return the keys with at least a twentieth of all records."""
        return {key: n for key, n in list(self.hottest.items())[:HOT_KEYS] if n * 20 >= self.before}


@attrs.frozen(kw_only=True)
class Steal:
    """Work that one task has taken over from another: how many parts of items, and how much, as items are weighed."""

    victim: str
    thief: str
    parts: int
    size: int


@attrs.define
class TaskReport:
    """The report of one task. Durable, and the first one of a task counts. `states`: what its operators keep, by operator.

    `parts`: which parts of which items (their numbers in the stage's plan) it has read, in order, where work can be stolen.
    `exchanges`: what it has sent, by the port that it leads to. `event_times`: the latest time of a record, by operator.
    `staged`: what `Sink.stage` has returned, by operator. `held`: how many changes more wait for the next emission point.
    """

    task: str
    items: int
    operators: dict[str, OperatorFigures] = attrs.field(factory=dict)
    files: list[StagedFile] = attrs.field(factory=list)
    notes: dict[str, list[str]] = attrs.field(factory=dict)
    states: dict[str, StateRef] = attrs.field(factory=dict)
    parts: list[list[Any]] = attrs.field(factory=list)
    exchanges: dict[str, ExchangeFigures] = attrs.field(factory=dict)
    event_times: dict[str, int] = attrs.field(factory=dict)
    staged: dict[str, Any] = attrs.field(factory=dict)
    held: dict[str, int] = attrs.field(factory=dict, metadata={ADDED: True})


def summed_exchanges(reports: Iterable[Mapping[str, ExchangeFigures]]) -> dict[str, ExchangeFigures]:
    """Sum the figures of every exchange over several reports, by the port that it leads to."""
    total: dict[str, ExchangeFigures] = {}
    for figures in reports:
        for port, own in figures.items():
            total.setdefault(port, ExchangeFigures()).add(own)
    return total


def summed(reports: Iterable[Mapping[str, OperatorFigures]]) -> dict[str, OperatorFigures]:
    """Sum the figures of every operator over several reports."""
    total: dict[str, OperatorFigures] = {}
    for figures in reports:
        for name, own in figures.items():
            total.setdefault(name, OperatorFigures()).add(own)
    return total
