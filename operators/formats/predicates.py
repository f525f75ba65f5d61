"""Simple conditions on columns: what formats with statistics need not read."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from operators.formats.errors import ValueMisfit

if TYPE_CHECKING:
    import pyarrow as pa

ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "not in", "is null", "is not null")


@attrs.frozen
class Predicate:
    """A condition on one column: `column operator value`.

    >>> Predicate("n", "~", 1)
    Traceback (most recent call last):
    ...
    ValueError: operator '~' of column 'n' is none of =, !=, <, <=, >, >=, in, not in, is null, is not null
    """

    column: str
    operator: str
    value: Any = None

    def __attrs_post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise ValueError(f"operator {self.operator!r} of column {self.column!r} is none of {', '.join(OPERATORS)}")
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
        """Whether it holds for a value that is known as text, as that of a folder `day=2026-01-31`; None: there is no value.

        >>> Predicate("n", ">", 9).holds_for("10"), Predicate("n", ">", "9").holds_for("10")
        (True, False)
        """
        if text is None or "null" in self.operator:
            return self.operator == ("is null" if text is None else "is not null")
        values = list(self.value) if "in" in self.operator else [self.value]
        found = [_like(text, value) for value in values]
        pairs = [(own, value) for own, value in zip(found, values, strict=True) if own is not None]
        if self.operator in ("=", "in"):
            return any(own == value for own, value in pairs)
        if self.operator in ("!=", "not in"):
            return all(own != value for own, value in pairs)
        return any(ORDER[self.operator](own, value) for own, value in pairs)

    def may_hold(self, statistics: Any, rows: int, kind: Any) -> bool:
        """Whether there may be a row for which it holds, among so many of which Parquet's statistics say least and greatest."""
        import pyarrow as pa

        nulls = statistics.null_count if statistics.has_null_count else None
        if self.operator == "is null":
            return nulls != 0
        if nulls == rows:
            return False
        if self.operator == "is not null" or not statistics.has_min_max:
            return True
        try:
            low, high = statistics.min, statistics.max
            values = [pa.scalar(_of_type(v, kind), kind).as_py() for v in (self.value if "in" in self.operator else [self.value])]
            if low != low or high != high:  # no numbers: some writers count these too
                return True
            if self.operator in ("!=", "not in"):  # of real numbers, some may be none, which no statistics tell
                return not (low == high and low in values) or pa.types.is_floating(kind)
            if self.operator in ("=", "in"):
                return any(low <= value <= high for value in values)
            return bool(ORDER[self.operator](low if self.operator[0] == "<" else high, values[0]))
        except (TypeError, ValueError):  # what cannot be compared here
            return True

    def expression(self, schema: pa.Schema, path: str) -> Any:
        """The condition for a column of a file, as a `pyarrow.compute` expression. Raises ValueMisfit."""
        import pyarrow as pa
        import pyarrow.compute as pc

        field = pc.field(self.column)
        if self.operator == "is null":
            return field.is_null()
        if self.operator == "is not null":
            return field.is_valid()
        kind: Any = schema.field(self.column).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        try:
            if self.operator in ("in", "not in"):
                among = field.isin(pa.array([_of_type(each, kind) for each in self.value], kind))
                return among if self.operator == "in" else ~among & field.is_valid()
            value = pa.scalar(_of_type(self.value, kind), kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as error:
            told = f"({self.column!r}, {self.operator!r}, {self.value!r})"
            raise ValueMisfit(path=path, column=self.column, condition=told, type=str(kind), reason=str(error)) from error
        compare = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[self.operator]
        return getattr(field, compare)(value)


def _of_type(value: Any, kind: Any) -> Any:
    """A value as a type takes it: texts stand for dates and times."""
    import pyarrow as pa

    if isinstance(value, str) and not (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    ):
        return pa.scalar(value).cast(kind).as_py()
    return value


def _like(text: str, value: Any) -> Any:
    """A text as a value of the same type as another; None where it is none."""
    try:
        if isinstance(value, bool):
            return {"true": True, "false": False}.get(text.lower())
        return type(value).fromisoformat(text) if hasattr(value, "fromisoformat") else type(value)(text)
    except (TypeError, ValueError, ArithmeticError):
        return None


def predicates(given: Iterable[Any]) -> tuple[Predicate, ...]:
    """Conditions out of `(column, operator, value)` each; `(column, "is null")` needs no value."""
    return tuple(each if isinstance(each, Predicate) else Predicate(*each) for each in given)
