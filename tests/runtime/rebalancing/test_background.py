"""One thread looks after all tasks of a process, one look at a time, and only while there are any."""

from __future__ import annotations

import threading
import time

import attrs
import pytest

from dagflow.runtime.rebalancing.background import POLL, BackgroundThread


@attrs.define(eq=False)
class Task:
    every: float = POLL
    looks: int = 0
    seen: threading.Event = attrs.field(factory=threading.Event)
    threads: set[int] = attrs.field(factory=set)

    def tick(self) -> None:
        self.looks += 1
        self.threads.add(threading.get_ident())
        self.seen.set()


@pytest.mark.full  # a real thread, and pauses in real time
def test_tasks_are_looked_after_from_begin_to_end_by_one_thread() -> None:
    background = BackgroundThread()
    one, other = Task(), Task()
    background.add(one)
    assert one.seen.wait(10)
    background.add(other)
    assert other.seen.wait(10)
    background.remove(one)
    background.remove(other)
    time.sleep(0.1)
    looks = one.looks, other.looks
    time.sleep(0.1)
    assert (one.looks, other.looks) == looks
    one.seen.clear()
    background.add(one)  # after a pause, too
    assert one.seen.wait(10)
    background.remove(one)
    assert len(one.threads | other.threads) == 1
