"""The writer of a task's live record, in the background thread of its process."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Protocol

from dagflow.model.operator.context import Clock, SystemClock
from dagflow.runtime.live.record import WAITS, LiveRecord
from dagflow.runtime.rebalancing.background import BACKGROUND, BackgroundThread
from dagflow.runtime.run_folder.layout import LIVE
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.node import Node
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.stage.task_time import TaskTime
from dagflow.storage import Gauge, local_path

EVERY = 1.0  # seconds between two records
BRIEF = 0.2  # seconds: a task that takes less leaves no record


class RunningOperators(Protocol):
    """The operators of a running task (`dagflow.runtime.task.flow.Flow`)."""

    nodes: dict[str, Node]


class LiveTask:
    """Rewrites the live record of a task while it runs, and once more at its end. A context manager."""

    every = EVERY / 4  # see `BackgroundTask`

    def __init__(
        self,
        spec: TaskSpec,
        log: WindowLog,
        attempt: str,
        time: TaskTime,
        clock: Clock | None = None,
        background: BackgroundThread = BACKGROUND,
    ) -> None:
        self._spec, self._time, self._background = spec, time, background
        self._clock = clock or SystemClock()
        self._nodes: Mapping[str, Node] = {}
        self._lock = threading.Lock()
        self._has_ended = False
        self._began = self._clock.monotonic()
        self._written = self._began - EVERY / 2  # the first record is soon there: it shows that the task has begun
        folder = local_path(log.unsynced.url) or spec.options.live_folder
        name = LIVE.name(window=spec.window, epoch=spec.epoch, stage=spec.stage, partition=spec.partition, attempt=attempt)
        self._gauge = Gauge(os.path.join(folder, name)) if folder else None

    def __enter__(self) -> LiveTask:
        if self._gauge is not None:
            self._background.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Write the last record."""
        if self._gauge is None:
            return
        self._background.remove(self)
        with self._lock:
            self._has_ended = True
            if self._clock.monotonic() - self._began >= BRIEF:
                self._write()
            self._close()

    def watch(self, operators: RunningOperators) -> None:
        """Write the figures of these operators from now on."""
        self._nodes = operators.nodes

    def tick(self) -> None:
        """Write the record if it is time."""
        with self._lock:
            if not self._has_ended and self._clock.monotonic() - self._written >= EVERY:
                self._write()

    def _write(self) -> None:
        self._written = self._clock.monotonic()
        if self._gauge is None:
            return
        try:
            self._gauge.write(self._record().to_bytes())
        except Exception:  # noqa: BLE001  # on a full disk, for example, the task continues without its figures
            self._close()

    def _close(self) -> None:
        gauge, self._gauge = self._gauge, None
        if gauge is not None:
            gauge.close()

    def _record(self) -> LiveRecord:
        current = self._time.current
        doing = WAITS if current is self._time.waiting else ""
        operators = {}
        for name, node in self._nodes.items():
            operators[name] = node.so_far()
            if current is node.account:
                doing = name
        return LiveRecord(
            epoch=self._spec.epoch,
            task=self._spec.name,
            stage=self._spec.stage,
            at=round(self._clock.now(), 3),
            has_ended=self._has_ended,
            doing=doing,
            operators=operators,
        )
