"""The interface of progress, and its form for programs: lines of JSON."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from dagflow.runtime.events import Event, line_of


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


def writer(stream: TextIO) -> Callable[[str], None]:
    """Return a function that writes to a stream until its reader is gone: a closed stream must not end a run."""

    def write(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            stream.write(text)
            stream.flush()

    return write
