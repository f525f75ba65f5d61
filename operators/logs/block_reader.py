"""AbstractLogReader: reads ranges of offsets in tasks."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from typing import Any, Generic

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar, override

from dagflow import OperatorContext, OutputPort
from dagflow.scan import RowOrigin
from operators.contexts.entity import PieceReaderContext, ReaderContext
from operators.logs.access import ReadsLog
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import MessageNotReadable
from operators.logs.messages import LogMessage, MessagePiece, beyond_time, reason_of_time
from operators.logs.protocol import LogStream
from operators.readers.abstract_block_reader import AbstractBlockReader
from operators.readers.reading.block_loop import BlockLoop
from operators.readers.reading.claiming import Claiming
from operators.readers.reading.reader_time import ReaderTime
from operators.readers.reading.record_output import SHOWN_CHARACTERS, RecordOutput

R = TypeVar("R", default=bytes)


@attrs.define
class MessageContext(PieceReaderContext):
    """Finds messages: reads a stream up to the stop of a block, whatever gaps the offsets have.

    `access`: the reader, which reacts to messages that are lost.
    """

    access: Any = attrs.field(default=None, eq=False, repr=False)
    _stream: LogStream | None = attrs.field(init=False, default=None, eq=False, repr=False)
    _block: Any = attrs.field(init=False, default=None, eq=False, repr=False)

    supports_pieces = True

    @override
    def initialize(self, stream: Any, block: OffsetBlock, consecutive: bool) -> None:
        self._stream, self._block = stream, block
        self._entities = iter(())
        if stream.position != block.start:
            with self.access.asking(f"reading {block.words}"):
                stream.seek(block.start)

    @override
    def next_piece(self) -> MessagePiece | None:
        assert self._stream is not None
        batch = self.access.next_messages(self._stream, self._block, self._block.stop)
        return None if batch is None else MessagePiece(batch)


@attrs.define
class MessageOutput(RecordOutput):
    """Emits messages: with all columns on the port `batches`, their values on the port `messages`.

    `batches`: that port. `last`: the batch that was emitted last.
    """

    batches: OutputPort[Any] = attrs.field(kw_only=True)
    last: pa.RecordBatch | None = attrs.field(init=False, default=None)

    @override
    def emit_piece(self, piece: Any) -> None:
        self.context.at(self._path, piece.position)
        self.finder.count_bytes(piece.used_bytes)
        if self.batches.is_connected:
            self.last = batch = self._in_time(piece.batch)
            with self.excluded:
                self.batches.emit_batch(batch)
            if not self.port.is_connected:
                self.context.count("records", batch.num_rows)
        elif not self.port.is_connected:
            self.context.count("records", len(piece))
        if not self.port.is_connected:
            return
        self.last = piece.batch
        filled = piece.with_values()
        if filled is not piece:
            self.context.count("dropped", len(piece) - (0 if filled is None else len(filled)))
        if filled is not None:
            self.last = filled.batch
            self._emit(filled)

    def _in_time(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return messages without those whose time no `LogMessage` holds. To these, `on_error` applies."""
        wrong = beyond_time(batch)
        if wrong is None:
            return batch
        for row in pc.indices_nonzero(wrong).to_pylist():
            value = (batch.column("value")[row].as_py() or b"")[:SHOWN_CHARACTERS].decode("utf-8", "backslashreplace")
            offset = batch.column("offset")[row].as_py()
            reason = f"at offset {offset} of {self._path}, {reason_of_time(batch, row)}"
            self.context.bad_record(MessageNotReadable(reason=reason), value, offset)
        return batch.filter(pc.invert(wrong))


@attrs.define
class AbstractLogReader(ReadsLog, AbstractBlockReader[R, OffsetBlock, LogStream], Generic[R]):
    """Reads ranges of offsets of a message log, each message once.

    `messages` has the values of messages, converted by `convert_to_record`, with their offsets as positions. A message without a
    value is not emitted there, and counted as dropped. `batches` has all columns of all messages: see LogMessage. A message
    with a time outside of the years 1 to 9999 is a bad one there.

    A subclass says how the log is reached (`log`, see ReadsLog). Idle readers take over the end of the range that a busy one
    reads; a reader keeps its connection over all blocks, and its stream where blocks follow each other.

    Args:
        convert_to_record: a function of a message's value, None drops the message; or override the method of that name.
        on_lost, batch_bytes: see ReadsLog.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: see ScaledReader.

    Counters: `blocks`, `records`, `bytes` (of keys and values), `dropped`, `offsets_lost`, `streams_opened`, `time_ms`.
    `on_error` applies to each message that cannot be converted; errors name topic, partition and offset. It never skips a
    block because its log fails.

    Raises OffsetsLost, TopicReplaced, LogRefused, and LogUnavailable, after which the task runs again.
    """

    reader_context: ReaderContext = attrs.field(init=False, factory=MessageContext, repr=False, eq=False)
    batches = OutputPort[LogMessage]()

    # The parts of the loop

    def setup(self, context: OperatorContext) -> None:
        """Make the loop. The first block connects."""
        self._context = context
        assert isinstance(self.reader_context, MessageContext)
        self.reader_context.access = self
        finder, conversion, time = self.make_finder(context), self.make_conversion(), ReaderTime(context)
        output = MessageOutput(
            context, finder, conversion, self.messages, self.on_error == "fail", time.excluded, batches=self.batches
        )
        in_batches = self.batches.is_connected or self.messages.wants_batches
        claiming = Claiming(context.clock, in_batches) if context.is_rebalanced else None
        self._loop = BlockLoop(self, context, finder, output, time, claiming)
        self._output = output

    def item_group(self, item: OffsetBlock) -> str | None:
        """Return the partition, whose blocks stay together where the reader is `sequential`."""
        return item.name if self.sequential else None

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches for the port of that name, whatever handler takes them."""
        return frozenset({"batch"}) if port == "batches" else super().emitted_forms(port, handled)

    def origin_of(self, row: int) -> RowOrigin:
        """Return the offset and the value of a message of the batch that was emitted last, for `dagflow trace`."""
        last = self._output.last
        if last is None:
            return RowOrigin()
        value = last.column("value")[row].as_py()
        return RowOrigin(position=last.column("offset")[row].as_py(), data=memoryview(value or b""))
