"""The number of requests that windows take on S3, counted between client and server."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dagflow.testing import run_dag
from operators import BlockReader, RecordWriter
from operators.files.scanner import TimeBasedDirectoryScanner
from tests.conformance.apps import chain, vectorised
from tests.storage.s3 import oracle
from tests.storage.s3.conftest import Bucket

pytestmark = pytest.mark.full
FILES = 50
OF_A_WINDOW = 13
"""One of them in every second window or so, where layers of a state are merged."""
OF_NOTHING_NEW = 5
OF_A_LAUNCH = 66
OF_A_FIRST_LAUNCH = 120
OF_A_TRIAL = 22


def put(bucket: Bucket, windows: int) -> None:
    """Write the files of so many windows."""
    for number in range(FILES * windows):
        bucket.put(f"in{windows}/{number:04d}.txt", b"%d\n" % number)


def launch(bucket: Bucket, windows: int) -> Counter[str]:
    """Return the requests of a launch, in a process that has listed nothing before; check the output of so many windows."""
    from s3fs import S3FileSystem

    source: Any = bucket.url(f"in{windows}")
    output = bucket.url(f"out{windows}")
    S3FileSystem.clear_instance_cache()
    bucket.proxy.forget()
    reader = BlockReader[str](max_readers=1)
    application = chain(source, vectorised(), sink=RecordWriter(output), reader=reader, blocks_threshold=FILES)
    run_dag(application, lock_lease=3600.0)  # so that a slow machine renews nothing meanwhile
    counts = bucket.proxy.counts()
    assert oracle.wrong(output, Counter(b"%d" % number for number in range(FILES * windows))) == []
    return counts


def test_a_window_of_small_files(bucket: Bucket) -> None:
    put(bucket, 1)
    put(bucket, 3)
    few, many = launch(bucket, 1), launch(bucket, 3)
    assert few.total() <= FILES + OF_A_WINDOW + OF_A_FIRST_LAUNCH, few
    more = {kind: (many[kind] - few[kind]) / 2 for kind in many}
    assert more["list"] == 0, "one listing finds the files of all windows"
    assert sum(more.values()) <= FILES + OF_A_WINDOW, dict(more)


def test_a_launch_with_nothing_new(bucket: Bucket) -> None:
    put(bucket, 1)
    launch(bucket, 1)
    for _ in range(2):
        counts = launch(bucket, 1)
        assert counts.total() <= OF_A_LAUNCH, counts


def test_a_store_is_tried_once_a_launch(bucket: Bucket) -> None:
    put(bucket, 1)
    launch(bucket, 1)
    of_trials = [request for request in bucket.proxy.requests if "/probe/" in request.path or request.kind == "delete many"]
    tried = {request.key.partition(".")[0] for request in of_trials if request.kind == "create"}
    assert len(tried) == 1, "the folder of the ledger is the run folder"
    assert len(of_trials) <= OF_A_TRIAL


def test_a_look_that_finds_nothing_new(bucket: Bucket) -> None:
    for number in range(FILES):
        bucket.put(f"in/{number}.txt", b"x\n")
    scanner = TimeBasedDirectoryScanner(files=[bucket.url("in")])
    bucket.proxy.forget()
    assert len(list(scanner.scan_once())) >= 1
    assert sum(bucket.proxy.counts().values()) <= OF_NOTHING_NEW, bucket.proxy.requests
