"""The driver's half of rebalancing: which tasks may steal, the tasks of further jobs, the progress of readers, the events."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import attrs

from dagflow.model.operator.ports import output_ports
from dagflow.model.operator.protocols import GroupsItems
from dagflow.model.types.plain_data import decode
from dagflow.model.types.records import FileBlockMetadata
from dagflow.planning.plan import Plan, Stage
from dagflow.runtime.events import Claimed, Event, EventStream, Stolen, WindowProgress
from dagflow.runtime.rebalancing.forms import read_reports
from dagflow.runtime.rebalancing.items import PendingItem
from dagflow.runtime.rebalancing.peers import gauge_of
from dagflow.runtime.rebalancing.policy import Imbalance, imbalance
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.runner import Runner
from dagflow.runtime.stage.outcome import TaskEndStats, TaskOutcome
from dagflow.runtime.stage.parts import Part, part_of, without
from dagflow.runtime.stage.program import TaskSpec
from dagflow.storage import is_local, local_path, seal

LITTLE_LEFT = "no reader had much left when another one was idle"


def why_not(*, setting: str, runner: Runner) -> str:
    """Return the reason why no work of a run can be stolen; empty if it can."""
    if setting == "off":
        return "rebalance is off"
    return runner.rebalancing_obstacle or ("there is one slot" if runner.slots == 1 and not runner.grows else "")


def why_no_yield(plan: Plan) -> str:
    """Return the reason why readers cannot stop early instead, where ownership logs would be too slow; empty if they can."""
    slow = "the store of the run folder is too slow for stealing, and"
    if plan.exchanges:
        return f"{slow} what readers send over exchanges comes from one job"
    heads = {stage.head for stage in plan.stages if stage.level == 0}
    sources = [stream.source for stream in plan.dag.streams.values() if stream.source.operator in heads]
    ports = {source: output_ports(type(plan.dag.nodes[source.operator].operator))[source.port] for source in sources}
    telling = sorted((source.operator, source.port) for source, port in ports.items() if port.completed_items)
    return f"{slow} {telling[0][0]} tells on {telling[0][1]} which blocks have been read" if telling else ""


@attrs.define
class Rebalancing:
    """The rebalancing of a run.

    Args:
        reason: why no work can move between tasks; empty if it can.
        form: of the tasks whose work can move.
        keeping: the operators in tasks that keep State, by stage.
        in_order: the stages whose items stay with the tasks that they are assigned to.
        in_bytes: the stages whose items are blocks of files, so that their weights are bytes.
    """

    reason: str
    keeping: Mapping[str, Sequence[str]]
    in_order: frozenset[str] = frozenset()
    in_bytes: frozenset[str] = frozenset()
    form: Literal["steal", "yield"] = "steal"
    was_possible: bool = attrs.field(init=False, default=False)
    last_reason: str = attrs.field(init=False, default="")
    imbalance: Imbalance | None = attrs.field(init=False, default=None)
    """The longest one of a window in which nothing was stolen."""

    @classmethod
    def of(cls, plan: Plan, setting: str, runner: Runner, run_folder: str, keeping: Mapping[str, Sequence[str]]) -> Rebalancing:
        """Return the rebalancing of a run, from its plan, settings and runner."""
        operators = {stage.name: plan.dag.nodes[stage.head].operator for stage in plan.stages}
        in_order = frozenset(
            name for name, operator in operators.items() if isinstance(operator, GroupsItems) and operator.sequential
        )
        in_bytes = frozenset(stage.name for stage in plan.stages if _has_blocks_of_files(plan, stage.head))
        reason = why_not(setting=setting, runner=runner)
        yields = not reason and (setting == "yield" or not is_local(run_folder))
        return cls(why_no_yield(plan) if yields else reason, keeping, in_order, in_bytes, "yield" if yields else "steal")

    def tell(self, decision: Decision, outcomes: Iterable[TaskOutcome], events: EventStream, report: RunReport) -> None:
        """Send the events of a decided window, and note in the report why no work was stolen."""
        outcomes = tuple(outcomes) if self.was_possible else ()
        for outcome in outcomes:
            if outcome.parts:
                events.send(Claimed(window=decision.window, task=outcome.task, attempt=outcome.attempt, parts=outcome.parts))
        sizes = [steal.size if steal.victim.rpartition("-")[0] in self.in_bytes else 0 for steal in decision.steals]
        for steal, size in zip(decision.steals, sizes, strict=True):
            events.send(Stolen(window=decision.window, source=steal.victim, to=steal.thief, bytes=size, parts=steal.parts))
        if not decision.steals:
            self._note_imbalance(outcomes)
        report.rebalancing = "" if decision.steals or report.rebalanced else self.why_never

    def _note_imbalance(self, outcomes: Iterable[TaskOutcome]) -> None:
        by_stage: dict[str, list[TaskEndStats]] = {}
        for outcome in outcomes:
            if outcome.end_stats is not None:
                by_stage.setdefault(outcome.task.rpartition("-")[0], []).append(outcome.end_stats)
        imbalances = [each for each in (self.imbalance, *map(imbalance, by_stage.values())) if each is not None]
        self.imbalance = max(imbalances, key=lambda each: each.seconds, default=None)

    def with_forms(self, tasks: Iterable[TaskSpec], others: int) -> tuple[TaskSpec, ...]:
        """Return the tasks of a window with the forms of their work. `others`: the number of running tasks of other windows."""
        tasks = tuple(tasks)
        changed = []
        sizes = Counter(task.layout.level for task in tasks)
        for task in tasks:
            reason = self.reason or self._why_not(task)
            self.was_possible |= not reason
            self.last_reason = reason if task.layout.level == 0 else self.last_reason
            beside = sizes[task.layout.level] - task.partitions
            room = max(1, task.options.slots - others - beside)
            form: Literal["assigned", "steal", "yield"] = "assigned" if reason else self.form
            changed.append(attrs.evolve(task, work=attrs.evolve(task.work, form=form, room=room)))
        return tuple(changed)

    def _why_not(self, task: TaskSpec) -> str:
        if task.layout.level > 0:
            return "its records come over an exchange"
        if task.partitions < 2:
            return "there is one reader"
        if self.keeping.get(task.stage):
            return f"{', '.join(self.keeping[task.stage])} keeps State by partition"
        return f"{task.head} reads in order" if task.stage in self.in_order else ""

    def movable(self, stages: Iterable[Stage]) -> frozenset[str]:
        """Return the stages whose tasks can steal from each other, if there are several."""
        names = () if self.reason or self.form == "yield" else (stage.name for stage in stages if stage.level == 0)
        return frozenset(name for name in names if not self.keeping.get(name) and name not in self.in_order)

    @property
    def why_never(self) -> str:
        """The reason why nothing has been rebalanced; empty if no window has run."""
        if self.was_possible and self.form == "yield":
            return LITTLE_LEFT
        if self.was_possible:
            return "the work was even" if self.imbalance is None else str(self.imbalance)
        return self.reason or self.last_reason


def _has_blocks_of_files(plan: Plan, head: str) -> bool:
    """Return whether the work items of an operator are blocks of files."""
    types = [plan.dag.types[sink] for _, sink in plan.dag.upstream(head)]
    return any(isinstance(tp, type) and issubclass(tp, FileBlockMetadata) for tp in types)


def tell_slots_are_wanted(log: WindowLog, tasks: Sequence[TaskSpec], before: Sequence[TaskSpec]) -> None:
    """Tell idle tasks to end, unless there is much to steal, if a window's tasks will want more slots than there are.

    These are the tasks of earlier windows, and those of the window itself if it has several stages.
    """
    if not tasks or len(tasks) + len(before) <= tasks[0].options.slots:
        return
    several = any(task.stage != tasks[0].stage for task in tasks)
    for name in {task.slots_wanted for task in (*before, *(tasks if several else ())) if task.work.moves}:
        log.unsynced.create(name, seal(name, b""))


Hold = Callable[[str, Any, Part], PendingItem]
"""Makes a pending item of the head of a stage, an item as it travels, and a part of it."""


def holder(plan: Plan) -> Hold:
    """Make pending items on the driver, where tasks do not run."""

    def held(head: str, item: Any, part: Part) -> PendingItem:
        port, encoded = item
        tp = next(plan.dag.types[sink] for _, sink in plan.dag.upstream(head) if sink.port == port)
        return PendingItem.of(part, (head, port, encoded), decode(encoded, tp), plan.dag.nodes[head].operator)

    return held


def further(
    log: WindowLog, plan: WindowPlan, tasks: Sequence[TaskSpec], outcomes: Iterable[TaskOutcome], hold: Hold
) -> tuple[TaskSpec, ...]:
    """Return the tasks of a further job; none if nothing is left, or if reports are wrong, since the window is not decided then.

    Their numbers follow those before, so that their reports and files have names of their own.
    """
    yielded = {outcome.task.rpartition("-")[0] for outcome in outcomes if outcome.has_left}
    further_tasks: list[TaskSpec] = []
    for stage in sorted(yielded):
        mine = [task for task in tasks if task.stage == stage]
        head, items = mine[0].head, plan.items[mine[0].head]
        left = [hold(head, items[part.number], part) for part in _left(log, mine, len(items))]
        assignments = [own for own in _by_slot(left, mine[0].work.room) if own]
        for partition, own in enumerate(assignments, len(mine)):
            further_tasks.append(
                attrs.evolve(
                    mine[0],
                    partition=partition,
                    partitions=len(mine) + len(assignments),
                    work=attrs.evolve(
                        mine[0].work,
                        items=tuple(held.item for held in own),
                        numbers=tuple(held.part.number for held in own),
                        parts=tuple(held.part for held in own),
                        sizes=tuple(round(held.weight) for held in own),
                    ),
                    layout=attrs.evolve(
                        mine[0].layout, number=len(tasks) + len(further_tasks), place=len(tasks) + len(further_tasks)
                    ),
                )
            )
    return tuple(further_tasks)


def _left(log: WindowLog, tasks: Sequence[TaskSpec], items: int) -> list[Part]:
    """Return the parts of a number of items that no task has read; none if the reports contradict each other."""
    reports = read_reports(log, tasks)
    read = [part_of(part) for report in reports if report is not None for part in report.parts]
    whole = {part.number for part in read if part.is_whole}
    try:
        left = without([Part(n) for n in range(items) if n not in whole], [part for part in read if not part.is_whole])
    except ValueError:
        return []
    return left if all(report is not None for report in reports) else []


PIECES_OF_A_SLOT = 8


def _by_slot(left: Iterable[PendingItem], slots: int) -> list[list[PendingItem]]:
    """Return parts for a number of slots. Each slot gets a piece of an item that was begun; other items are assigned in turn.

    If more than eight items were begun, they are cut into fewer pieces, so that each slot gets about eight in all. Items that
    were not begun come first: after a slow piece, they would be estimated as slow.
    """
    left = list(left)
    begun = sum(held.part.start is not None for held in left)
    count = min(slots, -(-PIECES_OF_A_SLOT * slots // max(1, begun)))
    by_slot: list[list[PendingItem]] = [[] for _ in range(slots)]
    turn = 0
    for held in left:
        for piece in [held] if held.part.start is None else held.pieces(count):
            by_slot[turn % slots].append(piece)
            turn += 1
    return [sorted(own, key=lambda held: (held.part.start is not None, held.part.place)) for own in by_slot]


EVERY = 1.0  # seconds between looks


@attrs.define
class ProgressWatch:
    """Reads the gauges of a window's tasks once a second, and sends the fraction of its work that is consumed.

    Only tasks whose work can be stolen have gauges. Small tasks that wrote none do not count.
    """

    send: Callable[[Event], None]
    _window: tuple[int, str] | None = attrs.field(init=False, default=None)
    _looked_at: float = attrs.field(init=False, default=0.0)
    _fraction: float = attrs.field(init=False, default=0.0)

    def look(self, log: WindowLog, plan: WindowPlan, tasks: Sequence[TaskSpec], now: float) -> None:
        """Read the gauges if it is time. `now`: of the monotonic clock."""
        stealing = [task for task in tasks if task.work.form == "steal"]
        folder = local_path(log.unsynced.url) if stealing else None
        if folder is None:
            return
        window = plan.window, stealing[0].epoch
        if self._window != window:
            self._window, self._looked_at, self._fraction = window, now, 0.0
        if now - self._looked_at < EVERY:
            return
        self._looked_at = now
        work = sum(sum(plan.weights.get(head, ())) for head in {task.head for task in stealing})
        done = sum(_done(folder, task) for task in stealing)
        fraction = min(1.0, done / work) if work else 0.0
        if fraction > self._fraction:
            self._fraction = fraction
            self.send(WindowProgress(window=plan.window, fraction_consumed=round(fraction, 4)))


def _done(folder: str, task: TaskSpec) -> float:
    try:
        figures = json.loads(gauge_of(folder, task.claims_area, task.partition).read() or b"{}")
        return float(figures.get("done", 0))
    except (OSError, ValueError, AttributeError, TypeError):  # torn, or gone: the next look will see it
        return 0.0
