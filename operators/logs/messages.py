"""Messages of a log: as records, as columns, and as a piece that block readers claim and convert."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from typing_extensions import override

from dagflow.arrow_types.held import not_held, why_not_held
from operators.contexts import Entity, Piece
from operators.contexts.piece import int64_array


@attrs.frozen
class MessageHeader:
    """A header of a message."""

    name: str
    value: bytes | None = None


@attrs.frozen
class LogMessage:
    """A message of a log, as the port `batches` of log readers has it.

    Attributes:
        key, value: bytes; None: the message has none. A message without a value deletes its key in compacted topics.
        timestamp: the time of the message, in UTC without a zone, as all times in batches are; None: it has none.
        headers: in order. A name may come more than once.
        topic, partition, offset: the place of the message in its log.
    """

    key: bytes | None
    value: bytes | None
    timestamp: datetime.datetime | None
    headers: list[MessageHeader]
    topic: str
    partition: int
    offset: int


HEADERS = pa.list_(pa.struct({"name": pa.string(), "value": pa.binary()}))
SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "timestamp": pa.timestamp("us"),
        "headers": HEADERS,
        "topic": pa.string(),
        "partition": pa.int64(),
        "offset": pa.int64(),
    }
)


def message_batch(
    topic: str,
    partition: int,
    offsets: Sequence[int],
    values: Sequence[bytes | None],
    *,
    keys: Sequence[bytes | None] | None = None,
    times: Sequence[int | None] | NDArray[np.int64] | None = None,
    headers: Sequence[Sequence[tuple[str, bytes | None]] | None] | None = None,
) -> pa.RecordBatch:
    """Return messages of a partition as a batch. `times`: microseconds since the epoch. What is left out, no message has.

    >>> message_batch("events", 0, [7, 9], [b"a", None], times=[1_000_000, None]).to_pylist()[0]["timestamp"]
    datetime.datetime(1970, 1, 1, 0, 0, 1)
    """
    count = len(offsets)
    columns = [
        _binary(keys) if keys is not None else pa.nulls(count, pa.binary()),
        _binary(values),
        _times(times) if times is not None else pa.nulls(count, pa.timestamp("us")),
        _headers(headers, count),
        _repeated(topic, count),
        int64_array(np.full(count, partition, np.int64)),
        int64_array(np.fromiter(offsets, np.int64, count)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _repeated(text: str, count: int) -> pa.Array:
    """Return an array of equal texts. Not by pa.scalar(), which imports pandas, too."""
    data = text.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(len(data))
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data * count)])


def _binary(values: Sequence[bytes | None]) -> pa.Array:
    """Return bytes as an array. Not by pa.array(): that imports pandas, 0.4 s in each worker."""
    nulls = None
    if missing := values.count(None):
        if missing == len(values):
            return pa.nulls(len(values), pa.binary())
        is_valid = np.fromiter((value is not None for value in values), np.bool_, len(values))
        nulls = pa.py_buffer(np.packbits(is_valid, bitorder="little"))
        values = [value or b"" for value in values]
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])  # type: ignore[arg-type]
    data = pa.py_buffer(b"".join(values))  # type: ignore[arg-type]  # no None is left
    if offsets[-1] >= 1 << 31:
        raise OverflowError("a batch of messages has 2 GiB or more: the adapter must return fewer at a time")
    return pa.Array.from_buffers(pa.binary(), len(values), [nulls, pa.py_buffer(offsets.astype(np.int32)), data])


def _times(times: Sequence[int | None] | NDArray[np.int64]) -> pa.Array:
    if isinstance(times, np.ndarray) or None not in times:
        return int64_array(times).view(pa.timestamp("us"))
    return pa.array(times, pa.int64()).view(pa.timestamp("us"))


def _headers(headers: Sequence[Sequence[tuple[str, bytes | None]] | None] | None, count: int) -> pa.Array:
    if headers is not None and any(headers):
        listed = [[{"name": name, "value": value} for name, value in each or ()] for each in headers]
        return pa.array(listed, HEADERS)
    empty = pa.nulls(0, HEADERS.value_type)
    return pa.Array.from_buffers(HEADERS, count, [None, pa.py_buffer(np.zeros(count + 1, np.int32))], children=[empty])


def beyond_time(batch: pa.RecordBatch) -> Any:
    """Return which messages have a time that no `LogMessage` holds, after the year 9999, say: booleans; None: none has."""
    return not_held(batch.column("timestamp"), "Python")


def reason_of_time(batch: pa.RecordBatch, row: int) -> str:
    """Return the reason for which a message is bad that has such a time."""
    return f"its time is {why_not_held(batch.column('timestamp').slice(row, 1), 'Python')}"


class MessagePiece(Piece):
    """Messages of one partition. Positions are offsets, with gaps; each message is a split point.

    `batch`: all columns of the messages, in the order of their offsets.
    """

    __slots__ = ("batch", "numbers")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.numbers: NDArray[np.int64] = batch.column("offset").to_numpy()
        super().__init__(b"", 0, 0, int(self.numbers[0]), None)

    def __len__(self) -> int:
        count: int = self.batch.num_rows
        return count

    @property
    @override
    def used_bytes(self) -> int:
        """The bytes of keys and values."""
        return bytes_of(self.batch)

    @property
    @override
    def positions(self) -> NDArray[np.int64]:
        return self.numbers

    @override
    def position_of(self, number: int) -> int:
        return int(self.numbers[number])

    @property
    @override
    def has_only_split_points(self) -> bool:
        return True

    @override
    def part(self, start: int, stop: int) -> MessagePiece:
        return self if start == 0 and stop >= len(self) else MessagePiece(self.batch.slice(start, stop - start))

    @override
    def head(self, count: int) -> MessagePiece:
        return self.part(0, count)

    @override
    def entities(self) -> Iterator[Entity]:
        return map(Entity, self.bytes_list(), repeat(0), self.numbers.tolist())

    @override
    def bytes_list(self) -> list[bytes]:
        """Return the values; None for messages without one."""
        values: list[bytes] = self.batch.column("value").to_pylist()
        return values

    @override
    def binary_array(self) -> Any:
        return self.batch.column("value")

    def with_values(self) -> MessagePiece | None:
        """Return the messages that have a value; None without any."""
        if not self.batch.column("value").null_count:
            return self
        kept = self.batch.filter(self.batch.column("value").is_valid())
        return MessagePiece(kept) if kept.num_rows else None


def bytes_of(batch: pa.RecordBatch) -> int:
    """Return the bytes of the keys and values of messages."""
    return binary_bytes(batch.column("key")) + binary_bytes(batch.column("value"))


def binary_bytes(column: Any) -> int:
    """Return the bytes that the values of a column of bytes have together.

    >>> binary_bytes(pa.array([b"one", None, b"three"], pa.binary()).slice(1))
    5
    """
    offsets = column.buffers()[1]
    if offsets is None or not len(column):
        return 0
    bounds = np.frombuffer(offsets, np.int32, len(column) + 1, column.offset * 4)
    return int(bounds[-1]) - int(bounds[0])
