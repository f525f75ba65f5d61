"""Launches on different hosts at the same run folder, which is in an object store: the lock has a lease."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dagflow.errors import FolderInUse, Interrupted, LeaseLost
from dagflow.launching.build import build
from dagflow.launching.launch import launch, start
from dagflow.ledger import Ledger
from dagflow.runtime.events import Event, LeaseAwaited, StepRetried, Warned, WindowDecided, WindowPlanned
from dagflow.runtime.run_folder.verify import verify_run_folder
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.windows.datasets import Datasets
from dagflow.storage import FolderLock, Holder, file_system, open_store
from dagflow.testing import FakeClock
from dagflow.testing.stores import CountingStore
from operators import RecordWriter
from tests.conformance.apps import chain, lines_in

LINES = 12


@pytest.fixture
def run_folder() -> Iterator[str]:
    folder = f"memory://takeover-{uuid.uuid4().hex}"
    yield folder
    if file_system(folder).exists(folder):
        file_system(folder).remove_tree(folder)


@pytest.fixture
def place(tmp_path: Path, run_folder: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("".join(f"line {number}\n" for number in range(LINES)))
    return Place(tmp_path, run_folder, monkeypatch)


class Place:
    def __init__(self, folder: Path, run_folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.run_folder, self._monkeypatch = folder, run_folder, monkeypatch
        self.output = folder / "out"

    def populate(self, block_size: int = 20) -> Any:
        sink = RecordWriter(str(self.output))
        return chain(self.folder / "in", sink=sink, block_size=block_size, blocks_threshold=1)

    def run(self, clock: FakeClock | None = None, block_size: int = 20, **options: Any) -> Any:
        settings = {"runner": "local", "durability": "process", "run_folder": self.run_folder, "windows_in_flight": 1, **options}
        return launch(self.populate(block_size), clock=clock or FakeClock(), **settings)

    def run_elsewhere(self, host: str = "another host", **options: Any) -> Any:
        """Launch on another host, which sees no launch of this one."""
        with self._monkeypatch.context() as patch:
            patch.setattr("socket.gethostname", lambda: host)
            return self.run(**options)

    def check(self) -> None:
        assert sorted(lines_in(self.output).elements()) == sorted(f"line {number}".encode() for number in range(LINES))
        assert Ledger.open(str(self.output)).verify().problems == ()
        assert verify_run_folder(self.run_folder).problems == ()


def once(kind: type[Event], action: Callable[[], Any]) -> Callable[[Event], None]:
    """Return a subscriber that does something at the first event of a kind."""
    done: list[Event] = []

    def subscriber(event: Event) -> None:
        if isinstance(event, kind) and not done:
            done.append(event)
            action()

    return subscriber


@pytest.mark.parametrize("kind", [WindowPlanned, WindowDecided])
@pytest.mark.parametrize("retain_windows", [1, 1000])
def test_a_launch_that_was_paused_and_taken_over_ends_with_the_name_of_the_other(
    place: Place, kind: type[Event], retain_windows: int
) -> None:
    events: list[Event] = []
    clock = FakeClock()

    def take_over() -> None:
        place.run_elsewhere(subscribers=[events.append], retain_windows=retain_windows)
        clock.advance(6.0 if retain_windows == 1 else 0.0)  # else not even the clock shows the pause

    with pytest.raises(LeaseLost, match="another launch took over"):  # it has ended by then
        place.run(clock, subscribers=[once(kind, take_over)], retain_windows=retain_windows)
    (awaited,) = [event for event in events if isinstance(event, LeaseAwaited)]
    assert awaited.seconds == 60.0
    assert awaited.who == "dagflow launch of populate_dag"
    warned = [event.text for event in events if isinstance(event, Warned)]
    assert [text for text in warned if text.startswith("took over from process") and "its lease of 60 s" in text]
    place.check()
    assert place.run().report.windows == 0
    place.check()


@pytest.mark.parametrize("retain_windows", [1, 1000])
def test_a_launch_that_was_paused_before_its_first_window_plans_none_behind_those_of_the_other(
    place: Place, monkeypatch: pytest.MonkeyPatch, retain_windows: int
) -> None:
    opening, clock = Datasets.open, FakeClock()

    def open_late(datasets: Datasets, *arguments: Any) -> None:
        opening(datasets, *arguments)
        monkeypatch.setattr(Datasets, "open", opening)
        place.run_elsewhere(retain_windows=retain_windows)
        clock.advance(6.0 if retain_windows == 1 else 0.0)

    monkeypatch.setattr(Datasets, "open", open_late)
    with pytest.raises(LeaseLost):
        place.run(clock, retain_windows=retain_windows)
    place.check()
    assert place.run().report.windows == 0


def test_a_launch_that_cannot_be_observed_but_renews_is_alive(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    locks: list[FolderLock] = []
    refused: list[FolderInUse] = []

    class Renewing(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.monotonic() >= 20.0:
                locks[0].renew()

    def acquire(lock: FolderLock, really: Callable[[FolderLock], None] = FolderLock.acquire) -> None:
        locks.append(lock)
        really(lock)

    def try_elsewhere() -> None:
        with pytest.raises(FolderInUse) as caught:
            place.run_elsewhere(clock=Renewing())
        refused.append(caught.value)

    monkeypatch.setattr(FolderLock, "acquire", acquire)
    place.run(subscribers=[once(WindowPlanned, try_elsewhere)])
    assert refused[0].remove is None
    place.check()


def test_a_launch_that_waits_for_a_lease_can_be_stopped(place: Place) -> None:
    store = open_store(place.run_folder)
    dead = Holder(pid=5, host="far away", since="12:00", lease=60.0, token="t")
    store.create("_lock/0000000001", dead.to_bytes())
    run = start(
        build(
            place.populate(),
            environment={},
            run={"runner": "local", "run_folder": place.run_folder},
        ),
        subscribers=[once(LeaseAwaited, lambda: run.stop("SIGTERM"))],
        clock=FakeClock(),
    )
    with pytest.raises(Interrupted, match="SIGTERM"):
        run.run_here()
    assert store.names("_lock/") == ["_lock/0000000001"]


def test_a_plan_that_a_former_holder_has_published_at_the_last_moment_is_run(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The former holder was between a look at its lease and the write of its plan."""
    plan = WindowLog.plan
    events: list[Event] = []
    published: list[int] = []

    def plan_late(log: WindowLog, mine: WindowPlan) -> WindowPlan:
        if mine.window == 1 and not published:
            published.append(1)
            with monkeypatch.context() as patch:
                patch.setattr(FolderLock, "acquire", lambda lock: None)
                place.run_elsewhere(max_windows=2, block_size=30)
        return plan(log, mine)

    monkeypatch.setattr(WindowLog, "plan", plan_late)
    report = place.run(subscribers=[events.append], retain_windows=1000).report
    assert report.status == "done"
    assert [event.doing for event in events if isinstance(event, StepRetried)] == ["planning it"]
    place.check()


def test_a_decision_that_came_after_its_records_had_been_removed_is_removed_by_the_next_launch(place: Place) -> None:
    store = open_store(place.run_folder)
    place.run(max_windows=2)
    kept = {name: store.read(name) for name in ("plan/0000000000", "decision/0000000000")}
    place.run(retain_windows=2)
    assert store.read("decision/0000000000") is None
    for name, data in kept.items():
        store.create(name, data or b"")
    place.run(retain_windows=2)
    assert not set(kept) & set(store.names())
    place.check()


def test_short_windows_cost_no_calls_of_the_lock_and_a_launch_without_windows_four(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CountingStore(open_store(place.run_folder))
    monkeypatch.setattr("dagflow.storage.locks.folder.open_store", lambda url, durable: store)
    windows = place.run().report.windows
    assert windows >= 3
    # taking: a listing, a number, and that number 1 was not there before; the first step: that it is there still; the end; `done`
    assert store.counts == {"names": 1, "create": 2, "read": 3}
    store.reset()
    place.run()
    assert store.counts == {"names": 1, "read": 1, "create": 2}
