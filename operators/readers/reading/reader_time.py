"""The time that a reader itself takes."""

from __future__ import annotations

from types import TracebackType

import attrs

from dagflow import Clock, OperatorContext


@attrs.define
class ExcludedTime:
    """Seconds that other operators take: `with excluded:` around their work."""

    clock: Clock
    seconds: float = 0.0
    _entered_at: float = 0.0

    def __enter__(self) -> None:
        self._entered_at = self.clock.monotonic()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.seconds += self.clock.monotonic() - self._entered_at


@attrs.define
class ReaderTime:
    """Counts `time_ms` of a reader: the time of its blocks, without that of the operators behind."""

    context: OperatorContext
    excluded: ExcludedTime = attrs.field(init=False)
    _began_at: float = 0.0
    _seconds: float = 0.0
    _counted_ms: int = 0

    def __attrs_post_init__(self) -> None:
        self.excluded = ExcludedTime(self.context.clock)

    def begin_block(self) -> None:
        """Start the time of a block."""
        self._began_at = self.context.clock.monotonic()
        self.excluded.seconds = 0.0

    def end_block(self) -> None:
        """Count the time of a block. The rest of a millisecond is kept for the next block."""
        self._seconds += self.context.clock.monotonic() - self._began_at - self.excluded.seconds
        total_ms = int(self._seconds * 1000)
        if total_ms > self._counted_ms:
            self.context.count("time_ms", total_ms - self._counted_ms)
            self._counted_ms = total_ms
