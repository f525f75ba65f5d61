"""The way of records from the finder to the port: collected, converted, and emitted in bounded lists or batches."""

from __future__ import annotations

from itertools import compress, repeat
from operator import is_not
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from dagflow import OperatorContext, OutputPort, ReaderRecord
from operators.contexts import BadText, Entity, Piece
from operators.contexts.errors import ReadError
from operators.contexts.piece import int64_array
from operators.readers.reading.conversion import BytesConversion
from operators.readers.reading.joined_pieces import WaitingPiece, joined
from operators.readers.reading.reader_time import ExcludedTime
from operators.readers.reading.record_finder import RecordFinder

MAX_RECORDS = 16_384
"""The length of a list of records that is emitted at once."""
MAX_ROWS = 65_536
"""The rows of a batch."""
MAX_BYTES = 1 << 20
"""The bytes of single entities, or of pieces of small blocks, that are collected before they are emitted."""
SHOWN_CHARACTERS = 1_000


@attrs.define
class RecordOutput:
    """Emits the records of a block, as lists or batches, and counts them.

    `fails`: `on_error` is "fail", so the first bad record ends the run. `excluded`: the time of the operators behind the port.
    """

    context: OperatorContext
    finder: RecordFinder
    conversion: BytesConversion
    port: OutputPort[Any]
    fails: bool
    excluded: ExcludedTime
    is_vectorised: bool = attrs.field(init=False)
    _block: Any = None
    _path: str | None = None
    _positions: list[int] = attrs.field(factory=list)
    _data: list[bytes] = attrs.field(factory=list)
    _used: int = 0
    _waiting: list[WaitingPiece] = attrs.field(factory=list)
    _waiting_bytes: int = 0

    def __attrs_post_init__(self) -> None:
        self.is_vectorised = self.finder.has_pieces and not self.conversion.is_custom

    def __len__(self) -> int:
        """Return the number of collected entities."""
        return len(self._data)

    def begin_block(self, block: Any, path: str | None) -> None:
        """Emit the records that follow as those of a block. Entities that were left are dropped."""
        self._block, self._path = block, path
        self._positions, self._data, self._used = [], [], 0

    def keep(self, piece: Piece) -> None:
        """Keep a piece of the block, to be emitted with others (`emit_waiting`). It counts as read."""
        self.finder.count_bytes(piece.used_bytes)
        self._waiting.append(WaitingPiece(self._block.block_id, self._path or "", piece))
        self._waiting_bytes += piece.used_bytes

    @property
    def is_full(self) -> bool:
        """True if enough bytes wait."""
        return self._waiting_bytes >= MAX_BYTES

    @property
    def is_waiting(self) -> bool:
        """True if pieces wait."""
        return bool(self._waiting)

    def emit_waiting(self) -> int:
        """Emit the pieces that wait as one batch. Return the number of their records."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not waiting:
            return 0
        try:
            whole = joined(waiting)
            column = self.conversion.column(whole.piece)
        except BadText:  # named by the piece that has it
            return self._emit_each(waiting)
        self.context.at_blocks({each.block_id: each.path for each in waiting}, waiting[0].piece.position)
        self._emit_column(whole.block_ids, whole.positions, column)
        return len(column)

    def _emit_each(self, waiting: list[WaitingPiece]) -> int:
        block, path = self._block, self._path
        for each in waiting:
            self._block, self._path = each, each.path
            self.context.at(each.path, each.piece.position)
            self._emit(each.piece)
        self._block, self._path = block, path
        return sum(len(each.piece) for each in waiting)

    def emit_piece(self, piece: Piece) -> None:
        """Emit the records of a piece, after those that wait."""
        if self._waiting:
            self.emit_waiting()
        self.context.at(self._path, piece.position)
        self.finder.count_bytes(piece.used_bytes)
        self._emit(piece)

    def _emit(self, piece: Piece) -> None:
        if not self.is_vectorised:
            self._convert(piece.positions, piece.bytes_list())
            return
        try:
            if self.port.wants_batches:
                self._emit_block(piece.positions, self.conversion.column(piece))
            else:
                self._emit_values(piece.positions, self.conversion.values(piece))
        except BadText as error:
            if self.fails:
                self.context.at(piece.path, error.position)
                raise
            self._convert(piece.positions, piece.bytes_list())

    def collect(self, entity: Entity) -> None:
        """Collect an entity; emit what is collected once it is enough."""
        self._positions.append(entity.position)
        self._data.append(entity.record)
        self._used += entity.used_bytes
        if len(self._data) >= MAX_RECORDS or self._used >= MAX_BYTES:
            self.emit_collected()

    def emit_collected(self) -> int:
        """Emit the entities that are collected. Return their number."""
        positions, data = self._positions, self._data
        if data:
            self.finder.count_bytes(self._used)
            self.context.at(self._path, positions[0])
            self._positions, self._data, self._used = [], [], 0
            self._convert(positions, data)
        return len(data)

    def emit_before_error(self) -> None:
        """Emit the entities that were found before an error, and name the last of them as its place."""
        if self._data:
            last = self._positions[-1]
            self.emit_collected()
            self.context.at(self._path, last)

    def _convert(self, positions: Any, data: list[bytes]) -> None:
        """Convert records one by one, and emit them."""
        values: list[Any] = []
        left, refused = self.context.noted(positions, data), 0
        while True:
            try:
                values.extend(map(self.conversion.convert, left))  # what was converted before an error stays in `values`
                break
            except Exception as error:  # noqa: BLE001  # user code may raise anything
                at = len(values)
                self._refuse(error, int(positions[at]), data[at])
                refused += 1
                values.append(None)
        kept = list(map(is_not, values, repeat(None)))
        dropped = len(kept) - sum(kept) - refused
        if dropped:
            self.context.count("dropped", dropped)
        if dropped or refused:
            values = list(compress(values, kept))
            positions = list(compress(positions if isinstance(positions, list) else positions.tolist(), kept))
        self._emit_values(positions, values)

    def _refuse(self, error: Exception, position: int, data: bytes) -> None:
        """Apply `on_error` to a record that cannot be converted."""
        text = data[: 4 * SHOWN_CHARACTERS].decode("utf-8", "backslashreplace")[:SHOWN_CHARACTERS]
        cause = self.conversion.explain(error, data, self._path or "", position)
        if isinstance(cause, BadText):
            cause.unit = cause.unit or self.finder.unit
        if isinstance(cause, ReadError):
            cause.of(self.context.name)
        self.context.bad_record(cause, text, position)

    def _emit_values(self, positions: Any, values: list[Any]) -> None:
        """Emit records as bounded lists; in batches only those that had to be converted one by one after a bad record."""
        if self.port.wants_batches and self.is_vectorised:
            kind = pa.string() if values and isinstance(values[0], str) else pa.binary()
            self._emit_block(positions, pa.array(values, kind))
            return
        self.context.count("records", len(values))
        for start in range(0, len(values), MAX_RECORDS):
            stop = start + MAX_RECORDS
            some = positions[start:stop] if isinstance(positions, list) else positions[start:stop].tolist()
            tuples = zip(repeat(self._block.block_id), some, values[start:stop], strict=False)
            records: Any = map(tuple.__new__, repeat(ReaderRecord), tuples)  # half the time of calling it
            with self.excluded:
                self.port.emit_all(records)

    def _emit_block(self, positions: Any, column: pa.Array) -> None:
        """Emit records of the block as batches."""
        self._emit_column(np.full(len(column), self._block.block_id, np.int64), positions, column)

    def _emit_column(self, ids: Any, positions: Any, column: pa.Array) -> None:
        """Emit records as batches. `ids`: their blocks."""
        count = len(column)
        self.context.count("records", count)
        columns = [int64_array(ids), int64_array(positions), column]
        batch = pa.RecordBatch.from_arrays(columns, names=["block_id", "position", "record"])
        for start in range(0, count, MAX_ROWS):
            with self.excluded:
                self.port.emit_batch(batch if count <= MAX_ROWS else batch.slice(start, MAX_ROWS))
