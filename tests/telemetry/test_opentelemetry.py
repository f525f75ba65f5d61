"""Spans and metrics: with the SDK's exporters in memory, and once over HTTP to a receiver."""

from __future__ import annotations

import logging
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from dagflow.config import RunSettings
from dagflow.errors import OperatorFailed, TelemetryPackageMissing
from dagflow.runtime import events
from dagflow.telemetry.figures import RunFigures
from dagflow.telemetry.opentelemetry import offer, parent_of
from dagflow.telemetry.spans import RunSpans
from dagflow.telemetry.wanted import opentelemetry_reason
from operators import RecordWriter
from tests.telemetry.receiver import Receiver, receiver
from tests.telemetry.runs import run

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
EVENTS: list[events.Event] = [
    events.RunStarted(
        at=101.0, application="demo", runner="local", run_folder="ftp://u:hush@h/x", launch="l", slots=2, first_window=0
    ),
    events.WindowPlanned(at=102.0, window=0, items=2, bytes=30, tasks=1),
    events.WindowRetried(at=103.0, window=0, attempt=2, reason="a worker died", delay=1.0),
    events.TaskEnded(at=105.0, window=0, task="s0-0000", attempt="0", started=103.5, ended=104.5, records=9),
    events.WindowDecided(at=106.0, window=0, files=1, bytes=10, records=5),
    events.WindowDone(at=107.0, window=0),
]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_TRACES_EXPORTER",
        "OTEL_METRICS_EXPORTER",
        "OTEL_SDK_DISABLED",
        "TRACEPARENT",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


def spans_of(heard: list[events.Event], environment: dict[str, str] | None = None) -> dict[str, ReadableSpan]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans = RunSpans(provider.get_tracer("dagflow"), "demo", 100.0, parent_of(environment or {}))
    for event in heard:
        spans(event)
    spans.end()
    return {span.name: span for span in exporter.get_finished_spans()}


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_launch_has_windows_and_these_have_tasks() -> None:
    spans = spans_of([*EVENTS, events.RunEnded(at=108.0, status="done", windows=1, seconds=8.0)])
    launch, window, task = spans["launch demo"], spans["window"], spans["task"]
    assert launch.parent is None
    assert window.parent is not None and window.parent.span_id == launch.context.span_id  # noqa: PT018
    assert task.parent is not None and task.parent.span_id == window.context.span_id  # noqa: PT018
    assert [(s.start_time, s.end_time) for s in (launch, window, task)] == [
        (100 * 10**9, 108 * 10**9), (102 * 10**9, 107 * 10**9), (103_500_000_000, 104_500_000_000),
    ]  # fmt: skip
    assert attributes(window)["dagflow.window"] == 0
    assert attributes(window)["dagflow.written.records"] == 5
    assert attributes(task)["dagflow.task"] == "s0-0000"
    assert attributes(launch)["dagflow.status"] == "done"
    assert attributes(launch)["dagflow.run_folder"] == "ftp://u:***@h/x"
    assert [event.name for event in window.events] == ["window_retried"]
    assert {span.status.status_code for span in spans.values()} == {StatusCode.UNSET}


def test_a_failed_run_has_its_error_on_the_launch_and_on_the_window() -> None:
    error = "window 0: operator 'keep' raised ValueError\n  in app.py:3, password=hush"
    spans = spans_of([*EVENTS[:3], events.RunEnded(at=104.0, status="failed", windows=0, seconds=4.0, error=error)])
    for name in ("launch demo", "window"):
        assert spans[name].status.status_code is StatusCode.ERROR
        assert spans[name].status.description == "window 0: operator 'keep' raised ValueError"
        exception = spans[name].events[-1]
        assert exception.name == "exception"
        assert "app.py:3" in str(exception.attributes)
        assert "hush" not in str(exception.attributes)


def test_a_plan_that_the_driver_finds_again_does_not_begin_another_span() -> None:
    again = events.WindowPlanned(at=103.0, window=0, items=2, bytes=30, tasks=1, replayed=True)
    spans = spans_of([*EVENTS[:2], again, *EVENTS[3:], events.RunEnded(at=108.0, status="done", windows=1, seconds=8.0)])
    window, task = spans["window"], spans["task"]
    assert (window.start_time, window.end_time) == (102 * 10**9, 107 * 10**9)
    assert task.parent is not None and task.parent.span_id == window.context.span_id  # noqa: PT018


def test_an_interrupted_run_is_not_an_error() -> None:
    spans = spans_of([*EVENTS[:2], events.RunEnded(at=104.0, status="interrupted", windows=0, seconds=4.0)])
    assert attributes(spans["launch demo"])["dagflow.status"] == "interrupted"
    assert spans["window"].status.status_code is StatusCode.UNSET


def test_a_launch_continues_the_trace_of_the_environment() -> None:
    launch = spans_of(EVENTS, {"TRACEPARENT": TRACEPARENT})["launch demo"]
    assert f"{launch.context.trace_id:032x}" == TRACEPARENT[3:35]
    assert launch.parent is not None
    assert f"{launch.parent.span_id:016x}" == TRACEPARENT[36:52]
    assert spans_of(EVENTS, {"TRACEPARENT": "nonsense"})["launch demo"].parent is None


def test_metrics_have_units_and_the_labels_of_prometheus() -> None:
    reader, figures = InMemoryMetricReader(), RunFigures()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    offer(provider.get_meter("dagflow"), figures, "demo")
    for event in EVENTS:
        figures(event)
    data = reader.get_metrics_data()
    assert data is not None
    instruments = {each.name: each for each in data.resource_metrics[0].scope_metrics[0].metrics}
    planned, windows = instruments["dagflow.planned"], instruments["dagflow.windows"]
    assert (planned.unit, planned.data.data_points[0].value) == ("By", 30)  # type: ignore[union-attr]
    by_status = {point.attributes["status"]: point.value for point in windows.data.data_points}  # type: ignore[index,union-attr]
    assert by_status == {"planned": 1, "decided": 1, "done": 1}
    (duration,) = instruments["dagflow.window_duration"].data.data_points
    assert (duration.count, duration.sum) == (1, 4.0)  # type: ignore[union-attr]
    provider.shutdown()


@pytest.mark.parametrize(
    ("setting", "environment", "reason"),
    [
        ("auto", {}, None),
        ("on", {}, "opentelemetry"),
        ("auto", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:4318/v1/traces"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        ("auto", {"OTEL_METRICS_EXPORTER": "console"}, "OTEL_METRICS_EXPORTER"),
        ("off", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318"}, None),
        ("on", {"OTEL_SDK_DISABLED": "true"}, None),
        ("auto", {"OTEL_SERVICE_NAME": "x"}, None),
        (
            "auto",
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"},
            None,
        ),
    ],
)
def test_variables_and_setting_that_turn_it_on(setting: Any, environment: dict[str, str], reason: str | None) -> None:
    assert opentelemetry_reason(RunSettings(opentelemetry=setting), environment) == reason


def test_a_run_sends_traces_and_metrics_to_the_endpoint(
    tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("TRACEPARENT", TRACEPARENT)
    heard: list[events.Event] = []
    assert run(tmp_path, name="demo", subscribers=[heard.append]).report.warnings == []
    traces, metrics = ExportTraceServiceRequest(), ExportMetricsServiceRequest()
    for path, body in collector.bodies:
        (traces if path == "/v1/traces" else metrics).MergeFromString(body)
    (resource,) = traces.resource_spans
    assert ("service.name", "demo") in [(each.key, each.value.string_value) for each in resource.resource.attributes]
    spans = resource.scope_spans[0].spans
    assert sorted(span.name for span in spans) == ["launch demo", "task", "window"]
    assert {span.trace_id.hex() for span in spans} == {TRACEPARENT[3:35]}
    names = {each.name for each in metrics.resource_metrics[0].scope_metrics[0].metrics}
    assert {"dagflow.windows", "dagflow.window_duration", "dagflow.run_status"} <= names
    (started,) = [event for event in heard if isinstance(event, events.RunStarted)]
    assert started.telemetry == [f"OpenTelemetry: traces and metrics to {collector.url}"]


def test_a_failed_run_sends_its_spans_too(tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(RecordWriter):
        def get_bytes_for_tuple(self, record: Any) -> bytes:
            raise ValueError("no such lines")

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    with pytest.raises(OperatorFailed):
        run(tmp_path, sink=Refusing(str(tmp_path / "out")))
    traces = ExportTraceServiceRequest()
    for path, body in collector.bodies:
        if path == "/v1/traces":
            traces.MergeFromString(body)
    errors = [span.status.message for span in traces.resource_spans[0].scope_spans[0].spans if span.status.code == 2]
    assert len(errors) == 2, "the launch and its window"
    assert all("no such lines" in error for error in errors)


def test_a_receiver_that_is_gone_is_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
    monkeypatch.setattr("dagflow.telemetry.opentelemetry.FLUSH", 1.5)
    monkeypatch.setattr("dagflow.telemetry.opentelemetry.STOP", 10.0)
    monkeypatch.setattr("dagflow.telemetry.telemetry.CLOSING", 30.0)
    report = run(tmp_path).report
    assert report.status == "done"
    (warning,) = report.warnings
    url = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
    late = f"the last spans and metrics were not sent to {url} within 1.5 s (Connection refused)"
    assert warning == f"OpenTelemetry: {late}. Check that the receiver runs."
    assert logging.getLogger("opentelemetry").propagate


def test_a_receiver_that_hangs_does_not_hold_the_end_up(
    tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector.delay = 20.0
    monkeypatch.setattr("dagflow.telemetry.opentelemetry.FLUSH", 0.3)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    began = time.monotonic()
    report = run(tmp_path).report
    assert report.status == "done"
    assert time.monotonic() - began < 5
    assert f"not sent to {collector.url} within 0.3 s. Check" in report.warnings[0]
    assert len(report.warnings) == 1


@pytest.mark.parametrize("setting", ["auto", "on"])
def test_missing_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    """The environment of a whole cluster may name an endpoint: a launch without the packages works all the same."""
    monkeypatch.setitem(sys.modules, "dagflow.telemetry.opentelemetry", None)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    heard: list[events.Event] = []
    if setting == "on":
        with pytest.raises(TelemetryPackageMissing, match=re.escape("pip install 'dagflow[otel]'")):
            run(tmp_path, opentelemetry="on")
        return
    report = run(tmp_path, subscribers=[heard.append]).report
    (started,) = [event for event in heard if isinstance(event, events.RunStarted)]
    assert started.telemetry[0].startswith("OpenTelemetry is off: OTEL_EXPORTER_OTLP_ENDPOINT is set, but ")
    assert started.telemetry[0].endswith("pip install 'dagflow[otel]'")
    assert report.warnings == []


def test_an_exporter_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "jaeger")
    with pytest.raises(TelemetryPackageMissing, match=r"OTEL_TRACES_EXPORTER=jaeger .* 'jaeger' is installed, but console"):
        run(tmp_path, opentelemetry="on")


def test_providers_that_the_process_has_set_up_are_used_and_stay_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", lambda: provider)
    with provider.get_tracer("tests").start_as_current_span("caller") as caller:
        run(tmp_path, opentelemetry="on", name="demo")
    spans = {span.name: span for span in exporter.get_finished_spans()}
    parent = spans["launch demo"].parent
    assert parent is not None
    assert parent.span_id == caller.get_span_context().span_id
    with provider.get_tracer("tests").start_as_current_span("later"):
        pass
    assert exporter.get_finished_spans()[-1].name == "later"
