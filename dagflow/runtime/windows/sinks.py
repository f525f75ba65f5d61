"""The sinks of an application, as the driver calls them: with decided windows, and with errors that name the operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from dagflow.logs import within
from dagflow.model.operator.context import Cursor
from dagflow.model.operator.sink import Sink, StagedWindow, WindowMark
from dagflow.runtime.run_folder.window_log import Decision, WindowLog
from dagflow.runtime.stage.failure import abort
from dagflow.storage import is_transient

Retry = Callable[[int, str, Callable[[], Any]], Any]
"""Runs a step of a window, again where an error is transient."""


def once(window: int, doing: str, action: Callable[[], Any]) -> Any:
    """Run a step once."""
    return action()


def staged_for(sink: str, decision: Decision, application: str, log: WindowLog) -> StagedWindow:
    """Return a decided window as a sink publishes it."""
    staged = tuple(decision.staged.get(sink, ()))
    return StagedWindow(application, decision.window, staged, sink, log.mark_of(decision.window).decision)


@attrs.frozen
class GuardedSink:
    """A sink of users' code: errors that are not transient name the operator and the window."""

    name: str
    sink: Sink

    def newest_mark(self, last: StagedWindow) -> WindowMark | None:
        """See `Sink.newest_mark`."""
        mark: WindowMark | None = self._call(self.sink.newest_mark, last)
        return mark

    def check_window(self, window: StagedWindow) -> None:
        """See `Sink.check_window`."""
        self._call(self.sink.check_window, window)

    def publish(self, window: StagedWindow) -> None:
        """See `Sink.publish`."""
        self._call(self.sink.publish, window)

    def is_published(self, window: StagedWindow) -> bool:
        """See `Sink.is_published`."""
        return bool(self._call(self.sink.is_published, window))

    def sweep(self, window: StagedWindow) -> None:
        """See `Sink.sweep`."""
        self._call(self.sink.sweep, window)

    def _call(self, method: Callable[[StagedWindow], Any], window: StagedWindow) -> Any:
        number = window.number if window.number >= 0 else None
        try:
            with within(operator=self.name, window=number):
                return method(window)
        except Exception as error:
            if is_transient(error):
                raise
            raise abort(self.name, number, f"{method.__name__}()", error, None, Cursor()) from error
