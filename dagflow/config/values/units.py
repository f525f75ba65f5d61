"""Sizes and durations in words, and the annotations that ask for them.

Code writes plain numbers (`64 * MiB`), configuration writes words (`64MiB`, `500ms`). All arithmetic is exact:
`1.5KiB` is 1536, and `0.3KiB`, which is not an integer number of bytes, is an error.
"""

from __future__ import annotations

import math
import re
from typing import Annotated

import attrs

KiB = 1024
MiB = 1024 * KiB
GiB = 1024 * MiB
TiB = 1024 * GiB


@attrs.frozen
class Unit:
    """The unit of a number: `bytes`, `seconds` or `milliseconds`. Used in `Annotated[int, Unit("bytes")]`."""

    name: str


@attrs.frozen
class SecretMarker:
    """Marks what is never shown. Stands in `Annotated[str, SECRET]`."""


SECRET = SecretMarker()

Bytes = Annotated[int, Unit("bytes")]
"""A size: `4096`, `64MiB`, `1GB`, `10 TB` in configuration, an int in code."""
Seconds = Annotated[float, Unit("seconds")]
"""A duration: `500ms`, `2s`, `5 min`; a bare number is in seconds. A float in code."""
Millis = Annotated[int, Unit("milliseconds")]
"""A duration: `500ms`, `2s`, `5 min`; a bare number is in milliseconds. An int in code."""
Secret = Annotated[str, SECRET]
"""Text that is shown as `***` wherever configuration is printed, errors included."""

_SIZES = {"B": 1}
for _power, _letter in enumerate("KMGTP", 1):
    _SIZES[f"{_letter}B"] = 1000**_power
    _SIZES[f"{_letter}iB"] = 1024**_power
_SIZE_WORDS = {name.lower(): factor for name, factor in _SIZES.items()} | {"byte": 1, "bytes": 1}

_DURATIONS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86400 * 10**9}
_DURATION_WORDS = _DURATIONS | {
    "µs": 10**3,
    "sec": 10**9,
    "m": 60 * 10**9,
    **{f"{word}{plural}": _DURATIONS[unit] for word, unit in
       {"millisecond": "ms", "second": "s", "minute": "min", "hour": "h", "day": "d"}.items() for plural in ("", "s")},
}  # fmt: skip

_WHOLE = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_PART = re.compile(r"([0-9]+(?:_[0-9]+)*)(?:\.([0-9]+))?\s*([^\W\d_]+)\s*")


def parse_whole(text: str) -> int:
    """Parse an integer: digits with an optional sign and `_` between digits. Raises ValueError for anything else.

    >>> parse_whole("1_000")
    1000
    """
    if not _WHOLE.fullmatch(text):
        raise ValueError("it is not an integer")
    return int(text)


def parse_size(text: str) -> int:
    """Parse a size into bytes. A bare integer is bytes.

    Units: B, KB, MB, GB, TB, PB (powers of 1000), KiB, MiB, GiB, TiB, PiB (powers of 1024), in any case.

    >>> parse_size("64MiB"), parse_size("10 TB"), parse_size("4096"), parse_size("1.5 KiB")
    (67108864, 10000000000000, 4096, 1536)
    """
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    match = _PART.fullmatch(text)
    if match is None:
        raise ValueError("it is not a number with a unit")
    unit = match[3].lower()
    if unit not in _SIZE_WORDS:
        letter = unit[0].upper()
        if unit in {"k", "m", "g", "t", "p", "ki", "mi", "gi", "ti", "pi"}:
            raise ValueError(f"`{match[3]}` is not a unit: write {letter}B (a power of 1000) or {letter}iB (a power of 1024)")
        raise ValueError(f"`{match[3]}` is not a unit of size")
    numerator, denominator = _ratio(match, _SIZE_WORDS[unit])
    if numerator % denominator:
        raise ValueError("it is not an integer number of bytes")
    return numerator // denominator


def format_size(size: int) -> str:
    """Return the shortest text for exactly this number of bytes. `parse_size` reads it back.

    >>> format_size(67108864), format_size(10**13), format_size(4097), format_size(0)
    ('64MiB', '10TB', '4097', '0')
    """
    if size < 1000:
        return str(size)
    count, unit = min((size // factor, unit) for unit, factor in _SIZES.items() if size % factor == 0)
    return f"{count}{unit if unit != 'B' else ''}"


def parse_seconds(text: str) -> float:
    """Parse a duration into seconds. A bare number is seconds. Parts add up: `1h 30min`.

    Units: ns, us, ms, s, min (or m), h, d, and second(s), minute(s), hour(s), day(s), millisecond(s), in lower case.

    >>> parse_seconds("500ms"), parse_seconds("5 min"), parse_seconds("0.25"), parse_seconds("1h 30min")
    (0.5, 300.0, 0.25, 5400.0)
    """
    text = text.strip()
    try:
        bare = float(text)
    except ValueError:
        numerator, denominator = _nanoseconds(text)
        try:
            return numerator / (denominator * 10**9)  # correctly rounded: a quotient of integers
        except OverflowError:
            raise ValueError("it is too long") from None
    if not math.isfinite(bare):
        raise ValueError("it is not finite")
    return bare


def parse_millis(text: str) -> int:
    """Parse a duration into milliseconds. A bare integer is milliseconds.

    >>> parse_millis("2s"), parse_millis("250"), parse_millis("0.5s")
    (2000, 250, 500)
    """
    text = text.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    numerator, denominator = _nanoseconds(text)
    if numerator % (denominator * 10**6):
        raise ValueError("it is not an integer number of milliseconds")
    return numerator // (denominator * 10**6)


def format_seconds(seconds: float) -> str:
    """Format a duration exactly. `parse_seconds` reads it back.

    >>> format_seconds(0.5), format_seconds(300), format_seconds(90), format_seconds(0.1), format_seconds(0)
    ('500ms', '5min', '90s', '100ms', '0s')
    """
    from decimal import Decimal

    if seconds < 0 or not math.isfinite(seconds):
        return repr(seconds)
    exact = Decimal(repr(seconds))
    _, digits, exponent = exact.as_tuple()
    whole, power = int("".join(map(str, digits))), int(exponent) + 9  # nanoseconds: whole * 10**power
    if power < 0 and whole % 10**-power == 0:
        whole, power = whole // 10**-power, 0
    if power < 0:
        return f"{exact:f}s"
    return _format_nanoseconds(whole * 10**power)


def format_millis(millis: int) -> str:
    """Format a number of milliseconds exactly. `parse_millis` reads it back.

    >>> format_millis(2000), format_millis(1), format_millis(0)
    ('2s', '1ms', '0s')
    """
    return str(millis) if millis < 0 else _format_nanoseconds(millis * 10**6)


def _format_nanoseconds(count: int) -> str:
    if count == 0:
        return "0s"
    unit = max((unit for unit, factor in _DURATIONS.items() if count % factor == 0), key=_DURATIONS.__getitem__)
    return f"{count // _DURATIONS[unit]}{unit}"


def _nanoseconds(text: str) -> tuple[int, int]:
    """Return the sum of all parts, as a ratio of integers."""
    numerator, denominator, position = 0, 1, 0
    while position < len(text) or position == 0:
        match = _PART.match(text, position)
        if match is None:
            raise ValueError("it is not a number with a unit")
        if match[3] not in _DURATION_WORDS:
            raise ValueError(f"`{match[3]}` is not a unit of time")
        part, scale = _ratio(match, _DURATION_WORDS[match[3]])
        numerator, denominator = numerator * scale + part * denominator, denominator * scale
        position = match.end()
    return numerator, denominator


def _ratio(match: re.Match[str], factor: int) -> tuple[int, int]:
    fraction = match[2] or ""
    return int(match[1].replace("_", "") + fraction) * factor, 10 ** len(fraction)
