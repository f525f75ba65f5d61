"""ReadsLog: the half of a reader of ranges of offsets that is the same for records and for columns."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

import attrs
import pyarrow as pa

from dagflow import ErrorRecord, OperatorContext
from dagflow.config import Bytes, MiB, one_of, size_of
from dagflow.errors import DagflowError
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import LogRefused, OffsetsLost, TopicReplaced
from operators.logs.protocol import LogClient, LogStream, MessageLog, OffsetsGone

OnLost = Literal["fail", "skip"]


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


@attrs.define(slots=False)
class ReadsLog:
    """Reads ranges of offsets of a message log.

    Args:
        on_lost: the reaction to messages that the log has deleted since their window was planned: `fail`, or `skip` to go on
            behind them. They are counted, and reported on the port `errors`.
        batch_bytes: about how many bytes of messages are read at a time.
    """

    on_lost: OnLost = attrs.field(default="fail", kw_only=True, validator=one_of(("fail", "skip")))
    batch_bytes: Bytes = attrs.field(default=1 * MiB, kw_only=True, converter=size_of, validator=attrs.validators.ge(1))

    # What subclasses override

    @property
    def log(self) -> MessageLog:
        """The log."""
        raise NotImplementedError

    # For the framework

    def setup_stream(self, block: OffsetBlock) -> LogStream:
        """Open the messages of a block's partition, on the connection of this reader."""
        with self.asking(f"opening {block.name}"):
            return self.connected.client.open(block.topic, block.partition, block.start, block.identity)

    def close_stream(self, stream: LogStream) -> None:
        """Close the messages of a partition."""
        with self.asking("closing a partition"):
            stream.close()

    def place_of(self, block: OffsetBlock) -> str:
        """Return the name of the partition."""
        return block.name

    def item_weight(self, item: OffsetBlock) -> int:
        """Return the bytes of a block, about."""
        return max(1, item.size or item.stop - item.start)

    def teardown(self) -> None:
        """Close the stream and the connection."""
        super().teardown()  # type: ignore[misc]  # this class stands before an operator
        self.disconnect()

    # For subclasses

    @property
    def connected(self) -> Connected:
        """The connection of this reader."""
        connected: Connected | None = self.__dict__.get("_connected")
        if connected is None:
            connected = self.__dict__["_connected"] = Connected(self.log)
        return connected

    def disconnect(self) -> None:
        """Close the connection, if there is one."""
        connected: Connected | None = self.__dict__.pop("_connected", None)
        if connected is not None:
            connected.close()

    @contextlib.contextmanager
    def asking(self, doing: str) -> Iterator[None]:
        """Raise LogRefused for an exception of the client that the adapter did not expect: it is not the fault of a message."""
        try:
            yield
        except TopicReplaced as error:
            context: OperatorContext | None = self.__dict__.get("_context")
            error.operator = error.operator or ("" if context is None else context.name)  # which adapters do not know
            raise
        except (DagflowError, OffsetsGone):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise LogRefused(log=self.log.place, doing=doing, reason=reason) from error

    def next_messages(self, stream: LogStream, block: OffsetBlock, stop: int) -> pa.RecordBatch | None:
        """Return the next messages before an offset, behind those that are lost; None at the end."""
        while stream.position < stop:
            with self.asking(f"reading {block.words}"):
                try:
                    return stream.read(stop)
                except OffsetsGone as gone:
                    first = min(gone.first, stop)
            self.lose(block, stream.position, first)
            with self.asking(f"reading {block.words}"):
                stream.seek(first)
        return None

    def lose(self, block: OffsetBlock, start: int, stop: int) -> None:
        """Apply `on_lost` to offsets that the log no longer has."""
        context: OperatorContext = self.__dict__["_context"]
        lost = OffsetsLost(operator=context.name, partition=block.name, start=start, stop=stop)
        if self.on_lost == "fail":
            raise lost
        context.count("offsets_lost", stop - start)
        self.report_lost(context, lost)

    def report_lost(self, context: OperatorContext, lost: OffsetsLost) -> None:
        """Emit the record of a lost range on the port `errors`."""
        report_lost(self, context, lost)


def lost_text(lost: OffsetsLost) -> str:
    """Return the text of the record of a lost range."""
    return f"{type(lost).__name__}: the log no longer has the offsets {lost.start} to {lost.stop - 1}"


def report_lost(operator: Any, context: OperatorContext, lost: OffsetsLost) -> None:
    """Emit the record of a lost range on the port `errors` of an operator."""
    if operator.errors.is_connected:
        operator.errors.emit(ErrorRecord(context.name, context.window, lost.partition, lost.start, lost_text(lost), ""))
