"""What travels to the tasks: the fused operators of one stage, as data that pickles."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.model.operator import Operator
from dagflow.runtime.partition_state import PartitionStates
from dagflow.runtime.sharing.parts import Part


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
        head: the operator that gets the work items.
        items: the work items as `(operator, port, encoded item)`.
        numbers: the number of each among those of the stage in the window's plan.
        parts: which part of each it is; empty: all are whole.
        shared: other tasks of the stage may take parts of the work over, through logs of claims.
        room: how many slots the tasks of its stage had for themselves when they were started.
        agreed: what operators have agreed on for the window, by operator.
        states: what its operators begin with, as several partitions before it have left it.
        base: the folder that relative output paths start from.
        durable: files and reports are synced to disk.
        checked: every emitted record is checked against its port's type.
        careful: the window has been tried before: the task keeps a footprint.
    """

    window: int
    round: str
    stage: str
    partition: int
    partitions: int
    head: str = ""
    items: tuple[tuple[str, str, Any], ...] = ()
    numbers: tuple[int, ...] = ()
    parts: tuple[Part, ...] = ()
    shared: bool = False
    room: int = 1
    states: PartitionStates = attrs.field(factory=dict)
    agreed: dict[str, Any] = attrs.field(factory=dict)
    slots: int = 1
    continuous: bool = False
    base: str = ""
    durable: bool = True
    checked: bool = False
    careful: bool = False

    @property
    def name(self) -> str:
        """`s0-0003`: the task within its window."""
        return f"{self.stage}-{self.partition:04d}"

    @property
    def claims_area(self) -> str:
        """What the logs of claims of the tasks of its stage are called, up to the partition."""
        return f"claims/{self.window:010d}.{self.round}.{self.stage}"

    @property
    def slots_wanted(self) -> str:
        """The record that tells that tasks of another window or stage wait for the slots of this window's."""
        return f"claims/{self.window:010d}.{self.round}.wanted"

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
    """What a runner hears of a task: figures of an attempt, or why it failed. What it did stands in its report.

    `parts`: how many parts of items it has read, where work is shared.
    """

    task: str
    attempt: str
    started: float
    ended: float
    records: int = 0
    parts: int = 0
    error: DagflowError | None = None
