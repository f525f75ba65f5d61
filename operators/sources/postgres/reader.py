"""PostgresReader: reads ranges of keys of a table in tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, OperatorContext, OutputPort
from dagflow.config import Bytes, MiB, Secret, one_of, size_of
from dagflow.scan import Drift, RowOrigin, TableSchema, type_text
from operators.database.postgres import load_driver
from operators.problems import all_problems
from operators.readers.abstract_scan_reader import to_columns, to_drift
from operators.readers.reading.reader_time import ReaderTime
from operators.readers.scaled_reader import ScaledReader
from operators.sources.errors import RangeChanged
from operators.sources.postgres.blocks import KeyBlock
from operators.sources.postgres.columns import AgreedTable, agreed_columns, column_problem, declared_columns, schema_of_columns
from operators.sources.postgres.keys import KeyType
from operators.sources.postgres.range_reading import RangeReading
from operators.sources.postgres.ranges import dsn_and_table_problems
from operators.sources.postgres.source_table import TableName, reading, server_of

T = TypeVar("T", default=Any)

OnRowsChanged = Literal["fail", "count"]
_POLICIES = {"missing": ("null", "error"), "extra": ("error", "ignore", "widen"), "changed": ("error", "widen")}


@attrs.define
class PostgresReader(ScaledReader, Generic[T]):
    """Reads ranges of keys of a table, and emits batches of its columns, in the order of the key.

    The columns and their types are those that the server declares when a window is planned; all tasks of the window read these.
    `PostgresReader[Sale](…)` reads the fields of the attrs class `Sale`, as columns of their types.

    Args:
        dsn, table, key: as PostgresRanges has them.
        columns: which columns, in this order, `name` or `name::type` with a cast to a type of PostgreSQL; None: all.
        drift: what becomes of columns that the table gets or loses between windows; `missing` is null or error, `extra` is error,
            ignore or widen, `changed` is error or widen.
        on_rows_changed: the reaction to a range that has another number of rows than when it was planned: `fail`, or `count` the
            difference; None: `fail` for integer keys, `count` for times.
        batch_bytes: the size of a batch, in bytes of text as the server sends it. A row that is larger is a batch alone.
        min_readers, max_readers, collect_stats, interval_millis, policy, sequential: see ScaledReader.

    Counters: `blocks`, `records`, `batches`, `bytes` (as the server sends them), `rows_missing`, `rows_added`, `time_ms`.

    Raises ColumnsNotReadable, SourceColumnsChanged, ValueNotReadable, RangeChanged, DatabaseRefused, and DatabaseBusy, after
    which the task runs again.
    """

    dsn: Secret = attrs.field(repr=False, validator=attrs.validators.instance_of(str))
    table: str = attrs.field(validator=attrs.validators.instance_of(str))
    key: str = attrs.field(kw_only=True, validator=attrs.validators.instance_of(str))
    columns: tuple[str, ...] | None = attrs.field(default=None, kw_only=True, converter=to_columns)
    drift: Drift = attrs.field(factory=Drift, kw_only=True, converter=to_drift, validator=attrs.validators.instance_of(Drift))
    on_rows_changed: OnRowsChanged | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(one_of(get_args(OnRowsChanged)))
    )
    batch_bytes: Bytes = attrs.field(default=4 * MiB, kw_only=True, converter=size_of, validator=attrs.validators.ge(1))

    blocks_metadata_input = InputPort[KeyBlock]()
    batches = OutputPort[T]()

    def check(self) -> None:
        """Raise ValueError where properties contradict each other, and PackageMissing."""
        load_driver(type(self).__name__)
        with all_problems(super().check) as problems:
            problems.extend(dsn_and_table_problems(self.dsn, self.table, self.key))
            problems.extend(filter(None, map(column_problem, self.columns or ())))
            names = [spec.partition("::")[0] for spec in self.columns or ()]
            problems.extend(f"columns has {name!r} twice" for name in {n for n in names if names.count(n) > 1})
            for name, choices in _POLICIES.items():
                if (value := getattr(self.drift, name)) not in choices:
                    problems.append(f"drift.{name} is {value!r}: of a table, it is {' or '.join(choices)}")
            if self.columns is not None and self._record_schema is not None:
                problems.append("columns are the fields of the class in brackets: leave them out, or the class")

    # For the planner

    def agree(self, items: Sequence[KeyBlock], before: Any, context: OperatorContext) -> Any:
        """On the driver, before a window's plan is published: the columns that all its tasks read, as plain data.

        Raises ColumnsNotReadable, SourceColumnsChanged, DatabaseBusy, DatabaseRefused.
        """
        specs, server = self._specs, server_of(self.dsn)
        known = None if before is None else AgreedTable.of(before).columns
        has_lag = KeyType(items[0].key_type).is_time
        name = TableName(context.name, server.place, self.table, self.key, has_lag=has_lag)
        with reading(server, f"looking at the columns of table {self.table!r}") as cursor:
            table = name.found(cursor)
            now = declared_columns(cursor, table.qualified, specs, context.name)
        columns = agreed_columns(now, known, specs, self.drift, operator=context.name, table=table.path)
        return AgreedTable(columns, table.qualified, table.order_of_ties).to_plain()

    def emitted_columns(self, port: str, agreed: Any) -> list[tuple[str, str]] | None:
        """Return the columns that were agreed on."""
        if port != "batches" or agreed is None:
            return None
        schema = self._record_schema or schema_of_columns(AgreedTable.of(agreed).columns)
        return [(field.name, type_text(field.type)) for field in schema]

    def column_names(self, port: str) -> list[str] | None:
        """Return the columns that are asked for by name."""
        specs = self._specs
        return [spec.partition("::")[0] for spec in specs] if port == "batches" and specs is not None else None

    def describe_columns(self, port: str) -> str | None:
        """Name the source of the columns, for `dagflow plan`."""
        names = ", ".join(self.column_names(port) or ["all columns"])
        return f"{names} of table {self.table}, typed by the server before each window" if port == "batches" else None

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches, whatever handler takes them."""
        return frozenset({"batch"}) if port == "batches" else super().emitted_forms(port, handled)

    def item_weight(self, item: KeyBlock) -> int:
        """Return the bytes of a block, about."""
        return max(1, item.size)

    # Reading

    def setup(self, context: OperatorContext) -> None:
        """Prepare to read the agreed columns. The first block connects."""
        self._context, self._time = context, ReaderTime(context)
        agreed = AgreedTable.of(context.agreed)
        self._reading = RangeReading(server_of(self.dsn), agreed, context.name, self.batch_bytes, self._record_schema)

    @blocks_metadata_input.process
    def read_block(self, block: KeyBlock) -> None:
        """Read the rows of a range."""
        context, rows, before = self._context, 0, self._reading.bytes
        context.at(block.table, block.start)
        self._time.begin_block()
        for batch in self._reading.batches(block):
            rows += batch.num_rows
            context.count("records", batch.num_rows)
            context.count("batches")
            with self._time.excluded:
                self.batches.emit_batch(batch)
        self._check_rows(block, rows)
        context.count("blocks")
        context.count("bytes", self._reading.bytes - before)
        self._time.end_block()

    def teardown(self) -> None:
        """Close the connection."""
        if hasattr(self, "_reading"):
            self._reading.close()

    def origin_of(self, row: int) -> RowOrigin:
        """Return the key of a row of the current batch, and the row as JSON, for `dagflow trace`."""
        last = self._reading.last
        return RowOrigin() if last is None else last.origin_of(row, self.key)

    def _check_rows(self, block: KeyBlock, found: int) -> None:
        """Compare the number of rows with the plan's. Raises RangeChanged."""
        if found == block.rows:
            return
        default = "count" if KeyType(block.key_type).is_time else "fail"
        if (self.on_rows_changed or default) == "fail":
            raise RangeChanged(operator=self._context.name, table=block.table, rows=block.words, planned=block.rows, found=found)
        self._context.count("rows_missing" if found < block.rows else "rows_added", abs(found - block.rows))

    @property
    def _record_schema(self) -> pa.Schema | None:
        """The columns of the class in the brackets, with their types."""
        kind = next(iter(get_args(self.__dict__.get("__orig_class__"))), None)
        return TableSchema.of(kind).arrow if isinstance(kind, type) and attrs.has(kind) else None

    @property
    def _specs(self) -> tuple[str, ...] | None:
        schema = self._record_schema
        return self.columns if schema is None else tuple(schema.names)
