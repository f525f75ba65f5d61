"""Transient failures are retried, so often and with so long a pause; then the run ends and names the window."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dagflow import DAG, InputOperator, OperatorContext, OutputPort, State
from dagflow.errors import DiskFull, Interrupted, StorageBusy, WindowFailed, WindowHeldUp
from dagflow.launching.build import build
from dagflow.launching.launch import launch, start
from dagflow.ledger import Ledger
from dagflow.runtime.events import Event, EventStream, StepRetried, WindowRetried
from dagflow.runtime.windows.retry import RetryPolicy
from dagflow.storage import FolderLock
from dagflow.storage.local.store import LocalStore
from dagflow.testing import FakeClock
from operators import BlockReader, RecordWriter
from tests.conformance.apps import chain, left_over, lines_in
from tests.runtime.windows.test_datasets import Spread

BUSY = OSError(errno.EBUSY, "Device or resource busy")
FULL = OSError(errno.ENOSPC, "No space left on device")


class TestPatience:
    def retries(self, clock: FakeClock, heard: list[Event], stopping: Callable[[], str | None] = lambda: None) -> RetryPolicy:
        events = EventStream(clock.now)
        events.subscribe(heard.append)
        lock = FolderLock("memory://unused")
        return RetryPolicy(attempts=4, delay=1.0, clock=clock, events=events, stopping=stopping, lock=lock)

    def test_pauses_double_up_to_a_minute(self) -> None:
        retries = self.retries(FakeClock(), [])
        assert [retries.delay_after(attempt) for attempt in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]
        assert retries.delay_after(10_000) == 60

    def test_tries_so_often_and_tells_each_time(self) -> None:
        clock, heard = FakeClock(), list[Event]()
        answers = iter([BUSY, TimeoutError("slow"), None])

        def action() -> str:
            if (error := next(answers)) is not None:
                raise error
            return "done"

        assert self.retries(clock, heard).retry(3, "publishing its plan", action) == "done"
        assert clock.monotonic() == pytest.approx(3.0)
        steps = [event for event in heard if isinstance(event, StepRetried)]
        assert [(e.window, e.doing, e.attempt, e.delay) for e in steps] == [
            (3, "publishing its plan", 2, 1.0),
            (3, "publishing its plan", 3, 2.0),
        ]
        assert [e.reason for e in steps] == ["OSError: [Errno 16] Device or resource busy", "TimeoutError: slow"]

    def test_ends_with_the_window_and_what_was_being_done(self) -> None:
        clock = FakeClock()
        with pytest.raises(WindowHeldUp) as caught:
            self.retries(clock, []).retry(3, "publishing its plan", lambda: _raise(BUSY))
        assert clock.monotonic() == pytest.approx(7.0)
        assert str(caught.value) == (
            "window 3: publishing its plan failed 4 times; the last time: OSError: [Errno 16] Device or resource busy\n"
            "  help: launch again when the storage answers: the run resumes from there"
        )
        assert caught.value.exit_code == 3

    def test_what_does_not_pass_ends_at_once(self) -> None:
        clock = FakeClock()
        with pytest.raises(OSError, match="No space left"):
            self.retries(clock, []).retry(3, "publishing its plan", lambda: _raise(FULL))
        assert clock.monotonic() == 0

    def test_a_stop_ends_the_wait_at_once(self) -> None:
        clock = FakeClock()

        def stopping() -> str | None:
            return "SIGTERM" if clock.monotonic() > 10 else None

        with pytest.raises(Interrupted, match="SIGTERM"):
            self.retries(clock, [], stopping).pause(60)
        assert 10 < clock.monotonic() < 10.2


def _raise(error: Exception) -> Any:
    raise error


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text(f"{name}\n")
    return folder


class Trouble:
    """Raises an error in calls of a function whose first text argument has a word in it, so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.met = 0

    def in_calls(self, owner: Any, function: str, word: str, times: int, error: Exception = BUSY, *, after: bool = False) -> None:
        real = getattr(owner, function)

        def called(*arguments: Any, **options: Any) -> Any:
            if any(isinstance(each, str) and word in each for each in arguments) and self.met < times:
                self.met += 1
                if after:
                    real(*arguments, **options)
                if owner is os:
                    raise error
                raise StorageBusy(path=word, doing="publishing a record", reason="busy") if error is BUSY else error
            return real(*arguments, **options)

        self._monkeypatch.setattr(owner, function, called)


@pytest.fixture
def trouble(monkeypatch: pytest.MonkeyPatch) -> Trouble:
    return Trouble(monkeypatch)


def run(source: Path, output: Path, **options: Any) -> tuple[Any, list[Event], FakeClock]:
    events: list[Event] = []
    clock = FakeClock()
    application = chain(source, sink=RecordWriter(str(output)), blocks_threshold=1)
    ran = launch(application, runner="local", subscribers=[events.append], clock=clock, **options)
    return ran.report, events, clock


STEPS = {
    "plan/0000000001": "publishing its plan",
    "decision/0000000001": "deciding it",
    "ledger/": "appending its ledger entries",
    "done/0000000001": "marking it as done",
}


class TestDriver:
    @pytest.mark.parametrize("after", [False, True], ids=["refused", "answer lost"])
    @pytest.mark.parametrize("word", list(STEPS))
    def test_a_store_that_is_busy_for_a_while_changes_nothing(
        self, source: Path, tmp_path: Path, trouble: Trouble, word: str, after: bool
    ) -> None:
        run(source, tmp_path / "out", max_windows=1)
        calls = 6 if word == "ledger/" else 2  # the ledger asks three times by itself
        trouble.in_calls(LocalStore, "create", word, times=1 if after else calls, after=after)
        report, events, clock = run(source, tmp_path / "out")
        assert lines_in(tmp_path / "out") == {b"a": 1, b"b": 1, b"c": 1}
        assert left_over(tmp_path / "out") == []
        assert report.windows == 2
        ledger = Ledger.open(str(tmp_path / "out"))
        assert ledger.verify().is_clean
        assert [e.data.txn.window_id for e in ledger.entries() if e.data is not None] == [0, 1, 2]
        steps = [(e.window, e.doing, e.attempt) for e in events if isinstance(e, StepRetried)]
        if after and word == "ledger/":
            assert steps == [], "the ledger finds its own entry"
        else:
            assert steps == [(1, STEPS[word], n + 2) for n in range(1 if after else 2)]
            delays = sum(e.delay for e in events if isinstance(e, StepRetried))
            assert delays == pytest.approx(1.0 if after else 3.0)
            assert clock.monotonic() >= delays - 1e-9, (
                "looks for input take time as well: how many there are depends on the scanner's thread"
            )
        appended = [e.window for e in events if e.kind == "entry_appended"]  # type: ignore[attr-defined]
        assert appended == [1, 2]

    @pytest.mark.parametrize("word", list(STEPS))
    def test_one_that_stays_busy_ends_the_run_and_names_the_window(
        self, source: Path, tmp_path: Path, trouble: Trouble, word: str
    ) -> None:
        run(source, tmp_path / "out", max_windows=1)
        trouble.in_calls(LocalStore, "create", word, times=9 if word == "ledger/" else 3)
        with pytest.raises(WindowHeldUp) as caught:
            run(source, tmp_path / "out")
        assert (caught.value.window, caught.value.doing, caught.value.attempts) == (1, STEPS[word], 3)
        run(source, tmp_path / "out")
        assert lines_in(tmp_path / "out") == {b"a": 1, b"b": 1, b"c": 1}
        assert Ledger.open(str(tmp_path / "out")).verify().is_clean

    def test_files_get_their_names_although_the_first_rename_finds_no_answer(
        self, source: Path, tmp_path: Path, trouble: Trouble
    ) -> None:
        trouble.in_calls(os, "replace", "_dagflow/staging", times=2)
        _, events, _ = run(source, tmp_path / "out")
        assert [(e.window, e.doing) for e in events if isinstance(e, StepRetried)] == [
            (0, "giving its files their final names")
        ] * 2
        assert lines_in(tmp_path / "out") == {b"a": 1, b"b": 1, b"c": 1}

    def test_a_full_disk_is_waited_for_by_nobody(self, source: Path, tmp_path: Path, trouble: Trouble) -> None:
        trouble.in_calls(LocalStore, "create", "plan/", times=1, error=DiskFull(path="/x", doing="publishing a record"))
        events: list[Event] = []
        clock = FakeClock()
        built = build(chain(source, sink=RecordWriter(str(tmp_path / "out"))), run={"runner": "local"})
        with pytest.raises(DiskFull):
            start(built, None, [events.append], clock).run_here()
        assert not [e for e in events if isinstance(e, StepRetried)]


class Staling(BlockReader):  # type: ignore[type-arg]
    """A reader whose file system answers with a stale handle, so many times."""

    left = 0

    def setup_stream(self, block: Any) -> Any:
        from dagflow.storage import explained

        with explained(block.file_path, "reading"):
            if Staling.left > 0:
                Staling.left -= 1
                raise OSError(errno.ESTALE, "Stale file handle")
        return super().setup_stream(block)


class TestTasks:
    @pytest.mark.parametrize("on_error", ["fail", "skip"])
    def test_a_stale_handle_makes_the_window_run_again(self, source: Path, tmp_path: Path, on_error: Any) -> None:
        Staling.left = 2
        events: list[Event] = []
        application = chain(source, sink=RecordWriter(str(tmp_path / "out")), reader=Staling(on_error=on_error))
        launch(application, runner="local", subscribers=[events.append], clock=FakeClock())
        assert [(e.attempt, e.delay) for e in events if isinstance(e, WindowRetried)] == [(2, 1.0), (3, 2.0)]
        assert lines_in(tmp_path / "out") == {b"a": 1, b"b": 1, b"c": 1}

    def test_one_that_stays_ends_the_run(self, source: Path, tmp_path: Path) -> None:
        Staling.left = 100
        with pytest.raises(WindowFailed, match=r"window 0 failed 3 times; the last time: .*Stale file handle"):
            launch(chain(source, sink=RecordWriter(str(tmp_path / "out")), reader=Staling()), runner="local", clock=FakeClock())


class Dim(InputOperator):
    """Emits numbers, and cannot see its source each time `trouble` says so."""

    output = OutputPort[str]()
    at = State(0)
    trouble: ClassVar[Callable[[int], Exception | None]]

    def emit_tuples(self) -> None:
        self.output.emit(f"half of {self.at}")
        error = type(self).trouble(self.at)
        if error is not None:
            raise error
        self.output.emit(f"other half of {self.at}")
        self.at += 1
        self.context.close_window()

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    def is_exhausted(self) -> bool:
        return self.at >= 3


class TestInputs:
    def run(self, output: Path, trouble: Callable[[int], Exception | None], **options: Any) -> tuple[list[Event], FakeClock]:
        def populate_dag(dag: DAG, conf: Any) -> None:
            source, spread = dag.add_operator("source", Dim()), dag.add_operator("spread", Spread())
            sink = dag.add_operator("sink", RecordWriter[str](str(output)))
            dag.add_stream("s", source.output, spread.input)
            dag.add_stream("t", spread.output, sink.input)

        Dim.trouble = staticmethod(trouble)
        events: list[Event] = []
        clock = FakeClock()
        launch(populate_dag, runner="local", subscribers=[events.append], clock=clock, max_windows=3, **options)
        return events, clock

    def test_an_operator_that_cannot_be_asked_for_a_while_begins_anew_from_the_last_plan(self, tmp_path: Path) -> None:
        left = {0: 2, 2: 1}

        def trouble(at: int) -> Exception | None:
            left[at] = left.get(at, 0) - 1
            return StorageBusy(path="/mnt/logs", doing="scanning", reason="Stale file handle") if left[at] >= 0 else None

        events, clock = self.run(tmp_path / "out", trouble)
        steps = [(e.window, e.doing, e.attempt, e.delay) for e in events if isinstance(e, StepRetried)]
        assert steps == [(0, "planning it", 2, 1.0), (0, "planning it", 3, 2.0), (2, "planning it", 2, 1.0)]
        assert clock.monotonic() == pytest.approx(4.0, abs=0.5)
        assert lines_in(tmp_path / "out") == {f"{half} of {n}".encode(): 1 for n in range(3) for half in ("half", "other half")}
        assert left_over(tmp_path / "out") == []
        assert [e.window for e in events if e.kind == "window_done"] == [0, 1, 2]  # type: ignore[attr-defined]
        assert Ledger.open(str(tmp_path / "out")).verify().is_clean

    def test_one_that_stays_so_ends_the_run(self, tmp_path: Path) -> None:
        busy = StorageBusy(path="/mnt/logs", doing="scanning", reason="Stale file handle")
        with pytest.raises(WindowHeldUp) as caught:
            self.run(tmp_path / "out", lambda at: busy if at == 1 else None)
        assert (caught.value.window, caught.value.doing, caught.value.attempts) == (1, "planning it", 3)
        assert lines_in(tmp_path / "out").total() == 2

    def test_what_does_not_pass_ends_the_run_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(DiskFull):
            self.run(tmp_path / "out", lambda at: DiskFull(path="/mnt/logs", doing="scanning"))
