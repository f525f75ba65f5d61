"""Files on S3: the requests of readers, and what writers leave that are killed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from dagflow.storage import file_system, open_planned, read_fully
from dagflow.storage.remote.ranges import PIECE
from dagflow.testing import run_dag
from tests.conformance.apps import line_filter, vectorised
from tests.storage.s3 import oracle
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault

pytestmark = pytest.mark.full
MIB = 1 << 20


@pytest.fixture
def small_parts(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large files are uploaded in parts of 5 MiB, the least that S3 takes."""
    from s3fs import S3FileSystem

    monkeypatch.setattr(S3FileSystem, "default_block_size", 5 * MIB)


def test_a_block_is_read_by_ranges_within_it(bucket: Bucket) -> None:
    url = bucket.url("in/a.bin")
    data = random.Random(3).randbytes(4 * PIECE)
    oracle.put(url, data)
    (status,) = file_system(url).scan(bucket.url("in"))
    start, stop = PIECE // 2, 3 * PIECE + 5
    bucket.proxy.forget()
    with open_planned(status, stop) as stream:
        stream.seek(start)
        assert read_fully(stream, stop - start) == data[start:stop]
    ranges = [tuple(map(int, each.range.removeprefix("bytes=").split("-"))) for each in bucket.proxy.requests]
    assert sorted(ranges) == [(at, min(at + PIECE, stop) - 1) for at in range(start, stop, PIECE)]
    assert dict(bucket.proxy.counts()) == {"get": len(ranges)}


@pytest.mark.parametrize("fault", [None, Fault.UNCONDITIONAL], ids=["the server refuses", "the server ignores If-Match"])
def test_a_file_that_has_changed_since_it_was_listed_is_not_read(bucket: Bucket, fault: Fault | None) -> None:
    bucket.proxy.schedule = lambda request: fault
    url = bucket.url("in/a.txt")
    oracle.put(url, b"one")
    (status,) = file_system(url).scan(bucket.url("in"))
    oracle.put(url, b"two")
    with pytest.raises(OSError), open_planned(status) as stream:  # noqa: PT011  # the reader words it
        stream.read(3)


@pytest.mark.parametrize("fault", [Fault.UNSENT, Fault.LOST, Fault.SLOW_DOWN])
def test_a_range_is_requested_again_after_a_fault(bucket: Bucket, fault: Fault) -> None:
    url = bucket.url("in/a.txt")
    oracle.put(url, b"one")
    (status,) = file_system(url).scan(bucket.url("in"))
    faults = iter([fault])
    bucket.proxy.schedule = lambda request: next(faults, None)
    with open_planned(status) as stream:
        assert stream.read(3) == b"one"


def begin(url: str) -> Any:
    """Write a part of a large file."""
    writer: Any = file_system(url).create(url)
    writer.write(b"x" * 6 * MIB)
    return writer


def forsake(writer: Any) -> None:
    """Leave a file as a process leaves it that is killed."""
    writer.closed = True


@pytest.mark.usefixtures("small_parts")
class TestUploads:
    def test_a_file_that_is_abandoned_leaves_nothing(self, bucket: Bucket) -> None:
        url = bucket.url("out/a")
        file_system(url).abandon(begin(url))
        assert b"<UploadId>" not in bucket.uploads()
        assert not file_system(url).exists(url)

    def test_uploads_of_killed_writers_are_removed_below_a_folder(self, bucket: Bucket) -> None:
        for name in ("out/a", "out/b", "other/a"):
            forsake(begin(bucket.url(name)))
        names: list[str] = []

        def is_stale(name: str) -> bool:
            names.append(name)
            return name == "a"

        assert file_system(bucket.url()).remove_uploads(bucket.url("out"), is_stale) == 1
        assert sorted(names) == ["a", "b"]
        assert bucket.uploads().count(b"<UploadId>") == 2

    def test_a_launch_removes_the_uploads_that_killed_tasks_have_left(self, bucket: Bucket) -> None:
        oracle.put(bucket.url("in/a.txt"), b"a\nb\n")
        forsake(begin(bucket.url("out/_dagflow/staging/0000000000.killed.s0-0000-x.0")))
        forsake(begin(bucket.url("out/of-another-program")))
        run_dag(line_filter(bucket.url("in"), bucket.url("out"), vectorised()))  # type: ignore[arg-type]
        assert oracle.wrong(bucket.url("out"), oracle.Counter([b"a", b"b"])) == []
        uploads = bucket.uploads()
        assert b"killed" not in uploads
        assert b"of-another-program" in uploads

    @pytest.mark.parametrize("fault", [Fault.DENIED, Fault.NOT_IMPLEMENTED])
    def test_a_launch_that_may_not_list_uploads_warns_once(self, bucket: Bucket, fault: Fault) -> None:
        oracle.put(bucket.url("in/a.txt"), b"a\nb\n")
        bucket.proxy.schedule = lambda request: fault if request.kind == "list uploads" else None
        report = run_dag(line_filter(bucket.url("in"), bucket.url("out"), vectorised()))  # type: ignore[arg-type]
        assert oracle.wrong(bucket.url("out"), oracle.Counter([b"a", b"b"])) == []
        (warning,) = report.warnings
        assert warning.startswith(f"{bucket.url('out')}: uploads that killed tasks leave unfinished cannot be removed")
        assert "s3:ListBucketMultipartUploads" in warning
