"""The time for which windows of event time are kept, saved beside them: a window that is over must not begin again."""

from __future__ import annotations

import attrs


@attrs.frozen
class Wait:
    """The seconds for which `Tumbling` keeps windows after their end; `out_of_orderness` is None for watermarks of sources."""

    allowed_lateness: float
    out_of_orderness: float | None

    def reopens(self, kept: Wait) -> bool:
        """Return True if a window that was over under `kept` may be open under these settings.

        >>> old = Wait(60, 0)
        >>> [Wait(0, 60).reopens(old), Wait(10, 10).reopens(old), Wait(90, 0).reopens(old), Wait(0, None).reopens(old)]
        [False, False, True, True]
        """
        if (self.out_of_orderness is None) != (kept.out_of_orderness is None):
            return True  # by another watermark, of which nothing is known
        return self.allowed_lateness + (self.out_of_orderness or 0) > kept.allowed_lateness + (kept.out_of_orderness or 0)

    def __str__(self) -> str:
        bound = "None" if self.out_of_orderness is None else f"{self.out_of_orderness:g} s"
        return f"allowed_lateness={self.allowed_lateness:g} s and out_of_orderness={bound}"


def first(kept: list[Wait | None]) -> Wait | None:
    """Return the value of a partition that has one; it is the same in all."""
    return next((each for each in kept if each is not None), None)
