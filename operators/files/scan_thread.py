"""The thread in which a scanner scans: it works on request, and never runs far ahead of the scanner that takes its files."""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator

from dagflow import OperatorContext
from dagflow.errors import DagflowError
from operators.files.errors import ScanFailed
from operators.files.tree import Visit

MOST_WAITING = 200_000  # files that have been found and not taken; then the scan waits


class ScanThread:
    """Runs `scan` each time it is requested; the first time at once.

    The thread waits for events, never for time. The caller of `request_after` decides whether a scan is due, by the
    context's clock. `scan(at)` yields what it finds, and calls `at(path)` with the path at which it is.
    """

    def __init__(self, scan: Callable[[Callable[[str], None]], Iterator[Visit]], context: OperatorContext) -> None:
        self._scan = scan
        self._clock = context.clock
        self._operator = context.name
        self._changed = threading.Condition()
        self._visits: deque[Visit] = deque()
        self._waiting = 0
        self._requested = True
        self._scanning = False
        self._stopped = False
        self._finished = 0.0
        self._error: BaseException | None = None
        self._at = ""
        self._thread = threading.Thread(target=self._run, name=f"dagflow-scanner-{context.name}", daemon=True)

    def start(self) -> None:
        """Start the thread, and the first scan."""
        self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """End the thread, also in the middle of a scan. Stop waiting for it after `seconds` (a file system may hang)."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._thread.join(seconds)

    def request(self) -> None:
        """Ask for a scan; during one, for another right after it."""
        with self._changed:
            self._requested = True
            self._changed.notify_all()

    def request_after(self, seconds: float) -> None:
        """Ask for a scan when the last one ended that long ago and all that it found has been taken."""
        with self._changed:
            if self._idle() and self._error is None and self._clock.monotonic() - self._finished >= seconds:
                self._requested = True
                self._changed.notify_all()

    def take(self, seconds: float) -> Visit | None:
        """Return the next file of the scan. Waits at most `seconds` while a scan runs. Raises the error that ended the thread."""
        with self._changed:
            if not self._visits and seconds > 0:
                self._changed.wait_for(self._has_news, seconds)
            if self._error is not None:
                raise self._error
            if not self._visits:
                return None
            visit = self._visits.popleft()
            self._waiting -= len(visit.found)
            self._changed.notify_all()
            return visit

    def waiting(self) -> tuple[Visit, ...]:
        """Return what has been found and not been taken."""
        with self._changed:
            return tuple(self._visits)

    def is_idle(self) -> bool:
        """Return True if there is nothing to take, and no scan under way or asked for."""
        with self._changed:
            return self._idle() and self._error is None

    def is_alive(self) -> bool:
        """Return True if the thread runs."""
        return self._thread.is_alive()

    def _idle(self) -> bool:
        return not (self._visits or self._scanning or self._requested)

    def _has_news(self) -> bool:
        return self._idle() or bool(self._visits) or self._error is not None or self._stopped

    def _run(self) -> None:
        while self._begin():
            try:
                for visit in self._scan(self._note):
                    if not self._put(visit):
                        return
            except BaseException as error:  # noqa: BLE001  # whatever it is, it ends the run in the operator's thread
                with self._changed:
                    self._error = self._worded(error)
                    self._scanning = False
                    self._changed.notify_all()
                return
            with self._changed:
                self._scanning = False
                self._finished = self._clock.monotonic()
                self._changed.notify_all()

    def _begin(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._requested or self._stopped)
            if self._stopped:
                return False
            self._requested, self._scanning = False, True
            return True

    def _put(self, visit: Visit) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting < MOST_WAITING or self._stopped)
            if self._stopped:
                return False
            self._visits.append(visit)
            self._waiting += len(visit.found)
            self._changed.notify_all()
            return True

    def _note(self, path: str) -> None:
        self._at = path

    def _worded(self, error: BaseException) -> BaseException:
        if isinstance(error, DagflowError):
            return error
        frames = traceback.extract_tb(error.__traceback__)
        at = f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
        text = "".join(traceback.format_exception_only(error)).strip()
        failed = ScanFailed(operator=self._operator, path=self._at, error=text, at=at)
        failed.__cause__ = error
        return failed
