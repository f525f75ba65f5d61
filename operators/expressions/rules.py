"""The meaning of each operation: a function from its compiled operands to an expression of `pyarrow.compute`.

Names that begin with `pc.` are Arrow's. `docs/reference/expressions.md` has the semantics as a table.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import datetime as dt
import functools
import math
import re
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow.arrow_types import NAMES, type_named
from operators.expressions.types import DIGITS, common_type, decimal_type, digits_of, is_number

_TYPES = {**NAMES, "date": pa.date32(), "timestamp": pa.timestamp("us")}


@attrs.define
class Widths:
    """The way in which decimals are computed that may need more than 38 digits, and whether there are any.

    `narrow`: with 38 digits, an error for a value that needs more: in a tenth of the time.
    """

    narrow: bool = False
    has_wide: bool = False


WIDTHS: ContextVar[Widths] = ContextVar("WIDTHS", default=Widths())  # noqa: B039  # each compiler sets its own


class Misfit(ValueError):
    """An operation does not fit its operands: the reason, and the remedy."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


@attrs.frozen
class Operand:
    """A compiled part of an expression.

    Attributes:
        arrow: the expression of `pyarrow.compute`.
        type: its type.
        literals: its value, where it is a literal.
    """

    arrow: Any
    type: pa.DataType
    literals: tuple[Any, ...] = ()

    def to(self, kind: pa.DataType) -> Any:
        """Return the expression in another type, which holds the value. Large integers and decimals are rounded to floats."""
        if self.type.equals(kind):
            return self.arrow
        if self.literals:
            return pc.scalar(pa.scalar(_as(kind, self.literals[0]), kind))
        if t.is_floating(kind) and t.is_decimal(self.type):
            return self.arrow.cast(pa.string()).cast(kind)  # Arrow's own cast is off by a bit: 1.255 becomes 1.2550000000000001
        return self.arrow.cast(kind, safe=not (t.is_floating(kind) and is_number(self.type)))


def literal(value: Any) -> Operand:
    """Return a literal: integers that int64 does not hold are decimals."""
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        value = Decimal(value)
    if isinstance(value, Decimal):
        _, digits, exponent = value.as_tuple()
        scale = max(0, -int(exponent))
        scalar = pa.scalar(value, decimal_type(max(len(digits) + max(0, int(exponent)), scale, 1), scale))
    else:
        scalar = pa.scalar(value)
    return Operand(pc.scalar(scalar), scalar.type, (value,))


def _as(kind: pa.DataType, value: Any) -> Any:
    """Return the value of a literal as `pa.scalar` takes it for a type."""
    if value is None:
        return None
    if t.is_decimal(kind) or t.is_floating(kind):
        return Decimal(value) if t.is_decimal(kind) else float(value)
    if t.is_temporal(kind) and isinstance(value, str):
        return pa.scalar(value).cast(kind).as_py()
    if t.is_timestamp(kind) and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value


def together(operands: Sequence[Operand]) -> pa.DataType:
    """Return the type in which values can be compared, or be one column. Raises Misfit."""
    return functools.reduce(_joint, operands).type


def _joint(one: Operand, other: Operand) -> Operand:
    for a, b in ((one, other), (other, one)):
        if a.literals and not b.literals and t.is_integer(a.type) and t.is_integer(b.type) and _holds(b.type, a.literals[0]):
            return b
        if a.literals and t.is_string(a.type) and t.is_temporal(b.type):  # as in SQL: day >= '2024-01-01'
            return b
    if (kind := common_type(one.type, other.type)) is None:
        raise Misfit(f"{one.type} and {other.type} have no type in common", "cast one of them: col(…).cast('…')")
    return Operand(None, kind)


def _holds(kind: pa.DataType, value: int) -> bool:
    signed = t.is_signed_integer(kind)
    return bool(-(2 ** (kind.bit_width - 1)) * signed <= value < 2 ** (kind.bit_width - signed))


def _boolean(*operands: Operand) -> list[Any]:
    for operand in operands:
        if not (t.is_boolean(operand.type) or t.is_null(operand.type)):
            raise Misfit(f"it takes true and false, and gets {operand.type}", "compare it with something: col('n') > 0")
    return [operand.to(pa.bool_()) for operand in operands]


def _compare(function: Callable[..., Any]) -> Callable[..., Any]:
    def compared(one: Operand, other: Operand) -> Any:
        for decimals, number, is_flipped in ((one, other, False), (other, one, True)):
            if t.is_decimal(decimals.type) and number.literals and t.is_floating(number.type):
                swapped = _FLIPPED.get(function, function) if is_flipped else function
                if (arrow := _with_float(swapped, decimals, number.literals[0])) is not None:
                    return arrow
            if t.is_decimal(decimals.type) and _is_held(decimals.type, number):  # so that the decimals need no cast
                return function(one.to(decimals.type), other.to(decimals.type))
        kind = together([one, other])
        kind = pa.bool_() if t.is_null(kind) else kind
        return function(one.to(kind), other.to(kind))

    return compared


def _is_held(kind: pa.DataType, number: Operand) -> bool:
    """Return whether an operand is a literal number that a type of decimals holds as it is."""
    if not number.literals or not (t.is_integer(number.type) or t.is_decimal(number.type)):
        return False
    digits = Fraction(number.literals[0]) * Fraction(10) ** kind.scale
    return bool(digits.denominator == 1 and abs(digits) < 10**kind.precision)


_FLIPPED = {
    pc.less: pc.greater,
    pc.greater: pc.less,
    pc.less_equal: pc.greater_equal,
    pc.greater_equal: pc.less_equal,
}


def _with_float(function: Callable[..., Any], decimals: Operand, number: float) -> Any:
    """Return decimals compared with a float, as the floats nearest to them are: by the decimals from which on they are larger.

    Decimals are not converted, which takes six times as long. None where no decimal of the type is there to compare with.
    """
    digits, scale = digits_of(decimals.type)
    if scale < 0 or not abs(number) < sys.float_info.max:
        return None
    first, beyond = (_least(each, scale) for each in (number, math.nextafter(number, math.inf)))
    if max(abs(first), abs(beyond)) >= 10**digits:
        return None
    from_first, from_beyond = (
        pc.greater_equal(decimals.arrow, pc.scalar(pa.scalar(Decimal(f"{each}e-{scale}"), decimals.type)))
        for each in (first, beyond)
    )
    is_equal = pc.and_kleene(from_first, pc.invert(from_beyond))
    return {
        pc.greater_equal: from_first,
        pc.less: pc.invert(from_first),
        pc.greater: from_beyond,
        pc.less_equal: pc.invert(from_beyond),
        pc.equal: is_equal,
        pc.not_equal: pc.invert(is_equal),
    }[function]


def _least(number: float, scale: int) -> int:
    """Return the least decimal, without its point, whose nearest float is not below a number.

    >>> _least(0.07, 2), _least(math.nextafter(0.07, 1), 2), _least(-0.5, 0)
    (7, 8, 0)
    """
    middle = (Fraction(math.nextafter(number, -math.inf)) + Fraction(number)) / 2 * 10**scale
    least: int = math.ceil(middle)
    return least if float(Fraction(least, 10**scale)) >= number else least + 1


def _between(value: Operand, low: Operand, high: Operand) -> Any:
    return pc.and_kleene(_compare(pc.greater_equal)(value, low), _compare(pc.less_equal)(value, high))


def _isin(operand: Operand, values: tuple[Any, ...]) -> Any:
    different = [literal(value) for value in values if value is not None]
    kind = together([operand, *different]) if different else operand.type
    plain = [_as(kind, each.literals[0]) for each in different]
    value = operand.to(kind)
    if t.is_floating(kind):  # as == has it: zeros are equal, and NaN is equal to nothing
        value, plain = pc.add(value, 0.0), [each + 0.0 for each in plain if each == each]
    inside = pc.is_in(value, value_set=pa.array(plain, kind))
    if None in [each if each is None else 0 for each in values]:
        inside = pc.or_kleene(inside, pc.scalar(pa.scalar(None, pa.bool_())))
    return pc.if_else(pc.is_valid(value), inside, pc.scalar(pa.scalar(None, pa.bool_())))


_EXACT = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}


def _arithmetic(symbol: str) -> Callable[..., Any]:
    def computed(one: Operand, other: Operand) -> Any:
        one, other = _typed(one, other.type), _typed(other, one.type)
        if t.is_null(one.type):
            return one.arrow
        if not (is_number(one.type) and is_number(other.type)):
            return _of_other(symbol, one, other)
        if t.is_floating(one.type) or t.is_floating(other.type):
            return _EXACT[symbol](one.to(pa.float64()), other.to(pa.float64()))
        if t.is_decimal(one.type) or t.is_decimal(other.type):
            return _of_decimals(symbol, one, other)
        return _EXACT[symbol](*_integers(one, other))

    return computed


def _typed(operand: Operand, kind: pa.DataType) -> Operand:
    """Return an operand; a null in the type of the other one."""
    return Operand(operand.to(kind), kind) if t.is_null(operand.type) and not t.is_null(kind) else operand


def _integers(*operands: Operand) -> list[Any]:
    """Return integers as int64; as uint64 where all are."""
    unsigned = all(each.type == pa.uint64() or (each.literals and each.literals[0] >= 0) for each in operands)
    is_unsigned = unsigned and any(each.type == pa.uint64() for each in operands)
    return [each.to(pa.uint64() if is_unsigned else pa.int64()) for each in operands]


def _of_decimals(symbol: str, one: Operand, other: Operand) -> Any:
    """Return exact decimals. Those that may need more than 38 digits are computed with up to 76, and must fit then."""
    (precision, scale), (more, more_scale) = (_digits(each) for each in (one, other))
    if symbol == "*":
        digits, places = precision + more + 1, scale + more_scale
    else:
        places = max(scale, more_scale)
        digits = max(precision - scale, more - more_scale) + places + 1
    if places > DIGITS:
        raise Misfit(f"the result has {places} decimal places, more than {DIGITS}", "round one side first: col(…).round(4)")
    if digits <= DIGITS:
        return _EXACT[symbol](one.to(pa.decimal128(precision, scale)), other.to(pa.decimal128(more, more_scale)))
    widths = WIDTHS.get()
    widths.has_wide = True
    if widths.narrow and (arrow := _narrow(symbol, one, other, places)) is not None:
        return arrow
    if digits > 76:
        more -= digits - 76  # such a product does not fit in 38 digits, unless there is none
        arrow = pc.if_else(pc.is_valid(one.arrow), other.arrow, pc.scalar(pa.scalar(None, other.type)))
        other = Operand(arrow, other.type)
    result = _EXACT[symbol](one.to(pa.decimal256(precision, scale)), other.to(pa.decimal256(more, more_scale)))
    return result.cast(pa.decimal128(DIGITS, places))


def _narrow(symbol: str, one: Operand, other: Operand, places: int) -> Any:
    """Return the same with operands cut to so few digits that the result has 38; None where there is no room for their scale."""
    (precision, scale), (more, more_scale) = (_digits(each) for each in (one, other))
    if symbol == "*":
        few = min(precision, more, DIGITS // 2 - 1)
        first, second = (few, DIGITS - 1 - few) if precision <= more else (DIGITS - 1 - few, few)
    else:
        first, second = DIGITS - 1 - (places - scale), DIGITS - 1 - (places - more_scale)
    if max(precision, more) > DIGITS or first < max(scale, 1) or second < max(more_scale, 1):
        return None
    cut = [one.to(pa.decimal128(first, scale)), other.to(pa.decimal128(second, more_scale))]
    if symbol != "*":  # only now: a cast to more places wraps around where a value needs too many digits, without an error
        cut = [each.cast(pa.decimal128(DIGITS - 1, places)) for each in cut]
    return _EXACT[symbol](*cut)


def _digits(operand: Operand) -> tuple[int, int]:
    return digits_of(literal(Decimal(operand.literals[0])).type if operand.literals else operand.type)


def _of_other(symbol: str, one: Operand, other: Operand) -> Any:
    """Return sums and differences of dates, timestamps and time spans, and joined strings."""
    days = pa.int64()
    if symbol == "+" and _is_string(one.type) and _is_string(other.type):
        kind = together([one, other])
        return pc.binary_join_element_wise(one.to(kind), other.to(kind), pc.scalar(pa.scalar("", kind)))
    if symbol == "-" and t.is_date(one.type) and t.is_date(other.type):
        return pc.subtract_checked(_as_days(one), _as_days(other))
    if symbol in "+-" and t.is_date(one.type) and t.is_integer(other.type):
        return _EXACT[symbol](_as_days(one), other.to(days)).cast(pa.int32()).cast(pa.date32())
    if symbol == "+" and t.is_integer(one.type) and t.is_date(other.type):
        return _of_other(symbol, other, one)
    times = [t.is_temporal(each.type) for each in (one, other)]
    if not all(times) and not (symbol == "*" and any(times)):
        raise _no_arithmetic(symbol, one, other)
    return _EXACT[symbol](one.arrow, other.arrow)


def _as_days(operand: Operand) -> Any:
    return Operand(operand.to(pa.date32()), pa.date32()).arrow.cast(pa.int32()).cast(pa.int64())


def _is_string(kind: pa.DataType) -> bool:
    return bool(t.is_string(kind) or t.is_large_string(kind))


def _no_arithmetic(symbol: str, *operands: Operand) -> Misfit:
    kinds = " and ".join(str(each.type) for each in operands)
    return Misfit(f"{symbol} does not take {kinds}", "cast the column first: col(…).cast('…')")


def _of_floats(symbol: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def computed(one: Operand, other: Operand) -> Any:
        if not all(is_number(each.type) or t.is_null(each.type) for each in (one, other)):
            raise _no_arithmetic(symbol, one, other)
        return function(one.to(pa.float64()), other.to(pa.float64()))

    return computed


def _whole_quotient(one: Operand, other: Operand) -> Any:
    if not all(t.is_integer(each.type) or t.is_null(each.type) for each in (one, other)):
        kinds = " and ".join(str(each.type) for each in (one, other))
        raise Misfit(f"// divides integers, not {kinds}", "write / for a quotient with a fraction")
    return pc.divide_checked(*_integers(_typed(one, pa.int64()), _typed(other, pa.int64())))


def _remainder(one: Operand, other: Operand) -> Any:
    one, other = _typed(one, other.type), _typed(other, one.type)
    if not (is_number(one.type) and is_number(other.type)):
        raise _no_arithmetic("%", one, other)
    if t.is_integer(one.type) and t.is_integer(other.type):
        dividend, divisor = _integers(one, other)
        return pc.subtract(dividend, pc.multiply(pc.divide_checked(dividend, divisor), divisor))
    if not hasattr(pc, "remainder"):  # pragma: no cover  # of the newest pyarrow
        raise Misfit("% of numbers that are not integers needs a newer pyarrow", "pip install --upgrade pyarrow")
    kind = together([one, other])
    return (
        pc.remainder(one.to(kind), other.to(kind)) if t.is_floating(kind) else pc.remainder_checked(one.to(kind), other.to(kind))
    )


def _number(function: Callable[..., Any]) -> Callable[..., Any]:
    def computed(operand: Operand) -> Any:
        if t.is_duration(operand.type) or t.is_null(operand.type):
            return operand.arrow if t.is_null(operand.type) else function(operand.arrow)
        if not is_number(operand.type):
            raise Misfit(f"it takes numbers, and gets {operand.type}", "cast the column first: col(…).cast('…')")
        return function(operand.to(pa.int64()) if t.is_integer(operand.type) else operand.arrow)

    return computed


def _round(operand: Operand, digits: int) -> Any:
    kind, mode = operand.type, "half_towards_infinity"
    if t.is_integer(kind):
        value = operand.to(pa.int64())
        return value if digits >= 0 else pc.round(value, ndigits=digits, round_mode=mode)
    if t.is_decimal(kind):
        precision, scale = kind.precision, kind.scale
        if digits >= scale:
            return operand.arrow
        wider = operand.to(decimal_type(precision + 1, scale))
        places = max(digits, 0)
        return pc.round(wider, ndigits=digits, round_mode=mode).cast(decimal_type(max(precision + 1 - scale + places, 1), places))
    if not t.is_floating(kind):
        raise Misfit(f"round takes numbers, and gets {kind}", "cast the column first: col(…).cast('float64')")
    value, power = operand.to(pa.float64()), 10.0 ** abs(digits)
    there, back = (pc.multiply, pc.divide) if digits >= 0 else (pc.divide, pc.multiply)
    rounded = back(pc.round(there(value, power), ndigits=0, round_mode=mode), power)
    return pc.if_else(pc.is_finite(rounded), rounded, value)


def _cast(operand: Operand, name: str) -> Any:
    try:
        kind = type_named(name, _TYPES)
    except ValueError as error:
        raise Misfit(str(error)) from None
    return Operand(operand.arrow, operand.type).to(kind)


def _fill_null(operand: Operand, value: Operand) -> Any:
    kind = together([operand, value])
    return pc.coalesce(operand.to(kind), value.to(kind))


def _text(function: Callable[..., Any]) -> Callable[..., Any]:
    def computed(operand: Operand, *options: Any) -> Any:
        if not _is_string(operand.type):
            raise Misfit(f"it takes strings, and gets {operand.type}", "cast the column first: col(…).cast('string')")
        return function(operand.arrow, *options)

    return computed


def _like(text: Any, pattern: str) -> Any:
    if "\\" not in pattern:  # which Arrow takes in several ways
        return pc.match_like(text, pattern)
    parts = ({"%": ".*", "_": "."}.get(letter, re.escape(letter)) for letter in pattern)
    return pc.match_substring_regex(text, pattern=rf"(?s)\A{''.join(parts)}\z")


def _time(function: Callable[..., Any], *, of_dates: bool = True) -> Callable[..., Any]:
    def computed(operand: Operand, *options: Any) -> Any:
        kind = operand.type
        if not t.is_timestamp(kind) and not (t.is_date(kind) and of_dates):
            raise Misfit(
                f"it takes timestamps{' and dates' if of_dates else ''}, and gets {kind}",
                "cast the column first: col(…).cast('timestamp[us]')",
            )
        return function(operand.arrow, *options)

    return computed


RULES: dict[str, Callable[..., Any]] = {
    **{symbol: _arithmetic(symbol) for symbol in _EXACT},
    "/": _of_floats("/", pc.divide),
    "//": _whole_quotient,
    "%": _remainder,
    "**": _of_floats("**", pc.power),
    "-x": _number(pc.negate_checked),
    "abs": _number(pc.abs_checked),
    "round": _round,
    "==": _compare(pc.equal),
    "!=": _compare(pc.not_equal),
    "<": _compare(pc.less),
    "<=": _compare(pc.less_equal),
    ">": _compare(pc.greater),
    ">=": _compare(pc.greater_equal),
    "between": _between,
    "isin": _isin,
    "&": lambda *operands: pc.and_kleene(*_boolean(*operands)),
    "|": lambda *operands: pc.or_kleene(*_boolean(*operands)),
    "~x": lambda operand: pc.invert(*_boolean(operand)),
    "is_null": lambda operand: pc.is_null(operand.arrow),
    "is_not_null": lambda operand: pc.is_valid(operand.arrow),
    "fill_null": _fill_null,
    "cast": _cast,
    "str.lower": _text(pc.utf8_lower),
    "str.upper": _text(pc.utf8_upper),
    "str.length": _text(lambda text: pc.utf8_length(text).cast(pa.int64())),
    "str.strip": _text(pc.utf8_trim_whitespace),
    "str.contains": _text(pc.match_substring),
    "str.starts_with": _text(pc.starts_with),
    "str.ends_with": _text(pc.ends_with),
    "str.replace": _text(pc.replace_substring),
    "str.slice": _text(pc.utf8_slice_codeunits),
    "str.like": _text(_like),
    "dt.year": _time(pc.year),
    "dt.month": _time(pc.month),
    "dt.day": _time(pc.day),
    "dt.hour": _time(pc.hour, of_dates=False),
    "dt.minute": _time(pc.minute, of_dates=False),
    "dt.second": _time(pc.second, of_dates=False),
    "dt.weekday": _time(pc.day_of_week),
    "dt.date": _time(lambda time: time.cast(pa.date32())),
    "dt.truncate": _time(lambda time, unit: pc.floor_temporal(time, unit=unit)),
}
"""The rules of all operations but `col`, `lit` and `when`: functions of the operands and options."""

CAN_FAIL = frozenset({"+", "-", "*", "//", "%", "-x", "abs", "round", "cast"})
"""Operations that are errors for some values."""
