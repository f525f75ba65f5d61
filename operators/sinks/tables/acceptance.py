"""Rows that a table would refuse for ever. Tasks find them before their window is decided, while they can still be skipped.

A table of files and a table of a database refuse in much the same way: by the names of columns, nulls, keys, and values beyond a
type. Each sink says what its table is (`TableLimits`); the rules stand here once.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow.arrow_types.held import why_not_held
from operators.sinks.errors import ColumnNamesClash, TypeNotWritable, ValueNotWritable


def check_names(names: Sequence[str], operator: str, target: str, folded: Callable[[str], str] = str) -> None:
    """Raise ColumnNamesClash if two columns have one name. `target`: what they are written to; `folded`: what it takes for equal.

    >>> check_names(["id", "ID"], "sink", "Parquet")
    """
    known: dict[str, str] = {}
    for name in names:
        key = folded(name)
        if key in known:
            raise ColumnNamesClash(operator=operator, columns=(known[key], name), target=target)
        known[key] = name


def check_keys(schema: pa.Schema, keys: Sequence[str], operator: str, target: str, *, floats: bool = True) -> None:
    """Raise TypeNotWritable for keys of types that have no equality in a table. `floats`: whether floats have one there."""
    for key in keys:
        kind = schema.field(key).type if key in schema.names else pa.null()
        is_float = bool(t.is_floating(kind))
        if t.is_nested(kind) or (is_float and not floats):
            help_ = "cast it to a decimal, an integer or text" if is_float else "take the parts that identify a row as columns"
            what = f"the keys of {target}"
            raise TypeNotWritable(
                operator=operator, column=key, type=str(kind), format=what, help=f"{help_} before it comes here"
            )


@attrs.frozen(kw_only=True)
class TableLimits:
    """The values that a table takes.

    Attributes:
        operator, target: the sink and its table, for messages.
        required: the columns that take no nulls.
        keys: the columns that identify a row.
        is_dated: whether all times must be within the years 1 to 9999.
        max_lengths: of the texts of a column, in characters.
        ranges: the smallest and the largest integer of a column.
    """

    operator: str
    target: str
    required: Sequence[str] = ()
    keys: Sequence[str] = ()
    is_dated: bool = False
    max_lengths: dict[str, int] = attrs.field(factory=dict)
    ranges: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    def check(self, batch: pa.RecordBatch) -> None:
        """Raise ValueNotWritable for the first value that the table does not take."""
        names = batch.schema.names
        for name in self.required:
            if name not in names or batch.column(name).null_count:
                help_ = "leave such rows out with Filter(…), or drop NOT NULL from the column"
                raise self._refused(name, "null", help_)
        for name in self.keys:
            if batch.column(name).null_count:
                help_ = (
                    "a null does not identify a row: give it a value, Select(…, k=col('k').fill_null(…)); leave such rows out\n"
                    "        with Filter(…) or on_error='skip'; or find rows by all columns, keys='*'"
                )
                raise self._refused(name, "null", help_, "a key")
        for name, column in zip(names, batch.columns, strict=True):
            if self.is_dated and (wrong := why_not_held(column, "text")):
                help_ = "tables hold the years 1 to 9999: leave such rows out with Filter(…), or write null"
                raise self._refused(name, wrong, help_)
            if name in self.max_lengths and _is_text(column.type):
                self._check_length(name, column)
            if name in self.ranges and t.is_integer(column.type):
                self._check_range(name, column)

    def _check_length(self, name: str, column: Any) -> None:
        text = column.cast(pa.string()) if t.is_dictionary(column.type) or t.is_string_view(column.type) else column
        longest, limit = pc.max(pc.utf8_length(text)).as_py(), self.max_lengths[name]
        if longest is not None and longest > limit:  # also of blanks at its end, which the server would cut without a word
            help_ = f"the column takes {limit:,} characters: cut the text, or make the column wider"
            raise self._refused(name, f"a text of {longest:,} characters", help_)

    def _check_range(self, name: str, column: Any) -> None:
        if (wrong := _outside(column, *self.ranges[name])) is not None:
            smallest, largest = self.ranges[name]
            raise self._refused(name, f"{wrong:,}", f"the column takes {smallest:,} to {largest:,}: make it wider")

    def _refused(self, column: str, value: str, help_: str, target: str = "") -> ValueNotWritable:
        return ValueNotWritable(operator=self.operator, column=column, value=value, format=target or self.target, help=help_)


def _outside(numbers: Any, smallest: int, largest: int) -> int | None:
    """Return an integer of a column that is not within bounds; None if there is none."""
    if numbers.null_count == len(numbers):
        return None
    bounds = pc.min_max(numbers).as_py()
    return next((each for each in (bounds["min"], bounds["max"]) if not smallest <= each <= largest), None)


def _is_text(kind: Any) -> bool:
    kind = kind.value_type if t.is_dictionary(kind) else kind
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))
