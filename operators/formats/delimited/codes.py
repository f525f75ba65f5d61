"""The search for cells that look like numbers and are more than that: `007`, `+49`, `-0`, `0x1F`."""

from __future__ import annotations

import numpy as np

SPAN = 256 * 1024
"""The bytes that are looked at together: what is made of them stays in the processor's cache."""
REACH = 3
LARGEST = 2.0**53
"""Integers beyond are not all distinct as floats."""


def may_have_codes(text: bytes | memoryview, delimiter: str, quote: str, escape: str) -> bool:
    """Return True if a cell of delimited text may begin with a plus sign, a leading zero or a negative zero; False if none does.

    pyarrow parses such cells as numbers. This search takes a small part of the time that parsing takes.

    >>> [may_have_codes(text, ",", "", "") for text in (b"1,0.5,-0.5", b"1,007", b"+1", b"5,-0", b"2026-01-05")]
    [False, True, True, True, False]
    """
    data = b"".join((b"\n", text, b"\n" * REACH))
    if escape and escape.encode() in data:
        return True
    has_plus = b"+" in data
    for at in range(0, len(text) + 1, SPAN):
        octets = np.frombuffer(data, np.uint8, min(SPAN + REACH, len(data) - at), at)
        is_edge = octets == 10  # before a cell
        for mark in {*(delimiter + quote).encode(), *b"\r \t"}:
            is_edge |= octets == mark
        if has_plus and (is_edge[:-1] & (octets[1:] == ord("+"))).any():
            return True
        is_zero = octets == ord("0")
        is_more = ((octets - np.uint8(ord("0"))) < 10) | ((octets | 32) == ord("x"))
        if (is_edge[:-2] & is_zero[1:-1] & is_more[2:]).any():
            return True
        is_negative = is_edge[:-3] & (octets[1:-2] == ord("-")) & is_zero[2:-1]
        if is_negative.any() and (is_negative & (octets[3:] != ord("."))).any():
            return True
    return False
