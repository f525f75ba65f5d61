"""The report of a launch."""

from __future__ import annotations

from collections.abc import Container, Mapping

import attrs

from dagflow.exports import shown_in_notebooks
from dagflow.runtime.run_folder.reports import ExchangeFigures, OperatorFigures, summed, summed_exchanges
from dagflow.runtime.run_folder.window_log import Decision
from dagflow.runtime.stage.outcome import TimesByPurpose

UNCOMMITTED = "no window is committed: the figures of operators are those of work that the next launch repeats"


@attrs.frozen
class ReaderFigures:
    """The number of readers of an operator: its bounds, now, lowest and highest.

    The bounds are those of its partitioner, or else the numbers seen. `changes`: how often the number has changed from one window
    to the next. `counters`: sums over all readers, former ones included: `tasks`, `records`, and what the operator counts itself.
    """

    min_readers: int
    now: int
    max_readers: int
    lowest: int
    highest: int
    changes: int = 0
    counters: dict[str, int] = attrs.field(factory=dict)


@attrs.frozen
class Skew:
    """The slowest task of a stage in one window, against the median of all `tasks` of that stage in that window. In seconds."""

    window: int
    task: str
    seconds: float
    median: float
    tasks: int

    @property
    def excess(self) -> float:
        """The seconds by which it took longer than the median."""
        return self.seconds - self.median


@attrs.frozen
class SinkFigures:
    """The rows that a sink without files has got in committed windows, without those that it rejected."""

    destination: str
    rows: int = 0


@attrs.define
class ExpectationFigures:
    """The verdicts on a limit of rejected records: the sums over all windows, and the number of windows by status."""

    records: int = 0
    rejected: int = 0
    windows: dict[str, int] = attrs.field(factory=dict)


@attrs.define(repr=False)
class RunReport:
    """The results of a launch.

    Attributes:
        status: `done`, `failed`, `interrupted` or `running`.
        windows: how many windows this launch decided; `first_window` the number of the first of them.
        operators: the figures of every operator, in the order of the DAG; zeros where nothing was new.
        readers: the number of readers of each partitioned operator.
        exchanges: what went over exchanges, by the port that they lead to.
        files, bytes_written: what became visible, by this launch.
        sinks: the destinations and rows of the sinks that do not write files (tables, databases), by operator.
        seconds: from launch to end.
        timings: the parts of that time: `session`, `first_task`, `windows`, `roll_forward`; known at the end.
        rebalanced, rebalanced_bytes: the number of steals, and the bytes that they moved (of blocks of files).
        rebalancing: why that has never happened.
        ledgers: the newest entry of each output folder's ledger.
        tasks: the number of tasks that have ended; `times`: their time by purpose, summed.
        skew: the slowest task, of the window and stage in which it took longest beyond the median of the tasks.
        warnings: what a user should know, and did not end the run.
        error, error_code: the message of the error that ended it, and its code if it is dagflow's.
        expectations: the limits of rejected records, by `OPERATOR: NAME`.
        later_launches: how many launches since have found nothing new, where this is a report of the past.
        held: how many changes wait for the next emission point, by the operator that keeps them (`SINK.held`, `SINK.current`).
        retries: what was retried, and why: one text for each retry of a window, a task or a step on the driver.
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
    timings: dict[str, float] = attrs.field(factory=dict)
    jobs: int = 0
    rebalanced: int = 0
    rebalanced_bytes: int = 0
    rebalancing: str = ""
    run_folder: str = ""
    outputs: list[str] = attrs.field(factory=list)
    sinks: dict[str, SinkFigures] = attrs.field(factory=dict)
    ledgers: dict[str, str] = attrs.field(factory=dict)
    held: dict[str, int] = attrs.field(factory=dict)
    warnings: list[str] = attrs.field(factory=list)
    retries: list[str] = attrs.field(factory=list)
    expectations: dict[str, ExpectationFigures] = attrs.field(factory=dict)
    ui: str | None = None
    error: str | None = None
    error_code: str | None = None
    tasks: int = 0
    times: TimesByPurpose = attrs.field(factory=TimesByPurpose)
    skew: Skew | None = None
    later_launches: int = 0

    _repr_mimebundle_ = shown_in_notebooks("report_bundle")

    def __repr__(self) -> str:
        return f"<RunReport {self.summary()}>"

    def __str__(self) -> str:
        return self._repr_mimebundle_()["text/plain"]

    def summary(self) -> str:
        """Return the report in a few words.

        >>> RunReport(application="demo", status="done", windows=2, files=1, seconds=0.5).summary()
        'demo: done, 2 windows, 1 file, 0.5 s'
        """
        windows = f"{self.windows:,} window{'s' * (self.windows != 1)}"
        files = f"{self.files:,} file{'s' * (self.files != 1)}"
        return f"{self.application}: {self.status}, {windows}, {files}, {self.seconds:.1f} s"

    def slowest_first(self) -> list[tuple[str, OperatorFigures]]:
        """Return the operators with their figures, the one that took most time first."""
        return sorted(self.operators.items(), key=lambda item: -item[1].seconds)

    def count_decision(self, decision: Decision, known: Container[str]) -> None:
        """Add what a window did, for operators that the application has."""
        operators = {name: own for name, own in decision.operators.items() if name in known}
        self.count(decision.window, operators, len(decision.files), sum(file.size for file in decision.files))
        self.held = {name: changes for name, changes in decision.held.items() if name in known}
        self.exchanges = summed_exchanges([self.exchanges, decision.exchanges])

    def count(self, window: int, operators: Mapping[str, OperatorFigures], files: int, size: int) -> None:
        """Add the figures of a decided window."""
        self.windows += 1
        self.first_window = window if self.first_window is None else self.first_window
        self.operators = summed([self.operators, operators])
        self.files += files
        self.bytes_written += size
        for name, own in self.sinks.items():
            figures = operators.get(name, OperatorFigures())
            self.sinks[name] = attrs.evolve(own, rows=own.rows + figures.records_in - figures.errors)
