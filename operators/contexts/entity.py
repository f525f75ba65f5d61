"""Reader contexts, and what they yield: entities one at a time, or pieces of many records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import attrs
from typing_extensions import override

if TYPE_CHECKING:
    from operators.contexts.piece import Piece


class Entity(NamedTuple):
    """One record's bytes without its terminator, the bytes that it uses with it, and where in its file it starts.

    `is_split_point` is False for a record before which its block may not be split.

    >>> Entity(b"first", used_bytes=7, position=0)
    Entity(record=b'first', used_bytes=7, position=0, is_split_point=True)
    """

    record: bytes
    used_bytes: int
    position: int
    is_split_point: bool = True


class BinaryStream(Protocol):
    """A stream that contexts read. `read` may return fewer bytes than requested, but none only at the end."""

    def seek(self, position: int, /) -> Any:
        """Continue at this byte."""
        ...

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most `size`."""
        ...


class ReaderContext(ABC):
    """Fetches the bytes that make a record, and says how many it used.

    The reader opens the stream (or keeps that of the previous block of the same file: `consecutive`), calls
    `initialize`, then `next` until it returns None, or `next_piece` where `supports_pieces`: one form for a block, never
    both. The context never closes the stream. It does not claim positions either: the reader does.

    `block` has `start` and `stop` (bytes, half-open) and may have `file_path` and `file_length`.
    A subclass that overrides only `next` is read by `next`, so that its override is used.
    """

    cuts: ClassVar[Literal["any", "fixed"]] = "any"
    """"any": the records are the same however the file is cut into blocks. "fixed": they depend on the cuts, so a block
    is never split while it is read."""

    supports_pieces: ClassVar[bool] = False
    """True if the context has `next_piece`: many records at a time, for batches."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if "next_piece" in cls.__dict__:
            cls.supports_pieces = True
        elif "next" in cls.__dict__:
            cls.supports_pieces = False

    def can_be_cut(self) -> bool:
        """Return True if the current block may be split while it is read. Called after `initialize`: content may decide."""
        return self.cuts == "any"

    def claimed_at(self, position: int) -> Any:
        """Return the split point that a reader claims for the record at a position, in the unit of blocks.

        Asked for the record that `next` has returned last. Here: at the position itself. Of compressed files, positions are not
        bytes of the file, but blocks are; of a range of keys, it is the record's key.
        """
        return position

    def ends_records(self, end: bytes) -> bool:
        """Return True if a record ends behind any `end` in a file. Files that are appended to may then be read in parts."""
        return False

    def look_back(self) -> int | None:
        """Return how many bytes before a range tell whether a record starts where it starts; None: more than that must be known.

        Only with a number can ranges within a compressed file be read, where what stands before is costly to get at.
        """
        return None

    @abstractmethod
    def initialize(self, stream: BinaryStream, block: Any, consecutive: bool) -> None:
        """Begin a block. `consecutive`: it follows the previous block of the same file, on the same stream."""

    @abstractmethod
    def next(self) -> Entity | None:
        """Return the next record of the block, or None when it has no more."""

    def next_piece(self) -> Piece | None:
        """Return the next whole records of the block (1 to 4 MiB), or None when it has no more."""
        raise NotImplementedError(f"{type(self).__name__} yields one record at a time: call next()")

    def close(self) -> None:  # noqa: B027  (few contexts keep anything)
        """Let go of what is kept between blocks. The stream stays open: the caller that opened it closes it."""


@attrs.define
class PieceReaderContext(ReaderContext):
    """The base of contexts that find their records a piece at a time: they define `next_piece`, from which `next` follows."""

    _entities: Iterator[Entity] = attrs.field(init=False, eq=False, repr=False, factory=lambda: iter(()))

    @override
    def next(self) -> Entity | None:
        entity = next(self._entities, None)
        while entity is None:
            piece = self.next_piece()
            if piece is None:
                return None
            self._entities = piece.entities()
            entity = next(self._entities, None)
        return entity
