"""`DeltaHistory`: the versions of a Delta table, from its log."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import attrs
import pyarrow as pa

from dagflow.storage import BinaryReader, explained, file_system, hash_bytes, join
from operators.extras.delta_log import LOG, check_log
from operators.extras.errors import TableLogDamaged
from operators.extras.tables import delta_options, deltalake
from operators.tables.delta_schema import folder_columns, lost_columns
from operators.tables.errors import (
    InputTableChanged,
    InputTableHistoryGone,
    InputTableRolledBack,
    InputTableUnsupported,
)
from operators.tables.history import TableFile, TablePosition

_MARK_LINES = 16
"""The lines of a version's log that identify it: they hold its time, and the names of its first files."""
_MAX_KEPT = 10_000
"""The files of versions that wait are kept up to this number. Behind it, the log is read again when their turn comes."""
_PURGE = "purge them: REORG TABLE … APPLY (PURGE), and ALTER TABLE … SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')"


@attrs.define
class Commit:
    """The facts of one version.

    Attributes:
        operation: `WRITE at 2026-03-01T12:00:00Z`.
        appended, removed: how many files it added or removed with a change of rows.
        with_vectors: how many files it added that have a deletion vector, with a change of rows.
        restored: the version that it restored; None: none. `is_restore`: also where that is not known.
        metadata: the metadata of the table, if it changed them.
        before: the version on which its content builds.
        mark: a hash of the first lines of its log.
        files: the path and size of each file that it added with a change of rows; None: they are too many to be kept.
    """

    version: int
    operation: str = "an unknown operation"
    appended: int = 0
    removed: int = 0
    with_vectors: int = 0
    is_restore: bool = False
    restored: int | None = None
    metadata: Mapping[str, Any] | None = None
    before: int = -1
    mark: str = ""
    files: list[tuple[str, int]] | None = attrs.field(factory=list)

    def add(self, action: Mapping[str, Any]) -> None:
        """Take note of an action."""
        if (added := action.get("add")) is not None and added.get("dataChange", True):
            self.appended += 1
            self.with_vectors += added.get("deletionVector") is not None
            if self.files is not None:
                self.files.append((added["path"], added["size"]))
        elif (removed := action.get("remove")) is not None and removed.get("dataChange", True):
            self.removed += 1
        elif (metadata := action.get("metaData")) is not None:
            self.metadata = metadata
        elif (info := action.get("commitInfo")) is not None:
            name = str(info.get("operation", "an unknown operation"))
            self.operation = f"{name}{_moment(info)}"
            self.is_restore = name == "RESTORE"
            target = str((info.get("operationParameters") or {}).get("version"))
            self.restored = int(target) if self.is_restore and target.isdigit() else None


@attrs.define
class DeltaHistory:
    """A Delta table as of the version at which it was opened."""

    operator: str
    path: str
    storage_options: Mapping[str, str]
    table: Any
    _commits: dict[int, Commit] = attrs.field(factory=dict, init=False)
    """The versions that have been looked through and hold, in this order."""
    _kept: int = attrs.field(default=0, init=False)

    @classmethod
    def open(cls, operator: str, path: str, storage_options: Mapping[str, str]) -> DeltaHistory:
        """Open the newest version."""
        options = delta_options(path, storage_options)
        return cls(operator, path, storage_options, deltalake(operator).DeltaTable(path, storage_options=options))

    @property
    def id(self) -> str:
        """The id that the table got when it was created."""
        return str(self.table.metadata().id)

    @property
    def newest(self) -> int:
        """The version at which it was opened."""
        return int(self.table.version())

    def has_news(self) -> bool:
        """Return True if there is another version, or the newest one is gone."""
        system = file_system(self.path)
        with explained(self.path, "looking for new versions"):
            return system.exists(self._log_of(self.newest + 1)) or not system.exists(self._log_of(self.newest))

    def start(self, version: int | None) -> TablePosition:
        """Return the position of a reader that takes all files of a version; None: of the newest one."""
        check_log(self.operator, self.path, self.newest)
        number = self.newest if version is None else version
        table = self._at(number)
        self._check_mapping(number, table.metadata().configuration)
        columns = str(table.schema().to_json())
        mark = self._mark(number)
        return TablePosition(table=self.id, version=number, is_whole=True, mark=mark, columns=columns)

    def after(self, position: TablePosition) -> list[TablePosition]:
        """Return the positions that follow, one for each version."""
        self._check_same(position)
        known = {position.version: Commit(position.version)}
        for version in range(position.version + 1, self.newest + 1):
            known[version] = self._read(version, position)
        lineage: list[Commit] = []
        version = self.newest
        while version != position.version:
            commit = known[version]
            if commit.before < position.version:  # only restores lead there; one that was undone is not in the lineage
                restored = "an unknown version" if commit.restored is None else f"version {commit.restored}"
                raise self._rolled_back(position, f"version {version} restored {restored}")
            lineage.append(commit)
            version = commit.before
        self._commits = {commit.version: commit for commit in reversed(lineage)}
        steps = []
        for commit in self._commits.values():
            self._check(commit, position)
            columns = position.columns
            if commit.metadata is not None and not commit.is_restore:
                columns = self._evolved(commit, position)
            position = TablePosition(table=self.id, version=commit.version, mark=commit.mark, columns=columns)
            steps.append(position)
        return steps

    def files(self, position: TablePosition) -> Iterator[TableFile]:
        """Yield the files of a version, or those that it appended."""
        if position.is_whole:
            return self._all_files(position.version)
        return self._appended_files(position)

    def _all_files(self, version: int) -> Iterator[TableFile]:
        table = self._at(version)
        if "deletionVectors" in (table.protocol().reader_features or ()):
            count = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()))
            if count:
                raise self._vectors(version, count)
        columns = self._folder_columns(table)
        files = pa.table(table.get_add_actions()).select(["path", "size_bytes", "modification_time"])
        files = files.sort_by([("modification_time", "ascending"), ("path", "ascending")]).drop("modification_time")
        for batch in files.to_batches(1024):
            for path, size in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield TableFile(self._place(path), int(size), columns)

    def _appended_files(self, position: TablePosition) -> Iterator[TableFile]:
        commit = self._commits.get(position.version)
        if commit is None:  # a launch before this one has begun it
            commit = self._read(position.version, position)
        if commit.is_restore:
            return
        kept = commit.files
        columns = self._folder_columns(self.table)
        for path, size in self._added_files(position) if kept is None else kept:
            yield TableFile(self._place(path), int(size), columns)

    def _added_files(self, position: TablePosition) -> Iterator[tuple[str, int]]:
        for line in self._lines(position.version, position):
            added = json.loads(line).get("add")
            if added is not None and added.get("dataChange", True):
                yield added["path"], added["size"]

    def _folder_columns(self, table: Any) -> tuple[tuple[str, str], ...]:
        return folder_columns(str(table.schema().to_json()), table.metadata().partition_columns)

    def _at(self, version: int) -> Any:
        """Open a version. Raises InputTableHistoryGone."""
        if version == self.newest:
            return self.table
        package = deltalake(self.operator)
        try:
            return package.DeltaTable(self.path, version=version, storage_options=delta_options(self.path, self.storage_options))
        except package.exceptions.DeltaError as error:
            reason = f"version {version} cannot be opened: {str(error).strip()}"
            raise self._history_gone(version, reason) from error

    def _read(self, version: int, position: TablePosition) -> Commit:
        """Return the facts of a version. Raises InputTableHistoryGone."""
        commit = Commit(version, before=version - 1)
        first_lines: list[bytes] = []
        for line in self._lines(version, position):
            commit.add(json.loads(line))
            if len(first_lines) < _MARK_LINES:
                first_lines.append(line)
            if commit.files is not None and self._kept + len(commit.files) > _MAX_KEPT:
                commit.files = None
        commit.mark = str(hash_bytes(b"".join(first_lines)))
        self._kept += len(commit.files or ())
        if commit.is_restore:
            commit.before = -1 if commit.restored is None else commit.restored
        return commit

    def _lines(self, version: int, position: TablePosition) -> Iterator[bytes]:
        """Yield the actions of a version, as lines: there may be any number. Raises InputTableHistoryGone, TableLogDamaged."""
        path = self._log_of(version)
        with explained(path, "reading the log of a table"):
            try:
                stream = file_system(path).open(path)
            except FileNotFoundError as error:
                raise self._history_gone(position.version, f"version {version} is no longer in its log") from error
            is_empty = True
            with stream:
                for line in _lines(stream):
                    is_empty = False
                    yield line
            if is_empty:
                raise TableLogDamaged(operator=self.operator, table=self.path, file=path)

    def _check_same(self, position: TablePosition) -> None:
        """Raise InputTableRolledBack if the version of a position is not the one that was read."""
        if self.newest < position.version:
            raise self._rolled_back(position, f"it is at version {self.newest}")
        mark = self._mark(position.version)
        if position.mark and mark and mark != position.mark:
            raise self._rolled_back(position, f"its version {position.version} is another one now")

    def _check(self, commit: Commit, before: TablePosition) -> None:
        """Raise an error for a version that does more than append."""
        if commit.is_restore:
            return
        if commit.removed:
            files = f"{commit.removed} file{'s' * (commit.removed > 1)}"
            raise self._changed(commit, f"{commit.operation} removed {files}", before)
        if commit.with_vectors:
            raise self._vectors(commit.version, commit.with_vectors)
        if commit.metadata is not None:
            self._check_mapping(commit.version, commit.metadata.get("configuration") or {})

    def _evolved(self, commit: Commit, before: TablePosition) -> str:
        """Return the schema that a version set. Raises InputTableChanged where columns are lost."""
        assert commit.metadata is not None
        columns = str(commit.metadata["schemaString"])
        if lost := lost_columns(before.columns, columns):
            raise self._changed(commit, f"{commit.operation} changed its columns: {'; '.join(lost)}", before)
        return columns

    def _check_mapping(self, version: int, configuration: Mapping[str, str]) -> None:
        mode = configuration.get("delta.columnMapping.mode", "none")
        if mode != "none":
            raise InputTableUnsupported(
                operator=self.operator,
                table=self.path,
                feature="column mapping",
                reason=f"delta.columnMapping.mode is {mode!r} in version {version}, and columns have other names in its files",
                remedy="copy it to a table without column mapping, and read that one",
            )

    def _mark(self, version: int) -> str:
        """Return a hash of the first lines of a version's log; "" if that is no longer there."""
        path = self._log_of(version)
        with explained(path, "reading the log of a table"):
            try:
                stream = file_system(path).open(path)
            except FileNotFoundError:
                return ""
            with stream:
                return str(hash_bytes(b"".join(itertools.islice(_lines(stream), _MARK_LINES))))

    def _log_of(self, version: int) -> str:
        return join(self.path, LOG, f"{version:020d}.json")

    def _place(self, encoded: str) -> str:
        """Return the path of a file from that in the log, which is encoded as in a URL, and absolute in a clone."""
        path = unquote(encoded)
        if path.startswith("file:"):
            return f"/{path.removeprefix('file:').lstrip('/')}"
        return path if path.startswith("/") or "://" in path else join(self.path, path)

    def _changed(self, commit: Commit, change: str, before: TablePosition) -> InputTableChanged:
        version, undo = f"version {commit.version}", f"version {before.version}"
        return InputTableChanged(operator=self.operator, table=self.path, version=version, change=change, undo=undo)

    def _vectors(self, version: int, count: int) -> InputTableUnsupported:
        return InputTableUnsupported(
            operator=self.operator,
            table=self.path,
            feature="deletion vectors",
            reason=f"{count} file{'s' * (count > 1)} of version {version} {'have' if count > 1 else 'has'} one",
            remedy=_PURGE,
        )

    def _rolled_back(self, position: TablePosition, reason: str) -> InputTableRolledBack:
        read = f"version {position.version}"
        return InputTableRolledBack(operator=self.operator, table=self.path, read=read, reason=reason)

    def _history_gone(self, version: int, reason: str) -> InputTableHistoryGone:
        return InputTableHistoryGone(operator=self.operator, table=self.path, read=f"version {version}", reason=reason)


def _moment(info: Mapping[str, Any]) -> str:
    stamp = info.get("timestamp")
    if not isinstance(stamp, int):
        return ""
    return f" at {datetime.datetime.fromtimestamp(stamp / 1000, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


def _lines(stream: BinaryReader) -> Iterator[bytes]:
    """Yield the lines of a file that are not empty."""
    rest = b""
    while chunk := stream.read(1 << 20):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from filter(None, lines)
    if rest:
        yield rest
