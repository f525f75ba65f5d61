"""The window loop: plan, run, decide, roll forward; windows overlap, decisions are made in order."""

from __future__ import annotations

import contextlib
import functools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRunning
from typing import Any

import attrs

from dagflow.config.run_settings import RunSettings
from dagflow.errors import DagflowError
from dagflow.model.operator.base import Operator, limits_of
from dagflow.model.operator.context import Clock
from dagflow.planning.errors import ScopeNotWritten
from dagflow.planning.plan import Plan
from dagflow.planning.scopes import covering_launches, refuse_parts
from dagflow.runtime.events import (
    EventStream,
    TaskRetried,
    Warned,
    WindowDone,
    WindowRetried,
    WindowStarted,
)
from dagflow.runtime.exchange.dataframes import has_transforms
from dagflow.runtime.live.watch import LiveWatch
from dagflow.runtime.run_folder.launch_record import LaunchRecord
from dagflow.runtime.run_folder.layout import swept_after
from dagflow.runtime.run_folder.progress import Listing, RunProgress, progress_of, withdraw
from dagflow.runtime.run_folder.window_log import Decision, WindowLog, WindowPlan
from dagflow.runtime.run_report import RunReport
from dagflow.runtime.runner import Runner, TasksDied
from dagflow.runtime.stage.failure import Abort, describe
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.task.compile import halves, pickled, stage_program
from dagflow.runtime.task.crash_marker import places
from dagflow.runtime.windows.commit import decide, roll_forward, sweep_done
from dagflow.runtime.windows.compatibility import changed_properties
from dagflow.runtime.windows.datasets import Datasets, replacing_sinks
from dagflow.runtime.windows.directories import Directories
from dagflow.runtime.windows.emission import with_holders, withheld
from dagflow.runtime.windows.errors import (
    ChangesHeld,
    ExpectationFailed,
    PlannedElsewhere,
    RunIsFinal,
    WindowFailed,
    WindowIncomplete,
)
from dagflow.runtime.windows.event_time import event_times, followers
from dagflow.runtime.windows.jobs import (
    Running,
    checked_events,
    decided_event,
    ended_event,
    followed_events,
    job_of,
    options_of,
    planned_event,
    seconds_open,
    tasks_of,
    with_source,
    with_start,
)
from dagflow.runtime.windows.marks import compare_sinks
from dagflow.runtime.windows.plan_window import Driver
from dagflow.runtime.windows.readers import Readers
from dagflow.runtime.windows.rebalance import ProgressWatch, Rebalancing, further, holder, tell_slots_are_wanted
from dagflow.runtime.windows.rejection import reject, rejection_of
from dagflow.runtime.windows.retry import LOOKS, POLL, RetryPolicy
from dagflow.state import MapLog, StateAssignment
from dagflow.state.driver_state import check_left
from dagflow.state.task_states import declared_states, sweep_replaced
from dagflow.storage import FolderLock, is_transient
from dagflow.storage.records.errors import PlanMismatch, RecordRefused


class WindowLoop:
    """Runs an application window by window.

    Args:
        launch: a name that no other launch on this run folder has.
        launched: the record of the launch in the run folder, written if it has windows.
        lock: of the run folder, held by this launch.
        before: the loop of the same launch that this one takes over from.
        check_columns: called before a window runs for which readers have agreed on other columns than before. What it raises
            ends the run.
        stopping: called often; once it returns the source of a stop, the loop abandons running windows and raises Interrupted.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        runner: Runner,
        log: WindowLog,
        datasets: Datasets,
        settings: RunSettings,
        launch: str,
        launched: LaunchRecord | None = None,
        lock: FolderLock,
        run_folder: str,
        base: str,
        events: EventStream,
        clock: Clock,
        report: RunReport,
        stopping: Callable[[], str | None],
        checked: bool = False,
        check_columns: Callable[[Mapping[str, Any]], None],
        before: WindowLoop | None = None,
    ) -> None:
        self._plan = plan
        self._runner = runner
        self._log = log
        self._datasets = datasets
        self._settings = settings
        self._launch = launch
        self._launched = launched
        self._lock = lock
        self._number: int = 0 if before is None else before._number + 1
        self._epoch = launch if before is None else f"{launch}.after{before._number}"
        self._run_folder = run_folder
        self._events = events
        self._clock = clock
        self._watching = ProgressWatch(events.send)
        self._live = LiveWatch(plan, log, lambda: report.operators, lambda: runner.slots, clock, ends=not settings.continuous)
        self._report = report
        self._stopping = stopping
        self.retries = RetryPolicy(
            attempts=settings.window_attempts,
            delay=settings.retry_delay,
            clock=clock,
            events=events,
            stopping=stopping,
            lock=lock,
        )
        self._durable = settings.durability == "machine"
        self._options = options_of(settings, runner.slots, base, checked, launch, datasets.app_id, run_folder, log)
        programs = {s.name: stage_program(plan, s.name) for s in plan.stages}
        self._programs = {name: pickled(program, plan, travels=not runner.in_process) for name, program in programs.items()}
        self._halves = halves(programs.values(), plan)
        keeping = {name: [o.name for o in program.operators if declared_states(o.operator)] for name, program in programs.items()}
        self._states = StateAssignment(keeping, [name for name in plan.driver if declared_states(plan.dag.nodes[name].operator)])
        self._rebalancing = Rebalancing.of(plan, settings.rebalance, runner, run_folder, keeping)
        self._reject_limits = {name: limits for name, node in plan.dag.nodes.items() if (limits := limits_of(node.operator))}
        self._replacing = replacing_sinks(plan)
        self._maps = MapLog(log.store, retry=self.retries.retry)
        self._running: deque[Running] = deque()
        self._before: Decision | None = None
        self._unfollowed: set[int] = set()  # the windows that this loop has begun, and not rolled forward yet
        self._has_ended = True  # with no window there is nothing to end
        self._has_begun: bool = before is not None and before._has_begun
        self._listing: Listing | None = None
        self._planned: int = 0 if before is None else before._planned
        self._check_columns = check_columns
        self._agreed: Mapping[str, Any] = {} if before is None else before._agreed

    def operator(self, name: str) -> Operator | None:
        """Return the driver's half of an operator."""
        return self._halves.get(name)

    def first_window(self) -> int:
        """Return the number of the first new window of this launch."""
        return max(self._log.windows("plan"), default=-1) + 1

    def first_undecided(self) -> int:
        """Return the number of the first window that this launch runs: one that an earlier launch has planned, or a new one."""
        self._listing = Listing.of(self._log)
        return self._listing.first_undecided()

    def run(self) -> None:
        """Run until the input is exhausted, the maximum of windows is reached, or the run is stopped. Raises DagflowError."""
        progress, self._listing = progress_of(self._log, self._listing), None
        for window in progress.undone:  # their files appear, whatever happens then; operators are told once they are open
            again = functools.partial(self._publish_again, window)
            self.retries.retry_step(window, "giving its files their final names", again)
        # Windows are decided in order. An older plan without its decision may also be one whose removal a power cut has undone.
        self._log.drop(progress.strays)
        last = progress.last_plan
        has_rows = () if progress.last_decision is None else progress.last_decision.last_staged
        if last is not None and (changed := changed_properties(self._plan, last, self._run_folder, has_rows)):
            self._events.send(Warned(text=f"properties have changed since window {last.window}: {'; '.join(changed)}"))
        self._has_ended = last is None or last.is_end
        if progress.last_decision is not None:
            self._begin_with(progress.last_decision)
        if last is not None:
            operators = {name: node.operator for name, node in self._plan.dag.nodes.items()}
            for text in check_left(operators, last, self._states.left, self._log.store):
                self._events.send(Warned(text=text))
        try:
            self._drive(last, progress)
        except BaseException as error:
            with contextlib.suppress(Exception):  # the error that ends the run is the one to show
                self._live.close(self._events.send, failed=True)
            with contextlib.suppress(Exception):
                withdraw(self._log, self._lock, self._unfollowed)
            if isinstance(error, Abort):  # of an operator on the driver
                raise error.error from error
            raise
        self._live.close(self._events.send)
        if self._has_begun:
            self._sweep(self._log.windows("done"))

    def look_beside(self) -> None:
        """Tell how far tasks are, from another thread: for runners that run them in this one."""
        self._live.look(self._events.send_beside)

    def _end_final(self, last: WindowPlan, progress: RunProgress, driver: Driver) -> None:
        """Let a launch do what a killed final one has left, and no more. Raises RunIsFinal where nothing is left to do."""
        waits = bool(progress.waiting)
        has_work = waits or progress.undone or self._has_begun  # the last by an earlier loop of this launch
        if not last.is_final or not has_work or self._settings.continuous:
            raise RunIsFinal(self._run_folder, last.window + 1, is_last=last.is_final, waits=waits)
        driver.exhausted = True
        if waits or progress.undone:
            text = "this launch completes a final one from its plan: input that has come since is not read; --fresh begins anew"
            self._events.send(Warned(text=text))

    def _begin_with(self, last: Decision) -> None:
        self._before = last
        try:
            ceased = self._states.begin(last.partition_states, last.states)
        except ValueError as error:
            raise PlanMismatch(self._run_folder, str(error)) from error
        self._report.held = {name: count for name, count in last.held.items() if name in self._plan.dag.nodes}
        if lost := {name: count for name, count in last.held.items() if name not in self._report.held}:
            raise ChangesHeld(self._run_folder, last.window, tuple(lost.items()))
        for name in ceased:
            self._events.send(Warned(text=f"operator {name!r} no longer keeps State: what it kept goes with the next window"))

    def _drive(self, last: WindowPlan | None, progress: RunProgress) -> None:
        slots = None if self._runner.grows else self._runner.slots
        self._readers = Readers(
            self._plan,
            slots=slots,
            share=self._rebalancing.movable(self._plan.stages),
            clock=self._clock,
            last=last,
            left=self._states.left,
            figures=self._report.readers,
            tell=self._events.send,
        )
        self._report.readers = self._readers.figures()
        self._report.rebalancing = "" if self._report.rebalanced else self._rebalancing.why_never
        with Driver(self._plan, self._options, self._epoch, self._clock, last, self._maps, self._readers) as driver:
            driver.tell(self._events.send)
            for item in self._plan.driver:
                if (operator := driver.operator(item)) is not None:
                    self._halves[item] = operator
            # Another application, and inputs that are not those of before, have been refused by now: nothing is noted of them.
            self._datasets.open(self._log, self._lock.check, progress)
            if self._settings.reject_window is not None:
                self._reject(self._settings.reject_window, progress)
            compare_sinks(self._log, progress, self._halves, self._datasets.app_id, self.retries.retry)
            for window in progress.undone:
                self._follow(self._decision(window), again=True)
            self._sweep(self._log.windows("done") if progress.undone else progress.marked)
            if last is not None and (last.is_final or self._plan.emission.is_final):
                self._end_final(last, progress, driver)
            try:
                # never a number behind plans of others: the operators are where the last plan has left them
                self._work(driver, deque(progress.waiting), 0 if last is None else last.window + 1)
            except BaseException:
                self._runner.cancel()
                raise

    def _publish_again(self, window: int) -> None:
        files = [file for file in self._decision(window).files if not file.is_marker]
        Directories(self._durable, again=True).give_names(window, files)

    def _reject(self, window: int, progress: RunProgress) -> None:
        """Let the sinks that cannot publish a window leave it out."""
        undone = [self._decision(each) for each in progress.undone]
        rejection = None
        if undone and undone[0].window == window:
            rejection = rejection_of(self._log, undone[0], self._halves, self._datasets.app_id, self._launch, self._clock.now())
        self._events.send(Warned(text=reject(self._log, window, undone, rejection).text()))

    def _decision(self, window: int) -> Decision:
        decision = self._log.read_decision(window)
        assert decision is not None
        return decision

    def _work(self, driver: Driver, waiting: deque[int], next_window: int) -> None:
        while True:
            self.retries.check_stop()
            while len(self._running) < self._settings.windows_in_flight:
                if waiting:
                    window = waiting.popleft()
                    plan = self.retries.retry(window, "reading its plan", functools.partial(self._log.read_plan, window))
                    assert plan is not None
                    self._begin(with_holders(self._plan, plan), replayed=True)
                    continue
                if self._enough() or (driver.exhausted and not self._settings.continuous):
                    break
                fresh = driver.plan_window(next_window, seconds_open(self._settings), self._attend)
                if fresh is not None and next_window > 0 and not self._settings.continuous:
                    self._refuse_part(fresh)
                self._live.known = driver.known
                self.retries.check_stop()
                if fresh is not None:
                    next_window += 1
                    self._planned += 1
                    self._publish(fresh)
                    del fresh  # its items are not in memory while the next window is planned
                elif self._settings.continuous:
                    break
            if self._running:
                self._finish(wait=not self._settings.continuous or self._full() or self._enough())
            elif self._begin_emission(driver, next_window):
                next_window += 1
            elif self._enough() or (driver.exhausted and not self._settings.continuous):
                return

    def _refuse_part(self, fresh: WindowPlan) -> None:
        """Raise ScopeNotWritten if operators mean all input, and this window has more of it: in tasks, or on the driver."""
        figures = fresh.driver.operators
        names = [node.name for node in covering_launches(self._plan.written) if node.name in figures]
        if any(fresh.items.values()) or any(figures[name].records_in for name in names):
            refuse_parts(self._plan.written, ScopeNotWritten.LAUNCHED)

    def _begin_emission(self, driver: Driver, window: int) -> bool:
        """Begin a window without input, if something waits for one. Return whether it did.

        That is an emission point for which changes wait, or the end of event time behind the last window of a bounded run.
        """
        if self._settings.continuous:
            wanted = not self._enough() and driver.is_due() and bool(self._report.held)
        else:
            wanted = driver.exhausted and (bool(self._report.held) or (not self._has_ended and bool(followers(self._plan))))
        if wanted:
            self._publish(driver.plan_emission(window))
        return wanted

    def _publish(self, plan: WindowPlan) -> None:
        published = self.retries.retry_step(plan.window, "publishing its plan", lambda: self._log.plan(plan))
        if published != attrs.evolve(plan, outputs=published.outputs):
            # Another launch has planned the window. Operators on the driver are at another place than its plan says.
            self._lock.confirm()
            raise PlannedElsewhere(plan.window, self._run_folder)
        self._begin(published, replayed=False)

    def _attend(self) -> bool:
        """Asked while a window is being filled: decides windows whose tasks have ended meanwhile. Whether to stop."""
        self._live.look(self._events.send)
        oldest = self._running[0].future if self._running else None
        if oldest is not None and oldest.done():
            self._finish(wait=False)
        return self._stopping() is not None

    def _enough(self) -> bool:
        return self._settings.max_windows is not None and self._planned >= self._settings.max_windows

    def _full(self) -> bool:
        return len(self._running) >= self._settings.windows_in_flight

    def _begin(self, plan: WindowPlan, replayed: bool) -> None:
        self._unfollowed.add(plan.window)
        self._has_begun = True
        if self._launched is not None:  # a launch without windows leaves nothing
            noting = functools.partial(self._log.launched, self._launch, self._launched, keep=self._settings.retain_windows)
            self.retries.retry_step(plan.window, "noting how it was launched", noting)
            self._launched = None
        if plan.agreed != self._agreed:
            checking = functools.partial(self._check_columns, plan.agreed)
            self.retries.retry(plan.window, "looking at the tables of its sinks", checking)
            self._agreed = plan.agreed
        if gone := sorted(plan.places.keys() - {stage.head for stage in self._plan.stages}):
            text = f"window {plan.window} is planned with work for {', '.join(gone)}, which this launch does not have"
            raise PlanMismatch(self._run_folder, f"{text}. It is done by a launch with the same --continuous, --every and keys")
        tasks = tasks_of(self._plan, plan, self._options, self._epoch, again=replayed)
        for place in places(self._log, tasks) if replayed else ():
            self._events.send(Warned(text=f"window {plan.window}: an earlier launch has ended while it was running; {place}"))
        self._events.send(planned_event(plan, tasks, replayed))
        self._live.planned(plan)
        self._readers.planned(plan)
        in_order = self._states.is_needed() or self._rebalancing.in_order or followers(self._plan) or has_transforms(self._plan)
        self._has_ended = plan.is_end
        running = Running(plan, tasks, None, self._epoch)
        self._running.append(running if self._running and in_order else self._start(running))

    def _start(self, window: Running) -> Running:
        """Start the tasks of a window, with the states that the decisions so far have left."""
        plan = window.plan
        self._events.send(WindowStarted(window=plan.window, round=window.epoch, tasks=len(window.tasks)))
        if not window.tasks:
            future: Future[list[TaskOutcome]] = Future()
            future.set_result([])
            return attrs.evolve(window, future=future)
        times, slots = event_times(self._plan, plan, self._before), self._runner.slots
        silent = withheld(self._plan, plan, self._before)
        options = attrs.evolve(self._options, slots=slots)
        started = (attrs.evolve(with_start(task, self._states, times, silent), options=options) for task in window.tasks)
        before = [task for running in self._running if running.future is not None for task in running.tasks]
        tasks = self._rebalancing.with_forms(started, others=len(before))
        tell_slots_are_wanted(self._log, tasks, before)
        self._live.started(plan.window, window.epoch, tasks)
        return attrs.evolve(window, tasks=tasks, future=self._run_job(window, tasks))

    def _run_job(self, window: Running, tasks: tuple[TaskSpec, ...]) -> Future[list[TaskOutcome]]:
        self._report.jobs += 1
        return self._runner.start(job_of(self._plan, window, tasks, self._programs, self._run_folder, self._durable))

    def _goes_on(self, window: Running, outcomes: list[TaskOutcome]) -> bool:
        """Start a further job for what the tasks of a window have left. Return whether there is one."""
        looking = functools.partial(further, self._log, window.plan, window.tasks, outcomes, holder(self._plan))
        tasks = self.retries.retry(window.plan.window, "looking at what is left of it", looking)
        if tasks:
            self._live.started(window.plan.window, window.epoch, (*window.tasks, *tasks))
            self._running[0] = window.further(tasks, self._run_job(window, tasks), outcomes)
        return bool(tasks)

    def _finish(self, wait: bool) -> None:
        """Decide the oldest window once its tasks have ended."""
        oldest = self._running[0]
        assert oldest.future is not None
        while True:
            try:
                outcomes = oldest.future.result(timeout=POLL if wait else 0)
                break
            except StillRunning:
                self.retries.check_stop()
                self._watching.look(self._log, oldest.plan, oldest.tasks, self._clock.monotonic())
                self._live.look(self._events.send)
                if not wait:
                    return
            except DagflowError as error:
                if not is_transient(error):
                    raise
                self._again(oldest, error.message())
                return
            except TasksDied as error:
                self._again(oldest, str(error), error.tasks)
                return
            except Exception as error:  # noqa: BLE001  # what a dying cluster raises is anything
                self._again(oldest, describe(error))
                return
        for outcome in outcomes:
            if outcome.error is not None and not is_transient(outcome.error):
                raise with_source(outcome.error, oldest.tasks)
            if outcome.error is not None:
                self._again(oldest, outcome.error.message())
                return
            if outcome.is_retry:
                self._events.send(TaskRetried(window=oldest.plan.window, task=outcome.task, attempt=outcome.attempt))
            self._events.send(ended_event(oldest.plan.window, outcome))
        if self._goes_on(oldest, outcomes):
            return
        outcomes = [*oldest.outcomes, *outcomes]
        try:
            decision = self.retries.retry_step(oldest.plan.window, "deciding it", lambda: self._decide(oldest))
        except ExpectationFailed as error:
            for event in checked_events(oldest.plan.window, error.results, error.samples):
                self._events.send(event)
            raise
        except (WindowIncomplete, RecordRefused) as error:  # reports are not synced: without them the window runs again
            self._again(oldest, error.message())
            return
        self._running.popleft()
        self._readers.decided(decision.window, outcomes)
        self._states.left = decision.partition_states
        self._before = decision
        self._rebalancing.tell(decision, outcomes, self._events, self._report)
        self._report.readers = self._readers.figures()
        self._report.count_decision(decision, self._plan.dag.nodes)
        self._live.decided(decision.window)
        for event in checked_events(decision.window, decision.expectations):
            self._events.send(event)
        self._events.send(decided_event(decision, self._plan.dag.nodes))
        self._follow(decision, again=decision.round != oldest.epoch)
        if self._running and self._running[0].future is None:
            self._running[0] = self._start(self._running[0])

    def _decide(self, window: Running) -> Decision:
        decision = decide(
            self._log,
            window.plan,
            window.epoch,
            window.tasks,
            self._clock.now(),
            self._durable,
            self._states.left,
            self._before,
            self._reject_limits,
            self._replacing,
            self._halves,
            self._datasets.app_id,
        )
        # Nothing follows from a decision that was made after a takeover.
        self._lock.check(max_age=self._lock.lease / LOOKS)
        return decision

    def _again(self, failed: Running, reason: str, dead: tuple[str, ...] = ()) -> None:
        """Run a window again from its plan, and the later ones with it: a failed window discards them."""
        self.retries.check_stop()
        if failed.attempt >= self._settings.window_attempts:
            spots = places(self._log, failed.tasks, dead)
            raise WindowFailed(
                failed.plan.window, failed.attempt, reason, tuple(map(str, spots)), spots[0].look() if spots else None
            )
        delay = self.retries.delay_after(failed.attempt)
        self._events.send(WindowRetried(window=failed.plan.window, attempt=failed.attempt + 1, reason=reason, delay=delay))
        self._runner.cancel()
        self.retries.pause(delay)
        discarded = list(self._running)
        self._running.clear()
        for old in discarded:
            if old.future is None:
                self._running.append(old)
                continue
            with contextlib.suppress(Exception):
                old.future.result(timeout=30)
            attempt = old.attempt + 1 if old is failed else old.attempt
            again = f"{self._epoch}.{old.attempt + 1}" if old is failed else f"{old.epoch}+"
            tasks = tasks_of(self._plan, old.plan, self._options, again, again=True)
            self._running.append(self._start(Running(old.plan, tasks, None, again, attempt)))

    def _follow(self, decision: Decision, again: bool = False) -> None:
        followed = roll_forward(self._log, decision, self._halves, self._durable, again, self._datasets, self.retries.retry_step)
        for event in followed_events(decision.window, followed):
            self._events.send(event)
        self._unfollowed.discard(decision.window)
        ages = (window - self._settings.retain_windows for window in swept_after(self._run_folder, decision.window))
        self._drop([window for window in ages if window >= 0])
        self._maps.sweep(decision.window)
        self._events.send(WindowDone(window=decision.window))

    def _sweep(self, done: list[int]) -> None:
        """Remove what tasks that were cancelled or killed have left for windows that are done, and windows not to be kept."""
        done = [each for each in done if self._before and each <= self._before.window]  # an old listing has those before --fresh
        sweep_done(self._log, done, self._report, self._events.send)
        self._log.sweep_temporaries()
        self._datasets.sweep_snapshots(self._report.outputs)
        self._drop(done[: -self._settings.retain_windows - 1])

    def _drop(self, windows: Sequence[int]) -> None:
        """Remove the records of windows that are old, and before them the states that no later window begins with.

        One more than `retain_windows` are kept: the oldest that can run again begins with the state of the one before it.
        """
        decisions = (self._log.read_decision(window) for window in windows)
        sweep_replaced(self._log.unsynced, {each.window: each.partition_states for each in decisions if each is not None})
        self._log.drop(windows)


def run_through(make: Callable[[WindowLoop | None], WindowLoop], loop: WindowLoop) -> None:
    """Run a loop to its end. After a transient error, continue with the loop that `make` returns for it.

    A transient error outside the steps that are retried alone, as in listing an input, ends a loop: the state of an operator that
    has raised is unknown. The next loop starts with operators as the last plan left them, as another launch would.

    Raises what ends the run: WindowHeldUp when a window could not be planned as often as it may be tried.
    """
    attempt, at = 0, -1
    while True:
        try:
            loop.run()
            return
        except Exception as error:
            if not is_transient(error):
                raise
            window = loop.first_window()
            attempt, at = (attempt + 1 if window == at else 1), window
            delay = loop.retries.next_delay(window, "planning it", attempt, error)
        loop.retries.pause(delay)
        loop = make(loop)
