"""The right side of a join within a window, which is kept in memory while that lasts, and the limits of sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa

from dagflow import OperatorContext
from operators.aggregate.fields import one_nan
from operators.join.errors import JoinSideTooLarge


@attrs.frozen
class SideLimits:
    """The most that a partition keeps in memory of a side."""

    context: OperatorContext
    side: str
    max_rows: int | None
    max_bytes: int

    def check(self, rows: int, size: int) -> None:
        """Raise JoinSideTooLarge for too many rows, or too many bytes."""
        if self.max_rows is not None and rows > self.max_rows:
            raise self._too_large("records", self.max_rows, rows)
        if size > self.max_bytes:
            raise self._too_large("bytes", self.max_bytes, size)

    def _too_large(self, unit: str, most: int, count: int) -> JoinSideTooLarge:
        context = self.context
        return JoinSideTooLarge(
            operator=context.name,
            window=context.window,
            side=self.side,
            unit=unit,
            most=most,
            found=count,
            partition=context.partition,
            partitions=context.partitions,
        )


@attrs.define
class RightSide:
    """The records of the right side by key, or its batches.

    Attributes:
        size: the bytes of the batches; records are not measured.
    """

    partners: dict[Any, list[Any]] = attrs.field(factory=dict)
    batches: list[pa.RecordBatch] = attrs.field(factory=list)
    rows: int = 0
    size: int = 0

    def add_records(self, records: Iterator[Any], key_of: Callable[[Any], Any], limits: SideLimits) -> None:
        """Add records, but for those whose key is null. Raises JoinSideTooLarge."""
        for record in records:
            key = key_of(record)
            if not is_null(key):
                self.partners.setdefault(one_nan(key), []).append(record)
                self.rows += 1
                limits.check(self.rows, self.size)

    def add_batch(self, batch: pa.RecordBatch, limits: SideLimits) -> None:
        """Add a batch. Raises JoinSideTooLarge."""
        self.batches.append(batch)
        self.rows += batch.num_rows
        self.size += batch.nbytes
        limits.check(self.rows, self.size)

    def partners_of(self, key: Any) -> Sequence[Any]:
        """Return the records of a key, in the order in which they came."""
        return () if is_null(key) else self.partners.get(one_nan(key), ())


def is_null(key: Any) -> bool:
    """Return True for a key that matches nothing."""
    return key is None or (type(key) is tuple and None in key)
