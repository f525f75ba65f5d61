"""Progress on a terminal: a line with the state of the run, a table of its operators, and above them what stays."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

from dagflow.cli.progress.base import Progress
from dagflow.cli.progress.state import RunState
from dagflow.cli.progress.words import pause_text, share, started, work_left
from dagflow.errors.shown import visible, visible_lines
from dagflow.render.words import byte_rate, counted, seconds, size
from dagflow.runtime.events import Event, LeaseAwaited, RunStarted, Warned, retry_text

SEPARATOR = " · "
MIN_HEIGHT = 6  # lines of a terminal that shows the table too


class LiveProgress(Progress):
    """The state of the run on a terminal, redrawn in place; warnings and retries stay above it."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._live: Any = None
        self._state = RunState(clock)

    def __enter__(self) -> LiveProgress:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream)
        # operators that print to a terminal go through the console, so that the display stays below; into a pipe they do not
        to_terminal = sys.stdout.isatty()
        self._live = Live(
            get_renderable=lambda: self.display(console.width, console.height),
            console=console,
            transient=True,
            refresh_per_second=4,
            redirect_stdout=to_terminal,
        )
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Remove the display."""
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(OSError):
                live.stop()

    def say(self, text: str) -> None:
        """Write a line above the display."""
        if self._live is not None:
            self._live.console.print(visible_lines(text), markup=False, highlight=False, soft_wrap=True)

    def __call__(self, event: Event) -> None:
        """Note the state of the run, and write a line above if there is news."""
        self._state(event)
        if isinstance(event, RunStarted):
            self.say(started(event))
        elif isinstance(event, LeaseAwaited):
            self.say(event.text())
        elif isinstance(event, Warned):
            self.say(f"warning: {event.text}")
        elif (text := retry_text(event, pause_text(event))) is not None:
            self.say(text)

    def display(self, width: int, height: int) -> Any:
        """The head line and, where there is room and something to show, the table of operators."""
        from rich.text import Text

        from dagflow.cli.progress.table import table_lines, waiting_lines, wrapped

        head = wrapped(self.parts(), width)
        text = Text("\n".join(head), no_wrap=True, overflow="ellipsis")
        operators = visible(self._state.operators()) if height >= MIN_HEIGHT else []
        waiting = waiting_lines(operators, width, min(3, height - 4 - len(head)))
        for number, line in enumerate(table_lines(operators, width, height - 1 - len(head) - len(waiting))):
            text.append(f"\n{line}", style="bold" if number == 0 else "")
        for line in waiting:
            text.append(f"\n{line}", style="yellow")
        return text

    def _read_of(self, window: int) -> str:
        return f", {share(self._state.consumed[window])} read" if window in self._state.consumed else ""

    def line(self) -> str:
        """The state of the run, as one line."""
        return SEPARATOR.join(self.parts())

    def parts(self) -> list[str]:
        """The state of the run, in parts that stay together."""
        state = self._state
        took = self._clock() - self._began
        open_windows = ", ".join(
            f"{window} ({counted(plan.tasks, 'task')}{self._read_of(window)})" for window, plan in sorted(state.open.items())
        )
        parts = [f"window {open_windows}" if open_windows else state.status, f"{counted(state.windows, 'window')} done"]
        if reason := state.why_all_wait():
            parts.insert(0, visible(reason))
        if state.read:
            parts.append(f"{size(state.read)} read ({byte_rate(state.read, took)})")
        if state.written:
            parts.append(f"{counted(state.written, 'record')} written")
        if state.progress is not None and state.open:
            parts += work_left(state.progress)
        return [*parts, f"{seconds(round(took) or took)} so far"]
