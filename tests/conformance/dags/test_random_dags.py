"""Random DAGs: shape, partitioning, combiners, library operators, modules, forms of handlers, windows, state over them.

Equal to a plain interpreter: in process, in two processes and on Spark, with few exchanges and with one before each operator,
and where the numbers of partitions change from window to window.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from dagflow.testing import Collector, run_dag
from tests.conformance.dags.random_dags import (
    KINDS,
    Node,
    Records,
    Windows,
    has_end,
    interpreted,
    repartitioned,
    shapes,
    unfused,
    windows,
)
from tests.conformance.dags.random_operators import Pair, is_sampled, populate

pytestmark = pytest.mark.timeout(900)  # a DAG that fails is made smaller for up to five minutes
CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much]


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


def holds(runner: str, *kinds: str, examples: int, most: int, most_windows: int) -> None:
    """For DAGs in which some kinds of operators are, among others."""

    @given(shapes(*kinds, most=most), windows(most_windows))
    @settings(max_examples=examples, suppress_health_check=CHECKS)
    def hold(nodes: list[Node], given_in: list[list[tuple[int, int]]]) -> None:
        check_all(nodes, given_in, runner)

    hold()


# Two examples are the smallest one and a random one; of more, Hypothesis makes most of those before them.
@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_in_process(kind: str) -> None:
    holds("local", kind, examples=2, most=10, most_windows=4)


SOME_KINDS = [("HashJoin left", "Tumbling sum"), ("Split", "Deduplicate running"), ("Sample", "Min", "Union")]


@pytest.mark.full
@pytest.mark.parametrize("kinds", SOME_KINDS)
def test_in_processes(monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]) -> None:
    monkeypatch.setenv("DAGFLOW_SLOTS", "2")
    holds("local", *kinds, examples=2, most=6, most_windows=2)


@pytest.mark.spark
@pytest.mark.parametrize("kinds", SOME_KINDS)
def test_on_spark(spark_session: Any, kinds: tuple[str, ...]) -> None:
    holds("spark", *kinds, examples=2, most=6, most_windows=2)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_many_in_process(kind: str) -> None:
    holds("local", kind, examples=15, most=12, most_windows=4)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_many_in_processes(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("DAGFLOW_SLOTS", "2")
    holds("local", kind, examples=4, most=10, most_windows=4)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", KINDS)
def test_many_on_spark(spark_session: Any, kind: str) -> None:
    holds("spark", kind, examples=2, most=10, most_windows=4)
