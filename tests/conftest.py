"""Settings and hooks that all tests share. Fixtures of one package stand in the conftest of its own tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from tests import tiers

# Coverage measures the processes of the tests; the processes that these start would only be slowed down.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.pop("COVERAGE_PROCESS_START", None)

# No deadline: machines that run tests are shared, and a slow moment is not an error.
settings.register_profile("quick", deadline=None, print_blob=True, derandomize=True, database=None, max_examples=25)
settings.register_profile("full", deadline=None, print_blob=True, derandomize=True, database=None, max_examples=100)
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile("quick")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Assign each test to its tier before `-m` selects."""
    for item in items:
        tiers.assign(item)
