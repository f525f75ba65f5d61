"""The open files of a task's sink: buffered, compressed, limited in number, and followed by others when they are full."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from operators.compression.compressors import Compressor
from operators.sinks.encoding.text import joined_column, row_ends
from operators.sinks.errors import FileNameRefused
from operators.sinks.file_sink import numbered

WRITE_BYTES = 256 * 1024
"""The least size of a write to a file, and of a piece that is compressed. The last one before a file is closed may be smaller."""

NAME_BYTES = 240
"""The longest name. File systems allow 255 bytes; the rest is for numbers, since no name may fail once a window is decided."""


@attrs.define
class _Open:
    file: Any
    compressor: Compressor | None
    pending: list[bytes | memoryview] = attrs.field(factory=list)
    size: int = 0

    def flush(self) -> None:
        if self.pending:
            self.write(self.pending[0] if len(self.pending) == 1 else b"".join(self.pending))
            self.pending.clear()
            self.size = 0

    def write(self, data: bytes | memoryview) -> None:
        if self.compressor is not None:
            data = self.compressor.compress(data)  # type: ignore[arg-type]  # all of them take any buffer
        if len(data):
            self.file.write(data)

    def close(self) -> None:
        self.flush()
        if self.compressor is not None:
            self.file.write(self.compressor.flush())
        self.file.close()


@attrs.define
class _Series:
    """The files of one name: the current one ("": none yet), its content, and how many there are."""

    name: str = ""
    number: int = 0
    rows: int = 0
    size: int = 0


@attrs.define
class OpenFiles:
    """Write to files by name. When `limit` are open, the least recently used is closed, and appended to when it is needed again.

    When a file is full, the next data of its name goes to `NAME_1`, and so on. Sizes are those before compression.

    Args:
        create: opens an attempt file of a name; the second time within a task it is the same file, appended to.
        limit: how many are open at once; each holds at most 256 KiB that are not written yet.
        operator: named in errors.
        suffix: the end of names that stays behind the number.
        packed_suffix: behind all names, unless they have it.
        compressor: makes the compressor of one member of a file, which gets another one when it is appended to; None: none.
        max_rows, max_bytes: when a file is full; None: never.
        digits: of the numbers behind names.
        is_limited: whether files can be full: then a caller appends at most as many records at once as `fitting` says.
    """

    create: Callable[[str], Any]
    limit: int
    operator: str
    suffix: str = ""
    packed_suffix: str = ""
    compressor: Callable[[], Compressor] | None = None
    max_rows: int | None = None
    max_bytes: int | None = None
    digits: int = 1
    is_limited: bool = attrs.field(init=False)
    _open: OrderedDict[str, _Open] = attrs.field(factory=OrderedDict, init=False)
    _series: dict[str, _Series] = attrs.field(factory=dict, init=False)
    _taken: set[str] = attrs.field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.is_limited = self.max_rows is not None or self.max_bytes is not None

    def fitting(self, name: str, ends: Sequence[int]) -> int:
        """Return the number of the next records that belong into the current file of a name, at least one.

        `ends`: for each record, the bytes from the start of the first one to its end.
        """
        series = self._current(name)
        most = len(ends)
        if self.max_rows is not None:
            most = min(most, self.max_rows - series.rows)
        if self.max_bytes is not None:  # the record that makes it full is its last
            most = min(most, bisect_left(ends, self.max_bytes - series.size) + 1)
        return most

    def append(self, name: str, data: bytes | memoryview, records: int) -> None:
        """Append `data`, which holds so many records, to the current file of `name`. Raises FileNameRefused."""
        series = self._current(name)
        current = self._open.get(series.name) or self._opened(series.name)
        if len(self._open) > 1:
            self._open.move_to_end(series.name)
        size = len(data)
        if size >= WRITE_BYTES:  # not copied
            current.flush()
            current.write(data)
        else:
            current.pending.append(bytes(data))  # a view would keep its whole batch alive
            current.size += size
        series.size += size
        if records:
            current.file.records(records)  # at once: so it is known of which record a row was made
            if self.is_limited:
                self._count(series, records)
        if current.size >= WRITE_BYTES:
            current.flush()

    def _count(self, series: _Series, records: int) -> None:
        """Close the current file if it is full with so many records more."""
        series.rows += records
        if series.rows == self.max_rows or (self.max_bytes is not None and series.size >= self.max_bytes):
            self._open.pop(series.name).close()
            series.name = ""

    def append_column(self, name: str, rows: Any, end: bytes, header: bytes = b"") -> None:
        """Append the values of a text or binary column without nulls, `end` after each, as records; `header` before a file's.

        Without any values, the file is there, too.
        """
        if not len(rows) and self._current(name).size == 0:
            self.append(name, header, 0)
        while len(rows):
            if header and self._current(name).size == 0:
                self.append(name, header, 0)
            some = rows.slice(0, self.fitting(name, row_ends(rows, len(end)))) if self.is_limited else rows
            *parts, last = list(joined_column(some, end))  # all or, if a row is refused, nothing
            for data in parts:
                self.append(name, data, 0)
            self.append(name, last, len(some))
            rows = rows.slice(len(some))

    def close(self) -> None:
        """Write what is pending and close all files. The next window begins others."""
        while self._open:
            self._open.popitem(last=False)[1].close()
        self._series.clear()
        self._taken.clear()

    def _current(self, name: str) -> _Series:
        series = self._series.get(name)
        if series is None:
            check_name(name, self.operator)
            series = self._series[name] = _Series()
        if not series.name:
            self._next(name, series)
        return series

    def _next(self, name: str, series: _Series) -> None:
        """Continue with the next name that is not in use in the window."""
        plain = name.removesuffix(self.packed_suffix)
        while True:
            series.name = numbered(plain, series.number, self.suffix, self.digits) + self.packed_suffix
            series.number += 1
            if series.name not in self._taken:
                break
        self._taken.add(series.name)
        series.rows = series.size = 0

    def _opened(self, name: str) -> _Open:
        while len(self._open) >= self.limit:
            self._open.popitem(last=False)[1].close()
        compressor = None if self.compressor is None else self.compressor()
        current = self._open[name] = _Open(self.create(name), compressor)
        current.file.records(0)  # a file that gets no more than a header has none
        return current


def check_name(name: object, operator: str, given_by: str = "get_file_name()") -> None:
    """Raise FileNameRefused for names that leave the output folder, or are kept for dagflow."""
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
        elif any(len(part.encode("utf-8", "surrogatepass")) > NAME_BYTES for part in parts):
            reason = f"a part of it is longer than {NAME_BYTES} bytes"
        else:
            return
    raise FileNameRefused(operator=operator, name=str(name), reason=reason, given_by=given_by)
