"""The sessions in which tasks may share their work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dagflow.spark.connection.starting import DEFAULTS
from dagflow.spark.runner import SparkRunner


@pytest.mark.parametrize(
    ("conf", "reason"),
    [({}, None), ({"spark.speculation": "false"}, None), ({"spark.speculation": "TRUE"}, "spark.speculation is on")],
)
def test_speculation_switches_sharing_off(conf: dict[str, str], reason: str | None) -> None:
    runner = SparkRunner()
    link: Any = SimpleNamespace(setting=conf.get)
    runner._link = link
    assert runner.rebalancing_obstacle == reason


def test_sessions_of_ours_do_not_speculate() -> None:
    assert DEFAULTS["spark.speculation"] == "false"
