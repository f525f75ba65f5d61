"""`DeltaLog`: a Delta table, opened by the package `deltalake`."""

from __future__ import annotations

import datetime
import functools
import itertools
import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow import WindowMark
from dagflow.storage import file_system, join, local_path
from operators.aggregate.accumulators import group_codes
from operators.extras.delta_log import HINT, LOG
from operators.extras.tables import delta_options, deltalake
from operators.sinks.delta.appends import OwnVersion, append_body, mark_of, may_append
from operators.sinks.delta.stand_in import StandIn
from operators.sinks.delta.types import delta_type
from operators.sinks.table_formats.columns import required_within
from operators.sinks.table_formats.opened import REQUIRED, moment
from operators.sinks.table_formats.published import Published
from operators.sinks.table_formats.rows import StagedRows
from operators.sinks.table_formats.staged_files import sync_local
from operators.sinks.tables.modes import Mode

_COMPUTED = ("delta.invariants", "delta.generationExpression")
"""Metadata of columns whose values are checked or computed by expressions."""
_TOGETHER = 1 << 20
"""The rows of a table that are compared with others at once."""
CHECKPOINT_INTERVAL = "delta.checkpointInterval"
_INTERVAL = 100
"""The default of `deltalake`. Opening a table reads all commits since its last checkpoint, half a millisecond each. A launch that
appends does that once."""
_SHORT_INTERVAL = 10
"""For sinks that open the table for each window."""
_CONSTRAINT = "delta.constraints."
RULES = "rules"
"""The fact that rows must keep rules."""
_NO_ROWS_CHANGE = frozenset(
    {
        "OPTIMIZE",
        "VACUUM START",
        "VACUUM END",
        "ADD COLUMN",
        "ADD COLUMNS",
        "ADD CONSTRAINT",
        "DROP CONSTRAINT",
        "SET TBLPROPERTIES",
        "ADD FEATURE",
        "UPDATE COLUMN METADATA",
        "UPDATE FIELD METADATA",
        "UPDATE TABLE METADATA",
        "CHANGE COLUMN",
        "FSCK",
    }
)


@attrs.frozen
class ForeignCommits:
    """Commits to a table since a version.

    Attributes:
        changes: a phrase for each commit of another writer that has changed rows and still counts.
        restored: a phrase for the commit that restored a version before, unless that was undone.
    """

    changes: tuple[str, ...] = ()
    restored: str | None = None


@attrs.define
class DeltaLog:
    """A table as of the version that was read last, or that this process has committed last.

    Attributes:
        path: the folder or URL.
        storage_options: of `deltalake`.
        own: that version, where this process has committed it: nothing has to be read then.
    """

    path: str
    storage_options: Mapping[str, str]
    own: OwnVersion | None = None
    _table: Any = None

    @classmethod
    def of(cls, path: str, storage_options: Mapping[str, str]) -> DeltaLog | None:
        """Open the newest version; None if there is no table."""
        if (own := OwnVersion.of(path)) is not None:
            return cls(path, storage_options, own)
        log = cls(path, storage_options)
        try:
            return log if file_system(path).exists(join(path, LOG)) and log.table is not None else None
        except deltalake("DeltaWriter").exceptions.TableNotFoundError:
            return None

    @staticmethod
    def create(
        path: str,
        storage_options: Mapping[str, str],
        columns: pa.Schema,
        partition_columns: Sequence[str],
        adds: Sequence[Any] = (),
        properties: Any = None,
        *,
        appends: bool,
    ) -> None:
        """Create a table, with its first files. `appends`: the sink only appends. Raises DeltaError if there is one."""
        package = deltalake("DeltaWriter")
        package.transaction.create_table_with_add_actions(
            path,
            package.Schema.from_arrow(columns),
            list(adds),
            partition_by=list(partition_columns),
            configuration={CHECKPOINT_INTERVAL: str(_INTERVAL if appends else _SHORT_INTERVAL)},
            storage_options=delta_options(path, storage_options),
            commit_properties=properties,
        )
        sync_local([join(path, LOG, f"{0:020d}.json")])  # later versions are nothing without it

    @property
    def table(self) -> Any:
        """The table as `deltalake` opens it, in its newest version."""
        if self._table is None:
            options = delta_options(self.path, self.storage_options)
            self._table, self.own = deltalake("DeltaWriter").DeltaTable(self.path, storage_options=options), None
        return self._table

    @property
    def id(self) -> str:
        """The id that the table got when it was created."""
        return str(self.table.metadata().id) if self.own is None else self.own.id

    @property
    def version(self) -> int:
        """The version."""
        return int(self.table.version()) if self.own is None else self.own.version

    @property
    def state(self) -> object:
        """A value that each commit changes."""
        return self.version

    @property
    def partition_columns(self) -> list[str]:
        """The columns that it is partitioned by."""
        return list(self.table.metadata().partition_columns) if self.own is None else self.own.partition_columns

    @property
    def columns(self) -> pa.Schema:
        """The columns, with types as `delta_type` returns them. Of those within structs, lists and maps, all take nulls."""
        if self.own is not None:
            return self.own.columns
        schema = pa.schema(self.table.schema().to_arrow())
        return pa.schema([pa.field(field.name, delta_type(field.type) or field.type, field.nullable) for field in schema])

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that take no nulls. Of columns within structs, lists and maps, nothing is known."""
        return tuple(field.name for field in self.columns if not field.nullable)

    @property
    def rules(self) -> list[str]:
        """A phrase for each rule that rows must keep, which only commits of `deltalake` that write the rows look at."""
        if self.own is not None:
            return []  # a table with rules has none of our versions
        rules = self.table.metadata().configuration
        phrases = [
            f"the table has the constraint {name.removeprefix(_CONSTRAINT)} ({rule})"
            for name, rule in sorted(rules.items())
            if name.startswith(_CONSTRAINT)
        ]
        columns = self.table.schema().to_json()
        return phrases + [f"the table has {name}" for name in _COMPUTED if f'"{name}"' in columns]

    @property
    def data_folder(self) -> str:
        """The folder of the table."""
        return self.path

    @property
    def facts(self) -> dict[str, int]:
        """The columns that take no nulls, and whether there are rules, for tasks: they read the note instead of the table."""
        return {**{f"{REQUIRED}{name}": 1 for name in self.required}, **({RULES: 1} if self.rules else {})}

    def refusals(self, mode: Mode, *, by_row: bool = False) -> Sequence[str]:
        """Return a phrase for each reason for which the table takes no commits of a mode, whatever the rows."""
        if self.own is not None:
            return ()
        configuration = self.table.metadata().configuration
        reasons = required_within(pa.schema(self.table.schema().to_arrow()))
        if mode != "append" and str(configuration.get("delta.appendOnly", "")).lower() == "true":
            reasons.append(f"it has delta.appendOnly=true, and mode is {mode!r}")
        if str(configuration.get("delta.columnMapping.mode", "none")).lower() != "none":
            reasons.append("it has delta.columnMapping.mode, so its columns have other names in files")
        if (reason := StandIn.of(self.table).refusal(mode)) is not None:
            reasons.append(f"deltalake cannot write it: {reason}")
        if by_row:
            try:
                self.table.to_pyarrow_dataset()
            except deltalake("DeltaWriter").exceptions.DeltaError as error:
                reasons.append(f"keys='*' reads its rows, and deltalake cannot: {error}")
        return reasons

    def has_rows(self) -> bool:
        """Return whether it has any rows."""
        return bool(self.table.file_uris())

    def mark(self, key: str) -> WindowMark:
        """Return the newest window of a sink that the table holds."""
        if self.own is not None and key in self.own.marks:
            return self.own.marks[key]
        return mark_of(key, self.table.transaction_version)

    def rows_with(self, values: pa.Table) -> pa.Table:
        """Return the rows that have the values of one of some rows, in all columns of these."""
        dataset, names = self.table.to_pyarrow_dataset(), values.column_names
        kinds = {name: values.schema.field(name).type for name in names}
        # files are left out by the bounds of their values, which deltalake has exactly for these types only
        exact = [
            name for name in names if t.is_signed_integer(kinds[name]) or t.is_date(kinds[name]) or t.is_boolean(kinds[name])
        ]
        sets = [pc.field(name).isin(values.column(name).unique().cast(dataset.schema.field(name).type)) for name in exact]
        matching: list[pa.Table] = [dataset.schema.empty_table()]
        waiting: list[pa.RecordBatch] = []
        batches = dataset.to_batches(filter=functools.reduce(operator.and_, sets) if sets else None)
        for batch in itertools.chain(batches, [None]):
            if batch is not None:
                waiting.append(batch)
            if batch is None or sum(each.num_rows for each in waiting) >= _TOGETHER:
                rows = pa.Table.from_batches(waiting, dataset.schema)
                codes, _ = group_codes(pa.concat_tables([rows.select(names).cast(values.schema), values]), names)
                is_matched = np.isin(codes[: rows.num_rows], codes[rows.num_rows :])
                matching.append(rows.filter(pa.array(is_matched)) if names else rows)
                waiting = []
        return pa.concat_tables(matching)

    def evolve(self, columns: pa.Schema) -> None:
        """Add columns, in a version of its own. Raises DeltaError if other writers came first."""
        package, present = deltalake("DeltaWriter"), self.columns
        fields = [field for field in package.Schema.from_arrow(columns).fields if field.name not in present.names]
        self.table.alter.add_columns(fields, commit_properties=package.CommitProperties(max_commit_retries=0))
        self.table.update_incremental()

    def may_append(self) -> bool:
        """Return True if `append` may be called."""
        return self.own is not None or may_append(self.path, self.storage_options, self.table.protocol())

    def append(self, files: Sequence[StagedRows], key: str, mark: WindowMark, custom_metadata: Mapping[str, Any]) -> DeltaLog:
        """Add files in one version, and return the table with it. Raises DeltaError if other writers came first."""
        version, partition_columns = self.version + 1, self.partition_columns
        own = OwnVersion(
            version=version,
            body=append_body(files, partition_columns, key, mark, custom_metadata),
            id=self.id,
            columns=self.columns,
            partition_columns=partition_columns,
            marks={**({} if self.own is None else self.own.marks), key: mark},
            checkpoint_interval=self._checkpoint_interval(),
        )
        if not own.commit(self.path):
            raise deltalake("DeltaWriter").exceptions.CommitFailedError(f"version {version} is there")
        log = DeltaLog(self.path, self.storage_options, own)
        if (version + 1) % own.checkpoint_interval == 0:
            log._checkpoint()
        return log

    def _checkpoint_interval(self) -> int:
        if self.own is not None:
            return self.own.checkpoint_interval
        return max(1, int(self.table.metadata().configuration.get(CHECKPOINT_INTERVAL, _INTERVAL)))

    def _checkpoint(self) -> None:
        """Write a checkpoint, and remove what the log need not keep, as `deltalake` does behind its own commits."""
        table = deltalake("DeltaWriter").DeltaTable(self.path, storage_options=delta_options(self.path, self.storage_options))
        table.create_checkpoint()
        self._sync_checkpoint(table.version())
        if table.metadata().configuration.get("delta.enableExpiredLogCleanup", "true").lower() != "false":
            table.cleanup_metadata()

    def secure(self, *, files: bool) -> None:
        """Wait until the newest versions survive a power cut; with `files`, those that `deltalake` has written, too.

        A window may have made several, so all since the last checkpoint are waited for. Local disks only.
        """
        if self.own is not None:
            return  # it was synced when it was written
        log = join(self.path, LOG, f"{self.version:020d}.json")
        if local_path(log) is None or not file_system(log).exists(log):
            return
        written: list[str] = []
        if files:
            with file_system(log).open(log) as stream:
                actions = [json.loads(line) for line in stream.read().splitlines()]
            written = [join(self.path, unquote(action["add"]["path"])) for action in actions if "add" in action]
        first = max(0, self.version - _SHORT_INTERVAL)
        entries = [join(self.path, LOG, f"{version:020d}.json") for version in range(first, self.version + 1)]
        sync_local([*written, *entries])
        self._sync_checkpoint(self.version)

    def _sync_checkpoint(self, version: int) -> None:
        """Let a checkpoint of a version survive a power cut: the table cannot be opened by one without bytes."""
        checkpoint = join(self.path, LOG, f"{version:020d}.checkpoint.parquet")
        if local_path(checkpoint) is not None and file_system(checkpoint).exists(checkpoint):
            sync_local([checkpoint, join(self.path, LOG, HINT)])

    def rolled_back(self, note: Published) -> str | None:
        """Return how the table lost what it had when a note was written; None if it has it."""
        if self.version < note.version:
            return f"it is at version {self.version}"
        return self.commits_since(note.version, "").restored

    def foreign_changes(self, note: Published, key: str) -> Sequence[str]:
        """Return a phrase for each commit since a note by which another writer has changed rows."""
        return self.commits_since(note.version, key).changes

    def commits_since(self, version: int, key: str) -> ForeignCommits:
        """Return the commits behind a version. `key`: of our own."""
        state = ForeignCommits()
        states = {version: state}  # a restored version brings back what held then
        for entry in self._commits(version):
            number, operation = int(entry["version"]), str(entry.get("operation", "an unknown operation"))
            if operation == "RESTORE":
                target = self._restored(entry)
                gone = f"version {number} restored version {'?' if target is None else target}"
                state = states.get(-1 if target is None else target, ForeignCommits(restored=gone))
            elif operation not in _NO_ROWS_CHANGE and entry.get("dagflow.sink") != key:
                engine = entry.get("engineInfo", "an unknown engine")
                change = f"version {number}: {operation} at {_committed_at(entry)} by {engine}"
                state = attrs.evolve(state, changes=(*state.changes, change))
            states[number] = state
        return state

    def _commits(self, version: int) -> Iterator[dict[str, Any]]:
        """Yield the commits behind a version, the oldest first. Those that the log no longer has are left out."""
        if self.version <= version:
            return
        newest_first = self.table.history(self.version - version)
        yield from (entry for entry in reversed(newest_first) if int(entry["version"]) > version)

    def _restored(self, entry: Mapping[str, Any]) -> int | None:
        """Return the version that a commit restored, where it can be known."""
        parameters = entry.get("operationParameters") or {}
        text = str(parameters.get("version"))
        if text.isdigit():
            return int(text)
        text = str(parameters.get("datetime") or parameters.get("timestamp"))
        try:  # deltalake writes milliseconds, Spark a date
            limit = int(text) if text.isdigit() else datetime.datetime.fromisoformat(text).timestamp() * 1000
        except ValueError:
            return None
        before = (int(e["version"]) for e in self.table.history() if int(e.get("timestamp", 0)) <= limit)
        return max((each for each in before if each < int(entry["version"])), default=None)


def _committed_at(entry: Mapping[str, Any]) -> str:
    stamp = entry.get("timestamp")
    return moment(stamp) if isinstance(stamp, int) else "an unknown time"
