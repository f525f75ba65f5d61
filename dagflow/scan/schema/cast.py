"""Conversion of columns to other types: of a whole column at once, and value by value only if that fails."""

from __future__ import annotations

import datetime
import decimal
import json
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute

from dagflow.arrow_types.held import not_held
from dagflow.scan.schema import time_formats
from dagflow.scan.schema.numbers import NumberText, is_number, is_overflown
from dagflow.scan.schema.table import Column

pc: Any = pyarrow.compute  # its functions are made at run time

TRUE, FALSE = ("true", "t", "yes", "y", "on", "1"), ("false", "f", "no", "n", "off", "0")
_TIME = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?$"
_INTEGER = r"^(?:\+|(-))?([0-9]+)(?:\.0*)?$"
"""Integers as Arrow does not parse them: with a plus sign, or `1.0`."""
_SAFE_DIGITS = 38
"""Of more digits, Arrow may make another number: 0 of a point and 39 nines."""
_CONTEXT = decimal.Context(prec=160)
_ERRORS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ValueError, TypeError, OverflowError, RecursionError)


PLAIN = NumberText()


def converted(
    values: pa.Array, target: pa.DataType, column: Column | None = None, *, drops: bool = False, numbers: NumberText = PLAIN
) -> tuple[pa.Array, pa.Array | None]:
    """Convert values to another type. Also return which of them are bad (a boolean array; None if no value is).

    A bad value is replaced by null. Text is trimmed, and blank text is null (see Column), unless it stays text or becomes bytes.
    No value is changed silently: 1.5 is not an int, 300 not an int8; only decimals are rounded to their scale, halves away from
    zero. `drops`: fields that the structs of the target do not have are left out; else such a value is bad. `numbers`: their
    spelling in text.

    >>> values, bad = converted(pa.array(["1", " 2", "x", "", None]), pa.int64())
    >>> values.to_pylist(), bad.to_pylist()
    ([1, 2, None, None, None], [False, False, True, False, False])
    """
    if values.type.equals(target):
        return values, None
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), target), None
    if _is_text(values.type) and not _keeps_text(target):
        return _of_text(values, target, column, drops, numbers)
    try:
        return _whole(values, target, drops, numbers), None
    except _ERRORS:
        return _one_by_one(values, target, column, drops, numbers)


def _whole(values: pa.Array, target: pa.DataType, drops: bool, numbers: NumberText) -> pa.Array:
    """Convert a whole column at once. Raises one of _ERRORS if a value or the types do not convert."""
    types = pa.types
    if _is_text(target) and (types.is_nested(values.type) or types.is_boolean(values.type)):
        raise ValueError("each value has a text of its own")
    if _is_text(target) and not_held(values, "text") is not None:
        raise ValueError("text does not hold such a time")
    if types.is_struct(target) and types.is_struct(values.type):
        return _struct(values, target, drops, numbers)
    if types.is_list(target) and types.is_list(values.type):
        inner = (
            _whole(values.flatten(), target.value_type, drops, numbers)
            if not values.type.value_type.equals(target.value_type)
            else None
        )
        if inner is None:
            return pc.cast(values, target)
        lengths = pc.fill_null(pc.list_value_length(values), 0)
        offsets = pa.array([0], pa.int32()).to_pylist() + pc.cumulative_sum(lengths).to_pylist()
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, type=target, mask=pc.is_null(values))
    if types.is_boolean(target) or types.is_boolean(values.type):
        raise ValueError("numbers are not truth values")
    if types.is_null(values.type):
        return pa.nulls(len(values), target)
    if types.is_floating(values.type) and types.is_decimal(target):
        raise ValueError("each one is converted from its shortest text")
    if types.is_integer(values.type) and types.is_temporal(target):
        raise ValueError("numbers are not times")
    if types.is_decimal(values.type) and types.is_decimal(target):
        _check_digits(values, target)
    if types.is_timestamp(values.type) and types.is_temporal(target):
        return _of_timestamps(values, target)
    if _is_text(values.type):
        values, wrong = numbers.plain(values, target)
        if wrong is not None:
            raise ValueError("some are not written as numbers")
    result = pc.cast(values, target, safe=True)
    if types.is_floating(target) and pc.any(pc.and_not(pc.is_inf(result), pc.is_inf(values))).as_py():
        raise ValueError("too large a number")
    return result


def _of_timestamps(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_time(target):
        raise ValueError("the day would be lost")
    if pa.types.is_timestamp(target):
        if values.type.tz is not None and target.tz is None:
            values = pc.local_timestamp(values)
        elif values.type.tz is None and target.tz is not None:
            values = pc.assume_timezone(values, target.tz)
        return pc.cast(values, target, safe=True)
    local = values if values.type.tz is None else pc.local_timestamp(values)
    result = pc.cast(local, target, safe=True)
    if not pc.all(pc.equal(pc.cast(result, local.type), local), min_count=0).as_py():
        raise ValueError("the time of day would be lost")
    return result


def _struct(values: pa.StructArray, target: pa.StructType, drops: bool, numbers: NumberText) -> pa.Array:
    names = {f.name for f in target}
    if not drops and any(f.name not in names for f in values.type):
        raise ValueError("a field would be lost")
    parts = []
    for f in target:
        at = values.type.get_field_index(f.name)
        part = pa.nulls(len(values), f.type) if at < 0 else values.field(at)
        parts.append(part if part.type.equals(f.type) else _whole(part, f.type, drops, numbers))
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=pc.is_null(values))


def _of_text(
    values: pa.Array, target: pa.DataType, column: Column | None, drops: bool, numbers: NumberText
) -> tuple[pa.Array, pa.Array | None]:
    """Parse text, trimmed and without blanks; at once if all of it parses."""
    text = pc.utf8_trim_whitespace(values if not pa.types.is_large_string(values.type) else pc.cast(values, pa.string()))
    blank = pc.equal(text, "")
    if pc.any(blank).as_py():
        zero = "0" if column is not None and column.blank == "zero" and is_number(target) else None
        text = pc.if_else(blank, pa.scalar(zero, pa.string()), text)
    text, wrong = numbers.plain(text, target)
    if wrong is not None:
        text = pc.if_else(wrong, pa.scalar(None, pa.string()), text)
    try:
        return _parsed(text, target, None if column is None else column.format), wrong
    except _ERRORS:
        result, bad = _one_by_one(text, target, column, drops, numbers)
        return result, bad if wrong is None else wrong if bad is None else pc.or_(bad, wrong)


def _parsed(text: pa.Array, target: pa.DataType, format: str | None) -> pa.Array:
    types = pa.types
    if types.is_boolean(target):
        return _truth(text)
    if format is not None and types.is_temporal(target):
        stamps = time_formats.parsed(text, format, target)
        return pc.cast(stamps, target) if types.is_time(target) else _of_timestamps(stamps, target)
    if types.is_nested(target):
        raise ValueError("parsed one by one")
    if types.is_time(target):
        return _times(text, target)
    if types.is_decimal(target):
        if pc.any(pc.greater(pc.binary_length(text), _SAFE_DIGITS)).as_py():
            raise ValueError("Arrow may take such a number for another one")
        _check_digits(text, target)
    try:
        result = pc.cast(text, target, safe=True)
    except pa.ArrowInvalid:
        if not types.is_integer(target):
            raise
        result = pc.cast(pc.replace_substring_regex(text, _INTEGER, r"\1\2"), target, safe=True)
    if is_number(target) and is_overflown(result, text):
        raise ValueError("too large a number")
    return result


def _check_digits(numbers: pa.Array, target: pa.DataType) -> None:
    """Raise ValueError if a number, or its text, may have more digits before the point than a decimal type.

    Arrow does not check them: where they and the scale go beyond the bits of the type, it makes 0.19435… of 7.
    """
    sizes = pc.abs(pc.cast(numbers, pa.float64()))
    limit = pa.scalar(10.0 ** (target.precision - target.scale), pa.float64())
    if not pc.all(pc.less(sizes, limit), min_count=0).as_py():
        raise ValueError("a number may have too many digits")


def _times(text: pa.Array, target: pa.DataType) -> pa.Array:
    """Parse times of day, which Arrow parses only as parts of a timestamp."""
    if not pc.all(pc.match_substring_regex(text, _TIME), min_count=0).as_py():
        raise ValueError("some are not times of day")
    return pc.cast(pc.cast(pc.binary_join_element_wise("1970-01-01", text, "T"), pa.timestamp(target.unit)), target)


def _truth(text: pa.Array) -> pa.Array:
    lower = pc.utf8_lower(text)
    true, false = pc.is_in(lower, pa.array(TRUE)), pc.is_in(lower, pa.array(FALSE))
    is_known = pc.or_(pc.or_(true, false), pc.is_null(text))
    if not pc.all(is_known).as_py():
        raise ValueError("some are not truth values")
    return pc.if_else(pc.is_null(text), pa.scalar(None, pa.bool_()), true)


def _one_by_one(
    values: pa.Array, target: pa.DataType, column: Column | None, drops: bool, numbers: NumberText
) -> tuple[pa.Array, pa.Array | None]:
    """Convert runs of values at once. Halve those that fail, down to the values that are to blame."""
    pattern = None if column is None else column.format
    results: list[pa.Array] = []
    bad: list[pa.Array] = []
    pending = [(0, len(values))]
    while pending:
        start, count = pending.pop()
        part = values.slice(start, count)
        try:
            is_parsed = _is_text(values.type) and not _keeps_text(target)
            result = _parsed(part, target, pattern) if is_parsed else _whole(part, target, drops, numbers)
            failed = pa.array([False] * count, pa.bool_())
        except _ERRORS:
            if count > 16:
                half = count // 2
                pending += [(start + half, count - half), (start, half)]
                continue
            result, failed = _slow(part, target, pattern, drops, numbers)
        results.append(result)
        bad.append(failed)
    failed = pa.concat_arrays(bad) if bad else pa.array([], pa.bool_())
    whole = pa.concat_arrays(results) if results else pa.array([], target)
    return whole, failed if pc.any(failed).as_py() else None


def _slow(
    values: pa.Array, target: pa.DataType, format: str | None, drops: bool, numbers: NumberText
) -> tuple[pa.Array, pa.Array]:
    results: list[Any] = []
    failed: list[bool] = []
    for row, value in enumerate(values):
        try:
            if not_held(single := values.slice(row, 1), "Python") is not None:
                result = _whole(single, target, drops, numbers)[0]
            else:
                single = pa.array([value.as_py()], values.type)
                result = None if not value.is_valid else _value(single, value.as_py(), target, format, drops, numbers)
        except (*_ERRORS, ArithmeticError):
            result = _BAD
        failed.append(result is _BAD)
        results.append(None if result is _BAD else result)
    return pa.array(results, target), pa.array(failed, pa.bool_())


_BAD = object()


def _value(single: pa.Array, value: Any, target: pa.DataType, format: str | None, drops: bool, numbers: NumberText) -> Any:
    """Convert one value, which is also given as the array `single`. Raises if it does not convert."""
    types = pa.types
    if _is_text(target):
        return value.decode("utf-8") if isinstance(value, bytes) else text_of(value)
    if isinstance(value, str) and types.is_nested(target):
        return _nested(_DECODER.decode(value), target, drops, numbers)
    if types.is_decimal(target):
        if isinstance(value, str) and ("_" in value or not value.isascii()):
            raise ValueError("a number as only Python writes it")
        number = decimal.Decimal(value if not isinstance(value, float) else repr(value))
        rounded = number.quantize(decimal.Decimal(1).scaleb(-target.scale), decimal.ROUND_HALF_UP, _CONTEXT)
        return pa.scalar(rounded, target).as_py()
    if types.is_boolean(target) and isinstance(value, int) and value in (0, 1):
        return bool(value)
    result = _parsed(single, target, format) if isinstance(value, str) else _whole(single, target, drops, numbers)
    return result[0].as_py() if not types.is_temporal(target) else result[0]


def _real(text: str) -> decimal.Decimal:
    if math.isinf(float(text)):
        raise ValueError("too large a number")
    return decimal.Decimal(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key that is there twice")
    return result


_DECODER = json.JSONDecoder(parse_float=_real, object_pairs_hook=_object)


def _nested(value: Any, target: pa.DataType, drops: bool, numbers: NumberText) -> Any:
    """Convert a value of JSON to a nested type. Raises if it does not convert."""
    types = pa.types
    if value is None:
        return None
    if types.is_struct(target):
        fields = {f.name: f.type for f in target}
        if not isinstance(value, dict) or not (drops or value.keys() <= fields.keys()):
            raise ValueError("no such struct")
        return {name: _nested(value.get(name), kind, drops, numbers) for name, kind in fields.items()}
    if types.is_map(target):
        return [(key, _nested(each, target.item_type, drops, numbers)) for key, each in dict(value).items()]
    if types.is_list(target) or types.is_large_list(target):
        if not isinstance(value, list):
            raise ValueError("no list")
        return [_nested(each, target.value_type, drops, numbers) for each in value]
    is_big = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63  # Arrow takes its text
    if isinstance(value, decimal.Decimal) and not types.is_decimal(target):
        value = float(value)
    is_exact = is_big or isinstance(value, decimal.Decimal)
    result, bad = converted(pa.array([str(value) if is_exact else value]), target, drops=drops, numbers=numbers)
    if bad is not None:
        raise ValueError("a part of it does not convert")
    return result[0].as_py()


def unknown_field(value: Any, kind: pa.DataType) -> str | None:
    """Return the first field of a value, or of its JSON, that the structs of a type do not have.

    >>> unknown_field([{"a": 1}, {"b": 2}], pa.list_(pa.struct([("a", pa.int8())])))
    'b'
    """
    types = pa.types
    if isinstance(value, str) and types.is_nested(kind):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    if types.is_struct(kind) and isinstance(value, dict):
        fields = {f.name: f.type for f in kind}
        parts = (unknown_field(part, fields[name]) if name in fields else name for name, part in value.items())
    elif (types.is_list(kind) or types.is_large_list(kind)) and isinstance(value, list):
        parts = (unknown_field(part, kind.value_type) for part in value)
    else:
        return None
    return next((part for part in parts if part is not None), None)


_OF_JSON = (bool, int, float, dict, list, tuple, type(None))


def text_of(value: Any) -> str:
    r"""Return the text that stands for a value: text itself, else JSON (times in ISO form). Bytes that are not UTF-8 are `\xff`.

    >>> text_of(True), text_of({"a": [1.5, None]}), text_of(b"x")
    ('true', '{"a": [1.5, null]}', 'x')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if not isinstance(value, _OF_JSON):
        return str(value)
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> str:
    return text_of(value) if isinstance(value, bytes) else str(value)


def _keeps_text(kind: pa.DataType) -> bool:
    """Return whether a type holds text as it stands."""
    types = pa.types
    return _is_text(kind) or bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
