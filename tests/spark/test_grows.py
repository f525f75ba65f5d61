"""Whether Spark adds slots for tasks that wait is asked of the session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dagflow.spark.runner import SparkRunner


@pytest.mark.parametrize(("conf", "grows"), [({}, False), ({"spark.dynamicAllocation.enabled": "true"}, True)])
def test_dynamic_allocation(conf: dict[str, str], grows: bool) -> None:
    link: Any = SimpleNamespace(spark=SimpleNamespace(conf=SimpleNamespace(get=conf.get)))
    runner = SparkRunner()
    assert not runner.grows
    runner._link = link
    assert runner.grows is grows
