"""Map: a result for each record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OutputPort
from operators.conditions import is_expression, is_function
from operators.transform.expressions import AnyExpression, function_or_expression, values_of

T = TypeVar("T", default=Any)
U = TypeVar("U", default=Any)


@attrs.define
class Map(Operator, Generic[T, U]):
    """Emit `function(record)` for each record.

    Args:
        function: a function of the record; or an expression over the columns of a batch, of `col` or `pyarrow.compute`, whose
            result becomes the column `value`.

    Annotations of the function, or `Map[str, int](…)`, tell type checkers and the DAG check the types of records. Raises
    ExpressionRefused for an expression that does not fit the columns.

    >>> from dagflow.testing import run_operator
    >>> from operators import col
    >>> run_operator(Map(len), {"input": ["a", "bcd"]})["output"]
    [1, 3]
    >>> run_operator(Map[str, str](col("value").str.upper()), {"input": ["a", "bcd"]})["output"]
    ['A', 'BCD']
    """

    function: Callable[[T], U] | AnyExpression = attrs.field(validator=function_or_expression)

    input = InputPort[T]()
    output = OutputPort[U]()

    @input.process(when=is_function("function"))
    def apply(self, record: T) -> None:
        """Emit the result for a record."""
        self.output.emit(self.function(record))  # type: ignore[operator]

    @input.stream(when=is_function("function"))
    def apply_all(self, records: Iterator[T]) -> None:
        """Do the same for many records at once."""
        self.output.emit_all(map(self.function, records))  # type: ignore[arg-type]

    @input.batch(when=is_expression("function"))
    def apply_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch, where the function is an expression."""
        values = values_of(batch, self.function, type(self).__name__)
        if len(values):
            self.output.emit_batch(pa.record_batch([values], names=["value"]))
