"""The table of all metrics: names, units and labels by the conventions of Prometheus, and their values."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Literal

import attrs

from dagflow.errors.shown import without_secrets
from dagflow.runtime.events import OperatorProgress
from dagflow.runtime.run_view import RunView

Samples = dict[tuple[str, ...], float]
"""The figures of a metric, by the values of its labels."""


@attrs.frozen
class Metric:
    """A metric of a run. All metrics have the label `application` besides their own `labels`.

    `value`: its figure, or those by the values of its labels; None: absent. `while_running`: it says how things are now, and is
    absent once the launch has ended.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    value: Callable[[RunView], float | Samples | None] = lambda run: None
    labels: tuple[str, ...] = ()
    while_running: bool = False

    def samples(self, run: RunView) -> Samples:
        """Return the figures of a run; none of a metric that is absent."""
        value = None if self.while_running and run.ended is not None else self.value(run)
        samples = value if isinstance(value, dict) else {} if value is None else {(): value}
        return {labels: float(figure) for labels, figure in samples.items()}


def _status(run: RunView) -> Samples:
    now = run.ended.status if run.ended is not None else "running" if run.started is not None else None
    return {} if now is None else {(status,): status == now for status in STATUSES}


def _committed(name: str) -> Callable[[RunView], Samples]:
    """Return the figures of operators in decided windows. Those of operators at work begin with 0."""
    return lambda run: {(each,): own[name] for each, own in run.operators.items() if name in own}


def _uncommitted(name: str) -> Callable[[RunView], Samples]:
    """Return the figures of operators in windows that are not decided, as far as the newest figures of all are known."""

    def value(run: RunView) -> Samples:
        newest = run.progress.operators if run.progress is not None else {}
        return {
            (each,): max(0.0, newest.get(each, {}).get(name, 0.0) - own.get(name, 0.0)) for each, own in run.operators.items()
        }

    return value


def _verdicts(run: RunView) -> Samples:
    limits = run.limits.items()
    return {(e.operator, e.name, s): n for key, e in limits for s, n in run.report.expectations[key].windows.items()}


def _now(value: Callable[[OperatorProgress], float | Samples | None]) -> Callable[[RunView], float | Samples | None]:
    """Return what the newest figures of operators say; nothing before the first ones."""
    return lambda run: None if run.progress is None else value(run.progress)


BUCKETS = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
"""The upper bounds of the histogram of windows, in seconds: windows last from a tenth of a second to hours."""

STATUSES = ("running", "done", "failed", "interrupted")
"""The states of a launch, as `run_ended` names them."""

PURPOSES = ("read", "compute", "write", "wait")
"""The purposes of a task's time, as `task_ended` names them."""

METRICS = (
    Metric(
        "dagflow_run_info",
        "gauge",
        "The launch; always 1.",
        value=lambda run: (
            {(run.started.runner, without_secrets(run.started.run_folder), version("dagflow")): 1}
            if run.started is not None
            else None
        ),
        labels=("runner", "run_folder", "version"),
    ),
    Metric(
        "dagflow_run_status",
        "gauge",
        "1 for the present state of the launch, 0 for the others.",
        value=_status,
        labels=("status",),
    ),
    Metric(
        "dagflow_run_start_timestamp_seconds",
        "gauge",
        "The time at which the launch could take work.",
        value=lambda run: None if run.started is None else run.started.at,
    ),
    Metric(
        "dagflow_run_end_timestamp_seconds",
        "gauge",
        "The time at which the launch ended; absent while it runs.",
        value=lambda run: None if run.ended is None else run.ended.at,
    ),
    Metric(
        "dagflow_slots",
        "gauge",
        "Tasks that can run at once.",
        value=lambda run: None if run.started is None else run.started.slots,
        while_running=True,
    ),
    Metric(
        "dagflow_windows_total",
        "counter",
        "Windows that reached a state: planned, decided (committed) or done.",
        value=lambda run: {("planned",): run.planned, ("decided",): run.decided, ("done",): run.done},
        labels=("status",),
    ),
    Metric(
        "dagflow_windows_in_flight",
        "gauge",
        "Windows that are planned and not decided.",
        value=lambda run: len(run.open),
        while_running=True,
    ),
    Metric(
        "dagflow_last_window_decided",
        "gauge",
        "The number of the last window that was decided; absent before.",
        value=lambda run: None if run.last_decided is None else run.last_decided.window,
    ),
    Metric(
        "dagflow_last_window_decided_timestamp_seconds",
        "gauge",
        "The time of the last decision; absent before.",
        value=lambda run: None if run.last_decided is None else run.last_decided.decided,
    ),
    Metric("dagflow_window_duration_seconds", "histogram", "The time of windows from plan to decision."),
    Metric(
        "dagflow_planned_items_total",
        "counter",
        "Work items in the plans of windows, each window once.",
        value=lambda run: run.items,
    ),
    Metric(
        "dagflow_planned_bytes_total",
        "counter",
        "Bytes of input in the plans of windows, each window once.",
        value=lambda run: run.bytes,
    ),
    Metric("dagflow_written_files_total", "counter", "Files of decided windows.", value=lambda run: run.files),
    Metric("dagflow_written_records_total", "counter", "Records in the files of decided windows.", value=lambda run: run.records),
    Metric("dagflow_written_bytes_total", "counter", "Bytes in the files of decided windows.", value=lambda run: run.written),
    Metric("dagflow_tasks_total", "counter", "Tasks of decided windows.", value=lambda run: run.report.tasks),
    Metric(
        "dagflow_tasks_running", "gauge", "Tasks that are at work.", value=_now(lambda newest: newest.running), while_running=True
    ),
    Metric(
        "dagflow_tasks_pending",
        "gauge",
        "Tasks of planned windows that have not begun.",
        value=_now(lambda newest: newest.pending),
        while_running=True,
    ),
    Metric("dagflow_task_seconds_total", "counter", "The time of these tasks, summed.", value=lambda run: run.task_seconds),
    Metric(
        "dagflow_task_purpose_seconds_total",
        "counter",
        "This time by its purpose: read, compute, write, wait.",
        value=lambda run: {(purpose,): getattr(run.report.times, purpose) for purpose in PURPOSES},
        labels=("purpose",),
    ),
    Metric(
        "dagflow_task_read_records_total",
        "counter",
        "Records that the readers of these tasks read and passed on.",
        value=lambda run: run.task_records,
    ),
    Metric(
        "dagflow_discarded_seconds_total",
        "counter",
        "The time of windows from the start of their tasks to a failure that discarded them. Their tasks count nowhere else.",
        value=lambda run: run.discarded,
    ),
    Metric(
        "dagflow_operator_input_records_total",
        "counter",
        "Records that went into an operator, in decided windows.",
        value=_committed("records_in"),
        labels=("operator",),
    ),
    Metric(
        "dagflow_operator_output_records_total",
        "counter",
        "Records that an operator emitted, in decided windows.",
        value=_committed("records_out"),
        labels=("operator",),
    ),
    Metric(
        "dagflow_operator_bytes_total",
        "counter",
        "Bytes that an operator read, in decided windows; absent where it does not count them.",
        value=_committed("bytes"),
        labels=("operator",),
    ),
    Metric(
        "dagflow_operator_errors_total",
        "counter",
        "Records that an operator rejected (skipped or routed), in decided windows.",
        value=_committed("errors"),
        labels=("operator",),
    ),
    Metric(
        "dagflow_operator_seconds_total",
        "counter",
        "The time in an operator itself, summed over tasks, in decided windows.",
        value=_committed("seconds"),
        labels=("operator",),
    ),
    Metric(
        "dagflow_operator_uncommitted_input_records",
        "gauge",
        "Records that went into an operator so far, in windows that are not decided.",
        value=_uncommitted("records_in"),
        labels=("operator",),
        while_running=True,
    ),
    Metric(
        "dagflow_operator_uncommitted_output_records",
        "gauge",
        "Records that an operator emitted so far, in windows that are not decided.",
        value=_uncommitted("records_out"),
        labels=("operator",),
        while_running=True,
    ),
    Metric(
        "dagflow_operator_tasks",
        "gauge",
        "Tasks in which an operator works now.",
        value=_now(lambda newest: {(name,): own.get("partitions", 0) for name, own in newest.operators.items()}),
        labels=("operator",),
        while_running=True,
    ),
    Metric(
        "dagflow_operator_waiting",
        "gauge",
        "1 while an operator waits; the log says for what.",
        value=_now(lambda newest: {(name,): name in newest.waiting or "" in newest.waiting for name in newest.operators}),
        labels=("operator",),
        while_running=True,
    ),
    Metric(
        "dagflow_readers",
        "gauge",
        "Readers (partitions) of an operator.",
        value=lambda run: {(name,): own.now for name, own in run.readers.items()},
        labels=("operator",),
        while_running=True,
    ),
    Metric(
        "dagflow_backlog_items",
        "gauge",
        "Records or work items that are known and not begun.",
        value=_now(lambda newest: newest.backlog),
        while_running=True,
    ),
    Metric(
        "dagflow_backlog_bytes",
        "gauge",
        "Bytes of input that are known and not begun.",
        value=_now(lambda newest: newest.backlog_bytes),
        while_running=True,
    ),
    Metric(
        "dagflow_remaining_seconds",
        "gauge",
        "The estimated time to the end of bounded input; absent where it is unknown.",
        value=_now(lambda newest: newest.remaining),
        while_running=True,
    ),
    Metric(
        "dagflow_retries_total",
        "counter",
        "Retries after transient failures: window: attempts of windows after the first; "
        "task: tasks that the runner began again within an attempt; step: repeated steps of the driver.",
        value=lambda run: {(kind,): run.retried[f"{kind}_retried"] for kind in ("task", "window", "step")},
        labels=("kind",),
    ),
    Metric(
        "dagflow_steals_total",
        "counter",
        "Times that a task took work from another one.",
        value=lambda run: run.report.rebalanced,
    ),
    Metric(
        "dagflow_stolen_bytes_total",
        "counter",
        "Bytes of input that tasks took from other ones.",
        value=lambda run: run.report.rebalanced_bytes,
    ),
    Metric(
        "dagflow_expectations_total",
        "counter",
        "Checks of expectations, by their outcome.",
        value=_verdicts,
        labels=("operator", "name", "status"),
    ),
    Metric(
        "dagflow_ledger_entries_total",
        "counter",
        "Entries that were appended to the ledger of a dataset.",
        value=lambda run: {(without_secrets(dataset),): n for dataset, n in run.entries.items()},
        labels=("dataset",),
    ),
    Metric(
        "dagflow_ledger_rows_total",
        "counter",
        "Rows that these entries add.",
        value=lambda run: {(without_secrets(dataset),): n for dataset, n in run.rows.items()},
        labels=("dataset",),
    ),
    Metric("dagflow_warnings_total", "counter", "Warnings.", value=lambda run: len(run.report.warnings)),
)
