"""Compressed text: recognised by its content, decompressed as a stream, or member by member where it can be cut (BGZF)."""

from operators.compression.context import DecompressingContext
from operators.compression.errors import (
    CodecMissing,
    CompressionCorrupt,
    CompressionTruncated,
    CompressionUnexpected,
    CompressionUnsupported,
)
from operators.compression.formats import COMPRESSIONS, recognise, recognise_other

__all__ = [
    "COMPRESSIONS",
    "CodecMissing",
    "CompressionCorrupt",
    "CompressionTruncated",
    "CompressionUnexpected",
    "CompressionUnsupported",
    "DecompressingContext",
    "recognise",
    "recognise_other",
]
