"""The loop that reads blocks: opens streams, finds records, claims them, and emits them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import attrs

from dagflow import OperatorContext
from dagflow.ranges import RangeTracker
from operators.contexts.errors import ReadError
from operators.readers.reading.claiming import Claiming
from operators.readers.reading.conversion import BytesConversion
from operators.readers.reading.joined_pieces import MAX_BLOCK_BYTES, may_be_joined
from operators.readers.reading.reader_time import ReaderTime
from operators.readers.reading.record_finder import RecordFinder
from operators.readers.reading.record_output import RecordOutput


class BlockSource(Protocol):
    """The methods of a reader by which the loop reads blocks, and the ports to which it emits."""

    on_error: Any
    messages: Any
    blocks_metadata_output: Any

    def setup_stream(self, block: Any) -> Any:
        """Open the stream of a block."""
        ...

    def close_stream(self, stream: Any) -> None:
        """Close a stream."""
        ...

    def place_of(self, block: Any) -> str | None:
        """Return the name of the place that a block is read from, for messages."""
        ...

    def can_split(self, item: Any) -> bool:
        """Return True if different readers may read parts of a block."""
        ...

    def tracker_of(self, block: Any) -> RangeTracker[Any]:
        """Return a new tracker of the range of a block."""
        ...


@attrs.define
class BlockLoop:
    """Reads the blocks of one task, one after the other.

    The stream of a block stays open for its successor. Without `claiming`, no other reader takes over parts of blocks.
    `joins`: the records of small blocks wait for others, and are emitted together; `end` emits the last of them.
    """

    source: BlockSource
    context: OperatorContext
    finder: RecordFinder
    output: RecordOutput
    time: ReaderTime
    claiming: Claiming | None
    joins: bool = False
    _stream: Any = None
    _is_open: bool = False
    _last_block_id: int | None = None

    @classmethod
    def of(cls, source: BlockSource, context: OperatorContext, finder: RecordFinder, conversion: BytesConversion) -> BlockLoop:
        """Return the loop of a reader in a task."""
        time, port = ReaderTime(context), source.messages
        output = RecordOutput(context, finder, conversion, port, source.on_error == "fail", time.excluded)
        claiming = Claiming(context.clock, port.wants_batches) if context.is_rebalanced else None
        joins = port.takes_mixed_batches and output.is_vectorised and not source.blocks_metadata_output.is_connected
        return cls(source, context, finder, output, time, claiming, joins and not context.seeks_crash)

    def read(self, block: Any) -> Iterator[None]:
        """Read a block. Where other readers may take over its rest, all claimed records have been emitted after each step."""
        context, path = self.context, self.source.place_of(block)
        self.time.begin_block()
        joins = self._joins(block, path)
        if self.output.is_waiting and not joins:
            self.emit_waiting()
        context.at(path, getattr(block, "start", None))
        self.output.begin_block(block, path)
        try:
            is_consecutive = self._is_successor(block)
            if not is_consecutive:
                self._open_stream(block)
            yield from self._read_records(block, path, is_consecutive, joins)
        except BaseException as error:
            if isinstance(error, ReadError):
                error.of(context.name)
            self._close_stream()
            raise
        self._last_block_id = block.block_id
        if self.claiming is not None and self.claiming.is_over:
            self._close_stream()  # the block has not been read to its stop: nothing continues from here
        self.time.end_block()
        self._complete(block)

    def end(self) -> None:
        """Emit what waits, at the end of the window."""
        if self.output.is_waiting:
            self.time.begin_block()
            try:
                self.emit_waiting()
            except ReadError as error:
                error.of(self.context.name)
                raise
            self.time.end_block()

    def close(self) -> None:
        """Close the stream, and what the reader context keeps."""
        self._close_stream()
        self.finder.reader_context.close()

    # The stream

    def _is_successor(self, block: Any) -> bool:
        previous = getattr(block, "previous_block_id", -1)
        return self._is_open and previous != -1 and previous == self._last_block_id

    def _open_stream(self, block: Any) -> None:
        self._close_stream()
        self._stream = self.source.setup_stream(block)
        self._is_open = True
        self.context.count("streams_opened")

    def _close_stream(self) -> None:
        self._last_block_id = None
        if self._is_open:
            stream, self._stream, self._is_open = self._stream, None, False
            self.source.close_stream(stream)

    # The records of small blocks

    def _joins(self, block: Any, path: str | None) -> bool:
        """Return True if the records of a block may wait for those of others. Those of parts of blocks do not."""
        return self.joins and path is not None and self.context.part is None and block.stop - block.start <= MAX_BLOCK_BYTES

    def emit_waiting(self) -> None:
        """Emit the records that wait."""
        claiming = self.claiming
        began = claiming.clock.monotonic() if claiming is not None else 0.0
        count = self.output.emit_waiting()
        if claiming is not None:
            self.context.flush()
            claiming.passed_on(count, claiming.clock.monotonic() - began)

    # The records

    def _read_records(self, block: Any, path: str | None, is_consecutive: bool, joins: bool) -> Iterator[None]:
        if self.claiming is not None:
            yield from self._read_claimed(block, path, is_consecutive, self.claiming, joins)
        elif self.finder.has_pieces:
            for piece in self._find(block, is_consecutive):
                if joins and may_be_joined(piece):
                    self.output.keep(piece)
                    if self.output.is_full:
                        self.emit_waiting()
                else:
                    self.output.emit_piece(piece)
        else:
            for entity in self._find(block, is_consecutive):
                self.output.collect(entity)
            self.output.emit_collected()

    def _find(self, block: Any, is_consecutive: bool) -> Iterator[Any]:
        """Yield the pieces or entities of a block. Where the context fails, the entities before are emitted first."""
        records = self.finder.find(self._stream, block, is_consecutive)
        while True:
            try:
                record = next(records, None)
            except Exception:
                self.output.emit_before_error()
                raise
            if record is None:
                return
            yield record

    def _read_claimed(
        self, block: Any, path: str | None, is_consecutive: bool, claiming: Claiming, joins: bool
    ) -> Iterator[None]:
        """Read a block whose rest other readers may take over: emit all claimed records before more are claimed.

        Where it `joins`, records wait as long as all that wait would have been claimed at once.
        """
        output, reader_context, has_pieces = self.output, self.finder.reader_context, self.finder.has_pieces
        claiming.begin()
        clock, began = claiming.clock, 0.0
        for record in self._find(block, is_consecutive):
            if claiming.tracker is None and self.source.can_split(block) and reader_context.can_be_cut():
                claiming.track(self.source.tracker_of(block), joins=joins)
                self.context.track(claiming.tracker)
            if has_pieces:
                for piece in (record,) if claiming.tracker is None else claiming.parts(record):
                    can_wait = joins and may_be_joined(piece)
                    if output.is_waiting and not (can_wait and claiming.has_room(len(piece))):
                        self.emit_waiting()
                    if can_wait and claiming.may_wait(len(piece)):
                        output.keep(piece)
                        if output.is_full:
                            self.emit_waiting()
                        continue
                    output.emit_piece(piece)
                    self.context.flush()
                    yield
            elif claiming.tracker is None or claiming.entity(reader_context, record):
                began = began if len(output) else clock.monotonic()
                output.collect(record)
                if len(output) >= claiming.limit:
                    self._emit_claimed(claiming, began)
                    yield
            if claiming.is_over:
                break
        self._emit_claimed(claiming, began)

    def _emit_claimed(self, claiming: Claiming, began: float) -> None:
        count = self.output.emit_collected()
        if count:
            self.context.flush()
            claiming.passed_on(count, claiming.clock.monotonic() - began)

    # The end of a block

    def _complete(self, block: Any) -> None:
        part = self.context.part
        self.context.count("blocks", int(part is None or part.start is None))  # a block counts where its start is read
        completed = self.source.blocks_metadata_output
        if completed.is_connected and self.context.completes_item():
            completed.emit(block if part is None else part.whole)
