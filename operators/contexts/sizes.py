"""Checks that the sizes of reader contexts share."""

from __future__ import annotations

from typing import Any

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


def check_size(instance: Any, attribute: Any, value: Any) -> None:
    """An attrs validator of a record's length: a number of bytes from 1 to 1 GiB (Arrow's offsets have 32 bits)."""
    _check(attribute, value, GIB, "1 GiB")


def check_piece_size(instance: Any, attribute: Any, value: Any) -> None:
    """An attrs validator of how much is read at a time: a number of bytes from 1 to 256 MiB."""
    _check(attribute, value, 256 * MIB, "256 MiB")


def _check(attribute: Any, value: Any, most: int, words: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ValueError(f"{attribute.name} is {value!r}, but must be a number of bytes from 1 to {most} ({words})")
