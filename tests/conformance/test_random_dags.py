"""Random DAGs: shape, partitioning, combiners, aggregates, modules, forms of handlers, windows, state over them.

Equal to a plain interpreter: in process and on Spark, with few exchanges and with one before each operator, and where the
numbers of partitions change from window to window.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from dagflow.testing import Collector, run_dag
from tests.conformance.random_dags import WINDOWS, Node, Pair, interpreted, populate, repartitioned, shapes, unfused

Windows = Sequence[Sequence[tuple[int, int]]]
CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def check(nodes: Sequence[Node], windows: Windows, runner: str) -> None:
    """In one launch."""
    seen = {number: Collector[Pair]() for number in range(len(nodes))}
    report = run_dag(populate(nodes, windows, seen), runner=runner)
    assert found(seen) == interpreted(nodes, windows)
    assert report.windows == report.jobs == len(windows)


def check_repartitioned(nodes: Sequence[Node], windows: Windows, runner: str) -> None:
    """Each window in a launch of its own, in other numbers of partitions than the one before."""
    seen = {number: Collector[Pair]() for number in range(len(nodes))}
    with tempfile.TemporaryDirectory() as folder:
        for launch in range(len(windows)):
            application = populate(repartitioned(nodes, launch), windows[: launch + 1], seen)
            assert run_dag(application, runner=runner, run_folder=str(Path(folder, "run"))).windows == 1
    assert found(seen) == interpreted(nodes, windows)


def found(seen: dict[int, Collector[Pair]]) -> dict[int, Counter[tuple[int, int]]]:
    return {number: Counter((pair.key, pair.n) for pair in collector.records) for number, collector in seen.items()}


def check_all(nodes: list[Node], windows: Windows, runner: str) -> None:
    check(nodes, windows, runner)
    check(unfused(nodes), windows, runner)
    check_repartitioned(nodes, windows, runner)


@given(shapes(), WINDOWS)
@settings(max_examples=12, suppress_health_check=CHECKS)
def test_in_process(nodes: list[Node], windows: list[list[tuple[int, int]]]) -> None:
    check_all(nodes, windows, "local")


@pytest.mark.spark
@given(nodes=shapes(), windows=WINDOWS)
@settings(max_examples=4, suppress_health_check=CHECKS)
def test_on_spark(spark_session: Any, nodes: list[Node], windows: list[list[tuple[int, int]]]) -> None:
    check(nodes, windows, "spark")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(shapes(most=12), WINDOWS)
@settings(max_examples=400, suppress_health_check=CHECKS)
def test_many_in_process(nodes: list[Node], windows: list[list[tuple[int, int]]]) -> None:
    check_all(nodes, windows, "local")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3600)
@given(nodes=shapes(most=10), windows=WINDOWS)
@settings(max_examples=60, suppress_health_check=CHECKS)
def test_many_on_spark(spark_session: Any, nodes: list[Node], windows: list[list[tuple[int, int]]]) -> None:
    check_all(nodes, windows, "spark")
