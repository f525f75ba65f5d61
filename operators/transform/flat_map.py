"""FlatMap: any number of results for each record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Generic, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, OutputPort
from operators.conditions import is_expression, is_function
from operators.problems import all_problems
from operators.transform.declared_rows import DeclaredRows, RowFunction, returned_type
from operators.transform.errors import ExpressionRefused, NotSeveral
from operators.transform.expressions import AnyExpression, function_name, function_or_expression, returned_types, values_of

T = TypeVar("T", default=Any)
U = TypeVar("U", default=Any)


_WITH_PARTS: set[type] = {list, tuple}
"""Types of results that are known to be iterable."""


def _has_parts(tp: type) -> bool:
    return not issubclass(tp, str) and (hasattr(tp, "__iter__") or hasattr(tp, "__getitem__"))


@attrs.define
class FlatMap(RowFunction, Generic[T, U]):
    """Emit all results of `function(record)`, for each record, in order.

    Args:
        function: a function that returns or yields an iterable; or a `pyarrow.compute` expression over the columns of a batch,
            whose result are lists (null is an empty list).
        columns: the columns of the rows that the function returns or yields, as for `Map`.

    An iterable is never held as a whole, so it may be long. The results that a generator yields before it raises are emitted.

    Raises NotSeveral for a function that returns a string or None; where its annotation says so, the DAG is refused. Raises
    ExpressionRefused for an expression that does not fit the columns, or whose results are not lists; RowNotAsDeclared for a row
    that is not as declared.

    >>> import pyarrow.compute as pc
    >>> from dagflow.testing import run_operator
    >>> run_operator(FlatMap(str.split), {"input": ["to be", "", "or not"]})["output"]
    ['to', 'be', 'or', 'not']
    >>> run_operator(FlatMap[str, str](pc.utf8_split_whitespace(pc.field("value"))), {"input": ["to be"]})["output"]
    ['to', 'be']
    """

    function: Callable[[T], Iterable[U]] | AnyExpression = attrs.field(validator=function_or_expression)

    input = InputPort[T]()
    output = OutputPort[U]()

    def check(self) -> None:
        """Raise ValueError where the annotation of the function declares text, None or what has no parts."""
        with all_problems(super().check) as problems:
            wrong = [tp for tp in returned_types(self.function) if not _has_parts(tp)] if callable(self.function) else []
            if wrong:
                types = " or ".join(tp.__name__ for tp in wrong).replace("NoneType", "None")
                problems.append(
                    f"{function_name(self.function)} returns {types}, but the function of a FlatMap must return several records: "
                    "return a list, or yield; use Map where every record becomes exactly one"
                )

    @property
    def called(self) -> Any:
        """The function, or an expression."""
        return self.function

    @property
    def result_of(self) -> Any:
        """The annotation of one of the results."""
        return next(iter(get_args(returned_type(self.function))), None)

    @input.process(when=is_function("function"))
    def apply(self, record: T) -> None:
        """Emit the results for a record."""
        self.apply_all(iter((record,)))

    @input.stream(when=is_function("function"))
    def apply_all(self, records: Iterator[T]) -> None:
        """Do the same for many records at once."""
        if (declared := self.declared) is not None:
            with DeclaredRows(declared.arrow, function_name(self.function), self.output) as rows:
                for record in records:
                    for result in self._several(self.function(record)):  # type: ignore[operator]
                        rows.add(result)
            return
        self.output.emit_all(chain.from_iterable(map(self._several, map(self.function, records))))  # type: ignore[arg-type]

    def _several(self, results: Any) -> Any:
        if type(results) not in _WITH_PARTS:
            if not _has_parts(type(results)):
                raise NotSeveral(function=function_name(self.function), got=f"{results!r}"[:100])
            _WITH_PARTS.add(type(results))
        return results

    @input.batch(when=is_expression("function"))
    def apply_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch, where the function is an expression."""
        lists = values_of(batch, self.function, type(self).__name__)
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
