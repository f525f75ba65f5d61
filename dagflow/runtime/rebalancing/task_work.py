"""The work of one attempt of a task: the interface that the task asks, the plain form, and the base of forms that move parts."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol

from dagflow.model.operator.context import Clock, StealableWork, SystemClock
from dagflow.runtime.rebalancing.items import ItemInProgress, ItemQueue, PendingItem, Throughput
from dagflow.runtime.run_folder.reports import TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.outcome import TaskEndStats
from dagflow.runtime.stage.parts import Part
from dagflow.runtime.stage.program import TaskSpec

WorkItem = tuple[tuple[str, str, Any], Any, Part | None]
"""An item as it travels, the item as its operator gets it, and the part of it that is to be read; None: all of it."""


class StageOperators(Protocol):
    """The operators of a running stage, as far as work needs them."""

    @property
    def nodes(self) -> Mapping[str, Any]:
        """The operators with their contexts, by name."""
        ...

    def decoded(self, item: tuple[str, str, Any]) -> Any:
        """Return a work item as its operator gets it."""
        ...


class TaskWork:
    """The work items of one attempt of a task, none of which move to other tasks. A context manager.

    Attributes:
        operators: the operators whose items the attempt has begun.
        stealable: the interface for readers that claim what they read; None: they need not.
        previous_report: the report of an earlier attempt, after which nothing is left to do.
    """

    stealable: StealableWork | None = None
    previous_report: TaskReport | None = None

    def __init__(self, spec: TaskSpec, log: WindowLog) -> None:
        self.spec, self.log = spec, log
        self.operators = {item[0] for item in spec.work.items}

    def __enter__(self) -> TaskWork:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close nothing: this form holds nothing open."""

    def items(self, stage: StageOperators) -> Iterator[WorkItem]:
        """Yield the items one after the other, each to be read before the next one is asked for."""
        for item, part in self.spec.work.with_parts():
            yield item, stage.decoded(item), part

    def parts(self) -> list[list[Any]]:
        """Return the parts that have been read, as plain data; empty if they are those of the plan."""
        return []

    def publish(self, report: TaskReport) -> TaskReport:
        """Publish the task's report, create-if-absent; return the one that counts."""
        return self.log.report(self.spec.report_name, report)

    def repeated(self) -> TaskSpec:
        """Return the task that reads the parts of `previous_report` again, in the same order."""
        raise NotImplementedError

    def end_stats(self) -> TaskEndStats | None:
        """Return the figures that show the driver if the work was even; None if the form has none."""
        return None

    def has_left(self, report: TaskReport) -> bool:
        """Return whether a further job of the window must read the rest."""
        return False


class MovableWork(TaskWork):
    """Work of which parts may move to other tasks, while they are pending or in progress.

    Two threads use it under one lock: that of the task, and the background thread of the process (`tick`).
    """

    def __init__(self, spec: TaskSpec, log: WindowLog, clock: Clock | None = None) -> None:
        super().__init__(spec, log)
        self.stealable = self
        self._clock = clock or SystemClock()
        self._items: Mapping[int, Any] = dict(zip(spec.work.numbers, spec.work.items, strict=True))
        self._lock = threading.RLock()
        self._queue = ItemQueue()
        self._item: ItemInProgress | None = None
        self._throughput = Throughput()
        self._done: list[Part] = []
        self._read = 0.0  # how much that was, as items are weighed
        self._stage: StageOperators | None = None
        self._failure: BaseException | None = None
        self._is_ticking = False
        self._first_parts: list[Part] = []

    def items(self, stage: StageOperators) -> Iterator[WorkItem]:
        """Yield parts of items, one after the other, until there is nothing left to read."""
        with self._lock:
            self._stage = stage
            self._put(self._first_parts)
        while self._next():
            item = self._item
            assert item is not None
            pending = item.pending
            self.operators.add(pending.item[0])
            yield pending.item, pending.value, pending.part
            self._finish()

    def _put(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._queue.put(self._pending(part))

    def _pending(self, part: Part) -> PendingItem:
        assert self._stage is not None
        item = tuple(self._items[part.number])
        operator = self._stage.nodes[item[0]].operator
        return PendingItem.of(part, item, self._stage.decoded(item), operator)

    def _next(self) -> bool:
        """Take the next pending item, if there is one."""
        self.check()
        with self._lock:
            if not self._queue:
                return False
            self._item = ItemInProgress(self._queue.first(), self._clock.monotonic())
            return True

    def _finish(self) -> ItemInProgress:
        """Note that the item in progress has been read."""
        with self._lock:
            item, self._item = self._item, None
            assert item is not None
            self._done.append(item.read())
            self._read += item.pending.weight if item.tracker is None else item.span
            self._throughput.finished(item, self._clock.monotonic())
            return item

    def track(self, tracker: Any) -> None:
        """See `StealableWork.track`."""
        with self._lock:
            if self._item is not None:
                self._item.track(tracker)

    def completes(self, operator: str) -> bool:
        """See `StealableWork.completes`."""
        with self._lock:
            item = self._item
            if item is None or item.pending.item[0] != operator:
                return True  # this operator reads something else than the item in progress
            item.is_read = True
            part = item.read()
            return part.is_whole or self._completes(item, part)

    def _completes(self, item: ItemInProgress, part: Part) -> bool:
        """Return the same for a part of an item."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise the failure of the background thread, if there is one."""
        if self._failure is not None:
            raise self._failure

    def parts(self) -> list[list[Any]]:
        """Return the parts that have been read, as plain data."""
        return [part.to_list() for part in self._done]
