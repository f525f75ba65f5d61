"""The spans of a run: the launch, its windows, and their tasks, with the times of the events."""

from __future__ import annotations

from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from dagflow.errors.shown import without_secrets
from dagflow.runtime.events import (
    Event,
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
)

_NOTES = ReadersChanged | StepRetried | Stolen | TaskRetried | WindowRetried
"""Events that become events of the span of their window."""


class RunSpans:
    """Makes spans of a run's events. A window begins with its plan, and ends when all that follows from its decision is done."""

    def __init__(self, tracer: Tracer, application: str, began: float, parent: context.Context) -> None:
        self._tracer = tracer
        attributes = {"dagflow.application": application}
        self._launch = tracer.start_span(
            f"launch {application}", parent, SpanKind.INTERNAL, attributes, start_time=nanoseconds(began)
        )
        self._below = trace.set_span_in_context(self._launch, parent)
        self._windows: dict[int, Span] = {}

    def __call__(self, event: Event) -> None:
        """Begin, end or annotate spans."""
        if isinstance(event, RunStarted):
            names = ("runner", "run_folder", "launch", "slots", "first_window")
            self._launch.set_attributes({f"dagflow.{name}": without_secrets(getattr(event, name)) for name in names})
        elif isinstance(event, WindowPlanned) and event.window not in self._windows:  # else the driver has found its plan again
            self._windows[event.window] = self._tracer.start_span(
                "window", self._below, attributes=attributes_of(event), start_time=nanoseconds(event.at)
            )
        elif isinstance(event, TaskEnded):
            self._task(event)
        elif isinstance(event, WindowDecided) and event.window in self._windows:
            self._windows[event.window].set_attributes(attributes_of(event, "dagflow.written."))
        elif isinstance(event, WindowDone) and event.window in self._windows:
            self._windows.pop(event.window).end(nanoseconds(event.at))
        elif isinstance(event, _NOTES):
            span = self._windows.get(event.window, self._launch)
            span.add_event(event.kind, attributes_of(event), nanoseconds(event.at))
        elif isinstance(event, Warned) and self._launch.is_recording():  # warnings may follow the end of a run
            self._launch.add_event("warning", {"dagflow.text": without_secrets(event.text)}, nanoseconds(event.at))
        elif isinstance(event, RunEnded):
            self._ended(event)

    def end(self) -> None:
        """End the spans that are open, of a run that was never started."""
        for span in (*self._windows.values(), self._launch):
            if span.is_recording():
                span.end()

    def _task(self, event: TaskEnded) -> None:
        window = self._windows.get(event.window)
        below = self._below if window is None else trace.set_span_in_context(window, self._below)
        span = self._tracer.start_span("task", below, attributes=attributes_of(event), start_time=nanoseconds(event.started))
        span.end(nanoseconds(max(event.started, event.ended)))

    def _ended(self, event: RunEnded) -> None:
        at = nanoseconds(event.at)
        failed = event.error_window if event.error_window in self._windows else min(self._windows, default=None)
        for number in sorted(self._windows):
            span = self._windows.pop(number)
            if event.status == "failed" and number == failed:
                _fail(span, event, at)
            span.end(at)
        self._launch.set_attributes({"dagflow.status": event.status, "dagflow.windows": event.windows})
        if event.status == "failed":
            _fail(self._launch, event, at)
        self._launch.end(at)


def _fail(span: Span, event: RunEnded, at: int) -> None:
    reason = without_secrets(event.error or "")
    named = {
        "exception.type": event.error_code or "",
        "exception.message": reason,
        "dagflow.operator": event.error_operator or "",
    }
    span.set_status(Status(StatusCode.ERROR, reason.splitlines()[0] if reason else None))
    span.add_event("exception", {name: value for name, value in named.items() if value}, at)


def nanoseconds(seconds: float) -> int:
    """Return a time as OpenTelemetry counts it."""
    return int(seconds * 1e9)


def attributes_of(event: Event, prefix: str = "dagflow.") -> dict[str, Any]:
    """Return the fields of an event that are plain values, as attributes.

    >>> from dagflow.runtime.events import WindowRetried
    >>> attributes_of(WindowRetried(window=3, attempt=2, reason="a worker died", delay=1.0))
    {'dagflow.window': 3, 'dagflow.attempt': 2, 'dagflow.reason': 'a worker died', 'dagflow.delay': 1.0}
    """
    fields = event.as_json()
    plain = {name: value for name, value in fields.items() if name not in ("v", "event", "at", "started", "ended")}
    return {f"{prefix}{name}": without_secrets(value) for name, value in plain.items() if isinstance(value, str | int | float)}
