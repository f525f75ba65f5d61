"""A small file that names the record a task works on. It outlives the process, so a record that kills its worker is found.

A record may end the process that works on it: by `os._exit`, a crash in native code, all memory. No report mentions that. So
tasks that run again write down where they are before each portion of records that a reader hands on; and the one after, in
the portion where its predecessor died, before each record. First attempts write nothing: it would cost each task a file.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import attrs

from dagflow.model.types.plain_data import decode, dumps, encode, loads
from dagflow.model.types.records import POSITION, READER_COLUMNS, ReaderRecord
from dagflow.runtime.run_folder.layout import CRASH_MARKER
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.program import TaskSpec
from dagflow.storage import local_path

_TOLD = 5  # tasks that a message names at the most


@attrs.frozen
class Place:
    """The place at which a task ended: a position in a file, or of a source without files; None: behind its last record."""

    task: str
    path: str
    position: Any

    def __str__(self) -> str:
        position = f"{self.position:,}" if isinstance(self.position, int) else repr(self.position)
        at = f"at {self.path}, position {position}" if self.path else f"at position {position}"
        return f"task {self.task} died {'behind its last record' if self.position is None else at}"

    def look(self) -> str | None:
        """Return a command that shows the bytes at the place, if there is one."""
        plain = local_path(self.path) if self.path and isinstance(self.position, int) else None
        return None if plain is None else f"tail -c +{self.position + 1} {shlex.quote(plain)} | head -1"


class CrashMarker:
    """The file of one task; the next attempt reads in it where the one before died."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._before = _read(path)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def note(self, path: str | None, position: Any) -> None:
        """Note which record comes next. One system call without a sync: the file must outlive the process, not the machine."""
        place = [None if path is None and position is None else encode(position or 0, "a position"), path or ""]
        os.pwrite(self._file, dumps(place) + b"\n", 0)

    def portions(self, path: str | None, records: Any) -> Iterator[Any]:
        """Yield portions of a reader's records, each noted first: one by one where the attempt before died."""
        positions = _positions(records)
        if positions is None:
            yield records
        elif self._is_between(path, positions):
            for number, position in enumerate(positions):
                self.note(path, _plain(position))
                yield records[number : number + 1] if isinstance(records, list) else records.slice(number, 1)
        else:
            self.note(path, _plain(positions[0]))
            yield records

    def each(self, path: str | None, positions: Sequence[Any], records: Iterable[Any]) -> Iterator[Any]:
        """Do the same for the bytes that a reader converts to records, always one by one."""
        is_between = len(positions) > 0 and self._is_between(path, positions)
        for position, record in zip(positions, records, strict=True):
            if is_between:
                self.note(path, _plain(position))
            yield record

    def _is_between(self, path: str | None, positions: Sequence[Any]) -> bool:
        if self._before is None or self._before[0] != (path or ""):
            return False
        before = self._before[1]
        first, last = _plain(positions[0]), _plain(positions[-1])
        if type(before) is not type(first):  # the start of a block whose positions are of another kind
            return False
        return first <= before <= last or before in positions  # positions of a source without files need not be in order

    def leave(self) -> None:
        """Remove the file: the task has ended by itself."""
        with contextlib.suppress(OSError):
            os.close(self._file)
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def open_crash_marker(log: WindowLog, spec: TaskSpec) -> CrashMarker | None:
    """Open the crash marker of a task; None where the run folder is not a local folder, or refuses it."""
    path = _path(log, spec)
    if path is None:
        return None
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return CrashMarker(path)
    except OSError:  # the task itself needs none
        return None


def places(log: WindowLog, tasks: Iterable[TaskSpec], among: Collection[str] = ()) -> list[Place]:
    """Return the places of tasks that have ended without a report. `among`: the names of those that died, if known."""
    marked = []
    for task in tasks:
        path = _path(log, task)
        at = None if path is None or (among and task.name not in among) else _read(path)
        if at is not None and log.read_report(task.report_name) is None:
            marked.append(Place(task.name, *at))
    return marked[:_TOLD]


def _path(log: WindowLog, spec: TaskSpec) -> str | None:
    # by the name of a report, so that it is swept as those are; the same one for all rounds
    folder = local_path(log.store.url)
    return (
        None if folder is None or "://" in log.store.url else f"{folder}/{CRASH_MARKER.name(window=spec.window, task=spec.name)}"
    )


def _read(path: str) -> tuple[str, Any] | None:
    try:
        with open(path, "rb") as file:
            line, end, _ = file.read().partition(b"\n")
        position, source = decode(loads(line)) if end else (None, None)
    except (OSError, ValueError):
        return None
    return None if source is None else (source, position)  # without one, it died before its first record


def _plain(position: Any) -> Any:
    """Return a position as plain data: numpy's integers as Python's."""
    return position if isinstance(position, int | bytes | str) else position.item() if hasattr(position, "item") else position


def _positions(records: Any) -> Sequence[Any] | None:
    """Yield the start of each record that comes from a reader."""
    if isinstance(records, list):
        return [record.position for record in records] if records and isinstance(records[0], ReaderRecord) else None
    names = records.schema.names
    if not set(READER_COLUMNS) <= set(names) or not records.num_rows:
        return None
    positions: Sequence[Any] = records.column(POSITION).to_pylist()
    return positions
