"""AbstractLogReader: reads ranges of offsets in tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Generic, Literal

import attrs
import pyarrow as pa
from typing_extensions import TypeVar, override

from dagflow import ErrorRecord, OperatorContext, OutputPort
from dagflow.config import Bytes, MiB, one_of
from dagflow.errors import DagflowError
from dagflow.scan import RowOrigin
from operators.contexts.entity import PieceReaderContext, ReaderContext
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import LogRefused, OffsetsLost, TopicReplaced
from operators.logs.messages import LogMessage, MessagePiece
from operators.logs.protocol import LogClient, LogStream, MessageLog, OffsetsGone
from operators.readers.abstract_block_reader import AbstractBlockReader
from operators.readers.reading.block_loop import BlockLoop
from operators.readers.reading.claiming import Claiming
from operators.readers.reading.reader_time import ReaderTime
from operators.readers.reading.record_output import RecordOutput

R = TypeVar("R", default=bytes)

OnLost = Literal["fail", "skip"]


@attrs.define
class MessageContext(PieceReaderContext):
    """Finds messages: reads a stream up to the stop of a block, whatever gaps the offsets have.

    `on_gone` is called with a position and the first offset behind it that is left, where messages between them are lost.
    `asking` is entered with a purpose while the stream is used: see `AbstractLogReader.asking`.
    """

    on_gone: Any = attrs.field(default=None, eq=False, repr=False)
    asking: Callable[[str], Any] = attrs.field(default=contextlib.nullcontext, eq=False, repr=False)
    _stream: LogStream | None = attrs.field(init=False, default=None, eq=False, repr=False)
    _block: Any = attrs.field(init=False, default=None, eq=False, repr=False)

    supports_pieces = True

    @override
    def initialize(self, stream: Any, block: OffsetBlock, consecutive: bool) -> None:
        self._stream, self._block = stream, block
        self._entities = iter(())
        if stream.position != block.start:
            with self.asking(f"reading {block.words}"):
                stream.seek(block.start)

    @override
    def next_piece(self) -> MessagePiece | None:
        stream, block = self._stream, self._block
        assert stream is not None
        while stream.position < block.stop:
            try:
                with self.asking(f"reading {block.words}"):
                    batch = stream.read(block.stop)
            except OffsetsGone as gone:
                self.on_gone(block, stream.position, min(gone.first, block.stop))
                with self.asking(f"reading {block.words}"):
                    stream.seek(min(gone.first, block.stop))
                continue
            return None if batch is None else MessagePiece(batch)
        return None


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
        self.last = piece.batch
        if self.batches.is_connected:
            with self.excluded:
                self.batches.emit_batch(piece.batch)
        if not self.port.is_connected:
            self.context.count("records", len(piece))
            return
        filled = piece.with_values()
        if filled is not piece:
            self.context.count("dropped", len(piece) - (0 if filled is None else len(filled)))
        if filled is not None:
            self.last = filled.batch
            self._emit(filled)


@attrs.define
class AbstractLogReader(AbstractBlockReader[R, OffsetBlock, LogStream], Generic[R]):
    """Reads ranges of offsets of a message log, each message once.

    `messages` has the values of messages, converted by `convert_to_record`, with their offsets as positions. A message without a
    value is not emitted there, and counted as dropped. `batches` has all columns of all messages: see LogMessage.

    A subclass says how the log is reached (`log`). Idle readers take over the end of the range that a busy one reads; a reader
    keeps its connection over all blocks, and its stream where blocks follow each other.

    Args:
        convert_to_record: a function of a message's value, None drops the message; or override the method of that name.
        on_lost: the reaction to messages that the log has deleted since their window was planned: `fail`, or `skip` to go on
            behind them. They are counted, and reported on the port `errors`.
        batch_bytes: about how many bytes of messages are read at a time.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: see ScaledReader.

    Counters: `blocks`, `records`, `bytes` (of keys and values), `dropped`, `offsets_lost`, `streams_opened`, `time_ms`.
    `on_error` applies to each message that cannot be converted; errors name topic, partition and offset. It never skips a
    block because its log fails.

    Raises OffsetsLost, TopicReplaced, LogRefused, and LogUnavailable, after which the task runs again.
    """

    reader_context: ReaderContext = attrs.field(init=False, factory=MessageContext, repr=False, eq=False)
    on_lost: OnLost = attrs.field(default="fail", kw_only=True, validator=one_of(("fail", "skip")))
    batch_bytes: Bytes = attrs.field(default=1 * MiB, kw_only=True, validator=attrs.validators.ge(1))

    batches = OutputPort[LogMessage]()

    # What subclasses override

    @property
    def log(self) -> MessageLog:
        """The log."""
        raise NotImplementedError

    # The parts of the loop

    def setup(self, context: OperatorContext) -> None:
        """Make the loop. The first block connects."""
        self._context, self._connected = context, Connected(self.log)
        assert isinstance(self.reader_context, MessageContext)
        self.reader_context.on_gone, self.reader_context.asking = self._lose, self.asking
        finder, conversion, time = self.make_finder(context), self.make_conversion(), ReaderTime(context)
        output = MessageOutput(
            context, finder, conversion, self.messages, self.on_error == "fail", time.excluded, batches=self.batches
        )
        in_batches = self.batches.is_connected or self.messages.wants_batches
        claiming = Claiming(context.clock, in_batches) if context.is_rebalanced else None
        self._loop = BlockLoop(self, context, finder, output, time, claiming)
        self._output = output

    def setup_stream(self, block: OffsetBlock) -> LogStream:
        """Open the messages of a block's partition, on the connection of this reader."""
        with self.asking(f"opening {block.name}"):
            return self._connected.client.open(block.topic, block.partition, block.start, block.identity)

    def close_stream(self, stream: LogStream) -> None:
        """Close the messages of a partition."""
        with self.asking("closing a partition"):
            stream.close()

    @contextlib.contextmanager
    def asking(self, doing: str) -> Iterator[None]:
        """Raise LogRefused for an exception of the client that the adapter did not expect: it is not the fault of a message."""
        try:
            yield
        except TopicReplaced as error:
            error.operator = error.operator or self._context.name  # which adapters do not know
            raise
        except (DagflowError, OffsetsGone):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise LogRefused(log=self._connected.log.place, doing=doing, reason=reason) from error

    def place_of(self, block: OffsetBlock) -> str:
        """Return the name of the partition."""
        return block.name

    def item_weight(self, item: OffsetBlock) -> int:
        """Return the bytes of a block, about."""
        return max(1, item.size or item.stop - item.start)

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

    def teardown(self) -> None:
        """Close the stream and the connection."""
        super().teardown()
        if hasattr(self, "_connected"):
            self._connected.close()

    def _lose(self, block: OffsetBlock, start: int, stop: int) -> None:
        """Apply `on_lost` to offsets that the log no longer has."""
        lost = OffsetsLost(operator=self._context.name, partition=block.name, start=start, stop=stop)
        if self.on_lost == "fail":
            raise lost
        self._context.count("offsets_lost", stop - start)
        report_lost(self, self._context, lost)


def report_lost(operator: Any, context: OperatorContext, lost: OffsetsLost) -> None:
    """Emit the record of a lost range on the port `errors` of an operator."""
    if operator.errors.is_connected:
        text = f"{type(lost).__name__}: the log no longer has the offsets {lost.start} to {lost.stop - 1}"
        operator.errors.emit(ErrorRecord(context.name, context.window, lost.partition, lost.start, text, ""))


class Connected:
    """A connection to a log that is made when it is first used."""

    def __init__(self, log: MessageLog) -> None:
        self.log = log
        self._client: LogClient | None = None

    @property
    def client(self) -> LogClient:
        """The connection."""
        if self._client is None:
            self._client = self.log.connect()
        return self._client

    def close(self) -> None:
        """Close it, if it was made. Another use connects anew."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
