"""The parts of items that a task has before it: those not begun, the one at hand, those that have been read."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from dagflow.runtime.rebalancing.items import ItemInProgress, ItemQueue, PendingItem, Throughput
from dagflow.runtime.stage.parts import Part


class Flow(Protocol):
    """What is needed of the operators at work."""

    @property
    def nodes(self) -> Mapping[str, Any]:
        """The operators, each with what is around it, by name."""
        ...

    def decoded(self, item: tuple[str, str, Any]) -> Any:
        """A work item as its operator gets it."""
        ...


class TaskWork:
    """The work of one attempt of a task, parts of which may go elsewhere; within it as a context manager.

    Two threads use it, that of the task and one that looks after it (`tick`): all under one lock.

    Args:
        items: the items as they travel, by number.
    """

    def __init__(self, items: Mapping[int, Any]) -> None:
        self._items = items
        self._lock = threading.RLock()
        self._queue = ItemQueue()
        self._hand: ItemInProgress | None = None
        self._pace = Throughput()
        self._done: list[Part] = []
        self._read = 0.0  # how much that was, as items are weighed
        self._flow: Flow | None = None
        self._failure: BaseException | None = None
        self._is_served = False
        self._begun: list[Part] = []
        self.operators: set[str] = set()

    def items(self, flow: Flow) -> Iterator[PendingItem]:
        """What there is to do, one part of an item after the other."""
        with self._lock:
            self._flow = flow
            self._put(self._begun)
        while self._next():
            hand = self._hand
            assert hand is not None
            self.operators.add(hand.held.item[0])
            yield hand.held
            self._finish()

    def _put(self, parts: Iterable[Part]) -> None:
        for part in parts:
            self._queue.put(self._held(part))

    def _held(self, part: Part) -> PendingItem:
        assert self._flow is not None
        item = tuple(self._items[part.number])
        operator = self._flow.nodes[item[0]].operator
        return PendingItem.of(part, item, self._flow.decoded(item), operator)

    def _next(self) -> bool:
        """Takes what comes next, if there is anything."""
        self.check()
        with self._lock:
            if not self._queue:
                return False
            self._hand = ItemInProgress(self._queue.first(), time.monotonic())
            return True

    def _finish(self) -> ItemInProgress:
        """What was at hand has been read."""
        with self._lock:
            hand, self._hand = self._hand, None
            assert hand is not None
            self._done.append(hand.read())
            self._read += hand.held.weight if hand.tracker is None else hand.span
            self._pace.finished(hand, time.monotonic())
            return hand

    def track(self, tracker: Any) -> None:
        """See `WorkSharing.track`."""
        with self._lock:
            if self._hand is not None:
                self._hand.track(tracker)

    def completes(self, operator: str) -> bool:
        """See `WorkSharing.completes`."""
        with self._lock:
            hand = self._hand
            if hand is None or hand.held.item[0] != operator:
                return True  # what it reads is not what is shared
            hand.is_read = True
            part = hand.read()
            return part.is_whole or self._completes(hand, part)

    def _completes(self, hand: ItemInProgress, part: Part) -> bool:
        """The same of a part that is not all of its item."""
        raise NotImplementedError

    def check(self) -> None:
        """Raises what has happened to the thread that looks after it."""
        if self._failure is not None:
            raise self._failure

    def parts(self) -> list[list[Any]]:
        """What has been read."""
        return [part.to_list() for part in self._done]
