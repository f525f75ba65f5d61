"""Arrays by their buffers: the order of integers is that of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.arrow_types.buffers import order_of
from tests.tiers import examples

INT64, UINT64 = np.iinfo(np.int64), np.iinfo(np.uint64)
KINDS: dict[str, Any] = {
    "near": lambda chance, rows: chance.integers(-5, 5, rows),
    "any": lambda chance, rows: chance.integers(INT64.min, INT64.max, rows),
    "hashes": lambda chance, rows: chance.integers(0, UINT64.max, rows, np.uint64, endpoint=True),
    "pairs of hashes": lambda chance, rows: np.repeat(chance.integers(0, UINT64.max, rows, np.uint64), 2),
    "near, and some far away": lambda chance, rows: np.append(chance.integers(0, 1 << 30, rows), [INT64.max, INT64.min, 3]),
    "a few near neighbours": lambda chance, rows: np.append(chance.integers(INT64.min, INT64.max, rows), -np.arange(rows // 90)),
    "bytes": lambda chance, rows: chance.integers(0, 255, rows, np.uint8),
    "one value": lambda chance, rows: np.full(rows, 7),
}


@pytest.mark.parametrize("kind", KINDS)
@given(rows=st.integers(0, 3 * 4096), seed=st.integers(0, 1 << 30))
@settings(max_examples=examples(15), deadline=None)
def test_it_is_that_of_numpy(kind: str, rows: int, seed: int) -> None:
    numbers = KINDS[kind](np.random.default_rng(seed), rows)
    np.testing.assert_array_equal(order_of(numbers), np.argsort(numbers, kind="stable"))
