"""Map: a result for each record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, OutputPort
from operators.conditions import is_expression, is_function
from operators.transform.declared_rows import DeclaredRows, RowFunction, returned_type
from operators.transform.expressions import AnyExpression, function_name, function_or_expression, values_of

T = TypeVar("T", default=Any)
U = TypeVar("U", default=Any)


@attrs.define
class Map(RowFunction, Generic[T, U]):
    """Emit `function(record)` for each record.

    Args:
        function: a function of the record; or an expression over the columns of a batch, of `col` or `pyarrow.compute`, whose
            result becomes the column `value`.
        columns: the columns of the rows that the function returns, as dicts or objects with fields: `"shop: string, n: int64"`,
            `{"shop": str, "n": int}`, or a class with these annotations. A function that is annotated with a TypedDict has its
            columns. Writers, joins and aggregates need them: nothing else says the columns of a dict.

    Annotations of the function, or `Map[str, int](…)`, tell type checkers and the DAG check the types of records. Raises
    ExpressionRefused for an expression that does not fit the columns, RowNotAsDeclared for a row that is not as declared.

    >>> from dagflow.testing import run_operator
    >>> from operators import col
    >>> run_operator(Map(len), {"input": ["a", "bcd"]})["output"]
    [1, 3]
    >>> run_operator(Map[str, str](col("value").str.upper()), {"input": ["a", "bcd"]})["output"]
    ['A', 'BCD']
    >>> sized = Map(lambda word: {"word": word, "n": len(word)}, columns={"word": str, "n": int})
    >>> run_operator(sized, {"input": ["a", "bcd"]})["output"]
    [{'word': 'a', 'n': 1}, {'word': 'bcd', 'n': 3}]
    """

    function: Callable[[T], U] | AnyExpression = attrs.field(validator=function_or_expression)

    input = InputPort[T]()
    output = OutputPort[U]()

    @property
    def called(self) -> Any:
        """The function, or an expression."""
        return self.function

    @property
    def result_of(self) -> Any:
        """The annotation of what the function returns."""
        return returned_type(self.function)

    @input.process(when=is_function("function"))
    def apply(self, record: T) -> None:
        """Emit the result for a record."""
        self.apply_all(iter((record,)))

    @input.stream(when=is_function("function"))
    def apply_all(self, records: Iterator[T]) -> None:
        """Do the same for many records at once."""
        if (declared := self.declared) is not None:
            with DeclaredRows(declared.arrow, function_name(self.function), self.output) as rows:
                for record in records:
                    rows.add(self.function(record))  # type: ignore[operator]
            return
        self.output.emit_all(map(self.function, records))  # type: ignore[arg-type]

    @input.batch(when=is_expression("function"))
    def apply_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch, where the function is an expression."""
        values = values_of(batch, self.function, type(self).__name__)
        if len(values):
            self.output.emit_batch(pa.record_batch([values], names=["value"]))
