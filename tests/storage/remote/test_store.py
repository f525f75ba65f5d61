from __future__ import annotations

import errno
import pickle
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from dagflow.storage import errors, file_system, join, open_store
from dagflow.storage.remote import store as module
from dagflow.storage.remote.files import remote_file_system


@pytest.fixture
def url():
    made = f"memory://store-{uuid.uuid4().hex}"
    yield made
    file_system(made).remove_tree(made)


class Driver:
    """An object store's driver: `answers` holds an exception a call of pipe_file, raised after or before its effect."""

    def __init__(self, *answers: tuple[str, Exception] | None, readable: bool = True) -> None:
        self.answers = list(answers)
        self.objects: dict[str, bytes] = {}
        self.readable = readable
        self.calls = 0

    def pipe_file(self, path: str, data: bytes, mode: str) -> None:
        assert mode == "create"
        self.calls += 1
        answer = self.answers.pop(0) if self.answers else None
        if answer is not None and answer[0] == "before":
            raise answer[1]
        if path in self.objects:
            raise FileExistsError(path)
        self.objects[path] = data
        if answer is not None:
            raise answer[1]

    def cat_file(self, path: str) -> bytes:
        if not self.readable:
            raise ConnectionError("cannot connect")
        try:
            return self.objects[path]
        except KeyError:
            raise FileNotFoundError(path) from None


class Files:
    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    def resolve(self, path: str) -> tuple[Driver, str]:
        return self.driver, path


def an_object_store(driver: Driver, url: str) -> module.FsspecStore:
    made = module.FsspecStore(url)
    made._scheme = "s3"
    made._files = Files(driver)  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("scheme", ["http://host/x", "ftp://host/x", "local://x"])
def test_kinds_of_url_without_a_conditional_write_are_refused(scheme, monkeypatch):
    made = remote_file_system("memory://")
    monkeypatch.setattr(module, "remote_file_system", lambda _: made)
    with pytest.raises(errors.StoreRefused, match="offers no write that succeeds only if the name is absent"):
        open_store(scheme)


def test_a_store_in_memory_is_the_processes(url):
    first = open_store(url)
    assert first.create("log/0", b"x")
    second = pickle.loads(pickle.dumps(first))
    assert second.read("log/0") == b"x"
    assert not second.create("log/0", b"y")
    assert first.url == url
    with file_system(url).open(join(url, "log", "0")) as stream:
        assert stream.read() == b"x"


def test_looking_and_writing_in_memory_is_one_step(url, monkeypatch):
    made = open_store(url)
    real = MemoryFileSystem.pipe_file

    def slow(self, path, value, **options):
        time.sleep(0.005)
        real(self, path, value, **options)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", slow)
    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(lambda number: made.create("a", b"%d" % number), range(4))) == 1


def test_hidden_files_are_not_listed(url):
    made = open_store(url)
    made.create("a", b"")
    file_system(url).create(join(url, ".staging", "b")).close()
    file_system(url).create(join(url, "c", ".tmp")).close()
    assert made.names() == ["a"]


def test_an_answer_that_was_lost_is_found_by_reading(url):
    driver = Driver(("after", TimeoutError("lost")))
    assert an_object_store(driver, url).create("a", b"mine")
    assert driver.calls == 1
    assert not an_object_store(driver, url).create("a", b"other")


def test_a_request_that_was_lost_is_sent_again(url):
    driver = Driver(("before", TimeoutError("lost")), ("before", OSError(errno.EBUSY, "conflict")))
    assert an_object_store(driver, url).create("a", b"mine")
    assert driver.calls == 3


def test_a_request_that_lands_late_is_recognised(url):
    driver = Driver(("before", TimeoutError("lost")))

    class Late(Driver):
        def cat_file(self, path: str) -> bytes:
            if path not in self.objects:
                self.objects[path] = b"mine"  # the first request arrives after we looked
                raise FileNotFoundError(path)
            return super().cat_file(path)

    driver = Late(("before", TimeoutError("lost")))
    assert an_object_store(driver, url).create("a", b"mine")


def test_a_lost_race_after_a_lost_answer(url):
    driver = Driver(("before", TimeoutError("lost")))
    driver.objects[join(url, "a")] = b"other"
    assert not an_object_store(driver, url).create("a", b"mine")
    assert driver.objects == {join(url, "a"): b"other"}


def test_the_stores_own_refusal_is_understood_however_it_is_worded(url):
    refused = OSError(errno.EINVAL, "At least one of the pre-conditions you specified did not hold")
    cause = Exception()
    cause.response = {"Error": {"Code": "PreconditionFailed"}}  # type: ignore[attr-defined]
    refused.__cause__ = cause
    driver = Driver(("before", refused))
    driver.objects[join(url, "a")] = b"other"
    assert not an_object_store(driver, url).create("a", b"mine")
    assert driver.calls == 1


def test_a_drivers_own_second_request_is_recognised(url):
    """The answer to the first one was lost, the driver asked again by itself, and the store refused that."""
    driver = Driver(("before", FileExistsError("a")))
    driver.objects[join(url, "a")] = b"mine"
    assert an_object_store(driver, url).create("a", b"mine")
    assert driver.calls == 1


def test_what_cannot_be_found_out_is_said(url):
    driver = Driver(("after", TimeoutError("lost")), readable=False)
    with pytest.raises(errors.OutcomeUnknown, match="TimeoutError: lost; reading it back failed too: ConnectionError") as caught:
        an_object_store(driver, url).create("a", b"mine")
    assert caught.value.url == join(url, "a")
    assert driver.objects == {join(url, "a"): b"mine"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PermissionError("no"), errors.NotWritable),
        (RuntimeError("?"), errors.OutcomeUnknown),
        (OSError(5, "x"), errors.DeviceFailed),
    ],
)
def test_a_store_that_keeps_failing(url, error, kind):
    driver = Driver(*[("before", error)] * 3)
    with pytest.raises(kind):
        an_object_store(driver, url).create("a", b"mine")


@pytest.mark.parametrize("error", [TypeError("unexpected keyword 'mode'"), NotImplementedError("create")])
def test_a_driver_that_is_too_old(url, error):
    with pytest.raises(errors.StoreRefused, match="its driver refuses conditional writes"):
        an_object_store(Driver(("before", error)), url).create("a", b"mine")
