"""Hashes of records and files, told as `algorithm:hex`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

ALGORITHM = "sha256"
"""For records: of those that need no library, the one that processors help with."""
FILES_ALGORITHM = "blake3"
"""For data files: three times as fast as SHA-256 (5 GB/s), and the tool `b3sum` knows it."""


def _blake3() -> Any:
    import blake3

    return blake3.blake3()


_ALGORITHMS: dict[str, Callable[[], Any]] = {"sha256": hashlib.sha256, "sha3-256": hashlib.sha3_256, "blake3": _blake3}


def new_hash(algorithm: str = ALGORITHM) -> Any:
    """A hash object (`update`, `hexdigest`) of a known algorithm; KeyError for others."""
    return _ALGORITHMS[algorithm]()


def hash_bytes(data: bytes, algorithm: str = ALGORITHM) -> str:
    """The hash of bytes, as `algorithm:hex`.

    >>> hash_bytes(b"")[:20]
    'sha256:e3b0c44298fc1'
    """
    made = new_hash(algorithm)
    made.update(data)
    return f"{algorithm}:{made.hexdigest()}"
