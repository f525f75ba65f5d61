"""Compressors of files, one member (frame, stream) at a time, so that a file may be closed and appended to."""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib
from collections.abc import Callable
from typing import Any, Literal, Protocol

import attrs

from dagflow.config import MiB
from operators.compression.formats import zstd_module

Packing = Literal["none", "gzip", "bgzf", "bz2", "xz", "zstd"]
PACKINGS: tuple[Packing, ...] = ("none", "gzip", "bgzf", "bz2", "xz", "zstd")

MEMBER = 0xFF00
"""Bytes that bgzip puts into a member: also those that do not pack fit into 64 KiB then."""


class Compressor(Protocol):
    """Packs one member. As bz2.BZ2Compressor."""

    def compress(self, data: bytes, /) -> bytes:
        """Take data, and return compressed data, which may be empty."""
        ...

    def flush(self) -> bytes:
        """End the member."""
        ...


class BgzfCompressor:
    """Packs into gzip members of at most 64 KiB that say how long they are; the last one is empty, as BGZF has it."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._rest = b""

    def compress(self, data: bytes, /) -> bytes:
        """See Compressor."""
        data = self._rest + data
        whole = len(data) - len(data) % MEMBER
        self._rest = data[whole:]
        return b"".join(self._member(data[at : at + MEMBER]) for at in range(0, whole, MEMBER))

    def flush(self) -> bytes:
        """See Compressor."""
        last = self._member(self._rest) if self._rest else b""
        self._rest = b""
        return last + self._member(b"")

    def _member(self, data: bytes) -> bytes:
        packer = zlib.compressobj(self._level, zlib.DEFLATED, -zlib.MAX_WBITS)
        packed = packer.compress(data) + packer.flush()
        head = struct.pack("<4BIBBHBBHH", 31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, len(packed) + 25)
        return head + packed + struct.pack("<II", zlib.crc32(data), len(data))


@attrs.frozen
class Packer:
    """The compression of a file.

    Attributes:
        suffix: the end of their names.
        levels: from the fastest to the smallest.
        level: the one that is taken by itself.
        memory: what a compressor takes at a level, in bytes.
    """

    suffix: str
    levels: range
    level: int
    memory: Callable[[int], int]
    make: Callable[[int], Compressor]


def _zstd(level: int) -> Any:
    module = zstd_module("what is to be written")
    return module.ZstdCompressor(level).compressobj() if module.__name__ == "zstandard" else module.ZstdCompressor(level)


def _little(level: int) -> int:
    return MiB


PACKERS: dict[str, Packer] = {
    "gzip": Packer(".gz", range(1, 10), 6, _little, lambda level: zlib.compressobj(level, zlib.DEFLATED, zlib.MAX_WBITS | 16)),
    "bgzf": Packer(".bgz", range(1, 10), 6, _little, BgzfCompressor),
    "bz2": Packer(".bz2", range(1, 10), 9, lambda level: level * MiB, bz2.BZ2Compressor),
    "xz": Packer(".xz", range(10), 3, lambda level: (4 * MiB) << level, lambda level: lzma.LZMACompressor(preset=level)),
    "zstd": Packer(".zst", range(1, 20), 3, lambda level: (1 if level < 3 else 4 if level < 10 else 32) * MiB, _zstd),
}
