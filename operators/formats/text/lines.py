"""The base of line formats: it reads whole lines, piece by piece, of files that may be compressed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import attrs

from dagflow.config import MiB
from dagflow.errors import RowTooLarge
from dagflow.scan import FileSchemaNegotiator, ManagedReader, RowOrigin
from operators.compression import DecompressingContext
from operators.contexts import Piece, ReadAheadLineReaderContext
from operators.contexts.entity import PieceReaderContext
from operators.contexts.errors import RecordTooLong
from operators.formats.text.line_numbers import LineNumbers
from operators.readers.reading.claiming import Claiming

RAW_BYTES = 4_000
PIECE_BYTES = 4 * MiB
"""For fast parsers: each call of one of pyarrow's starts a thread, and pieces of 1 MiB took a quarter more processor time."""
CLAIMING = "lines.claiming"
ODD_BYTES = MiB // 2
"""The size of the parts into which text is cut that a fast parser refuses: an odd row makes only those around it slow."""


def parts_of(piece: Piece) -> Iterator[tuple[int, Piece]]:
    """Split a piece that a fast parser has refused into parts worth trying again, each with the number of its first row."""
    step = max(1, len(piece) * ODD_BYTES // max(1, piece.used_bytes))
    for start in range(0, len(piece), step):
        yield start, piece.part(start, start + step)


@attrs.frozen
class _Claims:
    """The negotiator as the tracker that it claims from."""

    negotiator: FileSchemaNegotiator

    def try_return_batch_at(self, positions: Any) -> int:
        """See RangeTracker."""
        return self.negotiator.claim(positions)


@contextmanager
def _row_too_large() -> Iterator[None]:
    """Turn the error for a record that is too long into that for a row that is too large."""
    try:
        yield
    except RecordTooLong as error:
        raise RowTooLarge(path=error.path, position=error.position, size=None, limit=error.limit) from None


@attrs.define(eq=False)
class LinesReader(ManagedReader[FileSchemaNegotiator]):
    """The base of readers of formats in which a line is a row: finds the lines of its range, and claims them.

    A subclass defines `begin`, which builds the loader, and `load`, which takes a piece of whole lines. Files may be compressed.
    A format whose rows are not lines overrides `make_context`.

    Attributes:
        piece_bytes: the bytes that are read, and loaded, at a time.
        first_line: the number of the current piece's first line, from 1; None if the range began inside the file.
        counts_lines: False for a format whose rows do not end with line ends.
    """

    piece_bytes: ClassVar[int] = MiB

    first_line: int | None = attrs.field(init=False, default=None)
    counts_lines: bool = attrs.field(init=False, default=True)

    def open(self, negotiator: FileSchemaNegotiator) -> bool:
        """Go to the first line of the range."""
        self._negotiator = negotiator
        self._lines_read = 0
        self._numbers: LineNumbers | None = None
        claiming = Claiming(negotiator.context.clock, in_batches=True)
        self._claiming: Claiming = negotiator.left_behind.setdefault(CLAIMING, claiming)  # what it has learned holds for the file
        self._claiming.begin()
        self._claiming.track(_Claims(negotiator))
        self._parts: Iterator[Piece] = iter(())
        self._context = DecompressingContext(self.make_context(negotiator))
        with _row_too_large():
            self._context.initialize(negotiator.stream, negotiator.split, False)
        if not self._context.can_be_cut():
            negotiator.keep_whole()
        return self.begin(negotiator) is not False

    def next(self) -> bool:
        """Load a piece; where work is shared, as much of it as is worth claiming at once."""
        if self._load_part():
            return True
        if self._claiming.is_over:
            return False
        with _row_too_large():
            piece = self._context.next_piece()
        if piece is None:
            return False
        self._parts = self._claiming.parts(piece) if self._negotiator.context.is_rebalanced else self._whole(piece)
        return True

    def _whole(self, piece: Piece) -> Iterator[Piece]:
        """Return the reader's part of a piece, claimed at once: no other reader could steal the rest."""
        claimed = piece.split_points
        granted = self._negotiator.claim(claimed)
        self._claiming.is_over = granted < len(claimed)
        mine = piece.before(granted) if self._claiming.is_over else piece
        if mine is not None:
            yield mine

    def _load_part(self) -> bool:
        """Load the part of the current piece that is claimed next. Return False without one."""
        loader = self._negotiator.loader
        if loader is not None and loader.schema is not None:
            self._claiming.columns = len(loader.schema)
        mine = next(self._parts, None)
        if mine is not None and len(mine):
            if self._negotiator.split.start == 0:
                self.first_line = self._lines_read + 1
                self._lines_read += len(mine)
            self.load(mine)
        return mine is not None

    def close(self) -> None:
        """Drop the lines that were read ahead."""
        if hasattr(self, "_context"):
            self._context.close()

    def make_context(self, negotiator: FileSchemaNegotiator) -> PieceReaderContext:
        """Return the context that finds the rows: here lines."""
        return ReadAheadLineReaderContext(max_record_bytes=negotiator.limits.max_record_bytes, piece_bytes=self.piece_bytes)

    @abstractmethod
    def begin(self, negotiator: FileSchemaNegotiator) -> bool | None:
        """Declare the schema, if it is known, and build the loader. Return False if there is nothing to read."""

    @abstractmethod
    def load(self, piece: Piece) -> None:
        """Load whole lines: `piece.bytes_list()`, `.text_list()`, `.string_array()`, `.positions`."""

    def origin(self, piece: Piece, row: int) -> RowOrigin:
        """Return the place of line `row` of the current piece."""
        text = piece.part(row, row + 1).bytes_list()[0][:RAW_BYTES].decode("utf-8", "backslashreplace")
        data = memoryview(piece.data)[int(piece.offsets[row]) : int(piece.offsets[row + 1])]
        return RowOrigin(int(piece.positions[row]), self._line_at(piece, row), text, data)

    def _line_at(self, piece: Piece, row: int) -> int | None:
        """Return the number of line `row` of the current piece; None if it is not known."""
        if not self.counts_lines:
            return None
        if self.first_line is not None:
            return self.first_line + row
        if self._context.unit:  # the file cannot be read again from its start
            return None
        if self._numbers is None:
            self._numbers = LineNumbers(self._negotiator.stream)
        self._numbers.come_to(piece)
        return self._numbers.at(int(piece.offsets[row]))
