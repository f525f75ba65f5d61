"""The window loop: plan, run, decide, roll forward; windows overlap, decisions are made in order."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRunning
from typing import Any

import attrs

from dagflow.config.run_settings import RunSettings
from dagflow.errors import DagflowError
from dagflow.errors.run import Interrupted, PlanMismatch, WindowFailed, WindowIncomplete
from dagflow.model.context import Clock
from dagflow.model.operator import Operator
from dagflow.plan.plan import Plan
from dagflow.runtime.commit import decide, publish, roll_forward, sweep
from dagflow.runtime.compile import loaded, pickled, stage_program
from dagflow.runtime.driver import Driver, properties, shape
from dagflow.runtime.events import (
    EventStream,
    TaskEnded,
    Warned,
    WindowDecided,
    WindowDone,
    WindowPlanned,
    WindowRetried,
    WindowStarted,
)
from dagflow.runtime.failure import Abort, describe
from dagflow.runtime.program import Job, TaskOutcome, TaskSpec
from dagflow.runtime.report import RunReport, summed
from dagflow.runtime.runner import Runner, TasksDied
from dagflow.runtime.window_log import Decision, WindowLog, WindowPlan

POLL = 0.05  # seconds between looks at a running window, while the loop waits to be stopped
CONTINUOUS_WINDOW = 0.5  # seconds that a window of a continuous run stays open by default


@attrs.define
class _Running:
    """A window whose tasks run."""

    plan: WindowPlan
    tasks: tuple[TaskSpec, ...]
    future: Future[list[TaskOutcome]]
    round: str
    attempt: int = 1


class WindowLoop:
    """Runs an application window by window.

    Args:
        launch: a name that no other launch on this run folder has.
        stopping: asked often; once it says by whom the run is stopped, the loop gives up what runs and raises Interrupted.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        runner: Runner,
        log: WindowLog,
        settings: RunSettings,
        launch: str,
        run_folder: str,
        base: str,
        events: EventStream,
        clock: Clock,
        report: RunReport,
        stopping: Callable[[], str | None],
        checked: bool = False,
    ) -> None:
        self._plan = plan
        self._runner = runner
        self._log = log
        self._settings = settings
        self._launch = launch
        self._run_folder = run_folder
        self._events = events
        self._clock = clock
        self._report = report
        self._stopping = stopping
        self._durable = settings.durability == "machine"
        self._spec = TaskSpec(
            window=0,
            round=launch,
            stage="driver",
            partition=0,
            partitions=1,
            slots=runner.slots,
            continuous=settings.continuous,
            base=base,
            durable=self._durable,
            checked=checked,
        )
        programs = {s.name: stage_program(plan, s.name) for s in plan.stages}
        self._programs = {name: pickled(program, plan, travels=not runner.in_process) for name, program in programs.items()}
        self._halves: dict[str, Operator] = {
            item.name: item.operator
            for program in programs.values()
            for item in loaded(pickled(program, plan, travels=False)).operators
        }
        self._running: deque[_Running] = deque()
        self._decided = 0
        self._planned = 0

    def operator(self, name: str) -> Operator | None:
        """The driver's half of an operator."""
        return self._halves.get(name)

    def first_window(self) -> int:
        """The number that the first new window of this launch gets."""
        return max(self._log.windows("plan"), default=-1) + 1

    def run(self) -> None:
        """Runs until the input is exhausted, the maximum of windows is reached, or the run is stopped. Raises DagflowError."""
        planned = self._log.windows("plan")
        decided = set(self._log.windows("decision"))
        undone = sorted(decided - set(self._log.windows("done")))
        for window in undone:  # their files appear, whatever happens then; operators hear of it when they live
            publish(self._decision(window), self._durable, again=True)
        waiting = deque(window for window in planned if window not in decided)
        last = self._log.read_plan(planned[-1]) if planned else None
        if last is not None:
            self._same_application(last)
        try:
            self._drive(last.states if last else {}, undone, waiting)
        except Abort as abort:  # of an operator on the driver
            raise abort.error from abort
        self._sweep()

    def _same_application(self, last: WindowPlan) -> None:
        """Raises PlanMismatch when this application is not that of the last plan: other operators, classes or streams.

        Properties may change between launches: what has changed is told, since earlier windows were made without it.
        """
        now = shape(self._plan)
        lost = [f"{what} is gone" for what in last.shape if what not in now]
        new = [f"{what} is new" for what in now if what not in last.shape]
        changed = [f"{what} was a {last.shape[what]}" for what in now if last.shape.get(what, now[what]) != now[what]]
        if lost or new or changed:
            raise PlanMismatch(
                self._run_folder,
                f"it belongs to another application, or to this one as it was: {'; '.join([*lost, *new, *changed])}",
            )
        values = properties(self._plan)
        others = [f"{name} = {was} → {values.get(name)}" for name, was in last.properties.items() if values.get(name) != was]
        if others:
            self._events.send(Warned(text=f"properties have changed since window {last.window}: {'; '.join(others)}"))

    def _drive(self, states: dict[str, dict[str, Any]], undone: list[int], waiting: deque[int]) -> None:
        with Driver(self._plan, self._spec, self._clock, states) as driver:
            for item in self._plan.driver:
                operator = driver.operator(item)
                if operator is not None:
                    self._halves[item] = operator
            for window in undone:
                self._follow(self._decision(window), again=True)
            self._sweep()
            try:
                self._work(driver, waiting, self.first_window())
            except BaseException:
                self._runner.cancel()
                raise

    def _decision(self, window: int) -> Decision:
        decision = self._log.read_decision(window)
        assert decision is not None
        return decision

    def _work(self, driver: Driver, waiting: deque[int], next_window: int) -> None:
        while True:
            self._check_stop()
            while len(self._running) < self._settings.windows_in_flight:
                if waiting:
                    plan = self._log.read_plan(waiting.popleft())
                    assert plan is not None
                    self._begin(plan, replayed=True)
                    continue
                if self._enough() or (driver.exhausted and not self._settings.continuous):
                    break
                fresh = driver.plan_window(next_window, self._seconds(), self._attend)
                self._check_stop()
                if fresh is not None:
                    next_window += 1
                    self._planned += 1
                    self._begin(self._log.plan(fresh), replayed=False)
                elif self._settings.continuous:
                    break
            if self._running:
                self._finish(wait=not self._settings.continuous or self._full() or self._enough())
            elif self._enough() or (driver.exhausted and not self._settings.continuous):
                return

    def _attend(self) -> bool:
        """Asked while a window is being filled: decides windows whose tasks have ended meanwhile. Whether to stop."""
        if self._running and self._running[0].future.done():
            self._finish(wait=False)
        return self._stopping() is not None

    def _seconds(self) -> float | None:
        if self._settings.window is not None:
            return self._settings.window
        return CONTINUOUS_WINDOW if self._settings.continuous else None

    def _enough(self) -> bool:
        return self._settings.max_windows is not None and self._planned >= self._settings.max_windows

    def _full(self) -> bool:
        return len(self._running) >= self._settings.windows_in_flight

    def _check_stop(self) -> None:
        by = self._stopping()
        if by is not None:
            raise Interrupted(by)

    def _begin(self, plan: WindowPlan, replayed: bool) -> None:
        tasks = self._tasks(plan, self._launch)
        size = sum(report.counters.get("bytes_planned", 0) for report in plan.driver.operators.values())
        items = sum(len(items) for items in plan.items.values())
        self._events.send(WindowPlanned(window=plan.window, items=items, bytes=size, tasks=len(tasks), replayed=replayed))
        self._running.append(self._start(plan, tasks, self._launch, 1))

    def _tasks(self, plan: WindowPlan, round: str) -> tuple[TaskSpec, ...]:
        tasks = []
        for stage in self._plan.stages:
            items = plan.items.get(stage.head, [])
            for partition in range(plan.partitions.get(stage.head, 0)):
                mine = [
                    (stage.head, *item) for item, place in zip(items, plan.places[stage.head], strict=True) if place == partition
                ]
                tasks.append(
                    attrs.evolve(
                        self._spec,
                        window=plan.window,
                        round=round,
                        stage=stage.name,
                        partition=partition,
                        partitions=plan.partitions[stage.head],
                        items=tuple(mine),
                    )
                )
        return tuple(tasks)

    def _start(self, plan: WindowPlan, tasks: tuple[TaskSpec, ...], round: str, attempt: int) -> _Running:
        self._events.send(WindowStarted(window=plan.window, round=round, tasks=len(tasks)))
        if not tasks:
            future: Future[list[TaskOutcome]] = Future()
            future.set_result([])
            return _Running(plan, tasks, future, round, attempt)
        job = Job(
            window=plan.window,
            round=round,
            name=self._job_name(plan),
            tasks=tasks,
            programs=self._programs,
            run_folder=self._run_folder,
            durable=self._durable,
        )
        self._report.jobs += 1
        return _Running(plan, tasks, self._runner.start(job), round, attempt)

    def _job_name(self, plan: WindowPlan) -> str:
        stages = [" → ".join(s.operators) for s in self._plan.stages if s.head in plan.items]
        return f"{self._plan.dag.name}: window {plan.window}: {'; '.join(stages)}"

    def _finish(self, wait: bool) -> None:
        """Decides the oldest window once its tasks have ended."""
        oldest = self._running[0]
        while True:
            try:
                outcomes = oldest.future.result(timeout=POLL if wait else 0)
                break
            except StillRunning:
                self._check_stop()
                if not wait:
                    return
            except DagflowError:
                raise
            except TasksDied as error:
                self._again(oldest, str(error))
                return
            except Exception as error:  # noqa: BLE001  # what a dying cluster raises is anything
                self._again(oldest, describe(error))
                return
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
            figures = attrs.asdict(outcome, filter=lambda a, _: a.name != "error")
            self._events.send(TaskEnded(window=oldest.plan.window, **figures))
        try:
            decision = decide(self._log, oldest.plan, oldest.round, oldest.tasks, self._clock.now(), self._durable)
        except WindowIncomplete as error:
            self._again(oldest, error.message())
            return
        self._running.popleft()
        self._count(decision)
        size = sum(file.size for file in decision.files)
        records = sum(file.records for file in decision.files)
        self._events.send(WindowDecided(window=decision.window, files=len(decision.files), bytes=size, records=records))
        self._follow(decision)

    def _again(self, failed: _Running, reason: str) -> None:
        """Runs a window again from its plan, and the later ones with it: a failed window discards them."""
        self._check_stop()
        if failed.attempt >= self._settings.window_attempts:
            raise WindowFailed(failed.plan.window, failed.attempt, reason)
        self._events.send(WindowRetried(window=failed.plan.window, attempt=failed.attempt + 1, reason=reason))
        self._runner.cancel()
        discarded = list(self._running)
        self._running.clear()
        for old in discarded:
            with contextlib.suppress(Exception):
                old.future.result(timeout=30)
            attempt = old.attempt + 1 if old is failed else old.attempt
            again = f"{self._launch}.{old.attempt + 1}" if old is failed else f"{old.round}+"
            self._running.append(self._start(old.plan, self._tasks(old.plan, again), again, attempt))

    def _count(self, decision: Decision) -> None:
        report = self._report
        report.windows += 1
        if report.first_window is None:
            report.first_window = decision.window
        report.operators = {
            name: figures
            for name, figures in summed([report.operators, decision.operators]).items()
            if name in self._plan.dag.nodes
        }
        report.files += len(decision.files)
        report.bytes_written += sum(file.size for file in decision.files)

    def _follow(self, decision: Decision, again: bool = False) -> None:
        for file in roll_forward(self._log, decision, self._halves, self._durable, again):
            gone = f"window {decision.window}: {file.name} is no longer in {file.folder}: it counts as published and taken away"
            self._events.send(Warned(text=gone))
        self._events.send(WindowDone(window=decision.window))

    def _sweep(self) -> None:
        """Removes what tasks that were cancelled or killed have left for windows that are done."""
        sweep(self._log, set(self._log.windows("done")), self._report.outputs)
