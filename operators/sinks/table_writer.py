"""The base of sinks that write tables: columns that must not change, and folders by the values of some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Literal

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext
from dagflow.config import one_of
from operators.names import one_or_more
from operators.problems import all_problems
from operators.sinks.errors import ColumnsChanged
from operators.sinks.file_sink import DIGITS, FileSink, numbered
from operators.sinks.files.open_files import check_name
from operators.sinks.files.partitions import folders, nowhere
from operators.sinks.tables.acceptance import check_names
from operators.sinks.tables.changelog import CHANGE_TYPE, with_change_type
from operators.sinks.tables.modes import behind_current, mode_problems

T = TypeVar("T", default=Any)


@attrs.define
class TableWriter(FileSink, Generic[T]):
    """A sink of batches: of columns as they come, of records of attrs classes (a column a field), or of bare values (`value`).

    Attributes:
        partition_columns: columns whose values name folders, `year=2026/country=se/part-…`; the files have the other columns.
            Strings, integers, dates and booleans can name folders. Rows without a value go to `…=__HIVE_DEFAULT_PARTITION__`.
            Of a current result, only the folders are written anew in which a row has changed.
        on_schema_change: the reaction to a batch with other columns or types than the task's first one: `fail`, or begin a
            `new_file`. Columns in another order are put in the first one's order.
        keys: with `mode="changelog"`, the columns that identify a row: what is taken back and what comes with the same keys is
            an update. Without them, all changes are insertions and deletions.
    """

    partition_columns: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=one_or_more)
    on_schema_change: Literal["fail", "new_file"] = attrs.field(
        default="fail", kw_only=True, validator=one_of(("fail", "new_file"))
    )

    keys: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=one_or_more)

    may_write_changes: ClassVar[bool] = True
    written_to: ClassVar[str] = "a file of rows"

    input = InputPort[T]()

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            problems.extend(mode_problems(self.mode, self.keys))
            if len(set(self.partition_columns)) < len(self.partition_columns):
                problems.append(f"partition_columns names a column twice: {', '.join(self.partition_columns)}")
            for name in self.partition_columns:
                if not name or name[0] in "_.":
                    problems.append(f"partition_columns has {name!r}: a folder that begins with _ or . is not part of the data")

    def setup(self, context: OperatorContext) -> None:
        """Begin without a schema."""
        super().setup(context)
        self._schemas: list[pa.Schema] = []
        self._names: dict[tuple[str, int], str] = {}

    def begin_window(self, window: int) -> None:
        """Name the window's file."""
        super().begin_window(window)
        self._schemas.clear()
        self._names.clear()

    def needed_columns(self, port: str) -> dict[str, Sequence[str]]:
        """Return the columns that name folders."""
        return {"partition_columns": self.partition_columns, "keys": self.keys}

    def behind_current(self) -> tuple[Operator, Operator] | None:
        """Return the operator that has all rows that stand, or the changes of each window, and this sink behind it."""
        return behind_current(self, self.mode, self.keys, self.partition_columns if self.replaces_partitions() else ())

    def content_properties(self) -> tuple[str, ...]:
        """Return the mode, and the columns of the partitions of a current result: others stay where one changes."""
        is_result = self.mode != "changelog" and bool(self.output_folders())
        return (*super().content_properties(), *(("partition_columns",) if is_result else ()))

    def replaces_partitions(self) -> bool:
        """Return True where folders are partitions: the log of a table has its own."""
        return bool(self.partition_columns and self.output_folders())

    def row_keys(self) -> tuple[str, ...]:
        """Return the keys: of an upsert, or of the updates of a changelog."""
        return self.keys

    def check_columns(self, port: str, schema: pa.Schema) -> None:
        """Raise ColumnNamesClash, TypeNotWritable."""
        check_names(schema.names, type(self).__name__, self.written_to)
        self.check_schema(pa.schema([field for field in schema if field.name not in self.partition_columns]))

    def written_schema(self) -> None:
        """Return None: the columns are those of the records that arrive."""

    def added_columns(self) -> dict[str, str]:
        """Return the kind of each change, in a changelog."""
        return {CHANGE_TYPE: "string"} if self.mode == "changelog" else {}

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise TypeNotWritable for columns that the format has no form for. `schema`: without the columns that name folders."""

    def name_of(self, key: tuple[str, int]) -> str:
        """Return the name of a key's first file. Later schemas of a folder have names of their own."""
        folder, _ = key
        if key not in self._names:
            before = sum(other == folder for other, _ in self._names)
            name = numbered(self.part_name, before, self.suffix, DIGITS)
            self._names[key] = f"{folder}/{name}" if folder else name
        return self._names[key]

    def prepared(self, batch: pa.RecordBatch) -> Any:
        """Return the form of a batch that `write_part` gets. Raises where a row cannot be written."""
        return batch

    def write_part(self, key: tuple[str, int], part: Any) -> None:
        """Write prepared rows to the current file of a key: the folder (or ""), and the number of the schema."""
        raise NotImplementedError

    @input.batch
    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write a batch: all of it or, when it raises, nothing.

        Of rows that are taken back, `CurrentRows` says that their folders have become empty: a file without rows tells it.
        """
        if not batch.num_rows and self.mode != "replace":
            return
        number, batch = self._known(with_change_type(batch) if self.mode == "changelog" else batch)
        name = type(self).__name__
        parts = list(folders(batch, self.partition_columns, name)) if self.partition_columns else [("", batch)]
        if self._context.retracts:
            parts = [(folder, part.slice(0, 0)) for folder, part in parts]
        if not parts:  # the result has no rows: a file without rows says so
            parts = [(nowhere(self.partition_columns), batch.drop_columns(list(self.partition_columns)))]
        if number == len(self._schemas):
            self.check_schema(parts[0][1].schema)
        for folder, _ in parts:
            check_name(f"{folder}/{self.part_name}" if folder else self.part_name, name, "partition_columns")
        rows = [self.prepared(part) for _, part in parts]
        if number == len(self._schemas):
            self._schemas.append(batch.schema)
        for (folder, _), part in zip(parts, rows, strict=True):
            self.write_part((folder, number), part)

    def _known(self, batch: pa.RecordBatch) -> tuple[int, pa.RecordBatch]:
        """Return the number of the batch's schema, and the batch with columns in its order. Raises ColumnsChanged."""
        schema = plain(batch.schema)
        for number, known in enumerate(self._schemas):
            if sorted(schema.names) == sorted(known.names):
                ordered = batch if schema.names == known.names else batch.select(known.names)
                if ordered.schema.types == known.types:
                    return number, _with(ordered, known)
        check_names(schema.names, type(self).__name__, self.written_to)
        if self._schemas and self.on_schema_change == "fail":
            changes = differences(self._schemas[0], schema)
            raise ColumnsChanged(operator=type(self).__name__, file=self.part_name, differences=changes)
        return len(self._schemas), _with(batch, schema)


def plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema without metadata, in which every column may be null, to compare and to write."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _with(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return batch if batch.schema.equals(schema, check_metadata=True) else pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def differences(before: pa.Schema, after: pa.Schema) -> tuple[str, ...]:
    """Return the differences between two schemas, column by column, new columns last.

    >>> import pyarrow as pa
    >>> differences(pa.schema({"a": pa.int64(), "b": pa.string()}), pa.schema({"a": pa.string(), "c": pa.int8()}))
    ("column 'a' is string, and was int64", "column 'b' (string) is missing", "column 'c' (int8) is new")
    """
    changes = []
    for field in before:
        if field.name not in after.names:
            changes.append(f"column {field.name!r} ({field.type}) is missing")
        elif after.field(field.name).type != field.type:
            changes.append(f"column {field.name!r} is {after.field(field.name).type}, and was {field.type}")
    changes += [f"column {field.name!r} ({field.type}) is new" for field in after if field.name not in before.names]
    return tuple(changes)
