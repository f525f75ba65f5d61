"""The driver's half of rebalancing: the form of each task's work, and what was stolen in a window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import attrs

from dagflow.model.operator.ports import output_ports
from dagflow.model.operator.protocols import GroupsItems
from dagflow.model.types.records import FileBlockMetadata
from dagflow.plan.plan import Plan, Stage
from dagflow.runtime.events import Claimed, EventStream, Stolen
from dagflow.runtime.rebalancing.imbalance import Imbalance, imbalance
from dagflow.runtime.run_folder.window_log import Decision, WindowLog
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.runner import Runner
from dagflow.runtime.stage.outcome import TaskEndStats, TaskOutcome
from dagflow.runtime.stage.program import TaskSpec
from dagflow.storage import is_local, seal

LITTLE_LEFT = "no reader had much left when another one was idle"


def why_not(*, setting: str, runner: Runner) -> str:
    """The reason why no work of a run can be stolen; empty if it can."""
    if setting == "off":
        return "rebalance is off"
    return runner.sharing or ("there is one slot" if runner.slots == 1 and not runner.grows else "")


def why_no_yield(plan: Plan) -> str:
    """The reason why readers cannot stop early instead, where ownership logs would be too slow; empty if they can."""
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
        """The rebalancing of a run, from its plan, settings and runner."""
        operators = {stage.name: plan.dag.nodes[stage.head].operator for stage in plan.stages}
        in_order = frozenset(
            name for name, operator in operators.items() if isinstance(operator, GroupsItems) and operator.sequential
        )
        in_bytes = frozenset(stage.name for stage in plan.stages if _has_blocks_of_files(plan, stage.head))
        reason = why_not(setting=setting, runner=runner)
        yields = not reason and (setting == "yield" or not is_local(run_folder))
        return cls(why_no_yield(plan) if yields else reason, keeping, in_order, in_bytes, "yield" if yields else "steal")

    def tell(self, decision: Decision, outcomes: Iterable[TaskOutcome], events: EventStream, report: RunReport) -> None:
        """Send the events of a decided window, and count its steals."""
        outcomes = tuple(outcomes) if self.was_possible else ()
        for outcome in outcomes:
            if outcome.parts:
                events.send(Claimed(window=decision.window, task=outcome.task, attempt=outcome.attempt, parts=outcome.parts))
        sizes = [steal.size if steal.victim.rpartition("-")[0] in self.in_bytes else 0 for steal in decision.steals]
        for steal, size in zip(decision.steals, sizes, strict=True):
            events.send(Stolen(window=decision.window, source=steal.victim, to=steal.thief, bytes=size, parts=steal.parts))
        if not decision.steals:
            self._note_imbalance(outcomes)
        report.rebalanced += len(decision.steals)
        report.rebalanced_bytes += sum(sizes)
        report.rebalancing = "" if report.rebalanced else self.why_never

    def _note_imbalance(self, outcomes: Iterable[TaskOutcome]) -> None:
        by_stage: dict[str, list[TaskEndStats]] = {}
        for outcome in outcomes:
            if outcome.end_stats is not None:
                by_stage.setdefault(outcome.task.rpartition("-")[0], []).append(outcome.end_stats)
        found = [each for each in (self.imbalance, *map(imbalance, by_stage.values())) if each is not None]
        self.imbalance = max(found, key=lambda each: each.seconds, default=None)

    def with_forms(self, tasks: Iterable[TaskSpec], others: int) -> tuple[TaskSpec, ...]:
        """The tasks of a window with the forms of their work. `others`: the number of running tasks of other windows."""
        tasks = tuple(tasks)
        found = []
        for task in tasks:
            reason = self.reason or self._why_not(task)
            self.was_possible |= not reason
            self.last_reason = reason if task.layout.level == 0 else self.last_reason
            beside = sum(each.layout.level == task.layout.level for each in tasks) - task.partitions
            room = max(1, task.options.slots - others - beside)
            form: Literal["assigned", "steal", "yield"] = "assigned" if reason else self.form
            found.append(attrs.evolve(task, work=attrs.evolve(task.work, form=form, room=room)))
        return tuple(found)

    def _why_not(self, task: TaskSpec) -> str:
        if task.layout.level > 0:
            return "its records come over an exchange"
        if task.partitions < 2:
            return "there is one reader"
        if self.keeping.get(task.stage):
            return f"{', '.join(self.keeping[task.stage])} keeps State by partition"
        return f"{task.head} reads in order" if task.stage in self.in_order else ""

    def movable(self, stages: Iterable[Stage]) -> frozenset[str]:
        """The stages whose tasks can steal from each other, if there are several."""
        names = () if self.reason or self.form == "yield" else (stage.name for stage in stages if stage.level == 0)
        return frozenset(name for name in names if not self.keeping.get(name) and name not in self.in_order)

    @property
    def why_never(self) -> str:
        """The reason why nothing has been rebalanced."""
        if self.was_possible and self.form == "yield":
            return LITTLE_LEFT
        if self.was_possible:
            return "the work was even" if self.imbalance is None else str(self.imbalance)
        return self.reason or self.last_reason or "no window has run"


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
