"""When windows of event time are over, kept beside them: those that are have been let go of, and must not begin anew."""

from __future__ import annotations

import attrs


@attrs.frozen
class Wait:
    """How long `Tumbling` keeps windows behind their end, in seconds; `out_of_orderness` is None by the watermark of sources."""

    allowed_lateness: float
    out_of_orderness: float | None

    def reopens(self, kept: Wait) -> bool:
        """Whether a window that was over by `kept` may not be by this.

        >>> kept = Wait(60, 0)
        >>> [Wait(0, 60).reopens(kept), Wait(10, 10).reopens(kept), Wait(90, 0).reopens(kept), Wait(0, None).reopens(kept)]
        [False, False, True, True]
        """
        if (self.out_of_orderness is None) != (kept.out_of_orderness is None):
            return True  # by another watermark, of which nothing is known
        return self.allowed_lateness + (self.out_of_orderness or 0) > kept.allowed_lateness + (kept.out_of_orderness or 0)

    def __str__(self) -> str:
        bound = "None" if self.out_of_orderness is None else f"{self.out_of_orderness:g} s"
        return f"allowed_lateness={self.allowed_lateness:g} s and out_of_orderness={bound}"


def first(kept: list[Wait | None]) -> Wait | None:
    """What several partitions have kept: it is the same in all that have kept something."""
    return next((each for each in kept if each is not None), None)
