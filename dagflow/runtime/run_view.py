"""The events of a launch, folded once: all that progress, report, page, metrics and timings show of it."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict, deque
from collections.abc import Sequence

import attrs

from dagflow.ledger.events import EntryRef
from dagflow.runtime.events import (
    EntryAppended,
    Event,
    ExpectationChecked,
    LeaseAwaited,
    OperatorProgress,
    ReadersChanged,
    RunEnded,
    RunStarted,
    StepRetried,
    Stolen,
    TaskEnded,
    TaskRetried,
    Warned,
    WindowDecided,
    WindowDone,
    WindowPlanned,
    WindowProgress,
    WindowRetried,
    WindowStarted,
    retry_text,
)
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.runtime.run_report import UNCOMMITTED, ExpectationFigures, ReaderFigures, RunReport, SinkFigures, Skew
from dagflow.runtime.stage.outcome import TimesByPurpose

RECENT = 6
"""The newest figures of operators, about one a second, that rates are taken from."""
MAX_TEXTS = 100
MAX_POINTS = 400
DETAILED = 48
"""The tasks of this many of the newest windows are kept one by one, and of half as many of the slowest."""

EventFigures = dict[str, dict[str, float]]
"""The figures of operators by name, as events hold them."""


@attrs.define
class WindowView:
    """The figures of a window, as its events state them. Times are seconds since the epoch.

    Attributes:
        planned: when its launch planned it, or first found its plan; `started`: when the tasks of the present attempt began.
        tasks: their number by the plan; `times`: of those that have ended, by purpose.
        operators: the sums over tasks that have ended; empty once the window is decided.
        fraction: the part of its work that readers have consumed, as far as it is known.
        written: the bytes of its files.
    """

    window: int
    planned: float | None = None
    started: float | None = None
    decided: float | None = None
    done: float | None = None
    items: int = 0
    bytes: int = 0
    tasks: int = 0
    files: int = 0
    written: int = 0
    records: int = 0
    times: TimesByPurpose = attrs.field(factory=TimesByPurpose)
    operators: EventFigures = attrs.field(factory=dict)
    fraction: float | None = None
    retries: int = 0
    steals: int = 0
    launch: str = ""

    @property
    def seconds(self) -> float:
        """The time from its plan to its decision."""
        begun = self.planned if self.planned is not None else self.started
        return 0.0 if self.decided is None else _since(begun, self.decided)


@attrs.define
class RunView:
    """The state of a launch, and its results so far. A subscriber of its events.

    A window counts when it is decided: with the tasks of its last attempt. What earlier attempts did is dropped, but for their
    time. A window is forgotten once it is done, unless `keeps_windows`: then tasks are kept of some windows.

    Attributes:
        report: the report of the launch, kept up to date but for what decisions hold: `RunReport.count` adds these.
        began: when the launch began, for the timings of the report.
        awaited: the launch that this one waits for, or has waited for. `last`: the time of the newest event.
        windows: by number, those that are not forgotten; `tasks`: of each, the tasks of the last attempt that have ended.
        operators: the figures of operators in decided windows, summed; 0 for those that are at work.
        recent: the newest figures of operators; `curve`: time, backlog and its bytes, over the whole launch.
        readers: the numbers of readers by operator, where they have changed; `changes`: the newest changes.
        limits: the last verdict on each limit of rejected records, by the key that the report has for it.
        retried: how many tasks, windows and steps were retried, by kind of event.
        entries, rows: the new entries of ledgers and their rows, by dataset.
        planned, items, bytes: windows that were planned, and their work, each window once. `decided`, `done`: windows.
        read: the bytes of input of decided windows. `files`, `written`, `records`: what these wrote.
        task_seconds, task_records: the time and the records of their tasks. `last_decided`: the last of them.
        discarded: seconds of attempts that failed.
        roll_forward: the seconds between decisions and what follows from them. `first_task`: when the first task began.
    """

    report: RunReport = attrs.field(factory=RunReport)
    launch: str = ""
    keeps_windows: bool = False
    began: float | None = None
    awaited: LeaseAwaited | None = None
    started: RunStarted | None = None
    ended: RunEnded | None = None
    last: float = 0.0
    windows: dict[int, WindowView] = attrs.field(factory=dict)
    tasks: dict[int, list[TaskEnded]] = attrs.field(factory=dict)
    operators: EventFigures = attrs.field(factory=dict)
    recent: deque[OperatorProgress] = attrs.field(factory=lambda: deque(maxlen=RECENT))
    curve: list[tuple[float, int, int]] = attrs.field(factory=list)
    readers: dict[str, ReaderFigures] = attrs.field(factory=dict)
    changes: deque[ReadersChanged] = attrs.field(factory=lambda: deque(maxlen=2 * MAX_POINTS))
    steals: deque[Stolen] = attrs.field(factory=lambda: deque(maxlen=MAX_TEXTS))
    warnings: deque[Warned] = attrs.field(factory=lambda: deque(maxlen=MAX_TEXTS))
    retries: deque[TaskRetried | WindowRetried | StepRetried] = attrs.field(factory=lambda: deque(maxlen=MAX_TEXTS))
    limits: dict[str, ExpectationChecked] = attrs.field(factory=dict)
    retried: Counter[str] = attrs.field(factory=Counter)
    entries: Counter[str] = attrs.field(factory=Counter)
    rows: Counter[str] = attrs.field(factory=Counter)
    planned: int = 0
    items: int = 0
    bytes: int = 0
    decided: int = 0
    done: int = 0
    read: int = 0
    files: int = 0
    written: int = 0
    records: int = 0
    task_seconds: float = 0.0
    task_records: int = 0
    last_decided: WindowView | None = None
    discarded: float = 0.0
    roll_forward: float = 0.0
    first_task: float | None = None
    _every: int = 1
    _seen: int = 0

    def __call__(self, event: Event) -> None:
        """Take an event."""
        self.last = max(self.last, event.at)
        report = self.report
        match event:
            case LeaseAwaited():
                self.awaited = event
            case RunStarted():
                self.started = event
                report.application, report.runner, report.ui = event.application, event.runner, event.ui
                report.sinks = report.sinks or {name: SinkFigures(destination) for name, destination in event.sinks.items()}
            case WindowPlanned():
                self._plan(event)
            case WindowStarted():
                self._window(event.window).started = event.at
            case WindowProgress():
                self._window(event.window).fraction = event.fraction_consumed
            case OperatorProgress():
                self._progress(event)
            case TaskEnded():
                self._task(event)
            case WindowDecided():
                self._decide(event)
            case WindowDone():
                self._finish(event)
            case ReadersChanged():
                self._change(event)
            case Stolen():
                self._window(event.window).steals += 1
                self.steals.append(event)
                report.rebalanced += 1
                report.rebalanced_bytes += event.bytes
            case TaskRetried() | WindowRetried() | StepRetried():
                self._retry(event)
            case ExpectationChecked():
                self._check(event)
            case EntryAppended():
                self.entries[event.dataset] += 1
                self.rows[event.dataset] += event.rows
                report.ledgers[event.dataset] = str(EntryRef(event.entry, event.hash))
            case Warned():
                self.warnings.append(event)
                report.warnings.append(event.text)
            case RunEnded():
                self._end(event)

    @property
    def open(self) -> dict[int, WindowView]:
        """The windows that are planned and not decided."""
        windows = tuple(self.windows.values())  # a display reads them in another thread
        begun = (each for each in windows if each.planned is not None or each.started is not None)
        return {each.window: each for each in begun if each.decided is None}

    @property
    def progress(self) -> OperatorProgress | None:
        """The newest figures of operators; None before the first ones."""
        return self.recent[-1] if self.recent else None

    def figures(self) -> EventFigures:
        """Return the figures of operators in this launch, windows that are not decided included.

        Those that tasks and windows have ended with count where the newest `operator_progress` is older, or lacks short tasks.
        """
        result = {name: dict(own) for name, own in self.operators.items()}
        for window in self.windows.values():
            _add(result, window.operators)
        for name, own in () if self.progress is None else self.progress.operators.items():
            ended = result.get(name, {})
            result[name] = {**own, **{key: max(value, own.get(key, 0)) for key, value in ended.items()}}
        return result

    def show_uncommitted(self) -> None:
        """Show the figures of operators in the report of a run that ended without a committed window, if a task has begun."""
        operators = {name: OperatorFigures.of_event(own) for name, own in self.figures().items()}
        if not self.report.windows and any(own.records_in for own in operators.values()):
            self.report.operators = operators
            self.report.warnings.insert(0, UNCOMMITTED)

    def detailed(self) -> set[int]:
        """Return the windows whose tasks are kept one by one: the newest and the slowest ones."""
        slowest = sorted(self.tasks, key=lambda number: -self.windows[number].seconds)[: DETAILED // 2]
        return {*sorted(self.tasks)[-DETAILED:], *slowest}

    def _window(self, number: int) -> WindowView:
        if number not in self.windows:
            self.windows[number] = WindowView(number, launch=self.launch)
        return self.windows[number]

    def _plan(self, event: WindowPlanned) -> None:
        window = self._window(event.window)
        if window.planned is not None:  # the driver began anew, and found the plan
            self._discard(window, event.at)
        else:
            window.planned = event.at
            self.planned += 1
            self.items += event.items
            self.bytes += event.bytes
        window.items, window.bytes, window.tasks = event.items, event.bytes, event.tasks

    def _discard(self, window: WindowView, at: float) -> None:
        """Drop what the present attempt of a window has done, but for its time."""
        self.discarded += _since(window.started, at)
        window.started = window.fraction = None
        window.times, window.operators = TimesByPurpose(), {}
        self.tasks.pop(window.window, None)

    def _progress(self, event: OperatorProgress) -> None:
        self.recent.append(event)
        _add(self.operators, {name: dict.fromkeys(own, 0) for name, own in event.operators.items()})
        self._seen += 1
        if self._seen % self._every == 0:
            self.curve.append((event.at, event.backlog, event.backlog_bytes))
            if len(self.curve) > MAX_POINTS:
                self.curve = self.curve[::2]
                self._every *= 2

    def _task(self, event: TaskEnded) -> None:
        window = self._window(event.window)
        window.times = window.times.plus(TimesByPurpose(event.read, event.compute, event.write, event.wait))
        _add(window.operators, event.operators)
        self.tasks.setdefault(event.window, []).append(attrs.evolve(event, operators={}))
        self.first_task = min(event.started, self.first_task or event.started)

    def _decide(self, event: WindowDecided) -> None:
        window = self.last_decided = self._window(event.window)
        window.decided = event.at
        window.files, window.written, window.records = event.files, event.bytes, event.records
        _add(self.operators, event.operators or window.operators)
        window.operators, window.fraction = {}, None
        self.decided += 1
        self.read += window.bytes
        self.files += event.files
        self.written += event.bytes
        self.records += event.records
        self._count_tasks(window, self.tasks.get(event.window, ()))
        if not self.keeps_windows:
            self.tasks.pop(event.window, None)
        elif len(self.tasks) > 4 * DETAILED:
            kept = self.detailed()
            self.tasks = {number: tasks for number, tasks in self.tasks.items() if number in kept}

    def _count_tasks(self, window: WindowView, tasks: Sequence[TaskEnded]) -> None:
        report = self.report
        report.tasks += len(tasks)
        report.times = report.times.plus(window.times)
        by_stage: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for task in tasks:
            self.task_seconds += max(0.0, task.ended - task.started)
            self.task_records += task.records
            by_stage[task.stage].append((task.ended - task.started, task.task))
        for ended in by_stage.values():
            median, (seconds, name) = statistics.median(each for each, _ in ended), max(ended)
            skew = Skew(window.window, name, round(seconds, 4), round(median, 4), len(ended))
            if len(ended) > 1 and (report.skew is None or skew.excess > report.skew.excess):
                report.skew = skew

    def _finish(self, event: WindowDone) -> None:
        self.done += 1
        window = self.windows.get(event.window)  # None: an earlier launch has decided it
        if window is not None:
            window.done = event.at
            self.roll_forward += _since(window.decided, event.at)
            if not self.keeps_windows:
                del self.windows[event.window]

    def _change(self, event: ReadersChanged) -> None:
        self.changes.append(event)
        old = self.readers.get(event.operator)
        numbers = (event.before, event.readers, *((old.lowest, old.highest) if old is not None else ()))
        lowest, highest, changes = min(numbers), max(numbers), 1 + (old.changes if old is not None else 0)
        self.readers[event.operator] = ReaderFigures(lowest, event.readers, highest, lowest, highest, changes, event.counters)

    def _retry(self, event: TaskRetried | WindowRetried | StepRetried) -> None:
        self._window(event.window).retries += 1
        self.retries.append(event)
        self.retried[event.kind] += 1
        self.report.retries.append(retry_text(event) or "")
        if isinstance(event, WindowRetried):  # the later windows start again with it
            for window in self.open.values():
                self._discard(window, event.at)

    def _check(self, event: ExpectationChecked) -> None:
        key = f"{event.operator}: {event.name}"
        self.limits[key] = event
        figures = self.report.expectations.setdefault(key, ExpectationFigures())
        figures.records += event.records
        figures.rejected += event.rejected
        figures.windows[event.status] = figures.windows.get(event.status, 0) + 1

    def _end(self, event: RunEnded) -> None:
        self.ended = event
        self.discarded += sum(_since(window.started, event.at) for window in self.open.values())
        report = self.report
        report.status, report.seconds, report.rebalancing = event.status, event.seconds, event.rebalancing
        report.error, report.error_code = event.error, event.error_code
        if self.began is not None:
            started = event.at if self.started is None else self.started.at
            # by the clock of the task's machine, which may be another one
            first = min(max(started, self.first_task or event.at), event.at)
            windows = max(0.0, event.at - first - self.roll_forward)
            phases = {"session": started - self.began, "first_task": first - started, "windows": windows}
            report.timings = {name: round(value, 3) for name, value in {**phases, "roll_forward": self.roll_forward}.items()}


def _since(before: float | None, now: float) -> float:
    return 0.0 if before is None else max(0.0, now - before)


def _add(total: EventFigures, operators: EventFigures) -> None:
    for name, figures in operators.items():
        own = total.setdefault(name, {})
        own.update({key: own.get(key, 0) + value for key, value in figures.items()})
