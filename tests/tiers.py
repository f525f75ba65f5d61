"""The three tiers of tests: quick (the default), full (CI) and nightly. `make` lists how to run each.

A test belongs to the cheapest tier in which it still proves something. `full` and `nightly` are markers; a test without
either is quick.
"""

from __future__ import annotations

import pytest
from hypothesis import settings

MARKERS = ("full", "nightly")
STARTS_SPARK = ("spark", "cluster", "chaos")
SMOKE = "smoke"


def examples(count: int) -> int:
    """Scale a number of Hypothesis examples to the tier: a quarter in the quick one, all in full, ten times nightly."""
    return max(5, count * settings().max_examples // 100)


def assign(item: pytest.Item) -> None:
    """Mark a test that starts Spark or kills processes as `full`, and put all tests that use Spark into one worker."""
    names = {mark.name for mark in item.iter_markers()}
    if names.intersection(STARTS_SPARK) and not names.intersection((*MARKERS, SMOKE)):
        item.add_marker(pytest.mark.full)
    group = "spark" if names.intersection(("spark", "cluster")) else item.nodeid.partition("::")[0]
    item.add_marker(pytest.mark.xdist_group(group))
