"""Which compression a file has, told by its first bytes; the codecs that take it off."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Literal, Protocol

import attrs

from dagflow.errors import PackageMissing
from dagflow.storage import MAGIC

Compression = Literal["auto", "none", "gzip", "bgzf", "bz2", "xz", "zstd"]
COMPRESSIONS = ("auto", "none", "gzip", "bgzf", "bz2", "xz", "zstd")

HEAD_BYTES = 64
"""So many of a file's first bytes tell what it is."""

BGZF_HEADER = 18
XZ_MEMORY = 256 << 20  # `xz -9` takes 65 MiB
ZSTD_INPUT = 256  # python-zstandard has no limit on what comes out at once: at most 32,768 times as much as this goes in


def recognise(head: bytes) -> str | None:
    r"""Return the compression of a file that begins with these bytes (`HEAD_BYTES` or the whole file); None without any.

    It compares so many bytes of a format's head that no text begins with them.

    >>> recognise(bz2.compress(b"text")), recognise(b"BZh9 is text")
    ('bz2', None)
    """
    if member_size(head, 0):
        return "bgzf"
    if head.startswith(MAGIC["gzip"]) and len(head) > 3 and not head[3] & 0xE0:
        return "gzip"
    if head.startswith(MAGIC["bz2"]) and head[3:4] in b"123456789" and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        return "bz2"
    if head.startswith(MAGIC["xz"]):
        return "xz"
    if head.startswith(MAGIC["zstd"]) or (head[1:4] == b"\x2a\x4d\x18" and 0x50 <= head[0] <= 0x5F):
        return "zstd"
    return None


# What is met under names of text, and is not decompressed here: where it stands in a file, what stands there, and its name.
_OTHERS = (
    (0, b"\x04\x22\x4d\x18", "lz4"),
    (0, b"\x02\x21\x4c\x18", "lz4 (its old form)"),
    (0, b"\xff\x06\x00\x00sNaPpY", "framed snappy"),
    (0, b"PK\x03\x04", "a zip archive (or a spreadsheet: .xlsx, .ods)"),
    (0, b"PK\x05\x06", "an empty zip archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!\x1a\x07", "a rar archive"),
    (0, b"\x1f\x9d", "compress (.Z)"),
    (0, b"LZIP\x01", "lzip"),
    (0, b"\x89LZO\x00\r\n\x1a\n", "lzop"),
    (257, b"ustar\x00", "a tar archive"),
    (257, b"ustar  \x00", "a tar archive"),
)
OTHER_BYTES = 265
"""So many of a file's first bytes tell that it is one of them."""


def recognise_other(head: bytes) -> str | None:
    r"""Return the packed, unsupported format of a file that begins with these bytes (`OTHER_BYTES` of them).

    >>> recognise_other(lzma.compress(b"text", lzma.FORMAT_ALONE)), recognise_other(b"]\0\0\0")
    ('lzma', None)
    """
    if head[:3] == b"]\0\0" and len(head) > 13 and (head[5:13] == b"\xff" * 8 or head[9:13] == bytes(4)):
        return "lzma"
    return next((name for at, mark, name in _OTHERS if head.startswith(mark, at)), None)


def member_size(data: bytes, at: int) -> int:
    """Return the length of the BGZF member at a place; 0 if there is none, or if `data` end within its header.

    >>> member_size(bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000"), 0)
    28
    """
    if data[at : at + 4] != b"\x1f\x8b\x08\x04":
        return 0
    place, end = at + 12, at + 12 + int.from_bytes(data[at + 10 : at + 12], "little")
    while place + 6 <= end <= len(data):
        length = int.from_bytes(data[place + 2 : place + 4], "little")
        if data[place : place + 4] == b"BC\x02\x00":
            size = int.from_bytes(data[place + 4 : place + 6], "little") + 1
            return size if size >= end - at + 8 else 0
        place += 4 + length
    return 0


class Decoder(Protocol):
    """A decompressor of one member (frame, stream), with the interface of bz2.BZ2Decompressor."""

    @property
    def eof(self) -> bool:
        """True if its end has been reached."""
        ...

    @property
    def needs_input(self) -> bool:
        """True if nothing more comes out before something is put in."""
        ...

    @property
    def unused_data(self) -> bytes:
        """The input behind its end."""
        ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """Take data, and return what it decompresses to: about `max_length` bytes at most."""
        ...


class GzipDecoder:
    """One gzip member; header, checksum and length are checked by zlib."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._rest = b""
        self.needs_input = True

    @property
    def eof(self) -> bool:
        """See Decoder."""
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        """See Decoder."""
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """See Decoder."""
        output = self._inner.decompress(self._rest + data if self._rest else data, max(max_length, 0))
        self._rest = self._inner.unconsumed_tail
        self.needs_input = not (self._inner.eof or self._rest or len(output) == max_length)
        return output


@attrs.define(eq=False)
class FedDecoder:
    """A zstd frame by python-zstandard, which knows no `max_length`: it is fed a little at a time."""

    _inner: Any
    _rest: bytes = b""

    @property
    def eof(self) -> bool:
        """See Decoder."""
        return bool(self._inner.eof)

    @property
    def needs_input(self) -> bool:
        """See Decoder."""
        return not self._rest and not self._inner.eof

    @property
    def unused_data(self) -> bytes:
        """See Decoder."""
        return bytes(self._inner.unused_data) + self._rest

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """See Decoder. May give 8 MiB more than `max_length`."""
        data = self._rest + data if self._rest else data
        parts, size, at = [], 0, 0
        while at < len(data) and not self._inner.eof and not 0 <= max_length <= size:
            parts.append(self._inner.decompress(data[at : at + ZSTD_INPUT]))
            size += len(parts[-1])
            at += ZSTD_INPUT
        self._rest = data[at:]
        return b"".join(parts)


@attrs.frozen
class Codec:
    """A kind of compressed data: its decoder, the errors of that, and the bytes with which a member begins."""

    make: Callable[[], Decoder]
    errors: tuple[type[Exception], ...]
    is_padded: bool = False  # zero bytes may stand between and after members


def codec_of(compression: str, path: str) -> Codec:
    """Return the codec of a kind of compression. Raises PackageMissing if its package is not installed."""
    if compression in ("gzip", "bgzf"):
        return Codec(GzipDecoder, (zlib.error,), is_padded=True)
    if compression == "bz2":
        return Codec(bz2.BZ2Decompressor, (OSError, ValueError))
    if compression == "xz":
        return Codec(lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY), (lzma.LZMAError,), is_padded=True)
    return _zstd(path)


def zstd_module(path: str) -> Any:
    """Return the installed package for zstd: Python's own (3.14), its backport, or python-zstandard. Raises PackageMissing."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # Python 3.14
    except ImportError:
        try:
            from backports import zstd  # type: ignore[import-not-found,no-redef,unused-ignore]
        except ImportError:
            try:
                import zstandard as zstd  # type: ignore[no-redef,unused-ignore]
            except ImportError:
                raise PackageMissing(needed_by=path, package="backports.zstd", install="'dagflow[zstd]'") from None
    return zstd


def _zstd(path: str) -> Codec:
    zstd = zstd_module(path)
    if zstd.__name__ == "zstandard":
        return Codec(lambda: FedDecoder(zstd.ZstdDecompressor().decompressobj()), (zstd.ZstdError,))
    return Codec(zstd.ZstdDecompressor, (zstd.ZstdError,))
