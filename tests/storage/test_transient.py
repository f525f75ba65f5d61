"""Which failures of storage may pass."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any

import pytest

from dagflow.errors import DeviceFailed, DiskFull, NotWritable, OutcomeUnknown, StorageBusy, StorageError
from dagflow.storage import explained, is_transient, translate


class Refused(Exception):
    """An exception of an object store's driver: not an OSError, with a status somewhere."""

    def __init__(self, **fields: Any) -> None:
        super().__init__("slow down")
        self.__dict__.update(fields)


@pytest.mark.parametrize("number", ["EAGAIN", "EBUSY", "ETIMEDOUT", "ESTALE", "ECONNRESET", "ENETUNREACH"])
def test_what_the_operating_system_takes_back_later(number: str) -> None:
    error = OSError(getattr(errno, number), "later")
    assert is_transient(error)
    assert isinstance(translate(error, "/x", "publishing a record"), StorageBusy)


@pytest.mark.parametrize(
    "number", ["ENOSPC", "EDQUOT", "EACCES", "EPERM", "EROFS", "EIO", "ENOENT", "EEXIST", "ENAMETOOLONG", "EMFILE"]
)
def test_what_somebody_must_see_to(number: str) -> None:
    error = OSError(getattr(errno, number), "no")
    assert not is_transient(error)
    assert not is_transient(translate(error, "/x", "publishing a record"))


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError("peer"),
        Refused(status=429),
        Refused(status_code=503),
        Refused(code="500"),
        Refused(response={"ResponseMetadata": {"HTTPStatusCode": 503}}),
        Refused(response=SimpleNamespace(status_code=502)),
        OutcomeUnknown(url="s3://b/x", reason="no answer"),
        StorageBusy(path="/x", doing="reading"),
    ],
)
def test_answers_of_object_stores(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        Refused(status=403),
        Refused(code="NoSuchBucket"),
        Refused(response=None),
        ValueError("500"),
        DiskFull(path="/x", doing="writing"),
        NotWritable(path="/x", doing="writing"),
        DeviceFailed(path="/x", doing="writing"),
        StorageError(path="/x", doing="writing"),
    ],
)
def test_what_will_be_the_same_next_time(error: Exception) -> None:
    assert not is_transient(error)


def test_drivers_that_raise_errors_of_their_own_are_explained_too() -> None:
    with pytest.raises(StorageBusy) as caught, explained("s3://b/x", "writing the output"):
        raise Refused(status=503)
    assert str(caught.value) == "s3://b/x: the storage is not responding (slow down), while writing the output."
    with pytest.raises(Refused), explained("s3://b/x", "writing the output"):
        raise Refused(status=403)
    with pytest.raises(OutcomeUnknown), explained("s3://b/x", "writing the output"):
        raise OutcomeUnknown(url="s3://b/x", reason="no answer")
