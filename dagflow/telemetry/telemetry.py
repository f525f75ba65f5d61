"""The telemetry of one launch: opened before the run begins, closed within seconds after it has ended."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol

from dagflow.config.run_settings import RunSettings
from dagflow.errors.shown import without_secrets
from dagflow.planning.plan import Plan
from dagflow.runtime.events import Event, EventStream, Warned
from dagflow.telemetry.errors import LineageNotConfigured, TelemetryPackageMissing, root_cause
from dagflow.telemetry.figures import RunFigures
from dagflow.telemetry.wanted import openlineage_reason, opentelemetry_reason, wants_metrics

LOOPBACK = "127.0.0.1"
CLOSING = 3.0
"""Seconds that the end of a run waits for all telemetry together."""


class Exporter(Protocol):
    """A part of telemetry that is closed at the end. `line` says where the figures go."""

    line: str

    def close(self) -> None:
        """Send what has not been sent. May hang, and may raise: it is called in a thread of its own."""


class Telemetry:
    """Opens the telemetry that the settings ask for, subscribes it, and closes it. A context manager.

    Nothing that happens in it while the run works stops the run. Each part warns once.

    Attributes:
        lines: where the figures go, one line for each part.
    """

    def __init__(
        self,
        settings: RunSettings,
        application: str,
        plan: Plan,
        events: EventStream,
        environment: Mapping[str, str],
        began: float,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._environment = environment
        self._began = began
        self._application = application
        self._events = events
        self._exporters: list[Exporter] = []
        self._warnings = Warnings()
        self._figures: RunFigures | None = None
        self.lines: list[str] = []

    def __enter__(self) -> Telemetry:
        """Open everything. Raises InfrastructureError when a part cannot begin."""
        try:
            if wants_metrics(self._settings):
                self._open_metrics()
            if (reason := opentelemetry_reason(self._settings, self._environment)) is not None:
                self._open_if_possible("OpenTelemetry", reason, self._settings.opentelemetry == "on", self._open_opentelemetry)
            if (reason := openlineage_reason(self._settings, self._environment)) is not None:
                self._open_if_possible("OpenLineage", reason, self._settings.openlineage == "on", self._open_openlineage)
        except BaseException:
            self._close()
            raise
        self._events.subscribe(self._tell)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close everything. What takes too long is left behind, and said."""
        self._close()
        self._tell()

    def _open_metrics(self) -> None:
        settings = self._settings
        try:
            from dagflow.telemetry.prometheus import MetricsFile, MetricsServer
        except ImportError as error:
            setting = "metrics_port" if settings.metrics_port is not None else "metrics_file"
            raise TelemetryPackageMissing(setting, "metrics", str(error)) from error
        figures = self._counted()
        if settings.metrics_port is not None:
            address = settings.metrics_address or LOOPBACK
            self._add(MetricsServer(figures, self._application, address, settings.metrics_port))
        if settings.metrics_file is not None:
            self._add(MetricsFile(figures, self._application, settings.metrics_file, self._warnings.once()))

    def _counted(self) -> RunFigures:
        """Return the figures of the run, which its events are counted in."""
        if self._figures is None:
            self._figures = RunFigures()
            self._events.subscribe(self._figures, on_error="warn")
        return self._figures

    def _open_opentelemetry(self) -> None:
        try:
            from dagflow.telemetry.opentelemetry import OpenTelemetry
        except ImportError as error:
            raise TelemetryPackageMissing("opentelemetry", "otel", str(error)) from error
        warn = self._warnings.once()
        exporter = OpenTelemetry(self._application, self._environment, self._began, warn, self._counted())
        self._add(exporter)
        self._events.subscribe(exporter, on_error="warn")

    def _open_openlineage(self) -> None:
        try:
            from dagflow.telemetry.openlineage import OpenLineage
        except ImportError as error:
            raise TelemetryPackageMissing("openlineage", "openlineage", str(error)) from error
        continuous, warn = self._settings.continuous, self._warnings.once()
        try:
            exporter = OpenLineage(self._application, self._plan, continuous, self._environment, warn)
        except Exception as error:
            raise LineageNotConfigured(f"{type(error).__name__}: {error}") from error
        self._add(exporter)
        self._events.subscribe(exporter, on_error="warn")

    def _open_if_possible(self, name: str, reason: str, is_required: bool, opening: Callable[[], None]) -> None:
        """Open a part. If only the environment asks for it and its packages are missing, leave it out and say so."""
        try:
            opening()
        except TelemetryPackageMissing as error:
            if is_required:
                raise
            self.lines.append(f"{name} is off: {reason} is set, but {error.reason}; pip install 'dagflow[{error.extra}]'")

    def _add(self, exporter: Exporter) -> None:
        self._exporters.append(exporter)
        self.lines.append(without_secrets(exporter.line))

    def _tell(self, event: Event | None = None) -> None:
        """Send the warnings that threads have added. Only the thread of the run sends events."""
        while (text := self._warnings.take()) is not None:
            self._events.send(Warned(text=text))

    def _close(self) -> None:
        self._warnings.is_closing = True
        threads = [
            (exporter, threading.Thread(target=self._closed, args=(exporter,), name="dagflow-telemetry-end", daemon=True))
            for exporter in self._exporters
        ]
        for _, thread in threads:
            thread.start()
        deadline = time.monotonic() + CLOSING
        for exporter, thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                late = f"no answer within {CLOSING:g} s, so the last data is missing there. Check that the receiver runs."
                self._warnings.add(f"{exporter.line}: {late}")
        self._exporters = []

    def _closed(self, exporter: Exporter) -> None:
        try:
            exporter.close()
        except Exception as error:  # noqa: BLE001  # telemetry does not end a run
            self._warnings.add(f"{exporter.line}: {type(error).__name__}: {error}")


class Warnings:
    """Warnings that any thread may add, and that the thread of the run takes. `is_closing`: the run has ended."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self.is_closing = False

    def add(self, text: str) -> None:
        """Add a warning."""
        self._texts.append(without_secrets(root_cause(text)))

    def once(self) -> Callable[[str], None]:
        """Return a function that adds its first text, which stands for all that follow."""
        first = [True]

        def add(text: str) -> None:
            if first:
                first.clear()
                self.add(text if self.is_closing else f"{text}; the run continues, and later failures are not reported")

        return add

    def take(self) -> str | None:
        """Return the oldest warning, and remove it; None without one."""
        return self._texts.popleft() if self._texts else None
