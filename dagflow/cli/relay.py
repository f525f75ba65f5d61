"""Output of operators on standard error: relayed line by line, so that it does not break the lines of a display or of JSON.

Worker processes, and the JVM with its Python workers, write to the standard error that they inherit. There they would write into
the live lines of a terminal, and into lines of JSON. So they inherit a pipe, and a thread passes on its lines: to `sys.stderr`,
which a live display redirects, or as events.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from typing import TextIO

from dagflow.config import RunSettings
from dagflow.runtime.events import OutputLine, line_of

_STDERR = 2
_LAST_WORDS = 0.1  # seconds that the last lines get to arrive
_DRAINED = 2.0  # seconds at most until all lines that have arrived are passed on
_OF_LOG_LINES = {"at", "level", "logger", "message"}


class OutputRelay:
    """A pipe in the place of standard error. Create it before children start, then call `start`.

    `as_events`: lines become events, also those that this process writes to `sys.stderr`. Write lines of JSON to `events` then.
    """

    def __init__(self, as_events: bool = False) -> None:
        sys.stderr.flush()
        self._as_events = as_events
        self._target = os.dup(_STDERR)
        self._reading, writing = os.pipe()
        os.dup2(writing, _STDERR)
        os.close(writing)
        self._before = sys.stderr
        self._thread: threading.Thread | None = None
        encoding = sys.stderr.encoding
        self.events: TextIO = os.fdopen(os.dup(self._target), "w", buffering=1, encoding=encoding, errors="backslashreplace")

    def start(self) -> None:
        """Begin to relay lines. Fork before this call, since it starts a thread."""
        if not self._as_events:
            sys.stderr = self.events
        self._thread = threading.Thread(target=self._pass_on, name="dagflow-output", daemon=True)
        self._thread.start()

    def _pass_on(self) -> None:
        with os.fdopen(self._reading, encoding="utf-8", errors="backslashreplace") as lines:
            for line in lines:
                with contextlib.suppress(OSError, ValueError):
                    stream, text = (self.events, event_line(line)) if self._as_events else (sys.stderr, line)
                    stream.write(text)
                    stream.flush()

    def close(self) -> None:
        """Restore standard error. Output of children that still run, such as a JVM that is ending, is lost."""
        sys.stderr.flush()
        os.dup2(self._target, _STDERR)
        os.close(self._target)
        if self._thread is not None:
            self._thread.join(_LAST_WORDS)
            deadline = time.monotonic() + _DRAINED
            while self._has_unread() and time.monotonic() < deadline:
                self._thread.join(_LAST_WORDS)
        sys.stderr.flush()
        sys.stderr = self._before

    def _has_unread(self) -> bool:
        if self._thread is None or not self._thread.is_alive():
            return False
        try:
            return bool(select.select([self._reading], [], [], 0)[0])
        except (OSError, ValueError):  # the thread has just closed it
            return False


def event_line(line: str) -> str:
    """Return a line of output as an event. Log records in JSON stay as they are."""
    text = line.removesuffix("\n")
    return f"{text}\n" if _is_log_record(text) else line_of(OutputLine(at=round(time.time(), 6), text=text))


def _is_log_record(line: str) -> bool:
    if not line.startswith("{"):
        return False
    try:
        values = json.loads(line)
    except ValueError:
        return False
    return isinstance(values, dict) and "event" not in values and values.keys() >= _OF_LOG_LINES


@contextlib.contextmanager
def relayed_output(settings: RunSettings | None) -> Iterator[OutputRelay | None]:
    """Yield a relay if standard error is a terminal or its lines are JSON, else None. The relay is closed at the end.

    `settings`: as they are before the application is loaded; None if they are wrong.
    """
    has_events = settings is not None and settings.progress == "json"
    is_json = has_events or (settings is not None and settings.log_format == "json")
    try:
        is_relayed = sys.stderr.fileno() == _STDERR and (is_json or sys.stderr.isatty())
    except (OSError, ValueError, AttributeError):
        is_relayed = False
    if not is_relayed:
        yield None
        return
    with contextlib.closing(OutputRelay(has_events)) as relay:
        yield relay
