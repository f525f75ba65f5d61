"""Rows as the messages of a log: columns of Arrow, one row a message."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow import ReaderRecord
from operators.sinks.encoding.json_rows import JsonEncoder, check_types
from operators.sinks.encoding.plain_text import as_text, kind_of_text
from operators.sinks.encoding.text import BYTES, READER_COLUMNS, text_column
from operators.sinks.errors import TypeNotWritable, ValueNotWritable
from operators.sinks.logs.errors import MessageTooLarge
from operators.sinks.logs.hashing import key_hashes
from operators.sinks.tables.acceptance import check_names

Part: TypeAlias = "str | Callable[[Any], Any] | None"
"""A part of a message: the name of a column, a function of a record, or nothing."""

_MESSAGE = "a message"
SCHEMA = pa.schema(
    {
        "route": pa.int64(),  # what chooses the partition: see `hashing.partition_of`
        "subject": pa.string(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.map_(pa.string(), pa.binary()),
        "time": pa.int64(),  # milliseconds since the epoch
    }
)
"""The columns of staged messages."""


@attrs.frozen(kw_only=True)
class MessageEncoder:
    """Makes messages of rows.

    Attributes:
        operator: for errors.
        key, value, partition, subject, time: the parts of a message. Without `value`, text and bytes are values as they are, and
            other rows become JSON objects of all columns.
        headers: the parts that become headers, by name.
        max_bytes: the most bytes of a message.
        limit: the name of the property that holds it.
    """

    operator: str
    key: Part = None
    value: Part = None
    partition: Part = None
    subject: Part = None
    time: Part = None
    headers: Mapping[str, Part] = attrs.field(factory=dict)
    max_bytes: int
    limit: str = "max_message_bytes"

    @property
    def parts(self) -> dict[str, Part]:
        """All parts by the name of their property."""
        own = {name: getattr(self, name) for name in ("key", "value", "partition", "subject", "time")}
        return {name: part for name, part in {**own, **{f"headers[{n!r}]": p for n, p in self.headers.items()}}.items() if part}

    def messages(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the messages of a batch whose parts are columns. Raises MessageTooLarge, TypeNotWritable, ValueNotWritable."""
        value = self._whole(batch) if self.value is None else self._bytes(batch, self.value)
        columns = {name: None if part is None else self.column(batch, part) for name, part in self._named()}
        subjects = None if self.subject is None else self.subjects(batch)
        return self._assembled(batch.num_rows, value, columns, subjects)

    def message(self, record: Any) -> tuple[Any, ...]:
        """Return the message of a record, as `batch_of` takes it. Raises as `messages`, and NotText."""
        key = self._plain(record, "key", self.key)
        value = self._whole_plain(record) if self.value is None else self._plain(record, "value", self.value)
        headers = [(name, self._plain(record, f"header {name}", part)) for name, part in self.headers.items()]
        for name, data in headers:
            self.check_header(name, pa.array([data], pa.binary()))
        subject = None if self.subject is None else self.subject_of(record)
        partition, time = value_of(record, self.partition), value_of(record, self.time)
        if self.partition is not None:  # as a column of one row, whose errors are the same
            partition = self._routes(None, pa.array([partition], pa.int64() if partition is None else None))[0].as_py()
        if time is not None:
            time = self._milliseconds(pa.array([time]))[0].as_py()
        size = sum(len(data) for data in (key, value, *(data for _, data in headers)) if data) + sum(map(len, self.headers))
        self._check_size(size)
        return partition, subject, key, value, headers or None, time

    def batch_of(self, messages: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        """Return messages that were made one by one."""
        columns = [list(column) for column in zip(*messages, strict=True)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        if self.partition is None:
            arrays[0] = self._routes(arrays[SCHEMA.get_field_index("key")], None)
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def _plain(self, record: Any, name: str, part: Part) -> bytes | None:
        value = value_of(record, part)
        if value is None or type(value) is bytes:
            return value
        if isinstance(value, str):
            return value.encode()
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        made: bytes | None = self._as_bytes(name, pa.array([value]))[0].as_py()
        return made

    def _whole_plain(self, record: Any) -> bytes:
        if isinstance(record, ReaderRecord):
            record = record.record
        if isinstance(record, str):
            return record.encode()
        if isinstance(record, BYTES):
            return bytes(record)
        if attrs.has(type(record)):
            record = attrs.asdict(record)
        row = pa.RecordBatch.from_pylist([dict(record) if isinstance(record, Mapping) else {"value": record}])
        check_types(row.schema, self.operator)
        made: bytes = JsonEncoder(self.operator).rows(row)[0].as_py().encode()
        return made

    def _named(self) -> list[tuple[str, Part]]:
        own: list[tuple[str, Part]] = [(name, getattr(self, name)) for name in ("key", "partition", "time")]
        return own + [(f"header {name}", part) for name, part in self.headers.items()]

    def _whole(self, batch: pa.RecordBatch) -> Any:
        names = batch.schema.names
        if names == READER_COLUMNS or (names == ["value"] and not _is_json(batch.schema.field(0).type)):
            return text_column(batch, self.operator).cast(pa.binary())
        check_names(names, self.operator, "a JSON object")
        check_types(batch.schema, self.operator)
        return JsonEncoder(self.operator).rows(batch).cast(pa.binary())

    def column(self, batch: pa.RecordBatch, name: Any) -> Any:
        """Return a column. Raises TypeNotWritable where there is none of that name."""
        if name not in batch.schema.names:
            known = ", ".join(batch.schema.names)
            raise TypeNotWritable(
                operator=self.operator, column=name, type="missing", format=_MESSAGE, help=f"the columns are {known}"
            )
        return batch.column(name)

    def _bytes(self, batch: pa.RecordBatch, name: Any) -> Any:
        return self._as_bytes(name, self.column(batch, name))

    def _as_bytes(self, name: str, column: Any) -> Any:
        """Return a column as bytes: text in UTF-8, bytes as they are, numbers and dates as text, nested values as JSON."""
        kind = column.type
        if t.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind):
            return column.cast(pa.binary())
        if kind_of_text(kind) is not None:
            return as_text(column, name, self.operator, _MESSAGE).cast(pa.binary())
        check_types(pa.schema([(name, kind)]), self.operator)
        return pc.if_else(column.is_valid(), JsonEncoder(self.operator).values(name, column), None).cast(pa.binary())

    def subjects(self, batch: pa.RecordBatch) -> Any:
        """Return the subject of each row: text."""
        return self.text("subject", self.column(batch, self.subject))

    def subject_of(self, record: Any) -> str:
        """Return the subject of a record."""
        return str(value_of(record, self.subject))

    def check_header(self, name: str, column: Any) -> None:
        """Raise ValueNotWritable for headers that the log has no form for. `column`: of bytes."""

    def text(self, name: str, column: Any) -> Any:
        """Return a column of plain values as text. Raises TypeNotWritable."""
        kind = column.type
        if kind_of_text(kind) is None:
            help_ = "name a column of text, numbers or dates"
            raise TypeNotWritable(operator=self.operator, column=name, type=str(kind), format=_MESSAGE, help=help_)
        return as_text(column, name, self.operator, _MESSAGE)

    def _assembled(self, rows: int, value: Any, columns: Mapping[str, Any], subjects: Any) -> pa.RecordBatch:
        key = columns["key"]
        key = pa.nulls(rows, pa.binary()) if key is None else self._as_bytes("key", key)
        headers = {name.partition(" ")[2]: self._as_bytes(name, c) for name, c in columns.items() if name.startswith("header ")}
        for name, column in headers.items():
            self.check_header(name, column)
        made = pa.RecordBatch.from_arrays(
            [
                self._routes(key, columns["partition"]),
                pa.nulls(rows, pa.string()) if subjects is None else subjects,
                key,
                value,
                _maps(rows, headers),
                pa.nulls(rows, pa.int64()) if columns["time"] is None else self._milliseconds(columns["time"]),
            ],
            schema=SCHEMA,
        )
        self._check_sizes(key, value, headers)
        return made

    def _routes(self, key: Any, partition: Any) -> Any:
        if partition is None:
            hashes = key_hashes(key)
            return pa.array(hashes, mask=hashes < 0)
        if not t.is_integer(partition.type):
            help_ = "name a column of integers: the numbers of partitions, from 0"
            raise TypeNotWritable(
                operator=self.operator, column="partition", type=str(partition.type), format="a log", help=help_
            )
        if partition.null_count or pc.any(pc.less(partition, 0), min_count=0).as_py():
            wrong = "null" if partition.null_count else "a negative number"
            help_ = "each message needs the number of its partition, from 0"
            raise ValueNotWritable(operator=self.operator, column="partition", value=wrong, format="a log", help=help_)
        return pc.subtract(-1, partition.cast(pa.int64()))

    def _milliseconds(self, column: Any) -> Any:
        kind = column.type
        if t.is_timestamp(kind) or t.is_integer(kind):
            if t.is_timestamp(kind):
                column = column.cast(pa.timestamp("ms", kind.tz), safe=False)
            column = column.cast(pa.int64())
            if pc.any(pc.less_equal(column, 0), min_count=0).as_py():  # Kafka's clients take 0 for the present time
                help_ = "messages have times after 1970-01-01; without one, a message has the time when it is sent"
                raise ValueNotWritable(operator=self.operator, column="time", value="0 or less", format="a log", help=help_)
            return column
        help_ = "name a column of timestamps, or of milliseconds since the epoch"
        raise TypeNotWritable(operator=self.operator, column="time", type=str(kind), format=_MESSAGE, help=help_)

    def _check_sizes(self, key: Any, value: Any, headers: Mapping[str, Any]) -> None:
        sizes: Any = sum(_lengths(column) for column in (key, value, *headers.values())) + sum(map(len, headers))
        if len(sizes):
            self._check_size(int(sizes.max()))

    def _check_size(self, size: int) -> None:
        if size > self.max_bytes:
            raise MessageTooLarge(operator=self.operator, size=size, limit=self.max_bytes, property=self.limit)


def _is_json(kind: pa.DataType) -> bool:
    """Return whether a bare value of a type is written as a JSON object `{"value": …}`, not as it is."""
    plain = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)
    return not (plain or t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind))


def _lengths(column: Any) -> Any:
    return pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)


def _maps(rows: int, headers: Mapping[str, Any]) -> Any:
    """Return a column of maps with one entry for each header; nulls without headers."""
    if not headers:
        return pa.nulls(rows, SCHEMA.field("headers").type)
    count = len(headers)
    across = pa.array(np.arange(rows * count).reshape(count, rows).T.ravel())
    values = pa.concat_arrays(list(headers.values())).take(across)
    names = pa.DictionaryArray.from_arrays(pa.array(np.tile(np.arange(count, dtype=np.int32), rows)), pa.array(list(headers)))
    offsets = pa.array(np.arange(0, rows * count + 1, count, dtype=np.int32))
    return pa.MapArray.from_arrays(offsets, names.cast(pa.string()), values)


def value_of(record: Any, part: Part) -> Any:
    """Return the part of a record."""
    if part is None or not isinstance(part, str):
        return None if part is None else part(record)
    return record.get(part) if isinstance(record, Mapping) else getattr(record, part)
