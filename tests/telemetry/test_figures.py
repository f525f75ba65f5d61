from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.runtime import events
from dagflow.telemetry.figures import RunFigures
from dagflow.telemetry.metrics import BUCKETS, METRICS

STARTED = events.RunStarted(
    at=100.0, application="demo", runner="local", run_folder="out/_dagflow", launch="x", slots=2, first_window=0
)


def counted(*heard: events.Event) -> RunFigures:
    figures = RunFigures()
    for event in heard:
        figures(event)
    return figures


def window(number: int, planned: float, decided: float) -> list[events.Event]:
    return [
        events.WindowPlanned(at=planned, window=number, items=3, bytes=30, tasks=2),
        events.WindowDecided(at=decided, window=number, files=1, bytes=10, records=5),
        events.WindowDone(at=decided, window=number),
    ]


def test_windows_are_counted_by_status() -> None:
    planned = events.WindowPlanned(at=120.0, window=2, items=1, bytes=7, tasks=1)
    figures = counted(STARTED, *window(0, 101.0, 103.0), *window(1, 103.0, 110.0), planned)
    by_status = [figures.value("dagflow_windows_total", status) for status in ("planned", "decided", "done")]
    assert by_status == [3, 2, 2]
    assert figures.value("dagflow_windows_in_flight") == 1
    assert figures.value("dagflow_last_window_decided") == 1
    assert figures.value("dagflow_last_window_decided_timestamp_seconds") == 110.0
    assert figures.value("dagflow_planned_bytes_total") == 67
    assert figures.value("dagflow_written_records_total") == 10


def test_durations_are_cumulative_and_the_last_bucket_has_all() -> None:
    figures = counted(*window(0, 0.0, 0.1), *window(1, 0.0, 7.0), *window(2, 0.0, 1e6))
    counts, total = figures.durations()
    assert len(counts) == len(BUCKETS) + 1
    assert (counts[0], counts[BUCKETS.index(5.0)], counts[BUCKETS.index(10.0)], counts[-1]) == (1, 1, 2, 3)
    assert total == pytest.approx(1_000_007.1)


@pytest.mark.parametrize("status", ["done", "failed", "interrupted"])
def test_one_status_is_1(status: str) -> None:
    figures = counted(STARTED, events.RunEnded(at=200.0, status=status, windows=0, seconds=1.0))
    assert {name for name in ("running", "done", "failed", "interrupted") if figures.value("dagflow_run_status", name)} == {
        status
    }
    assert figures.value("dagflow_run_end_timestamp_seconds") == 200.0


def test_retries_steals_tasks_warnings_readers_and_entries() -> None:
    figures = counted(
        events.TaskRetried(window=0, task="s0-0000", attempt="1"),
        events.WindowRetried(window=0, attempt=2, reason="a worker died"),
        events.StepRetried(window=0, doing="deciding it", attempt=1, reason="busy", delay=1.0),
        events.StepRetried(window=0, doing="deciding it", attempt=2, reason="busy", delay=1.0),
        events.Stolen(window=0, source="s0-0000", to="s0-0001", bytes=50, parts=1),
        events.Warned(text="look"),
        events.ReadersChanged(window=0, operator="reader", before=1, readers=4, backlog=7, backlog_bytes=70),
        events.EntryAppended(window=0, dataset="s3://key:hush@bucket/out", entry=2, hash="sha256:00", rows=5),
    )
    assert [figures.value("dagflow_retries_total", kind) for kind in ("task", "window", "step")] == [1, 1, 2]
    assert figures.value("dagflow_stolen_bytes_total") == 50
    assert figures.value("dagflow_warnings_total") == 1
    assert figures.value("dagflow_readers", "reader") == 4
    assert figures.value("dagflow_ledger_rows_total", "s3://key:***@bucket/out") == 5


TASK = events.TaskEnded(window=0, task="s0-0000", attempt="0", started=101.0, ended=103.5, records=9, read=1.5, wait=0.5)
PLANNED = events.WindowPlanned(at=100.0, window=0, items=3, bytes=30, tasks=2)
BEGUN = events.WindowStarted(at=101.0, window=0, round="r", tasks=2)
DECIDED = events.WindowDecided(
    at=110.0, window=0, files=1, bytes=10, records=5,
    operators={"keep": {"records_in": 18, "records_out": 8, "errors": 2, "seconds": 0.5}},
)  # fmt: skip


def test_work_counts_when_its_window_is_decided() -> None:
    figures = counted(PLANNED, BEGUN, TASK, attrs.evolve(TASK, task="s0-0001"))
    assert figures.value("dagflow_tasks_total") == 0
    figures(DECIDED)
    assert figures.value("dagflow_tasks_total") == 2
    assert figures.value("dagflow_task_seconds_total") == 5
    assert figures.value("dagflow_task_read_records_total") == 18
    assert figures.value("dagflow_task_purpose_seconds_total", "read") == 3.0
    assert figures.value("dagflow_task_purpose_seconds_total", "write") == 0.0
    assert figures.value("dagflow_operator_input_records_total", "keep") == 18
    assert figures.value("dagflow_operator_errors_total", "keep") == 2
    assert figures.value("dagflow_discarded_seconds_total") == 0


def test_a_window_that_runs_again_counts_once_but_for_its_lost_time() -> None:
    later = [attrs.evolve(PLANNED, window=1), attrs.evolve(BEGUN, window=1, at=103.0)]
    retried = events.WindowRetried(at=104.0, window=0, attempt=2, reason="a worker died")
    again = attrs.evolve(BEGUN, at=105.0)
    figures = counted(PLANNED, BEGUN, TASK, *later, retried, again, TASK, DECIDED)
    assert figures.value("dagflow_tasks_total") == 1
    assert figures.value("dagflow_discarded_seconds_total") == 3 + 1, "the later window starts again too"


def test_a_plan_that_the_driver_finds_again_counts_once() -> None:
    figures = counted(PLANNED, BEGUN, TASK, attrs.evolve(PLANNED, at=106.0, replayed=True), BEGUN, TASK, DECIDED)
    assert figures.value("dagflow_planned_items_total") == 3
    assert figures.value("dagflow_windows_total", "planned") == 1
    assert figures.value("dagflow_tasks_total") == 1
    assert figures.value("dagflow_discarded_seconds_total") == 5


def progress(**operators: dict[str, float]) -> events.OperatorProgress:
    return events.OperatorProgress(operators=operators, running=1, pending=1, backlog=10, backlog_bytes=1000, remaining=12.0)


def test_records_of_open_windows_are_gauges() -> None:
    figures = counted(PLANNED, BEGUN, progress(keep={"records_in": 100, "records_out": 60, "errors": 2, "partitions": 2}))
    assert figures.value("dagflow_operator_uncommitted_input_records", "keep") == 100
    assert figures.of("dagflow_operator_input_records_total") == {("keep",): 0}, "a counter begins with 0"
    assert figures.of("dagflow_operator_bytes_total") == {}, "it counts none"
    assert figures.value("dagflow_operator_tasks", "keep") == 2
    figures(DECIDED)
    assert figures.value("dagflow_operator_uncommitted_input_records", "keep") == 82
    figures(progress(keep={"records_in": 20, "records_out": 9, "bytes": 0, "partitions": 0}))
    assert figures.value("dagflow_operator_uncommitted_input_records", "keep") == 2
    assert figures.of("dagflow_operator_bytes_total") == {("keep",): 0}


def test_reasons_and_an_end_that_is_known() -> None:
    figures = counted(attrs.evolve(progress(keep={}), waiting={"keep": "a slot"}))
    assert figures.value("dagflow_operator_waiting", "keep") == 1
    assert figures.value("dagflow_remaining_seconds") == 12.0
    figures(events.OperatorProgress(operators={"keep": {}}))
    assert figures.value("dagflow_operator_waiting", "keep") == 0
    assert figures.value("dagflow_backlog_bytes") == 0
    assert figures.of("dagflow_remaining_seconds") == {}, "an unknown end is absent"


def test_gauges_end_with_the_launch() -> None:
    readers = events.ReadersChanged(window=0, operator="reader", before=1, readers=4, backlog=7, backlog_bytes=70)
    late = progress(keep={"records_in": 1, "partitions": 2})
    figures = counted(
        STARTED, readers, *window(0, 101.0, 103.0), attrs.evolve(PLANNED, window=1), progress(keep={"records_in": 1})
    )
    begun = {metric.name for metric, _ in figures.samples()}
    figures(events.RunEnded(at=200.0, status="failed", windows=1, seconds=1.0))
    figures(late)  # of a thread that looks at tasks
    gauges = {metric.name for metric, _ in figures.samples() if metric.kind == "gauge"}
    assert gauges == {
        "dagflow_run_info", "dagflow_run_status", "dagflow_run_start_timestamp_seconds", "dagflow_run_end_timestamp_seconds",
        "dagflow_last_window_decided", "dagflow_last_window_decided_timestamp_seconds",
    }  # fmt: skip
    assert begun - gauges - {metric.name for metric in METRICS if metric.kind == "counter"} == {
        metric.name for metric in METRICS if metric.while_running
    }


OPERATORS = ("scan", "keep", "write")
FIGURES: list[dict[str, float]] = [
    {"records_in": 3, "records_out": 7, "errors": 0, "seconds": 0.5},
    {"records_in": 5, "records_out": 1, "errors": 2, "seconds": 0.25, "bytes": 90},
    {"records_in": 0, "records_out": 0, "errors": 0, "seconds": 0.0, "bytes": 0},
]
BY_OPERATOR = st.fixed_dictionaries({name: st.sampled_from(FIGURES) for name in OPERATORS})
NEXT = st.sampled_from(["plan", "start", "task", "progress", "retry", "begin anew", "decide"])


@st.composite
def runs(draw: st.DrawFn) -> list[events.Event]:
    """Draw the events of a run whose windows fail and run again, the later ones with them. Decisions are made in order."""
    heard: list[events.Event] = [STARTED]
    waiting, number = list[int](), 0  # the windows that are planned
    for step in draw(st.lists(NEXT, min_size=25, max_size=30)):
        if step == "plan" or not waiting:
            heard.append(events.WindowPlanned(window=number, items=2, bytes=20, tasks=1))
            waiting.append(number)
            number += 1
        elif step == "start":
            heard.append(events.WindowStarted(window=waiting[-1], round="r", tasks=1))
        elif step == "task":
            task, records = draw(st.sampled_from(["s0-0000", "s0-0001"])), draw(st.integers(0, 9))
            ended = events.TaskEnded(window=waiting[0], task=task, attempt="0", started=1.0, ended=2.0, records=records)
            heard.append(attrs.evolve(ended, operators=draw(BY_OPERATOR)))
        elif step == "progress":
            heard.append(progress(**draw(BY_OPERATOR)))
        elif step == "retry":
            heard.append(events.WindowRetried(window=waiting[0], attempt=2, reason="a worker died"))
        elif step == "begin anew":
            heard += [events.WindowPlanned(window=each, items=2, bytes=20, tasks=1, replayed=True) for each in waiting]
        else:
            decided = waiting.pop(0)
            heard.append(events.WindowDecided(window=decided, files=1, bytes=9, records=3, operators=draw(BY_OPERATOR)))
    heard = [attrs.evolve(event, at=100.0 + at) for at, event in enumerate(heard)]
    status = draw(st.sampled_from(["done", "failed", "interrupted"])) if not waiting else "failed"
    return [*heard, events.RunEnded(at=1000.0, status=status, windows=0, seconds=1.0)]


def attempts_that_count(heard: list[events.Event]) -> Iterator[events.TaskEnded]:
    """Yield the tasks between the last failure before the decision of their window and that decision."""
    for at, decided in enumerate(heard):
        if isinstance(decided, events.WindowDecided):
            fails = [n for n, e in enumerate(heard[:at]) if isinstance(e, events.WindowRetried) or getattr(e, "replayed", False)]
            attempt = heard[max(fails, default=0) : at]
            yield from (each for each in attempt if isinstance(each, events.TaskEnded) and each.window == decided.window)


def counters(figures: RunFigures) -> dict[Any, float]:
    samples = {metric.name: of for metric, of in figures.samples() if metric.kind == "counter"}
    return {(name, *labels): value for name, of in samples.items() for labels, value in of.items()}


@given(runs())
def test_counters_never_fall_and_end_with_what_is_committed(heard: list[events.Event]) -> None:
    figures, before = RunFigures(), dict[Any, float]()
    for event in heard:
        figures(event)
        after = counters(figures)
        assert all(after[key] >= value for key, value in before.items()), event
        before = after
    committed = Counter[Any]()
    for event in heard:
        if isinstance(event, events.WindowDecided):
            for operator, own in event.operators.items():
                committed.update({(operator, name): value for name, value in own.items()})
    of_operators = {"records_in": "input_records", "records_out": "output_records", "bytes": "bytes", "errors": "errors"}
    for name, metric in {**of_operators, "seconds": "seconds"}.items():
        for operator in OPERATORS:
            assert figures.value(f"dagflow_operator_{metric}_total", operator) == committed[operator, name]
    tasks = list(attempts_that_count(heard))
    assert figures.value("dagflow_tasks_total") == len(tasks)
    assert figures.value("dagflow_task_read_records_total") == sum(task.records for task in tasks)
    planned = {event.window for event in heard if isinstance(event, events.WindowPlanned)}
    assert figures.value("dagflow_planned_bytes_total") == 20 * len(planned)


def test_labels_have_a_bounded_number_of_values() -> None:
    """A label with windows, tasks or launches would make a new time series each time."""
    assert {label for metric in METRICS for label in metric.labels} == {
        "dataset", "name", "operator", "kind", "purpose", "run_folder", "runner", "status", "version",
    }  # fmt: skip
