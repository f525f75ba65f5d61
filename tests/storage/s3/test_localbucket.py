"""Launches on a store that ignores `If-Match`: dagflow sends it, and does not rely on it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dagflow.storage import file_system, open_planned
from dagflow.testing import run_dag
from tests.conformance.apps import line_filter, vectorised
from tests.storage.s3 import oracle
from tests.storage.s3.conftest import Bucket

pytestmark = [pytest.mark.full, pytest.mark.parametrize("s3_server", ["localbucket"], indirect=True)]


def launch(bucket: Bucket) -> None:
    source: Any = bucket.url("in")
    run_dag(line_filter(source, bucket.url("out"), vectorised(), blocks_threshold=1))  # type: ignore[arg-type]


def test_it_answers_requests_for_another_version(bucket: Bucket) -> None:
    """So the tests below prove something."""
    import boto3

    bucket.put("a", b"data")
    client = boto3.client("s3", endpoint_url=f"http://{bucket.proxy.server}")
    assert client.get_object(Bucket=bucket.name, Key="a", IfMatch='"other"')["Body"].read() == b"data"


def test_each_row_is_written_once(bucket: Bucket) -> None:
    expected: Counter[bytes] = Counter()
    for number in range(4):
        bucket.put(f"in/{number}.txt", b"%d\n.\n" % number)
        expected[b"%d" % number] += 1
        launch(bucket)
    assert oracle.wrong(bucket.url("out"), expected) == []


def test_a_file_that_is_replaced_is_not_read_as_the_planned_one(bucket: Bucket) -> None:
    url = bucket.url("in/a.txt")
    oracle.put(url, b"one")
    (status,) = file_system(url).scan(bucket.url("in"))
    oracle.put(url, b"two")
    with pytest.raises(OSError), open_planned(status) as stream:  # noqa: PT011  # the reader words it
        stream.read(3)
