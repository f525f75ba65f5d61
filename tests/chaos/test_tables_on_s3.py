"""Tables on S3 are written exactly once, while launches are killed and requests fail."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.chaos import cases
from tests.chaos.kills import SEED, kill_at_random
from tests.chaos.tables_on_s3 import Pause, Storms, TablesSeries, launched, lines_of, overtaken, tables
from tests.storage.s3 import oracle
from tests.storage.s3.conftest import Bucket
from tests.storage.s3.proxy import Fault, Request

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


def wrong_after_storms(
    bucket: Bucket, folder: Path, storms: Storms, files: int, mode: str = "append", *, gives_up: bool = False
) -> list[str]:
    """Launch while storms strike, until a launch gets through. Return what is wrong.

    `gives_up`: launches may end, since a step or a window failed as often as it may be tried, or the store fails before their
    tasks start. They may end for no other reason.
    """
    application, output = tables(bucket, folder, files, mode), f"out-{folder.name}"
    bucket.proxy.schedule = storms
    options = ("--retry-delay", "0.1", "--window-attempts", "8")
    status, said = launched(application, output, *options)
    while gives_up and status and re.match(r"error\[(DF306|DF436|DF447)\]", said):
        status, said = launched(application, output, *options)
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
        wrong = wrong_after_storms(bucket, folder, storms, files=3, mode=mode, gives_up=True)
        assert wrong == [], f"{SEED}={seed}: {storms}"


def is_upload(request: Request, key: str) -> bool:
    """Return whether a request writes an object whose key fits a pattern."""
    return request.method in ("PUT", "POST") and re.search(key, request.key) is not None


POINTS = {
    "the second commit to Delta": lambda request: is_upload(request, r"/_delta_log/0+1\.json$"),
    "a staged file": lambda request: is_upload(request, "/delta/_dagflow/.*/staged/"),
    "a file on its way into the table": lambda request: request.kind == "copy" and "/iceberg/" in request.key,
    "the metadata of Iceberg": lambda request: is_upload(request, "/metadata/00002-"),
    "a manifest of Iceberg": lambda request: is_upload(request, "/metadata/.*-m0.avro$"),
    "a note": lambda request: is_upload(request, "/delta/.*/published/"),
    "sweeping": lambda request: request.method == "DELETE" and "/staged/" in request.key,
}
"""The requests at which a launch is overtaken."""


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "point", [each if number == 0 else pytest.param(each, marks=pytest.mark.nightly) for number, each in enumerate(POINTS)]
)
def test_a_launch_that_was_overtaken_changes_nothing(bucket: Bucket, point: str, tmp_path: Path) -> None:
    bucket.proxy.schedule = pause = Pause(POINTS[point])
    status, said = overtaken(tables(bucket, tmp_path, files=2), pause, "out")
    assert status == 3, said
    assert "DF439" in said
    assert oracle.lines(bucket.url("out")) == lines_of(2)
    application = tables(bucket, tmp_path, files=3, delivered=2)  # files that were staged too late go with the next window
    assert list(application.wrong(tmp_path / "out", False)) == []
    assert launched(application, "out")[0] == 0
    assert list(application.wrong(tmp_path / "out", True)) == []
    assert oracle.wrong(bucket.url("out"), lines_of(3)) == []
