"""Errors in the coverage of a window."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError
from dagflow.errors.base import error


@error
class WindowIncomplete(RunError):
    """A window's tasks ended, but not all of them reported, or what they have read is not the window's plan."""

    window: int
    missing: tuple[str, ...]
    uncovered: tuple[str, ...] = ()
    code: ClassVar[str] = "DF307"

    def message(self) -> str:
        if self.uncovered:
            more = f", and {len(self.uncovered) - 3} more" if len(self.uncovered) > 3 else ""
            return f"window {self.window}: its tasks have not read all of it once: {'; '.join(self.uncovered[:3])}{more}"
        return f"window {self.window}: no report from {', '.join(self.missing)}"
