"""Launches that die while they publish to a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.logs.brokers import NatsServer
from tests.logs.writer_kills import AFTER_MESSAGES, STEPS, Stream, Target, Topic, wrong

pytestmark = [pytest.mark.full, pytest.mark.chaos]


@pytest.fixture(params=["stream", "topic"])
def target(request: pytest.FixtureRequest, name: str) -> Target:
    if request.param == "topic":
        return Topic(request.getfixturevalue("tansu"), name)
    server: NatsServer = request.getfixturevalue("shared_nats")
    return Stream(server.url, name)


@pytest.mark.parametrize("step", [*STEPS, *AFTER_MESSAGES])
def test_a_killed_launch_loses_and_doubles_nothing(step: str | int, target: Target, tmp_path: Path) -> None:
    assert list(wrong(tmp_path / "app", target, (step, 0), (step, 1))) == []
