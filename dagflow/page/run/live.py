"""The events of the launches of a run folder; those of the newest one are folded as they are written."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import BinaryIO

from dagflow.errors import DagflowError
from dagflow.runtime.events import Event, read_event
from dagflow.runtime.run_folder.layout import EVENTS
from dagflow.runtime.run_view import RunView
from dagflow.storage import Store, base_name, inside, local_path, open_store
from dagflow.storage.errors import PathOutside
from dagflow.storage.records.bounded import max_bytes, open_regular

MAX_BYTES = 256 << 20
"""Of the events of a launch, at most so much is read: the newest files."""
ENDS = 1 << 16
"""Bytes at the beginning and at the end of the events of an earlier launch that are read."""
LISTED_EVERY = 10.0  # seconds between two listings of events in an object store


class EventFiles:
    """The event files of a run folder. `update` reads what has been added since the last call.

    Those of an object store never change: each is copied to a temporary folder once it is asked for.
    """

    def __init__(self, run_folder: str) -> None:
        top = local_path(run_folder)
        self._copies = None
        if top is None:
            self._copies = _Copies(open_store(run_folder, durable=False))
            top = self._copies.folder
        self._top = top
        self._read: dict[tuple[int, int], int] = {}  # by the number of the file, which keeps it when it is put aside
        self._summaries: dict[str, RunView] = {}
        self.newest: RunView | None = None
        self.skipped_bytes = 0
        self.refused: dict[str, str] = {}
        """Files that no launch has written, each with the reason. They are not read."""

    def update(self) -> None:
        """Read what is new. A line that is only half written waits for the next call."""
        launches = self._launches()
        if not launches:
            return
        name = max(launches)
        if self.newest is None or self.newest.launch != name:
            self.newest, self._read = RunView(launch=name, keeps_windows=True), {}
            self.skipped_bytes = self._skipped(launches[name])
        skip = self.skipped_bytes
        for file_name in launches[name]:
            skip = self._add(file_name, skip)

    def earlier(self) -> Iterator[RunView]:
        """Yield each earlier launch, newest first, as far as its first and its last events tell of it."""
        launches = self._launches()
        for name in sorted(launches, reverse=True)[1:]:
            if name not in self._summaries:
                view = self._summaries[name] = RunView(launch=name)
                for event in self._ends(launches[name]):
                    view(event)
            yield self._summaries[name]

    def events(self, launch: str) -> Iterator[Event]:
        """Yield the events of a launch that can be read, without the oldest ones of very many."""
        names = self._launches().get(launch, [])
        skip = self._skipped(names)
        for name in names:
            with self._opened(name) as (file, size):
                file.seek(begin := min(skip, size))
                skip -= begin
                lines = file.read(size - begin).splitlines()
            yield from (event for line in lines if (event := read_event(line)) is not None)

    def _skipped(self, names: Sequence[str]) -> int:
        """Return how many bytes to skip of the files of a launch."""
        total = 0
        for name in names:
            with self._opened(name) as (_, size):
                total += size
        return max(0, total - MAX_BYTES)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[BinaryIO, int]]:
        """Open a file of events, and return it with its size. One that is gone, or that no launch has written, is empty."""
        record = f"{EVENTS.folder}/{name}"
        try:
            if self._copies is not None:
                self._copies.make(name)
            descriptor, status = open_regular(inside(self._top, record))
        except (OSError, DagflowError) as error:
            if not isinstance(error, FileNotFoundError):  # put aside or removed just now
                self.refused[name] = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            yield io.BytesIO(), 0
            return
        with os.fdopen(descriptor, "rb") as file:
            if status.st_size > (limit := max_bytes(record)):
                self.refused[name] = f"its {status.st_size:,} bytes are more than the {limit:,} that it can have"
                yield io.BytesIO(), 0
            else:
                yield file, status.st_size

    def _ends(self, names: Sequence[str]) -> Iterator[Event]:
        """Yield the first and the last events of a launch."""
        with self._opened(names[0]) as (file, _):
            lines = file.read(ENDS).splitlines()[:20]
        with self._opened(names[-1]) as (file, size):
            file.seek(max(0, size - ENDS))
            lines += file.read().splitlines()[-5:]
        yield from (event for line in lines if (event := read_event(line)) is not None)

    def _launches(self) -> dict[str, list[str]]:
        """Return the names of the files of each launch, oldest first: those that were put aside have numbers."""
        names: list[str] = []
        if self._copies is not None:
            names = self._copies.names()
        else:
            with suppress(OSError, PathOutside):  # there are none yet, or the folder is a link to elsewhere
                names = os.listdir(inside(self._top, EVENTS.folder))
        launches: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda name: (name.count(".") < 2, name)):
            if EVENTS.match(f"{EVENTS.folder}/{name}"):
                launches.setdefault(name.partition(".")[0], []).append(name)
        return launches

    def _add(self, name: str, skip: int) -> int:
        """Add the new lines of a file, behind its first `skip` bytes; return how much there is to skip in the next one."""
        assert self.newest is not None
        with self._opened(name) as (file, size):
            if size:
                status = os.fstat(file.fileno())
                key = (status.st_dev, status.st_ino)
                begin = self._read.get(key, min(skip, size))
                file.seek(begin)
                data = file.read(max(0, size - begin))
                whole = data.rfind(b"\n") + 1
                self._read[key] = begin + whole
                for line in data[:whole].splitlines():
                    if (event := read_event(line)) is not None:
                        self.newest(event)
            return max(0, skip - size)


class _Copies:
    """Copies of the event files of a run folder in an object store, in a temporary folder."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.folder = tempfile.mkdtemp(prefix="dagflow-events-")
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        os.mkdir(os.path.join(self.folder, EVENTS.folder))
        self._names: list[str] = []
        self._listed = float("-inf")

    def names(self) -> list[str]:
        """Return the names of the files, as they were some seconds ago: a page that is open asks each second."""
        if time.monotonic() - self._listed >= LISTED_EVERY:
            self._names = [base_name(name) for name in self._store.names(f"{EVENTS.folder}/")]
            self._listed = time.monotonic()
        return self._names

    def make(self, name: str) -> None:
        """Copy a file, if there is no copy of it. One that is gone is left out."""
        path = os.path.join(self.folder, EVENTS.folder, name)
        if os.path.exists(path):
            return
        data = self._store.read(f"{EVENTS.folder}/{name}")
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)
