"""Unnest: a row for each item of a list."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow import InputPort, Operator, OutputPort, StreamColumns
from dagflow.arrow_types import type_named
from dagflow.errors import ColumnNotThere
from operators.transform.errors import NotAList

MAX_ROWS = 1 << 16
"""The most rows of a batch that is emitted: a list may have a million items."""


@attrs.define
class Unnest(Operator):
    """A row for each item of the lists in a column: the item in the place of the list, and the other columns as they are.

    `unnest` of SQL, `explode` of pandas and Spark. It follows rows that are taken back, as every function of single rows.

    Args:
        column: the column of lists.
        outer: whether a row stays, with a null, where the list is empty or null. Without it there is no row then.

    Raises ColumnNotThere, NotAList.

    >>> from dagflow.testing import run_operator
    >>> import pyarrow as pa
    >>> orders = pa.record_batch({"order": [1, 2], "items": [["tea", "rice"], []]})
    >>> run_operator(Unnest("items"), {"input": [orders]})["output"]
    [{'order': 1, 'items': 'tea'}, {'order': 1, 'items': 'rice'}]
    >>> run_operator(Unnest("items", outer=True), {"input": [orders]})["output"][-1]
    {'order': 2, 'items': None}
    """

    column: str = attrs.field(validator=attrs.validators.instance_of(str))
    outer: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    input = InputPort[Any]()
    output = OutputPort[Any]()

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches: rows have columns."""
        return frozenset({"batch"} if port == "output" else {"record"})

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the column of lists."""
        return {"column": (self.column,)} if port == "input" else {}

    def columns_read(self, port: str, wanted: Callable[[str], frozenset[str] | None]) -> frozenset[str] | None:
        """Return the column, and those that are read behind it."""
        read = wanted("output")
        return None if read is None else read | {self.column}

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the same columns; no others identify a row."""
        if port != "output":
            return None
        types = arriving("input").types
        return StreamColumns(None if types is None else {**types, self.column: _item_type(types.get(self.column))})

    @input.batch
    def unnest(self, batch: pa.RecordBatch) -> None:
        """Emit a row for each item."""
        at = batch.schema.get_field_index(self.column)
        if at < 0:
            raise ColumnNotThere.of("`column`", self.column, batch.schema)
        lists = batch.column(at)
        if not _is_list(lists.type):
            raise NotAList(column=self.column, type=str(lists.type))
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
        items, first = pc.list_flatten(lists), np.cumsum(lengths) - lengths
        widths = np.maximum(lengths, 1) if self.outer else lengths
        rows = np.repeat(np.arange(len(lists)), widths)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(widths) - widths, widths)
        places = pa.array(first[rows] + nth, mask=lengths[rows] == 0)
        for start in range(0, len(rows), MAX_ROWS):
            some = batch.take(pa.array(rows[start : start + MAX_ROWS]))
            self.output.emit_batch(some.set_column(at, self.column, items.take(places[start : start + MAX_ROWS])))


def _is_list(kind: pa.DataType) -> bool:
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def _item_type(text: str | None) -> str | None:
    """Return the type of the items of lists, as text; None where it is not known."""
    try:
        kind = type_named(text or "")
    except ValueError:  # not known, or of a type that has no name
        return None
    return str(kind.value_type) if _is_list(kind) else None
