"""pyarrow expressions over batches: their type, their evaluation and their errors."""

from __future__ import annotations

import inspect
import os
import re
from types import UnionType
from typing import Any, NoReturn, Protocol, Union, get_args, get_origin, get_type_hints

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow.errors import suggest
from operators.acero import acero, computed_by
from operators.transform.errors import ExpressionRefused


class Expression(Protocol):
    """The part of `pc.Expression` that type checkers see: pyarrow has no types, and is loaded only on use."""

    def cast(self, *arguments: Any, **options: Any) -> Any:
        """Return the same expression in another type."""
        ...

    def isin(self, values: Any, /) -> Any:
        """Return the expression that is true for one of some values."""
        ...


def function_or_expression(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a property that takes a function of the record or an expression over the batch."""
    if not callable(value) and not (hasattr(value, "cast") and hasattr(value, "isin")):
        raise TypeError(
            f"{attribute.name} must be a function of the record, or a pyarrow.compute expression over the batch; got {value!r}"
            f" ({type(value).__name__})"
        )


def function_name(function: Any) -> str:
    """Return the name of a function for errors: with file and line, if it has them."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    name = getattr(function, "__qualname__", None) or repr(function)
    if code is None:
        return f"{name}()"
    near = os.path.relpath(code.co_filename)
    return f"{name}() ({code.co_filename if near.startswith('..') else near}:{code.co_firstlineno})"


def returned_types(function: Any) -> list[type]:
    """Return the classes that a function returns by its annotation; for a class, that class."""
    if inspect.isclass(function):
        return [function]
    try:
        annotation = get_type_hints(function).get("return", Any)
    except Exception:  # noqa: BLE001  # annotations may name anything
        return []
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    return [cls for each in members if each is not Any and inspect.isclass(cls := get_origin(each) or each)]


def rows_where(batch: pa.RecordBatch, expression: Any, operator: str) -> pa.RecordBatch:
    """Return the rows of `batch` for which `expression` is true; null is not true. Raises ExpressionRefused."""
    try:
        # batch.filter() would hand each batch to threads: twice the time for a piece of 1 MiB
        table = computed_by("filter", acero().FilterNodeOptions(expression), pa.Table.from_batches([batch]))
        return _one_batch(table, batch.schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        _explain(error, batch, expression, operator)


def values_of(batch: pa.RecordBatch, expression: Any, operator: str) -> pa.Array:
    """Return the values of `expression` over the rows of `batch`. Raises ExpressionRefused."""
    try:
        table = pa.Table.from_batches([batch])
        column = computed_by("project", acero().ProjectNodeOptions([expression], ["value"]), table).column(0)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        _explain(error, batch, expression, operator)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def mask_of(batch: pa.RecordBatch, expression: Any, operator: str) -> pa.BooleanArray:
    """Return the boolean of each row of `batch`: true where `expression` is; null is not true. Raises ExpressionRefused."""
    values = values_of(batch, expression, operator)
    if not pa.types.is_boolean(values.type):
        refused = pa.ArrowTypeError(f"Filter expression must evaluate to bool, but it evaluates to {values.type}")
        _explain(refused, batch, expression, operator)
    return pc.fill_null(values, False)


def _one_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of a table as one batch; Acero returns batches of 32 Ki rows."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _explain(error: Exception, batch: pa.RecordBatch, expression: Any, operator: str) -> NoReturn:
    """Raise ExpressionRefused for an error of pyarrow about an expression; raise an error about the data as it is."""
    columns = tuple((field.name, str(field.type)) for field in batch.schema)
    text = str(error).splitlines()[0]
    if missing := re.match(r"No match for FieldRef\.(?:Name|FieldPath)\((.*?)\) in ", text):
        near = suggest(missing[1], [name for name, _ in columns])
        reason, advice = f"there is no column {missing[1]!r}", f'write pc.field("{near}")' if near else ""
    elif text.startswith("No match for FieldRef"):
        reason, advice = "it names a column that is not there", ""
    elif wrong := re.match(r"Filter expression must evaluate to bool, but .* evaluates to (.*)", text):
        reason = f"it gives {wrong[1]}, but must be true or false"
        advice = "compare it with something: == != < <= > >=, .isin([…]), .is_valid()"
    elif "no kernel matching input types" in text:
        reason = text[0].lower() + text[1:]
        advice = "cast the column first: pc.field(…).cast(…); or give its reader a schema: a column that no type fits is a string"
    else:
        raise error
    raise ExpressionRefused(operator=operator, expression=str(expression), reason=reason, columns=columns, help=advice) from None
