"""Spans and metrics of a run for OpenTelemetry, configured by its standard environment variables."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from opentelemetry import context, metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from dagflow.runtime.events import Event
from dagflow.telemetry.errors import TelemetryPackageMissing, root_cause
from dagflow.telemetry.figures import RunFigures
from dagflow.telemetry.metrics import BUCKETS, METRICS, Metric
from dagflow.telemetry.spans import RunSpans

FLUSH = 2.0
"""Seconds that the last spans and metrics have at the end, with all retries. A part of what telemetry has in all."""
STOP = 0.3
"""Seconds that the threads of the library then have to notice that they are to end."""
_TRANSIENT = re.compile(r"Transient error (.*?) encountered .*", re.DOTALL)
_SUFFIXES = {"_seconds": "s", "_bytes": "By"}


class OpenTelemetry:
    """A subscriber of a run's events that makes spans and metrics of them. Closed at the end.

    Uses the providers that the process has set up, if there are any; they are flushed and stay open. Otherwise makes its own,
    which the environment configures. Raises TelemetryPackageMissing.
    """

    def __init__(
        self, application: str, environment: Mapping[str, str], began: float, warn: Callable[[str], None], figures: RunFigures
    ) -> None:
        self._watch = LogWatch(warn, target_of(environment))
        self._exporters: list[Any] = []
        tracers, meters = self._providers(application, environment)
        self._own: list[Any] = [each for each in (tracers, meters) if self._exporters and each is not None]
        self._shared: list[Any] = [] if self._exporters else [tracers, meters]
        tracer = None if tracers is None else tracers.get_tracer("dagflow")
        self._spans = None if tracer is None else RunSpans(tracer, application, began, parent_of(environment))
        if meters is not None:
            offer(meters.get_meter("dagflow"), figures, application)

    def _providers(self, application: str, environment: Mapping[str, str]) -> tuple[Any, Any]:
        tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
        if isinstance(tracers, TracerProvider):
            self.line = "OpenTelemetry: traces and metrics by the providers of this process"
            return tracers, meters
        spans, figures = exporters("traces", environment), exporters("metrics", environment)
        self._exporters = [*spans, *figures]
        sent = " and ".join(name for name, some in (("traces", spans), ("metrics", figures)) if some)
        self.line = f"OpenTelemetry: {sent or 'nothing'} to {target_of(environment)}"
        named = "OTEL_SERVICE_NAME" in environment or "service.name" in environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
        resource = Resource.create({} if named else {"service.name": application})
        own_tracers = TracerProvider(resource=resource, shutdown_on_exit=False) if spans else None
        for exporter in spans:
            assert own_tracers is not None
            own_tracers.add_span_processor(BatchSpanProcessor(exporter))
        readers = [PeriodicExportingMetricReader(exporter) for exporter in figures]
        return own_tracers, MeterProvider(readers, resource=resource, shutdown_on_exit=False) if readers else None

    def __call__(self, event: Event) -> None:
        """Begin and end spans. Exports nothing itself: threads of the library do."""
        if self._spans is not None:
            self._spans(event)

    def close(self) -> None:
        """Send the last spans and metrics."""
        if self._spans is not None:
            self._spans.end()
        steps = [each.shutdown for each in self._own] + [
            each.force_flush for each in self._shared if hasattr(each, "force_flush")
        ]
        threads = [threading.Thread(target=step, name="dagflow-otel-end", daemon=True) for step in steps]
        for thread in threads:
            thread.start()
        if not _ended(threads, FLUSH):
            self._watch.late()
            for exporter in self._exporters:
                exporter.shutdown()  # ends the pauses between retries
        if _ended(threads, STOP):
            self._watch.close()  # else a thread that hangs logs later, which is for no reader


def _ended(threads: Sequence[threading.Thread], seconds: float) -> bool:
    """Wait for threads. Return whether all of them have ended in time."""
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


class LogWatch(logging.Handler):
    """Takes what the library logs while a run works: export errors are nothing but log records there.

    The first that matters is the warning of the run. A failure that the library retries is kept as the reason for a later one.
    """

    def __init__(self, warn: Callable[[str], None], target: str) -> None:
        super().__init__(logging.WARNING)
        self._warn, self._target = warn, target
        self._reason = ""
        self._logger = logging.getLogger("opentelemetry")
        self._propagate = self._logger.propagate
        self._logger.addHandler(self)
        self._logger.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        reason = record.exc_info[1] if record.exc_info else None
        text = record.getMessage() + (f" {type(reason).__name__}: {reason}" if reason is not None else "")
        if record.levelno < logging.ERROR and text.startswith(("Transient", "Shutdown")):
            self._reason = root_cause(_TRANSIENT.sub(r"\1", text)) if text.startswith("Transient") else self._reason
        else:
            self._warn(f"OpenTelemetry: {text}{self._because()}")

    def late(self) -> None:
        """Warn that the last spans and metrics were not sent in time."""
        late = f"not sent to {self._target} within {FLUSH:g} s{self._because()}"
        self._warn(f"OpenTelemetry: the last spans and metrics were {late}. Check that the receiver runs.")

    def close(self) -> None:
        """Take no more records."""
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagate
        super().close()

    def _because(self) -> str:
        return f" ({self._reason})" if self._reason else ""


def exporters(signal: str, environment: Mapping[str, str]) -> list[Any]:
    """Return the exporters that OTEL_TRACES_EXPORTER or OTEL_METRICS_EXPORTER names, by default `otlp`; none for `none`."""
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    names = [name.strip() for name in environment.get(variable, "otlp").split(",")]
    return [_exporter(signal, variable, name, environment) for name in names if name not in ("", "none")]


def _exporter(signal: str, variable: str, name: str, environment: Mapping[str, str]) -> Any:
    group = f"opentelemetry_{signal}_exporter"
    protocol = environment.get(
        f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", environment.get("OTEL_EXPORTER_OTLP_PROTOCOL", "")
    )
    entry = name if name != "otlp" else "otlp_proto_grpc" if protocol == "grpc" else "otlp_proto_http"
    for point in entry_points(group=group, name=entry):
        return point.load()()
    known = ", ".join(sorted(point.name for point in entry_points(group=group)))
    raise TelemetryPackageMissing(f"{variable}={name}", "otel", f"no exporter {entry!r} is installed, but {known or 'none'}")


def target_of(environment: Mapping[str, str]) -> str:
    """Return the endpoint or the exporter to which spans and metrics go, in words.

    >>> target_of({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}), target_of({"OTEL_TRACES_EXPORTER": "console"})
    ('http://collector:4318', 'console')
    """
    exporter = environment.get("OTEL_TRACES_EXPORTER", "otlp")
    endpoints = (environment.get(f"OTEL_EXPORTER_OTLP_{part}ENDPOINT") for part in ("", "TRACES_", "METRICS_"))
    return exporter if exporter not in ("otlp", "none") else next(filter(None, endpoints), "http://localhost:4318")


def parent_of(environment: Mapping[str, str]) -> context.Context:
    """Return the span that a launch belongs to: the current one of this thread, else that of TRACEPARENT, else none."""
    current = context.get_current()
    if trace.get_current_span(current).get_span_context().is_valid:
        return current
    carrier = {name: environment[name.upper()] for name in ("traceparent", "tracestate") if name.upper() in environment}
    return TraceContextTextMapPropagator().extract(carrier)


def names_of(metric: Metric) -> tuple[str, str]:
    """Return the name and the unit of a metric in OpenTelemetry.

    >>> names_of(Metric("dagflow_planned_bytes_total", "counter", "Bytes."))
    ('dagflow.planned', 'By')
    """
    name, unit = metric.name.removesuffix("_total"), ""
    for suffix, short in _SUFFIXES.items():
        if name.endswith(suffix):
            name, unit = name.removesuffix(suffix), short
    return name.replace("_", ".", 1), unit


def offer(meter: metrics.Meter, figures: RunFigures, application: str) -> None:
    """Make an instrument for each metric. The library reads the figures when it exports."""
    for metric in METRICS:
        name, unit = names_of(metric)
        if metric.kind == "histogram":
            durations = meter.create_histogram(name, unit, metric.help, explicit_bucket_boundaries_advisory=BUCKETS)
            figures.call_with_durations(partial(durations.record, attributes={"application": application}))
            continue

        def observe(options: metrics.CallbackOptions, metric: Metric = metric) -> Iterable[metrics.Observation]:
            for labels, value in figures.of(metric.name).items():
                yield metrics.Observation(value, {"application": application, **dict(zip(metric.labels, labels, strict=True))})

        make = meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
        make(name, [observe], unit, metric.help)
