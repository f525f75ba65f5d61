from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from operators.join.buffer import ChunkBuffer

RECORDS = st.lists(st.integers(0, 9), max_size=5)
BATCHES = RECORDS.map(lambda values: pa.record_batch({"value": [0, *values]}).slice(1))


@given(st.lists(RECORDS | BATCHES | RECORDS.map(lambda some: ("a", some)), max_size=6), st.integers(0, 8), st.integers(0, 60))
def test_all_chunks_come_back_in_order(chunks: list[Any], max_rows: int, max_bytes: int) -> None:
    buffer = ChunkBuffer(max_rows, max_bytes)
    for _ in range(2):
        for chunk in chunks:
            buffer.add(chunk, len(chunk))
        assert list(buffer.take()) == chunks
    buffer.add([1], 1)
    buffer.forget()
    assert list(buffer.take()) == []


def test_a_slice_is_written_without_the_rest() -> None:
    whole = pa.record_batch({"value": ["x" * 100] * 10_000})
    buffer = ChunkBuffer(0, 1 << 30)
    for start in range(0, 10_000, 1000):
        buffer.add(whole.slice(start, 1000), 1000)
    assert buffer._file.tell() < 2 * whole.nbytes
    buffer.forget()


def test_batches_of_many_bytes_do_not_wait_in_memory() -> None:
    buffer = ChunkBuffer(100, max_bytes=1000)
    for _ in range(3):
        buffer.add(pa.record_batch({"value": ["x" * 600]}), 1)
    assert buffer._file is not None
    assert len(buffer._chunks) == 1
    assert [len(batch["value"][0].as_py()) for batch in buffer.take()] == [600] * 3
