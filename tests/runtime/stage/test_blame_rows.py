from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dagflow.runtime.stage.blame import first_failing_row, raising


@given(st.lists(st.integers(0, 9), max_size=9))
def test_the_first_row_that_raises_on_its_own(values: list[int]) -> None:
    def fails_at_zero(rows: pa.RecordBatch) -> None:
        for value in rows.column("value").to_pylist():
            _ = 1 // value

    found = first_failing_row(pa.record_batch({"value": pa.array(values, pa.int64())}), int, raising(fails_at_zero))
    assert (None if found is None else (found.record, type(found.error))) == ((0, ZeroDivisionError) if 0 in values else None)


def test_nobody_where_only_several_rows_raise() -> None:
    def fails_with_two(rows: Any) -> None:
        assert rows.num_rows < 2

    assert first_failing_row(pa.record_batch({"value": [1, 2, 3]}), int, raising(fails_with_two)) is None
