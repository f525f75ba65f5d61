"""The pytest plugin: the fixture `runner` runs one test on both runners. Loaded in every test run, so it imports nothing."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

SLOTS = 2
_OUTCOME = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "spark: starts Spark")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note if the test itself has passed."""
    report = yield
    if call.when == "call":
        item.stash[_OUTCOME] = report.passed
    return report


@pytest.fixture(scope="session")
def spark_session() -> Iterator[Any]:
    """Yield one small Spark session for all tests: two slots, two partitions after a shuffle, four attempts of a task, no UI.

    Applications that a test launches on Spark meanwhile run in it, and leave it running.
    """
    from dagflow.spark.connection.session import open_session

    session, ours = open_session(
        "tests",
        f"local[{SLOTS},4]",
        None,
        {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": f"{SLOTS}"},  # Spark's 200 partitions take seconds
    )
    yield session
    if ours:
        session.stop()


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def runner(request: pytest.FixtureRequest) -> Iterator[str]:
    """`"local"`, then `"spark"`: for `run_dag(…, runner=runner)` and `launch(…, runner=runner)`.

    The Spark half of a test that has passed must have run a Spark job, else it fails: it has tested nothing.
    """
    if request.param == "local":
        yield "local"
    else:
        yield from on_spark(request)


def on_spark(request: pytest.FixtureRequest) -> Iterator[str]:
    """Yield `"spark"` to a test, which fails if it passes without a Spark job."""
    session = request.getfixturevalue("spark_session")
    from dagflow.spark.connection.session import jobs_run

    before = jobs_run(session)
    yield "spark"
    if request.node.stash.get(_OUTCOME, False) and jobs_run(session) == before:
        pytest.fail("the Spark half of this test ran no Spark job: launch with runner=runner", pytrace=False)
