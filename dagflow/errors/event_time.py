"""What can be wrong with how operators follow event time."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import DagError, error


@error
class WatermarkMissing(DagError):
    """An operator emits only what the watermark of its sources has reached, and one of them never tells one.

    Attributes:
        properties: of the operator, which make it so.
    """

    operator: str
    properties: str
    source: str
    where: str
    code: ClassVar[str] = "DF049"

    def message(self) -> str:
        return (
            f"{self.operator!r} would never emit anything: with {self.properties} it waits for the watermark of its sources, and "
            f"{self.source!r} tells none ({self.where})\n"
            f"  help: change one of these properties, or let the source tell its watermark "
            "(FileSplitterInput(event_time='modified'); watermark() of your own)"
        )
