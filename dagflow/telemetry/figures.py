"""The figures of a run by the names of its metrics, made from its events."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate

from dagflow.runtime.events import Event, WindowDecided
from dagflow.runtime.run_view import RunView
from dagflow.telemetry.metrics import BUCKETS, METRICS, Metric, Samples


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
        self._run = RunView()
        self._durations = [0] * (len(BUCKETS) + 1)
        self._duration = 0.0
        self._duration_calls: list[Callable[[float], None]] = []

    def __call__(self, event: Event) -> None:
        """Count an event."""
        with self._lock:
            self._run(event)
            if isinstance(event, WindowDecided):
                took = self._run.windows[event.window].seconds
                self._durations[bisect_left(BUCKETS, took)] += 1
                self._duration += took
                for call in self._duration_calls:
                    call(took)

    def value(self, name: str, *labels: str) -> float:
        """Return one figure; 0.0 for one that is not there."""
        return self.of(name).get(labels, 0.0)

    def of(self, name: str) -> Samples:
        """Return the figures of one metric."""
        with self._lock:
            return next(metric.samples(self._run) for metric in METRICS if metric.name == name)

    def call_with_durations(self, call: Callable[[float], None]) -> None:
        """Call a function with the seconds of each window that is decided."""
        self._duration_calls.append(call)

    def samples(self) -> Iterator[tuple[Metric, Samples]]:
        """Yield each metric that has figures, by the values of its labels. Histograms are in `durations`."""
        with self._lock:
            samples = [(metric, metric.samples(self._run)) for metric in METRICS]
        yield from (each for each in samples if each[1])

    def durations(self) -> tuple[list[int], float]:
        """Return how many windows lasted at most as long as each bound of `BUCKETS`, then how many in all; and their time."""
        with self._lock:
            return list(accumulate(self._durations)), self._duration
