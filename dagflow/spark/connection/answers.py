"""Jobs without exchanges: each task gives one answer, in bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "answer binary"
PYTHON_OF_QUERIES = "spark.sql.execution.pyspark.python"
"""The setting for the Python of a session's queries, where it is not that of RDDs."""

Answers = Callable[[Iterable[int]], Iterator[bytes]]
"""Runs the tasks with these numbers, in a worker, and yields an answer for each."""


def queried(spark: Any, answers: Answers, count: int) -> list[bytes]:
    """Run a job as a query of a session, and return the answers of its tasks in order."""
    rows = spark.range(0, count, 1, count).mapInArrow(_OfBatches(answers).__call__, SCHEMA).collect()
    return [bytes(row[0]) for row in rows]


@attrs.frozen
class _OfBatches:
    """`Answers` as the function of one `mapInArrow`: one row an answer."""

    answers: Answers

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from map(row, self.answers(batch.column(0).to_pylist()))


def row(answer: bytes) -> pa.RecordBatch:
    """A batch of one row. Made of buffers: `pa.array` would import pandas, which costs each new worker 0.3 s.

    >>> row(b"done").to_pylist()
    [{'answer': b'done'}]
    """
    import pyarrow as pa  # a launch imports this module before it may start Arrow's threads: see `dagflow.local.boot`

    offsets = struct.pack("=2i", 0, len(answer))
    array = pa.BinaryArray.from_buffers(pa.binary(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(answer)])
    return pa.RecordBatch.from_arrays([array], names=["answer"])
