"""Compressed files to read: made by the tools where they are installed, by Python otherwise."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import subprocess
import zlib
from collections.abc import Callable, Iterable, Iterator

import zstandard

END_MARK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


def member(data: bytes, level: int = 6, extra: bytes = b"") -> bytes:
    """One BGZF member. `extra`: other fields before the one that tells the length."""
    squeezer = zlib.compressobj(level, zlib.DEFLATED, -15)
    body = squeezer.compress(data) + squeezer.flush()
    size = 12 + len(extra) + 6 + len(body) + 8
    head = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff" + (len(extra) + 6).to_bytes(2, "little") + extra
    tail = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")
    return head + b"BC\x02\0" + (size - 1).to_bytes(2, "little") + body + tail


def cut(data: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    """The data in parts of these sizes, the last one over and over."""
    at, size = 0, 0
    given = iter(sizes)
    while at < len(data):
        size = next(given, size or 1)
        yield data[at : at + size]
        at += size


def bgzf(data: bytes, sizes: Iterable[int] = (60_000,), *, level: int = 6, end_mark: bool = True, extra: bytes = b"") -> bytes:
    """A BGZF file whose members hold these many bytes each."""
    return b"".join(member(part, level, extra) for part in cut(data, sizes)) + (END_MARK if end_mark else b"")


def by_tool(*command: str) -> Callable[[bytes], bytes]:
    def run(data: bytes) -> bytes:
        return subprocess.run(command, input=data, capture_output=True, check=True).stdout

    return run


def _tool_or(name: str, python: Callable[[bytes], bytes], *options: str) -> Callable[[bytes], bytes]:
    return by_tool(name, *options) if shutil.which(name) else python


def zstd_compress(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3, write_checksum=True).compress(data)


PYTHON: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd_compress,
}
TOOLS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": _tool_or("gzip", gzip.compress, "-c"),
    "bz2": _tool_or("bzip2", bz2.compress, "-c"),
    "xz": _tool_or("xz", lzma.compress, "-c"),
    "zstd": _tool_or("zstd", zstd_compress, "-c"),
    "bgzf": _tool_or("bgzip", bgzf, "-c"),
}
