"""The three tiers of tests: quick (the default), full (CI) and nightly. `make` lists how to run each.

A test belongs to the cheapest tier in which it still proves something. `full` and `nightly` are markers; a test without
either is quick.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

MARKERS = ("full", "nightly")
STARTS_SPARK = ("spark", "cluster", "chaos")
SMOKE, SPARK, COMMANDS_ON_SPARK = "smoke", "spark", "commands on spark"
_COMMANDS = re.compile(r"tests/(apps|benchmarks|chaos|cli|cluster|docs|logs|spark)/")
"""The folders whose tests of Spark start most sessions in processes of their own, and take as long as all others together."""
TRIES_LAWS = "check_operator"
"""The function that tries properties with examples of its own."""


def examples(count: int) -> int:
    """Scale a number of Hypothesis examples to the tier: a tenth in the quick one, all in full, ten times nightly."""
    return max(5, count * settings().max_examples // 100)


def mostly_nightly(cases: Iterable[Any], *in_ci: Any) -> list[Any]:
    """Return the cases of a slow test as parameters: those of `in_ci` run in CI, the others nightly."""
    cases = list(cases)
    assert set(in_ci) <= set(cases), f"{in_ci} are not all among {cases}"
    return [case if case in in_ci else pytest.param(case, marks=pytest.mark.nightly) for case in cases]


def assign(item: pytest.Item) -> None:
    """Mark a test that starts Spark or kills processes as `full`, and one that tries laws as one of Hypothesis.

    Refuse a Spark test whose name does not say so.
    """
    names = {mark.name for mark in item.iter_markers()}
    if names.intersection(STARTS_SPARK) and not names.intersection((*MARKERS, SMOKE)):
        item.add_marker(pytest.mark.full)
    if isinstance(item, pytest.Function) and TRIES_LAWS in item.function.__code__.co_names:
        item.add_marker("hypothesis")  # so that the full tier tries it with all examples
    if names.intersection(("spark", "cluster")) and worker_of(item.nodeid) not in (SPARK, COMMANDS_ON_SPARK):
        raise pytest.UsageError(f"{item.nodeid} uses Spark: put `spark` or `cluster` into its name, so that it shares one JVM")


def worker_of(nodeid: str) -> str:
    """Return the name of the group of tests that one worker runs: a file, or tests of Spark that share one JVM.

    There are two groups of those: one alone would take longer than a third of all tests, which CI gives to three workers.
    Of laws, each test is a group: a file of them takes longer than all others. The name of a test is all that pytest-xdist's
    scheduler knows of it.
    """
    if re.search("spark|cluster|connect", nodeid.lower()):
        return COMMANDS_ON_SPARK if _COMMANDS.match(nodeid) else SPARK
    return nodeid if re.search(r"/test_(laws?|random_dags)\.py", nodeid) else nodeid.partition("::")[0]
