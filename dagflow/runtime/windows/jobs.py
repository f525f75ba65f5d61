"""The tasks of a window, the name of its job, and the events of its plan and its decision."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import attrs

from dagflow.config.run_settings import RunSettings
from dagflow.errors import DagflowError
from dagflow.logs import WorkerLogs, levels_set
from dagflow.model.operator.context import EventTime
from dagflow.model.types.plain_data import block_text
from dagflow.planning.late_columns import late_inputs
from dagflow.planning.plan import Plan
from dagflow.runtime.events import EntryAppended, Event, ExpectationChecked, TaskEnded, Warned, WindowDecided, WindowPlanned
from dagflow.runtime.exchange.dataframes import transforms_of
from dagflow.runtime.garbage import few_collections
from dagflow.runtime.run_folder.errors import ExpectationResult
from dagflow.runtime.run_folder.layout import STAGED_BY_SINK
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.runtime.stage.errors import OperatorFailed
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.parts import Part
from dagflow.runtime.stage.program import ExchangeLayout, Job, RunOptions, TaskSpec, WindowFacts, Work
from dagflow.runtime.windows.commit import RollForwardResult
from dagflow.state import StateAssignment
from dagflow.state.references import StartStates
from dagflow.storage import join

MAX_ITEMS_NAMED = 3
CONTINUOUS_WINDOW = 0.5  # seconds that a window of a continuous run stays open by default


@attrs.define
class Running:
    """A window whose tasks run; or wait, for the states that the window before leaves (`future` is None)."""

    plan: WindowPlan
    tasks: tuple[TaskSpec, ...]
    future: Future[list[TaskOutcome]] | None
    epoch: str
    attempt: int = 1
    outcomes: tuple[TaskOutcome, ...] = ()
    """The outcomes of the earlier jobs of the window. The present job reads what their tasks have left."""

    def further(self, tasks: tuple[TaskSpec, ...], future: Future[list[TaskOutcome]], outcomes: Iterable[TaskOutcome]) -> Running:
        """Return the window with a further job that has begun. `outcomes`: of the job before."""
        return attrs.evolve(self, tasks=(*self.tasks, *tasks), future=future, outcomes=(*self.outcomes, *outcomes))


def options_of(
    settings: RunSettings, slots: int, base: str, checked: bool, run: str, application: str, run_folder: str, log: WindowLog
) -> RunOptions:
    """Return the options that all tasks of a launch share."""
    return RunOptions(
        slots=slots,
        continuous=settings.continuous,
        base=base,
        durable=settings.durability == "machine",
        checked=checked,
        enforce_immutability=settings.enforce_immutability,
        run=run,
        application=application,
        staging_folder=join(run_folder, STAGED_BY_SINK.folder),
        live_folder="" if log.live is None or log.live is log.unsynced else log.live.url,
        logs=WorkerLogs(form=settings.log_format, levels=levels_set()),
    )


@few_collections()
def tasks_of(plan: Plan, window: WindowPlan, options: RunOptions, epoch: str, again: bool = False) -> tuple[TaskSpec, ...]:
    """Return one task for each partition in a window's plan.

    `again`: the window has been tried before, maybe by another launch.
    """
    tasks: list[TaskSpec] = []
    places_of = defaultdict[int, Iterator[int]](itertools.count)
    owners = {stage.name: tuple(window.owners[stage.head]) for stage in plan.stages if stage.head in window.owners}
    columns = late_inputs(plan, window.agreed)
    for stage in plan.stages:
        is_given = stage.level == 0
        numbers = _by_partition(window.places.get(stage.head, []) if is_given else [])
        facts = WindowFacts(agreed=window.agreed, columns={name: columns[name] for name in stage.operators if name in columns})
        for partition in range(window.partitions.get(stage.head, 0)):
            place = next(places_of[stage.level])
            tasks.append(
                TaskSpec(
                    window=window.window,
                    epoch=epoch,
                    stage=stage.name,
                    partition=partition,
                    partitions=window.partitions[stage.head],
                    head=stage.head,
                    options=options,
                    work=work_of(window, stage.head, [Part(number) for number in numbers.get(partition, ())]),
                    layout=ExchangeLayout(level=stage.level, number=len(tasks), place=place, owners=owners),
                    facts=facts,
                    start=StartStates(saves=not window.is_final),
                    trace_crash=again,
                )
            )
    return _laid_out(tasks) if plan.exchanges else tuple(tasks)


def _by_partition(places: Iterable[int]) -> Mapping[int, Sequence[int]]:
    """Return the numbers of the items of each partition, given the partition of each item.

    >>> dict(_by_partition([0, 2, 0]))
    {0: [0, 2], 2: [1]}
    """
    numbers = defaultdict[int, list[int]](list)
    for number, place in enumerate(places):
        numbers[place].append(number)
    return numbers


def work_of(window: WindowPlan, head: str, parts: Sequence[Part]) -> Work:
    """Return the work of a task that reads these parts of a stage's items in a window's plan."""
    items = window.items.get(head, [])
    return Work(
        items=tuple((head, items[part.number][0], items[part.number][1]) for part in parts),
        numbers=tuple(part.number for part in parts),
        parts=() if all(part.is_whole for part in parts) else tuple(parts),
    )


def _laid_out(tasks: Sequence[TaskSpec]) -> tuple[TaskSpec, ...]:
    """Return tasks with the places of those that they may send rows to, which all tasks of a level share."""
    sizes = Counter(task.layout.level for task in tasks)
    first = [task for task in tasks if task.partition == 0]
    shared: dict[int, dict[str, Any]] = {}
    for level in sizes:
        following = min((each for each in sizes if each > level), default=None)
        shared[level] = {
            "destinations": {task.stage: (task.layout.place, task.partitions) for task in first if task.layout.level > level},
            "next_tasks": 0 if following is None else sizes[following],
            "senders": {task.stage: task.layout.number for task in first if task.layout.level < level},
        }
    return tuple(attrs.evolve(task, layout=attrs.evolve(task.layout, **shared[task.layout.level])) for task in tasks)


def with_start(task: TaskSpec, states: StateAssignment, times: Mapping[str, EventTime], withheld: tuple[str, ...]) -> TaskSpec:
    """Return a task with the states and event times that its operators begin with, and those that emit nothing."""
    start = states.start(task.stage, task.partition, task.keys) if task.start.saves else task.start
    return attrs.evolve(task, start=start, facts=attrs.evolve(task.facts, event_times=dict(times), withheld=withheld))


def with_source(error: DagflowError, tasks: Sequence[TaskSpec]) -> DagflowError:
    """Return an error of a task. For a record from an exchange, it also names what the sending task has read."""
    if isinstance(error, OperatorFailed) and error.source is not None:
        sender = next((task for task in tasks if error.source == f"task {task.name}"), None)
        read = [block_text(value) for _, _, value in sender.work.items] if sender is not None else []
        if read:
            more = f" and {len(read) - MAX_ITEMS_NAMED} more" if len(read) > MAX_ITEMS_NAMED else ""
            error.source = f"{error.source}, which was given {', '.join(read[:MAX_ITEMS_NAMED])}{more}"
    return error


def levels_of(plan: Plan) -> dict[int, int]:
    """Return the level that each exchange leads to, by the tag of the exchange."""
    return {each.tag: plan.stage_of(each.sink.operator).level for each in plan.exchanges.values()}


def job_of(
    plan: Plan, window: Running, tasks: tuple[TaskSpec, ...], programs: dict[str, bytes], run_folder: str, durable: bool
) -> Job:
    """Return the job of a window: its tasks, as a runner gets them."""
    return Job(
        window=window.plan.window,
        epoch=window.epoch,
        name=job_name(plan, window.plan),
        tasks=tasks,
        programs=programs,
        run_folder=run_folder,
        durable=durable,
        levels=levels_of(plan),
        transforms=transforms_of(plan, tasks),
    )


def job_name(plan: Plan, window: WindowPlan) -> str:
    """Application, window and operators, as Spark's UI shows them."""
    stages = [" → ".join(s.operators) for s in plan.stages if s.head in window.partitions]
    return f"{plan.dag.name}: window {window.window}: {'; '.join(stages)}"


def planned_event(plan: WindowPlan, tasks: Sequence[TaskSpec], replayed: bool) -> WindowPlanned:
    """Return the event of a window whose plan is durable."""
    size = sum(report.counters.get("bytes_planned", 0) for report in plan.driver.operators.values())
    items = sum(len(items) for items in plan.items.values())
    return WindowPlanned(window=plan.window, items=items, bytes=size, tasks=len(tasks), replayed=replayed)


def ended_event(window: int, outcome: TaskOutcome) -> TaskEnded:
    """Return the event of a task that has ended."""
    return TaskEnded(
        window=window,
        task=outcome.task,
        attempt=outcome.attempt,
        started=outcome.started,
        ended=outcome.ended,
        records=outcome.records,
        stage=outcome.stage,
        partition=outcome.partition,
        **attrs.asdict(outcome.times),
        operators=outcome.operators,
    )


def decided_event(decision: Decision, operators: Container[str]) -> WindowDecided:
    """Return the event of a window whose decision is durable, with the figures of operators that the application has."""
    size = sum(file.size for file in decision.files)
    records = sum(file.records for file in decision.files)
    figures = {name: own.as_event() for name, own in decision.operators.items() if name in operators}
    return WindowDecided(window=decision.window, files=len(decision.files), bytes=size, records=records, operators=figures)


def checked_events(
    window: int, results: Iterable[ExpectationResult], samples: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Event]:
    """Yield the events of the verdicts on a window's rejected records. `samples`: of these records, by operator."""
    for result in results:
        shown = list((samples or {}).get(result.operator, ()))
        yield ExpectationChecked(window=window, **attrs.asdict(result), samples=shown)
        if result.status == "warned":
            yield Warned(text=f"window {window}: operator {result.text()}")


def followed_events(window: int, followed: RollForwardResult) -> Iterator[Event]:
    """Yield the events of all that has followed from a window's decision."""
    for folder, entry in followed.entries:
        rows = 0 if entry.data is None or entry.data.new_data is None else entry.data.new_data.interval.rows
        yield EntryAppended(window=window, dataset=folder, entry=entry.seq, hash=entry.hash, rows=rows)
    for file in followed.taken_away:
        gone = f"window {window}: {file.name} is no longer in {file.folder}: it counts as published and taken away"
        yield Warned(text=gone)


def seconds_open(settings: RunSettings) -> float | None:
    """Return the longest time that a window stays open, in seconds; None without a limit."""
    if settings.window is not None:
        return settings.window
    return CONTINUOUS_WINDOW if settings.continuous else None
