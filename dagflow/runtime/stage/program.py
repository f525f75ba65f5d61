"""Programs and tasks as data that pickles: the fused operators of a stage, and what one of its tasks is to do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

import attrs

from dagflow.logs import WorkerLogs
from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import EventTime
from dagflow.model.operator.ports import BATCH, RECORD
from dagflow.model.types.keys import Key, KeyAssignment
from dagflow.runtime.run_folder.layout import CLAIM, FREE_SLOT, REPORT, SLOTS_WANTED, stage_area, task_name
from dagflow.runtime.stage.parts import Part
from dagflow.state import StartStates

if TYPE_CHECKING:
    import pyarrow as pa


TRANSFORMED = 1 << 24
"""The source of rows that a DataFrame transform has made: this plus the number of Spark's partition."""

TAKEN_BACK = "-"
"""Stands before the port of a work item that is taken back."""


@attrs.frozen
class SourcePlan:
    """The output port that leads to an input port, and the type that it carries. `written`: the port that the user knows."""

    operator: str
    port: str
    type: Any
    written: str = ""


@attrs.frozen
class PortPlan:
    """An input port in use: the form in which its handler is called, the type of its records, and where they come from.

    `is_changing`: rows that arrive may be taken back.
    """

    form: str
    type: Any
    source: SourcePlan | None = None
    is_changing: bool = False


@attrs.frozen
class OutputPlan:
    """An output port in use: its type, the `(operator, port)` that it leads to, and whether they want batches.

    `is_changing`: rows that it has emitted may be taken back.
    """

    type: Any
    sinks: tuple[tuple[str, str], ...]
    wants_batches: bool
    is_changing: bool = False


@attrs.frozen
class ProgramOperator:
    """One operator of a stage, with its ports in use by name."""

    name: str
    operator: Operator
    inputs: dict[str, PortPlan]
    outputs: dict[str, OutputPlan]


@attrs.frozen
class Combiner:
    """Combines the records for a port before they cross an exchange, by methods of its operator, which is not set up."""

    operator: Operator
    methods: dict[str, str]

    def pairwise(self) -> Callable[[Any, Any], Any] | None:
        """Return the method that merges two records with the same key."""
        return getattr(self.operator, self.methods[RECORD]) if RECORD in self.methods else None

    def batchwise(self) -> Callable[[Any], Any] | None:
        """Return the method that reduces a batch to fewer rows."""
        return getattr(self.operator, self.methods[BATCH]) if BATCH in self.methods else None


@attrs.frozen(kw_only=True)
class SendPlan:
    """An exchange that begins in a stage.

    Attributes:
        tag: its number.
        source, sink: both ends, as `(operator, port)`; `stage`: of the sink.
        kind, key: how records find their partition.
        type: of the records.
        combiner: what the sink's operator offers.
        columns: of what it carries, where that is for a DataFrame transform.
    """

    tag: int
    source: tuple[str, str]
    sink: tuple[str, str]
    stage: str
    kind: str
    key: Key | None
    type: Any
    combiner: Combiner | None = None
    columns: pa.Schema | None = None

    @property
    def port(self) -> str:
        """The port that it leads to: `operator.port`."""
        return ".".join(self.sink)


@attrs.frozen
class Program:
    """The operators of one stage in an order in which every stream leads forward.

    `sends`: the exchanges that begin in it; `receives`: those that end in it, by tag, as `(operator, port)`.
    """

    stage: str
    operators: tuple[ProgramOperator, ...]
    sends: tuple[SendPlan, ...] = ()
    receives: dict[int, tuple[str, str]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class RunOptions:
    """The options that all tasks of a run share.

    Attributes:
        slots: how many tasks can work at once.
        continuous: the run continues when its input is exhausted.
        base: the folder that relative output paths start from.
        durable: files and reports are synced to disk.
        checked: every emitted record is checked against its port's type.
        enforce_immutability: records must stay as they are once they were received or emitted.
        run: the id of the launch, for log records.
        application: the identity of the application on its run folder; empty where there is none.
        staging_folder: the folder in the run folder where sinks may stage files; empty where there is none.
        live_folder: the local folder where tasks leave their figures while they work, instead of the run folder; empty for none.
        logs: the logging of the launch, for workers without any of their own.
    """

    slots: int = 1
    continuous: bool = False
    base: str = ""
    durable: bool = True
    checked: bool = False
    enforce_immutability: bool = False
    run: str | None = None
    application: str = ""
    staging_folder: str = ""
    live_folder: str = ""
    logs: WorkerLogs = attrs.field(factory=WorkerLogs)


@attrs.frozen(kw_only=True)
class TaskId:
    """One partition of one stage in one epoch of a window, and the names of its records in the run folder.

    `epoch`: a window that is begun again gets another one; reports and files of earlier epochs do not count.
    """

    window: int
    epoch: str
    stage: str
    partition: int
    partitions: int

    @property
    def name(self) -> str:
        """`s0-0003`: the task within its window."""
        return f"{self.stage}-{self.partition:04d}"

    @property
    def claims_area(self) -> str:
        """The name of the logs of claims of its stage, up to the partition."""
        return stage_area(CLAIM, self.window, self.epoch, self.stage)

    @property
    def slots_wanted(self) -> str:
        """The record by which tasks of another window or stage ask for this window's slots."""
        return SLOTS_WANTED.name(window=self.window, epoch=self.epoch)

    @property
    def slot_is_free(self) -> str:
        """The record of an idle slot while yielding tasks of its stage are at work."""
        return FREE_SLOT.name(window=self.window, epoch=self.epoch, stage=self.stage)

    @property
    def reports_of_stage(self) -> str:
        """The name of the reports of its stage, up to the partition."""
        return stage_area(REPORT, self.window, self.epoch, self.stage)

    @property
    def report_name(self) -> str:
        """The name of the task's report in the run folder."""
        return task_name(self.reports_of_stage, self.partition)


@attrs.frozen(kw_only=True)
class Work:
    """The work items of a task, and the form of rebalancing that may move parts of them.

    Attributes:
        items: `(operator, port, encoded item)` of each; `-port` for one that is taken back.
        numbers: the number of each among those of the stage in the window's plan.
        parts: which part of each it is; empty: all are whole.
        sizes: the weight of each part, if a job before has left it.
        form: `assigned`: the task reads its items itself. `steal`: other tasks of the stage may steal parts, through ownership
            logs. `yield`: the task stops early when a slot is idle, and a further job of the window reads the rest.
        room: the number of slots that the tasks of the stage had for themselves when they were started.
    """

    items: tuple[tuple[str, str, Any], ...] = ()
    numbers: tuple[int, ...] = ()
    parts: tuple[Part, ...] = ()
    sizes: tuple[int, ...] = ()
    form: Literal["assigned", "steal", "yield"] = "assigned"
    room: int = 1

    @property
    def moves(self) -> bool:
        """Return whether other tasks may read a part of it."""
        return self.form != "assigned"

    def with_parts(self) -> Iterator[tuple[tuple[str, str, Any], Part | None]]:
        """Yield each item with its part; None for all of it."""
        return zip(self.items, self.parts or itertools.repeat(None), strict=False)


@attrs.frozen(kw_only=True)
class ExchangeLayout:
    """The place of a task among the tasks of its window, and the places of those that it exchanges rows with.

    Attributes:
        level, number: its level, and its number among the tasks of the window.
        place: its number among the tasks of its level; rows of exchanges are for that.
        destinations: by stage that exchanges lead to, the place of its first task, and how many it has.
        owners: of the stages whose partitioner has assigned keys, the partition of each of these (`KeyAssignment`).
        next_tasks: how many tasks the next level has; 0 in the last one.
        senders: by stage in lower levels, the number of its first task.
    """

    level: int = 0
    number: int = 0
    place: int = 0
    destinations: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    owners: dict[str, tuple[int, ...]] = attrs.field(factory=dict)
    next_tasks: int = 0
    senders: dict[str, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class WindowFacts:
    """The facts about a window that its operators get.

    Attributes:
        agreed: the result of `agree` for the window, by operator.
        columns: of the records that arrive, by operator and port, where types do not declare them.
        event_times: by operator that follows event time.
        withheld: the operators that emit nothing, since they wait for an emission point.
    """

    agreed: dict[str, Any] = attrs.field(factory=dict)
    columns: dict[str, dict[str, list[tuple[str, str]]]] = attrs.field(factory=dict)
    event_times: dict[str, EventTime] = attrs.field(factory=dict)
    withheld: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class TaskSpec(TaskId):
    """A task with all that it needs to run.

    `head`: the operator that gets the work items; `trace_crash`: the window has been tried before, so the task writes down which
    record comes next.
    """

    head: str = ""
    options: RunOptions = RunOptions()
    work: Work = Work()
    layout: ExchangeLayout = ExchangeLayout()
    facts: WindowFacts = WindowFacts()
    start: StartStates = attrs.field(factory=StartStates)
    trace_crash: bool = False

    @classmethod
    def alone(cls, stage: str, options: RunOptions, facts: WindowFacts | None = None) -> TaskSpec:
        """Return the only task of a stage that no runner runs: the driver's, or that of a test."""
        return cls(window=0, epoch="", stage=stage, partition=0, partitions=1, options=options, facts=facts or WindowFacts())

    @property
    def keys(self) -> KeyAssignment:
        """The assignment of keys to the partitions of its stage."""
        return KeyAssignment(self.partitions, self.layout.owners.get(self.stage, ()))

    def sender(self, number: int) -> str:
        """Return the source of a row by its number: a task of a lower level, or the transform of its own operator.

        >>> layout = ExchangeLayout(senders={"s0": 0, "s1": 4})
        >>> TaskSpec(window=0, epoch="r", stage="s2", partition=0, partitions=1, layout=layout).sender(5)
        'task s1-0001'
        """
        if number >= TRANSFORMED:
            return f"the result of the body of {self.head}"
        stage, first = max(((s, n) for s, n in self.layout.senders.items() if n <= number), key=lambda pair: pair[1])
        return f"task {stage}-{number - first:04d}"


@attrs.frozen(kw_only=True)
class DataFrameTransform:
    """A function of DataFrames that Spark runs between two levels of a window, for one operator. It stays on the driver.

    Attributes:
        operator, window: the operator that it belongs to, and the window.
        level: the level of the tasks that get its result: `partitions` of them, from place `first` on.
        tag: the number of the exchange that leads to it, and of its result.
        given, made: the columns.
        function: makes a DataFrame of a DataFrame.
    """

    operator: str
    window: int
    level: int
    tag: int
    first: int
    partitions: int
    given: pa.Schema
    made: pa.Schema
    function: Callable[[Any], Any]


@attrs.frozen(kw_only=True)
class Job:
    """The tasks of one window, as a runner gets them: those of lower levels first.

    `levels`: by the tag of an exchange, the level that it leads to; `transforms`: by the stage that gets their results.
    """

    window: int
    epoch: str
    name: str
    tasks: tuple[TaskSpec, ...]
    programs: dict[str, bytes]
    run_folder: str
    durable: bool
    levels: dict[int, int] = attrs.field(factory=dict)
    transforms: dict[str, DataFrameTransform] = attrs.field(factory=dict)

    def by_level(self) -> list[tuple[TaskSpec, ...]]:
        """Return the tasks of each level, in the order of their places."""
        levels: dict[int, list[TaskSpec]] = {}
        for task in self.tasks:
            levels.setdefault(task.layout.level, []).append(task)
        return [tuple(tasks) for tasks in levels.values()]
