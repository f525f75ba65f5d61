"""Sample: a part of the records, the same part in every run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any, ClassVar, Generic
from zlib import crc32

import attrs
import numpy as np
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OutputPort
from operators.conditions import no_function
from operators.transform.content import column_contents, contents
from operators.transform.expressions import AnyExpression, function_or_expression, values_of

T = TypeVar("T", default=Any)

_ODD = 0x9E3779B1  # 2**32 / the golden ratio (Knuth): spreads what is close together over all 32 bits
_BITS = 0xFFFFFFFF


@attrs.define
class Sample(Operator, Generic[T]):
    """Keep about `fraction` of the records, unchanged and in their order; the same ones in every run.

    A record is kept or dropped by a hash of its content and `seed`. Its neighbours, the blocks of files and the number of
    partitions make no difference. Equal records are kept or dropped together. The content of a `ReaderRecord` includes its
    position, so one of two equal lines of a file may be kept, and the other dropped. An integer and an equal
    float have the same content.

    Args:
        fraction: the part of the records, from 0 to 1.
        seed: another seed keeps other records.
        key: a function of the record, or an expression over the columns of a batch, whose result is hashed
            instead of the content. It keeps all records of a customer, say, or none.

    >>> from dagflow.testing import run_operator
    >>> numbers = list(range(10_000))
    >>> some = run_operator(Sample(0.01), {"input": numbers})["output"]
    >>> len(some), some == run_operator(Sample(0.01), {"input": numbers})["output"]
    (89, True)
    >>> visits = [("ann", 1), ("bob", 1), ("cy", 1), ("bob", 2)]
    >>> run_operator(Sample(0.5, key=lambda visit: visit[0]), {"input": visits})["output"]
    [('bob', 1), ('bob', 2)]
    """

    selects_rows: ClassVar[bool] = True

    fraction: float = attrs.field(validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    seed: int = attrs.field(default=0, kw_only=True, validator=attrs.validators.instance_of(int))
    key: Callable[[T], object] | AnyExpression | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(function_or_expression)
    )

    input = InputPort[T]()
    output = OutputPort[T]()

    def setup(self, context: object) -> None:
        """Work out the largest hash of the sample."""
        self._limit = round(self.fraction * (_BITS + 1))
        self._start = crc32(b"%d" % self.seed)

    @input.process(when=lambda operator: operator.key is None or callable(operator.key))
    def choose(self, record: T) -> None:
        """Emit a record if it is in the sample."""
        if self._is_kept(record):
            self.output.emit(record)

    @input.stream(when=lambda operator: operator.key is None or callable(operator.key))
    def choose_all(self, records: Iterator[T]) -> None:
        """Do the same for many records."""
        self.output.emit_all(filter(self._is_kept, records))

    @input.batch(when=no_function("key"))
    def choose_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        hashed = batch
        if self.key is not None:
            hashed = pa.record_batch([values_of(batch, self.key, type(self).__name__)], names=["value"])
        hashes: Iterable[int] = repeat(self._start, batch.num_rows)
        for column in column_contents(hashed):
            hashes = map(crc32, column, hashes)
        spread = np.fromiter(hashes, np.uint32, batch.num_rows) * np.uint32(_ODD)
        mask = spread.astype(np.uint64) < self._limit
        if mask.any():
            self.output.emit_batch(batch.filter(pa.array(mask)))

    def _is_kept(self, record: T) -> bool:
        checksum = self._start
        what = record if self.key is None else self.key(record)  # type: ignore[operator]
        for part in contents(what):
            checksum = crc32(part, checksum)
        return checksum * _ODD & _BITS < self._limit
