"""The runners that the conformance cases run on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dagflow.testing.plugin import on_spark

PROCESSES = pytest.param("processes", marks=pytest.mark.full)
SPARK = pytest.param("spark", marks=pytest.mark.spark)


def _runner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "spark":
        yield from on_spark(request)
        return
    if request.param == "processes":
        monkeypatch.setenv("DAGFLOW_SLOTS", "2")
    yield "local"


@pytest.fixture(params=["local", PROCESSES, SPARK])
def runner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The local runner in this process and in two processes, and Spark."""
    yield from _runner(request, monkeypatch)


@pytest.fixture(params=[PROCESSES, SPARK])
def worker_runner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The runners whose tasks run in processes that a test may kill."""
    yield from _runner(request, monkeypatch)
