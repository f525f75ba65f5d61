"""Events on disk: one line of JSON each, in files of bounded size and number."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from dagflow.runtime.events import Event, EventStream, OperatorProgress, Subscriber, Warned, line_of
from dagflow.runtime.run_folder.layout import EVENTS
from dagflow.storage import local_path

FILE_BYTES = 4 << 20
"""A file of more bytes than this is put aside, as `LAUNCH.0001.jsonl`, and a new one is begun."""
FILES = 100
"""The number of files that are kept, over all launches. The oldest are removed."""
PROGRESS_BYTES = 4096
"""Bytes a second that `operator_progress` may take: with hundreds of operators, some of these events are left out."""


class EventsFile:
    """Writes every event to `events/LAUNCH.jsonl` of the run folder, where that is a local folder. A context manager.

    As long as it can: a full disk ends the file, not the run. The other readers of the stream are told.
    """

    def __init__(self, run_folder: str, launch_id: str, events: EventStream) -> None:
        self._events = events
        folder = local_path(run_folder)
        self._path = None if folder is None else os.path.join(folder, EVENTS.name(stream=launch_id))
        self._file: Any = None
        self._size = 0
        self._aside = 0
        self._progress_due = 0.0

    def __enter__(self) -> Subscriber:
        if self._path is None:
            return lambda event: None
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            self._open(self._path)
        except OSError as error:
            self._give_up(error)
        return self._write

    def __exit__(self, *error: object) -> None:
        self._close()

    def _open(self, path: str) -> None:
        folder = os.path.dirname(path)
        for name in sorted(name for name in os.listdir(folder) if EVENTS.match(f"{EVENTS.folder}/{name}"))[: 1 - FILES]:
            os.unlink(os.path.join(folder, name))
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115  # closed in __exit__
        self._size = 0

    def _close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._file = None

    def _write(self, event: Event) -> None:
        if self._file is None or self._path is None:
            return
        if isinstance(event, OperatorProgress) and event.at < self._progress_due:
            return
        line = line_of(event).encode("utf-8", "backslashreplace")  # bytes of a path that are not UTF-8 are escaped
        if isinstance(event, OperatorProgress):
            self._progress_due = event.at + len(line) / PROGRESS_BYTES
        try:
            if self._size + len(line) > FILE_BYTES:
                self._close()
                self._aside += 1
                os.rename(self._path, f"{self._path.removesuffix('.jsonl')}.{self._aside:04d}.jsonl")
                self._open(self._path)
            self._file.write(line)
            self._size += len(line)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._close()
        self._events.send(Warned(text=f"{self._path}: no further events are written: {error.strerror or error}"))
