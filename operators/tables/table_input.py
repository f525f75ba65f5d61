"""The base of inputs that read tables with a log of transactions."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs

from dagflow import FileInfo, OperatorContext, State
from dagflow.scan import FileFacts
from dagflow.storage import FileStatus, is_local
from operators.extras.tables import opening
from operators.files.splitter_base import AbstractFileSplitter
from operators.polling import PollingInput
from operators.tables.errors import InputTableFileGone, InputTableMissing, InputTableReplaced, InputTableUnsupported
from operators.tables.history import TableFile, TableHistory, TablePosition


@attrs.define(slots=False)
class AbstractTableInput(AbstractFileSplitter, PollingInput):
    """Emits the blocks of a table's Parquet files: first all of one version, then those that each later version appended.

    Each row is read once, over any number of windows and launches. Versions that rearrange rows without changing any are skipped.
    A version that removes or changes rows ends the launch before any window takes what came after it.

    Attributes:
        wait: whether a table that is not there is waited for; continuous runs only.
        block_size, blocks_threshold, window_bytes: see `AbstractFileSplitter`.
    """

    at_once: ClassVar[int | None] = 10_000  # so that a window can also be closed by time
    version_name: ClassVar[str] = "version"
    empty_is_null: ClassVar[bool] = False  # an empty partition value stands for null

    wait: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    position = State[TablePosition | None](None)

    # What subclasses override

    @property
    def table_name(self) -> str:
        """The table, for messages."""
        raise NotImplementedError

    def why_missing(self) -> str | None:
        """Return the reason why there is no table; None if there is one. Raises PackageMissing."""
        raise NotImplementedError

    def open_table(self, operator: str) -> TableHistory | None:
        """Open the newest version of the table, for the operator of that name; None if there is none."""
        raise NotImplementedError

    @property
    def first_version(self) -> int | None:
        """The version that is read first; None: the newest one."""
        raise NotImplementedError

    # For the framework

    def check_inputs(self, context: OperatorContext) -> None:
        """Raise InputTableMissing, TableUnreachable."""
        if self.wait and context.continuous:
            return
        with opening(context.name, self.table_name):
            reason = self.why_missing()
        if reason is not None:
            raise self._missing(context, reason)

    def setup(self, context: OperatorContext) -> None:
        """Look at the table.

        Raises InputTableMissing, InputTableReplaced, TableUnreachable and the errors of `TableHistory.after`.
        """
        super().setup(context)
        self._pending = PendingVersions(self.position)
        self._look()

    def emit_tuples(self) -> None:
        """Emit the rest of earlier windows, then the files of the versions that are new."""
        pending = self._pending
        if pending.is_done and self.is_time(pending.looked):
            self._look()
        super().emit_tuples()

    def is_exhausted(self) -> bool:
        """Return True if all has been split that the table had when it was first looked at. Never in a continuous run."""
        return not self._context.continuous and super().is_exhausted() and self._pending.is_done

    def get_file_info(self) -> FileInfo | None:
        """Return the next file of a version that is new; None when there is none now."""
        pending = self._pending
        while (file := pending.take()) is None:
            if not pending.begin_next():
                pending.is_done = True
                self.position = pending.position
                return None
            self._context.count("versions")
        self.position = pending.position
        folders = FileFacts.of(file.path, "").keys
        lacking = [name for name, _ in file.folder_columns if name not in folders]
        if lacking:
            raise InputTableUnsupported(
                operator=self._context.name,
                table=self.table_name,
                feature="partition columns that neither its files nor their folders have",
                reason=f"{file.path} has no folder {lacking[0]}=…",
                remedy="write files into folders by value, as most writers do; Delta: delta.randomizeFilePrefixes=false",
            )
        return FileInfo(None, file.path)

    def part_of(self, status: FileStatus) -> dict[str, Any]:
        """Return all of the file, with the columns that its folders give it."""
        assert self._pending.taken is not None
        columns = ", ".join(f"`{name}`: {kind}" for name, kind in self._pending.taken.folder_columns)
        return {"folder_columns": columns, "empty_is_null": self.empty_is_null}

    def get_file_status(self, path: str) -> FileStatus:
        """Return the length that the log says; on disks, look at the file. Raises InputTableFileGone."""
        file = self._pending.taken
        assert file is not None
        if not is_local(path):
            return FileStatus(path, file.size, 0, is_directory=False, is_regular=True)
        try:
            status = super().get_file_status(path)
        except FileNotFoundError:
            raise self._gone(file, "it is not there") from None
        if status.length != file.size:
            raise self._gone(file, f"it has {status.length:,} bytes, and the log of the table says {file.size:,}")
        return status

    def _missing(self, context: OperatorContext, reason: str) -> InputTableMissing:
        return InputTableMissing(operator=context.name, table=self.table_name, reason=reason, waits=self.wait)

    def _look(self) -> None:
        """Open the table, and find the versions that are new."""
        pending = self._pending
        pending.looked = self._context.clock.monotonic()
        with opening(self._context.name, self.table_name):
            if pending.table is not None and not pending.table.has_news():
                return
            reason = self.why_missing()
            table = self.open_table(self._context.name) if reason is None else None
        if table is None:
            if pending.position is not None or not (self.wait and self._context.continuous):
                raise self._missing(self._context, reason or "its log has no version yet")
            return
        position = pending.position
        if position is not None and position.table != table.id:
            raise InputTableReplaced(operator=self._context.name, table=self.table_name, before=position.table, after=table.id)
        pending.look(table, self.first_version)

    def _gone(self, file: TableFile, reason: str) -> InputTableFileGone:
        assert self.position is not None
        return InputTableFileGone(
            operator=self._context.name,
            table=self.table_name,
            version=f"{self.version_name} {self.position.version}",
            file=file.path,
            reason=reason,
        )


class PendingVersions:
    """The versions of a table that a launch has not taken, and the files of the one that it is taking.

    Attributes:
        position: of the file that was taken last; None as long as none was.
        taken: that file.
        table: as it was opened last.
        looked: when it was looked at last, by the monotonic clock.
        is_done: whether all was taken that was there.
    """

    def __init__(self, position: TablePosition | None) -> None:
        self.position = position
        self.taken: TableFile | None = None
        self.table: TableHistory | None = None
        self.looked = 0.0
        self.is_done = True
        self._versions: deque[TablePosition] = deque()
        self._files: Iterator[TableFile] = iter(())
        self._next: TableFile | None = None

    def look(self, table: TableHistory, first_version: int | None) -> None:
        """Find the versions behind the position; without one, begin with all files of a version."""
        self.table, self.is_done = table, False
        position = self.position
        if position is None:
            start = table.start(first_version)
            self._versions = deque([start, *table.after(start)])
            return
        self._versions = deque(table.after(position))
        if position.files is not None:
            self._begin(itertools.islice(table.files(position), position.files, None))

    def begin_next(self) -> bool:
        """Go to the next version. Return False if there is none."""
        if not self._versions:
            return False
        assert self.table is not None
        self.position = self._versions.popleft()
        self._begin(self.table.files(self.position))
        return True

    def take(self) -> TableFile | None:
        """Return the next file of the current version; None if it has no more."""
        self.taken = file = self._next
        if file is None:
            return None
        assert self.position is not None
        self._next = next(self._files, None)  # so that a position behind the last file needs the log no more
        taken = None if self._next is None else (self.position.files or 0) + 1
        self.position = attrs.evolve(self.position, files=taken)
        return file

    def _begin(self, files: Iterator[TableFile]) -> None:
        self._files = files
        self._next = next(files, None)
