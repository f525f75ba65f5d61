"""The base of both contexts of lines: from a place where a record starts to the last record that starts before `stop`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import attrs
from attrs.setters import NO_OP
from typing_extensions import override

from dagflow.config import Bytes, KiB, MiB, size_of
from operators.contexts.entity import BinaryStream, PieceReaderContext
from operators.contexts.errors import RecordTooLong
from operators.contexts.piece import Piece
from operators.contexts.source import Source, check_piece_size, check_size
from operators.contexts.terminators import (
    DEFAULT_TERMINATORS,
    Newline,
    Terminators,
    check_terminators,
    terminator_rules,
    to_terminators,
)

READ_AHEAD_BYTES = 8 * KiB  # the first read past a block's stop; doubled with each further one


@attrs.define
class LinesContext(PieceReaderContext):
    r"""The base of the contexts of lines.

    A last line without a terminator is a record, unless nothing is left of it: where `\n` and `\r\n` end lines, a `\r` alone
    after the last line is none. So `sed 's/\r$//' | grep` has it, which sees nothing there to be a line.

    Attributes:
        terminators: the ends of records. `\n` and `\r\n` by default; `["\n", "\r\n", "\r"]`; or one delimiter of any bytes.
        max_record_bytes: a longer record raises RecordTooLong.
        piece_bytes: the bytes that are read, and emitted, at a time. Less costs more calls, more does not fit the cache.
    """

    terminators: tuple[bytes, ...] = attrs.field(
        default=DEFAULT_TERMINATORS, converter=to_terminators, validator=check_terminators, kw_only=True
    )
    max_record_bytes: Bytes = attrs.field(default=64 * MiB, converter=size_of, validator=check_size, kw_only=True)
    piece_bytes: Bytes = attrs.field(default=2 * MiB, converter=size_of, validator=check_piece_size, kw_only=True)

    _rules: Terminators = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, factory=Newline)
    _source: Source | None = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=None)
    # Set for every piece, so nothing is validated (NO_OP: 2 µs each).
    # `_data[_at:]` begins a record (if `_is_aligned`); `_base` is where in the file `_data` begins. `_is_searched`: no
    # record ends in it.
    _data: bytes = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=b"")
    _at: int = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=0)
    _base: int = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=0)
    _is_aligned: bool = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=True)
    _is_searched: bool = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=False)
    _is_over: bool = attrs.field(init=False, eq=False, repr=False, on_setattr=NO_OP, default=False)

    @override
    def initialize(self, stream: BinaryStream, block: Any, consecutive: bool) -> None:
        before, source = self._source, Source.of(stream, block, block.start)
        self._source = source
        self._rules = terminator_rules(self.terminators)
        self._entities = iter(())
        known = before if consecutive and before and before.stream is stream and before.path == source.path else None
        if known is None or not self._reuse(known.stop, source):
            self._data, self._at, self._base, self._is_aligned = b"", 0, block.start, True
            source.seek(block.start)
            self._align(source)
        self._is_searched = False
        self._is_over = self._base + self._at >= source.stop

    @override
    def ends_records(self, end: bytes) -> bool:
        begins_another = any(each != end and each.startswith(end) for each in self.terminators)
        return end in self.terminators and not begins_another and not terminator_rules(self.terminators).is_overlapping

    @abstractmethod
    def _reuse(self, stopped_at: int, source: Source) -> bool:
        """Continue with the bytes that are left of a block of the same file that stopped there, if they serve this one."""

    @abstractmethod
    def _align(self, source: Source) -> None:
        """Find where the block's first record starts."""

    @override
    def close(self) -> None:
        self._source, self._data, self._entities, self._is_over = None, b"", iter(()), True

    @override
    def next_piece(self) -> Piece | None:
        source = self._source
        if self._is_over or source is None:
            return None
        cut = -1 if self._is_searched else self._rules.last_end(self._data, self._at, source.is_at_end)
        is_terminated = True
        if cut < 0:
            cut = self._read_to_an_end(source)
            is_terminated = cut >= 0
            if not is_terminated:
                cut = len(self._data)
                rest = self._rules.unterminated(self._data, self._at, cut)
                if rest.begin == rest.end:  # nothing: the end of a file of unknown length; or half an end of a line
                    self._at, self._is_over = cut, True
                    return None
        if self._base + cut > source.stop:
            owned = self._rules.first_end_from(self._data, source.stop - self._base, self._at, source.is_at_end)
            cut = owned if owned >= 0 else cut
        piece = Piece(self._data, self._at, cut, self._base + self._at, self._rules, source.path, is_terminated)
        self._is_searched = True
        if cut - self._at > self.max_record_bytes:
            piece = self._head_within_limit(piece)
            cut = piece.end
        self._at = cut
        self._is_over = self._base + cut >= source.stop
        return piece

    def _read_to_an_end(self, source: Source) -> int:
        """Read on until a record ends in `_data`. Just after the last such end; -1 if the file ends without one.

        A record may span many reads: each is searched once, and all are joined once.
        """
        rules, overlap = self._rules, self._rules.overlap
        carried = self._data[self._at :]
        parts, pending, tail = [carried] if carried else [], len(carried), carried[-overlap:] if overlap else b""
        self._base += self._at
        self._data, self._at = b"", 0
        ahead, end = READ_AHEAD_BYTES, -1
        while end < 0:
            missing = source.stop - source.position
            if missing > 0:
                size = min(missing, self.piece_bytes)
            else:
                size, ahead = min(ahead, self.piece_bytes), 2 * ahead
            chunk = source.read(size)
            probe = tail + chunk if tail else chunk
            end = rules.last_end(probe, 0, source.is_at_end)
            if chunk:
                parts.append(chunk)
                pending += len(chunk)
            if end >= 0:
                end += pending - len(probe)
            elif source.is_at_end:
                break
            elif pending > self.max_record_bytes + overlap + 1:
                source.seek(self._base)  # so that the next call raises the same error
                raise RecordTooLong(path=source.path, position=self._base, limit=self.max_record_bytes)
            tail = probe[-overlap:] if overlap else b""
        self._data = parts[0] if len(parts) == 1 else b"".join(parts)
        return end

    def _head_within_limit(self, piece: Piece) -> Piece:
        """Return the records before the first that is too long. Raises when that one is the first."""
        too_long = piece.first_longer_than(self.max_record_bytes)
        if too_long is None:
            return piece
        if too_long == 0:
            raise RecordTooLong(path=piece.path, position=piece.position, limit=self.max_record_bytes)
        self._is_searched = False
        return piece.head(too_long)
