"""Requests to object stores run several at a time, and elsewhere in turn."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from dagflow.runtime.rebalancing.forms import collect
from dagflow.runtime.run_folder import files as run_folder_files
from dagflow.runtime.run_folder.files import named
from dagflow.runtime.run_folder.reports import StagedFile, TaskReport
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.windows import directories
from dagflow.runtime.windows.directories import Directories
from dagflow.storage import MemoryStore, at_once

TOGETHER = 8
WAIT = 60.0  # seconds; they come together at once, where nothing is wrong
BUCKET = "s3://bucket/out"


class Meeting:
    """Calls wait for each other: none returns before eight have come."""

    def __init__(self) -> None:
        self.barrier = threading.Barrier(TOGETHER)

    def __call__(self, value: Any = None) -> Any:
        self.barrier.wait(WAIT)
        return value


def test_requests_to_an_object_store_run_at_once_and_answers_keep_their_order() -> None:
    assert at_once(Meeting(), range(2 * TOGETHER), BUCKET) == list(range(2 * TOGETHER))


@pytest.mark.parametrize("place", ["/data", "memory://data"])
def test_elsewhere_they_run_in_turn_in_this_thread(place: str) -> None:
    threads = at_once(lambda value: threading.current_thread(), range(3), place)
    assert set(threads) == {threading.current_thread()}


def test_the_first_error_is_raised() -> None:
    def call(value: int) -> int:
        if value % 2:
            raise OSError(f"request {value}")
        return value

    with pytest.raises(OSError, match="request 1"):
        at_once(call, range(5), BUCKET)


class Remote(MemoryStore):
    """An object store that answers reads once eight have come."""

    url = BUCKET

    def __init__(self) -> None:
        super().__init__()
        self.meeting = Meeting()

    def read(self, name: str) -> bytes | None:
        return super().read(self.meeting(name))


def test_reports_are_collected_at_once() -> None:
    log = WindowLog(Remote())
    tasks = [TaskSpec(window=0, epoch="r", stage="s0", partition=n, partitions=TOGETHER) for n in range(TOGETHER)]
    for task in tasks[:-1]:
        log.report(task.report_name, TaskReport(task.name, 0))
    reports, _ = collect(log, tasks)
    assert [report and report.task for report in reports] == [*(task.name for task in tasks[:-1]), None]


class RemoteFiles:
    """Files in an object store, which answers once eight requests of a kind have come."""

    def __init__(self, present: set[str]) -> None:
        self.present = present
        self.meetings = {"look": Meeting(), "rename": Meeting()}

    def is_taken(self, path: str) -> bool:
        self.meetings["look"]()
        return path in self.present

    def rename(self, source: str, target: str) -> None:
        self.meetings["rename"]()
        if source not in self.present:
            raise FileNotFoundError(source)
        self.present.remove(source)
        self.present.add(target)

    def make_folders(self, path: str) -> None: ...

    def sync_folder(self, path: str) -> None: ...


def staged(number: int) -> StagedFile:
    return StagedFile("out", BUCKET, f"day/part-{number}", f"{BUCKET}/_dagflow/staging/0000000000.{number}", 1, 1)


def test_files_get_their_final_names_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [staged(number) for number in range(TOGETHER)]
    remote = RemoteFiles({file.attempt for file in files[:-1]})
    monkeypatch.setattr(directories, "file_system", lambda path: remote)
    assert Directories(durable=True).give_names(0, files) == files[-1:], "it is neither staged nor published"
    assert remote.present == {f"{BUCKET}/{file.name}" for file in files[:-1]}


def test_names_are_looked_for_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    remote = RemoteFiles({f"{BUCKET}/part-1"})
    looks: list[str] = []

    def look(path: str) -> bool:
        looks.append(path)
        if len(looks) <= TOGETHER:
            remote.meetings["look"]()
        return path in remote.present

    monkeypatch.setattr(remote, "is_taken", look)
    monkeypatch.setattr(run_folder_files, "file_system", lambda path: remote)
    files = [StagedFile("out", BUCKET, f"part-{n}", f"{BUCKET}/_dagflow/staging/{n}", 1, 1) for n in range(TOGETHER)]
    found = named(3, [TaskReport("s0-0000", 0, files=files)])
    assert [file.name for file in found] == ["part-0", "part-1-000003-0000", *(f"part-{n}" for n in range(2, TOGETHER))]
    assert len(looks) == TOGETHER + 1, "only the name that was taken takes another look"
