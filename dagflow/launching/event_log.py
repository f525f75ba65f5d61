"""The events of a run as log records of the logger `dagflow.run`, for applications and log collectors that use `logging`."""

from __future__ import annotations

import logging

from dagflow.runtime.events import Event, LeaseAwaited, RunEnded, RunStarted, Warned, WindowDecided, line_of, retry_text

LOGGER = logging.getLogger("dagflow.run")
logging.getLogger("dagflow").addHandler(logging.NullHandler())  # without handlers of the application, nothing is printed


def log_event(event: Event) -> None:
    """Log an event. A subscriber of the run's events."""
    level, text = record_of(event)
    if LOGGER.isEnabledFor(level):
        window = getattr(event, "window", None)
        extra = {"event": event.kind, **({} if window is None else {"window": window})}
        LOGGER.log(level, "%s", text or line_of(event).rstrip(), extra=extra)


def record_of(event: Event) -> tuple[int, str]:
    """Return the level and the text of an event. Events that are of interest only to programs have no text.

    >>> record_of(WindowDecided(window=3, files=2, bytes=4096, records=100))
    (20, 'window 3 decided: records 100, files 2, bytes 4096')
    """
    if isinstance(event, Warned):
        return logging.WARNING, event.text
    if isinstance(event, LeaseAwaited):
        return logging.INFO, event.text()
    if (text := retry_text(event)) is not None:
        return logging.WARNING, text
    if isinstance(event, RunStarted):
        return logging.INFO, f"{event.application} started on {event.runner} with window {event.first_window}: {event.run_folder}"
    if isinstance(event, WindowDecided):
        return logging.INFO, f"window {event.window} decided: records {event.records}, files {event.files}, bytes {event.bytes}"
    if isinstance(event, RunEnded):
        levels = {"done": logging.INFO, "failed": logging.ERROR}
        text = f"run {event.status}: windows {event.windows}, seconds {event.seconds}"
        return levels.get(event.status, logging.WARNING), f"{text}: {event.error}" if event.error else text
    return logging.DEBUG, ""
