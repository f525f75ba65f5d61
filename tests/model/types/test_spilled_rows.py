"""Rows in a temporary file are the rows in memory; and a table with changes there is one without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.model.operator import table_state
from dagflow.model.operator.table_state import KeyedTable
from dagflow.model.types import spilled_rows
from dagflow.model.types.keyed_rows import END, KeyedRows, rows_of, schema_of
from dagflow.model.types.spilled_rows import SpilledRows
from dagflow.state.log import StateLog
from dagflow.state.maps import TableInLog
from dagflow.storage import MemoryStore, TemporarySpillFile

PUTS = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 20), st.integers(0, 9), max_size=8), st.sets(st.integers(0, 20))), max_size=6
)


def rows(keys: list[int]) -> KeyedRows:
    return rows_of(
        pa.array(keys, pa.int64()), [pa.array([key * 2 for key in keys], pa.int64())], schema_of(pa.int64(), [("n", pa.int64())])
    )


@given(st.sets(st.integers(0, 300), min_size=1), st.integers(1, 400), st.integers(0, END), st.integers(0, END))
def test_parts_of_rows(keys: set[int], block: int, one: int, other: int) -> None:
    whole, file = rows(sorted(keys)), TemporarySpillFile()
    before, spilled_rows.BLOCK = spilled_rows.BLOCK, block
    try:
        SpilledRows.of(whole, file)  # other rows are before them
        spilled = SpilledRows.of(whole, file)
    finally:
        spilled_rows.BLOCK = before
    start, stop = sorted((one, other))
    assert spilled.between(start, stop).batch.equals(whole.between(start, stop).batch)
    assert spilled.between(0, END).batch.equals(whole.batch)
    assert sum(map(len, spilled.chunks())) == len(spilled) == len(whole)
    for place in (0, len(whole) // 2, len(whole) - 1):
        code = whole.codes[place : place + 1]
        assert spilled.near(code).find(code, whole.batch.column("key"), np.array([place])) >= 0


@given(PUTS, st.sampled_from([0, 300, 1 << 20]))
def test_a_table_with_changes_in_a_file(puts: list[tuple[dict[int, int], set[int]]], memory: int) -> None:
    tables = [KeyedTable(), KeyedTable(saved_rows=TableInLog(StateLog(MemoryStore()), ("operator", "table")))]
    with pytest.MonkeyPatch.context() as patch:
        for number, (put, removed) in enumerate(puts):
            for table, most in zip(tables, (1 << 30, memory), strict=True):
                patch.setattr(table_state, "MAX_WAITING_BYTES", most)
                wider: Any = {} if number < 2 else {"later": pa.array([float(n) for n in put.values()])}
                table.put(pa.array(list(put), pa.int64()), {"n": pa.array(list(put.values()), pa.int64()), **wider})
                point = table.savepoint()
                table.remove(pa.array([5], pa.int64()))
                table.roll_back(point)
                table.remove(pa.array(sorted(removed), pa.int64()))
            asked = pa.array(range(21), pa.int64())
            assert tables[0].lookup(asked).equals(tables[1].lookup(asked))
        assert tables[0] == tables[1]
        for kind, changed in tables[0].changes().items():
            spilled = tables[1].changes()[kind]
            assert spilled.columns == changed.columns
            assert spilled.between(0, END).batch.equals(changed.between(0, END).batch)
            middle = 1 << 63
            assert spilled.between(middle, END).batch.equals(changed.between(middle, END).batch)
