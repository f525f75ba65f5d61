"""AbstractBlockReader: reads blocks of anything and parses them into records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress, repeat
from operator import is_not
from typing import TYPE_CHECKING, Any, ClassVar, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, ReaderRecord
from dagflow.config import Millis
from operators.contexts import BadText, Entity, Piece, ReaderContext
from operators.problems import all_problems, told_in
from operators.readers.reading import Reading, whole_numbers

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
class AbstractBlockReader(Operator, Generic[R, B, S]):
    """Reads blocks and emits their records, each with its block and position (seed: Block Reader).

    It knows nothing of files: a block is anything with a `block_id`, and `previous_block_id` if one reader may go from a block
    to its successor on the same stream. Subclasses say how a stream is opened (`setup_stream`); `reader_context` finds the
    records in it, `convert_to_record` makes of their bytes what is emitted. R, B and S are the types of records, of blocks and
    of streams.

    Args:
        convert_to_record: a function of a record's bytes, None drops the record; or override the method of that name.
        reader_context: finds the bytes of each record.
        min_readers, max_readers: how many readers a window may have.
        collect_stats: whether the number of readers follows the backlog.
        interval_millis: how often it may change.

    Counters: `blocks`, `records`, `bytes` (terminators and dropped records included), `dropped`,
    `streams_opened`, `time_ms` (without the time of the operators behind).
    `on_error` applies to each record that cannot be converted; an error of a block's stream or context ends that block.
    """

    partitioner: ClassVar[Any] = "self"

    converter: Callable[[bytes], R | None] | None = attrs.field(default=None, alias="convert_to_record", validator=a_converter)
    reader_context: ReaderContext = attrs.field(kw_only=True, validator=a_context)
    min_readers: int = attrs.field(default=1, kw_only=True, validator=attrs.validators.instance_of(int))
    max_readers: int = attrs.field(default=16, kw_only=True, validator=attrs.validators.instance_of(int))
    collect_stats: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    interval_millis: Millis = attrs.field(default=120_000, kw_only=True, validator=attrs.validators.gt(0))

    blocks_metadata_input = InputPort[B]()
    blocks_metadata_output = OutputPort[B]()
    messages = OutputPort[ReaderRecord[R]]()

    def check(self) -> None:
        """Raises ValueError where the properties do not fit together."""
        with all_problems() as problems:
            with told_in(problems):
                super().check()
            if self.min_readers < 1:
                problems.append(f"min_readers is {self.min_readers}, but must be at least 1")
            if self.min_readers > self.max_readers:
                problems.append(f"min_readers is {self.min_readers}, more than max_readers = {self.max_readers}")

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
        """What is emitted for a record of these bytes; None drops it. Here: the bytes, unless a function was given."""
        return data if self.converter is None else self.converter(data)  # type: ignore[return-value]  # R is bytes then

    # For the planner

    def partition_count(self, items: int, size: int, slots: int) -> int:
        """How many readers share so many blocks (`size` bytes in all) on so many slots."""
        return max(self.min_readers, min(items, 2 * slots, self.max_readers))

    def item_weight(self, item: B) -> int:
        """How much work a block is, in bytes where they are known: blocks are shared out by it."""
        stop, start = getattr(item, "stop", None), getattr(item, "start", None)
        return max(1, stop - start) if isinstance(stop, int) and isinstance(start, int) else 1

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Records also come in batches where neither the context nor the conversion is one record at a time."""
        if port == "messages" and self._is_vectorised():
            return frozenset({"record", "batch"})
        return super().emitted_forms(port, handled)

    # Reading

    def setup(self, context: OperatorContext) -> None:
        """Makes ready to read."""
        self._task = Reading(context)
        self._has_pieces = getattr(self.reader_context, "supports_pieces", False)
        self._vectorised = self._is_vectorised()

    @blocks_metadata_input.process
    def process_block(self, block: B) -> None:
        """Reads one block, on the stream of the one before where it is its successor."""
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
            self._read(block, path, is_consecutive)
        except BaseException:
            if task.positions:
                task.context.at(path, task.positions[-1])
            self._let_go()
            raise
        task.last_block_id = block.block_id  # type: ignore[attr-defined]
        task.context.count("blocks")
        task.end()
        if self.blocks_metadata_output.is_connected:
            self.blocks_metadata_output.emit(block)

    def teardown(self) -> None:
        """Closes the stream."""
        if hasattr(self, "_task"):
            self._let_go()
            self.reader_context.close()

    def _read(self, block: B, path: str | None, is_consecutive: bool) -> None:
        """The one loop over what a block holds: pieces, where the context has them, else single entities."""
        if self._has_pieces:
            for piece in self._found(block, is_consecutive):
                self._task.context.at(path, piece.position)
                self._take_piece(block, piece)
        else:
            for entity in self._found(block, is_consecutive):
                self._take_entity(block, entity)
            self._pass_on_entities(block)

    def _found(self, block: B, is_consecutive: bool) -> Iterator[Any]:
        """What the context finds in a block."""
        context = self.reader_context
        context.initialize(self._task.stream, block, is_consecutive)
        fetch: Callable[[], Any] = context.next_piece if self._has_pieces else context.next
        while (found := fetch()) is not None:
            yield found

    def _take_piece(self, block: B, piece: Piece) -> None:
        self._task.context.count("bytes", piece.used_bytes)
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
        task.context.count("bytes", task.size)
        task.context.at(getattr(block, "file_path", None), positions[0])
        task.positions, task.data, task.size = [], [], 0
        self._convert(block, positions, data)

    def _convert(self, block: B, positions: Any, data: list[bytes]) -> None:
        """Converts records one by one, and passes them on."""
        values: list[Any] = []
        left, refused = iter(data), 0
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
        """What `on_error` says of a record that cannot be converted."""
        path = getattr(block, "file_path", None)
        text = data[: 4 * SHOWN_CHARACTERS].decode("utf-8", "backslashreplace")[:SHOWN_CHARACTERS]
        self._task.context.bad_record(self._explained(error, data, path, position), text, position)

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

    # How many records are converted at once; whoever overrides convert_to_record only, is asked for every record

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
