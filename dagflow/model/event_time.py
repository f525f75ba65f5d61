"""Event time: the progress of an operator's records, as far as all tasks of a window can know it."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class EventTime:
    """The facts for operators that follow event time: microseconds since the epoch, None where nothing is known.

    It is the same for all tasks of a window, however often it runs, and does not depend on how many there are.

    Attributes:
        seen: the latest time of a record that came to the operator in the windows before.
        sources_before: the smallest of the watermarks of its sources (`InputOperator.watermark`) after the window before.
        sources: the same after this window.
        is_end: whether this is the window behind the last one of a bounded run, which has no records.
    """

    seen: int | None = None
    sources_before: int | None = None
    sources: int | None = None
    is_end: bool = False
