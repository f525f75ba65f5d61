"""Values of messages as rows with columns: JSON many at a time, and the records of a decoder."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dagflow.errors import DagflowError
from dagflow.scan import ManagedReader, RowOrigin, SourceSchemaNegotiator
from operators.contexts import Piece
from operators.formats.json_lines import compiled_parser, fast_parser, filled
from operators.formats.text.json_rows import BadLine, JsonRows, type_of_rows
from operators.logs.access import ReadsLog
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import MessageNotReadable
from operators.logs.messages import SCHEMA, beyond_time, reason_of_time
from operators.logs.protocol import LogStream, OffsetsGone

Negotiator = SourceSchemaNegotiator[OffsetBlock, LogStream]

FEW = 64
"""Messages that are parsed one by one if one of them cannot be parsed with the others."""
_SPACES = bytes.maketrans(b"\r\n", b"  ")


def members(batch: pa.RecordBatch, names: tuple[str, ...]) -> list[pa.Array]:
    """Return columns of messages."""
    return [batch.column(name) for name in names]


@attrs.define(eq=False)
class MessageReader(ManagedReader[Negotiator]):
    """Reads the messages of a range: claims a batch of them, and loads those that have a value.

    Args:
        access: the operator, which asks the log.
        message_columns: the columns of messages that stand beside those of their values.
    """

    access: ReadsLog
    message_columns: tuple[str, ...]
    _negotiator: Any = attrs.field(init=False, default=None)
    _loader: Any = attrs.field(init=False, default=None)
    _columns: Any = attrs.field(init=False, default=())

    def open(self, negotiator: Negotiator) -> bool:
        """Take the columns that are agreed on; agree on those of the first messages where there are none."""
        self._negotiator = negotiator
        if negotiator.provided_schema is None:
            schema = self._first_columns(negotiator)
            own = [field for field in schema if field.name not in self.message_columns]
            negotiator.set_table_schema(pa.schema([*own, *(SCHEMA.field(name) for name in self.message_columns)]))
        else:
            self._columns = tuple(name for name in self.message_columns if negotiator.is_projected(name))
            self.begin({f.name: f.type for f in negotiator.provided_schema if f.name not in self.message_columns})
        self._loader = negotiator.build()
        return True

    def next(self) -> bool:
        """Load the next messages."""
        start, stop = self._negotiator.extent
        stream, block = self._negotiator.stream, self._negotiator.block
        if stream.position < start:
            with self.access.asking(f"reading {block.words}"):
                stream.seek(start)
        batch = self.access.next_messages(stream, block, stop)
        if batch is None:
            return False
        claimed = self._negotiator.claim(batch.column("offset").to_numpy())
        is_last = claimed < batch.num_rows
        if claimed:
            batch = batch.slice(0, claimed)
            if batch.column("value").null_count:
                kept = batch.filter(batch.column("value").is_valid())
                self._negotiator.context.count("dropped", batch.num_rows - kept.num_rows)
                batch = kept
            if "timestamp" in self._columns and (wrong := beyond_time(batch)) is not None:
                for row in pc.indices_nonzero(wrong).to_pylist():
                    self.refuse(batch, row, reason_of_time(batch, row), "timestamp")
                batch = batch.filter(pc.invert(wrong))
            self.load(batch)
        return not is_last

    def close(self) -> None:
        """Hold nothing."""

    def _first_columns(self, negotiator: Negotiator) -> pa.Schema:
        """Return the columns of the first messages of a range that can be read; none if there are none, or no longer."""
        schema, position = None, negotiator.extent[0]
        while not schema and (batch := self._messages_at(position, negotiator)) is not None:
            schema, position = self.sampled(batch), negotiator.stream.position
        return schema or pa.schema([])

    def _messages_at(self, position: int, negotiator: Negotiator) -> pa.RecordBatch | None:
        """Return the next messages of a range; None behind the last, or if they are gone: the reader of the range says so."""
        try:
            with self.access.asking(f"reading {negotiator.block.words}"):
                negotiator.stream.seek(position)
                return negotiator.stream.read(negotiator.extent[1])
        except OffsetsGone:
            return None

    # What the forms of values differ by

    def sampled(self, batch: pa.RecordBatch) -> pa.Schema | None:
        """Return the columns of messages; none, or None, if no message can be read."""
        raise NotImplementedError

    def begin(self, types: dict[str, pa.DataType]) -> None:
        """Prepare to load values whose columns have these types."""
        raise NotImplementedError

    def load(self, batch: pa.RecordBatch) -> None:
        """Load messages, each of which has a value."""
        raise NotImplementedError

    # For the forms

    def names(self) -> tuple[str, ...] | None:
        """Return the selected members of values; None: all."""
        columns: tuple[str, ...] | None = self._negotiator.columns
        return None if columns is None else tuple(name for name in columns if name not in self.message_columns)

    def refuse(self, batch: pa.RecordBatch, row: int, reason: str, column: str | None = None) -> None:
        """Report a message that cannot be read."""
        offset, value = batch.column("offset")[row].as_py(), batch.column("value")[row].as_py()
        self._negotiator.bad_row(reason, position=offset, column=column, raw=value)

    def add(self, values: pa.RecordBatch, batch: pa.RecordBatch, rows: NDArray[np.int64] | None = None) -> None:
        """Add the columns of values beside those of their messages. `rows`: the messages that they are of; None: all."""
        if rows is not None:
            batch = batch.take(pa.array(rows))
        names = [name for name in values.schema.names if name not in self.message_columns]
        arrays = [*(values.column(name) for name in names), *members(batch, self._columns)]
        if not arrays:
            self._loader.skip_rows(batch.num_rows)
            return
        loaded = pa.RecordBatch.from_arrays(arrays, names=[*names, *self._columns])
        self._loader.add_batch(loaded, lambda row: origin_of(batch, row))


def origin_of(batch: pa.RecordBatch, row: int) -> RowOrigin:
    """Return the offset and the value of a message."""
    value = batch.column("value")[row].as_py()
    return RowOrigin(
        position=batch.column("offset")[row].as_py(), raw=value[:4000].decode("utf-8", "backslashreplace"), data=memoryview(value)
    )


@attrs.define(eq=False)
class JsonMessages(MessageReader):
    """Values that are JSON objects, whose members are columns: by the parsers of JSON lines."""

    _rows: Any = attrs.field(init=False, default=None)
    _parsers: Any = attrs.field(init=False, default=())

    def sampled(self, batch: pa.RecordBatch) -> pa.Schema | None:
        """Return the columns of messages. Those that cannot be parsed are left out."""
        values = [value.translate(_SPACES) for value in batch.column("value").drop_null().to_pylist()]
        return type_of_rows(b"\n".join(values))

    def begin(self, types: dict[str, pa.DataType]) -> None:
        """Make the parsers."""
        names = self.names()
        types = {name: kind for name, kind in types.items() if names is None or name in names}
        self._rows = JsonRows(types, names, noun="value")
        parsers = (make(types, is_open=names is None) for make in (compiled_parser, fast_parser))
        self._parsers = [parser for parser in parsers if parser is not None]

    def load(self, batch: pa.RecordBatch) -> None:
        """Load many at once; where that fails, parts of them; where that fails, one by one."""
        if self._load_at_once(batch):
            return
        for start in range(0, batch.num_rows, FEW):
            part = batch.slice(start, FEW)
            if part.num_rows == batch.num_rows or not self._load_at_once(part):
                self._load_slowly(part)

    def _load_at_once(self, batch: pa.RecordBatch) -> bool:
        values = batch.column("value").to_pylist()
        data = b"".join([value + b"\n" for value in values])
        if not values or data.count(b"\n") > len(values):
            return False
        bounds = np.zeros(len(values) + 1, np.int32)
        np.cumsum(np.fromiter(map(len, values), np.int32, len(values)) + 1, out=bounds[1:])
        piece = Piece.of_slices(data, bounds, position=0)
        lines = filled(piece)
        if lines is None or len(lines) < len(values):
            return False
        batches = (parse(piece, len(values)) for parse in self._parsers)
        parsed = next((each for each in batches if each is not None), None)
        if parsed is None:
            return False
        self.add(parsed, batch)
        return True

    def _load_slowly(self, batch: pa.RecordBatch) -> None:
        rows, kept = [], []
        for number, value in enumerate(batch.column("value").to_pylist()):
            try:
                rows.append(self._rows.row(value))
                kept.append(number)
            except BadLine as bad:
                self.refuse(batch, number, str(bad), bad.column)
        if rows:
            self.add(self._rows.batch(rows), batch, np.array(kept, np.int64))


@attrs.define(eq=False)
class DecodedMessages(MessageReader):
    """Values that a function converts into mappings, whose members are columns."""

    decode: Callable[[bytes], Any] = attrs.field(kw_only=True)
    _pending: deque[tuple[pa.RecordBatch, Iterator[int]]] = attrs.field(init=False, factory=deque)
    _names: Any = attrs.field(init=False, default=None)
    _has_more: bool = attrs.field(init=False, default=True)

    def sampled(self, batch: pa.RecordBatch) -> pa.Schema | None:
        """Return the columns of messages. Those that cannot be decoded are left out."""
        from dagflow.scan import BatchLimits, ResultSetLoader

        limits = BatchLimits()
        loader = ResultSetLoader(limits=limits)
        for value in batch.column("value").drop_null().to_pylist():
            try:
                record = self._record(value)
            except MessageNotReadable:
                continue
            if record is not None and loader.start():
                for name, each in record.items():
                    loader.set(name, each)
                loader.save()
        while loader.harvest() is not None:
            pass
        return loader.schema

    def begin(self, types: dict[str, pa.DataType]) -> None:
        """Note the selected members."""
        names = self.names()
        self._names = None if names is None else frozenset(names)

    def next(self) -> bool:
        """Load the next messages, as many as the loader takes."""
        if not self._pending:
            self._has_more = super().next()
        while self._pending:
            batch, rows = self._pending[0]
            if not self._load_rows(batch, rows):
                return True
            self._pending.popleft()
        return self._has_more

    def load(self, batch: pa.RecordBatch) -> None:
        """Keep messages, which `next` loads."""
        self._pending.append((batch, iter(range(batch.num_rows))))

    def _load_rows(self, batch: pa.RecordBatch, rows: Iterator[int]) -> bool:
        """Load messages. Return False if there are more than the loader takes now."""
        beside = [(name, batch.column(name)) for name in self._columns]
        values = batch.column("value")
        while not self._loader.is_full:
            row = next(rows, None)
            if row is None:
                return True
            try:
                record = self._record(values[row].as_py())
            except MessageNotReadable as error:
                self.refuse(batch, row, error.reason)
                continue
            if record is None:
                self._negotiator.context.count("dropped")
                continue
            self._loader.start(origin_of(batch, row))
            for name, value in record.items():
                if name not in self.message_columns and (self._names is None or name in self._names):
                    self._loader.set(name, value)
            for name, column in beside:
                self._loader.set(name, column[row].as_py())
            self._loader.save()
        return False

    def _record(self, value: bytes) -> Mapping[str, Any] | None:
        """Return the record of a value. Raises MessageNotReadable, and errors that are not the fault of a message."""
        try:
            record = self.decode(value)
        except MessageNotReadable:
            raise
        except Exception as error:
            if isinstance(error, DagflowError) and error.is_fatal:
                raise
            raise MessageNotReadable(reason=f"{type(error).__name__}: {error}") from error
        if record is None:
            return None
        if isinstance(record, Mapping):
            for name in record:
                if not isinstance(name, str):
                    raise MessageNotReadable(reason=f"its decoder returned the name {name!r}, which is not text")
            return record
        if attrs.has(type(record)):
            return attrs.asdict(record, recurse=False)
        raise MessageNotReadable(reason=f"its decoder returned {type(record).__name__}, and must return a dictionary")
