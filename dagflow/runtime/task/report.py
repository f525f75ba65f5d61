"""What tasks, windows and runs tell of themselves."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.runtime.exchange.hot_keys import ExchangeFigures
from dagflow.state.partition_state import StateRef

if TYPE_CHECKING:
    from dagflow.runtime.run_folder.window_log import Decision


@attrs.define
class OperatorFigures:
    """What one operator did: records in and out by port, records converted, errors let pass, and its own counters."""

    records_in: int = 0
    records_out: int = 0
    converted: int = 0
    errors: int = 0
    counters: dict[str, int] = attrs.field(factory=dict)
    samples: list[str] = attrs.field(factory=list)

    def add(self, other: OperatorFigures) -> None:
        """Sums."""
        self.records_in += other.records_in
        self.records_out += other.records_out
        self.converted += other.converted
        self.errors += other.errors
        for name, n in other.counters.items():
            self.counters[name] = self.counters.get(name, 0) + n
        self.samples = (self.samples + other.samples)[:SAMPLES]


SAMPLES = 5  # errors that skipped or routed records are kept of, per operator


@attrs.frozen
class AttemptFileInfo:
    """A file that a task wrote: `attempt` is where it lies, `folder`/`name` what it is to become.

    `records`: as many as its writer told; a file whose writer never tells is one record. `hash`: of its bytes.
    """

    operator: str
    folder: str
    name: str
    attempt: str
    size: int
    records: int
    hash: str = ""


@attrs.define
class TaskReport:
    """What one task did. Durable, and the first one of a task counts. `states`: what its operators keep, by operator.

    `parts`: which parts of which items (their numbers in the stage's plan) it has read, in order, where work is shared.
    `exchanges`: what it has sent, by the port that it leads to. `event_times`: the latest time of a record, by operator.
    """

    task: str
    items: int
    operators: dict[str, OperatorFigures] = attrs.field(factory=dict)
    files: list[AttemptFileInfo] = attrs.field(factory=list)
    notes: dict[str, list[str]] = attrs.field(factory=dict)
    states: dict[str, StateRef] = attrs.field(factory=dict)
    parts: list[list[Any]] = attrs.field(factory=list)
    exchanges: dict[str, ExchangeFigures] = attrs.field(factory=dict)
    event_times: dict[str, int] = attrs.field(factory=dict)


def summed_exchanges(reports: Iterable[Mapping[str, ExchangeFigures]]) -> dict[str, ExchangeFigures]:
    """The figures of every exchange over several reports, by the port that it leads to."""
    total: dict[str, ExchangeFigures] = {}
    for figures in reports:
        for port, own in figures.items():
            total.setdefault(port, ExchangeFigures()).add(own)
    return total


def summed(reports: Iterable[Mapping[str, OperatorFigures]]) -> dict[str, OperatorFigures]:
    """The figures of every operator over several reports."""
    total: dict[str, OperatorFigures] = {}
    for figures in reports:
        for name, own in figures.items():
            total.setdefault(name, OperatorFigures()).add(own)
    return total


@attrs.frozen
class ReaderFigures:
    """How many readers an operator had: the bounds (those seen, where its partitioner tells none), now, lowest and highest.

    `changes`: how often the number has changed from one window to the next. `counters`: what all of them have counted, those that
    are gone included: `tasks`, `records`, and what the operator counts itself.
    """

    min_readers: int
    now: int
    max_readers: int
    lowest: int
    highest: int
    changes: int = 0
    counters: dict[str, int] = attrs.field(factory=dict)


@attrs.define
class RunReport:
    """What a launch did.

    Attributes:
        status: `done`, `failed`, `interrupted` or `running`.
        windows: how many windows this launch decided; `first_window` the number of the first of them.
        operators: the figures by operator, in the order of the DAG.
        readers: how many readers each partitioned operator had.
        exchanges: what went over exchanges, by the port that they lead to.
        files, bytes_written: what became visible, by this launch.
        seconds: from launch to end.
        rebalanced, rebalanced_bytes: how often tasks have taken work over from others, and how much.
        rebalancing: why that has never happened.
        ledgers: the newest entry of each output folder's ledger.
        warnings: what a user should know, and did not end the run.
    """

    application: str = ""
    runner: str = ""
    status: str = "running"
    windows: int = 0
    first_window: int | None = None
    operators: dict[str, OperatorFigures] = attrs.field(factory=dict)
    readers: dict[str, ReaderFigures] = attrs.field(factory=dict)
    exchanges: dict[str, ExchangeFigures] = attrs.field(factory=dict)
    files: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    jobs: int = 0
    rebalanced: int = 0
    rebalanced_bytes: int = 0
    rebalancing: str = ""
    run_folder: str = ""
    outputs: list[str] = attrs.field(factory=list)
    ledgers: dict[str, str] = attrs.field(factory=dict)
    warnings: list[str] = attrs.field(factory=list)
    ui: str | None = None
    error: str | None = None

    def count(self, decision: Decision, operators: Container[str]) -> None:
        """Adds what a window did; of operators that the application has."""
        self.windows += 1
        if self.first_window is None:
            self.first_window = decision.window
        figures = summed([self.operators, decision.operators])
        self.operators = {name: own for name, own in figures.items() if name in operators}
        self.exchanges = summed_exchanges([self.exchanges, decision.exchanges])
        self.files += len(decision.files)
        self.bytes_written += sum(file.size for file in decision.files)
