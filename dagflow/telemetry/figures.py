"""The figures of a run by the names of its metrics, counted from its events."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from importlib.metadata import version

import attrs

from dagflow.errors.shown import without_secrets
from dagflow.runtime.events import (
    EntryAppended,
    Event,
    ExpectationChecked,
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
    WindowRetried,
    WindowStarted,
)
from dagflow.telemetry.metrics import BUCKETS, METRICS, PURPOSES, STATUSES, Metric

_RETRIES = {TaskRetried: "task", WindowRetried: "window", StepRetried: "step"}
_OF_OPERATORS = {
    "records_in": "dagflow_operator_input_records_total",
    "records_out": "dagflow_operator_output_records_total",
    "bytes": "dagflow_operator_bytes_total",
    "errors": "dagflow_operator_errors_total",
    "seconds": "dagflow_operator_seconds_total",
}

_UNCOMMITTED = {
    "records_in": "dagflow_operator_uncommitted_input_records",
    "records_out": "dagflow_operator_uncommitted_output_records",
}

Samples = dict[tuple[str, ...], float]


@attrs.define
class UncommittedWindow:
    """A window that is planned and not decided.

    Attributes:
        planned: the time at which this launch planned it, or found its plan.
        started: the time at which the tasks of the present attempt began; None before.
        tasks: the tasks of the present attempt that have ended.
    """

    planned: float
    started: float | None = None
    tasks: list[TaskEnded] = attrs.field(factory=list)


class RunFigures:
    """A subscriber of a run's events that counts. Other threads may read the figures at any time.

    Work is counted when its window is decided. A window that runs again, or that fails, adds nothing but its lost time.

    >>> from dagflow.runtime.events import WindowPlanned
    >>> figures = RunFigures()
    >>> figures(WindowPlanned(window=0, items=2, bytes=100, tasks=2))
    >>> figures.value("dagflow_planned_bytes_total")
    100.0
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._samples: dict[str, Samples] = {metric.name: {} for metric in METRICS if metric.kind != "histogram"}
        self._open: dict[int, UncommittedWindow] = {}
        self._durations = [0] * (len(BUCKETS) + 1)
        self._duration = 0.0
        self._duration_calls: list[Callable[[float], None]] = []
        for metric in METRICS:
            if metric.kind == "counter" and not metric.labels:
                self._add(metric.name, 0)
        for status in ("planned", "decided", "done"):
            self._add("dagflow_windows_total", 0, status)
        for kind in _RETRIES.values():
            self._add("dagflow_retries_total", 0, kind)

    def __call__(self, event: Event) -> None:
        """Count an event."""
        with self._lock:
            self._take(event)

    def value(self, name: str, *labels: str) -> float:
        """Return one figure; 0.0 for one that is not there."""
        with self._lock:
            return self._samples[name].get(labels, 0.0)

    def of(self, name: str) -> Samples:
        """Return a copy of the figures of one metric."""
        with self._lock:
            return dict(self._samples[name])

    def call_with_durations(self, call: Callable[[float], None]) -> None:
        """Call a function with the seconds of each window that is decided."""
        self._duration_calls.append(call)

    def samples(self) -> Iterator[tuple[Metric, Samples]]:
        """Yield each metric that has figures, by the values of its labels. Histograms are in `durations`."""
        with self._lock:
            copies = {name: dict(samples) for name, samples in self._samples.items() if samples}
        yield from ((metric, copies[metric.name]) for metric in METRICS if metric.name in copies)

    def durations(self) -> tuple[list[int], float]:
        """Return how many windows lasted at most as long as each bound of `BUCKETS`, then how many in all; and their time."""
        with self._lock:
            counts, total = [], 0
            for count in self._durations:
                total += count
                counts.append(total)
            return counts, self._duration

    def _add(self, name: str, more: float, *labels: str) -> None:
        samples = self._samples[name]
        samples[labels] = samples.get(labels, 0.0) + more

    def _set(self, name: str, value: float, *labels: str) -> None:
        self._samples[name][labels] = float(value)

    def _take(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._started(event)
        elif isinstance(event, WindowPlanned | WindowDecided | WindowDone):
            self._window(event)
        elif isinstance(event, WindowStarted) and event.window in self._open:
            self._open[event.window].started = event.at
        elif isinstance(event, TaskEnded) and event.window in self._open:
            self._open[event.window].tasks.append(event)
        elif isinstance(event, ReadersChanged):
            self._set("dagflow_readers", event.readers, event.operator)
        elif isinstance(event, TaskRetried | WindowRetried | StepRetried):
            self._add("dagflow_retries_total", 1, _RETRIES[type(event)])
            if isinstance(event, WindowRetried):  # the later windows start again with it
                self._discard(*self._open, at=event.at)
        elif isinstance(event, Stolen):
            self._add("dagflow_steals_total", 1)
            self._add("dagflow_stolen_bytes_total", event.bytes)
        elif isinstance(event, EntryAppended):
            dataset = without_secrets(event.dataset)
            self._add("dagflow_ledger_entries_total", 1, dataset)
            self._add("dagflow_ledger_rows_total", event.rows, dataset)
        elif isinstance(event, Warned):
            self._add("dagflow_warnings_total", 1)
        elif isinstance(event, RunEnded):
            self._ended(event)
        elif isinstance(event, OperatorProgress):
            self._progress(event)
        elif isinstance(event, ExpectationChecked):
            self._add("dagflow_expectations_total", 1, event.operator, event.name, event.status)

    def _started(self, event: RunStarted) -> None:
        self._status("running")
        self._set("dagflow_run_info", 1, event.runner, without_secrets(event.run_folder), version("dagflow"))
        self._set("dagflow_run_start_timestamp_seconds", event.at)
        self._set("dagflow_slots", event.slots)
        self._set("dagflow_windows_in_flight", 0)

    def _status(self, now: str) -> None:
        for status in STATUSES:
            self._set("dagflow_run_status", status == now, status)

    def _ended(self, event: RunEnded) -> None:
        self._discard(*self._open, at=event.at)
        self._open.clear()
        for metric in METRICS:
            if metric.while_running:
                self._samples[metric.name].clear()
        self._status(event.status)
        self._set("dagflow_run_end_timestamp_seconds", event.at)

    def _window(self, event: WindowPlanned | WindowDecided | WindowDone) -> None:
        if isinstance(event, WindowPlanned) and event.window in self._open:  # the driver began anew, and found the plan
            self._discard(event.window, at=event.at)
            return
        self._add("dagflow_windows_total", 1, event.kind.removeprefix("window_"))
        if isinstance(event, WindowPlanned):
            self._open[event.window] = UncommittedWindow(event.at)
            self._add("dagflow_planned_items_total", event.items)
            self._add("dagflow_planned_bytes_total", event.bytes)
        elif isinstance(event, WindowDecided):
            self._decided(event, self._open.pop(event.window, UncommittedWindow(event.at)))
        self._set("dagflow_windows_in_flight", len(self._open))

    def _decided(self, event: WindowDecided, window: UncommittedWindow) -> None:
        self._set("dagflow_last_window_decided", event.window)
        self._set("dagflow_last_window_decided_timestamp_seconds", event.at)
        self._add("dagflow_written_files_total", event.files)
        self._add("dagflow_written_records_total", event.records)
        self._add("dagflow_written_bytes_total", event.bytes)
        for task in window.tasks:
            self._add("dagflow_tasks_total", 1)
            self._add("dagflow_task_seconds_total", max(0.0, task.ended - task.started))
            self._add("dagflow_task_read_records_total", task.records)
            for purpose in PURPOSES:
                self._add("dagflow_task_purpose_seconds_total", getattr(task, purpose), purpose)
        for operator, figures in event.operators.items():
            for name, metric in _OF_OPERATORS.items():
                if name in figures:
                    self._add(metric, figures[name], operator)
            for name, metric in _UNCOMMITTED.items():
                left = self._samples[metric].get((operator,), 0.0) - figures.get(name, 0.0)
                self._set(metric, max(0.0, left), operator)
        took = max(0.0, event.at - window.planned)
        self._durations[bisect_left(BUCKETS, took)] += 1
        self._duration += took
        for call in self._duration_calls:
            call(took)

    def _discard(self, *windows: int, at: float) -> None:
        """Drop what an attempt of these windows has done, but for its time."""
        for number in windows:
            old = self._open[number]
            if old.started is not None:
                self._add("dagflow_discarded_seconds_total", max(0.0, at - old.started))
            self._open[number] = UncommittedWindow(old.planned)

    def _progress(self, event: OperatorProgress) -> None:
        if self._samples["dagflow_run_end_timestamp_seconds"]:
            return  # of a thread that was late
        for operator, figures in event.operators.items():
            for name, metric in _OF_OPERATORS.items():
                if name in figures:
                    self._add(metric, 0, operator)
            for name, metric in _UNCOMMITTED.items():
                committed = self._samples[_OF_OPERATORS[name]].get((operator,), 0.0)
                self._set(metric, max(0.0, figures.get(name, 0.0) - committed), operator)
            self._set("dagflow_operator_tasks", figures.get("partitions", 0), operator)
            self._set("dagflow_operator_waiting", operator in event.waiting or "" in event.waiting, operator)
        self._set("dagflow_tasks_running", event.running)
        self._set("dagflow_tasks_pending", event.pending)
        self._set("dagflow_backlog_items", event.backlog)
        self._set("dagflow_backlog_bytes", event.backlog_bytes)
        self._samples["dagflow_remaining_seconds"].clear()
        if event.remaining is not None:
            self._set("dagflow_remaining_seconds", event.remaining)
