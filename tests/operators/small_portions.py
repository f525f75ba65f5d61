"""Windows that do not fit into memory, whose rows are few."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dagflow.model.operator import table_state
from operators import portions
from operators.aggregate import current_rows, ranked_rows


@contextmanager
def small_portions(*, small: bool = True) -> Iterator[None]:
    """Let a handful of rows be too many for memory: in operators, and in what they keep."""
    with pytest.MonkeyPatch.context() as patch:
        if small:
            patch.setattr(portions, "MAX_ROWS", 2)
            patch.setattr(portions, "PORTIONS", 3)
            patch.setattr(current_rows, "MAX_BYTES", 100)
            patch.setattr(ranked_rows, "MAX_BYTES", 100)
            patch.setattr(ranked_rows, "WAITING_ROWS", 3)
            patch.setattr(table_state, "MAX_WAITING_BYTES", 200)
        yield
