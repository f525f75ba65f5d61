"""The runners that the conformance cases run on.

`CONFORMANCE_ON=connect` takes a Spark Connect server in the place of Spark in this process: `make test-connect`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from dagflow.spark.connection.session import open_session
from dagflow.testing.plugin import on_spark
from tests.cluster.servers import connect_server

PROCESSES = pytest.param("processes", marks=pytest.mark.full)
SPARK = pytest.param("spark", marks=pytest.mark.spark)


ON_CONNECT = os.environ.get("CONFORMANCE_ON") == "connect"


@pytest.fixture(scope="session")
def connect_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that knows nothing of dagflow but its Python."""
    with connect_server(tmp_path_factory.mktemp("connect")) as server:
        yield server.address


if ON_CONNECT:

    @pytest.fixture(scope="session")
    def spark_session(connect_address: str) -> Iterator[Any]:
        """The session of all tests. There can be no other kind in this process."""
        session, _ = open_session("tests", None, connect_address, {})
        yield session
        session.stop()


def _runner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "spark":
        if ON_CONNECT:
            monkeypatch.setenv("SPARK_REMOTE", request.getfixturevalue("connect_address"))
            yield "spark"
        else:
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
