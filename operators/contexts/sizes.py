"""Checks that the sizes of reader contexts share."""

from __future__ import annotations

from typing import Any

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


def check_size(instance: Any, attribute: Any, value: Any) -> None:
    """An attrs validator: a number of bytes from 1 to 1 GiB (Arrow's offsets have 32 bits)."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= GIB:
        raise ValueError(f"{attribute.name} is {value!r}, but must be a number of bytes from 1 to {GIB} (1 GiB)")
