"""Expressions as they are written: `col`, `lit` and `when` make them, operators and methods combine them.

An expression is data: an operation, its operands and its options. `rules` says what each operation means.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import attrs

from operators.expressions.places import WrittenAt, place_of_caller

BINARY = ("+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|")
UNARY = ("-x", "~x")
LITERALS = (bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.timedelta)
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""The units to which times can be truncated."""


@attrs.frozen(eq=False, repr=False)
class Expression:
    """A value for each row, from the columns of the row. Made by `col`, `lit` and `when`.

    Its text is what one would write:

    >>> 1 - col("discount").fill_null(0)
    1 - col('discount').fill_null(0)

    Attributes:
        operation: the name of the method, or the operator (`-x` and `~x` with one operand).
        operands: the expressions that it combines.
        options: plain values.
        place: where it is written.
    """

    operation: str
    operands: tuple[Expression, ...] = ()
    options: tuple[Any, ...] = ()
    place: WrittenAt | None = attrs.field(factory=place_of_caller, init=False)

    def __repr__(self) -> str:
        return _text(self)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError(
            f"{self!r} has a value for each row, so it is neither true nor false\n"
            "  help: write & for and, | for or, ~ for not, with each side in parentheses; x.between(a, b) for a <= x <= b; "
            "x.isin([…]) for in; when(…).then(…).otherwise(…) for if"
        )

    def parts(self) -> Iterator[Expression]:
        """Yield the expressions that this one consists of, itself last."""
        for operand in self.operands:
            yield from operand.parts()
        yield self

    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns that it reads.

        >>> (col("b") + col("a") * col("b")).columns()
        ('b', 'a')
        """
        return tuple(dict.fromkeys(part.options[0] for part in self.parts() if part.operation == "col"))

    def __add__(self, other: object) -> Expression:
        return _binary("+", self, other)

    def __radd__(self, other: object) -> Expression:
        return _binary("+", other, self)

    def __sub__(self, other: object) -> Expression:
        return _binary("-", self, other)

    def __rsub__(self, other: object) -> Expression:
        return _binary("-", other, self)

    def __mul__(self, other: object) -> Expression:
        return _binary("*", self, other)

    def __rmul__(self, other: object) -> Expression:
        return _binary("*", other, self)

    def __truediv__(self, other: object) -> Expression:
        return _binary("/", self, other)

    def __rtruediv__(self, other: object) -> Expression:
        return _binary("/", other, self)

    def __floordiv__(self, other: object) -> Expression:
        return _binary("//", self, other)

    def __rfloordiv__(self, other: object) -> Expression:
        return _binary("//", other, self)

    def __mod__(self, other: object) -> Expression:
        return _binary("%", self, other)

    def __rmod__(self, other: object) -> Expression:
        return _binary("%", other, self)

    def __pow__(self, other: object) -> Expression:
        return _binary("**", self, other)

    def __rpow__(self, other: object) -> Expression:
        return _binary("**", other, self)

    def __and__(self, other: object) -> Expression:
        return _binary("&", self, other)

    def __rand__(self, other: object) -> Expression:
        return _binary("&", other, self)

    def __or__(self, other: object) -> Expression:
        return _binary("|", self, other)

    def __ror__(self, other: object) -> Expression:
        return _binary("|", other, self)

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return _binary("==", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return _binary("!=", self, other)

    def __lt__(self, other: object) -> Expression:
        return _binary("<", self, other)

    def __le__(self, other: object) -> Expression:
        return _binary("<=", self, other)

    def __gt__(self, other: object) -> Expression:
        return _binary(">", self, other)

    def __ge__(self, other: object) -> Expression:
        return _binary(">=", self, other)

    def __neg__(self) -> Expression:
        return Expression("-x", (self,))

    def __invert__(self) -> Expression:
        return Expression("~x", (self,))

    def is_null(self) -> Expression:
        """Return true where there is no value. NaN is a value."""
        return Expression("is_null", (self,))

    def is_not_null(self) -> Expression:
        """Return true where there is a value."""
        return Expression("is_not_null", (self,))

    def isin(self, values: Iterable[object], /) -> Expression:
        """Return true where the value is one of `values`; as in SQL, null where it is not and one of them is None."""
        if isinstance(values, str | bytes | Expression):
            raise TypeError(f"isin takes several values: write .isin([{values!r}])")
        return Expression("isin", (self,), (tuple(map(_checked, values)),))

    def between(self, low: object, high: object) -> Expression:
        """Return true where `low <= value <= high`."""
        return Expression("between", (self, as_expression(low), as_expression(high)))

    def cast(self, kind: str) -> Expression:
        """Return the value in another type, `int64`, `string`, `date`, `timestamp[us]` or `decimal(15, 2)` for example.

        A value that the type cannot hold is an error, never another value.
        """
        if not isinstance(kind, str):
            raise TypeError(f"cast takes the name of a type: write .cast('int64'); got {kind!r}")
        return Expression("cast", (self,), (kind,))

    def fill_null(self, value: object) -> Expression:
        """Return `value` where there is none."""
        return Expression("fill_null", (self, as_expression(value)))

    def abs(self) -> Expression:
        """Return the number without its sign."""
        return Expression("abs", (self,))

    def round(self, digits: int = 0) -> Expression:
        """Return the number rounded to decimal places, halves away from zero."""
        if not isinstance(digits, int):
            raise TypeError(f"round takes an integer, the number of decimal places; got {digits!r}")
        return Expression("round", (self,), (digits,))

    @property
    def str(self) -> Texts:
        """The operations on strings, which count code points."""
        return Texts(self)

    @property
    def dt(self) -> Times:
        """The operations on dates and timestamps; those with a time zone are read in it."""
        return Times(self)


@attrs.frozen(eq=False)
class Texts:
    """Operations on strings: `col("name").str.lower()`."""

    expression: Expression

    def lower(self) -> Expression:
        """Return the string in lower case."""
        return self._method("lower")

    def upper(self) -> Expression:
        """Return the string in upper case."""
        return self._method("upper")

    def length(self) -> Expression:
        """Return the number of code points."""
        return self._method("length")

    def strip(self) -> Expression:
        """Return the string without white space at both ends."""
        return self._method("strip")

    def contains(self, text: str) -> Expression:
        """Return true where `text` is a part of the string."""
        return self._method("contains", text)

    def starts_with(self, text: str) -> Expression:
        """Return true where the string begins with `text`."""
        return self._method("starts_with", text)

    def ends_with(self, text: str) -> Expression:
        """Return true where the string ends with `text`."""
        return self._method("ends_with", text)

    def like(self, pattern: str) -> Expression:
        """Return true where the string matches `LIKE` of SQL: `%` is any text, `_` any character. There is no escape."""
        return self._method("like", pattern)

    def replace(self, old: str, new: str) -> Expression:
        """Return the string with `new` in the place of each `old`."""
        if old == "":
            raise ValueError("replace takes the text to be replaced, which cannot be empty")
        return self._method("replace", old, new)

    def slice(self, start: int, stop: int | None = None) -> Expression:
        """Return the characters from `start` to before `stop`, as `text[start:stop]` of Python."""
        return Expression("str.slice", (self.expression,), (start, *(() if stop is None else (stop,))))

    def _method(self, name: str, *options: str) -> Expression:
        for option in options:
            if not isinstance(option, str):
                raise TypeError(f"{name} takes a string; got {option!r}")
        return Expression(f"str.{name}", (self.expression,), options)


@attrs.frozen(eq=False)
class Times:
    """Operations on dates and timestamps: `col("at").dt.year()`."""

    expression: Expression

    def year(self) -> Expression:
        """Return the year."""
        return Expression("dt.year", (self.expression,))

    def month(self) -> Expression:
        """Return the month, 1 to 12."""
        return Expression("dt.month", (self.expression,))

    def day(self) -> Expression:
        """Return the day of the month, from 1."""
        return Expression("dt.day", (self.expression,))

    def hour(self) -> Expression:
        """Return the hour, 0 to 23."""
        return Expression("dt.hour", (self.expression,))

    def minute(self) -> Expression:
        """Return the minute, 0 to 59."""
        return Expression("dt.minute", (self.expression,))

    def second(self) -> Expression:
        """Return the second, 0 to 59, without its fraction."""
        return Expression("dt.second", (self.expression,))

    def weekday(self) -> Expression:
        """Return the day of the week, as Python's `weekday()`: 0 is Monday, 6 Sunday."""
        return Expression("dt.weekday", (self.expression,))

    def date(self) -> Expression:
        """Return the date."""
        return Expression("dt.date", (self.expression,))

    def truncate(self, unit: str) -> Expression:
        """Return the start of the `year`, `quarter`, `month`, `week` (Monday), `day`, `hour`, `minute` or `second`."""
        if unit not in UNITS:
            raise ValueError(f"truncate takes one of {', '.join(UNITS)}; got {unit!r}")
        return Expression("dt.truncate", (self.expression,), (unit,))


@attrs.frozen(eq=False, repr=False)
class When:
    """The beginning of `when(…).then(…).otherwise(…)`: a condition whose value is missing."""

    operands: tuple[Expression, ...]

    def then(self, value: object) -> Then:
        """Give the value where the condition is true."""
        return Then((*self.operands, as_expression(value)))

    def __repr__(self) -> str:
        return f"{_cases(self.operands)}: .then(…) is missing"


@attrs.frozen(eq=False, repr=False)
class Then:
    """Conditions with their values: `.when(…)` adds one, `.otherwise(…)` ends them."""

    operands: tuple[Expression, ...]

    def when(self, condition: object) -> When:
        """Give a condition for the rows where none before is true."""
        return When((*self.operands, as_expression(condition)))

    def otherwise(self, value: object) -> Expression:
        """Return the expression, whose value is `value` where no condition is true. None: null."""
        return Expression("when", (*self.operands, as_expression(value)))

    def __repr__(self) -> str:
        return f"{_cases(self.operands)}: .otherwise(…) is missing"


def col(name: str) -> Expression:
    """Return the column of a name.

    >>> from dagflow.testing import run_operator
    >>> from operators import Filter, col
    >>> run_operator(Filter[int](col("value") > 9), {"input": [5, 50]})["output"]
    [50]
    """
    if not isinstance(name, str):
        raise TypeError(f"col takes the name of a column; got {name!r}")
    return Expression("col", (), (name,))


def lit(value: object) -> Expression:
    """Return the same value for each row: a number, a string, a date, a time, a time span, True, False or None.

    Beside an expression, the value alone is enough: `col("n") + 1`.
    """
    return Expression("lit", (), (_checked(value),))


def when(condition: object) -> When:
    """Begin an expression that depends on conditions. Values are only computed for the rows that get them.

    >>> from dagflow.testing import run_operator
    >>> from operators import Map, col, when
    >>> size = when(col("value") < 10).then("small").when(col("value") < 100).then("medium").otherwise("large")
    >>> run_operator(Map[int, str](size), {"input": [5, 50, 500]})["output"]
    ['small', 'medium', 'large']
    """
    return When((as_expression(condition),))


def as_expression(value: object) -> Expression:
    """Return an expression as it is, and any other value as a literal."""
    return value if isinstance(value, Expression) else lit(value)


def _checked(value: object) -> object:
    """Return a value that can be a literal. Raises TypeError or ValueError for others."""
    if isinstance(value, When | Then):
        raise TypeError(repr(value))
    if value is not None and not isinstance(value, LITERALS):
        raise TypeError(
            f"{value!r} ({type(value).__name__}) cannot be part of an expression\n"
            "  help: write col('name') for a column; a number, a string, a date, a time, a time span, True, False or None"
        )
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError(f"{value!r} is not a decimal number")
    if isinstance(value, int | Decimal) and len(Decimal(value).as_tuple().digits) > 38:
        raise ValueError(f"{value!r} has more than 38 digits")
    return value


def _binary(symbol: str, left: object, right: object) -> Expression:
    return Expression(symbol, (as_expression(left), as_expression(right)))


def _text(expression: Expression) -> str:
    """Return an expression as it is written."""
    operation, operands = expression.operation, expression.operands
    if operation in ("col", "lit"):
        return f"{operation}({_plain(expression.options[0])})"
    if operation == "when":
        return f"{_cases(operands[:-1])}.otherwise({_argument(operands[-1])})"
    if operation in UNARY:
        return f"{operation[0]}{_operand(operands[0])}"
    if operation in BINARY:
        left, right = operands
        begin = _argument(left) if left.operation == "lit" and right.operation != "lit" else _operand(left)
        end = _argument(right) if right.operation == "lit" else _operand(right)
        return f"{_operand(left) if begin.startswith('-') else begin} {operation} {end}"
    options = [_plain(option) for option in expression.options]
    return f"{_operand(operands[0])}.{operation}({', '.join([*map(_argument, operands[1:]), *options])})"


def _operand(expression: Expression) -> str:
    is_compound = expression.operation in (*BINARY, *UNARY)
    return f"({_text(expression)})" if is_compound else _text(expression)


def _argument(expression: Expression) -> str:
    return _plain(expression.options[0]) if expression.operation == "lit" else _text(expression)


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_plain, value))}]"
    return f"float({str(value)!r})" if isinstance(value, float) and not math.isfinite(value) else repr(value)


def _cases(operands: tuple[Expression, ...]) -> str:
    return ".".join(f"{('when', 'then')[at % 2]}({_argument(each)})" for at, each in enumerate(operands))
