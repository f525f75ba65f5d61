"""FlatMap: turns each record into any number of others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OutputPort
from operators.transform.errors import ExpressionRefused
from operators.transform.expressions import Expression, computed, forms, function_or_expression

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T", default=Any)
U = TypeVar("U", default=Any)


@attrs.define
class FlatMap(Operator, Generic[T, U]):
    """Emits all that `function(record)` yields, for each record, in order.

    `function` returns or yields an iterable, which is never held as a whole: it may be long. What a generator has yielded before
    it raises, has been emitted. A `pyarrow.compute` expression must give lists; null is an empty one.

    Raises ExpressionRefused where the expression does not fit the columns, or gives no lists.

    >>> import pyarrow.compute as pc
    >>> from dagflow.testing import run_operator
    >>> run_operator(FlatMap(str.split), {"input": ["to be", "", "or not"]})["output"]
    ['to', 'be', 'or', 'not']
    >>> run_operator(FlatMap[str, str](pc.utf8_split_whitespace(pc.field("value"))), {"input": ["to be"]})["output"]
    ['to', 'be']
    """

    function: Callable[[T], Iterable[U]] | Expression = attrs.field(validator=function_or_expression)

    input = InputPort[T]()
    output = OutputPort[U]()

    def offered_forms(self, port: str) -> frozenset[str]:
        """Records for a function, batches for an expression."""
        offered = super().offered_forms(port)
        return offered & forms(self.function) if port == "input" else offered

    @input.process
    def apply(self, record: T) -> None:
        """Emits what the function makes of the record."""
        self.output.emit_all(self.function(record))  # type: ignore[operator]  # offered for functions only

    @input.stream
    def apply_all(self, records: Iterator[T]) -> None:
        """The same for many records."""
        self.output.emit_all(chain.from_iterable(map(self.function, records)))  # type: ignore[arg-type]

    @input.batch
    def apply_batch(self, batch: pa.RecordBatch) -> None:
        """The same for an expression."""
        import pyarrow as pa

        lists = computed(batch, self.function, type(self).__name__)
        if not (pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type) or pa.types.is_fixed_size_list(lists.type)):
            raise ExpressionRefused(
                operator=type(self).__name__,
                expression=str(self.function),
                reason=f"it gives {lists.type}, but must give lists",
                columns=tuple((field.name, str(field.type)) for field in batch.schema),
                help="use Map where every record becomes exactly one",
            )
        values = lists.flatten()
        if len(values):
            self.output.emit_batch(pa.record_batch([values], names=["value"]))
