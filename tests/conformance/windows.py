"""An input operator whose windows a test writes down."""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from dagflow import InputOperator, OperatorContext, OutputPort, State

T = TypeVar("T")


@attrs.define
class InWindows(InputOperator, Generic[T]):
    """Emits one list of records a window, from `state` on; an empty list moves only the state."""

    windows: list[list[T]]
    output = OutputPort[T]()
    at = State(0)

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    def emit_tuples(self) -> None:
        if self.at < len(self.windows):
            self.output.emit_all(self.windows[self.at])
            self.at += 1
            self.context.close_window()

    def is_exhausted(self) -> bool:
        return self.at >= len(self.windows)


@attrs.define
class InThreeParts(InWindows[T]):
    """Emits the first record of a window when it begins, and the last one when it ends."""

    def begin_window(self, window: int) -> None:
        if self.at < len(self.windows):
            self.output.emit_all(self.windows[self.at][:1])

    def emit_tuples(self) -> None:
        if self.at < len(self.windows):
            self.output.emit_all(self.windows[self.at][1:-1])
            self.at += 1
            self.context.close_window()

    def end_window(self) -> None:
        if self.context.signals.window_closed:
            self.output.emit_all(self.windows[self.at - 1][1:][-1:])

    def is_exhausted(self) -> bool:
        return not self.context.signals.window_closed and super().is_exhausted()
