"""`IcebergHistory`: the snapshots of an Iceberg table, from its metadata and manifests."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from operators.extras.tables import loaded_catalog, plain_location, pyiceberg
from operators.extras.unavailable import read
from operators.tables.errors import (
    InputTableChanged,
    InputTableHistoryGone,
    InputTableRolledBack,
    InputTableUnsupported,
)
from operators.tables.history import TableFile, TablePosition

APPEND, REPLACE = "append", "replace"
NO_SNAPSHOT = -1


@attrs.define
class IcebergHistory:
    """An Iceberg table as of the snapshot at which it was opened."""

    operator: str
    name: str
    catalog: Mapping[str, str]
    table: Any

    @classmethod
    def open(cls, operator: str, name: str, catalog: Mapping[str, str]) -> IcebergHistory:
        """Open the newest snapshot. Raises InputTableUnsupported."""
        history = cls(operator, name, catalog, read(lambda: loaded_catalog(operator, catalog).load_table(name)))
        history._check_columns()
        return history

    @property
    def id(self) -> str:
        """The id that the table got when it was created."""
        return str(self.table.metadata.table_uuid)

    @property
    def newest(self) -> int:
        """The id of the snapshot at which it was opened; -1 for none."""
        snapshot = self.table.current_snapshot()
        return NO_SNAPSHOT if snapshot is None else int(snapshot.snapshot_id)

    def has_news(self) -> bool:
        """Return True if the table has other metadata now, or is gone."""
        exceptions = pyiceberg(self.operator).exceptions
        try:
            now = read(lambda: loaded_catalog(self.operator, self.catalog).load_table(self.name))
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
            return True
        return bool(now.metadata_location != self.table.metadata_location)

    def start(self, version: int | None) -> TablePosition:
        """Return the position of a reader that takes all files of a snapshot; None: of the newest one."""
        number = self.newest if version is None else version
        if number != NO_SNAPSHOT and self.table.snapshot_by_id(number) is None:
            raise self._history_gone(number, "it has no such snapshot, or no longer")
        snapshot = self.table.snapshot_by_id(number)
        if snapshot is None:
            return TablePosition(table=self.id, version=number, is_whole=True, rows=0)
        return attrs.evolve(self._position(snapshot), is_whole=True)

    def after(self, position: TablePosition) -> Sequence[TablePosition]:
        """Return the positions that follow, one for each snapshot."""
        snapshots = list(self._behind(position))[::-1]
        before = position.version
        for snapshot in snapshots:
            operation = "an unknown operation" if snapshot.summary is None else snapshot.summary.operation.value
            if operation not in (APPEND, REPLACE):
                raise self._changed(snapshot, operation, before)
            before = snapshot.snapshot_id
        return [self._position(each) for each in snapshots]

    def files(self, position: TablePosition) -> Iterator[TableFile]:
        """Yield the files of a snapshot, or those that it appended; one manifest is in memory at a time."""
        if position.version == NO_SNAPSHOT:
            return
        snapshot = self._snapshot(position.version)
        if not position.is_whole and snapshot.summary is not None and snapshot.summary.operation.value == REPLACE:
            return
        statuses = pyiceberg(self.operator).manifest.ManifestEntryStatus
        for manifest in snapshot.manifests(self.table.io):
            if not position.is_whole and manifest.added_snapshot_id != position.version:
                continue
            for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=True):
                is_new = entry.status == statuses.ADDED and entry.snapshot_id in (None, position.version)
                if position.is_whole or is_new:
                    yield self._file(entry.data_file, position.version)

    def _position(self, snapshot: Any) -> TablePosition:
        rows = _count(snapshot, "total-records")
        return TablePosition(table=self.id, version=int(snapshot.snapshot_id), mark=_mark(snapshot), rows=rows)

    def _behind(self, position: TablePosition) -> Iterator[Any]:
        """Yield the snapshots behind a position, the newest first. Raises InputTableRolledBack, InputTableHistoryGone.

        A snapshot whose parent has expired follows a position if its sequence number is the next one, and the table had as many
        rows before it as at the position: after a rollback, the next number belongs to a snapshot that builds on an earlier one.
        """
        snapshot = self.table.current_snapshot()
        read = "its creation" if position.version == NO_SNAPSHOT else f"snapshot {position.version}"
        if position.version == self.newest:
            return
        oldest = None
        while snapshot is not None:
            yield snapshot
            oldest = snapshot
            parent = NO_SNAPSHOT if snapshot.parent_snapshot_id is None else snapshot.parent_snapshot_id
            snapshot = None if parent == NO_SNAPSHOT else self.table.snapshot_by_id(parent)
            if (parent == position.version != NO_SNAPSHOT) or (snapshot is None and _is_next(oldest, position)):
                return
        if oldest is not None and self.table.snapshot_by_id(position.version) is None and _is_behind(oldest, position):
            reason = f"the snapshots before {oldest.snapshot_id} have expired"
            raise InputTableHistoryGone(operator=self.operator, table=self.name, read=read, reason=reason)
        newest = "it has no snapshot" if oldest is None else f"its newest snapshot is {self.newest}, which does not build on it"
        raise InputTableRolledBack(operator=self.operator, table=self.name, read=read, reason=newest)

    def _snapshot(self, number: int) -> Any:
        snapshot = self.table.snapshot_by_id(number)
        if snapshot is None:
            raise self._history_gone(number, "that snapshot has expired before all of its files were read")
        return snapshot

    def _file(self, file: Any, snapshot: int) -> TableFile:
        """Return a file of a manifest. Raises InputTableUnsupported for files of deletes, and of other formats."""
        content = pyiceberg(self.operator).manifest.DataFileContent
        if file.content != content.DATA:
            raise InputTableUnsupported(
                operator=self.operator,
                table=self.name,
                feature="merge-on-read delete files",
                reason=f"snapshot {snapshot} has {plain_location(file.file_path)}",
                remedy="apply them: CALL system.rewrite_data_files(table => '…', options => map('delete-file-threshold', '1'))",
            )
        kind = getattr(file.file_format, "value", file.file_format)
        if str(kind).upper() != "PARQUET":
            raise InputTableUnsupported(
                operator=self.operator,
                table=self.name,
                feature=f"files of the format {kind}",
                reason=f"snapshot {snapshot} has {plain_location(file.file_path)}",
                remedy="rewrite them as Parquet: CALL system.rewrite_data_files",
            )
        return TableFile(plain_location(file.file_path), int(file.file_size_in_bytes), self._folder_columns(file))

    def _folder_columns(self, file: Any) -> tuple[tuple[str, str], ...]:
        """Return the partition columns that a file does not have itself, as far as its statistics say, with their types."""
        counts, spec, schema = file.value_counts or file.column_sizes, self.table.specs().get(file.spec_id), self.table.schema()
        if not counts or spec is None:
            return ()
        sources = [each.source_id for each in spec.fields if str(each.transform) == "identity" and each.source_id not in counts]
        fields = [schema.find_field(source) for source in sources]
        return tuple((str(field.name), _folder_type(field.field_type)) for field in fields)

    def _check_columns(self) -> None:
        """Raise InputTableUnsupported where files of earlier schemas have columns under other names."""
        reason = why_not_by_name([_columns(each) for each in self.table.schemas().values()], _columns(self.table.schema()))
        if reason is None:
            defaults = [each.name for each in self.table.schema().fields if getattr(each, "initial_default", None) is not None]
            reason = f"column {defaults[0]!r} has a value in files that lack it" if defaults else None
        if reason is not None:
            raise InputTableUnsupported(
                operator=self.operator,
                table=self.name,
                feature="columns that its files do not have under their names",
                reason=reason,
                remedy="copy it to a new table, and read that one",
            )

    def _changed(self, snapshot: Any, operation: str, before: int) -> InputTableChanged:
        moment = datetime.datetime.fromtimestamp(snapshot.timestamp_ms / 1000, datetime.UTC)
        summary = snapshot.summary
        facts = [] if summary is None else [f"{key} {summary[key]}" for key in _FACTS if summary.get(key)]
        change = f"{operation} at {moment:%Y-%m-%dT%H:%M:%SZ}" + (f" ({', '.join(facts)})" if facts else "")
        undo = "an empty table" if before == NO_SNAPSHOT else f"snapshot {before}"
        version = f"snapshot {snapshot.snapshot_id}"
        return InputTableChanged(operator=self.operator, table=self.name, version=version, change=change, undo=undo)

    def _history_gone(self, number: int, reason: str) -> InputTableHistoryGone:
        return InputTableHistoryGone(operator=self.operator, table=self.name, read=f"snapshot {number}", reason=reason)


_FACTS = ("deleted-data-files", "deleted-records", "added-delete-files", "added-data-files")


_OF_FOLDERS = {"int": "int32", "long": "int64", "boolean": "bool", "date": "date32", "float": "float32", "double": "float64"}


def _folder_type(kind: Any) -> str:
    """Return the type of the values of a column in the names of folders, as Arrow names it."""
    text = str(kind)
    return text.replace("decimal(", "decimal128(") if text.startswith("decimal(") else _OF_FOLDERS.get(text, "string")


def _mark(snapshot: Any) -> str:
    """Return the sequence number of a snapshot; "" in tables of format 1, which have none."""
    number = snapshot.sequence_number
    return str(number) if number else ""


def _count(snapshot: Any, key: str) -> int | None:
    """Return a number of the summary of a snapshot; None: it does not have it."""
    number = None if snapshot.summary is None else snapshot.summary.get(key)
    return None if number is None else int(number)


def _is_next(snapshot: Any, position: TablePosition) -> bool:
    """Return True if a snapshot without a parent is the one right behind a position."""
    total = _count(snapshot, "total-records")
    if position.rows is None or total is None:
        return False
    before = total - (_count(snapshot, "added-records") or 0) + (_count(snapshot, "deleted-records") or 0)
    is_numbered = position.version == NO_SNAPSHOT or (position.mark and _mark(snapshot) == str(int(position.mark) + 1))
    return bool(is_numbered) and before == position.rows


def _is_behind(snapshot: Any, position: TablePosition) -> bool:
    return not position.mark or int(_mark(snapshot) or 0) > int(position.mark)


def _columns(schema: Any) -> dict[int, str]:
    """Return the columns of a schema, with fields of structs, by their ids."""
    from pyiceberg.schema import index_name_by_id

    return dict(index_name_by_id(schema))


def why_not_by_name(schemas: Sequence[Mapping[int, str]], current: Mapping[int, str]) -> str | None:
    """Return the reason why files of earlier schemas cannot be read by the names of columns; None if they can.

    >>> why_not_by_name([{1: "a"}, {1: "a", 2: "b"}], {1: "a", 2: "b"})
    >>> why_not_by_name([{1: "a"}], {1: "b"})
    "column 'b' was called 'a' before"
    >>> why_not_by_name([{1: "a"}], {2: "a"})
    "column 'a' was dropped, and another one of that name was added"
    """
    ids = {name: number for number, name in current.items()}
    for schema in schemas:
        for number, name in schema.items():
            if current.get(number, name) != name:
                return f"column {current[number]!r} was called {name!r} before"
            if ids.get(name, number) != number:
                return f"column {name!r} was dropped, and another one of that name was added"
    return None
