"""Tables on S3 are written exactly once, while launches are killed and requests fail."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.chaos import cases
from tests.chaos.kills import SEED, kill_at_random
from tests.chaos.tables_on_s3 import Storms, TablesSeries, launched, lines_of, tables
from tests.storage.s3 import oracle
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault

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
    killed(["driver"] * 2, files=2)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(("mode", "kinds"), [("append", 100), ("upsert", 50)])
def test_a_hundred_kills(mode: str, kinds: int, killed: Callable[..., None]) -> None:
    killed(kinds, files=8, mode=mode)


def wrong_after_storms(bucket: Bucket, folder: Path, storms: Storms, files: int, mode: str = "append") -> list[str]:
    """Launch once, while storms strike. Return what is wrong."""
    application, output = tables(bucket, folder, files, mode), f"out-{folder.name}"
    bucket.proxy.schedule = storms
    status, said = launched(application, output, "--retry-delay", "0.1", "--window-attempts", "8")
    bucket.proxy.schedule = lambda request: None
    found = [] if status == 0 else [f"the launch ended with {status}: {said}"]
    return found + list(application.wrong(folder / output, True)) + oracle.wrong(bucket.url(output), lines_of(files))


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_store_that_fails_again_and_again_for_a_while(bucket: Bucket, tmp_path: Path) -> None:
    storms = Storms(every=60, length=13, faults=(Fault.LOST, Fault.SLOW_DOWN))
    assert wrong_after_storms(bucket, tmp_path, storms, files=2) == []
    assert set(storms.struck) == set(storms.faults)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_storms_at_any_time(bucket: Bucket, seed: str, mode: str, tmp_path: Path) -> None:
    rng = random.Random(f"{seed} {mode}")
    for number in range(20):
        faults = tuple(rng.choice((Fault.SLOW_DOWN, Fault.LOST, Fault.UNSENT, Fault.CONFLICT)) for _ in range(3))
        storms = Storms(every=rng.randrange(30, 90), length=rng.randrange(1, 25), faults=faults)
        folder = tmp_path / f"{number}"
        folder.mkdir()
        wrong = wrong_after_storms(bucket, folder, storms, files=3, mode=mode)
        assert wrong == [], f"{SEED}={seed}: {storms}"
