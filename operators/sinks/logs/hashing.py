"""The hash that chooses the partition of a key: murmur2, as Kafka's own clients compute it."""

from __future__ import annotations

from typing import Any

import numpy as np

_SEED, _FACTOR = 0x9747B28C, 0x5BD1E995
_POSITIVE = 0x7FFFFFFF


def key_hashes(keys: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the hashes of a `binary` column, from 0 to 2³¹ - 1; -1 for nulls.

    >>> import pyarrow as pa
    >>> key_hashes(pa.array([b"21", b"foobar", None], pa.binary())).tolist()
    [1173551340, 1357151166, -1]
    """
    hashes = np.full(len(keys), -1, np.int64)
    if not len(keys):
        return hashes
    _, offsets, data = keys.buffers()
    bounds = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    octets = np.frombuffer(data, np.uint8) if data is not None and len(data) else np.zeros(1, np.uint8)
    lengths = np.diff(bounds)
    is_valid = keys.is_valid().to_numpy(zero_copy_only=False)
    for length in np.unique(lengths[is_valid]):  # keys of one length are hashed at once
        rows = np.flatnonzero(is_valid & (lengths == length))
        block = octets[bounds[rows][:, None] + np.arange(length)] if length else np.empty((len(rows), 0), np.uint8)
        hashes[rows] = _murmur2(block) & _POSITIVE
    return hashes


def _murmur2(rows: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return the hashes of rows of equal length. Products overflow: that is part of the hash."""
    length, factor = rows.shape[1], np.uint32(_FACTOR)
    hashed = np.full(len(rows), np.uint32((_SEED ^ length) & 0xFFFFFFFF), np.uint32)
    whole = length - length % 4
    if whole:
        words = np.ascontiguousarray(rows[:, :whole]).view("<u4")
        for column in range(whole // 4):
            word = words[:, column] * factor
            word = (word ^ (word >> np.uint32(24))) * factor
            hashed = (hashed * factor) ^ word
    if length % 4:
        for place in range(length % 4):
            hashed ^= rows[:, whole + place].astype(np.uint32) << np.uint32(8 * place)
        hashed = hashed * factor
    hashed = (hashed ^ (hashed >> np.uint32(13))) * factor
    return hashed ^ (hashed >> np.uint32(15))


def partition_of(route: int | None, partitions: int, position: int, spread: int = 128) -> int:
    """Return the partition of a message.

    `route`: the hash of its key; -1 - p for partition p itself; None for a message without a key. These are dealt to the
    partitions, `spread` at a time, by their position in the window.

    >>> partition_of(7, 5, 0), partition_of(-4, 5, 0), [partition_of(None, 2, at, spread=2) for at in range(6)]
    (2, 3, [0, 0, 1, 1, 0, 0])
    """
    if route is None:
        return position // spread % partitions
    return route % partitions if route >= 0 else -1 - route
