"""The search for cells that look like numbers and are more than that: `007`, `+49`, `-0`, `0x1F`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dagflow.scan import is_overflown

SPAN = 256 * 1024
"""The bytes that are looked at together: what is made of them stays in the processor's cache."""
REACH = 3
ZERO, MINUS = ord("0"), ord("-")
LARGEST = 2.0**53
"""Integers beyond are not all distinct as floats."""


def may_have_codes(text: bytes | memoryview, delimiter: str, quote: str, escape: str) -> bool:
    """Return True if a cell of delimited text may begin with a plus sign, a leading zero or a negative zero; False if none does.

    pyarrow parses such cells as numbers. This search takes a small part of the time that parsing takes.

    >>> [may_have_codes(text, ",", "", "") for text in (b"1,0.5,-0.5", b"1,007", b"+1", b"5,-0", b"2026-01-05")]
    [False, True, True, True, False]
    """
    data = b"".join((b"\n\n", text, b"\n" * REACH))
    if escape and escape.encode() in data:
        return True
    is_edge = np.zeros(256, bool)  # of the bytes before a cell, and before its sign
    is_edge[[*(delimiter + quote).encode(), *b"\n\r \t"]] = True
    if b"+" in data and _has_plus(data, is_edge):
        return True
    mark = ord(delimiter)
    for at in range(0, len(text), SPAN):
        octets = np.frombuffer(data, np.uint8, min(SPAN + REACH, len(data) - at), at)
        may_begin = octets[1 : 1 - REACH] <= MINUS  # a digit, a point or a colon is before most zeros
        if mark > MINUS:
            may_begin |= octets[1 : 1 - REACH] == mark
        may_begin &= octets[2 : 2 - REACH] == ZERO
        zeros = np.flatnonzero(may_begin) + 2
        before, behind = octets[zeros - 1], octets[zeros + 1]
        is_negative = before == MINUS
        is_code = ((behind - np.uint8(ZERO)) < 10) | ((behind | 32) == ord("x")) | (is_negative & (behind != ord(".")))
        is_code &= is_edge[np.where(is_negative, octets[zeros - 2], before)]
        if is_code.any():
            return True
    return False


def _has_plus(data: bytes, is_edge: NDArray[np.bool_]) -> bool:
    octets = np.frombuffer(data, np.uint8)
    return bool(is_edge[octets[np.flatnonzero(octets == ord("+")) - 1]].any())


def numbers_of(cells: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return a column of text as numbers, at once; None if a cell may be a code, or is not a plain number.

    >>> numbers_of(pa.array(["5", None, "-12"]), pa.int64()).to_pylist(), numbers_of(pa.array(["5", "007"]), pa.int64())
    ([5, None, -12], None)
    """
    if _has_code(cells):
        return None
    try:
        numbers = cells.cast(kind)
    except pa.ArrowInvalid:
        return None
    return None if is_overflown(numbers, cells) else numbers


def _has_code(cells: pa.Array) -> bool:
    """Return True if a cell begins as a code or with a blank."""
    _, offsets, data = cells.buffers()
    if data is None or not len(cells):
        return False
    bounds = np.frombuffer(offsets, np.int32, len(cells) + 1, cells.offset * 4)
    octets = np.concatenate([np.frombuffer(data, np.uint8), np.zeros(REACH, np.uint8)])
    filled = np.diff(bounds) > 0
    starts, ends = bounds[:-1][filled], bounds[1:][filled]
    first = octets[starts]
    is_negative = first == MINUS
    zeros = starts + is_negative
    behind = np.where(zeros + 1 < ends, octets[zeros + 1], ord(","))
    is_more = ((behind - np.uint8(ZERO)) < 10) | ((behind | 32) == ord("x")) | (is_negative & (behind != ord(".")))
    is_code = (first == ord("+")) | (first == ord(" ")) | (first == ord("\t")) | ((octets[zeros] == ZERO) & is_more)
    return bool(is_code.any())
