"""The table of values: the edges of every type, and their form by which a value that came out of a sink is compared.

`VALUES` has each value once, as an array of Arrow: those that Python cannot make, too. `canonical` is the form: integers of
nanoseconds for all that is temporal, so that units and objects do not matter.
"""

from __future__ import annotations

import datetime
import json
import re
import struct
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.types as t

NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
DAY = 86_400
FIRST, LAST = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
SMALLEST, LARGEST = -(2**63), 2**63 - 1


@attrs.frozen
class Value:
    """A value: an array of it alone, and what is special about it, by which sinks say what they refuse.

    `traits`: `years` (outside of 1 to 9999), `day` (a time of day outside of a day), `nan`, `infinite`, `nul` (in text), `fine`
    (below microseconds), `seconds`, `milliseconds` (more than finer units can count), `unsigned` (beyond 63 bits), `long`
    (a duration that 64 bits of microseconds do not count).
    """

    name: str
    column: Any = attrs.field(repr=False, eq=False)
    traits: frozenset[str] = frozenset()


def _raw(number: int, kind: pa.DataType) -> Any:
    return pa.array([number], pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)


def _numbers() -> Iterator[Value]:
    for bits in (8, 16, 32, 64):
        for number in (-(2 ** (bits - 1)), -1, 0, 2 ** (bits - 1) - 1):
            yield Value(f"int{bits} {number}", pa.array([number], f"int{bits}"))
        yield Value(f"uint{bits} {2**bits - 1}", pa.array([2**bits - 1], f"uint{bits}"), frozenset(["unsigned"] * (bits == 64)))
    for number in (True, False):
        yield Value(f"bool {number}", pa.array([number]))
    extremes = {"float32": (3.4028234663852886e38, 1.401298464324817e-45), "float64": (1.7976931348623157e308, 5e-324)}
    for name, (largest, least) in extremes.items():
        kind = pa.float32() if name == "float32" else pa.float64()
        for real in (0.0, -0.0, 0.1, 1.0, -largest, largest, least, 1e22):
            yield Value(f"{name} {real!r}", pa.array([real], kind))
        for real, trait in ((float("nan"), "nan"), (float("inf"), "infinite"), (float("-inf"), "infinite")):
            yield Value(f"{name} {real!r}", pa.array([real], kind), frozenset([trait]))
    for precision, scale in ((38, 0), (38, 18), (38, 38), (9, 2)):
        for digits in ("9" * precision, "-" + "9" * precision, "1", "0"):
            number = Decimal(f"{digits}E-{scale}") if scale else Decimal(digits)
            yield Value(f"decimal({precision}, {scale}) {digits[:4]}", pa.array([number], pa.decimal128(precision, scale)))


def _texts() -> Iterator[Value]:
    texts = [
        "",
        " ",
        "a",
        "NULL",
        "null",
        "\\N",
        "NaN",
        "é",
        "😀",
        "\ufeffx",
        'a"b',
        "a,b;c\td",
        "one\ntwo\r\n",
        "\\",
        "'",
        "\x1f",
    ]
    for number, text in enumerate([*texts, "x" * 100_000, "00501", "+1", "1e5", "true", "2026-01-31"]):
        yield Value(f"text {number} {text[:12]!r}", pa.array([text]))
    yield Value("text with NUL", pa.array(["a\0b"]), frozenset(["nul"]))
    for name, data in (("empty", b""), ("NUL", b"\0"), ("all", bytes(range(256))), ("no UTF-8", b"\xed\xa0\x80\xff")):
        yield Value(f"binary, {name}", pa.array([data]))


def _times() -> Iterator[Value]:
    for name, day in (("year 1", FIRST), ("year 9999", LAST), ("1969", -1), ("1970", 0), ("2000-02-29", 11_016)):
        yield Value(f"date32, {name}", _raw(day, pa.date32()))
    for name, day in (("year 0", FIRST - 1), ("year -1", FIRST - 366), ("year 10000", LAST + 1), ("least", -(2**31))):
        yield Value(f"date32, {name}", _raw(day, pa.date32()), frozenset(["years"]))
    for unit, zone in [(unit, zone) for unit in NS for zone in (None, "UTC", "Europe/Oslo")]:
        kind, per_second = pa.timestamp(unit, zone), 10**9 // NS[unit]
        for name, number in (("1970", 0), ("before 1970", -1), ("2026", 1_769_860_800 * per_second)):
            fine = frozenset(["fine"] * (unit == "ns" and number % 1000 != 0))
            yield Value(f"{kind}, {name}", _raw(number, kind), fine)
        if unit != "ns":
            yield Value(f"{kind}, year 1", _raw(FIRST * DAY * per_second, kind))
            yield Value(f"{kind}, year 9999", _raw(LAST * DAY * per_second, kind))
            yield Value(f"{kind}, end of 9999", _raw((LAST + 1) * DAY * per_second - 1, kind))
            beyond = {
                "year 10000": (LAST + 1) * DAY,
                "year 0": FIRST * DAY - 1,
                "year 55840": 1_700_000_000_000,
                "year -1": (FIRST - 366) * DAY,
            }
            for name, second in beyond.items():
                yield Value(f"{kind}, {name}", _raw(second * per_second, kind), frozenset(["years"]))
        traits = {"s": ["years", "seconds"], "ms": ["years", "milliseconds"], "us": ["years"], "ns": ["fine"]}[unit]
        for name, number in (("least", SMALLEST), ("greatest", LARGEST)):
            yield Value(f"{kind}, {name}", _raw(number, kind), frozenset(traits))
    for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
        per_day = DAY * 10**9 // NS[kind.unit]
        for name, number in (("midnight", 0), ("noon", per_day // 2), ("last", per_day - 1)):
            yield Value(f"{kind}, {name}", _raw(number, kind), frozenset(["fine"] * (kind.unit == "ns" and number % 1000 != 0)))
        for name, number in (("24 hours", per_day), ("negative", -1)):
            yield Value(f"{kind}, {name}", _raw(number, kind), frozenset(["day"]))
    for unit in NS:
        kind = pa.duration(unit)
        for name, number in (("none", 0), ("negative", -1), ("least", SMALLEST), ("greatest", LARGEST)):
            traits = ["fine"] * (unit == "ns" and number % 1000 != 0) + ["long"] * (unit in ("s", "ms") and abs(number) > 2**62)
            yield Value(f"{kind}, {name}", _raw(number, kind), frozenset(traits))


def _nested() -> Iterator[Value]:
    for name, items in (("empty", []), ("of null", [None]), ("of numbers", [1, None, LARGEST])):
        yield Value(f"list {name}", pa.array([items], pa.list_(pa.int64())))
    stamp = pa.timestamp("us")
    for name, second, traits in (("2026", 1_769_860_800, ()), ("year 55840", 1_700_000_000_000, ("years",))):
        at = _raw(second * 10**6, stamp)
        yield Value(f"list of a time, {name}", pa.ListArray.from_arrays([0, 1], at), frozenset(traits))
        yield Value(f"struct of a time, {name}", pa.StructArray.from_arrays([at], ["at"]), frozenset(traits))
        yield Value(f"map to a time, {name}", pa.MapArray.from_arrays([0, 1], pa.array(["k"]), at), frozenset(traits))
    yield Value("struct of null", pa.array([{"at": None}], pa.struct({"at": stamp})))
    reals = pa.struct({"r": pa.float64(), "s": pa.string()})
    yield Value("struct of a real", pa.array([{"r": 0.1, "s": '"'}], reals))
    yield Value("struct of NaN", pa.array([{"r": float("nan"), "s": ""}], reals), frozenset(["nan", "nested nan"]))
    yield Value("struct of NUL", pa.array([{"r": 1.0, "s": "\0"}], reals), frozenset(["nul"]))


VALUES = [*_numbers(), *_texts(), *_times(), *_nested()]


def column_name(kind: pa.DataType) -> str:
    """Return the name of the column of a type."""
    return re.sub(r"\W+", "_", str(kind)).strip("_").lower()


def rows(values: list[Value]) -> pa.RecordBatch:
    """Return a batch with a row for each value: its number, and a column for each type, in which other rows have null."""
    kinds = {column_name(each.column.type): each.column.type for each in values}

    def column_of(kind: pa.DataType) -> Any:
        return pa.concat_arrays([each.column if each.column.type == kind else pa.nulls(1, kind) for each in values])

    columns = [pa.array(range(len(values)), pa.int64()), *map(column_of, kinds.values())]
    return pa.RecordBatch.from_arrays(columns, names=["n", *kinds])


def canonical(column: Any) -> list[Any]:
    """Return the values of a column in the form in which they are compared."""
    kind = column.type
    if isinstance(column, pa.ChunkedArray):
        return [value for chunk in column.chunks for value in canonical(chunk)]
    if t.is_dictionary(kind):
        return canonical(column.dictionary_decode())
    valid = column.is_valid().to_pylist()
    if t.is_temporal(kind):
        numbers = column.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist()
        factor = DAY * 10**9 if t.is_date32(kind) else NS["ms" if t.is_date64(kind) else kind.unit]
        return [None if each is None else each * factor for each in numbers]
    if t.is_struct(kind):
        parts = [canonical(part) for part in column.flatten()]
        names = [field.name for field in kind]
        return [
            dict(zip(names, row, strict=True)) if ok else None for ok, row in zip(valid, zip(*parts, strict=True), strict=True)
        ]
    if t.is_map(kind):
        slices = [column.slice(n, 1) for n in range(len(column))]
        pairs = [zip(canonical(each.keys[_span(each)]), canonical(each.items[_span(each)]), strict=True) for each in slices]
        return [dict(each) if ok else None for ok, each in zip(valid, pairs, strict=True)]
    if t.is_nested(kind):
        return [canonical(column.slice(n, 1).flatten()) if ok else None for n, ok in enumerate(valid)]
    if t.is_integer(kind):
        return [None if value is None else number(Decimal(value)) for value in column.to_pylist()]
    return [number(value) if t.is_floating(kind) or t.is_decimal(kind) else value for value in column.to_pylist()]


def _span(maps: Any) -> slice:
    start, stop = (maps.offsets[n].as_py() for n in (0, 1))
    return slice(start, stop)


def number(value: Any) -> Any:
    """Return a real number by its bits, a decimal without its trailing zeros."""
    if isinstance(value, float):
        return ("real", "nan" if value != value else struct.pack(">d", value).hex())
    return (
        None
        if value is None
        else ("decimal", format(value, "f").rstrip("0").rstrip(".") if "." in format(value, "f") else format(value, "f"))
    )


_ISO = re.compile(r"(?:(\d{4})-(\d\d)-(\d\d))?[ T]?(?:(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?)?(?:Z|\+00(?::?00)?)?")


def of_text(value: Any, kind: Any) -> Any:
    """Return the canonical form of text, or of JSON whose numbers are text, as a value of a type."""
    if value is None:
        return None
    if t.is_struct(kind):
        return {name: of_text(each, kind.field(name).type) for name, each in value.items()}
    if t.is_map(kind):
        return {name: of_text(each, kind.item_type) for name, each in value.items()}
    if t.is_nested(kind):
        return [of_text(each, kind.value_type) for each in value]
    text = str(value)
    if t.is_boolean(kind):
        return {"true": True, "false": False, "True": True, "False": False, "1": True, "0": False}[text]
    if t.is_integer(kind):
        return number(Decimal(int(text)))
    if t.is_duration(kind):
        return int(text) * NS[kind.unit]
    if t.is_floating(kind):
        real = float(text)
        return number(struct.unpack("f", struct.pack("f", real))[0] if t.is_float32(kind) else real)
    if t.is_decimal(kind):
        return number(Decimal(text))
    if t.is_temporal(kind):
        found = _ISO.fullmatch(text)
        assert found is not None, f"{text!r} is not in ISO 8601"
        year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
        days = datetime.date(year, month, day).toordinal() - 719_163 if found[1] else 0
        return ((days * 24 + hour) * 60 + minute) * 60 * 10**9 + second * 10**9 + int((found[7] or "0").ljust(9, "0"))
    return value


def json_of(text: str) -> Any:
    """Return the value of JSON with its numbers as text. Raises ValueError for what is not JSON, such as NaN."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_int=str, parse_float=str, parse_constant=refuse)
