"""Tables on S3 are written exactly once, while launches are killed and requests fail."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.chaos import cases
from tests.chaos.kills import SEED, kill_at_random
from tests.chaos.tables_on_s3 import TablesSeries, tables
from tests.storage.s3.conftest import Bucket

pytestmark = [pytest.mark.chaos, pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")]


@pytest.fixture
def killed(bucket: Bucket, seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., None]:
    """Kills launches that write to tables in a bucket, and tells the figures."""
    pytest.importorskip("deltalake")
    pytest.importorskip("pyiceberg")

    def kill(kinds: list[str] | int, files: int, mode: str = "append") -> None:
        place = cases.local()
        figures = kill_at_random(tables(bucket, tmp_path, files, mode), place, seed, kinds, partial(TablesSeries, bucket))
        with capsys.disabled():
            print(f"\n{SEED}={seed}, tables on S3, {mode}: {figures}")

    return kill


@pytest.mark.full
@pytest.mark.timeout(600)
def test_some_kills(killed: Callable[..., None]) -> None:
    killed(["driver"] * 3, files=3)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("mode", "kinds"), [("append", 100), ("upsert", 50)])
def test_a_hundred_kills(mode: str, kinds: int, killed: Callable[..., None]) -> None:
    killed(kinds, files=8, mode=mode)
