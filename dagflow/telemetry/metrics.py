"""The table of all metrics: names, units and labels by the conventions of Prometheus."""

from __future__ import annotations

from typing import Literal

import attrs


@attrs.frozen
class Metric:
    """A metric of a run. All metrics have the label `application` besides their own `labels`.

    `while_running`: it says how things are now, and is absent once the launch has ended.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    while_running: bool = False


BUCKETS = (0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
"""The upper bounds of the histogram of windows, in seconds: windows last from a tenth of a second to hours."""

STATUSES = ("running", "done", "failed", "interrupted")
"""The states of a launch, as `run_ended` names them."""

PURPOSES = ("read", "compute", "write", "wait")
"""The purposes of a task's time, as `task_ended` names them."""

METRICS = (
    Metric("dagflow_run_info", "gauge", "The launch; always 1.", ("runner", "run_folder", "version")),
    Metric("dagflow_run_status", "gauge", "1 for the present state of the launch, 0 for the others.", ("status",)),
    Metric("dagflow_run_start_timestamp_seconds", "gauge", "The time at which the launch could take work."),
    Metric("dagflow_run_end_timestamp_seconds", "gauge", "The time at which the launch ended; absent while it runs."),
    Metric("dagflow_slots", "gauge", "Tasks that can run at once.", while_running=True),
    Metric(
        "dagflow_windows_total", "counter", "Windows that reached a state: planned, decided (committed) or done.", ("status",)
    ),
    Metric("dagflow_windows_in_flight", "gauge", "Windows that are planned and not decided.", while_running=True),
    Metric("dagflow_last_window_decided", "gauge", "The number of the last window that was decided; absent before."),
    Metric("dagflow_last_window_decided_timestamp_seconds", "gauge", "The time of the last decision; absent before."),
    Metric("dagflow_window_duration_seconds", "histogram", "The time of windows from plan to decision."),
    Metric("dagflow_planned_items_total", "counter", "Work items in the plans of windows, each window once."),
    Metric("dagflow_planned_bytes_total", "counter", "Bytes of input in the plans of windows, each window once."),
    Metric("dagflow_written_files_total", "counter", "Files of decided windows."),
    Metric("dagflow_written_records_total", "counter", "Records in the files of decided windows."),
    Metric("dagflow_written_bytes_total", "counter", "Bytes in the files of decided windows."),
    Metric("dagflow_tasks_total", "counter", "Tasks of decided windows."),
    Metric("dagflow_tasks_running", "gauge", "Tasks that are at work.", while_running=True),
    Metric("dagflow_tasks_pending", "gauge", "Tasks of planned windows that have not begun.", while_running=True),
    Metric("dagflow_task_seconds_total", "counter", "The time of these tasks, summed."),
    Metric(
        "dagflow_task_purpose_seconds_total", "counter", "This time by its purpose: read, compute, write, wait.", ("purpose",)
    ),
    Metric("dagflow_task_read_records_total", "counter", "Records that the readers of these tasks read and passed on."),
    Metric(
        "dagflow_discarded_seconds_total",
        "counter",
        "The time of windows from the start of their tasks to a failure that discarded them. Their tasks count nowhere else.",
    ),
    Metric(
        "dagflow_operator_input_records_total",
        "counter",
        "Records that went into an operator, in decided windows.",
        ("operator",),
    ),
    Metric(
        "dagflow_operator_output_records_total", "counter", "Records that an operator emitted, in decided windows.", ("operator",)
    ),
    Metric(
        "dagflow_operator_bytes_total",
        "counter",
        "Bytes that an operator read, in decided windows; absent where it does not count them.",
        ("operator",),
    ),
    Metric(
        "dagflow_operator_errors_total",
        "counter",
        "Records that an operator rejected (skipped or routed), in decided windows.",
        ("operator",),
    ),
    Metric(
        "dagflow_operator_seconds_total",
        "counter",
        "The time in an operator itself, summed over tasks, in decided windows.",
        ("operator",),
    ),
    Metric(
        "dagflow_operator_uncommitted_input_records",
        "gauge",
        "Records that went into an operator so far, in windows that are not decided.",
        ("operator",),
        while_running=True,
    ),
    Metric(
        "dagflow_operator_uncommitted_output_records",
        "gauge",
        "Records that an operator emitted so far, in windows that are not decided.",
        ("operator",),
        while_running=True,
    ),
    Metric("dagflow_operator_tasks", "gauge", "Tasks in which an operator works now.", ("operator",), while_running=True),
    Metric(
        "dagflow_operator_waiting",
        "gauge",
        "1 while an operator waits; the log says for what.",
        ("operator",),
        while_running=True,
    ),
    Metric("dagflow_readers", "gauge", "Readers (partitions) of an operator.", ("operator",), while_running=True),
    Metric("dagflow_backlog_items", "gauge", "Records or work items that are known and not begun.", while_running=True),
    Metric("dagflow_backlog_bytes", "gauge", "Bytes of input that are known and not begun.", while_running=True),
    Metric(
        "dagflow_remaining_seconds",
        "gauge",
        "The estimated time to the end of bounded input; absent where it is unknown.",
        while_running=True,
    ),
    Metric(
        "dagflow_retries_total",
        "counter",
        "Retries after transient failures: window: attempts of windows after the first; "
        "task: tasks that the runner began again within an attempt; step: repeated steps of the driver.",
        ("kind",),
    ),
    Metric("dagflow_steals_total", "counter", "Times that a task took work from another one."),
    Metric("dagflow_stolen_bytes_total", "counter", "Bytes of input that tasks took from other ones."),
    Metric("dagflow_expectations_total", "counter", "Checks of expectations, by their outcome.", ("operator", "name", "status")),
    Metric("dagflow_ledger_entries_total", "counter", "Entries that were appended to the ledger of a dataset.", ("dataset",)),
    Metric("dagflow_ledger_rows_total", "counter", "Rows that these entries add.", ("dataset",)),
    Metric("dagflow_warnings_total", "counter", "Warnings."),
)
