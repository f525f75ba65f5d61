"""The files that a task's sink writes: buffered, and only so many open at once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import attrs

from operators.sinks.errors import FileNameRefused

WRITE_BYTES = 256 * 1024
"""Writes to a file are at least this long, but for the last one before it is closed."""


@attrs.define
class _Open:
    file: Any
    pending: list[bytes | memoryview] = attrs.field(factory=list)
    size: int = 0

    def flush(self) -> None:
        if self.pending:
            self.file.write(self.pending[0] if len(self.pending) == 1 else b"".join(self.pending))
            self.pending.clear()
            self.size = 0


@attrs.define
class OpenFiles:
    """Writes to files by name. The least recently used is closed when `limit` are open, and appended to when it is needed again.

    Args:
        create: opens an attempt file of a name; the second time within a task it is the same file, appended to.
        limit: how many are open at once; each holds at most 256 KiB that are not written yet.
        operator: named in errors.
    """

    create: Callable[[str], Any]
    limit: int
    operator: str
    _open: OrderedDict[str, _Open] = attrs.field(factory=OrderedDict, init=False)

    def append(self, name: str, data: bytes | memoryview, records: int) -> None:
        """Appends `data`, which holds so many records, to the file `name`. Raises FileNameRefused."""
        current = self.of(name)
        size = len(data)
        if size >= WRITE_BYTES:  # not copied
            current.flush()
            current.file.write(data)
        else:
            current.pending.append(bytes(data))  # a view would keep its whole batch alive
            current.size += size
        if records:
            current.file.records(records)  # at once: so it is known of which record a row was made
        if current.size >= WRITE_BYTES:
            current.flush()

    def of(self, name: str) -> _Open:
        """The open file of this name."""
        current = self._open.get(name)
        if current is None:
            check_name(name, self.operator)
            while len(self._open) >= self.limit:
                self._close(self._open.popitem(last=False)[1])
            current = self._open[name] = _Open(self.create(name))
        elif len(self._open) > 1:
            self._open.move_to_end(name)
        return current

    def close(self) -> None:
        """Writes what is pending and closes all files."""
        while self._open:
            self._close(self._open.popitem(last=False)[1])

    def _close(self, opened: _Open) -> None:
        opened.flush()
        opened.file.close()


def check_name(name: object, operator: str) -> None:
    """Raises FileNameRefused for names that leave the output folder, or are kept for dagflow."""
    if not isinstance(name, str):
        reason = f"it is of type {type(name).__name__}, but must be str or None"
    elif name.startswith("/"):
        reason = "it is an absolute path"
    elif "\0" in name or "\n" in name:
        reason = "it has a line feed or a zero byte in it"
    else:
        parts = name.split("/")
        if ".." in parts:
            reason = "it leads out of the output folder"
        elif "" in parts:
            reason = "a part of it is empty"
        elif any(part[0] in "_." for part in parts):
            reason = "a part of it begins with _ or ."
        else:
            return
    raise FileNameRefused(operator=operator, name=str(name), reason=reason)
