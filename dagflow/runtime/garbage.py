"""Python's search for cyclic garbage, paused where the driver makes millions of objects and no cycle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the search for cyclic garbage, in all threads. Use it around steps that run no user code.

    The search looks at all objects that are alive, again and again: half the time of a decision on a million blocks.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
