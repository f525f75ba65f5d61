"""The exceptions of drivers and the answers of servers, as users read them."""

from __future__ import annotations

import errno
import functools
import http.server
import os
import threading
from pathlib import Path

import pytest

from dagflow.errors import BucketMissing, CredentialsMissing, FolderPage, StorageUnreachable
from dagflow.storage import file_system, is_transient, opened_status
from dagflow.storage.remote.drivers import driver_errors
from dagflow.storage.remote.files import FsspecFileSystem, _status
from dagflow.storage.urls import BUCKETS
from tests.storage.remote.test_store import Driver, an_object_store, url  # noqa: F401  # a fixture


class ClientError(Exception):
    """As botocore's."""

    def __init__(self, code: str) -> None:
        super().__init__(f"An error occurred ({code})")
        self.response = {"Error": {"Code": code}}


class HttpResponseError(Exception):
    """As Azure's."""

    def __init__(self, code: str) -> None:
        super().__init__(f"It says {code}.\nRequestId: 1")
        self.error_code = code


class EndpointConnectionError(Exception):
    pass


class NoCredentialsError(Exception):
    pass


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (EndpointConnectionError("no"), StorageUnreachable),
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), StorageUnreachable),
        (caused(FileNotFoundError("x"), ConnectionError("no route")), StorageUnreachable),
        (NoCredentialsError("none"), CredentialsMissing),
        (caused(PermissionError("x"), ClientError("InvalidAccessKeyId")), CredentialsMissing),
        (caused(FileNotFoundError("x"), ClientError("NoSuchBucket")), BucketMissing),
        (caused(PermissionError("x"), HttpResponseError("AuthorizationFailure")), CredentialsMissing),
        (HttpResponseError("ContainerNotFound"), BucketMissing),
        (caused(FileNotFoundError("x"), HttpResponseError("BlobNotFound")), FileNotFoundError),
        (FileNotFoundError("x"), FileNotFoundError),
        (caused(FileNotFoundError("x"), ClientError("NoSuchKey")), FileNotFoundError),
        (KeyError("a mistake in code"), KeyError),
    ],
)
def test_what_a_driver_raises_is_told_by_its_cause(error: Exception, told: type[Exception]) -> None:
    with pytest.raises(told) as caught, driver_errors("s3://bucket/x", "looking at it"):
        raise error
    if told is StorageUnreachable:
        assert is_transient(caught.value)
    assert "RequestId" not in str(caught.value)
    assert getattr(caught.value, "exit_code", 3) == 3


def test_no_bucket_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    files = FsspecFileSystem("memory")
    monkeypatch.setattr(files, "resolve", lambda path: pytest.fail("nothing is asked of the driver"))
    for scheme in BUCKETS:
        files.scheme = scheme
        files.make_folders(f"{scheme}://bucket/x")


def test_writers_in_each_others_way_are_let_through(url: str, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    pauses: list[float] = []
    monkeypatch.setattr("dagflow.storage.remote.store.time.sleep", pauses.append)
    conflict = caused(OSError(errno.EBUSY, "conflict"), ClientError("ConditionalRequestConflict"))
    driver = Driver(*[("before", conflict)] * 7)
    assert an_object_store(driver, url).create("a", b"mine")
    assert (driver.calls, len(pauses)) == (8, 7)
    driver.answers = [("before", conflict)] * 5
    assert not an_object_store(driver, url).create("a", b"other")


def test_a_bucket_that_is_missing_is_told_when_a_record_is_published(url: str) -> None:  # noqa: F811
    missing = caused(FileNotFoundError("x"), ClientError("NoSuchBucket"))
    with pytest.raises(BucketMissing):
        an_object_store(Driver(("before", missing)), url).create("a", b"mine")


def test_what_servers_of_http_say_of_a_file() -> None:
    info = {"size": 5, "type": "file", "url": "http://host/a.txt", "mimetype": "text/plain"}
    old = _status("http://host/a.txt", {**info, "ETag": '"1"', "Last-Modified": "Sun, 22 Nov 2026 10:00:00 GMT"})
    assert (old.version, old.modified_ns) == ('"1"', 1795341600 * 10**9)
    assert _status("http://host/a.txt", info).version is None
    for page in ("http://host/folder/", "http://host/folder/?C=M", "http://host/folder"):
        with pytest.raises(FolderPage, match="name each file"):
            _status("http://host/folder", {**info, "url": page, "mimetype": "text/html"})
    assert _status("http://host/a.html", {**info, "url": "http://host/a.html", "mimetype": "text/html"}).length == 5


def test_a_server_on_this_machine(tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("one")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    try:
        before = file_system(base).status(f"{base}/folder/a.txt")
        os.utime(tmp_path / "folder" / "a.txt", (1_700_000_000, 1_700_000_000))
        assert file_system(base).status(f"{base}/folder/a.txt") != before
        for folder in (f"{base}/folder", f"{base}/folder/"):
            with pytest.raises(FolderPage):
                file_system(base).status(folder)
        with pytest.raises(FileNotFoundError):
            file_system(base).status(f"{base}/none.txt")
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(StorageUnreachable):
        file_system(base).status(f"{base}/folder/a.txt")


def test_what_a_stream_knows_is_not_asked_for_again() -> None:
    class Stream:
        details = {"size": 5, "type": "file", "ETag": "1"}

    found = opened_status(Stream(), "s3://bucket/a")  # type: ignore[arg-type]
    assert found is not None
    assert (found.path, found.length, found.version) == ("s3://bucket/a", 5, "1")
    assert opened_status(Stream(), "/a") is None  # type: ignore[arg-type]
    Stream.details = None  # type: ignore[assignment]
    assert opened_status(Stream(), "s3://bucket/a") is None  # type: ignore[arg-type]
