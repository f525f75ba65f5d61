"""Whether Spark adds slots for tasks that wait is asked of the session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dagflow.spark.runner import SparkRunner

ON = "spark.dynamicAllocation.enabled"


@pytest.mark.parametrize(
    ("conf", "grows"),
    [
        ({}, False),
        ({ON: "true"}, True),
        ({ON: "True "}, True),
        ({ON: "TRUE", "spark.master": "spark://boss:7077"}, True),
        ({ON: "true", "spark.master": "local-cluster[2,1,1024]"}, True),
        ({ON: "true", "spark.master": "local"}, False),
        ({ON: "true", "spark.master": "local[4]"}, False),
        ({ON: "false"}, False),
    ],
)
def test_dynamic_allocation(conf: dict[str, str], grows: bool) -> None:
    link: Any = SimpleNamespace(spark=SimpleNamespace(conf=SimpleNamespace(get=conf.get)))
    runner = SparkRunner()
    assert not runner.grows
    runner._link = link
    assert runner.grows is grows
