"""Compressed files: the suffixes of their names, and the bytes that they begin with."""

from __future__ import annotations

PACKED = {".gz": "gzip", ".bgz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
"""The compression of files whose names end so."""
MAGIC = {"gzip": b"\x1f\x8b\x08", "bz2": b"BZh", "xz": b"\xfd7zXZ\0", "zstd": b"\x28\xb5\x2f\xfd"}
"""The first bytes of what is compressed so."""
