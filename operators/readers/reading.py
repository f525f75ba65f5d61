"""The state of a block reader while a task runs."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import attrs

from dagflow import Clock, OperatorContext


@attrs.define
class Away:
    """Time that is not the reader's own: `with away:` around the work of others. Seconds."""

    clock: Clock
    seconds: float = 0.0
    _left_at: float = 0.0

    def __enter__(self) -> None:
        self._left_at = self.clock.monotonic()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.seconds += self.clock.monotonic() - self._left_at


@attrs.define
class Reading:
    """The stream at hand, the block that was read last, entities not passed on yet, and the time that it took."""

    context: OperatorContext
    stream: Any = None
    has_stream: bool = False
    last_block_id: int | None = None
    positions: list[int] = attrs.field(factory=list)
    data: list[bytes] = attrs.field(factory=list)
    size: int = 0
    away: Away = attrs.field(default=attrs.Factory(lambda self: Away(self.context.clock), takes_self=True))
    _began_at: float = 0.0
    _seconds: float = 0.0
    _counted_ms: int = 0

    def is_successor(self, block: Any) -> bool:
        """Return True if a block follows the one that was read last, so that its stream serves this one too."""
        previous = getattr(block, "previous_block_id", -1)
        return self.has_stream and previous != -1 and previous == self.last_block_id

    def forget(self) -> None:
        """Drops what belongs to the block at hand."""
        self.last_block_id = None
        self.positions, self.data, self.size = [], [], 0

    def begin(self) -> None:
        """A block begins."""
        self._began_at = self.context.clock.monotonic()
        self.away.seconds = 0.0

    def end(self) -> None:
        """A block ends: counts `time_ms`. What is less than a millisecond is kept for the next block."""
        self._seconds += self.context.clock.monotonic() - self._began_at - self.away.seconds
        whole = int(self._seconds * 1000)
        if whole > self._counted_ms:
            self.context.count("time_ms", whole - self._counted_ms)
            self._counted_ms = whole


def whole_numbers(values: Any) -> Any:
    """A `pyarrow.Int64Array` of a sequence of integers. A numpy array of 64 bits each is not copied.

    Not by pa.array(): that imports pandas, 0.4 s in each worker.

    >>> whole_numbers([1, 2]).to_pylist()
    [1, 2]
    """
    import numpy as np
    import pyarrow as pa

    octets = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(octets), [None, pa.py_buffer(octets)])
