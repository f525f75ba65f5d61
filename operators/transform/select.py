"""Select: the columns that are kept and computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from dagflow import InputPort, Operator, OutputPort, StreamColumns
from dagflow.arrow_types import type_named
from operators.expressions.columns import Expression, col, lit
from operators.expressions.programs import ARROW_ERRORS
from operators.names import constructor_arguments, one_or_more
from operators.problems import all_problems
from operators.transform.errors import ExpressionFailed, ExpressionRefused
from operators.transform.expressions import columns_of, read_by

_ALL = "*"


def _as_columns(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns as expressions: a string is the name of a column, another plain value a literal."""
    return {name: _as_column(name, value) for name, value in given.items()}


def _as_column(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return col(value)
    if isinstance(value, Expression) or (hasattr(value, "cast") and hasattr(value, "isin")):
        return value
    try:
        return lit(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


@attrs.define(init=False)
class Select(Operator):
    """Rows with the columns that are kept, and others that are computed. The list behind `SELECT` of SQL.

    Args:
        keep: the names of columns that stay as they are, in their order; `"*"` for all.
        columns: further columns by name, each an expression of `col` or `pyarrow.compute`, the name of a column, or another
            literal (`lit("text")` for a string). Beside `"*"`, a column of that name is replaced where it stands.

    Raises ExpressionRefused for an expression that names an unknown column or does not fit the types; ExpressionFailed where it
    has no value for a row.

    >>> from dagflow.testing import run_operator
    >>> from operators import col
    >>> import pyarrow as pa
    >>> sales = pa.record_batch({"shop": ["b", "a"], "price": [5, 7], "count": [2, 3]})
    >>> run_operator(Select("shop", revenue=col("price") * col("count"), year=2024), {"input": [sales]})["output"]
    [{'shop': 'b', 'revenue': 10, 'year': 2024}, {'shop': 'a', 'revenue': 21, 'year': 2024}]
    >>> run_operator(Select("*", price=col("price") - 1), {"input": [sales]})["output"][0]
    {'shop': 'b', 'price': 4, 'count': 2}
    """

    keep: tuple[str, ...] = attrs.field(
        default=(), converter=one_or_more, validator=attrs.validators.deep_iterable(attrs.validators.instance_of(str))
    )
    columns: Mapping[str, Any] = attrs.field(factory=dict, converter=_as_columns)

    input = InputPort[Any]()
    output = OutputPort[Any]()

    def __init__(self, *keep: str, **columns: Any) -> None:
        own = constructor_arguments(Select, ("keep", keep), ("columns", columns))
        self.__attrs_init__(**own)  # pyright: ignore[reportAttributeAccessIssue]  # made by attrs

    def check(self) -> None:
        """Raise ValueError where no column is left, or one would be there twice."""
        with all_problems(super().check) as problems:
            names = [*self.keep, *self.columns]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                problems.append(f"the column {twice[0]!r} would be there twice: give one of them another name")
            if not names:
                problems.append("it selects no column: Select('shop', revenue=col('price') * col('count'))")

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches: rows have columns."""
        return frozenset({"batch"} if port == "output" else {"record"})

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the columns that are kept, and those that expressions read, by the name of the column that is made of them."""
        computed = {name: each.columns() for name, each in self.columns.items() if isinstance(each, Expression)}
        return {"keep": tuple(name for name in self.keep if name != _ALL), **computed} if port == "input" else {}

    def columns_read(self, port: str, wanted: Callable[[str], frozenset[str] | None]) -> frozenset[str] | None:
        """Return the columns that are kept and those that expressions read; of all columns those that are read behind them."""
        behind = wanted("output")
        read = frozenset(self.keep) if _ALL not in self.keep else None if behind is None else behind - self.columns.keys()
        for each in self.columns.values():
            read = read_by(each, read)
        return read

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the selected columns. Those that identify a row still do, where all of them are kept or copied."""
        if port != "output":
            return None
        before = arriving("input")
        selected = None if before.types is None and _ALL in self.keep else self._selected(list(before.types or ()))
        types = selected and {name: _type_of(each, before.types or {}) for name, each in selected.items()}
        copies = {source: name for name, each in reversed((selected or {}).items()) if (source := _source(each)) is not None}
        unique = [[copies[name] for name in each] for each in before.unique if each <= copies.keys()]
        return StreamColumns(types, unique)

    def _selected(self, arriving: Sequence[str]) -> dict[str, Any]:
        """Return the expressions of all columns, in their order."""
        kept = [name for each in self.keep for name in (arriving if each == _ALL else (each,))]
        return {name: col(name) for name in kept} | dict(self.columns)

    @input.batch
    def select(self, batch: pa.RecordBatch) -> None:
        """Emit the rows with the selected columns."""
        arrays: dict[str, Any] = {}
        computed = {}
        for name, each in self._selected(batch.schema.names).items():
            source = _source(each)
            if source is not None and batch.schema.names.count(source) == 1:
                arrays[name] = batch.column(source)
            else:
                computed[name], arrays[name] = each, None
        if computed:
            values = columns_of(batch, computed, type(self).__name__)
            arrays |= zip(values.schema.names, values.columns, strict=True)
        self.output.emit_batch(pa.RecordBatch.from_pydict(arrays) if arrays else batch)  # without columns, rows are only counted


def _source(expression: Any) -> str | None:
    """Return the name of the column that an expression copies; None for other expressions."""
    return expression.options[0] if isinstance(expression, Expression) and expression.operation == "col" else None


def _type_of(expression: Any, types: Mapping[str, str | None]) -> str | None:
    """Return the type of an expression over columns of some types, as text; None where it is not known."""
    if (source := _source(expression)) is not None:
        return types.get(source)
    fields = []
    for name, kind in types.items():
        try:
            fields.append(pa.field(name, type_named(kind or "")))
        except ValueError:  # not known, or of a type that has no name
            continue
    try:
        empty = pa.RecordBatch.from_pylist([], pa.schema(fields))
        return str(columns_of(empty, {"value": expression}, "Select").schema.field(0).type)
    except (ExpressionRefused, ExpressionFailed, *ARROW_ERRORS):
        return None
