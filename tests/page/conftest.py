from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.compare import OPTION, Golden, add_option


def pytest_addoption(parser: pytest.Parser) -> None:
    add_option(parser)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.config.getoption(OPTION, default=False), {})


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Golden files hold paths from there."""
    monkeypatch.chdir(Path(__file__).parents[2])
