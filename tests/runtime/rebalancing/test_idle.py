"""An idle task that looks for work, by a clock that only the test moves: its decisions do not depend on the machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.runtime.rebalancing.ownership_log import OwnershipLog
from dagflow.runtime.rebalancing.peers import PeerView, gauge_of
from dagflow.runtime.rebalancing.stealing import MAX_SLEEP, StealingWork
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.parts import Part
from dagflow.runtime.stage.program import TaskSpec, Work
from dagflow.storage import MemoryStore
from dagflow.testing import FakeClock

AREA = "claims/0000000000.r.s0"


@attrs.define(slots=False)
class Window:
    """A busy task whose progress is a function of time, and the idle task that a test looks through.

    `left`: the seconds of work that could be stolen at a time; None: not known. The busy task ends at `ends`. It answers requests
    at the next moment, as a background thread does.
    """

    folder: Path
    left: Callable[[float], float | None]
    ends: float
    looks_take: float = 0.0  # seconds that pass during a look at the peers, without the processor
    clock: FakeClock = attrs.field(factory=FakeClock)
    asked_at: list[float] = attrs.field(factory=list)
    pauses: list[float] = attrs.field(factory=list)

    def run(self) -> tuple[StealingWork, list[tuple[str, Any]]]:
        """Let the idle task look for work until it has some, or ends."""
        (self.folder / "claims").mkdir()
        store = MemoryStore()
        item: Any = ("lines", "in", None)
        busy, idle = (OwnershipLog(store, AREA, partition=n, partitions=2, attempt=f"a{n}", assigned={n: item}) for n in range(2))
        self.busy = busy
        busy.begin()
        self.gauge = gauge_of(str(self.folder), AREA, 0)
        self._happen(0.0)
        work = Work(items=(), numbers=(), form="steal", room=2)
        spec = TaskSpec(window=0, epoch="r", stage="s0", partition=1, partitions=2, work=work)
        clock: Any = self
        peers = PeerView(store, str(self.folder), AREA, "wanted", idle, 2, clock)
        gauge = gauge_of(str(self.folder), AREA, 1)
        idle.begin()
        log = WindowLog(MemoryStore())
        task = StealingWork(spec, log, idle, peers, gauge, clock=clock, processor_time=lambda: 0.0)
        stolen: list[Any] = []
        task._put = stolen.extend  # type: ignore[method-assign]
        has_stolen = task._steal()
        assert has_stolen == bool(stolen)
        return task, stolen

    # The clock of the idle task: while it sleeps or looks, the busy one goes on

    def now(self) -> float:
        return self.clock.now()

    def monotonic(self) -> float:
        if self.looks_take:
            self._pass(self.looks_take)
        return self.clock.monotonic()

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._pass(seconds)

    def _pass(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._happen(self.clock.monotonic())

    def _happen(self, now: float) -> None:
        if self.busy.own.state.report is not None:
            return
        left = self.left(now)
        for request in self.busy.requests():
            self.asked_at.append(now)
            if left is not None and left >= 0.2:
                self.busy.grant(request, [Part(0, 5, None)], 1)
            else:
                self.busy.refuse(request, "not worth it")
        figures = {"by": "a0", "left": left, "last": left == 0.0, "key": f"0:{now:.2f}"}
        self.gauge.write(json.dumps(figures).encode())
        if now >= self.ends:
            self.busy.report({})


def quick_then_slow(now: float) -> float:
    """Quick lines with 0.05 s left of them; from the third second on they turn out slow: 1.5 s are left, and ever less."""
    return 0.05 if now < 0.5 else max(0.0, 2.0 - now)


def test_lines_that_turn_out_slow_are_stolen(tmp_path: Path) -> None:
    window = Window(tmp_path, quick_then_slow, ends=2.0)
    _, stolen = window.run()
    assert stolen == [Part(0, 5, None)]
    assert 0.5 <= window.asked_at[0] < 0.6
    assert max(window.pauses) <= MAX_SLEEP


@pytest.mark.parametrize("looks_take", [0.01, 0.05, 0.1])
def test_a_machine_on_which_looks_take_long_does_not_put_off_the_next_look(tmp_path: Path, looks_take: float) -> None:
    """The pause follows from the processor time of a look, not from how long it waited for the processor."""
    window = Window(tmp_path, quick_then_slow, ends=2.0, looks_take=looks_take)
    _, stolen = window.run()
    assert stolen == [Part(0, 5, None)]
    assert max(window.pauses) <= MAX_SLEEP


def test_a_refused_request_is_not_the_last_one(tmp_path: Path) -> None:
    """The gauge said 0.3 s, less was left when the answer came; the next record is asked about again."""

    def left(now: float) -> float:
        return 0.3 if now < 0.004 else quick_then_slow(now)

    window = Window(tmp_path, left, ends=2.0)
    task, stolen = window.run()
    assert stolen == [Part(0, 5, None)]
    assert len(window.asked_at) == 2
    stats = task.end_stats()
    assert stats is not None
    assert (stats.refusals, stats.refusal) == (1, "not worth it")


def test_where_nothing_can_be_split_the_idle_task_ends_at_once(tmp_path: Path) -> None:
    window = Window(tmp_path, lambda now: 0.0, ends=9.0)
    task, stolen = window.run()
    stats = task.end_stats()
    assert not stolen
    assert stats is not None
    assert stats.stopped == "nothing was worth stealing"
    assert window.clock.monotonic() < 0.1


def test_where_little_is_left_it_waits_a_second_for_a_surprise(tmp_path: Path) -> None:
    window = Window(tmp_path, lambda now: 0.1, ends=9.0)
    _, stolen = window.run()
    assert not stolen
    assert 1.0 <= window.clock.monotonic() < 1.2
