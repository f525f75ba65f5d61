"""Random DAGs: shape, partitioning, combiners, library operators, modules, forms of handlers, windows, state over them.

Equal to a plain interpreter: in process and on Spark, with few exchanges and with one before each operator, and where the
numbers of partitions change from window to window.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from dagflow.testing import Collector, run_dag
from tests.conformance.random_dags import Node, Records, Windows, has_end, interpreted, repartitioned, shapes, unfused, windows
from tests.conformance.random_operators import Pair, is_sampled, populate

CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]


def check(nodes: list[Node], given_in: Windows, expected: dict[int, Records], runner: str) -> None:
    """In one launch."""
    seen = {number: Collector[Pair]() for number in range(len(nodes))}
    report = run_dag(populate(nodes, given_in, seen), runner=runner)
    assert found(seen) == expected
    assert report.windows == report.jobs == len(given_in) + has_end(nodes)


def check_repartitioned(nodes: list[Node], given_in: Windows, expected: dict[int, Records], runner: str) -> None:
    """Each window in a launch of its own, in other numbers of partitions than the one before."""
    seen = {number: Collector[Pair]() for number in range(len(nodes))}
    with tempfile.TemporaryDirectory() as folder:
        for launch in range(len(given_in) + has_end(nodes)):
            application = populate(repartitioned(nodes, launch), given_in, seen)
            assert run_dag(application, runner=runner, run_folder=str(Path(folder, "run")), max_windows=1).windows == 1
    assert found(seen) == expected


def found(seen: dict[int, Collector[Pair]]) -> dict[int, Records]:
    return {number: Counter((pair.key, pair.n) for pair in collector.records) for number, collector in seen.items()}


def check_all(nodes: list[Node], given_in: Windows, runner: str) -> None:
    expected = interpreted(nodes, given_in, is_sampled)
    check(nodes, given_in, expected, runner)
    check(unfused(nodes), given_in, expected, runner)
    check_repartitioned(nodes, given_in, expected, runner)


@given(shapes(), windows())
@settings(max_examples=12, suppress_health_check=CHECKS)
def test_in_process(nodes: list[Node], given_in: list[list[tuple[int, int]]]) -> None:
    check_all(nodes, given_in, "local")


@pytest.mark.spark
@given(nodes=shapes(most=6), given_in=windows(most=2))
@settings(max_examples=3, suppress_health_check=CHECKS)
def test_on_spark(spark_session: Any, nodes: list[Node], given_in: list[list[tuple[int, int]]]) -> None:
    check_all(nodes, given_in, "spark")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(shapes(most=12), windows())
@settings(max_examples=400, suppress_health_check=CHECKS)
def test_many_in_process(nodes: list[Node], given_in: list[list[tuple[int, int]]]) -> None:
    check_all(nodes, given_in, "local")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(3600)
@given(nodes=shapes(most=10), given_in=windows())
@settings(max_examples=60, suppress_health_check=CHECKS)
def test_many_on_spark(spark_session: Any, nodes: list[Node], given_in: list[list[tuple[int, int]]]) -> None:
    check_all(nodes, given_in, "spark")
