"""Partitioners by the text that configuration has for them."""

from __future__ import annotations

from typing import Any

import pytest

from dagflow.scaling import BacklogPartitioner, StatelessPartitioner, partitioner_named


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("4", StatelessPartitioner(4)),
        (4, StatelessPartitioner(4)),
        ("none", None),
        (None, None),
        ("self", "self"),
        ("dagflow.scaling.StatelessPartitioner:3", StatelessPartitioner(3)),
        ("dagflow.scaling.StatelessPartitioner", StatelessPartitioner(1)),
    ],
)
def test_what_they_stand_for(text: Any, found: Any) -> None:
    assert partitioner_named(text) == found


def test_with_a_number() -> None:
    made = partitioner_named("dagflow.scaling.BacklogPartitioner:3")
    assert isinstance(made, BacklogPartitioner)
    assert made.min_readers == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0", "partition_count is 0, but must be an integer, 1 or more"),
        ("many", "'many' does not name a module"),
        ("dagflow.scaling.Nobody", "module 'dagflow.scaling' has no attribute 'Nobody'"),
        ("nowhere.Partitioner", "No module named 'nowhere'"),
        ("dagflow.scaling.StatelessPartitioner:x", r"dagflow.scaling.StatelessPartitioner\(x\) raised ValueError: .*"),
    ],
)
def test_what_stands_for_nothing(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{reason}$"):
        partitioner_named(text)
