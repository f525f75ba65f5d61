"""The driver's side: which tasks share their work, what they have reported, and whether that is all of the window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from dagflow.model.ports import output_ports
from dagflow.model.protocols import GroupsItems
from dagflow.plan.plan import Plan, Stage
from dagflow.runtime.events import Claimed, EventStream, Stolen
from dagflow.runtime.rebalancing.imbalance import Imbalance, imbalance
from dagflow.runtime.run_folder.window_log import Decision, WindowLog
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.runner import Runner
from dagflow.runtime.stage.outcome import TaskEndStats, TaskOutcome
from dagflow.runtime.stage.program import TaskSpec
from dagflow.storage import is_local, seal

LITTLE_LEFT = "no reader had much left when another one had nothing to do"


def why_not(*, setting: str, runner: Runner) -> str:
    """Why no task of a run shares its work; empty where they may."""
    if setting == "off":
        return "rebalance is off"
    return runner.sharing or ("there is one slot" if runner.slots == 1 and not runner.grows else "")


def why_no_yield(plan: Plan) -> str:
    """Why readers do not stop early, where logs of claims would be too slow; empty where they may."""
    slow = "the store of the run folder is too slow for claims, and"
    if plan.exchanges:
        return f"{slow} what readers send over exchanges comes from one job"
    heads = {stage.head for stage in plan.stages if stage.level == 0}
    sources = [stream.source for stream in plan.dag.streams.values() if stream.source.operator in heads]
    ports = {source: output_ports(type(plan.dag.nodes[source.operator].operator))[source.port] for source in sources}
    telling = sorted((source.operator, source.port) for source, port in ports.items() if port.completed_items)
    return f"{slow} {telling[0][0]} tells on {telling[0][1]} which blocks have been read" if telling else ""


@attrs.define
class Rebalancing:
    """What a run knows of it.

    Args:
        reason: why no task shares its work; empty where they may.
        yields: they do so by further jobs, since logs of claims would be too slow.
        keeping: the operators in tasks that keep State, by stage.
        in_order: the stages whose items stay where they were dealt.
    """

    reason: str
    keeping: Mapping[str, Sequence[str]]
    in_order: frozenset[str] = frozenset()
    yields: bool = False
    was_shared: bool = attrs.field(init=False, default=False)
    told: str = attrs.field(init=False, default="")
    imbalance: Imbalance | None = attrs.field(init=False, default=None)
    """The longest time for which a reader had nothing to do in a window in which nothing was taken over."""

    @classmethod
    def of(cls, plan: Plan, setting: str, runner: Runner, run_folder: str, keeping: Mapping[str, Sequence[str]]) -> Rebalancing:
        """For a run."""
        operators = {stage.name: plan.dag.nodes[stage.head].operator for stage in plan.stages}
        in_order = frozenset(
            name for name, operator in operators.items() if isinstance(operator, GroupsItems) and operator.sequential
        )
        reason = why_not(setting=setting, runner=runner)
        yields = not reason and (setting == "yield" or not is_local(run_folder))
        return cls(why_no_yield(plan) if yields else reason, keeping, in_order, yields)

    def tell(self, decision: Decision, outcomes: Iterable[TaskOutcome], events: EventStream, report: RunReport) -> None:
        """Tells what has been claimed and taken over in a window."""
        outcomes = tuple(outcomes) if self.was_shared else ()
        for outcome in outcomes:
            if outcome.parts:
                events.send(Claimed(window=decision.window, task=outcome.task, attempt=outcome.attempt, parts=outcome.parts))
        for steal in decision.steals:
            events.send(Stolen(window=decision.window, source=steal.victim, to=steal.thief, bytes=steal.size, parts=steal.parts))
        if not decision.steals:
            self._look(outcomes)
        report.rebalanced += len(decision.steals)
        report.rebalanced_bytes += sum(steal.size for steal in decision.steals)
        report.rebalancing = "" if report.rebalanced else self.why_never

    def _look(self, outcomes: Iterable[TaskOutcome]) -> None:
        by_stage: dict[str, list[TaskEndStats]] = {}
        for outcome in outcomes:
            if outcome.ending is not None:
                by_stage.setdefault(outcome.task.rpartition("-")[0], []).append(outcome.ending)
        found = [each for each in (self.imbalance, *map(imbalance, by_stage.values())) if each is not None]
        self.imbalance = max(found, key=lambda each: each.seconds, default=None)

    def shared(self, tasks: Iterable[TaskSpec], others: int) -> tuple[TaskSpec, ...]:
        """The tasks of a window; those that can share their work know it. `others`: how many tasks of other windows run."""
        tasks = tuple(tasks)
        found = []
        for task in tasks:
            reason = self.reason or self._why_not(task)
            self.was_shared |= not reason
            self.told = reason if task.layout.level == 0 else self.told
            beside = sum(each.layout.level == task.layout.level for each in tasks) - task.partitions
            room = max(1, task.options.slots - others - beside)
            shared, yields = not (reason or self.yields), not reason and self.yields
            found.append(attrs.evolve(task, work=attrs.evolve(task.work, shared=shared, yields=yields, room=room)))
        return tuple(found)

    def _why_not(self, task: TaskSpec) -> str:
        if task.layout.level > 0:
            return "its records come over an exchange"
        if task.partitions < 2:
            return "there is one reader"
        if self.keeping.get(task.stage):
            return f"{', '.join(self.keeping[task.stage])} keeps State by partition"
        return f"{task.head} reads in order" if task.stage in self.in_order else ""

    def may_share(self, stages: Iterable[Stage]) -> frozenset[str]:
        """The stages whose tasks can share their work, if they are several."""
        names = () if self.reason or self.yields else (stage.name for stage in stages if stage.level == 0)
        return frozenset(name for name in names if not self.keeping.get(name) and name not in self.in_order)

    @property
    def why_never(self) -> str:
        """Why nothing has been rebalanced."""
        if self.was_shared and self.yields:
            return LITTLE_LEFT
        if self.was_shared:
            return "the work was even" if self.imbalance is None else str(self.imbalance)
        return self.reason or self.told or "no window has run"


def tell_slots_are_wanted(log: WindowLog, tasks: Sequence[TaskSpec], before: Sequence[TaskSpec]) -> None:
    """Tells idle tasks to end, unless there is much to be taken: where a window's tasks will want more slots than there are.

    Those of the windows before, and those of the window itself if they are of several stages.
    """
    if not tasks or len(tasks) + len(before) <= tasks[0].options.slots:
        return
    several = any(task.stage != tasks[0].stage for task in tasks)
    for name in {task.slots_wanted for task in (*before, *(tasks if several else ())) if task.work.moves}:
        log.passing.create(name, seal(name, b""))
