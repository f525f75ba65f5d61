"""Fault cases of a whole run, in this process. The numbers are those of the table in tests/ledger/README.md."""

from __future__ import annotations

import datetime
import errno
import itertools
import random
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import launch
from dagflow.errors import DagflowError, DiskFull, FolderInUse, LedgerRuleError, NotWritable, OutputOwned
from dagflow.ledger import AddData, Ledger, SetSchema
from dagflow.local.runner import LocalRunner
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.runner import TasksDied
from dagflow.runtime.stage.outcome import TaskOutcome
from dagflow.runtime.stage.program import Job
from dagflow.runtime.task.execute import execute
from dagflow.runtime.windows.commit import sweep
from dagflow.storage import FolderLock
from dagflow.testing import FakeClock
from tests.conformance.faults.dying import Deadly, Failing, dies, watched
from tests.conformance.faults.oracle import rows_of, wrong
from tests.runtime.windows.test_datasets import WINDOWS, Application

ROWS = list("abcdef")


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [tmp_path / "one", tmp_path / "two"]


@pytest.fixture
def application(folders: list[Path]) -> Application:
    return Application(WINDOWS, [str(folder) for folder in folders])


def run(application: Any, runner: Any = "local", **options: Any) -> Any:
    options = {"clock": FakeClock(), "durability": "process", **options}
    return launch(application, runner=runner, progress="none", **options).report


def check(application: Any, folders: list[Path], rows: list[str] = ROWS) -> None:
    assert wrong(dict.fromkeys(folders, rows), lambda: run(application)) == []


def into(*parts: str, event: str = "") -> Callable[[str, tuple[str, ...]], bool]:
    """Touches of paths with all these parts."""
    return lambda what, paths: event in what and all(part in paths[-1] for part in parts)


STEPS: dict[str, tuple[Callable[[str, tuple[str, ...]], bool], int]] = {
    # what is touched, and how often before
    "1 before any write": (into(""), 0),
    "2 after some of the data files": (into("/staging/", event="open"), 1),
    "2 after some of the files have their names": (into("/part-", event="rename"), 1),
    "3 and 4 after all data, before the entry": (into("one/", "/ledger/", event="open"), 3),
    "5 before the entry has its bytes": (into("one/", "/ledger/", ".tmp-", event="open"), 3),
    "6 before the entry has its name": (into("one/", "/ledger/0", event="link"), 3),
    "7 before the hint": (into("one/", "ledger-hint", event="open"), 3),
    "8 after the hint": (into("done/", event="open"), 0),
    "11 between two siblings": (into("two/", "/ledger/", event="open"), 3),
}


@pytest.mark.parametrize("window", range(3))
@pytest.mark.parametrize("step", list(STEPS))
def test_1_to_8_and_11_a_crash(folders: list[Path], application: Application, tmp_path: Path, step: str, window: int) -> None:
    wanted, before = STEPS[step]
    for done in range(window):
        run(application, max_windows=1)
        assert rows_of(folders[0]).total() == len(list(itertools.chain(*WINDOWS[: done + 1])))
    if window and before == 3:
        before = 0  # seed, schema and source are the first three entries
    assert dies(lambda: run(application), Deadly(str(tmp_path), before, wanted))
    check(application, folders)


class TestTasks12:
    """Attempts of a task beside, before and after the one that counts."""

    def test_every_task_runs_twice(self, folders: list[Path], application: Application) -> None:
        class Twice(LocalRunner):
            def start(self, job: Job) -> Future[list[TaskOutcome]]:
                copies = super().start(job)
                super().start(job)
                return copies

        run(application, Twice())
        check(application, folders)

    def test_a_window_is_given_up_after_all_of_its_tasks_have_reported(
        self, folders: list[Path], application: Application
    ) -> None:
        class Lost(LocalRunner):
            def start(self, job: Job) -> Future[list[TaskOutcome]]:
                future = super().start(job)
                if "." not in job.epoch:
                    future = Future()
                    future.set_exception(TasksDied("the answer is lost"))
                return future

        run(application, Lost())
        check(application, folders)

    def test_zombies_write_when_their_window_is_long_done(self, folders: list[Path], application: Application) -> None:
        class Haunted(LocalRunner):
            jobs: list[Job] = []

            def start(self, job: Job) -> Future[list[TaskOutcome]]:
                for old in self.jobs:
                    log = WindowLog.open(old.run_folder, old.durable)
                    for spec in old.tasks:
                        execute(old.programs[spec.stage], spec, log, "zombie")
                self.jobs.append(job)
                return super().start(job)

        run(application, Haunted())
        check(application, folders)


def broken(application: Application, tmp_path: Path, code: int, kind: type[DagflowError], stride: int) -> int:
    """Lets every `stride`-th touch that writes fail; how many that were."""
    for number in itertools.count(0, stride):
        folders = [tmp_path / f"{number}-{name}" for name in ("one", "two")]
        here = attrs.evolve(application, outputs=[str(folder) for folder in folders])
        failing = Failing(str(tmp_path / f"{number}-"), number, code)
        told = ""
        with watched(failing):
            try:
                run(here)
            except kind as error:
                told = str(error)
        assert not told or str(tmp_path / f"{number}-") in told
        check(here, folders)
        if not failing.has_failed:
            return number
    raise AssertionError("unreachable")


@pytest.mark.full
@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.nightly), 13])
def test_19_a_disk_that_is_full_from_any_touch_on(application: Application, tmp_path: Path, stride: int) -> None:
    assert broken(application, tmp_path, errno.ENOSPC, DiskFull, stride) > 50


@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.nightly), 17])
def test_20_a_disk_that_becomes_read_only(application: Application, tmp_path: Path, stride: int) -> None:
    assert broken(application, tmp_path, errno.EROFS, NotWritable, stride) > 50


def test_20_a_ledger_that_may_not_be_written(folders: list[Path], application: Application) -> None:
    run(application, max_windows=1)
    with watched(Failing(str(folders[1] / "_dagflow" / "ledger"), 0, errno.EACCES)), pytest.raises(NotWritable) as caught:
        run(application)
    assert str(folders[1] / "_dagflow" / "ledger") in str(caught.value)
    check(application, folders)


def test_28_sweeping_leaves_alone_what_is_in_flight(folders: list[Path], application: Application) -> None:
    run(application, max_windows=1)
    staging = folders[0] / "_dagflow" / "staging"
    for window in (0, 1, 2):
        (staging / f"{window:010d}.r.s0-0000-1.0").write_text("")
    log = WindowLog.open(str(folders[0] / "_dagflow"), durable=False)
    sweep(log, {0}, [str(folders[0])])
    assert sorted(path.name[:10] for path in staging.iterdir()) == ["0000000001", "0000000002"]
    check(application, folders)


class TestTwoPipelines29:
    def test_at_once_on_one_run_folder(self, folders: list[Path], application: Application) -> None:
        run(application, max_windows=1)
        with FolderLock(str(folders[0] / "_dagflow"), who="another"), pytest.raises(FolderInUse):
            run(application)
        check(application, folders)

    def test_with_another_run_folder_on_the_same_output(
        self, folders: list[Path], application: Application, tmp_path: Path
    ) -> None:
        run(application, max_windows=1)
        with pytest.raises(OutputOwned):
            run(application, run_folder=str(tmp_path / "other"))
        check(application, folders)


def test_30_an_application_goes_on_after_it_was_deployed_again(folders: list[Path], application: Application) -> None:
    run(application, max_windows=1)
    again = attrs.evolve(application, keep=lambda line: line not in "de")
    run(again)
    entries = [entry for entry in Ledger.open(str(folders[0])).entries() if isinstance(entry.event, AddData)]
    assert len({entry.event.txn.app_id for entry in entries}) == 1  # type: ignore[union-attr]
    assert [entry.event.txn.window_id for entry in entries] == [0, 1, 2]  # type: ignore[union-attr]
    check(again, folders, list("abcf"))


def test_38_all_rows_are_filtered(folders: list[Path], application: Application) -> None:
    nothing = attrs.evolve(application, keep=lambda line: False)
    run(nothing)
    data = [entry.data for entry in Ledger.open(str(folders[0])).entries() if entry.data is not None]
    assert [(each.txn.window_id, each.new_data, each.prev_offset) for each in data] == [
        (0, None, None),
        (1, None, None),
        (2, None, None),
    ]
    check(nothing, folders, [])


@pytest.mark.parametrize(
    "wanted",
    [
        into("reports/", event="link"),
        into("decision/", event="open"),
        into("/part-", event="rename"),
        into("/ledger/", event="link"),
    ],
    ids=["before the report", "before the decision", "before the names", "before the entry"],
)
def test_39_each_attempt_writes_its_rows_in_another_order(
    folders: list[Path], tmp_path: Path, wanted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision is final: hashes are of the files that stand there, not of what another attempt would have made."""
    windows = [[f"{window}{letter}" for letter in "uvwxyz"] for window in range(3)]
    rng, start = random.Random(39), LocalRunner.start

    def mixed(self: LocalRunner, job: Job) -> Future[list[TaskOutcome]]:
        works = (attrs.evolve(task.work, items=tuple(rng.sample(task.work.items, len(task.work.items)))) for task in job.tasks)
        tasks = tuple(attrs.evolve(task, work=work) for task, work in zip(job.tasks, works, strict=True))
        return start(self, attrs.evolve(job, tasks=tasks))

    monkeypatch.setattr(LocalRunner, "start", mixed)
    application = Application(windows, [str(folder) for folder in folders])
    run(application, max_windows=1)
    assert dies(lambda: run(application), Deadly(str(tmp_path), 0, wanted))
    check(application, folders, [line for window in windows for line in window])


def test_40_a_schema_that_changes(folders: list[Path], application: Application) -> None:
    run(application, max_windows=1)
    other = attrs.evolve(application, terminators=("", ""))
    with pytest.raises(LedgerRuleError, match="A new schema keeps the types of fields"):
        run(other)
    check(application, folders)
    schemas = [e.event for e in Ledger.open(str(folders[0])).entries() if isinstance(e.event, SetSchema)]
    assert len(schemas) == 1


def test_43_clocks_that_go_back_and_odd_days(folders: list[Path], application: Application) -> None:
    leap = datetime.datetime(2028, 2, 29, 23, 59, 59, tzinfo=datetime.UTC).timestamp()
    for now in (leap, leap - 3600, leap + 1):
        run(application, max_windows=1, clock=FakeClock(now=now))
    times = [entry.system_time for entry in Ledger.open(str(folders[0])).entries()]
    assert times == sorted(times)
    assert times[0] <= times[-1] <= (leap + 60) * 1e6
    check(application, folders)
