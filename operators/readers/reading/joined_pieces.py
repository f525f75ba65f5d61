"""Pieces of several small blocks, joined: records are looked for once, and operators behind get one batch."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from operators.contexts import Piece

MAX_BLOCK_BYTES = 256 * 1024
"""The largest block whose records wait for those of other blocks."""


@attrs.frozen
class WaitingPiece:
    """A piece, and its block."""

    block_id: int
    path: str
    piece: Piece


@attrs.frozen
class JoinedPieces:
    """The records of several pieces as one piece, with the block and the position of each record."""

    piece: Piece
    block_ids: NDArray[np.int64]
    positions: NDArray[np.int64]


def may_be_joined(piece: Piece) -> bool:
    """Return True if other records can follow in the same bytes."""
    return piece.has_only_split_points and piece.layout is not None and piece.layout.joiner is not None


def joined(pieces: list[WaitingPiece]) -> JoinedPieces:
    """Join pieces of the same layout, each of which `may_be_joined`. A last line gets the terminator that it lacks."""
    layout: Any = pieces[0].piece.layout
    parts: list[bytes | memoryview] = []
    starts, shifts, start = [], [], 0
    for each in pieces:
        piece = each.piece
        starts.append(start)
        shifts.append(piece.position - start)
        parts.append(memoryview(piece.data)[piece.begin : piece.end])
        start += piece.end - piece.begin
        if not piece.is_terminated:
            parts.append(layout.joiner)
            start += len(layout.joiner)
    whole = Piece(b"".join(parts), 0, start, 0, layout)
    offsets = whole.offsets
    counts = np.diff(np.searchsorted(offsets, [*starts, start]))
    ids = np.array([each.block_id for each in pieces], np.int64)
    return JoinedPieces(whole, np.repeat(ids, counts), np.repeat(np.array(shifts, np.int64), counts) + offsets[:-1])
