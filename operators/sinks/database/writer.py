"""The base of sinks that write to a table of a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, Sink, SinkLaunch, StagedWindow, WindowMark
from dagflow.arrow_types import type_named
from dagflow.config import Bytes, MiB, Seconds, one_of, seconds_of, size_of
from operators.database.errors import DatabaseBusy
from operators.names import one_or_more
from operators.problems import all_problems
from operators.sinks.database.dialect import SqlDialect
from operators.sinks.database.publishing import Publisher
from operators.sinks.database.staging import Staging, column_type
from operators.sinks.tables.modes import MODES, ON_SCHEMA_CHANGE, Mode, OnSchemaChange, behind_current, keys_of, mode_problems

T = TypeVar("T", default=Any)


@attrs.define
class DatabaseWriter(Sink, Generic[T]):
    """A sink of batches: of columns as they come, of records of attrs classes (a column a field), or of bare values (`value`).

    Tasks load their rows into staged tables of their own, beside the table (`_dagflow_staged_…`). When the window is decided, the
    driver moves them into the table, in one transaction with a row in `_dagflow_windows` that says that the window is in. A table
    that does not exist is created with the columns of the rows.

    Attributes:
        table: the name of the table.
        mode: what a window does: `append` its rows, `upsert` them by `keys` (of several rows with the same keys, the last
            counts; rows that are taken back are deleted), or `replace` all rows of the table. A window without rows changes
            nothing. None: append where rows stay; where they may be taken back, replace.
        keys: the columns that identify a row, for `upsert`. An existing table needs a unique index on them. Where rows may be
            taken back, two that stand with equal keys are refused. With `"*"`, rows are found by all of their columns: those
            that come are inserted, and for each that is taken back an equal one is deleted.
        on_schema_change: the reaction to columns that the table does not have, or to wider types: `fail`, or `evolve` the table.
        lock_timeout: the time that a statement waits for other sessions, before the step is retried.
        buffer_bytes: the most bytes of rows that wait in a task. More are loaded at once, as is each batch for a table with rules
            (constraints, indexes beside that of the keys, triggers), which the database tries.
    """

    table: str = attrs.field(kw_only=True, validator=attrs.validators.instance_of(str))
    mode: Mode | None = attrs.field(default=None, kw_only=True, validator=attrs.validators.optional(one_of(MODES)))
    keys: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=one_or_more)
    on_schema_change: OnSchemaChange = attrs.field(default="fail", kw_only=True, validator=one_of(ON_SCHEMA_CHANGE))
    lock_timeout: Seconds = attrs.field(default=60.0, kw_only=True, converter=seconds_of, validator=attrs.validators.gt(0))
    buffer_bytes: Bytes = attrs.field(default=16 * MiB, kw_only=True, converter=size_of, validator=attrs.validators.ge(1))

    input = InputPort[T]()

    @property
    def takes_changes(self) -> bool:  # type: ignore[override]
        """True for upserts: a row that is taken back is found by its key, or by all of its columns."""
        return self.mode == "upsert"

    def dialect(self) -> SqlDialect:
        """Return the database. Override it to write to another one."""
        raise NotImplementedError(f"{type(self).__name__} has no database: override dialect()")

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            problems.extend(mode_problems(self.mode, self.keys))
            if not self.table:
                problems.append("table is empty: name the table")
            if "\0" in self.table or any("\0" in key or not key for key in self.keys):
                problems.append("table and keys need names, without zero bytes")

    def behind_current(self) -> tuple[Operator, Operator] | None:
        """Return the operator that has all rows that stand, and this sink replacing the table by them."""
        return behind_current(self, self.mode)

    def row_keys(self) -> tuple[str, ...]:
        """Return the keys of an upsert; none where all columns identify a row."""
        return keys_of(self.keys)

    def replaces_rows(self) -> bool:
        """Return True for mode `replace`."""
        return self.mode == "replace"

    def content_properties(self) -> tuple[str, ...]:
        """Return the mode."""
        return ("mode",)

    def needed_columns(self, port: str) -> dict[str, Sequence[str]]:
        """Return the columns that identify a row."""
        return {"keys": self.row_keys()}

    def setup(self, context: OperatorContext) -> None:
        """Begin with nothing staged."""
        self._context = context
        self._staging = Staging(
            self.dialect(),
            context,
            table=self.bare_table(),
            keys=self.row_keys(),
            mode=self.mode or "append",
            evolves=self.on_schema_change == "evolve",
            buffer_bytes=self.buffer_bytes,
            operator=type(self).__name__,
            is_signed=self.input.is_changing,
        )

    def destination(self) -> str:
        """Return the table and its database."""
        return f"the table {self.table!r} of {self.dialect().place}"

    def check_store(self, launch: SinkLaunch) -> Sequence[str]:
        """See `Sink.check_store`. Raises TableRefused, TableHasRows, DatabaseRefused, DatabaseBusy, TypeNotWritable."""
        dialect, columns = self.dialect(), None
        if launch.columns is not None:
            schema = pa.schema([(name, type_named(kind)) for name, kind in launch.columns])
            columns = {field.name: column_type(dialect, field, type(self).__name__) for field in schema}
        try:
            return self._publisher().check(launch, columns)
        except DatabaseBusy as busy:
            busy.add_note("  help: start the database, or correct its address; then launch again: the run resumes")
            raise

    def begin_window(self, window: int) -> None:
        """Begin with nothing staged."""
        self._staging.begin()

    @input.batch
    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a batch: all of it or, when it raises, nothing. Raises RuleBroken for rows that a rule of the table refuses."""
        if batch.num_rows or self.mode == "replace":  # the result has no rows
            self._staging.add(batch, retracts=self._context.retracts)

    def stage(self) -> Any:
        """Load what waits, and return the names of the staged tables."""
        return self._staging.finish()

    def check_window(self, window: StagedWindow) -> None:
        """See `Sink.check_window`. Raises TableRefused, RowsRefused, DatabaseRefused; and DatabaseBusy, which is transient."""
        self._publisher().check_window(window)

    def publish(self, window: StagedWindow) -> None:
        """See `Sink.publish`.

        Raises TableRefused, TableReplaced, ForeignChange, RowsRefused, StagedRowsMissing, DatabaseRefused; and DatabaseBusy,
        which is transient.
        """
        self._publisher().publish(window)

    def is_published(self, window: StagedWindow) -> bool:
        """See `Sink.is_published`."""
        return self._publisher().is_published(window)

    def newest_mark(self, last: StagedWindow) -> WindowMark:
        """See `Sink.newest_mark`. Raises TableReplaced."""
        return self._publisher().newest_mark(last)

    def sweep(self, window: StagedWindow) -> None:
        """See `Sink.sweep`."""
        self._publisher().sweep(window)

    def _publisher(self) -> Publisher:
        return Publisher(
            self.dialect(), self.bare_table(), self.mode or "append", self.row_keys(), self.on_schema_change == "evolve"
        )

    def bare_table(self) -> str:
        """Return the name of the table without its schema."""
        return self.table
