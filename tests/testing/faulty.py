"""A tracker with a fault, which proofs must find."""

from __future__ import annotations

from dagflow.ranges import OffsetRangeTracker


class SplitsConsumed(OffsetRangeTracker):
    """A tracker whose position of the last record may be given away."""

    def _try_split(self, position: int) -> bool:
        if self._last is None or position < self._last or position >= self.stop_position:
            return False
        self._stop = position
        return True
