"""Deduplicate: the first of equal records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Generic, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OutputPort, WindowState
from dagflow.config import one_of
from operators.aggregate.fields import ResultScope, a_key, check_columns, getter, names_of
from operators.conditions import no_function
from operators.transform.content import column_contents, content_of, contents, contents_of_column

T = TypeVar("T", default=Any)

MAX_PARTIAL_KEYS = 100_000
"""The most keys that the partial operator remembers. With more, it forgets all, and some records cross the exchange twice."""

Content = tuple[bytes, ...]


@attrs.define
class FirstOfEach(Operator, Generic[T]):
    """Keep the first record of each key in this partition: the part of `Deduplicate` before the exchange."""

    by: Callable[[T], object] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True, validator=a_key)

    most: int | None = attrs.field(default=None, kw_only=True)
    """The most keys that are remembered; None: all of a window."""

    input = InputPort[T]()
    output = OutputPort[T]()
    keys = WindowState[set[Content]](factory=set)

    @input.stream
    def pass_all(self, records: Iterator[T]) -> None:
        """Emit the records that are first."""
        of_record, is_first, emit = content_by(self.by), self._is_first, self.output.emit
        for record in records:
            if is_first(of_record(record)):
                emit(record)

    @input.batch(when=no_function("by"))
    def pass_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        names = names_of(self.by)
        check_columns(batch.schema, "by", names)
        columns: list[Iterable[bytes]] = [contents_of_column(batch.column(name)) for name in names] or column_contents(batch)
        rows = batch.filter(pa.array(map(self._is_first, zip(*columns, strict=True)), pa.bool_()))
        if rows.num_rows:
            self.output.emit_batch(rows)

    def _is_first(self, key: Content) -> bool:
        if key in self.keys:
            return False
        if self.most is not None and len(self.keys) >= self.most:
            self.keys.clear()
        self.keys.add(key)
        return True


def content_by(by: Any) -> Callable[[Any], Content]:
    """Return the function of the content of a record's key; of the whole record where `by` is None."""
    if by is None:
        return contents
    field = getter(by)
    if isinstance(by, tuple):
        return lambda record: tuple(map(content_of, field(record)))
    return lambda record: (content_of(field(record)),)


@attrs.define
class Deduplicate(FirstOfEach[T], Generic[T]):
    """Keep the first of the records that are equal, or have equal keys.

    Which of several records with equal keys comes first depends on partitions. Where that matters, select one before, with
    `TopN`, say. The position of a `ReaderRecord` counts: `by="record"` compares lines.

    Values are equal if they are equal in Python (1 and 1.0; ten o'clock UTC and noon two hours east of it), or if a column cannot
    distinguish them (a list and a tuple, an enumeration and its value, records of two classes with the same fields). All fields
    count, also those with `eq=False`. None and "None", 1 and "1" differ.

    Args:
        by: the key: a function of the record, or names of columns (fields of its class), with which batches stay batches. None:
            the whole record.
        combiner: whether records are compared before the exchange too, so that few cross it.
        scope: the input within which records are compared: see `Aggregate`.

    The keys of a partition are in memory while a window lasts.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Deduplicate(), {"input": ["to", "be", "or", "not", "to", "be"]})["output"]
    ['to', 'be', 'or', 'not']
    >>> run_operator(Deduplicate(by=str.lower), {"input": ["To", "be", "to"]})["output"]
    ['To', 'be']
    """

    partition_key_fixed: ClassVar[bool] = True

    combiner: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]

    def partition_key(self, port: str) -> Any:
        """Return the key: equal records reach one partition."""
        return contents if self.by is None else self.by

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the same operator for the records of one partition."""
        if not self.combiner:
            return None
        return FirstOfEach[Any](by=self.by, most=MAX_PARTIAL_KEYS, on_error=self.on_error), port
