"""What formats of lines share: whole lines, a piece at a time, of files that may be compressed."""

from __future__ import annotations

from abc import abstractmethod

import attrs

from dagflow.scan import FileSchemaNegotiator, ManagedReader, RowOrigin
from operators.compression import DecompressingContext
from operators.contexts import Piece, ReadAheadLineReaderContext


@attrs.define(eq=False)
class LinesReader(ManagedReader[FileSchemaNegotiator]):
    """The base of readers of formats in which a line is a row: finds the lines of its range, and claims them.

    A subclass writes `begin`, which builds the loader, and `load`, which takes a piece of whole lines.
    """

    lines: ReadAheadLineReaderContext = attrs.field(factory=ReadAheadLineReaderContext)

    def open(self, negotiator: FileSchemaNegotiator) -> bool:
        """Goes to the first line of the range."""
        self._negotiator = negotiator
        self._context = DecompressingContext(self.lines)
        self._context.initialize(negotiator.stream, negotiator.split, False)
        if not self._context.can_be_cut():
            negotiator.keep_whole()
        self.begin(negotiator)
        return True

    def next(self) -> bool:
        """Loads a piece of about 1 MiB."""
        piece = self._context.next_piece()
        if piece is None:
            return False
        claimed = piece.split_points
        granted = self._negotiator.claim(claimed) if len(claimed) else 0
        mine = piece if granted == len(claimed) else piece.before(granted)
        if mine is not None and len(mine):
            self.load(mine)
        return mine is piece

    def close(self) -> None:
        """Lets go of the lines read ahead."""
        if hasattr(self, "_context"):
            self._context.close()

    @abstractmethod
    def begin(self, negotiator: FileSchemaNegotiator) -> None:
        """Says the schema, if it is known, and builds the loader."""

    @abstractmethod
    def load(self, piece: Piece) -> None:
        """Loads whole lines: `piece.bytes_list()`, `.text_list()`, `.string_array()`, `.positions`."""

    def origin(self, piece: Piece, row: int) -> RowOrigin:
        """Where line `row` of a piece stands."""
        text = piece.part(row, row + 1).bytes_list()[0][:4_000].decode("utf-8", "backslashreplace")
        return RowOrigin(int(piece.positions[row]), None, text)
