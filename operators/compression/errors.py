"""Errors of compressed files."""

from __future__ import annotations

from typing_extensions import override

from dagflow.errors import definition, error
from operators.contexts.errors import ReadError


@error("DF314", kw_only=True)
class CompressionCorrupt(ReadError, ValueError):
    """Compressed data cannot be unpacked: it is damaged, followed by other data, or needs too much memory.

    `position`: the byte at which the unreadable member, frame or stream begins, or the data after the last one;
    `unpacked`: the number of bytes decompressed before, None if unknown; `reason`: the message of the codec.
    """

    path: str
    format: str
    position: int
    reason: str
    unpacked: int | None = None
    help: str = ""
    example = {
        "reader": "lines",
        "path": "logs/a.gz",
        "format": "gzip",
        "position": 0,
        "reason": "its checksum is wrong",
        "unpacked": 100,
    }
    general_remedy = "fetch or make the file again, or leave it out (the scanner's ignore pattern)"

    @override
    def message(self) -> str:
        done = "" if self.unpacked is None else f" ({self.unpacked} bytes were unpacked)"
        advice = self.help or "It is damaged: fetch or make it again, or leave it out (the scanner's ignore pattern)."
        if "memory" in self.reason.lower():
            advice = (
                "Compress it again with a smaller dictionary or window: at most 256 MiB for xz, 128 MiB for zstd (--long=27)."
            )
        return (
            f"{self.path}: the {self.format} data at byte {self.position} of the file cannot be unpacked{done}: {self.reason}.\n"
            f"{advice}"
        )


@error("DF315", kw_only=True)
class CompressionTruncated(ReadError, EOFError):
    """A compressed file ends within its data."""

    path: str
    format: str
    position: int
    began: int
    unpacked: int | None = None
    template = (
        "{path}: the file ends at byte {position}, within {format} data that begins at byte "
        "{began}{unpacked:?; {unpacked} bytes were unpacked}.\n"
        "It is incomplete: fetch or make it again, or leave it out (the scanner's ignore pattern)."
    )
    example = {"reader": "lines", "path": "logs/a.gz", "format": "gzip", "position": 4096, "began": 0}
    general_remedy = "fetch or make the file again, or leave it out (the scanner's ignore pattern)"


@error("DF316", kw_only=True)
class CompressionUnexpected(ReadError, ValueError):
    """A file is not compressed as `compression` says. `found`: the kind that was recognised, or None."""

    path: str
    expected: str
    found: str | None
    head: bytes
    example = {"reader": "lines", "path": "logs/a.gz", "expected": "gzip", "found": "zstd", "head": b"\x28\xb5\x2f\xfd"}
    general_remedy = "let the content of each file decide: -D operator.NAME.compression=auto"

    @override
    def message(self) -> str:
        shown = f"begins with {self.head[:8].hex(' ')}" + (f", which is {self.found}" if self.found else "")
        return (
            f"{self.path}: compression = {self.expected}, but the file {shown}.\n"
            f"Let each file's content decide: {definition(self.reader, 'compression', 'auto')}"
        )


@error("DF656", kw_only=True)
class CompressionUnsupported(ReadError, NotImplementedError):
    """A file is compressed in a way that dagflow does not support. `found`: the kind that was recognised."""

    path: str
    found: str
    head: bytes
    example = {"reader": "lines", "path": "logs/a.zip", "found": "zip", "head": b"PK\x03\x04"}
    general_remedy = "unpack the file, compress it with gzip, bgzip, bzip2, xz or zstd, or leave it out"

    @override
    def message(self) -> str:
        return (
            f"{self.path}: at byte 0: the file begins with {self.head[:8].hex(' ')}, which is {self.found}: not decompressed here.\n"
            "Unpack it (export a spreadsheet as CSV), or compress it with gzip, bgzip, bzip2, xz or zstd; or leave it out (the "
            "scanner's ignore pattern).\n"
            f"A block reader can read the bytes as they are: {definition(self.reader, 'compression', 'none')}"
        )
