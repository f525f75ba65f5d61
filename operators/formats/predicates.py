"""Simple conditions on columns. Formats with statistics skip row groups and files by them."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow.errors import ColumnTwice
from dagflow.scan import ColumnPath
from operators.formats.comparands import comparand
from operators.formats.errors import ValueMisfit

ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null")


def spelt(operator: str) -> str:
    """Return the usual spelling of an operator.

    >>> spelt("==")
    '='
    """
    return "=" if operator == "==" else operator


@attrs.frozen
class Predicate:
    """A condition on one column: `column operator value`; `==` is another spelling of `=`.

    >>> Predicate("n", "~", 1)
    Traceback (most recent call last):
    ...
    ValueError: operator '~' of column 'n' is not one of =, !=, <, <=, >, >=, in, not in, is null, is not null
    """

    column: str
    operator: str = attrs.field(converter=spelt)
    value: Any = None

    def __attrs_post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"operator {self.operator!r} of column {self.column!r} is not one of {', '.join(OPERATORS)}")
        is_list = isinstance(self.value, Sequence) and not isinstance(self.value, str | bytes)
        if self.operator in ("in", "not in"):
            if not is_list or any(each is None for each in self.value):
                raise ValueError(f"{self.column!r} {self.operator} {self.value!r}: give a list of values, none of them None")
        elif "null" in self.operator:
            if self.value is not None:
                raise ValueError(
                    f"{self.column!r} {self.operator} {self.value!r}: there is nothing to compare with, leave it out"
                )
        elif self.value is None or is_list:
            raise ValueError(f"{self.column!r} {self.operator} {self.value!r}: give one value; no value is 'is null'")

    def holds_for(self, text: str | None) -> bool:
        """Return True if it holds for a value given as text, as in a folder `day=2026-01-31`; None stands for null.

        >>> Predicate("n", ">", 9).holds_for("10"), Predicate("n", ">", "9").holds_for("10")
        (True, False)
        """
        if text is None or "null" in self.operator:
            return self.operator == ("is null" if text is None else "is not null")
        values = list(self.value) if "in" in self.operator else [self.value]
        like = [_like(text, value) for value in values]
        pairs = [(own, value) for own, value in zip(like, values, strict=True) if own is not None]
        if self.operator in ("=", "in"):
            return any(own == value for own, value in pairs)
        if self.operator in ("!=", "not in"):
            return all(own != value for own, value in pairs)
        return any(ORDER[self.operator](own, value) for own, value in pairs)

    def may_hold(self, statistics: Any, rows: int, kind: Any) -> bool:
        """Return True if it may hold for one of some rows, given the statistics of Parquet."""
        nulls = statistics.null_count if statistics.has_null_count else None
        if self.operator == "is null":
            return nulls != 0
        if nulls == rows:
            return False
        if self.operator == "is not null" or not statistics.has_min_max:
            return True
        try:
            fitted, values = self._fitted(kind)
            low, high, bounds = statistics.min, statistics.max, [value.as_py() for value in values]
            if fitted in ("never", "is not null"):
                return fitted != "never"
            if low != low or high != high:  # NaN, which some writers count
                return True
            if fitted == "not in":  # floats may be NaN, which statistics leave out
                return not (low == high and low in bounds) or pa.types.is_floating(kind)
            if fitted == "in":
                return any(low <= value <= high for value in bounds)
            return bool(ORDER[fitted](low if fitted[0] == "<" else high, bounds[0]))
        except (TypeError, ValueError, OverflowError):  # what cannot be compared here
            return True

    def expression(self, schema: pa.Schema, path: str) -> Any:
        """Return the condition for a column of a file, as a `pyarrow.compute` expression. Raises ValueMisfit."""
        steps = located(schema, self.column, path)
        field, kind = pc.field(*steps), type_at(schema, steps)
        try:
            fitted, values = self._fitted(kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError, OverflowError) as error:
            condition = f"({self.column!r}, {self.operator!r}, {self.value!r})"
            raise ValueMisfit(path=path, column=self.column, condition=condition, type=str(kind), reason=str(error)) from error
        if fitted == "is null":
            return field.is_null()
        if fitted == "is not null":
            return field.is_valid()
        if fitted == "never":
            return pc.scalar(False)
        if pa.types.is_float16(kind):  # which Arrow does not compare
            kind = pa.float32()
            field, values = field.cast(kind), [value.cast(kind) for value in values]
        if fitted in ("in", "not in"):
            zeros = pa.types.is_floating(kind)  # which isin tells apart by their sign
            among = functools.reduce(operator.or_, (field == v for v in values)) if zeros else field.isin(pa.array(values, kind))
            return among if fitted == "in" else ~among & field.is_valid()
        return ORDER[fitted](field, values[0])

    def _fitted(self, kind: Any) -> tuple[str, list[pa.Scalar]]:
        """Return the same condition for a type, however narrow: an operator, or "never", and values of the type.

        `=` and `!=` are an `in` and a `not in` of one value. Raises what `comparand` raises.
        """
        if "null" in self.operator:
            return self.operator, []
        among = "in" in self.operator
        comparands = [comparand(value, kind) for value in (self.value if among else [self.value])]
        if among or self.operator in ("=", "!="):
            exact = [each.value for each in comparands if each.is_exact and each.value is not None]
            is_positive = self.operator in ("=", "in")
            if not exact:
                return "never" if is_positive else "is not null", []
            return "in" if is_positive else "not in", exact
        (own,) = comparands
        if own.value is None:
            return "never" if own.is_incomparable or self.operator[0] == "<" else "is not null", []
        if own.is_exact:
            return self.operator, [own.value]
        return "<=" if self.operator[0] == "<" else ">", [own.value]


def located(schema: pa.Schema, name: str, path: str) -> tuple[str, ...]:
    """Return the path of a condition's column or field of a struct in a file; empty if the file does not have it.

    Raises ColumnTwice.

    >>> import pyarrow as pa
    >>> located(pa.schema({"a.b": pa.int8(), "a": pa.struct({"c": pa.int8()})}), "a.c", "")
    ('a', 'c')
    """
    asked = ColumnPath(name, name) if name in schema.names else ColumnPath.of(name)
    steps = (asked.root, *(str(step) for step in asked.steps))
    if schema.names.count(asked.root) > 1:
        raise ColumnTwice(path=path, column=asked.root)
    fields: Any = schema
    for step in steps:
        if fields is not schema and not pa.types.is_struct(fields):
            return ()
        at = fields.get_field_index(step)
        if at < 0:
            return ()
        fields = fields.field(at).type
    return steps


def type_at(schema: pa.Schema, steps: Sequence[str]) -> Any:
    """Return the type at a path that `located` has returned."""
    kind: Any = schema
    for step in steps:
        kind = kind.field(step).type
    return kind


def _like(text: str, value: Any) -> Any:
    """Convert a text to the type of a value; None if that fails."""
    try:
        if isinstance(value, bool):
            return {"true": True, "false": False}.get(text.lower())
        return type(value).fromisoformat(text) if hasattr(value, "fromisoformat") else type(value)(text)
    except (TypeError, ValueError, ArithmeticError):
        return None


def predicates(given: Any) -> tuple[Predicate, ...]:
    """Return conditions made of `(column, operator, value)` each; `(column, "is null")` needs no value. Raises TypeError."""
    message = f"where is {given!r}, but must be a list of conditions: [(column, operator, value)]"
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise TypeError(message)
    conditions = list(given)
    if not all(isinstance(each, Predicate) or (isinstance(each, list | tuple) and len(each) in (2, 3)) for each in conditions):
        raise TypeError(message)
    return tuple(each if isinstance(each, Predicate) else Predicate(*each) for each in conditions)
