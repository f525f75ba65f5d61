"""The table of texts: edges of what may stand in a file of text, and the meaning of each as a value of a type.

`meaning` is the oracle: it knows what a text means by Python's integers, decimals and calendar, and nothing of Arrow's parsers. A
source gives that value, or refuses the text. `written_again` is the oracle of inferred types.
"""

from __future__ import annotations

import datetime
import re
import struct
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as t

from tests.conformance.values.table import DAY, NS, number

REFUSED = "refused"

NUMBERS = [
    *["1", "+1", "-1", "007", "-007", "+007", "0", "-0", "+0", "-0.0", "0.0", "1.0", "1.", "1.50", ".5", "-.5", "0.5", "256.0"],
    *["1e5", "1E5", "1e+5", "1e-5", "1e10", "1e37", "1e38", "1e39", "3.5e38", "1e400", "-1e400", "1e-38", "1e-400", "1e", "."],
    *["NaN", "nan", "-nan", "+NaN", "inf", "Inf", "-inf", "+inf", "Infinity", "-Infinity", "INFINITY"],
    *["0x1F", "-0x1F", "0xFF", "0xFFFFFFFFFFFFFFFF", "0b1", "0o7", "1_000", "1,000", "1 000", "\u0661", "1\u0661", "½", "²"],
    *["127", "128", "-128", "-129", "255", "256", "20230102", "9007199254740993", "12345678901234567"],
    *["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"],
    *["18446744073709551615", "18446744073709551616", "1234567890123456789012"],
    *["9" * 38, "9" * 39, "-" + "9" * 39, "0." + "9" * 39, "0" * 50 + "1", "1" + "0" * 400, "0." + "0" * 400 + "1", "9" * 5000],
    *["2.675", "1.005", "0.995", "9999999.99", "9999999.995", "99999999.99"],
]
WORDS = [
    *["true", "TRUE", "True", "tRuE", "false", "FALSE", "t", "T", "f", "yes", "YES", "No", "y", "n", "on", "OFF"],
    *["", " ", "  1  ", "\t1\t", "\u00a01", "1\u00a0", "null", "NULL", "NA", "None", "\\N"],
    *["é", "😀", 'a"b', "a,b", "a\\b", "'", "\x1f", "\ufeffx", "x" * 1000],
]
DAYS = [
    *["2023-01-02", "0000-01-01", "0000-12-31", "0001-01-01", "9999-12-31", "10000-01-01", "+10000-01-01", "-0001-01-01"],
    *["2023-02-29", "2024-02-29", "1900-02-29", "2023-13-01", "2023-00-01", "2023-01-00", "2023-04-31", "2023-366"],
    *["2023-1-2", "2023/01/02", "2023-01", "2023", "01.02.2023"],
]
TIMES = [
    *["2023-01-02T03:04:05", "2023-01-02 03:04:05", "2023-01-02T03:04", "2023-01-02T03", "2023-01-02T00:00:00"],
    *["2023-01-02T24:00:00", "2023-01-02T23:59:60", "2023-01-02T23:60:00", "2023-10-29T02:30:00", "2023-03-26T02:30:00"],
    *["2023-01-02T03:04:05Z", "2023-01-02T03:04:05z", "2023-01-02T03:04:05+02:00", "2023-01-02T03:04:05-0230"],
    *["2023-01-02T03:04:05+02", "2023-01-02T03:04:05 +02:00", "2023-01-02T03:04:05+24:00", "2023-01-02T03:04:05+25:00"],
    *["2023-01-02T03:04:05+02:60", "2023-01-02T03:04:05.1", "2023-01-02T03:04:05.123", "2023-01-02T03:04:05.123456"],
    *["2023-01-02T03:04:05.123456789", "2023-01-02T03:04:05.1234567890", "2023-01-02T03:04:05.1230000000"],
    *["2023-01-02T03:04:05.123456789Z", "2023-01-02T03:04:05.", "2023-01-02T03:04:05,5"],
    *["1677-09-21T00:12:43.145224193", "1600-01-01T00:00:00", "2262-04-11T23:47:16.854775807", "2262-04-11T23:47:16.854775808"],
    *["2500-01-01T00:00:00", "0001-01-01T00:00:00", "9999-12-31T23:59:59.999999", "9999-12-31T23:59:59-01:00"],
    *["0001-01-01T00:00:00+01:00", "0000-12-31T23:59:59", "10000-01-01T00:00:00"],
    *["03:04", "03:04:05", "3:04:05", "24:00", "24:00:00", "23:59:60", "23:59:59.999999999", "03:04:05.5", "03:04:05.1234567891"],
    *["-01:00:00", "00:00:00", "03", "030405", "12:00 PM", "-03:04", "03:04Z"],
]
TEXTS = [*NUMBERS, *WORDS, *DAYS, *TIMES]
TYPES = [
    *[pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()],
    *[pa.float16(), pa.float32(), pa.float64(), pa.bool_()],
    *[pa.decimal128(38, 0), pa.decimal128(9, 2), pa.decimal128(38, 38), pa.decimal256(76, 0)],
    *[pa.date32(), pa.date64(), pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
    *[pa.timestamp(unit, zone) for unit in NS for zone in (None, "UTC", "Europe/Oslo")],
    *[pa.duration("s"), pa.string(), pa.large_string(), pa.binary()],
]
"""The types of columns, which differ in their names by `column_name`."""

_REAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DAY = r"([+-]?\d{4,6})-(\d\d)-(\d\d)"
_CLOCK = r"(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?"
_STAMP = re.compile(rf"{_DAY}(?:[ T]{_CLOCK})?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII)
_LARGEST_FLOAT = 3.4028235677973366e38  # what rounds to the largest one is less


def holds_text(kind: Any) -> bool:
    """Return whether a type holds texts as they stand."""
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind))


def meaning(text: str, kind: Any) -> Any:
    """Return the canonical value of a text in a column whose type is declared; None: null; REFUSED: it is none."""
    if holds_text(kind):
        return text.encode() if t.is_binary(kind) else text
    text = text.strip()
    if not text:
        return None
    if t.is_boolean(kind):
        spellings = {True: "true t yes y on 1", False: "false f no n off 0"}
        return next((value for value, words in spellings.items() if text.lower() in words.split()), REFUSED)
    if t.is_integer(kind):
        return _integer(text, kind)
    if t.is_floating(kind):
        return _float(text, kind)
    if t.is_decimal(kind):
        return _decimal(text, kind)
    if t.is_time(kind):
        clock = re.fullmatch(_CLOCK, text, re.ASCII)
        return REFUSED if clock is None or clock[2] is None else _moment(0, clock.groups(), kind)
    return _stamp(text, kind) if t.is_date(kind) or t.is_timestamp(kind) else REFUSED


def _integer(text: str, kind: Any) -> Any:
    if re.fullmatch("0[xX][0-9a-fA-F]{1,16}", text):
        value = int(text, 16)
    elif len(text) < 4300 and re.fullmatch(r"[+-]?[0-9]+(\.0*)?", text):
        value = int(text.partition(".")[0])
    else:
        return REFUSED
    bits, is_signed = kind.bit_width, str(kind).startswith("int")
    is_within = -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) if is_signed else 0 <= value < 2**bits
    return number(Decimal(value)) if is_within else REFUSED


def _float(text: str, kind: Any) -> Any:
    if re.fullmatch("[+-]?(nan|inf|infinity)", text, re.IGNORECASE):
        return number(float(text))
    if not _REAL.fullmatch(text) or abs(value := float(text)) == float("inf"):
        return REFUSED
    try:
        if t.is_float16(kind):
            [value] = struct.unpack("e", struct.pack("e", value))
        elif t.is_float32(kind):
            [value] = struct.unpack("f", struct.pack("f", value if abs(value) < _LARGEST_FLOAT else 1e300))
    except OverflowError:
        return REFUSED
    return number(value)


def _decimal(text: str, kind: Any) -> Any:
    if not _REAL.fullmatch(text):
        return REFUSED
    try:
        rounded = Decimal(text).quantize(Decimal(1).scaleb(-kind.scale), ROUND_HALF_UP, Context(prec=500))
    except InvalidOperation:
        return REFUSED
    if rounded and len(rounded.as_tuple().digits) > kind.precision:
        return REFUSED
    return number(rounded or abs(rounded))


def _stamp(text: str, kind: Any) -> Any:
    found = _STAMP.fullmatch(text)
    if found is None:
        return REFUSED
    year, month, day, *clock, zone = found.groups()
    days = _days(int(year), int(month), int(day))
    if days is None:
        return REFUSED
    if t.is_date(kind):
        return days * DAY * 10**9 if clock[0] is zone is None else REFUSED
    if (zone is None) != (kind.tz is None):
        return REFUSED
    offset = _offset(zone or "Z")
    return REFUSED if offset is None else _moment(days * DAY - offset, tuple(clock), kind)


def _moment(seconds: int, clock: tuple[str | None, ...], kind: Any) -> Any:
    hour, minute, second = (int(part or 0) for part in clock[:3])
    digits, kept = (clock[3] or "").rstrip("0"), {"s": 0, "ms": 3, "us": 6, "ns": 9}[kind.unit]
    if hour > 23 or minute > 59 or second > 59 or len(digits) > kept:
        return REFUSED
    value = (seconds + (hour * 60 + minute) * 60 + second) * 10**9 + int(digits.ljust(9, "0"))
    return value if -(2**63) <= value // NS[kind.unit] < 2**63 else REFUSED


def _offset(zone: str) -> int | None:
    """Return the seconds of an offset; None for hours or minutes that no day has."""
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    seconds = hours * 3600 + minutes * 60
    return None if hours > 23 or minutes > 59 else -seconds if zone.startswith("-") else seconds


def _days(year: int, month: int, day: int) -> int | None:
    """Return a day in days since 1970, by cycles of 400 years; None if there is no such day."""
    cycles = (year - 2000) // 400
    try:
        return datetime.date(year - cycles * 400, month, day).toordinal() - 719_163 + cycles * 146_097
    except ValueError:
        return None


def written_again(text: str, kind: Any) -> Any:
    """Return the canonical value of a text in a column whose type was inferred: a number only if it can be written so again."""
    if t.is_boolean(kind):
        return {"true": True, "false": False, "": None}.get(text.strip().lower(), REFUSED)
    value = meaning(text, kind)
    plain = text.strip()
    if value in (None, REFUSED) or not (t.is_integer(kind) or t.is_floating(kind)):
        return value
    if re.fullmatch("[+-]?(nan|inf|infinity)", plain, re.IGNORECASE):
        return REFUSED if plain.startswith("+") else value
    if plain.startswith("+") or re.match(r"-?0[0-9xX]", plain) or (t.is_integer(kind) and plain.startswith("-0")):
        return REFUSED
    digits = re.match("-?([0-9]*)", plain)
    if t.is_floating(kind) and digits is not None and len(digits[1]) >= 16:
        return value if Decimal(plain) in (Decimal(float(plain)), Decimal(repr(float(plain)))) else REFUSED
    return value
