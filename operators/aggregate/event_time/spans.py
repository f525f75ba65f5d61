"""Windows of event time of one size, side by side."""

from __future__ import annotations

from typing import Any

import attrs

from dagflow import OperatorContext
from operators.aggregate.event_time.times import FIRST, LAST, SECOND
from operators.aggregate.event_time.wait import Wait


@attrs.frozen
class Spans:
    """The windows of one size, and which of them are late, due or over. Times are microseconds since the epoch.

    Attributes:
        size: of a window.
        lateness: for so long behind its end a window takes records in.
        late_from: the watermark before this window of the run, from which records are late; None: there is none yet.
        watermark: the one up to which windows fire.
        begin, stop: the first start and the last end of a window that datetimes can tell.
    """

    size: int
    lateness: int
    late_from: int | None
    watermark: int | None
    begin: int = attrs.field(init=False)
    stop: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "begin", -(-FIRST // self.size) * self.size)
        object.__setattr__(self, "stop", LAST // self.size * self.size)

    @classmethod
    def of(cls, seconds: float, wait: Wait, context: OperatorContext) -> Spans:
        """Return the windows of a size, by the watermarks of the records before or of the sources."""
        size, lateness, progress = round(seconds * SECOND), round(wait.allowed_lateness * SECOND), context.event_time
        if wait.out_of_orderness is None:
            return cls(size, lateness, progress.sources_before, progress.sources)
        watermark = None if progress.seen is None else progress.seen - round(wait.out_of_orderness * SECOND)
        return cls(size, lateness, watermark, watermark)

    def start_of(self, time: int) -> int:
        """Return the start of the window of a time. Raises ValueError for a time that is in no window."""
        if not self.begin <= time < self.stop:
            raise ValueError(
                f"the event time {time} is in no window of {self.size / SECOND:g} s within the years 1 to 9999: "
                "integers are microseconds since the epoch"
            )
        return time - time % self.size

    def is_late(self, starts: Any) -> Any:
        """Return True, or an array of booleans, if windows that start then take no records any more."""
        return self.late_from is not None and starts + self.size + self.lateness <= self.late_from

    @property
    def due_before(self) -> int | None:
        """The start before which windows are due: the watermark has reached their end. None without a watermark."""
        return None if self.watermark is None else self.watermark - self.size + 1

    @property
    def over_before(self) -> int | None:
        """The start before which windows take no records any more after this window of the run. None without a watermark."""
        return None if self.watermark is None else self.watermark - self.size - self.lateness + 1
