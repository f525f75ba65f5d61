"""The right side of a join, which is kept in memory while a window lasts."""

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
    """The most that a partition keeps of the right side."""

    context: OperatorContext
    max_right_rows: int
    max_right_bytes: int

    def check(self, rows: int, size: int) -> None:
        """Raise JoinSideTooLarge for too many rows, or too many bytes."""
        if rows > self.max_right_rows:
            raise self._too_large("max_right_rows", self.max_right_rows, rows)
        if size > self.max_right_bytes:
            raise self._too_large("max_right_bytes", self.max_right_bytes, size)

    def _too_large(self, setting: str, most: int, count: int) -> JoinSideTooLarge:
        context = self.context
        return JoinSideTooLarge(
            operator=context.name,
            window=context.window,
            setting=setting,
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
            if not _is_null(key):
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
        return () if _is_null(key) else self.partners.get(one_nan(key), ())


def _is_null(key: Any) -> bool:
    return key is None or (type(key) is tuple and None in key)
