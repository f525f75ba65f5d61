"""Expressions over batches, of `col` or of `pyarrow.compute`: their type, their evaluation and their errors."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from types import UnionType
from typing import Any, NoReturn, Protocol, Union, get_args, get_origin, get_type_hints

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow.errors import suggest
from operators.acero import acero, computed_by
from operators.expressions.columns import Expression
from operators.expressions.places import shown_path
from operators.expressions.programs import ARROW_ERRORS, ExpressionMisfit, forget_narrow, narrow_for, program_for
from operators.expressions.repeats import without_repeats
from operators.transform.errors import ExpressionFailed, ExpressionRefused

_ENGINE_ROWS = 1 << 15
"""The rows that Arrow's engine works on at once."""


class AnyExpression(Protocol):
    """An expression of `col`, or one of `pyarrow.compute`: the part that both have, as pyarrow has no types."""

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
            f"{attribute.name} must be a function of the record, or an expression over the batch, of col() or pyarrow.compute; "
            f"got {value!r} ({type(value).__name__})"
        )


def an_expression(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a property that takes an expression over the batch, and no function."""
    name = attribute.name
    if callable(value):
        raise TypeError(f"{name} takes no function: write an expression over columns, {name}=col('price') > col('limit')")
    if not (hasattr(value, "cast") and hasattr(value, "isin")):
        raise TypeError(
            f"{name} must be an expression over columns, of col() or pyarrow.compute: {name}=col('price') > col('limit'); "
            f"got {value!r} ({type(value).__name__})"
        )


def read_by(expression: Any, beside: frozenset[str] | None) -> frozenset[str] | None:
    """Return the columns that an expression of `col` reads, and others; None, all, for functions and other expressions."""
    return beside.union(expression.columns()) if beside is not None and isinstance(expression, Expression) else None


def function_name(function: Any) -> str:
    """Return the name of a function for errors: with file and line, if it has them."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    name = getattr(function, "__qualname__", None) or repr(function)
    if code is None:
        return f"{name}()"
    return f"{name}() ({shown_path(code.co_filename)}:{code.co_firstlineno})"


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
    if batch.num_rows > _ENGINE_ROWS:  # the engine would return pieces, each of all columns, to be put together
        return batch.filter(mask_of(batch, expression, operator))
    try:
        # of a small batch in two thirds of the time of batch.filter()
        table = _computed("filter", lambda arrows: acero().FilterNodeOptions(*arrows), batch, [expression], operator)
        return _one_batch(table, batch.schema)
    except ARROW_ERRORS as error:
        _explain(error, batch, expression, operator)


def values_of(batch: pa.RecordBatch, expression: Any, operator: str) -> pa.Array:
    """Return the values of `expression` over the rows of `batch`. Raises ExpressionRefused."""
    return columns_of(batch, {"value": expression}, operator).column(0)


def columns_of(batch: pa.RecordBatch, expressions: Mapping[str, Any], operator: str) -> pa.RecordBatch:
    """Return the values of expressions over the rows of `batch`, by name. Raises ExpressionRefused."""
    if len(expressions) > 1 and all(isinstance(each, Expression) for each in expressions.values()):
        parts, rest = _without_repeats(tuple(expressions.items()))
        if parts and not parts.keys() & {*batch.schema.names}:
            with contextlib.suppress(ExpressionRefused, ExpressionFailed):  # errors of what is written say more
                return _by_parts(batch, parts, rest, operator)
    names, several = list(expressions), list(expressions.values())
    try:
        table = _computed("project", lambda arrows: acero().ProjectNodeOptions(arrows, names), batch, several, operator)
    except ARROW_ERRORS as error:
        if len(expressions) > 1:
            for name, expression in expressions.items():  # the one that fails has an error that names it
                columns_of(batch, {name: expression}, operator)
        _explain(error, batch, next(iter(expressions.values())), operator)
    return _one_batch(table, table.schema)


_without_repeats = functools.lru_cache(maxsize=256)(lambda expressions: without_repeats(dict(expressions)))


def _by_parts(
    batch: pa.RecordBatch, parts: Mapping[str, Expression], rest: Mapping[str, Expression], operator: str
) -> pa.RecordBatch:
    """Return the values of expressions, of which `rest` is left where columns stand for `parts`, which are computed first."""
    made = columns_of(batch, parts, operator)
    names = [*batch.schema.names, *made.schema.names]
    whole = pa.RecordBatch.from_arrays([*batch.columns, *made.columns], names=names)
    copies = {name: each.options[0] for name, each in rest.items() if each.operation == "col" and each.options[0] in parts}
    others = {name: each for name, each in rest.items() if name not in copies}
    computed = columns_of(whole, others, operator) if others else whole
    columns = [made.column(copies[name]) if name in copies else computed.column(name) for name in rest]
    return pa.RecordBatch.from_arrays(columns, names=list(rest))


def _computed(
    node: str, options: Callable[[list[Any]], Any], batch: pa.RecordBatch, several: list[Any], operator: str
) -> pa.Table:
    """Run a node of Arrow's engine for expressions: with few digits of decimals first, where all of them may not be needed."""
    table = pa.Table.from_batches([batch])
    arrows = [as_arrow(each, batch.schema, operator) for each in several]
    narrow = [narrow_for(each, batch.schema) for each in several]
    if any(each is not None for each in narrow):
        quick = [one if each is None else each for one, each in zip(arrows, narrow, strict=True)]
        try:
            return computed_by(node, options(quick), table)
        except ARROW_ERRORS:
            result = computed_by(node, options(arrows), table)  # an error of its own says nothing of digits
            for each in several:
                forget_narrow(each, batch.schema)
            return result
    return computed_by(node, options(arrows), table)


def as_arrow(expression: Any, schema: pa.Schema, operator: str) -> Any:
    """Return an expression as one of `pyarrow.compute` over columns of a schema. Raises ExpressionRefused."""
    if not isinstance(expression, Expression):
        return expression
    try:
        return program_for(expression, schema).arrow
    except ExpressionMisfit as misfit:
        part = "" if misfit.part is expression else f" in {misfit.part!r}"
        raise ExpressionRefused(
            operator=operator,
            expression=str(expression),
            reason=f"{misfit}{part}",
            columns=_named_types(schema),
            where=_place(misfit.part),
            help=misfit.remedy,
        ) from None


def mask_of(batch: pa.RecordBatch, expression: Any, operator: str) -> pa.BooleanArray:
    """Return the boolean of each row of `batch`: true where `expression` is; null is not true. Raises ExpressionRefused."""
    values = values_of(batch, expression, operator)
    if not pa.types.is_boolean(values.type):
        refused = pa.ArrowTypeError(f"Filter expression must evaluate to bool, but it evaluates to {values.type}")
        _explain(refused, batch, expression, operator)
    return pc.fill_null(values, False) if values.null_count else values


def holds_for(records: Sequence[Any], predicate: Callable[[Any], object], among: Any = None) -> pa.BooleanArray:
    """Return the boolean of each record of a batch: true where a function of it is.

    `among`: the mask of those that it is called for; None: all.
    """
    asked = itertools.repeat(True) if among is None else among.to_pylist()
    holds = [is_asked and bool(predicate(record)) for record, is_asked in zip(records, asked, strict=False)]
    return pa.array(holds, pa.bool_())


def _one_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows of a table as one batch; Acero returns batches of `_ENGINE_ROWS`."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _named_types(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, str(field.type)) for field in schema)


def _explain(error: Exception, batch: pa.RecordBatch, expression: Any, operator: str) -> NoReturn:
    """Raise ExpressionRefused for an error of pyarrow about an expression; raise an error about the data as it is."""
    columns = _named_types(batch.schema)
    text = str(error).splitlines()[0]
    if missing := re.match(r"No match for FieldRef\.(?:Name|FieldPath)\((.*?)\) in ", text):
        near = suggest(missing[1], [name for name, _ in columns])
        reason, advice = f"there is no column {missing[1]!r}", f'write pc.field("{near}")' if near else ""
    elif text.startswith("No match for FieldRef"):
        reason, advice = "it names a column that is not there", ""
    elif wrong := re.match(r"Filter expression must evaluate to bool, but .* evaluates to (.*)", text):
        reason = f"it gives {wrong[1]}, but must be true or false"
        advice = "compare it with something: == != < <= > >=, .isin([…]), .is_null()"
    elif isinstance(expression, Expression):
        _fail(text, batch, expression, operator)
    elif "no kernel matching input types" in text:
        reason = text[0].lower() + text[1:]
        advice = "cast the column first: pc.field(…).cast(…); or give its reader a schema: a column that no type fits is a string"
    else:
        raise error
    raise ExpressionRefused(
        operator=operator, expression=str(expression), reason=reason, columns=columns, where=_place(expression), help=advice
    ) from None


def _fail(reason: str, batch: pa.RecordBatch, expression: Expression, operator: str) -> NoReturn:
    """Raise ExpressionFailed. Of a single row, it names the part that fails and the values of its columns."""
    part = expression
    values: tuple[tuple[str, str], ...] = ()
    if batch.num_rows == 1:
        part = program_for(expression, batch.schema).failing_part(batch)
        values = tuple((name, str(batch.column(name)[0])) for name in part.columns())
    raise ExpressionFailed(
        operator=operator, expression=str(expression), part=str(part), reason=reason, values=values, where=_place(part)
    ) from None


def _place(expression: Any) -> str:
    """Return the place at which an expression of `col` is written; nothing for others."""
    place = expression.place if isinstance(expression, Expression) else None
    return "" if place is None else str(place)
