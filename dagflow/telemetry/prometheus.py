"""Figures of a run for Prometheus: on a port that it scrapes, and in a file for the textfile collector of node_exporter."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from dagflow.telemetry.errors import MetricsFileUnwritable, MetricsPortUnusable
from dagflow.telemetry.figures import RunFigures
from dagflow.telemetry.metrics import BUCKETS, METRICS

INTERVAL = 5.0
"""Seconds between two versions of the file."""


class RunCollector(Collector):
    """The figures of a run as families of samples, made when they are asked for."""

    def __init__(self, figures: RunFigures, application: str) -> None:
        self._figures = figures
        self._application = application

    def collect(self) -> Iterable[Any]:
        """Yield all metrics that have figures."""
        for metric, samples in self._figures.samples():
            family = (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(
                metric.name, metric.help, labels=("application", *metric.labels)
            )
            for labels, value in samples.items():
                family.add_metric([self._application, *labels], value)
            yield family
        for metric in METRICS:
            if metric.kind == "histogram":
                counts, total = self._figures.durations()
                buckets = [*zip(map(str, BUCKETS), counts[:-1], strict=True), ("+Inf", counts[-1])]
                histogram = HistogramMetricFamily(metric.name, metric.help, labels=("application",))
                histogram.add_metric([self._application], buckets, total)
                yield histogram


class MetricsServer:
    """Serves the figures over HTTP, in threads of its own, until it is closed. Raises MetricsPortUnusable.

    Beside the figures of the run, it has those of the driver's process that the library of Prometheus knows.
    """

    def __init__(self, figures: RunFigures, application: str, address: str, port: int) -> None:
        registry = prometheus_client.CollectorRegistry()
        registry.register(RunCollector(figures, application))
        prometheus_client.ProcessCollector(registry=registry)
        try:
            self._server, _ = prometheus_client.start_http_server(port, address, registry)
        except (OSError, OverflowError) as error:
            raise MetricsPortUnusable(address, port, getattr(error, "strerror", None) or str(error)) from error
        host = f"[{address}]" if ":" in address else address
        self.line = f"metrics at http://{host}:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


class MetricsFile:
    """Writes the figures to a file every few seconds, in a thread of its own, and once more when it is closed.

    The file always has one whole version. `warn` is called when a version cannot be written; the next one is tried all the same.
    Raises MetricsFileUnwritable.
    """

    def __init__(self, figures: RunFigures, application: str, path: str, warn: Callable[[str], None]) -> None:
        self._registry = prometheus_client.CollectorRegistry()
        self._registry.register(RunCollector(figures, application))
        self._path = os.path.abspath(path)
        self._warn = warn
        self._ended = threading.Event()
        self.line = f"metrics in {self._path}"
        try:
            if os.path.isdir(self._path):
                raise IsADirectoryError(0, "it is a folder")
            prometheus_client.write_to_textfile(self._path, self._registry)
        except OSError as error:
            raise MetricsFileUnwritable(self._path, error.strerror or str(error)) from error
        self._thread = threading.Thread(target=self._write_often, name="dagflow-metrics-file", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the last figures."""
        self._ended.set()
        self._thread.join()

    def _write_often(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._ended.wait(INTERVAL)
            try:
                prometheus_client.write_to_textfile(self._path, self._registry)
            except OSError as error:
                self._warn(f"metrics cannot be written to {self._path}: {error.strerror or error}")
