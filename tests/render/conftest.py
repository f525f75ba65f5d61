from __future__ import annotations

import pytest
from tests.golden.compare import OPTION, Golden, add_option


def pytest_addoption(parser: pytest.Parser) -> None:
    add_option(parser)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.config.getoption(OPTION, default=False), {})
