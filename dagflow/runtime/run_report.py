"""The report of a launch."""

from __future__ import annotations

from collections.abc import Container

import attrs

from dagflow.runtime.events import Event, Warned, retry_text
from dagflow.runtime.run_folder.reports import ExchangeFigures, OperatorFigures, summed, summed_exchanges
from dagflow.runtime.run_folder.window_log import Decision


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


@attrs.define
class RunReport:
    """The results of a launch.

    Attributes:
        status: `done`, `failed`, `interrupted` or `running`.
        windows: how many windows this launch decided; `first_window` the number of the first of them.
        operators: the figures by operator, in the order of the DAG.
        readers: the number of readers of each partitioned operator.
        exchanges: what went over exchanges, by the port that they lead to.
        files, bytes_written: what became visible, by this launch.
        seconds: from launch to end.
        timings: the parts of that time: `session`, `first_task`, `windows`, `roll_forward`; known at the end.
        rebalanced, rebalanced_bytes: the number of steals, and the bytes that they moved (of blocks of files).
        rebalancing: why that has never happened.
        ledgers: the newest entry of each output folder's ledger.
        warnings: what a user should know, and did not end the run.
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
    ledgers: dict[str, str] = attrs.field(factory=dict)
    warnings: list[str] = attrs.field(factory=list)
    retries: list[str] = attrs.field(factory=list)
    ui: str | None = None
    error: str | None = None

    def note(self, event: Event) -> None:
        """Add a warning or a retry. A subscriber of the run's events."""
        if isinstance(event, Warned):
            self.warnings.append(event.text)
        elif (text := retry_text(event)) is not None:
            self.retries.append(text)

    def count(self, decision: Decision, operators: Container[str]) -> None:
        """Add what a window did, for operators that the application has."""
        self.windows += 1
        if self.first_window is None:
            self.first_window = decision.window
        figures = summed([self.operators, decision.operators])
        self.operators = {name: own for name, own in figures.items() if name in operators}
        self.exchanges = summed_exchanges([self.exchanges, decision.exchanges])
        self.files += len(decision.files)
        self.bytes_written += sum(file.size for file in decision.files)
