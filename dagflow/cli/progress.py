"""Progress on standard error: subscribers of the run's events."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

from dagflow.errors.shown import visible_lines
from dagflow.render.words import byte_rate, counted, seconds, size
from dagflow.runtime.events import (
    Event,
    RunEnded,
    RunStarted,
    StepRetried,
    Warned,
    WindowDecided,
    WindowPlanned,
    WindowProgress,
    WindowRetried,
    line_of,
    retry_text,
)

QUIET = 1.0  # seconds between two lines of plain progress; changes in between share a line
OFTEN = 10.0  # seconds without a line, after which plain progress says how far a window is


class Progress:
    """Progress that shows nothing; the base of the others. A subscriber and a context manager."""

    def __call__(self, event: Event) -> None:
        """Take an event."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop showing progress."""

    def say(self, text: str) -> None:
        """Show a line that does not come from an event."""


class JsonProgress(Progress):
    """Every event as a line of JSON."""

    def __init__(self, stream: TextIO) -> None:
        self._write = writer(stream)

    def __call__(self, event: Event) -> None:
        """Write the event."""
        self._write(line_of(event))


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
        self._planned: dict[int, WindowPlanned] = {}
        self._decided: list[WindowDecided] = []
        self._since = 0.0

    def say(self, text: str) -> None:
        """Write a line."""
        self._write(visible_lines(text) + "\n")

    def __call__(self, event: Event) -> None:
        """Write the lines that are due after this event."""
        with self._lock:
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self.say(started(event))
        elif isinstance(event, WindowPlanned):
            self._planned[event.window] = event
            if event.at - self._last >= QUIET and not self._decided:
                self._last = event.at
                again = "; an earlier launch planned it, and ended before it was decided" if event.replayed else ""
                self.say(f"window {event.window}: {_work(event)}, {counted(event.tasks, 'task')}{again}")
        elif isinstance(event, Warned):
            self.say(f"warning: {event.text}")
        elif (text := retry_text(event, _pause(event))) is not None:
            self.say(text)
        elif isinstance(event, WindowProgress):
            if event.at - self._last >= OFTEN:
                self._last = event.at
                self.say(f"window {event.window}: {share(event.fraction_consumed)} read")
        elif isinstance(event, WindowDecided):
            self._decided.append(event)
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
        self.say(decided(self._decided, self._planned))
        for event in self._decided:
            self._planned.pop(event.window, None)
        self._decided = []


def _pause(event: Event) -> str:
    delay = event.delay if isinstance(event, WindowRetried | StepRetried) else 0.0
    return f" in {seconds(delay)}" if delay else ""


def started(event: RunStarted) -> str:
    """Return the line for the start of a run."""
    next_window = f"resumes with window {event.first_window}" if event.first_window else "starts with window 0"
    slots = counted(event.slots, "slot")
    return f"running: {slots}, {next_window}" + (f", Spark UI {event.ui}" if event.ui else "")


def decided(windows: list[WindowDecided], planned: dict[int, WindowPlanned]) -> str:
    """Return the figures of windows, with the rate from their plan to their decision."""
    plans = [planned[w.window] for w in windows if w.window in planned]
    first, last = windows[0].window, windows[-1].window
    name = f"window {first}" if first == last else f"windows {first} to {last}"
    read = sum(plan.bytes for plan in plans)
    took = windows[-1].at - min((plan.at for plan in plans), default=windows[-1].at)
    parts = [f"{size(read)} read" if read else "", f"in {seconds(took)}" if plans else "", ""]
    if read and (speed := byte_rate(read, took)):
        parts[2] = f"({speed})"
    done = " ".join(part for part in parts if part)
    files, records = sum(w.files for w in windows), sum(w.records for w in windows)
    wrote = f"{counted(records, 'record')} in {counted(files, 'file')} written, {size(sum(w.bytes for w in windows))}"
    return f"{name} decided: {done}" + (f"; {wrote}" if files else "")


def _work(event: WindowPlanned) -> str:
    items = counted(event.items, "work item")
    return f"{items}, {size(event.bytes)}" if event.bytes else items


class LiveProgress(Progress):
    """One line on a terminal with the state of the run; warnings and retries stay above it."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._live: Any = None
        self._flying: dict[int, WindowPlanned] = {}
        self._consumed: dict[int, float] = {}
        self._windows = self._read = self._written = 0
        self._status = "starting"

    def __enter__(self) -> LiveProgress:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream)
        # operators that print to a terminal go through the console, so that the live line stays below; into a pipe they do not
        to_terminal = sys.stdout.isatty()
        self._live = Live(
            get_renderable=self.line, console=console, transient=True, refresh_per_second=4, redirect_stdout=to_terminal
        )
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Remove the live line."""
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(OSError):
                live.stop()

    def say(self, text: str) -> None:
        """Write a line above the live line."""
        if self._live is not None:
            self._live.console.print(visible_lines(text), markup=False, highlight=False, soft_wrap=True)

    def __call__(self, event: Event) -> None:
        """Note the state of the run, and write a line above if there is news."""
        if isinstance(event, RunStarted):
            self._status = "waiting for input"
            self.say(started(event))
        elif isinstance(event, WindowPlanned):
            self._flying[event.window] = event
        elif isinstance(event, Warned):
            self.say(f"warning: {event.text}")
        elif (text := retry_text(event, _pause(event))) is not None:
            self.say(text)
        elif isinstance(event, WindowProgress):
            self._consumed[event.window] = event.fraction_consumed
        elif isinstance(event, WindowDecided):
            self._consumed.pop(event.window, None)
            plan = self._flying.pop(event.window, None)
            self._windows += 1
            self._read += plan.bytes if plan is not None else 0
            self._written += event.records

    def _read_of(self, window: int) -> str:
        return f", {share(self._consumed[window])} read" if window in self._consumed else ""

    def line(self) -> Any:
        """The state of the run, as one line."""
        from rich.text import Text

        took = self._clock() - self._began
        flying = ", ".join(
            f"{window} ({counted(plan.tasks, 'task')}{self._read_of(window)})" for window, plan in sorted(self._flying.items())
        )
        parts = [f"window {flying}" if flying else self._status, f"{counted(self._windows, 'window')} done"]
        if self._read:
            parts.append(f"{size(self._read)} read ({byte_rate(self._read, took)})")
        if self._written:
            parts.append(f"{counted(self._written, 'record')} written")
        return Text(" · ".join([*parts, seconds(round(took) or took)]), no_wrap=True, overflow="ellipsis")


def share(fraction: float) -> str:
    """A fraction in percent.

    >>> share(0.4267)
    '42 %'
    """
    return f"{int(fraction * 100)} %"


def writer(stream: TextIO) -> Callable[[str], None]:
    """Return a function that writes to a stream until its reader is gone: a closed stream must not end a run."""

    def write(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            stream.write(text)
            stream.flush()

    return write


def make_progress(kind: str, stream: TextIO) -> Progress:
    """The progress that `--progress` names; `auto` is live on a terminal that can move its cursor, else plain."""
    if kind == "auto":
        can_move = stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
        kind = "live" if can_move else "plain"
    if kind == "live":
        return LiveProgress(stream)
    return {"plain": PlainProgress, "json": JsonProgress}[kind](stream) if kind != "none" else Progress()
