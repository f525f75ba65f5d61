"""AbstractBlockReader: reads blocks of anything and parses them into records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import InputPort, OperatorContext, OutputPort, ReaderRecord
from dagflow.ranges import ByteKeyRangeTracker, OffsetRangeTracker
from operators.contexts import ReaderContext
from operators.readers.reading.block_loop import BlockLoop
from operators.readers.reading.conversion import BytesConversion
from operators.readers.reading.record_finder import RecordFinder
from operators.readers.scaled_reader import ScaledReader

R = TypeVar("R", default=str)
B = TypeVar("B", default=Any)
S = TypeVar("S", default=Any)


def a_context(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a property that holds a reader context."""
    if isinstance(value, type):
        raise TypeError(f"{attribute.name} is the class {value.__name__}, but must be an instance: {value.__name__}(…)")
    missing = [name for name in ("initialize", "next", "close") if not callable(getattr(value, name, None))]
    if missing:
        raise TypeError(f"{attribute.name} is {value!r}, which has no {missing[0]}(): derive it from operators.ReaderContext")


def a_converter(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a property that holds a function of a record's bytes, or None."""
    if value is not None and not callable(value):
        hint = f"reader_context={type(value).__name__}(…)" if hasattr(value, "initialize") else "a function of a record's bytes"
        raise TypeError(f"{attribute.alias} is {value!r}: write {hint}")


@attrs.define
class AbstractBlockReader(ScaledReader, Generic[R, B, S]):
    """Reads blocks and emits their records, each with its block and position.

    The model is Malhar's AbstractBlockReader (https://github.com/apache/apex-malhar, com.datatorrent.lib.io.block). It knows
    no files: a block is anything with a `block_id`, and a `previous_block_id` where blocks share a stream with their
    successors. R, B and S are the types of records, of blocks and of streams. A subclass opens the stream of a block
    (`setup_stream`), `reader_context` finds the records in it, and `convert_to_record` turns their bytes into values to emit.

    In a task, a `BlockLoop` reads the blocks. It holds the open stream, and claims records that other readers could steal.

    Args:
        convert_to_record: a function of a record's bytes, None drops the record; or override the method of that name.
        reader_context: finds the bytes of each record.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: the number of readers, see `ScaledReader`.

    Counters: `blocks`, `records`, `bytes` (terminators and dropped records included), `dropped`,
    `streams_opened`, `time_ms` (without the time of the operators behind).
    `on_error` applies to each record that cannot be converted. An error of a block's stream or context ends that block; other
    readers read the part that they have taken over.
    """

    converter: Callable[[bytes], R | None] | None = attrs.field(default=None, alias="convert_to_record", validator=a_converter)
    reader_context: ReaderContext = attrs.field(kw_only=True, validator=a_context)

    blocks_metadata_input = InputPort[B]()
    blocks_metadata_output = OutputPort[B](completed_items=True)
    messages = OutputPort[ReaderRecord[R]]()

    # A reader of your own overrides these

    def setup_stream(self, block: B) -> S:
        """Open the stream that a block is read from."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say how a block's stream is opened: override setup_stream(block)"
        )

    def close_stream(self, stream: S) -> None:
        """Close a stream."""
        stream.close()  # type: ignore[attr-defined]  # a reader whose streams have no close() overrides this

    def convert_to_record(self, data: bytes) -> R | None:
        """Return the record to emit for these bytes; None drops it. By default the bytes, or the result of the function given."""
        return data if self.converter is None else self.converter(data)  # type: ignore[return-value]  # R is bytes then

    def place_of(self, block: B) -> str | None:
        """Return the name of the place that a block is read from, which messages have before a position: that of its file."""
        return getattr(block, "file_path", None)

    def can_split(self, item: B) -> bool:
        """Return True if a block may be split into parts that are read by different readers."""
        return self._is_cut_anywhere(item) and getattr(item, "as_planned", True)

    def tracker_of(self, block: B) -> Any:
        """Return a new tracker of the range of a block that `can_split`, or of a part of one (`dagflow.ranges`).

        By default of integers or bytes. A reader of ranges of other positions overrides it.
        """
        bounds: Any = block.start, block.stop  # type: ignore[attr-defined]
        return (ByteKeyRangeTracker if isinstance(bounds[0], bytes) else OffsetRangeTracker)(*bounds)

    def record_at(self, block: B, position: int) -> bytes | None:
        """Return the bytes that the record at a position uses, for `dagflow trace --exact`; None if no record starts there.

        By default, the block is read up to it. A source that finds it at once overrides this.
        """
        stream, finder = self.setup_stream(block), self.make_finder(OperatorContext())
        try:
            is_narrowed = self._is_cut_anywhere(block) and isinstance(block.start, int)  # type: ignore[attr-defined]
            return finder.reread(stream, block, position, is_narrowed)
        finally:
            finder.reader_context.close()
            self.close_stream(stream)

    # The parts of the loop

    def make_finder(self, context: OperatorContext) -> RecordFinder:
        """Return the object that finds the records in streams."""
        return RecordFinder(self.reader_context, context)

    def make_conversion(self) -> BytesConversion:
        """Return the object that converts records, all of a piece at once unless `convert_to_record` is the user's."""
        is_overridden = type(self).convert_to_record is not AbstractBlockReader.convert_to_record
        return BytesConversion(self.convert_to_record, is_custom=is_overridden or self.converter is not None)

    def setup(self, context: OperatorContext) -> None:
        """Make the loop."""
        self._loop = BlockLoop.of(self, context, self.make_finder(context), self.make_conversion())
        own = (getattr(type(self), name) is not getattr(AbstractBlockReader, name) for name in ("read_block", "end_window"))
        self._loop.joins &= not any(own)  # these may count on what has been emitted, or not emit what waits

    @blocks_metadata_input.process
    def process_block(self, block: B) -> None:
        """Read a block."""
        for _ in self.read_block(block):
            pass

    def read_block(self, block: B) -> Iterator[None]:
        """Read a block in steps. Where other readers may take over its rest, all claimed records are emitted after each step.

        Where `messages` takes batches of records of several blocks, those of small blocks wait until `end_window` at most.
        """
        return self._loop.read(block)

    def end_window(self) -> None:
        """Emit the records of small blocks that wait for others."""
        self._loop.end()

    def claimed_at(self, position: int) -> Any:
        """Return the split point claimed for a record of the current block, in the unit of blocks."""
        return self._loop.finder.reader_context.claimed_at(position)

    def teardown(self) -> None:
        """Close the stream."""
        if hasattr(self, "_loop"):
            self._loop.close()

    # For the planner

    @property
    def splittable(self) -> bool:
        """True if a block may be cut anywhere, also while it is being read."""
        return self.reader_context.cuts == "any"

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches, too, where neither the context nor the conversion works on one record at a time."""
        has_pieces = getattr(self.reader_context, "supports_pieces", False)
        if port == "messages" and has_pieces and not self.make_conversion().is_custom:
            return frozenset({"record", "batch"})
        return super().emitted_forms(port, handled)

    def _is_cut_anywhere(self, block: B) -> bool:
        bounds = getattr(block, "start", None), getattr(block, "stop", None)
        has_tracker = isinstance(bounds[0], int | bytes) or type(self).tracker_of is not AbstractBlockReader.tracker_of
        return None not in bounds and has_tracker and self.reader_context.cuts == "any" and attrs.has(type(block))
