"""What travels to the tasks: the fused operators of one stage, as data that pickles."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.model.operator import Operator


@attrs.frozen
class PortPlan:
    """An input port in use: the form in which its handler is called, and the type of its records."""

    form: str
    type: Any


@attrs.frozen
class OutputPlan:
    """An output port in use: its type, the `(operator, port)` that it leads to, and whether they want batches."""

    type: Any
    sinks: tuple[tuple[str, str], ...]
    wants_batches: bool


@attrs.frozen
class ProgramOperator:
    """One operator of a stage, with its ports in use by name."""

    name: str
    operator: Operator
    inputs: dict[str, PortPlan]
    outputs: dict[str, OutputPlan]


@attrs.frozen
class Program:
    """The operators of one stage in an order in which every stream leads forward."""

    stage: str
    operators: tuple[ProgramOperator, ...]


@attrs.frozen(kw_only=True)
class TaskSpec:
    """One partition of one stage in one window.

    Attributes:
        round: how often the window has been begun; reports and files of earlier rounds are nobody's.
        items: the work items as `(operator, port, encoded item)`.
        base: the folder that relative output paths start from.
        durable: files and reports are synced to disk.
        checked: every emitted record is checked against its port's type.
    """

    window: int
    round: str
    stage: str
    partition: int
    partitions: int
    items: tuple[tuple[str, str, Any], ...] = ()
    slots: int = 1
    continuous: bool = False
    base: str = ""
    durable: bool = True
    checked: bool = False

    @property
    def name(self) -> str:
        """`s0-0003`: the task within its window."""
        return f"{self.stage}-{self.partition:04d}"

    @property
    def report_name(self) -> str:
        """Where the task's report stands in the run folder."""
        return f"reports/{self.window:010d}.{self.round}.{self.name}"


@attrs.frozen(kw_only=True)
class Job:
    """The tasks of one window, as a runner gets them."""

    window: int
    round: str
    name: str
    tasks: tuple[TaskSpec, ...]
    programs: dict[str, bytes]
    run_folder: str
    durable: bool


@attrs.frozen(kw_only=True)
class TaskOutcome:
    """What a runner hears of a task: figures of an attempt, or why it failed. What it did stands in its report."""

    task: str
    attempt: str
    started: float
    ended: float
    records: int = 0
    error: DagflowError | None = None
