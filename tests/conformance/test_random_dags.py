"""Random DAGs: shape, partitioning, combiners, forms of handlers, windows. Equal to a plain interpreter, on both runners."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from dagflow.testing import Collector, run_dag
from tests.conformance.random_dags import WINDOWS, Node, Pair, interpreted, populate, shapes


def check(nodes: Sequence[Node], windows: Sequence[Sequence[tuple[int, int]]], runner: str) -> None:
    seen = {number: Collector[Pair]() for number in range(len(nodes))}
    report = run_dag(populate(nodes, windows, seen), runner=runner)
    found = {number: Counter((pair.key, pair.n) for pair in collector.records) for number, collector in seen.items()}
    assert found == interpreted(nodes, windows)
    assert report.windows == report.jobs == len(windows)


@given(shapes(), WINDOWS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_in_process(nodes: list[Node], windows: list[list[tuple[int, int]]]) -> None:
    check(nodes, windows, "local")


@pytest.mark.spark
@given(nodes=shapes(), windows=WINDOWS)
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_on_spark(spark_session: Any, nodes: list[Node], windows: list[list[tuple[int, int]]]) -> None:
    check(nodes, windows, "spark")
