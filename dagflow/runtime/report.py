"""What tasks, windows and runs tell of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs


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
    """A file that a task wrote: `attempt` is where it lies, `folder`/`name` what it is to become."""

    operator: str
    folder: str
    name: str
    attempt: str
    size: int
    records: int


@attrs.define
class TaskReport:
    """What one task did. Durable, and the first one of a task counts."""

    task: str
    items: int
    operators: dict[str, OperatorFigures] = attrs.field(factory=dict)
    files: list[AttemptFileInfo] = attrs.field(factory=list)
    notes: dict[str, list[str]] = attrs.field(factory=dict)


def summed(reports: Iterable[Mapping[str, OperatorFigures]]) -> dict[str, OperatorFigures]:
    """The figures of every operator over several reports."""
    total: dict[str, OperatorFigures] = {}
    for figures in reports:
        for name, own in figures.items():
            total.setdefault(name, OperatorFigures()).add(own)
    return total


@attrs.define
class RunReport:
    """What a launch did.

    Attributes:
        status: `done`, `failed`, `interrupted` or `running`.
        windows: how many windows this launch decided; `first_window` the number of the first of them.
        operators: the figures by operator, in the order of the DAG.
        files, bytes_written: what became visible, by this launch.
        seconds: from launch to end.
        warnings: what a user should know, and did not end the run.
    """

    application: str = ""
    runner: str = ""
    status: str = "running"
    windows: int = 0
    first_window: int | None = None
    operators: dict[str, OperatorFigures] = attrs.field(factory=dict)
    files: int = 0
    bytes_written: int = 0
    seconds: float = 0.0
    jobs: int = 0
    run_folder: str = ""
    outputs: list[str] = attrs.field(factory=list)
    warnings: list[str] = attrs.field(factory=list)
    ui: str | None = None
    error: str | None = None
