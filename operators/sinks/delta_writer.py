"""DeltaWriter: writes rows to a Delta table, each window in one transaction."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any, ClassVar, Generic

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from dagflow import InputPort, SinkLaunch, StagedWindow, WindowMark
from dagflow.config import Secret
from operators.aggregate.accumulators import group_codes
from operators.extras.delta_log import check_log, mend_log
from operators.extras.stores import patiently
from operators.extras.tables import deltalake, opening
from operators.sinks.delta.appends import transactions
from operators.sinks.delta.log import RULES, DeltaLog
from operators.sinks.delta.stand_in import StandIn
from operators.sinks.delta.stats import stats_json
from operators.sinks.delta.types import DELTA, delta_type
from operators.sinks.errors import ValueNotWritable
from operators.sinks.table_formats.columns import cast_to
from operators.sinks.table_formats.errors import TableSchemaDiffers
from operators.sinks.table_formats.published import PublishedNotes
from operators.sinks.table_formats.rows import StagedRows
from operators.sinks.table_formats.staged_files import StagedParquet
from operators.sinks.table_formats.writer import TableFormatWriter, window_key
from operators.sinks.tables.errors import RuleBroken

T = TypeVar("T", default=Any)


@attrs.define
class DeltaWriter(TableFormatWriter[T], Generic[T]):
    """Write rows to the Delta table `path`, each window in one transaction of the table, exactly once.

    Needs the package `deltalake` (`pip install 'dagflow[delta]'`). The table is created with the columns of the first window that
    has rows. Readers see all of a window or nothing of it: any reader of Delta tables, of the newest or of an earlier version.

    The transaction of a window also carries the application, the sink, the window and its decision (Delta's `txn` actions), so a
    window that is in the table is never published again. Other writers may add rows at the same time. `docs/how-to/delta.md` says
    what happens on each failure.

    A table with `NOT NULL` columns takes no nulls there. One with constraints or invariants is refused, but for `upsert`, since
    only `deltalake` evaluates their expressions, as it merges.

    Args:
        partition_columns: columns that the table is partitioned by.
        storage_options: of `deltalake`, for object stores where the environment does not have them.

    Raises PackageMissing, TableSchemaDiffers, TableDropped, TableRecreated, TableRolledBack, ForeignChange, StagedFileGone,
    ValueNotWritable for nulls.

    >>> import tempfile, deltalake
    >>> from dagflow.testing import Window, run_operator
    >>> @attrs.frozen
    ... class Sale:
    ...     country: str
    ...     amount: float
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = DeltaWriter[Sale](folder, partition_columns=["country"])
    ...     _ = run_operator(writer, {"input": [Window([Sale("se", 1.5), Sale("no", 2.0)]), Window([Sale("se", 0.5)])]})
    ...     table = deltalake.DeltaTable(folder)
    ...     print(table.version(), sorted(table.to_pyarrow_table().column("amount").to_pylist()))
    1 [0.5, 1.5, 2.0]
    """

    format_name: ClassVar[str] = DELTA
    creates_with_rows: ClassVar[bool] = True
    replaces_columns: ClassVar[bool] = True

    storage_options: dict[str, Secret] = attrs.field(factory=dict, kw_only=True, repr=False)

    input = InputPort[T]()

    @input.batch
    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a batch: all of it or, when it raises, nothing."""
        if not batch.num_rows and self.mode != "replace":
            return
        self._agreed(batch.schema)
        for name in self.partition_columns:
            if _has_empty(batch.column(name)):
                help_ = "Delta reads an empty partition value as null: write null or another text, or leave such rows out"
                raise ValueNotWritable(
                    operator=type(self).__name__, column=name, value="an empty text", format="a partition of Delta", help=help_
                )
        self._task.limits.check(batch)
        self._check_rules(batch)
        nan = {name for name, column in zip(batch.schema.names, batch.columns, strict=True) if _has_nan(column)}
        super().write_batch(batch)
        self._task.with_nan |= nan

    def destination(self) -> str:
        """Return the folder or URL of the table."""
        return f"the Delta table {self.path}"

    def stored_type(self, kind: pa.DataType) -> pa.DataType | None:
        """Return the type as Delta stores it; None for nulls. Raises ValueError."""
        return delta_type(kind)

    def open_table(self) -> DeltaLog | None:
        """Open the newest version; None if there is no table."""
        return DeltaLog.of(self.path, self.storage_options)

    def create_table(self, columns: pa.Schema) -> None:
        """Create the table without rows."""
        DeltaLog.create(self.path, self.storage_options, columns, self.partition_columns, appends=self.mode in (None, "append"))

    def check_store(self, launch: SinkLaunch) -> Sequence[str]:
        """See `TableFormatWriter.check_store`. Before that, what a power cut has left of the newest commit is removed."""
        if launch.application:
            with opening(launch.sink, self.path):
                note = PublishedNotes(self._own(launch.application, launch.sink)).newest()
                mend_log(self.path, -1 if note is None else note.version)
        return super().check_store(launch)

    def newest_mark(self, last: StagedWindow) -> WindowMark:
        """See `TableFormatWriter.newest_mark`. Also raises TableLogDamaged, for an entry of the log without bytes."""
        with patiently(self.path, "looking through the log of the table"):
            if (table := self.open_table()) is not None:
                check_log(last.sink, self.path, table.version)
        return super().newest_mark(last)

    def conflicts(self) -> tuple[type[Exception], ...]:
        """Return the errors of the package."""
        return (deltalake("DeltaWriter").exceptions.DeltaError,)

    def folded(self, name: str) -> str:
        """Return a name in lower case: Delta does not tell `A` from `a`."""
        return name.lower()

    def stats_of(self, file: StagedParquet, with_nan: Collection[str]) -> str:
        """Return the statistics of a file."""
        return stats_json(file.rows, file.metadata, with_nan)

    def commit(self, window: StagedWindow, files: list[StagedRows], table: DeltaLog | None, columns: pa.Schema) -> DeltaLog:
        """Commit files in one version, which names the window in a `txn` action, and return the table with it."""
        if table is not None and not self._takes_columns():
            for name in self._nulls(files, table):
                raise self._null(name)
        package, key, now = deltalake("DeltaWriter"), window_key(window), int(time.time() * 1000)
        names = {"dagflow.sink": key, "dagflow.window": window.number}
        if self.mode in (None, "append") and table is not None and table.may_append():
            return table.append(files, key, window.mark, names)
        properties = package.CommitProperties(
            custom_metadata=names,
            max_commit_retries=0,  # what others have committed meanwhile is looked at first
            app_transactions=[package.Transaction(name, number, now) for name, number in transactions(key, window.mark)],
        )
        if self.mode == "upsert":
            assert table is not None  # it is created first
            rows, gone = self.net_rows(window, files, columns)
            if keys := self.row_keys():
                self._merge(rows, gone, keys, table, properties)
            else:
                self._change_rows(window, rows, gone, table, properties)
            table.table.update_incremental()
            if table.mark(key).number >= window.number:
                return table
            adds = []  # a merge that changes no row commits nothing
        else:
            adds = [package.transaction.AddAction(file.name, file.size, file.partition, now, True, file.stats) for file in files]
            if table is None:
                appends, place = self.mode in (None, "append"), (self.path, self.storage_options)
                DeltaLog.create(*place, columns, self.partition_columns, adds, properties, appends=appends)
                table = self.open_table()
                assert table is not None
                return table
        how, schema = "overwrite" if self.mode == "replace" else "append", package.Schema.from_arrow(columns)
        table.table.create_write_transaction(adds, how, schema, partition_by=self.partition_columns, commit_properties=properties)
        table.table.update_incremental()
        return table

    def _known_columns(self, folder: str) -> pa.Schema | None:
        note = PublishedNotes(folder).newest()
        is_known = note is not None and note.columns
        if self.mode == "upsert" and not (is_known and note is not None and RULES not in note.facts):
            table = self.open_table()
            if table is not None and table.rules:
                self._task.stand_in = StandIn.of(table.table)
        return super()._known_columns(folder)

    def _check_rules(self, batch: pa.RecordBatch) -> None:
        """Raise ValueNotWritable for rows that the rules of the table refuse."""
        if self._task.stand_in is None:
            return
        schema = self._agreed(batch.schema)
        rows = pa.Table.from_batches([cast_to(batch.select(schema.names), schema, type(self).__name__)])
        try:
            self._task.stand_in.take(rows)
        except deltalake("DeltaWriter").exceptions.DeltaError as error:
            reason = str(error).partition("\n")[0].strip()
            raise RuleBroken(operator=type(self).__name__, table=self.path, reason=reason) from error

    def _columns_after(self, columns: pa.Schema, table: Any, sink: str) -> pa.Schema:
        if self.mode != "upsert" and table.rules:
            how = "drop it, or write the table with mode='upsert', whose rows deltalake checks as it merges them"
            raise TableSchemaDiffers(sink=sink, table=self.path, differences=tuple(table.rules), help=how)
        return super()._columns_after(columns, table, sink)

    def _nulls(self, files: list[StagedRows], table: DeltaLog) -> Iterator[str]:
        """Yield the columns of files that have nulls where the table takes none."""
        for name in table.required:
            for file in files:
                is_partition = name in file.partition
                counts = {} if is_partition else json.loads(file.stats)["nullCount"]
                if name not in file.schema.names or (file.partition[name] is None if is_partition else counts.get(name)):
                    yield name

    def _null(self, column: str) -> ValueNotWritable:
        return ValueNotWritable(
            operator=type(self).__name__,
            column=column,
            value="null",
            format=f"the table {self.path}",
            help="leave such rows out with Filter(…), or drop NOT NULL from the column",
        )

    def _merge(self, rows: pa.Table, gone: pa.Table, names: Sequence[str], table: DeltaLog, properties: Any) -> None:
        """Put rows into the table, in the place of those that are equal in some columns, and remove those of `gone`."""
        is_gone = max(rows.column_names, key=len) + "_"  # a name that no column has
        marks = pa.concat_arrays([pa.repeat(False, rows.num_rows), pa.repeat(True, gone.num_rows)])
        source = pa.concat_tables([rows, gone]).append_column(is_gone, marks)
        by = " AND ".join(f"target.{_quoted(name)} = source.{_quoted(name)}" for name in names)
        merge = table.table.merge(source, by, source_alias="source", target_alias="target", commit_properties=properties)
        merge = merge.when_matched_delete(f"source.{_quoted(is_gone)}").when_matched_update_all(except_cols=[is_gone])
        merge.when_not_matched_insert_all(f"NOT source.{_quoted(is_gone)}", except_cols=[is_gone]).execute()

    def _change_rows(self, window: StagedWindow, rows: pa.Table, gone: pa.Table, table: DeltaLog, properties: Any) -> None:
        """Add rows to the table, and remove one for each of `gone`."""
        names: Sequence[str] = ()
        if gone.num_rows:
            stay, names = self.rows_that_stay(window, table, gone)
            rows = pa.concat_tables([rows, stay])
        if names:
            first = max(rows.column_names, key=len) + "_"  # names that no column has
            keys = [f"{first}{number}" for number, _ in enumerate(names)]
            different = gone.take(pa.array(group_codes(gone, names)[1])).select(names).rename_columns(keys)
            rows = rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
            source = pa.concat_tables([rows, different], promote_options="default")  # rows have no keys, and match nothing
            by = " AND ".join(f"target.{_quoted(name)} = source.{_quoted(key)}" for name, key in zip(names, keys, strict=True))
            merge = table.table.merge(source, by, source_alias="source", target_alias="target", commit_properties=properties)
            merge = merge.when_matched_delete()
            merge.when_not_matched_insert_all(f"source.{_quoted(keys[0])} IS NULL", except_cols=keys).execute()
        elif gone.num_rows or rows.num_rows:
            how: Any = "overwrite" if gone.num_rows else "append"
            deltalake("DeltaWriter").write_deltalake(table.table, rows, mode=how, commit_properties=properties)


def _has_empty(column: Any) -> bool:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_dictionary(column.type)
    return bool(is_text and pc.any(pc.equal(column.cast(pa.string()), ""), min_count=0).as_py())


def _has_nan(column: Any) -> bool:
    return bool(pa.types.is_floating(column.type) and pc.any(pc.is_nan(column), min_count=0).as_py())


def _quoted(name: str) -> str:
    text = name.replace("`", "``")
    return f"`{text}`"
