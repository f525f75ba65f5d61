"""Files of object stores get their final names, and none is removed before all of its copy is there."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from fsspec.asyn import get_loop

from dagflow.storage.remote import azure
from dagflow.storage.remote.files import FsspecFileSystem
from dagflow.storage.transient import is_transient


class Driver:
    """A driver of an object store: its copies are in the states given, one for each look."""

    def __init__(self, states: list[str | None]) -> None:
        self.states, self.done, self.loop = states, list[str](), get_loop()
        self.service_client = self

    def cp_file(self, path: str, new: str) -> None:
        self.done.append(f"copy {path} to {new}")

    def rm_file(self, path: str) -> None:
        self.done.append(f"remove {path}")

    def mv(self, path: str, new: str) -> None:
        raise AssertionError("it takes * and [ for patterns")

    makedirs = mv

    def get_blob_client(self, container: str, blob: str) -> Driver:
        assert (container, blob) == ("box", "out/b [1].txt")
        return self

    async def __aenter__(self) -> Driver:
        return self

    async def __aexit__(self, *error: Any) -> None: ...

    async def get_blob_properties(self) -> Any:
        assert threading.current_thread() is not threading.main_thread(), "the driver's loop has a thread of its own"
        self.done.append("look")
        return SimpleNamespace(copy=SimpleNamespace(status=self.states.pop(0)))


COPIED = "copy box/staged/a to box/out/b [1].txt"


def rename(scheme: str, driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(azure, "_BETWEEN_LOOKS", 0.0)
    files = FsspecFileSystem("memory")
    files.scheme = scheme
    monkeypatch.setattr(files, "resolve", lambda path: (driver, path.partition("://")[2]))
    files.rename(f"{scheme}://box/staged/a", f"{scheme}://box/out/b [1].txt")


@pytest.mark.parametrize("states", [["success"], ["pending", "pending", "success"], [None]])
def test_azure_has_copied_a_file_before_it_is_removed(states: list[str | None], monkeypatch: pytest.MonkeyPatch) -> None:
    looks, driver = len(states), Driver(states)
    rename("abfs", driver, monkeypatch)
    assert driver.done == [COPIED, *["look"] * looks, "remove box/staged/a"]


@pytest.mark.parametrize("end", ["failed", "aborted"])
def test_a_copy_that_azure_has_ended_is_removed_and_the_step_is_tried_again(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(["pending", end])
    with pytest.raises(OSError, match=f"Azure has ended the copy: {end}") as caught:
        rename("az", driver, monkeypatch)
    assert is_transient(caught.value)
    assert driver.done == [COPIED, "look", "look", "remove box/out/b [1].txt"]


def test_google_copies_a_file_under_its_name_and_not_what_a_pattern_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver([])
    rename("gs", driver, monkeypatch)
    assert driver.done == [COPIED, "remove box/staged/a"]
