"""Filter: keeps the records for which a predicate holds."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OutputPort
from operators.conditions import is_function
from operators.names import names_of_columns
from operators.transform.expressions import AnyExpression, function_or_expression, holds_for, read_by, rows_where

T = TypeVar("T", default=Any)


@attrs.define
class Filter(Operator, Generic[T]):
    """Keep the records for which `predicate` holds, unchanged and in their order.

    Args:
        predicate: a function of the record; or an expression over the columns of a batch, of `col` or `pyarrow.compute`, which is
            some ten times as fast. A function may be called again for a record, if it raises for one beside it. The column of a
            bare type is `value`; a `ReaderRecord` has `block_id`, `position` and `record`. A record is dropped where the
            expression is null.
        only: the columns that are emitted, with an expression; None: all. The planner gives those that operators behind it read.

    Write `Filter[int](lambda …)` to declare the argument type of a lambda for type checkers. Raises ExpressionRefused
    for an expression that names an unknown column, or does not return booleans; ExpressionFailed where it has no value for a row.

    >>> from dagflow.testing import run_operator
    >>> from operators import col
    >>> run_operator(Filter(lambda line: not line.startswith(".")), {"input": ["a", ".b", "c"]})["output"]
    ['a', 'c']
    >>> run_operator(Filter[str](~col("value").str.starts_with(".")), {"input": ["a", ".b", "c"]})["output"]
    ['a', 'c']
    """

    selects_rows: ClassVar[bool] = True

    predicate: Callable[[T], object] | AnyExpression = attrs.field(validator=function_or_expression)
    only: frozenset[str] | None = attrs.field(default=None, kw_only=True, converter=attrs.converters.optional(names_of_columns))

    input = InputPort[T]()
    output = OutputPort[T]()

    def columns_read(self, port: str, wanted: Callable[[str], frozenset[str] | None]) -> frozenset[str] | None:
        """Return the columns of the expression, and those that are read behind it."""
        return read_by(self.predicate, wanted("output"))

    def reading_only(self, port: str, columns: frozenset[str]) -> Filter[T]:
        """Leave out the columns that only the expression reads."""
        if port != "output" or callable(self.predicate):
            return self
        other = copy.copy(self)
        other.only = columns
        return other

    def offered_forms(self, port: str) -> frozenset[str]:
        """Return records where the predicate is a function. Only rows that would lose their columns come in batches."""
        return super().offered_forms(port) - ({"batch"} if callable(self.predicate) else set())

    @input.process(when=is_function("predicate"))
    def keep(self, record: T) -> None:
        """Emit a record if the predicate holds."""
        if self.predicate(record):  # type: ignore[operator]
            self.output.emit(record)

    @input.stream(when=is_function("predicate"))
    def keep_all(self, records: Iterator[T]) -> None:
        """Do the same for many records at once."""
        self.output.emit_all(filter(self.predicate, records))  # type: ignore[arg-type]

    @input.batch
    def keep_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        if callable(self.predicate):
            rows = batch.filter(holds_for(self.input.records_of(batch), self.predicate))
        else:
            rows = rows_where(batch, self.predicate, type(self).__name__)
        if self.only is not None:
            rows = rows.select([name for name in rows.schema.names if name in self.only])
        if rows.num_rows:
            self.output.emit_batch(rows)
