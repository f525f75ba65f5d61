"""The base of sinks that stage Parquet files beside a table, and commit them in one transaction of the table."""

from __future__ import annotations

import functools
import time
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Generic

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as t
from typing_extensions import TypeVar

from dagflow import InputPort, OperatorContext, Sink, SinkLaunch, StagedWindow, WindowMark
from dagflow.arrow_types import type_named
from dagflow.config import one_of
from dagflow.errors import HistoriesDiffer
from dagflow.storage import OWN_FOLDER, absolute, file_system, is_local, join, local_path, open_store, probe
from operators.extras.stores import patiently
from operators.extras.tables import opening
from operators.names import one_or_more
from operators.problems import all_problems
from operators.sinks.errors import TypeNotWritable
from operators.sinks.files.open_files import check_name
from operators.sinks.files.partitions import check_columns, folder_names, folders, nowhere
from operators.sinks.parquet.encodings import encodings_of
from operators.sinks.parquet.files import CountingFile
from operators.sinks.parquet_writer import ParquetWriter
from operators.sinks.table_formats.columns import cast_to, extended, last_of_each, misfits, never, union
from operators.sinks.table_formats.errors import (
    TableDropped,
    TableRecreated,
    TableRolledBack,
    TableSchemaDiffers,
)
from operators.sinks.table_formats.opened import REQUIRED, OpenedTable
from operators.sinks.table_formats.published import Published, PublishedNotes
from operators.sinks.table_formats.rows import StagedRows, partition_values, read_rows, staged_rows, with_values
from operators.sinks.table_formats.staged_files import (
    AttemptFolder,
    StagedParquet,
    TaskState,
    applications_of,
    check_staged,
    move_into_table,
    own_folder,
    sweep_staged,
)
from operators.sinks.tables.acceptance import TableLimits, check_keys, check_names
from operators.sinks.tables.changes import matching_columns, net_changes
from operators.sinks.tables.earlier import earlier_rows
from operators.sinks.tables.errors import ForeignChange, KeysNotUnique, RowsMissing
from operators.sinks.tables.modes import MODES, ON_SCHEMA_CHANGE, Mode, OnSchemaChange, keys_of, mode_of_rows

T = TypeVar("T", default=Any)

MAX_COMMITS = 20
"""The most attempts of a commit while other writers come before it."""
OTHER_TABLE = "change the table so that it takes such rows, or write to another one"
EVOLVE = "on_schema_change='evolve' adds new columns to the table; cast others before they come here, or leave them out"


def _place(path: Any) -> str:
    text = str(path)
    return absolute(text) if text and is_local(text) else text  # tasks may run in another folder


@attrs.define
class TableFormatWriter(ParquetWriter[T], Sink, Generic[T]):
    """A sink that stages Parquet files beside a table, and commits them in one transaction of the table.

    Attributes:
        mode: `append` adds the rows of each window; `replace` makes them the content of the table; `upsert` updates the rows
            that have equal `keys`, inserts the others, and deletes those that are taken back: the driver merges them, so a window
            must fit in its memory. A window without rows leaves the table as it is. None: append where rows stay; where they may
            be taken back, replace.
        keys: the columns that identify a row, for `upsert`. They hold no nulls. Of rows with equal keys in a window, the last one
            counts (tasks in order); where rows may be taken back, two that stand are refused. With `"*"`, rows are found by all
            of their columns: those that come are inserted, and for each that is taken back an equal one is deleted.
        on_schema_change: the reaction to columns that the table does not have: `fail`, or `evolve` the table. A column that a
            batch lacks is null. Types that the table's types hold are cast.
    """

    format_name: ClassVar[str] = ""
    version_name: ClassVar[str] = "version"
    creates_with_rows: ClassVar[bool] = False  # a table is created by the transaction of its first window
    replaces_columns: ClassVar[bool] = False  # `replace` may change all columns
    keeps_partition_columns: ClassVar[bool] = False  # files have the columns that name their folders
    compares_floats: ClassVar[bool] = True  # floats may be keys

    path: str = attrs.field(converter=_place)
    mode: Mode | None = attrs.field(default=None, validator=attrs.validators.optional(one_of(MODES)))  # type: ignore[assignment]
    keys: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=one_or_more)
    on_schema_change: OnSchemaChange = attrs.field(  # type: ignore[assignment]
        default="fail", kw_only=True, validator=one_of(ON_SCHEMA_CHANGE)
    )

    input = InputPort[T]()

    @property
    def takes_changes(self) -> bool:  # type: ignore[override]
        """True for upserts: a row that is taken back is found by its key, or by all of its columns."""
        return self.mode == "upsert"

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if not self.suffix.endswith(".parquet"):
                problems.append(f"suffix is {self.suffix!r}: files of a table are Parquet")

    def output_folders(self) -> list[str]:
        """Return none: the table's own log says which files count."""
        return []

    def task_folders(self) -> list[str]:
        """Return the folder or URL below which the sink stages files; none if only the catalog knows it."""
        return [self.home()]

    def needed_columns(self, port: str) -> dict[str, Sequence[str]]:
        """Return the columns that name folders, and the keys."""
        return {"partition_columns": self.partition_columns, "keys": self.row_keys()}

    def row_keys(self) -> tuple[str, ...]:
        """Return the keys of an upsert; none where all columns identify a row."""
        return keys_of(self.keys)

    def stored_type(self, kind: pa.DataType) -> pa.DataType | None:
        """Return the type as the table format stores it; None for a type without values. Raises ValueError for other types."""
        raise NotImplementedError

    def home(self) -> str:
        """Return the folder or URL below which the sink stages files and keeps its notes."""
        return self.path

    def names_of(self, columns: pa.Schema) -> Sequence[str]:
        """Return the names that must differ."""
        return list(columns.names)

    def folded(self, name: str) -> str:
        """Return the form of a name that is equal for names of the same column."""
        return name

    def promotes(self, old: pa.DataType, new: pa.DataType) -> bool:
        """Return True if the format can give a column of the first type the second one, which holds all of its values."""
        return False

    def open_table(self) -> OpenedTable | None:
        """Open the newest state of the table; None if there is no table."""
        raise NotImplementedError

    def create_table(self, columns: pa.Schema) -> None:
        """Create the table without rows. Raises one of `conflicts` if there is one."""
        raise NotImplementedError

    def commit(self, window: StagedWindow, files: list[StagedRows], table: Any, columns: pa.Schema) -> OpenedTable:
        """Commit files in one transaction that names the window, and return the table with it.

        `files`: their names are in the table already, but for `upsert`; `table`: as `open_table` returned it, or None where
        `creates_with_rows`; `columns`: of the table, from now on. Raises one of `conflicts` if other writers came first.
        """
        raise NotImplementedError

    def conflicts(self) -> tuple[type[Exception], ...]:
        """Return the errors of commits that came too late, among others."""
        raise NotImplementedError

    def stats_of(self, file: StagedParquet, with_nan: Collection[str]) -> str:
        """Return the statistics of a file, as the table format keeps them. `with_nan`: the columns that may have NaN."""
        return ""

    # before a launch

    def check_store(self, launch: SinkLaunch) -> Sequence[str]:
        """See `Sink.check_store`.

        Raises PackageMissing, TableUnreachable, StoreRefused, TableSchemaDiffers, TableHasRows, TypeNotWritable.
        """
        with opening(launch.sink, self.path):
            table = self.open_table()
            self.try_place(launch, table)
        check_names([name for name, _ in launch.columns or ()], launch.sink, self.format_name, self.folded)
        kinds = [(name, self.storable(name, type_named(kind))) for name, kind in launch.columns or ()]
        self._check_parts(pa.schema([(name, kind) for name, kind in kinds if kind is not None]))
        if table is None:
            return ()
        self._columns_after(pa.schema([(name, kind) for name, kind in kinds if kind is not None]), table, launch.sink)
        if reasons := table.refusals(self.mode or "append", by_row=self.mode == "upsert" and not self.row_keys()):
            raise TableSchemaDiffers(sink=launch.sink, table=self.path, differences=tuple(reasons), help=OTHER_TABLE)
        if launch.application:
            return ()
        windows = {each: table.mark(f"{each}/{launch.sink}").number for each in applications_of(self.home())}
        published = {application: window for application, window in windows.items() if window >= 0}
        return earlier_rows(launch, mode_of_rows(self.mode or "append", self.row_keys()), self.path, published, table.has_rows)

    def try_place(self, launch: SinkLaunch, table: OpenedTable | None) -> None:
        """Raise StoreRefused unless an object store publishes as it must. It is tried until the sink has published to it."""
        own = self._own(launch.application, launch.sink)
        if local_path(own) is None and (not launch.application or PublishedNotes(own).newest() is None):
            _probe_once(join(self.home(), OWN_FOLDER))

    # in tasks

    def setup(self, context: OperatorContext) -> None:
        """Make the set of open files."""
        super().setup(context)
        self._task = TaskState()

    def begin_window(self, window: int) -> None:
        """Begin an attempt."""
        super().begin_window(window)
        self._task.begin()

    @input.batch
    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a batch: all of it or, when it raises, nothing."""
        if not batch.num_rows and self.mode != "replace":
            return
        name = type(self).__name__
        schema = self._agreed(batch.schema)
        self._task.limits.check(batch)
        batch = cast_to(batch.select(schema.names), schema, name)
        for folder in folder_names(batch, self.partition_columns):
            check_name(folder, name, "partition_columns")
        named = [] if self.mode == "upsert" else self.partition_columns
        parts = list(folders(batch, named, name)) if named else [("", batch)]
        parts = parts or [(nowhere(named), batch.drop_columns(list(named)))]  # the result has no rows
        kinds, kind = self._task.kinds, (schema, self._sign())
        if kind not in kinds:
            kinds.append(kind)
        number = kinds.index(kind)
        for folder, part in parts:
            self.write_part((folder, number), with_values(part, folder, schema) if self.keeps_partition_columns else part)

    def _sign(self) -> int:
        """Return the sign of the rows at hand: 0 where none are taken back."""
        return self._context.sign if self.input.is_changing else 0

    def check_columns(self, port: str, schema: pa.Schema) -> None:
        """Raise ColumnNamesClash, TypeNotWritable, PartitionColumnRefused."""
        super().check_columns(port, schema)
        check_names(self.names_of(schema), type(self).__name__, self.format_name, self.folded)
        self._check_parts(schema)

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise TypeNotWritable."""
        for field in schema:
            self.storable(field.name, field.type)

    def storable(self, name: str, kind: pa.DataType) -> pa.DataType | None:
        """Return the type as the table format stores it; None to leave the column out. Raises TypeNotWritable."""
        try:
            return self.stored_type(kind)
        except ValueError as error:
            raise TypeNotWritable(
                operator=type(self).__name__,
                column=name,
                type=str(kind),
                format=self.format_name,
                help="cast it, or leave it out, before it comes here",
            ) from error

    def _agreed(self, arriving: pa.Schema) -> pa.Schema:
        """Return the columns in which batches of a schema are written. Raises TableSchemaDiffers, TypeNotWritable."""
        task = self._task
        if arriving not in task.columns:
            check_names(self.names_of(arriving), type(self).__name__, self.format_name, self.folded)
            kinds = {field.name: self.storable(field.name, field.type) for field in arriving}
            if task.attempt is None:
                with patiently(self.path, "looking up the columns of the table", in_task=True):
                    folder = self._own(self._context.application, self._context.name)
                    table = self._known_columns(folder)
                task.attempt, task.table = AttemptFolder(join(folder, "staged"), self._context.window), table
                task.limits = self._limits(() if table is None or self._takes_columns() else _required(table))
            self._check_parts(arriving)
            for name in self.partition_columns:  # a column of nulls only names folders, too
                if name in kinds and kinds[name] is None:
                    is_known = task.table is not None and name in task.table.names
                    kinds[name] = task.table.field(name).type if task.table is not None and is_known else pa.string()
            if not any(kinds.values()):
                self._name_nulls(kinds)
            columns = pa.schema([(name, kind) for name, kind in kinds.items() if kind is not None])
            task.columns[arriving] = self._fitted(columns)
        return task.columns[arriving]

    def _limits(self, required: Sequence[str]) -> TableLimits:
        operator, target = type(self).__name__, f"the table {self.path}"
        return TableLimits(operator=operator, target=target, required=required, keys=self.row_keys(), is_dated=True)

    def _check_parts(self, columns: pa.Schema) -> None:
        """Raise TypeNotWritable and PartitionColumnRefused for columns that cannot be keys, or cannot name folders."""
        check_keys(columns, self.row_keys(), type(self).__name__, self.format_name, floats=self.compares_floats)
        if self.partition_columns and set(self.partition_columns) <= set(columns.names):
            named = pa.schema([field for field in columns if not t.is_null(field.type)])
            names = [name for name in self.partition_columns if name in named.names]
            check_columns(named, names, type(self).__name__, times=self.mode == "upsert")  # then a library names the folders

    def _name_nulls(self, kinds: dict[str, pa.DataType | None]) -> None:
        """Give a column of rows that are nulls only the type that the table has. Raises TypeNotWritable if it has none."""
        table = self._task.table
        for name in kinds:
            if table is not None and name in table.names:
                kinds[name] = table.field(name).type
                return
        help_ = "give the reader a schema, or leave such rows out"
        names = ", ".join(kinds) or "(none)"
        raise TypeNotWritable(operator=type(self).__name__, column=names, type="null", format=self.format_name, help=help_)

    def _known_columns(self, folder: str) -> pa.Schema | None:
        """Return the columns of the table, from the newest note where there is one; None without a table."""
        note = PublishedNotes(folder).newest()
        if note is not None and note.columns:
            required = {name.removeprefix(REQUIRED) for name in note.facts if name.startswith(REQUIRED)}
            return pa.schema([pa.field(name, type_named(kind), name not in required) for name, kind in note.columns])
        table = self.open_table()
        return None if table is None else table.columns

    def _fitted(self, columns: pa.Schema) -> pa.Schema:
        for name in (*self.row_keys(), *self.partition_columns):
            if name not in columns.names:
                reason = f"column {name!r} is missing: " + ("it is a key" if name in self.row_keys() else "it names folders")
                raise TableSchemaDiffers(sink=self._context.name, table=self.path, differences=(reason,))
        if self._takes_columns():
            return columns
        table = self._task.table
        if table is None:
            self._task.table = columns  # the table gets the columns of the first batch
            return columns
        known = self._task.table = self._extended(table, columns, self._context.name)
        return pa.schema([field for field in known if field.name in columns.names])

    def _create(self, key: tuple[str, int]) -> tuple[str, Any]:
        folder, number = key
        assert self._task.attempt is not None  # rows came
        file = self._task.attempt.create(folder, self._context.partition, *self._task.kinds[number])
        return file.name, file

    def _writer(self, sink: Any, first: pa.Table, large: Collection[str] = ()) -> Any:
        how = {"compression": self.compression, "compression_level": self.compression_level, **encodings_of(first, large)}
        return pq.ParquetWriter(sink, first.schema, metadata_collector=sink.file.metadata, **how)

    def stage(self) -> Any:
        """Return the descriptions of the files that the task has written."""
        if self._task.attempt is None:
            return None
        with patiently(self.path, "writing the files of the table", in_task=True):
            self._task.attempt.sync()
        staged = [
            StagedRows(
                path=file.path,
                name=file.name,
                rows=file.rows,
                size=file.size,
                partition=partition_values(file.folder),
                columns=[[field.name, str(field.type)] for field in file.columns],
                stats=self.stats_of(file, self._task.with_nan),
                sign=file.sign,
            )
            for file in self._task.attempt.files
        ]
        return [attrs.asdict(each) for each in staged] or None

    # in tasks, and on the driver

    def _takes_columns(self) -> bool:
        """Return True if the columns of the rows become those of the table."""
        return self.mode == "replace" and self.on_schema_change == "evolve" and self.replaces_columns

    def _extended(self, table: pa.Schema, columns: pa.Schema, sink: str) -> pa.Schema:
        """Return the columns of a table that takes rows with these columns. Raises TableSchemaDiffers."""
        check_names(
            [*table.names, *(name for name in columns.names if name not in table.names)], sink, self.format_name, self.folded
        )
        may_extend = self.on_schema_change == "evolve"
        if problems := misfits(columns, table, may_extend=may_extend, promotes=self.promotes):
            raise TableSchemaDiffers(sink=sink, table=self.path, differences=problems, help=EVOLVE)
        return extended(table, columns, self.promotes if may_extend else never)

    # on the driver

    def is_published(self, window: StagedWindow) -> bool:
        """Return True if the table has the window: one read of the newest note or, after a crash, of the table."""
        with patiently(self.path, "looking for a window in the table"):
            note = self._notes(window).newest()
            if note is not None and note.window >= window.number:
                return True
            table = self.open_table()
            if table is None or table.mark(window_key(window)).number < window.number:
                return False
            table.secure(files=self.mode == "upsert")  # the launch that committed it may have died before it did
            return True

    def newest_mark(self, last: StagedWindow) -> WindowMark:
        """See `Sink.newest_mark`. Raises TableDropped, TableRecreated, TableRolledBack."""
        with patiently(self.path, "looking for the newest window in the table"):
            table = self.open_table()
            where = {"sink": last.sink, "table": self.path, "window": None}
            self._check_history(where, last.number, self._notes(last).newest(), table, window_key(last))
            return WindowMark() if table is None else table.mark(window_key(last))

    def check_window(self, window: StagedWindow) -> None:
        """Raise ColumnNamesClash or TableSchemaDiffers if files of several tasks do not go into one table; KeysNotUnique.

        Files that have the same columns do: their tasks have compared them with the table.
        """
        files = staged_rows(window)
        is_changing = any(file.sign for file in files)
        if len({str(file.columns) for file in files}) < 2 and not is_changing:
            return
        with patiently(self.path, "looking at a window"):
            columns = union([file.schema for file in files])
            check_names(self.names_of(columns), window.sink, self.format_name, self.folded)
            table = self.open_table()
            if table is not None:
                columns = self._columns_after(columns, table, window.sink)
            for file in files:
                self._check_cast(file, columns, window.sink)
            if is_changing:
                _, gone = self.net_rows(window, files, columns)
                if gone.num_rows and not self.row_keys():
                    self.rows_that_stay(window, table, gone)

    def net_rows(self, window: StagedWindow, files: list[StagedRows], columns: pa.Schema) -> tuple[pa.Table, pa.Table]:
        """Return the rows of an upsert, one of each key, and rows whose keys leave the table; without keys, all of both.

        Of an append stream, the last row of a key counts. Raises KeysNotUnique for several of one key in a changing stream: which
        of them could be taken back later?
        """
        rows, gone = (read_rows([file for file in files if (file.sign < 0) == is_gone], columns) for is_gone in (False, True))
        if not any(file.sign for file in files):
            return last_of_each(rows, self.row_keys()) if self.row_keys() else rows, gone
        net = net_changes(rows, gone, self.row_keys())
        if not net.is_unique:
            raise KeysNotUnique(sink=window.sink, table=self.path, window=window.number, keys=self.keys)
        return net.inserted, net.gone

    def rows_that_stay(self, window: StagedWindow, table: Any, gone: pa.Table) -> tuple[pa.Table, list[str]]:
        """Return the rows that a commit has to put back, and the columns by which it finds those that go.

        It can only find them by columns that are compared alike everywhere, so it may remove others with them.
        Raises RowsMissing where a row that goes is not in the table.
        """
        known = () if table is None else table.columns.names
        names = [name for name in matching_columns(gone) if name in known]
        matched = gone.slice(0, 0) if table is None else table.rows_with(gone.select(names))
        for field in gone.schema:
            if field.name not in matched.column_names:  # a column that is new
                matched = matched.append_column(field, pa.nulls(len(matched), field.type))
        matched = matched.select(gone.column_names).cast(gone.schema)
        net = net_changes(matched, gone, ())
        if missing := net.gone.num_rows:
            row = str(net.gone.slice(0, 1).to_pylist()[0])
            raise RowsMissing(sink=window.sink, table=self.path, window=window.number, rows=missing, row=row)
        return net.inserted, names

    def _check_cast(self, file: StagedRows, columns: pa.Schema, sink: str) -> None:
        """Raise TableSchemaDiffers if a file has values that the columns of the table do not hold."""
        if self._has_types(file, columns):
            return
        try:
            read_rows([file], pa.schema(self._written(file, columns)))
        except pa.ArrowException as error:
            changes = (field for field in file.schema if field.type != columns.field(field.name).type)
            reasons = [
                f"column {each.name!r} is {each.type} in some rows, and {columns.field(each.name).type} in all"
                for each in changes
            ]
            help_ = f"{str(error).strip()}: give the reader a schema, or cast the columns before they come here"
            raise TableSchemaDiffers(sink=sink, table=self.path, differences=tuple(reasons), help=help_) from error

    def publish(self, window: StagedWindow) -> None:
        """Commit the files of a window, and note what the table is then.

        Raises StorageBusy if the object store is busy. The next call finds what this one has done.
        """
        with patiently(self.path, "publishing a window"):
            self._publish(window)

    def _publish(self, window: StagedWindow) -> None:
        files, notes, table = staged_rows(window), self._notes(window), self.open_table()
        note = notes.newest()
        self._check(window, note, table)
        committed = -1 if note is None else note.committed
        if table is not None and (mark := table.mark(window_key(window))).number >= window.number:
            if mark.differs(window.mark):
                raise HistoriesDiffer(sink=window.sink, store=self.destination(), window=window.number)
            committed = window.number
        elif files:
            table = self._committed(window, files, note, table)
            committed = window.number
        if table is None or committed < 0:  # no window has had rows yet
            notes.write(Published(window=window.number))
            return
        table.secure(files=self.mode == "upsert")
        columns = [(field.name, str(field.type)) for field in table.columns]
        notes.write(
            Published(
                window=window.number,
                committed=committed,
                table=table.id,
                version=table.version,
                columns=columns,
                facts=table.facts,
            )
        )

    def sweep(self, window: StagedWindow) -> None:
        """Remove what attempts have staged for this window and earlier ones."""
        with patiently(self.path, "removing what has been staged before"):
            sweep_staged(join(self._own(window.application, window.sink), "staged"), window.number)
            self._notes(window).forget(window.number)

    def _own(self, application: str, sink: str) -> str:
        return own_folder(self.home(), application, sink)

    def _notes(self, window: StagedWindow) -> PublishedNotes:
        return PublishedNotes(self._own(window.application, window.sink))

    def _check(self, window: StagedWindow, note: Published | None, table: OpenedTable | None) -> None:
        """Raise an error if the table no longer has what earlier windows have written."""
        key = window_key(window)
        where: dict[str, Any] = {"sink": window.sink, "table": self.path, "window": window.number}
        self._check_history(where, window.number - 1, note, table, key)
        if self.mode != "replace" or note is None or note.table is None or table is None:
            return
        if table.mark(key).number <= note.committed and (others := table.foreign_changes(note, key)):
            raise ForeignChange(**where, changes=tuple(others))

    def _check_history(
        self, where: dict[str, Any], published: int, note: Published | None, table: OpenedTable | None, key: str
    ) -> None:
        """Raise an error if the table is not the one of a note, or has lost what it had then.

        `published`: the newest window that certainly was, -1 for none.
        """
        held = -1 if table is None else table.mark(key).number
        if note is None:
            if published >= 0 and held < 0:
                reason = f"nothing is there that says that windows before {published + 1} were published"
                raise TableDropped(**where, reason=reason)
            return
        if note.table is None:
            return
        noted = f"window {note.committed} was published as {self.version_name} {note.version}"
        if table is None:
            raise TableDropped(**where, reason=noted)
        if table.id != note.table:
            raise TableRecreated(**where, then=note.table, now=table.id)
        if (how := table.rolled_back(note)) is not None:
            raise TableRolledBack(**where, reason=f"{how}, and {noted}")
        if held < note.committed:
            raise TableRolledBack(**where, reason=f"it no longer knows window {note.committed}, and {noted}")

    def _committed(
        self, window: StagedWindow, files: list[StagedRows], note: Published | None, table: OpenedTable | None
    ) -> OpenedTable:
        """Commit the files in one transaction, behind whatever other writers commit meanwhile. Return the table with it."""
        if self.mode == "upsert":
            check_staged(((file.path, file.size) for file in files), sink=window.sink, window=window.number)
        failure: Exception | None = None
        for tried in range(MAX_COMMITS):
            if tried:
                table = self.open_table()
                self._check(window, note, table)
                if table is not None and table.mark(window_key(window)).number >= window.number:
                    return table  # by a commit whose answer was lost
            before = None if table is None else table.state
            try:
                columns = self._evolved(table, files)
                if table is None and not (self.creates_with_rows and self.mode != "upsert"):
                    self.create_table(columns)
                    continue
                return self.commit(window, self._moved(window, files, columns, table), table, columns)
            except self.conflicts() as error:
                failure = error
                now = self.open_table()
                if (None if now is None else now.state) == before:
                    raise
                time.sleep(min(0.01 * 2**tried, 1.0))
        text = f"{self.path}: other writers have committed {MAX_COMMITS} times before window {window.number}, and it waits"
        raise TimeoutError(text) from failure  # transient: the step is tried again

    def _evolved(self, table: OpenedTable | None, files: list[StagedRows]) -> pa.Schema:
        """Return the columns that the table has after a window. Raises TableSchemaDiffers."""
        columns = union([file.schema for file in files])
        if table is None:
            return columns
        evolved = self._columns_after(columns, table, type(self).__name__)
        if not self._takes_columns() and not evolved.equals(table.columns):
            # a transaction of its own: until the window is in, new columns are null
            table.evolve(evolved)
        return evolved

    def _columns_after(self, columns: pa.Schema, table: OpenedTable, sink: str) -> pa.Schema:
        """Return the columns of a table after rows with these columns. Raises TableSchemaDiffers if it cannot take them."""
        if table.partition_columns != list(self.partition_columns):
            theirs, ours = (", ".join(each) or "no column" for each in (table.partition_columns, self.partition_columns))
            reason = f"it is partitioned by {theirs}, and partition_columns has {ours}"
            remedy = "give partition_columns those of the table, or write to a new table"
            raise TableSchemaDiffers(sink=sink, table=self.path, differences=(reason,), help=remedy)
        if self._takes_columns():
            return columns
        missing = [name for name in _required(table.columns) if name not in columns.names]
        if missing and columns.names:  # without any, they are not known yet
            reasons = [f"column {name!r} is missing, and the table takes no nulls there" for name in missing]
            raise TableSchemaDiffers(sink=sink, table=self.path, differences=tuple(reasons))
        return self._extended(table.columns, columns, sink)

    def _moved(
        self, window: StagedWindow, files: list[StagedRows], columns: pa.Schema, table: OpenedTable | None
    ) -> list[StagedRows]:
        """Give the files their names in the table, and return them. Files whose types are narrower are written again."""
        if self.mode == "upsert":
            return files
        fitting = [file if self._has_types(file, columns) else self._cast(file, columns) for file in files]
        moves = ((file.path, file.name, file.size) for file in fitting)
        folder = self.path if table is None else table.data_folder
        move_into_table(folder, moves, sink=window.sink, window=window.number)
        return fitting

    def _has_types(self, file: StagedRows, columns: pa.Schema) -> bool:
        return all(field.type.equals(columns.field(field.name).type) for field in self._written(file, file.schema))

    def _written(self, file: StagedRows, columns: pa.Schema) -> list[pa.Field[Any]]:
        """Return the columns that a file has itself."""
        names = [name for name in file.schema.names if self.keeps_partition_columns or name not in file.partition]
        return [columns.field(name) for name in names]

    def _cast(self, file: StagedRows, columns: pa.Schema) -> StagedRows:
        """Write a staged file again, with the types of the table."""
        rows = read_rows([file], pa.schema(self._written(file, columns)))
        path, system = f"{file.path}.cast", file_system(file.path)
        if system.exists(path):
            system.remove(path)  # of a launch that died here
        again = StagedParquet(path, file.name, "", rows.schema, rows=file.rows)
        pq.write_table(rows, CountingFile(again), compression=self.compression, metadata_collector=again.metadata)
        again.close()
        return attrs.evolve(file, path=path, size=again.size, stats=self.stats_of(again, _floats(rows.schema)))


def _required(columns: pa.Schema) -> tuple[str, ...]:
    """Return the columns that take no nulls."""
    return tuple(field.name for field in columns if not field.nullable)


def _floats(columns: pa.Schema) -> list[str]:
    return [field.name for field in columns if t.is_floating(field.type)]


@functools.cache
def _probe_once(url: str) -> None:
    """Check a store, once in a process: a launch looks at its sinks again when readers have agreed on columns."""
    probe(open_store(url), is_shared=True)


def window_key(window: StagedWindow) -> str:
    """Return the name of a sink in the log of its table: what the table remembers its windows by."""
    return f"{window.application}/{window.sink}"
