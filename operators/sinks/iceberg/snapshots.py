"""`IcebergTable`: an Iceberg table, opened by the package `pyiceberg`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa

from dagflow import WindowMark
from operators.extras.tables import plain_location, pyiceberg
from operators.extras.unavailable import is_unavailable, read
from operators.sinks.iceberg.landed import LandedCommits
from operators.sinks.iceberg.types import iceberg_type
from operators.sinks.table_formats.columns import required_within
from operators.sinks.table_formats.opened import REQUIRED, moment
from operators.sinks.table_formats.published import Published
from operators.sinks.table_formats.staged_files import sync_local
from operators.sinks.tables.modes import Mode

WINDOW = "dagflow.window."
"""The property of a table that holds the newest window of a sink begins so."""
DECISION = "dagflow.decision."
"""The property of a table that holds the identity of the decision of that window begins so."""
SINK = "dagflow.sink"
"""The property of a snapshot that names the sink that has made it."""
KEEP_SNAPSHOTS = "dagflow.keep-snapshots"
"""The property of a table that says how many snapshots sinks keep that do not say so themselves."""
PREVIOUS_METADATA = "write.metadata.previous-versions-max"
PROPERTIES = {
    # else each commit reads and writes the names of all manifests before it
    "commit.manifest-merge.enabled": "true",
    # else a merge reads and writes the names of all files before it
    "commit.manifest.target-size-bytes": str(1 << 19),
    # else each commit leaves one more file with the names of all snapshots
    "write.metadata.delete-after-commit.enabled": "true",
    # each of these files has the names of those before it
    PREVIOUS_METADATA: "20",
    # else each commit reads and writes the list of all snapshots
    KEEP_SNAPSHOTS: "100",
}
"""Properties of tables that sinks create, for commits that take the same time after any number of windows."""

_LOGGER = logging.getLogger("dagflow.iceberg")
_NOT_EXPIRED: set[str] = set()  # ids of tables whose snapshots this process could not expire


@attrs.define
class IcebergTable:
    """A table as of the snapshot that was read last."""

    table: Any

    @classmethod
    def of(cls, catalog: Any, name: str) -> IcebergTable | None:
        """Open the table; None if the catalog does not have it."""
        exceptions = pyiceberg("IcebergWriter").exceptions
        try:
            return cls(read(lambda: catalog.load_table(name)))
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
            return None

    @staticmethod
    def create(catalog: Any, name: str, columns: pa.Schema, partition_columns: Sequence[str]) -> None:
        """Create a table without rows, and its namespaces if there are none. Raises TableAlreadyExistsError."""
        namespace, _, own = name.rpartition(".")
        if namespace:
            _create_namespace(catalog, namespace)
        # an SQL catalog has namespaces within others, but refuses them here if they are not in one piece
        is_flat = isinstance(catalog, pyiceberg("IcebergWriter").catalog.MetastoreCatalog)
        with (
            catalog.create_table_transaction(
                (namespace, own) if is_flat else name, columns, properties=PROPERTIES
            ) as transaction,
            transaction.update_spec() as spec,
        ):
            for column in partition_columns:
                spec.add_identity(column)

    @property
    def id(self) -> str:
        """The id that the table got when it was created."""
        return str(self.table.metadata.table_uuid)

    @property
    def version(self) -> int:
        """The id of the newest snapshot; -1 for none."""
        snapshot = self.table.current_snapshot()
        return -1 if snapshot is None else int(snapshot.snapshot_id)

    @property
    def state(self) -> object:
        """A value that each commit changes."""
        return self.table.metadata_location

    @property
    def columns(self) -> pa.Schema:
        """The columns, with types as `iceberg_type` returns them."""
        schema = self.table.schema().as_arrow()
        return pa.schema([pa.field(field.name, iceberg_type(field.type) or field.type, field.nullable) for field in schema])

    @property
    def partition_columns(self) -> list[str]:
        """The columns that it is partitioned by; a transform as `bucket[8](id)`."""
        schema = self.table.schema()
        names = []
        for field in self.table.spec().fields:
            column = schema.find_column_name(field.source_id)
            names.append(column if str(field.transform) == "identity" else f"{field.transform}({column})")
        return names

    @property
    def data_folder(self) -> str:
        """The folder of its files; a local one as a path, since Iceberg does not encode its locations."""
        return plain_location(self.data_location)

    @property
    def data_location(self) -> str:
        """The location of that folder, as the table has it."""
        return f"{str(self.table.location()).rstrip('/')}/data"

    @property
    def facts(self) -> dict[str, int]:
        """The place of the newest snapshot in the order of all, the rows that the table had then, and columns without nulls."""
        snapshot = self.table.current_snapshot()
        if snapshot is None:
            return {}
        facts = {"sequence": snapshot.sequence_number, "records": _total(snapshot, "total-records")}
        required = {f"{REQUIRED}{field.name}": 1 for field in self.columns if not field.nullable}
        return {**{name: value for name, value in facts.items() if value is not None}, **required}

    def refusals(self, mode: Mode, *, by_row: bool = False) -> Sequence[str]:
        """Return a phrase for each reason for which the table takes no commits of a mode, whatever the rows."""
        reasons, snapshot = required_within(self.table.schema().as_arrow()), self.table.current_snapshot()
        if mode == "upsert" and snapshot is not None and _total(snapshot, "total-equality-deletes", 0):
            reasons.append("it has equality deletes, which pyiceberg cannot read to merge")
        return reasons

    def has_rows(self) -> bool:
        """Return whether it has any rows."""
        snapshot = self.table.current_snapshot()
        if snapshot is None:
            return False
        return snapshot.summary is None or snapshot.summary.get("total-records") != "0"

    def mark(self, key: str) -> WindowMark:
        """Return the newest window of a sink that the table holds."""
        properties = self.table.properties
        return WindowMark(int(properties.get(WINDOW + key, -1)), properties.get(DECISION + key, ""))

    def rolled_back(self, note: Published) -> str | None:
        """Return how the table lost the snapshot of a note; None if it has it."""
        if note.version == -1 or any(each.snapshot_id == note.version for each in self._lineage()):
            return None
        *_, oldest = (None, *self._lineage())
        if oldest is not None and self._snapshot(note.version) is None and _may_build_on(oldest, note):
            return None  # older snapshots have expired, and with them perhaps that of the note
        return f"its newest snapshot is {self.version}, which does not build on that of the newest window"

    def foreign_changes(self, note: Published, key: str) -> Sequence[str]:
        """Return a phrase for each snapshot since a note by which another writer has changed rows."""
        changes = []
        for snapshot in self._lineage():
            if snapshot.snapshot_id == note.version:
                break
            summary = snapshot.summary
            operation = "unknown" if summary is None else summary.operation.value
            if operation != "replace" and (summary is None or summary.get(SINK) != key):
                changes.append(f"snapshot {snapshot.snapshot_id}: {operation} at {moment(snapshot.timestamp_ms)}")
        return tuple(reversed(changes))

    def rows_with(self, values: pa.Table) -> pa.Table:
        """Return the rows that `with_values` holds for."""
        rows: pa.Table = self.table.scan(self.with_values(values)).to_arrow()
        return rows

    def with_values(self, values: pa.Table) -> Any:
        """Return the condition that a row has one of the values of some rows in each of their columns."""
        conditions = pyiceberg("IcebergWriter").expressions
        sets = [conditions.In(name, set(values.column(name).to_pylist())) for name in values.column_names]
        return conditions.And(conditions.AlwaysTrue(), *sets) if sets else conditions.AlwaysTrue()

    def evolve(self, columns: pa.Schema) -> None:
        """Add columns and promote types. Raises CommitFailedException if other writers came first."""
        with self.table.transaction() as transaction, transaction.update_schema() as update:
            update.union_by_name(columns)

    def for_commit(self, expiring: Collection[int] = ()) -> Any:
        """Return the table for a commit: without retries, and without the history, but for snapshots that are about to expire.

        The commit fails where other writers came first, instead of being put behind theirs: what they have done is looked at
        before it is tried again. `pyiceberg` copies all metadata a score of times in a commit, and the catalog applies the
        commit to metadata that it loads itself. Both stay in this process, until the commit is done. A commit that is in the
        table counts as done, whatever the answer to it was (`landed`).
        """
        metadata = self.table.metadata
        needed = {metadata.current_snapshot_id, *expiring}
        update = {
            "properties": {**metadata.properties, "commit.retry.num-retries": "0"},
            "snapshots": [each for each in metadata.snapshots if each.snapshot_id in needed],
            "snapshot_log": [],
            "metadata_log": self._outdated_metadata(),
        }
        self.table.metadata = metadata.model_copy(update=update)
        if not isinstance(self.table.catalog, LandedCommits):
            self.table.catalog = LandedCommits(self.table.catalog)
        return self.table

    def _outdated_metadata(self) -> list[Any]:
        """Return the entries of metadata files that the next commit forgets: `pyiceberg` removes these files behind it."""
        metadata = self.table.metadata
        kept = max(1, int(metadata.properties.get(PREVIOUS_METADATA, 100)))
        log: list[Any] = metadata.metadata_log
        return log[: max(0, len(log) - kept + 1)]

    def expire(self, keep: int | None) -> None:
        """Let the table forget the oldest snapshots of its main branch, once there are a quarter more than it has to keep.

        `keep`: None for as many as the table's property says, 0 for all. Tags keep their snapshots, and other branches theirs
        with all that these build on. The files that only expired snapshots have stay where they are. If other writers commit or
        expire at the same time, or the catalog is not available, the next window does it. The window is in the table: if the
        catalog refuses, there is a warning, and this process expires no more snapshots of the table.
        """
        metadata = self.table.metadata
        oldest = self._expiring(_number(metadata.properties, KEEP_SNAPSHOTS) if keep is None else keep)
        if not oldest or self.id in _NOT_EXPIRED:
            return
        try:
            self.for_commit(oldest).maintenance.expire_snapshots().by_ids(oldest).commit()
        except (pyiceberg("IcebergWriter").exceptions.CommitFailedException, ValueError):  # ValueError: one is gone already
            self.table.metadata = metadata
        except Exception as error:  # noqa: BLE001  # catalogs have errors of their own
            self.table.metadata = metadata
            if is_unavailable(error):
                return
            _NOT_EXPIRED.add(self.id)
            text = "snapshots of %s could not be expired, so their list grows until the next launch: %s: %s"
            _LOGGER.warning(text, ".".join(self.table.name()), type(error).__name__, error)

    def _expiring(self, keep: int) -> list[int]:
        """Return the ids of the snapshots to expire, the oldest first; none as long as there are few."""
        metadata = self.table.metadata
        properties = metadata.properties
        if not keep or str(properties.get("gc.enabled", "true")).lower() == "false":
            return []
        keep = max(keep, _number(properties, "history.expire.min-snapshots-to-keep"))
        most = keep + keep // 4
        if len(metadata.snapshots) <= most:
            return []
        parents = {each.snapshot_id: each.parent_snapshot_id for each in metadata.snapshots}
        kept = {reference.snapshot_id for reference in metadata.refs.values()}
        for name, reference in metadata.refs.items():
            if name != "main" and reference.snapshot_ref_type == "branch":
                kept.update(_line(parents, reference.snapshot_id))
        numbers = [each for each in _line(parents, metadata.current_snapshot_id) if each not in kept]
        return numbers[keep - 1 :][::-1] if len(numbers) + 1 > most else []

    def secure(self, *, files: bool) -> None:
        """Wait until the newest snapshot survives a power cut. Its files on local disks do already (`durable_files`).

        SQLite does not sync the folder of its journal, without which a power cut may undo a commit of the catalog.
        """
        scheme, _, path = str(self.table.catalog.properties.get("uri", "")).partition(":///")
        if scheme.startswith("sqlite") and path:
            sync_local([path.partition("?")[0]])

    def _lineage(self) -> Iterator[Any]:
        """Yield the newest snapshot and those that it builds on, as far as they have not expired."""
        snapshot = self.table.current_snapshot()
        while snapshot is not None:
            yield snapshot
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self._snapshot(parent)

    def _snapshot(self, number: int) -> Any:
        return self.table.snapshot_by_id(number)


def _create_namespace(catalog: Any, name: str) -> None:
    """Create a namespace if there is none, and those that it lies in. Rights to create one are needed only then."""
    exceptions, parent = pyiceberg("IcebergWriter").exceptions, name.rpartition(".")[0]
    if catalog.namespace_exists(name):
        return
    try:
        catalog.create_namespace_if_not_exists(name)
    except (exceptions.NoSuchNamespaceError, exceptions.RESTError):
        if not parent or catalog.namespace_exists(parent):
            raise
        _create_namespace(catalog, parent)
        catalog.create_namespace_if_not_exists(name)


def _may_build_on(oldest: Any, note: Published) -> bool:
    """Return whether the oldest snapshot that a table keeps may build on that of a note, which the table no longer has.

    `pyiceberg` removes the parent from a snapshot when it expires that, so the order of commits tells. A table that was rolled
    back, and committed to before the snapshot of the note expired, had other rows before its next snapshot.
    """
    sequence = note.facts.get("sequence")
    if sequence is None or not oldest.sequence_number:  # of a release before; of a table in version 1 of the format
        return oldest.parent_snapshot_id is not None
    if oldest.sequence_number <= sequence:
        return False
    total, added = _total(oldest, "total-records"), _total(oldest, "added-records", 0)
    records, deleted = note.facts.get("records"), _total(oldest, "deleted-records", 0)
    is_next = oldest.sequence_number == sequence + 1
    return not is_next or None in (total, records) or total - added + deleted == records


def _line(parents: Mapping[int, int | None], snapshot: int | None) -> Iterator[int]:
    """Yield the id of a snapshot and of those that it builds on, as far as they have not expired."""
    while snapshot is not None and snapshot in parents:
        yield snapshot
        snapshot = parents[snapshot]


def _number(properties: Mapping[str, str], name: str) -> int:
    """Return a property of a table that is a number; 0 if it is not there, or is none."""
    text = str(properties.get(name, ""))
    return int(text) if text.isdecimal() else 0


def _total(snapshot: Any, name: str, default: int | None = None) -> Any:
    """Return a count of the summary of a snapshot; `default` for one that it does not have."""
    count = None if snapshot.summary is None else snapshot.summary.get(name)
    return default if count is None else int(count)
