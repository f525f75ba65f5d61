"""Fewer collections of cyclic garbage while a task runs, and while the driver plans and decides a window."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = (200_000, 20, 100)
"""Thresholds of `gc.set_threshold`: by default, Python looks at new objects after 700, and at all objects after 70,000."""


@contextmanager
def few_collections() -> Iterator[None]:
    """A context in which Python looks for cyclic garbage a hundred times less often, in all threads.

    Readers make thousands of tuples for each piece, which reference counting frees: looked at again and again, they double the
    cost of a record (260 ns against 139 for making one). The driver keeps millions of objects while it plans and decides a window
    of a million blocks: half of its time went by looking at them.
    """
    before = gc.get_threshold()
    if before == SELDOM:  # of another launch in this process, or of the step that this one is a part of
        yield
        return
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
