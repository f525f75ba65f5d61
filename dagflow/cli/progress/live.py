"""Progress on a terminal: a line with the state of the run, a table of its operators, and above them what stays."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TextIO

from dagflow.cli.progress.base import Progress
from dagflow.cli.progress.words import doing_of, notice, share, work_left
from dagflow.errors.shown import visible, visible_lines
from dagflow.render.words import byte_rate, counted, seconds, size
from dagflow.runtime.events import (
    Event,
    StepRetried,
    WindowRetried,
    WindowStarted,
)
from dagflow.runtime.run_view import RunView, WindowView

SEPARATOR = " · "
MIN_HEIGHT = 6  # lines of a terminal that shows the table too


class LiveProgress(Progress):
    """The state of the run on a terminal, redrawn in place; warnings and retries stay above it."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._live: Any = None
        self._run = RunView()
        self._pause: tuple[float, str] | None = None

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
        self._run(event)
        if isinstance(event, WindowRetried | StepRetried):
            self._pause = (self._clock() + event.delay, doing_of(event)) if event.delay else None
        elif isinstance(event, WindowStarted):
            self._pause = None
        if (text := notice(event)) is not None:
            self.say(text)

    def display(self, width: int, height: int) -> Any:
        """The head line and, where there is room and something to show, the table of operators."""
        from rich.text import Text

        from dagflow.cli.progress.table import operator_lines, table_lines, waiting_lines, wrapped

        head = wrapped(self.parts(), width)
        text = Text("\n".join(head), no_wrap=True, overflow="ellipsis")
        operators = visible(operator_lines(self._run)) if height >= MIN_HEIGHT else []
        waiting = waiting_lines(operators, width, min(3, height - 4 - len(head)))
        for number, line in enumerate(table_lines(operators, width, height - 1 - len(head) - len(waiting))):
            text.append(f"\n{line}", style="bold" if number == 0 else "")
        for line in waiting:
            text.append(f"\n{line}", style="yellow")
        return text

    def line(self) -> str:
        """The state of the run, as one line."""
        return SEPARATOR.join(self.parts())

    def parts(self) -> list[str]:
        """The state of the run, in parts that stay together."""
        run, took = self._run, self._clock() - self._began
        open_windows = ", ".join(map(_window, sorted(run.open.values(), key=lambda window: window.window)))
        parts = [f"window {open_windows}" if open_windows else self._status(), f"{counted(run.decided, 'window')} done"]
        if reason := self.why_all_wait():
            parts.insert(0, visible(reason))
        if run.read:
            parts.append(f"{size(run.read)} read ({byte_rate(run.read, took)})")
        if run.records:
            parts.append(f"{counted(run.records, 'record')} written")
        if run.progress is not None and open_windows:
            parts += work_left(run.progress)
        return [*parts, f"{seconds(round(took) or took)} so far"]

    def why_all_wait(self) -> str:
        """Return why the run waits; empty if it does not."""
        if self._pause is not None and (left := self._pause[0] - self._clock()) > 0:
            return f"{self._pause[1]} in {max(1, round(left))} s"
        return self._run.progress.waiting.get("", "") if self._run.progress is not None and self._run.open else ""

    def _status(self) -> str:
        if self._run.started is None and self._run.awaited is not None:
            return f"waiting for the lease of the launch on {visible(self._run.awaited.host)}"
        return "starting" if self._run.started is None else "waiting for input"


def _window(window: WindowView) -> str:
    read = "" if window.fraction is None else f", {share(window.fraction)} read"
    return f"{window.window} ({counted(window.tasks, 'task')}{read})"
