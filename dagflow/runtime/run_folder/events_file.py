"""Events in the run folder: one line of JSON each, in files of bounded size and number."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from dagflow.runtime.events import Event, EventStream, OperatorProgress, RunEnded, Subscriber, Warned, WindowPlanned, line_of
from dagflow.runtime.run_folder.layout import EVENTS
from dagflow.storage import Store, local_path, open_store
from dagflow.storage.errors import StorageError

FILE_BYTES = 4 << 20
"""A file of more bytes than this is put aside, as `LAUNCH.0001.jsonl`, and a new one is begun."""
FILES = 100
"""The number of files that are kept, over all launches. The oldest are removed."""
PROGRESS_BYTES = 4096
"""Bytes a second that `operator_progress` may take: with hundreds of operators, some of these events are left out."""
OBJECT_SECONDS, OBJECT_BYTES = 30.0, 1 << 20
"""In an object store, events are kept back for so long, or until they are so many bytes: each write is a request."""


def event_writer(run_folder: str, launch_id: str, events: EventStream) -> EventsFile | EventObjects:
    """Return the writer of a launch's events into its run folder. A context manager, which gives the subscriber."""
    folder = local_path(run_folder)
    if folder is None:
        return EventObjects(open_store(run_folder, durable=False), launch_id, events)
    return EventsFile(os.path.join(folder, EVENTS.name(stream=launch_id)), events)


class _Lines:
    """Makes the line of an event, or leaves it out."""

    def __init__(self) -> None:
        self._progress_due = 0.0

    def line(self, event: Event) -> bytes | None:
        if isinstance(event, OperatorProgress) and event.at < self._progress_due:
            return None
        line = line_of(event).encode("utf-8", "backslashreplace")  # bytes of a path that are not UTF-8 are escaped
        if isinstance(event, OperatorProgress):
            self._progress_due = event.at + len(line) / PROGRESS_BYTES
        return line


class EventsFile:
    """Writes every event to a file, `events/LAUNCH.jsonl` of a local run folder.

    As long as it can: a full disk ends the file, not the run. The other readers of the stream are told.
    """

    def __init__(self, path: str, events: EventStream) -> None:
        self._path, self._events = path, events
        self._lines = _Lines()
        self._file: Any = None
        self._size = 0
        self._aside = 0

    def __enter__(self) -> Subscriber:
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
        if self._file is None or (line := self._lines.line(event)) is None:
            return
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


class EventObjects:
    """Writes the events of a launch to a run folder in an object store, as `events/LAUNCH.0001.jsonl` and so on.

    Twice a minute and at the end. A launch that neither plans a window nor fails writes none. A store that takes none ends the
    writing, not the run.
    """

    def __init__(self, store: Store, launch_id: str, events: EventStream) -> None:
        self._store, self._launch, self._events = store, launch_id, events
        self._lines = _Lines()
        self._waiting: list[bytes] = []
        self._since = 0.0
        self._matters = False
        self._written = 0
        self._is_over = False

    def __enter__(self) -> Subscriber:
        return self._write

    def __exit__(self, *error: object) -> None:
        if self._matters and self._waiting:
            self._flush()

    def _write(self, event: Event) -> None:
        line = None if self._is_over else self._lines.line(event)
        if line is None:
            return
        if not self._waiting:
            self._since = event.at
        self._waiting.append(line)
        self._matters |= isinstance(event, WindowPlanned) or (isinstance(event, RunEnded) and event.status != "done")
        is_due = event.at - self._since >= OBJECT_SECONDS and self._matters
        if is_due or sum(map(len, self._waiting)) > OBJECT_BYTES:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            if not self._written and len(old := self._store.names(f"{EVENTS.folder}/")) >= FILES:
                self._store.discard_all(old[: len(old) - FILES + 1])
            self._written += 1
            self._store.create(EVENTS.name(stream=f"{self._launch}.{self._written:04d}"), b"".join(waiting))
        except (StorageError, OSError) as error:
            self._is_over = True
            self._events.send(Warned(text=f"{self._store.url}: no further events are written: {error}"))
