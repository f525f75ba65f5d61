"""Expect: a predicate that must hold for all records of a window, or for all but a share of them."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, get_args

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from dagflow import InputPort, OnBreach, Operator, OperatorContext, OutputPort, ReaderRecord, RejectLimit
from dagflow.config import one_of, share
from operators.conditions import is_function
from operators.transform.expressions import AnyExpression, function_name, function_or_expression, holds_for, mask_of

T = TypeVar("T", default=Any)

_SHOWN = 5  # records of a batch that are shown as samples


@attrs.define
class Expect(Operator, Generic[T]):
    """Expect that `predicate` holds for the records of a window, with at most a share of exceptions.

    Records for which it does not hold are rejected: they are counted, and the report shows the first few. The counts of all tasks
    are summed before the window is committed. With a larger share than `max_share`, the run ends with ExpectationFailed, and
    nothing of the window is committed; or it warns.

    Every record goes to one port, unchanged. Rejected records go to the port `failed` where it is connected, else to
    `output` like the others: an expectation alone changes no data.

    Args:
        predicate: as `Filter` takes it. A record for which an expression is null is rejected.
        max_share: the largest share of rejected records, from 0 to 1.
        on_breach: `fail` ends the run before a window with a larger share is committed, `warn` warns and commits it.
        drop: True drops rejected records where `failed` is not connected.
        name: the name of the expectation in reports; empty for the text of the predicate.

    Raises ExpressionRefused for an expression that names an unknown column, or does not return booleans.

    >>> from dagflow.testing import run_operator
    >>> from operators import col
    >>> run_operator(Expect(lambda age: 0 <= age < 150, max_share=0.5), {"input": [31, -1, 64]})
    {'output': [31, 64], 'failed': [-1]}
    >>> run_operator(Expect[int](col("value") > 0, on_breach="warn"), {"input": [31, -1, 64]})["failed"]
    [-1]
    """

    selects_rows: ClassVar[bool] = True

    predicate: Callable[[T], object] | AnyExpression = attrs.field(validator=function_or_expression)
    max_share: float = attrs.field(default=0.0, kw_only=True, validator=share)
    on_breach: OnBreach = attrs.field(default="fail", kw_only=True, validator=one_of(get_args(OnBreach)))
    drop: bool = attrs.field(default=False, kw_only=True)
    name: str = attrs.field(default="", kw_only=True)

    input = InputPort[T]()
    output = OutputPort[T]()
    failed = OutputPort[T](optional=True)

    def reject_limits(self) -> Sequence[RejectLimit]:
        """Return the limit that the properties set."""
        return [RejectLimit(name=self._title(), max_share=self.max_share, on_breach=self.on_breach, property="max_share")]

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which counts."""
        self._context = context
        self._reason = f"expected {self.name}" if self.name else f"{self._title()} does not hold"

    def offered_forms(self, port: str) -> frozenset[str]:
        """Return records where the predicate is a function. Only rows that would lose their columns come in batches."""
        return super().offered_forms(port) - ({"batch"} if callable(self.predicate) else set())

    @input.process(when=is_function("predicate"))
    def check_each(self, record: T) -> None:
        """Emit a record where it belongs."""
        self.check_all(iter([record]))

    @input.stream(when=is_function("predicate"))
    def check_all(self, records: Iterator[T]) -> None:
        """Do the same for many records at once."""
        self.output.emit_all(self._passed(records))

    def _passed(self, records: Iterator[T]) -> Iterator[T]:
        """Yield the records for the port `output`."""
        predicate, keeps, is_routed = self.predicate, not self.drop, self.failed.is_connected
        for record in records:
            if predicate(record):  # type: ignore[operator]
                yield record
                continue
            self._context.reject(self._reason, [record])
            if is_routed:
                self.failed.emit(record)
            elif keeps:
                yield record

    @input.batch
    def check_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        if callable(self.predicate):
            mask = holds_for(self.input.records_of(batch), self.predicate)
        else:
            mask = mask_of(batch, self.predicate, type(self).__name__)
        count = batch.num_rows - mask.true_count
        rejected = batch.filter(pc.invert(mask)) if count else None
        if rejected is not None:
            rows = pc.indices_nonzero(pc.invert(mask))[:_SHOWN].to_pylist()
            self._context.reject(self._reason, _records(rejected.slice(0, _SHOWN)), count, rows)
        if rejected is None or not (self.drop or self.failed.is_connected):
            self.output.emit_batch(batch)
            return
        if count < batch.num_rows:
            self.output.emit_batch(batch.filter(mask))
        if self.failed.is_connected:
            self.failed.emit_batch(rejected)

    def _title(self) -> str:
        if self.name or not callable(self.predicate):
            return self.name or str(self.predicate)
        name, _, place = function_name(self.predicate).rpartition("<locals>.")[2].partition(" ")
        return f"the lambda at {place.strip('()')}" if name == "<lambda>()" else f"{name} {place}".rstrip()


def _records(rows: pa.RecordBatch) -> list[Any]:
    """Return the rows of a batch as records; none if Python cannot hold a value (a time after the year 9999)."""
    try:
        values: list[Any] = rows.to_pylist()
    except (OverflowError, ValueError):
        return []
    if rows.schema.names == ["value"]:
        return [each["value"] for each in values]
    if rows.schema.names == ["block_id", "position", "record"]:
        return [ReaderRecord(**each) for each in values]
    return values
