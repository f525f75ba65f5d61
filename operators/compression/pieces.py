"""Pieces of decompressed text: where their records are, and which of them are split points."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from operators.contexts.errors import BadText
from operators.contexts.piece import Piece


@attrs.define(eq=False, repr=False)
class DecodedPiece(Piece):
    """A piece of a stream of decompressed bytes: one range, one split point, where it begins.

    Positions count decompressed bytes. `is_first`: nothing of the stream came before.
    """

    unit: str = "stream"
    is_first: bool = True

    @classmethod
    def of_stream(cls, piece: Piece, is_first: bool) -> Self:
        """Return the piece of a stream."""
        return cls(**_fields_of(piece), is_first=is_first)

    @property
    @override
    def split_points(self) -> NDArray[np.int64]:
        return np.zeros(1 if self.is_first else 0, np.int64)

    @override
    def between(self, start: int, stop: int) -> Piece | None:
        return None if self.is_first and start == stop else self

    @override
    def head(self, count: int) -> Piece:
        if count >= len(self):
            return self
        offsets = self.offsets[: count + 1]
        return attrs.evolve(self, end=int(offsets[-1]), is_terminated=True, offsets=offsets)

    @override
    def text_list(self, encoding: str = "utf-8", errors: str = "strict") -> list[str]:
        try:
            return super().text_list(encoding, errors)
        except BadText as error:
            error.unit = self.unit
            raise

    @override
    def _are_split_points(self) -> Iterable[bool]:
        return [self.is_first] + [False] * (len(self) - 1)


@attrs.define(eq=False, repr=False)
class BgzfPiece(DecodedPiece):
    """Records that start in some members of a BGZF file. Their positions are virtual offsets; `position` is the first one's.

    `members` are where in the file these members stand, `starts` where in `data` what they hold begins (the first one's may be
    negative). `last` is the member in which the record before this piece starts, -1 if there is none.
    """

    unit: str = "bgzf"
    members: NDArray[np.int64] = attrs.field(kw_only=True)
    starts: NDArray[np.int64] = attrs.field(kw_only=True)
    last: int = attrs.field(kw_only=True)
    _indexes: NDArray[np.int64] | None = attrs.field(init=False, default=None)

    @classmethod
    def of(cls, piece: Piece, starts: list[int], members: list[int], last: int) -> Self:
        """Return the piece of a stream whose members begin at `starts` in it (decompressed) and at `members` in the file."""
        local = np.array(starts, np.int64) - (piece.position - piece.begin)
        own: dict[str, Any] = {**_fields_of(piece), "position": members[0] << 16 | (piece.position - starts[0])}
        return cls(**own, members=np.array(members, np.int64), starts=local, last=last)

    @property
    @override
    def positions(self) -> NDArray[np.int64]:
        indexes = self._members_of_records()
        return (self.members[indexes] << 16) + (self.offsets[:-1] - self.starts[indexes])

    @property
    def last_member(self) -> int:
        """The member in which the last record starts."""
        return int(self.members[self._members_of_records()[-1]])

    @property
    @override
    def split_points(self) -> NDArray[np.int64]:
        return self.members[self._members_of_records()[self._split_indexes()]]

    @override
    def between(self, start: int, stop: int) -> Piece | None:
        splits, total = self._split_indexes(), len(self)
        first = int(splits[start]) if start else 0
        end = int(splits[stop]) if stop < len(splits) else total
        if (first, end) == (0, total):
            return self
        if first == end:
            return None
        members, offsets = self._members_of_records(), self.offsets[first : end + 1]
        return attrs.evolve(
            self,
            begin=int(offsets[0]),
            end=int(offsets[-1]),
            position=int(self.positions[first]),
            last=int(self.members[members[first - 1]]) if first else self.last,
            offsets=offsets,
        )

    @override
    def _are_split_points(self) -> Iterable[bool]:
        return self._is_split_point().tolist()  # type: ignore[no-any-return]

    def _split_indexes(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._is_split_point())

    def _is_split_point(self) -> NDArray[np.bool_]:
        members = self.members[self._members_of_records()]
        is_other: NDArray[np.bool_] = np.diff(members, prepend=self.last) != 0
        return is_other

    def _members_of_records(self) -> NDArray[np.int64]:
        if self._indexes is None or len(self._indexes) != len(self):
            self._indexes = np.searchsorted(self.starts, self.offsets[:-1], "right") - 1
        return self._indexes


def _fields_of(piece: Piece) -> dict[str, Any]:
    return {str(field.alias): getattr(piece, field.name) for field in attrs.fields(Piece) if field.init}
