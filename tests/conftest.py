"""Settings and hooks that all tests share. Fixtures of one package stand in the conftest of its own tests."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from dagflow.local import pool
from tests import tiers
from tests.warm import warm_server

# `make coverage` measures the processes of the tests; the processes that these start would only be slowed down.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_START", None)

# The tests start thousands of processes, and each would compile all modules again: 1.2 s of 1.9 s.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Shells' background jobs and nohup ignore signals, and what the tests start would inherit that; a handler is not inherited.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

# No deadline: machines that run tests are shared, and a slow moment is not an error.
settings.register_profile("quick", deadline=None, print_blob=True, derandomize=True, database=None, max_examples=10)
settings.register_profile("full", deadline=None, print_blob=True, derandomize=True, database=None, max_examples=100)
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Assign each test to its tier before `-m` selects."""
    for item in items:
        tiers.assign(item)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Send all tests that use Spark to one worker, and the tests of any other file to one worker."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return tiers.worker_of(nodeid)

    return Scheduling(config, log)


@pytest.fixture(autouse=True, scope="session")
def _warm_servers() -> Iterator[None]:
    """Give launches of the tests' own process worker processes that start in a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "boot", warm_server)
        yield
