"""Progress as plain lines, for files, logs and pipes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TextIO

from dagflow.cli.progress.base import Progress, writer
from dagflow.cli.progress.words import decided, how_far, notice, share, work_of
from dagflow.errors.shown import visible_lines
from dagflow.render.words import counted
from dagflow.runtime.events import (
    Event,
    OperatorProgress,
    RunEnded,
    WindowDecided,
    WindowPlanned,
    WindowProgress,
)
from dagflow.runtime.run_view import RunView, WindowView

QUIET = 1.0  # seconds between two lines of plain progress; changes in between share a line
OFTEN = 10.0  # seconds without a line, after which plain progress says how far a window is


def after(delay: float, action: Callable[[], None]) -> None:
    """Call a function in a thread of its own, after some seconds."""
    timer = threading.Timer(delay, action)
    timer.daemon = True
    timer.start()


class PlainProgress(Progress):
    """A line for each change of a window's state, at most one a second: changes in between share a line.

    Args:
        later: calls a function after some seconds. A run that waits for input has no events, and its last line must not wait too.
    """

    def __init__(self, stream: TextIO, later: Callable[[float, Callable[[], None]], None] = after) -> None:
        self._write = writer(stream)
        self._later = later
        self._lock = threading.Lock()
        self._last = float("-inf")
        self._run = RunView()
        self._decided: list[tuple[WindowDecided, WindowView]] = []
        self._rated: OperatorProgress | None = None

    def say(self, text: str) -> None:
        """Write a line."""
        self._write(visible_lines(text) + "\n")

    def __call__(self, event: Event) -> None:
        """Write the lines that are due after this event."""
        with self._lock:
            self._take(event)

    def _take(self, event: Event) -> None:
        self._run(event)
        if (text := notice(event)) is not None:
            self.say(text)
        elif isinstance(event, WindowPlanned):
            if event.at - self._last >= QUIET and not self._decided:
                self._last = event.at
                again = "; an earlier launch planned it, and ended before it was decided" if event.replayed else ""
                self.say(f"window {event.window}: {work_of(event)}, {counted(event.tasks, 'task')}{again}")
        elif isinstance(event, WindowProgress):
            if event.at - self._last >= OFTEN:
                self._last = event.at
                self.say(f"window {event.window}: {share(event.fraction_consumed)} read")
        elif isinstance(event, OperatorProgress):
            if event.at - self._last >= OFTEN and self._run.open:
                self._last = event.at
                self.say(f"window {min(self._run.open)}: {how_far(event, self._rated)}")
                self._rated = event
        elif isinstance(event, WindowDecided):
            self._decided.append((event, self._run.windows[event.window]))
            if event.at - self._last >= QUIET:
                self._tell(event.at)
            elif len(self._decided) == 1:
                self._later(QUIET - (event.at - self._last), self._tell_held_back)
        elif isinstance(event, RunEnded):
            self._tell(event.at)

    def _tell_held_back(self) -> None:
        with self._lock:
            self._tell(self._last + QUIET)

    def _tell(self, now: float) -> None:
        if not self._decided:
            return
        self._last = now
        self.say(decided(self._decided, self._run.report.sinks))
        self._decided = []
