"""Python looks for cyclic garbage less often, and as before afterwards."""

from __future__ import annotations

import gc

import pytest

from dagflow.runtime.garbage import SELDOM, few_collections


def test_thresholds_are_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with few_collections():
        assert gc.get_threshold() == SELDOM
    assert gc.get_threshold() == before


def test_thresholds_are_as_before_after_an_error() -> None:
    before = gc.get_threshold()

    @few_collections()
    def fail() -> None:
        raise ValueError(gc.get_threshold())

    with pytest.raises(ValueError, match="200000"):
        fail()
    assert gc.get_threshold() == before


def test_two_launches_in_one_process_leave_no_trace() -> None:
    """One begins while the other is at it, and ends later."""
    before = gc.get_threshold()
    one, other = few_collections(), few_collections()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    other.__exit__(None, None, None)
    assert gc.get_threshold() == before
