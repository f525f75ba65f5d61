"""Launches that die while they publish to a log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.logs.brokers import NatsServer
from tests.logs.writer_kills import AFTER_MESSAGES, STEPS, Stream, Topic, wrong
from tests.tiers import mostly_nightly

pytestmark = [pytest.mark.full, pytest.mark.chaos]


ALL_STEPS = [*STEPS, *AFTER_MESSAGES]


@pytest.mark.parametrize("step", ALL_STEPS)
def test_a_killed_launch_loses_and_doubles_nothing_in_a_stream(
    step: str | int, shared_nats: NatsServer, name: str, tmp_path: Path
) -> None:
    assert list(wrong(tmp_path / "app", Stream(shared_nats.url, name), (step, 0), (step, 1))) == []


@pytest.mark.parametrize("step", mostly_nightly(ALL_STEPS, "after the decision", 2, "after the messages"))
def test_a_killed_launch_loses_and_doubles_nothing_in_a_topic(step: str | int, tansu: str, name: str, tmp_path: Path) -> None:
    assert list(wrong(tmp_path / "app", Topic(tansu, name), (step, 0), (step, 1))) == []
