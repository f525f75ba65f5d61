"""AbstractBlockReader: reads blocks of anything and parses them into records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress, repeat
from operator import is_not
from typing import TYPE_CHECKING, Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import InputPort, OperatorContext, OutputPort, ReaderRecord
from dagflow.ranges import ByteKeyRangeTracker, OffsetRangeTracker
from operators.contexts import BadText, Entity, Piece, ReaderContext
from operators.contexts.errors import ReadError
from operators.readers.claiming import Claiming
from operators.readers.reading import Reading, whole_numbers
from operators.readers.scaled_reader import ScaledReader

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R", default=str)
B = TypeVar("B", default=Any)
S = TypeVar("S", default=Any)

RECORDS_AT_ONCE = 16_384
"""Records are passed on in lists of at most so many."""
ROWS_AT_ONCE = 65_536
"""Batches have at most so many rows."""
BYTES_AT_ONCE = 1 << 20
"""Single entities are collected up to so many bytes before they are passed on."""
SHOWN_CHARACTERS = 1_000


def a_context(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validates a property that holds a reader context."""
    if isinstance(value, type):
        raise TypeError(f"{attribute.name} is the class {value.__name__}, but must be an instance: {value.__name__}(…)")
    missing = [name for name in ("initialize", "next", "close") if not callable(getattr(value, name, None))]
    if missing:
        raise TypeError(f"{attribute.name} is {value!r}, which has no {missing[0]}(): derive it from operators.ReaderContext")


def a_converter(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validates a property that holds a function of a record's bytes, or None."""
    if value is not None and not callable(value):
        hint = f"reader_context={type(value).__name__}(…)" if hasattr(value, "initialize") else "a function of a record's bytes"
        raise TypeError(f"{attribute.alias} is {value!r}: write {hint}")


@attrs.define
class AbstractBlockReader(ScaledReader, Generic[R, B, S]):
    """Reads blocks and emits their records, each with its block and position.

    The model is Malhar's AbstractBlockReader (https://github.com/apache/apex-malhar, com.datatorrent.lib.io.block). It knows
    no files: a block is anything with a `block_id`, and a `previous_block_id` where blocks share a stream with their
    successors. Subclasses say how a stream is opened (`setup_stream`); `reader_context` finds the records in it,
    `convert_to_record` makes of their bytes what is emitted. R, B and S are the types of records, of blocks and of streams.

    Args:
        convert_to_record: a function of a record's bytes, None drops the record; or override the method of that name.
        reader_context: finds the bytes of each record.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: how many readers there are, see
            `ScaledReader`.

    Counters: `blocks`, `records`, `bytes` (terminators and dropped records included), `dropped`,
    `streams_opened`, `time_ms` (without the time of the operators behind).
    `on_error` applies to each record that cannot be converted; an error of a block's stream or context ends that block (of which
    others may have taken over the rest, which they read).
    """

    converter: Callable[[bytes], R | None] | None = attrs.field(default=None, alias="convert_to_record", validator=a_converter)
    reader_context: ReaderContext = attrs.field(kw_only=True, validator=a_context)

    blocks_metadata_input = InputPort[B]()
    blocks_metadata_output = OutputPort[B](completed_items=True)
    messages = OutputPort[ReaderRecord[R]]()

    # What a source of blocks says

    def setup_stream(self, block: B) -> S:
        """Opens the stream that a block is read from."""
        raise NotImplementedError(
            f"{type(self).__name__} does not say how a block's stream is opened: override setup_stream(block)"
        )

    def close_stream(self, stream: S) -> None:
        """Closes a stream."""
        stream.close()  # type: ignore[attr-defined]  # whose stream has no close() overrides this

    def convert_to_record(self, data: bytes) -> R | None:
        """Return the record to emit for these bytes; None drops it. By default the bytes, or the result of the function given."""
        return data if self.converter is None else self.converter(data)  # type: ignore[return-value]  # R is bytes then

    # For the planner

    @property
    def splittable(self) -> bool:
        """True if a block may be cut anywhere, also while it is being read."""
        return self.reader_context.cuts == "any"

    def can_split(self, item: B) -> bool:
        """Return True if a block may be split into parts that are read by different readers."""
        return self._is_cut_anywhere(item) and getattr(item, "as_planned", True)

    def tracker_of(self, block: B) -> Any:
        """A new tracker of the range of a block that `can_split`, or of a part of one (`dagflow.ranges`).

        Here: of integers, or of keys. A reader of ranges of other positions overrides it.
        """
        bounds: Any = block.start, block.stop  # type: ignore[attr-defined]
        return (ByteKeyRangeTracker if isinstance(bounds[0], bytes) else OffsetRangeTracker)(*bounds)

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Records also come in batches where neither the context nor the conversion is one record at a time."""
        if port == "messages" and self._is_vectorised():
            return frozenset({"record", "batch"})
        return super().emitted_forms(port, handled)

    # Reading

    def setup(self, context: OperatorContext) -> None:
        """Makes ready to read."""
        self._task = Reading(context)
        self._finder = self._make_finder()
        self._has_pieces = getattr(self._finder, "supports_pieces", False)
        self._vectorised = self._is_vectorised()
        self._claiming = Claiming(context.clock, self.messages.wants_batches) if context.is_rebalanced else None

    @blocks_metadata_input.process
    def process_block(self, block: B) -> None:
        """Reads one block, on the stream of the one before where it is its successor."""
        for _ in self.read_block(block):
            pass

    def read_block(self, block: B) -> Iterator[None]:
        """Does so step by step where others may take over the rest: all that is claimed has been handed on after each step."""
        task = self._task
        path = getattr(block, "file_path", None)
        task.context.at(path, getattr(block, "start", None))
        task.begin()
        try:
            is_consecutive = task.is_successor(block)
            if not is_consecutive:
                self._let_go()
                task.stream = self.setup_stream(block)
                task.has_stream = True
                task.context.count("streams_opened")
            yield from self._read(block, path, is_consecutive)
        except BaseException as error:
            if isinstance(error, ReadError):
                error.of(task.context.name)
            self._let_go()
            raise
        task.last_block_id = block.block_id  # type: ignore[attr-defined]
        if self._claiming is not None and self._claiming.is_over:
            self._let_go()  # it has not been read to its stop: nothing continues from here
        part = task.context.part
        task.context.count("blocks", int(part is None or part.start is None))  # a block counts where its start is read
        task.end()
        if self.blocks_metadata_output.is_connected and task.context.completes_item():
            self.blocks_metadata_output.emit(block if part is None else part.whole)

    def claimed_at(self, position: int) -> Any:
        """Return what was claimed for a record of the current block: its split point, in the unit of blocks."""
        return self._finder.claimed_at(position)

    def record_at(self, block: B, position: int) -> bytes | None:
        """The bytes that the record at a position uses in the source, read again for `dagflow trace --exact`; None: no such one.

        Here, the block is read up to it. A source that finds it at once overrides this.
        """
        stream: Any = self.setup_stream(block)
        whole: Any = block
        try:
            # where cuts do not matter, a block that is only its first byte has this record, and no other has to be read
            narrow = self._is_cut_anywhere(block) and isinstance(whole.start, int)
            for part in (attrs.evolve(whole, start=position, stop=position + 1), whole) if narrow else (whole,):
                found = self._entity_at(stream, part, position)
                if found is not None:
                    return self.bytes_of(stream, found)
            return None
        finally:
            self.reader_context.close()
            self.close_stream(stream)

    def bytes_of(self, stream: S, entity: Entity) -> bytes:
        """The bytes that a record uses in the source; of files, its terminator is among them. Here: its own."""
        return bytes(entity.record)

    def _is_cut_anywhere(self, block: B) -> bool:
        bounds = getattr(block, "start", None), getattr(block, "stop", None)
        has_tracker = isinstance(bounds[0], int | bytes) or type(self).tracker_of is not AbstractBlockReader.tracker_of
        return None not in bounds and has_tracker and self.reader_context.cuts == "any" and attrs.has(type(block))

    def _entity_at(self, stream: S, block: B, position: int) -> Entity | None:
        context = self.reader_context
        context.initialize(stream, block, False)  # type: ignore[arg-type]  # what streams are, the context knows
        while (entity := context.next()) is not None and entity.position != position:
            pass
        return entity

    def teardown(self) -> None:
        """Closes the stream."""
        if hasattr(self, "_task"):
            self._let_go()
            self._finder.close()

    def _make_finder(self) -> ReaderContext:
        """Return the context that finds the records in streams: `reader_context`, or a wrapper of it."""
        return self.reader_context

    def _count_bytes(self, used: int) -> None:
        """Records that use so many bytes of their stream have been found."""
        self._task.context.count("bytes", used)

    def _read(self, block: B, path: str | None, is_consecutive: bool) -> Iterator[None]:
        """The one loop over what a block holds: pieces, where the context has them, else single entities."""
        if self._claiming is not None:
            yield from self._read_claimed(block, path, is_consecutive, self._claiming)
        elif self._has_pieces:
            for piece in self._found(block, is_consecutive):
                self._task.context.at(path, piece.position)
                self._take_piece(block, piece)
        else:
            for entity in self._found(block, is_consecutive):
                self._take_entity(block, entity)
            self._pass_on_entities(block)

    def _read_claimed(self, block: B, path: str | None, is_consecutive: bool, claiming: Claiming) -> Iterator[None]:
        """The same where others may take over what is not claimed; what is claimed is passed on to the end before more is."""
        task, context = self._task, self._finder
        claiming.begin()
        clock, began = claiming.clock, 0.0
        for found in self._found(block, is_consecutive):
            if claiming.tracker is None and self.can_split(block) and context.can_be_cut():
                claiming.track(self.tracker_of(block))
                task.context.track(claiming.tracker)
            if self._has_pieces:
                for piece in (found,) if claiming.tracker is None else claiming.parts(found):
                    task.context.at(path, piece.position)
                    self._take_piece(block, piece)
                    task.context.flush()
                    yield
            elif claiming.tracker is None or claiming.entity(context, found):
                began = began if task.data else clock.monotonic()
                self._take_entity(block, found)
                if len(task.data) >= claiming.limit:
                    self._pass_on_claimed(block, claiming, began)
                    yield
            if claiming.is_over:
                break
        self._pass_on_claimed(block, claiming, began)

    def _pass_on_claimed(self, block: B, claiming: Claiming, began: float) -> None:
        count = len(self._task.data)
        self._pass_on_entities(block)
        if count:
            self._task.context.flush()
            claiming.passed_on(count, claiming.clock.monotonic() - began)

    def _found(self, block: B, is_consecutive: bool) -> Iterator[Any]:
        """Yield what the context finds in a block. When it fails, what it has found before is passed on first."""
        context, task = self._finder, self._task
        context.initialize(task.stream, block, is_consecutive)
        fetch: Callable[[], Any] = context.next_piece if self._has_pieces else context.next
        while True:
            try:
                found = fetch()
            except Exception:
                if task.positions:
                    last = task.positions[-1]
                    self._pass_on_entities(block)
                    task.context.at(getattr(block, "file_path", None), last)
                raise
            if found is None:
                return
            yield found

    def _take_piece(self, block: B, piece: Piece) -> None:
        self._count_bytes(piece.used_bytes)
        if not self._vectorised:
            self._convert(block, piece.positions, piece.bytes_list())
            return
        try:
            if self.messages.wants_batches:
                self._emit_column(block, piece.positions, self._column(piece))
            else:
                self._emit_values(block, piece.positions, self._values(piece))
        except BadText as error:
            if self.on_error == "fail":
                self._task.context.at(piece.path, error.position)
                raise
            self._convert(block, piece.positions, piece.bytes_list())

    def _take_entity(self, block: B, entity: Entity) -> None:
        task = self._task
        task.positions.append(entity.position)
        task.data.append(entity.record)
        task.size += entity.used_bytes
        if len(task.data) >= RECORDS_AT_ONCE or task.size >= BYTES_AT_ONCE:
            self._pass_on_entities(block)

    def _pass_on_entities(self, block: B) -> None:
        task = self._task
        positions, data = task.positions, task.data
        if not data:
            return
        self._count_bytes(task.size)
        task.context.at(getattr(block, "file_path", None), positions[0])
        task.positions, task.data, task.size = [], [], 0
        self._convert(block, positions, data)

    def _convert(self, block: B, positions: Any, data: list[bytes]) -> None:
        """Converts records one by one, and passes them on."""
        values: list[Any] = []
        left, refused = self._task.context.noted(positions, data), 0
        while True:
            try:
                values.extend(map(self.convert_to_record, left))  # what was converted before an error stays in `values`
                break
            except Exception as error:  # noqa: BLE001  # user code may raise anything
                at = len(values)
                self._refuse(error, block, int(positions[at]), data[at])
                refused += 1
                values.append(None)
        kept = list(map(is_not, values, repeat(None)))
        dropped = len(kept) - sum(kept) - refused
        if dropped:
            self._task.context.count("dropped", dropped)
        if dropped or refused:
            values = list(compress(values, kept))
            positions = list(compress(positions if isinstance(positions, list) else positions.tolist(), kept))
        self._emit_values(block, positions, values)

    def _refuse(self, error: Exception, block: B, position: int, data: bytes) -> None:
        """Apply `on_error` to a record that cannot be converted."""
        path = getattr(block, "file_path", None)
        text = data[: 4 * SHOWN_CHARACTERS].decode("utf-8", "backslashreplace")[:SHOWN_CHARACTERS]
        explained = self._explained(error, data, path, position)
        if isinstance(explained, ReadError):
            explained.of(self._task.context.name)
        self._task.context.bad_record(explained, text, position)

    def _emit_values(self, block: B, positions: Any, values: list[Any]) -> None:
        """Passes on records, as bounded lists; in batches only what had to be converted one by one after a bad record."""
        block_id: int = block.block_id  # type: ignore[attr-defined]
        if self.messages.wants_batches and self._vectorised:
            import pyarrow as pa

            kind = pa.string() if values and isinstance(values[0], str) else pa.binary()
            self._emit_column(block, positions, pa.array(values, kind))
            return
        self._task.context.count("records", len(values))
        for start in range(0, len(values), RECORDS_AT_ONCE):
            stop = start + RECORDS_AT_ONCE
            some = positions[start:stop] if isinstance(positions, list) else positions[start:stop].tolist()
            tuples = zip(repeat(block_id), some, values[start:stop], strict=False)
            records: Any = map(tuple.__new__, repeat(ReaderRecord), tuples)  # half the time of calling it
            with self._task.away:
                self.messages.emit_all(records)

    def _emit_column(self, block: B, positions: Any, column: pa.Array) -> None:
        """Passes on records as batches."""
        import numpy as np
        import pyarrow as pa

        count = len(column)
        self._task.context.count("records", count)
        ids = np.full(count, block.block_id, np.int64)  # type: ignore[attr-defined]
        columns = [whole_numbers(ids), whole_numbers(positions), column]
        batch = pa.RecordBatch.from_arrays(columns, names=["block_id", "position", "record"])
        for start in range(0, count, ROWS_AT_ONCE):
            with self._task.away:
                self.messages.emit_batch(batch if count <= ROWS_AT_ONCE else batch.slice(start, ROWS_AT_ONCE))

    def _let_go(self) -> None:
        task = self._task
        task.forget()
        if task.has_stream:
            stream, task.stream, task.has_stream = task.stream, None, False
            self.close_stream(stream)

    # The number of records converted at once. A class that overrides only convert_to_record is called for every record

    def _is_vectorised(self) -> bool:
        if self.converter is not None or not getattr(self.reader_context, "supports_pieces", False):
            return False
        nearest = next(k for k in type(self).__mro__ if "convert_to_record" in vars(k))
        return "_column" in vars(nearest)

    def _column(self, piece: Piece) -> pa.Array:
        return piece.binary_array()

    def _values(self, piece: Piece) -> list[Any]:
        return piece.bytes_list()

    def _explained(self, error: Exception, data: bytes, path: str | None, position: int) -> Exception:
        return error
