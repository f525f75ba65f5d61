"""A row of an exchange: a batch of records of one port, for one task of a later level."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

BLOB = 4 << 20
"""A blob of more bytes is cut in halves, down to single records."""
FAILED, OUTCOME = -1, -2
"""Tags of rows without records: a task before has failed, do not run; what became of a task, for the driver."""


def tag_of(exchange: int, *, retracts: bool = False, is_pickled: bool = False) -> int:
    """Return the tag of rows: what their blobs are.

    >>> tag_of(3), exchange_of(tag_of(3, retracts=True, is_pickled=True))
    (12, 3)
    """
    return 4 * exchange + 2 * retracts + is_pickled


def exchange_of(tag: int) -> int:
    """Return the number of the exchange whose rows have a tag."""
    return tag >> 2


class Row(NamedTuple):
    """A row that crosses. Nothing in it depends on the attempt that made it, or Spark could not make it again.

    Attributes:
        dst: the number of the task in its level that it is for.
        tag: which exchange it belongs to, whether its records are retracted, and whether the blob is pickled (`tag_of`).
        src: the number of the task in its window that it comes from.
        seq: its number there, among those for the same task; rows are read sorted by `(src, seq)`.
        blob: a batch, an Arrow IPC stream of one (as soon as the row leaves the process), or pickled records.
    """

    dst: int
    tag: int
    src: int
    seq: int
    blob: Any

    @property
    def exchange(self) -> int:
        """The number of the exchange."""
        return exchange_of(self.tag)

    @property
    def retracts(self) -> bool:
        """True if the records are retracted."""
        return bool(self.tag & 2)

    def records(self) -> list[Any] | pa.RecordBatch:
        """Return what the row carries."""
        return records_of(self.blob) if self.tag & 1 else batch_of(self.blob)

    def encoded(self) -> Row:
        """Return the row with a blob of bytes, so that it can leave the process."""
        if isinstance(self.blob, bytes):
            return self
        import pyarrow as pa

        return self._replace(blob=blob_of(self.blob)) if isinstance(self.blob, pa.RecordBatch) else self


def pieces_of(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of a batch of which a row has one each: itself, unless that would be too large."""
    if batch.nbytes > BLOB and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from pieces_of(batch.slice(0, half))
        yield from pieces_of(batch.slice(half))
    else:
        yield batch


def blob_of(batch: pa.RecordBatch) -> pa.Buffer:
    """Return a batch as a blob."""
    import pyarrow as pa

    # slices, and what kernels make, leave other bytes behind in the same rows; a copy leaves none (0.2 ms for 5 MB)
    batch = pa.concat_batches([batch, batch.slice(0, 0)])
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema) as stream:
        stream.write_batch(batch)
    return out.getvalue()


def pickled_blobs(records: Sequence[Any]) -> Iterator[bytes]:
    """Pickle records without an Arrow form into blobs. The user's classes go by value if tasks could not import them."""
    from dagflow.runtime.stage.by_value import dumps

    blob = dumps(list(records))
    if len(blob) > BLOB and len(records) > 1:
        half = len(records) // 2
        yield from pickled_blobs(records[:half])
        yield from pickled_blobs(records[half:])
    else:
        yield blob


def batch_of(blob: Any) -> pa.RecordBatch:
    """Return the batch of a blob."""
    import pyarrow as pa

    if isinstance(blob, pa.RecordBatch):
        return blob
    with pa.ipc.open_stream(blob) as stream:
        return stream.read_next_batch()


def records_of(blob: Any) -> list[Any]:
    """Return the records of a pickled blob."""
    records: list[Any] = pickle.loads(blob)  # made by our own tasks, handed over in memory or by Spark
    return records


def is_failed(row: Row) -> bool:
    """Return whether a row says that a task of a level before has failed."""
    return row.tag == FAILED


def failed_rows(tasks: int) -> Iterable[Row]:
    """Return a row for each task of the next level that stops it from running. They sort before all others."""
    return (Row(dst, FAILED, -1, 0, b"") for dst in range(tasks))
