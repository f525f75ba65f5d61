"""Pieces of whole records of delimited text, from blocks that are cut anywhere."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from attrs.setters import NO_OP
from typing_extensions import override

from dagflow.config import KiB, MiB
from operators.compression.pieces import DecodedPiece
from operators.contexts.entity import BinaryStream, PieceReaderContext
from operators.contexts.errors import RecordTooLong
from operators.contexts.piece import Piece
from operators.contexts.source import Source
from operators.formats.delimited.beginning import Beginning
from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.errors import QuoteLeftOpen
from operators.formats.delimited.fields import FieldSplitter
from operators.formats.delimited.lexer import Lexer
from operators.formats.delimited.transcoded import TranscodedStream

FIRST_READ = 64 * KiB
WINDOW = 8 * MiB
READ_AHEAD_BYTES = 8 * KiB


@attrs.define
class DelimitedContext(PieceReaderContext):
    r"""The records of delimited text after its header, with their line ends; blank lines and comments are among them.

    A record belongs to the block in which it begins, so files can be cut anywhere, also within quotes. To know if quotes are open
    at a block's start, the context looks back to the start of a line, and follows both possibilities from there. They usually
    meet soon: a field that begins with a quote and continues with a letter is enough. Where there are no quotes, one of them
    would make a record longer than `max_record_bytes`, and is ruled out. In the worst case, the whole file up to the block is
    read.

    - `skip_lines`: the number of lines before the header.
    - `has_header`: the first record is not data.
    - `max_record_bytes` (16 MiB): a longer record raises RecordTooLong, or QuoteLeftOpen.
    - `piece_bytes` (1 MiB): the bytes that are read, and passed on, at a time.

    >>> import io
    >>> from dagflow import FileBlockMetadata
    >>> text = b'a,b\n1,"x\ny"\n2,z\n'
    >>> context = DelimitedContext(Dialect())
    >>> for start, stop in [(0, 9), (9, 16)]:
    ...     block = FileBlockMetadata(1, "f", start=start, stop=stop, file_length=16)
    ...     context.initialize(io.BytesIO(text), block, False)
    ...     print(context.next(), context.next())
    Entity(record=b'1,"x\ny"\n', used_bytes=8, position=4, is_split_point=True) None
    Entity(record=b'2,z\n', used_bytes=4, position=12, is_split_point=True) None
    """

    dialect: Dialect
    has_header: bool = attrs.field(default=True, kw_only=True)
    skip_lines: int = attrs.field(default=0, kw_only=True)
    max_record_bytes: int = attrs.field(default=16 * MiB, kw_only=True)
    piece_bytes: int = attrs.field(default=MiB, kw_only=True)

    beginning: Beginning = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=Beginning())
    """Of the file at hand: its header, and where its records begin."""
    opened: int | None = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=None)
    """Of the piece given last: where in the file the quote stands that is never closed; None: there is none."""

    lines_before_records: int = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=0)
    """Of the file at hand: how many line ends stand before its records."""

    known: tuple[int, int] | None = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=None)
    """Of the file at hand, before `initialize`: at or behind the first place, the first record begins at the second."""

    reached: tuple[int, int] | None = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=None)
    """The same, behind the piece given last: where the next block of the file need not look back. None: no piece was given."""

    _lexer: Lexer = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(lambda s: Lexer(s.dialect), takes_self=True)
    )
    # `_data[_at:]` begins a record; `_base` is where in the file `_data` begins. `_is_searched`: no record ends in it.
    # `_inside`: up to here in `_data` no record ends, and quotes are open; so a long field is searched once, not at each read.
    _source: Source | None = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=None)
    _data: bytes = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=b"")
    _at: int = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=0)
    _base: int = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=0)
    _is_searched: bool = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=False)
    _inside: int | None = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=None)
    _is_first: bool = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=True)
    _is_over: bool = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=True)

    @override
    def initialize(self, stream: BinaryStream, block: Any, consecutive: bool) -> None:
        source = Source.of(stream, block, 0)
        if not self.dialect.is_bytewise:
            source = Source.of(TranscodedStream(source, self.dialect.encoding), block, 0)
        self._source, self._is_first = source, True
        self._entities = iter(())
        self.opened, self._is_searched, self._is_over = None, False, False
        self.reached = None
        self._begin(source, 0)
        self.beginning = self._find_beginning(source)
        first = self.beginning.records_at
        self._at = first - self._base
        if source.start > first:
            self._go_to(source, source.start, first)
        self._is_over = self._is_over or self._base + self._at >= source.stop

    @override
    def can_be_cut(self) -> bool:
        return self.dialect.is_bytewise

    @override
    def close(self) -> None:
        self._source, self._data, self._entities, self._is_over = None, b"", iter(()), True

    # Where to begin

    def _begin(self, source: Source, position: int) -> None:
        source.seek(position)
        self._data, self._base, self._at, self._inside = b"", position, 0, None

    def _find_beginning(self, source: Source) -> Beginning:
        self._more(source, FIRST_READ)
        while True:
            beginning = Beginning.of(
                self._data, self._lexer, source.path, source.is_at_end, has_header=self.has_header, skip_lines=self.skip_lines
            )
            if beginning is not None:
                self.lines_before_records = self._data.count(b"\n", 0, beginning.records_at)
                return beginning
            if len(self._data) > self.max_record_bytes:
                raise RecordTooLong(path=source.path, position=0, limit=self.max_record_bytes)
            self._more(source, FIRST_READ)

    def _go_to(self, source: Source, start: int, first: int) -> None:
        """Go to the first record that begins at `start` or behind; the first of the file begins at `first`."""
        if self.known is not None and first <= self.known[0] <= start:
            first = self.known[1]  # one that is as good as the file's first
            if start <= first:
                self._begin(source, first)
                return
        last, is_inside = self._state_before(source, start, first)
        self._begin(source, last)
        self._inside = 0 if is_inside else None
        if last == start and not is_inside:
            return
        size = READ_AHEAD_BYTES
        while True:
            self._more(source, size)
            ends, is_all = self._find(source)
            number = int(np.searchsorted(ends, start - self._base))
            if number < len(ends):
                self._at = int(ends[number])
                return
            if ends.size:
                self._at = int(ends[-1])
                last = self._base + self._at
            elif self._inside is not None:
                self._at = self._inside  # what stands before belongs to another block's record
            if not is_all:
                continue
            if source.is_at_end or source.position >= source.stop:  # what begins behind the block's end is another's
                self._is_over = True
                return
            if source.position - last > self.max_record_bytes:
                raise RecordTooLong(path=source.path, position=last, limit=self.max_record_bytes)
            size = min(2 * size, self.piece_bytes)

    def _state_before(self, source: Source, start: int, first: int) -> tuple[int, bool]:
        """Return a place at or before `start`, after a line end or at the first record, and whether quotes are open there."""
        for back in (FIRST_READ, MiB, self.max_record_bytes + FIRST_READ):
            state = self._state_from(source, max(first, start - back), start, first)
            if state is not None:
                return state
        state = self._state_from(source, first, start, first)
        assert state is not None
        return state

    def _state_from(self, source: Source, begin: int, start: int, first: int) -> tuple[int, bool] | None:
        """Return the same if the bytes from `begin` on decide it, None otherwise."""
        lexer, quote = self._lexer, self.dialect.quote_bytes
        source.seek(begin)
        # Whether quotes are open: what follows of both possibilities at `known_from`, of the one that they are not, first.
        states: tuple[bool, ...] = (False,) if begin == first or not quote else (False, True)
        known_from = begin if begin == first else None
        # What is read but not followed begins at `base`; in `tail`, its end, a line end is looked for: nothing is searched twice.
        parts: list[bytes] = []
        tail, base, is_ended_inside = b"", begin, False
        while source.position < start:
            piece = source.read(min(self.piece_bytes, start - source.position))
            tail += piece
            if known_from is None:
                at = lexer.first_boundary(tail, len(tail))
                if at is None:
                    tail = self._undecided(tail, begin, source)
                    continue
                known_from = base = source.position - len(tail) + at
                piece = tail = tail[at:]
            parts.append(piece)
            at = lexer.last_boundary(tail, len(tail))
            if at is None:
                tail = self._undecided(tail, base, source)
                continue
            data = b"".join(parts)
            end = len(data) - len(tail) + at
            if quote and data.find(quote, 0, end) >= 0:
                results = [lexer.find(data, 0, end, is_inside=is_inside) for is_inside in states]
                is_ended_inside = is_ended_inside or bool(results[-1].ends.size)
                states = tuple(dict.fromkeys(lexed.opened is not None for lexed in results))
            tail, base = data[end:], base + end
            parts = [tail]
            if len(states) > 1 and not is_ended_inside and base - known_from > self.max_record_bytes:
                states = (states[0],)
        return (base, states[0]) if known_from is not None and len(states) == 1 else None

    def _undecided(self, tail: bytes, base: int, source: Source) -> bytes:
        """Return the part of bytes without a line end that matters for those that follow. Raises RecordTooLong."""
        if source.position - base > self.max_record_bytes:
            raise RecordTooLong(path=source.path, position=base, limit=self.max_record_bytes)
        return tail[self._lexer.undecided(tail) :]

    # Pieces

    @override
    def next_piece(self) -> Piece | None:
        piece = self._next_piece()
        if piece is None or self.dialect.is_bytewise:
            return piece
        is_first, self._is_first = self._is_first, False
        return DecodedPiece.of_stream(piece, is_first)

    def _next_piece(self) -> Piece | None:
        source = self._source
        if self._is_over or source is None:
            return None
        while True:
            if not self._is_searched:
                ends, is_all = self._find(source)
                if ends.size:
                    return self._piece(source, ends, is_all)
                self._check_length(source, len(self._data) - self._at)
                if source.is_at_end:
                    return self._rest(source)
            elif source.is_at_end:
                self._is_searched = False
                continue
            missing = source.stop - source.position
            self._more(source, min(missing, self.piece_bytes) if missing > 0 else READ_AHEAD_BYTES)
            self._is_searched = False

    def _find(self, source: Source) -> tuple[Any, bool]:
        """Return the ends of records in the bytes read, and if all were searched: with open quotes, it goes by windows."""
        size = WINDOW
        while True:
            is_inside = self._inside is not None
            begin = self._at if self._inside is None else self._inside
            end = min(begin + size, len(self._data)) if is_inside else len(self._data)
            is_all = end == len(self._data)
            lexed = self._lexer.find(self._data, begin, end, is_inside=is_inside, is_last=is_all and source.is_at_end)
            if lexed.ends.size:
                self.opened = self._inside = None
                return lexed.ends, is_all
            if lexed.opened is None:
                self.opened = None
            else:
                self.opened = self._base + lexed.opened if lexed.opened >= 0 else self.opened
                self._inside = self._lexer.surely_inside(self._data, max(lexed.opened + 1, begin), end)
            if is_all:
                return lexed.ends, True
            size = WINDOW if self._inside != begin else 2 * size

    def _more(self, source: Source, size: int) -> None:
        """Read on: `size` bytes, or as many as there are already, so that a long record is not copied again and again."""
        kept = memoryview(self._data)[self._at :]
        self._base += self._at
        self._inside = None if self._inside is None else self._inside - self._at
        self._at = 0
        room = self.max_record_bytes + FIRST_READ - len(kept)
        self._data = b"".join((kept, source.read(max(size, min(len(kept), room)))))

    def _piece(self, source: Source, ends: Any, is_all: bool) -> Piece:
        offsets = np.concatenate([np.array([self._at]), ends])
        if self._base + int(ends[-1]) > source.stop:
            mine = int(np.searchsorted(offsets[:-1], source.stop - self._base))
            is_all, offsets = is_all and mine == len(ends), offsets[: mine + 1]
        if int(offsets[-1]) - self._at > self.max_record_bytes:
            is_all, offsets = self._within_limit(source, offsets, is_all)
        is_large = int(offsets[1]) - self._at > WINDOW
        if is_large and len(offsets) > 2:  # alone, so that its reader can let go of it
            is_all, offsets = False, offsets[:2]
        piece = Piece.of_slices(self._data, offsets, position=self._base + self._at, path=source.path)
        self._at, self._is_searched = piece.end, is_all
        if is_large:
            self._data, self._base, self._at = self._data[piece.end :], self._base + piece.end, 0
        self._is_over = self._base + self._at >= source.stop
        self.reached = min(source.stop, self._base + self._at), self._base + self._at
        return piece

    def _within_limit(self, source: Source, offsets: Any, is_all: bool) -> tuple[bool, Any]:
        """Return the records before the first that is too long. Raises when that one is the first."""
        lengths = np.diff(offsets)
        too_long = np.flatnonzero(lengths > self.max_record_bytes)
        if not too_long.size:
            return is_all, offsets
        self._check_length(source, int(lengths[0]))
        return False, offsets[: int(too_long[0]) + 1]

    def _rest(self, source: Source) -> Piece | None:
        """Return the last record of a file, which has no line end."""
        self._is_over = True
        begin, end = self._at, len(self._data)
        if begin == end:
            return None
        return Piece.of_slices(self._data, [begin, end], position=self._base + begin, path=source.path)

    @property
    def opened_at(self) -> int | None:
        """Return the position of `opened` in the data of the last piece."""
        return None if self.opened is None else self.opened - self._base

    def field_at_limit(self) -> int | None:
        """Return which field (from 0) makes the current record too long; None if its first MiB does not tell."""
        begin, delimiter = self._at, self.dialect.delimiter_bytes
        end = min(begin + MiB, len(self._data)) if self.opened is None else self.opened - self._base
        if end - begin > MiB or (self.opened is None and self._data.find(delimiter, end, begin + self.max_record_bytes) >= 0):
            return None
        return len(FieldSplitter(self.dialect).split(self._data[begin:end])) - 1

    def _check_length(self, source: Source, length: int) -> None:
        if length <= self.max_record_bytes:
            return
        position, limit = self._base + self._at, self.max_record_bytes
        if self.opened is not None:
            raise QuoteLeftOpen(path=source.path, position=position, opened=self.opened, limit=limit)
        raise RecordTooLong(path=source.path, position=position, limit=limit)
