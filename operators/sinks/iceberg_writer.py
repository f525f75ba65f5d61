"""IcebergWriter: writes rows to an Iceberg table, each window in one transaction."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic
from urllib.parse import quote

import attrs
import pyarrow as pa
from pyarrow import types as t
from typing_extensions import TypeVar

from dagflow import SinkLaunch, StagedWindow
from dagflow.config import Secret, one_of
from dagflow.errors.shown import without_secrets
from dagflow.storage import OWN_FOLDER, join, local_path
from operators.extras.tables import is_place, loaded_catalog, pyiceberg
from operators.extras.unavailable import answering
from operators.problems import all_problems
from operators.sinks.iceberg.snapshots import DECISION, SINK, WINDOW, IcebergTable
from operators.sinks.iceberg.types import ICEBERG, iceberg_type
from operators.sinks.table_formats.opened import OpenedTable
from operators.sinks.table_formats.rows import StagedRows
from operators.sinks.table_formats.writer import TableFormatWriter, window_key
from operators.sinks.tables.modes import MODES

T = TypeVar("T", default=Any)
SQLITE = "sqlite:///"
DURABLE = "operators.sinks.iceberg.durable_files.DurableFileIO"
"""Loaded by `pyiceberg`."""


@attrs.define
class IcebergWriter(TableFormatWriter[T], Generic[T]):
    """Write rows to an Iceberg table, each window in one transaction of the table, exactly once.

    Needs the package `pyiceberg` (`pip install 'dagflow[iceberg]'`). The table is created with the columns of the first window
    that has rows. Readers see all of a window or nothing of it.

    The transaction of a window also sets the property `dagflow.window.APPLICATION/SINK` of the table to the window, and
    `dagflow.decision.APPLICATION/SINK` to the identity of its decision. So a window that is in the table is never published
    again. `docs/how-to/iceberg.md` says what happens on each failure.

    Args:
        table: the name in the catalog, `namespace.name`.
        catalog: the properties of `pyiceberg.catalog.load_catalog`, `name` too if it matters. Without any, the settings of
            `pyiceberg` itself count.
        partition_columns: columns that the table is partitioned by, by their values.
        staging: the folder or URL where tasks stage files, in the file system of the table; None: the `warehouse` of the catalog.
        keep_snapshots: how many snapshots the table keeps, up to a quarter more: older ones of the main branch are expired behind
            windows. 0 keeps all: each commit then takes a little longer than the one before. None goes by the property
            `dagflow.keep-snapshots` of the table: a hundred for tables that the sink creates, all for others. An application that
            reads the table with `IcebergInput` needs those that it has not read yet.

    Raises PackageMissing, TableSchemaDiffers, TableDropped, TableRecreated, TableRolledBack, ForeignChange, StagedFileGone.

    >>> import tempfile
    >>> from dagflow.testing import Window, run_operator
    >>> @attrs.frozen
    ... class Sale:
    ...     country: str
    ...     amount: float
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    ...     writer = IcebergWriter[Sale]("shop.sales", catalog, partition_columns=["country"])
    ...     _ = run_operator(writer, {"input": [Window([Sale("se", 1.5), Sale("no", 2.0)]), Window([Sale("se", 0.5)])]})
    ...     table = writer.open_table().table
    ...     print(len(table.snapshots()), sorted(table.scan().to_arrow().column("amount").to_pylist()))
    2 [0.5, 1.5, 2.0]
    """

    format_name: ClassVar[str] = ICEBERG
    version_name: ClassVar[str] = "snapshot"
    keeps_partition_columns: ClassVar[bool] = True
    compares_floats: ClassVar[bool] = False  # nor may Iceberg's identifier fields be floats: pyiceberg loses 0.0 beside -0.0

    path: str = attrs.field(alias="table")  # pyright: ignore[reportIncompatibleVariableOverride]  # that of the base has a converter
    catalog: dict[str, Secret] = attrs.field(factory=dict, repr=False)
    mode: Any = attrs.field(default=None, validator=attrs.validators.optional(one_of(MODES)))
    staging: str | None = attrs.field(default=None, kw_only=True)
    keep_snapshots: int | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(attrs.validators.ge(0))
    )

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if self.path and not self.path.rpartition(".")[0]:
                problems.append(f"table is {self.path!r}, and must have a namespace: 'shop.{self.path}'")

    def destination(self) -> str:
        """Return the table, and its catalog where that has an address."""
        uri = self.catalog.get("uri")
        return f"the Iceberg table {self.path}" + (f" of {without_secrets(uri)}" if uri else "")

    def task_folders(self) -> list[str]:
        """Return the folder or URL below which the sink stages files, and the folder of a catalog in a SQLite file."""
        uri = self.catalog.get("uri", "")
        catalogs = [os.path.dirname(uri.removeprefix(SQLITE))] if uri.startswith(SQLITE) else []
        return [*(super().task_folders() if self.staging or self.catalog.get("warehouse") else ()), *catalogs]

    def home(self) -> str:
        """Return the folder or URL below which the sink stages files and keeps its notes. Raises ValueError for none."""
        if self.staging is not None and "/" in self.staging:
            return join(self.staging, quote(self.path, safe=""))
        properties: Mapping[str, str] = self.catalog
        if not properties.get("warehouse"):
            with answering("IcebergWriter", self.path):
                properties = self.loaded_catalog().properties
        place = self.staging or properties.get("warehouse", "")
        if not is_place(place, properties):
            raise ValueError(
                f"the warehouse of the catalog is {place!r}, which is not a folder or URL: "
                "set staging to one in the file system of the table"
            )
        return join(place, quote(self.path, safe=""))

    def loaded_catalog(self) -> Any:
        """Return the catalog. Tables on local disks are written so that they survive a power cut."""
        catalog = loaded_catalog("IcebergWriter", self.catalog)
        warehouse = catalog.properties.get("warehouse")
        if warehouse and local_path(warehouse) is not None:
            catalog.properties.setdefault("py-io-impl", DURABLE)
        return catalog

    def stored_type(self, kind: pa.DataType) -> pa.DataType | None:
        """Return the type as Iceberg stores it; None for nulls. Raises ValueError."""
        return iceberg_type(kind)

    def names_of(self, columns: pa.Schema) -> Sequence[str]:
        """Return the names of columns and of the fields within them, `a.b`, as Iceberg finds them."""
        return [name for field in columns for name in _paths(field)]

    def promotes(self, old: pa.DataType, new: pa.DataType) -> bool:
        """Return True for int to long, float to double, and decimals with more digits."""
        if t.is_decimal(old) and t.is_decimal(new):
            return bool(old.scale == new.scale and old.precision < new.precision)
        return (old, new) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))

    def open_table(self) -> IcebergTable | None:
        """Open the newest snapshot; None if there is no table."""
        with answering("IcebergWriter", self.path):
            return IcebergTable.of(self.loaded_catalog(), self.path)

    def create_table(self, columns: pa.Schema) -> None:
        """Create the table without rows."""
        IcebergTable.create(self.loaded_catalog(), self.path, columns, self.partition_columns)

    def publish(self, window: StagedWindow) -> None:
        """Commit the files of a window. Raises TableUnreachable, which is transient, while the catalog is not available."""
        with answering(window.sink, self.path, "written"):
            super().publish(window)

    def conflicts(self) -> tuple[type[Exception], ...]:
        """Return the errors of commits that came too late."""
        errors = pyiceberg("IcebergWriter").exceptions
        return (errors.CommitFailedException, errors.CommitStateUnknownException, errors.TableAlreadyExistsError)

    def try_place(self, launch: SinkLaunch, table: OpenedTable | None) -> None:
        """Also write to the warehouse as `pyiceberg` does, by its own settings, if there is no table yet."""
        super().try_place(launch, table)
        catalog = self.loaded_catalog()
        warehouse = catalog.properties.get("warehouse", "")
        if table is not None or "://" not in warehouse or local_path(warehouse) is not None:
            return  # a name that only the server of the catalog knows; or a folder, which tasks try
        place = join(warehouse, OWN_FOLDER, "probe", uuid.uuid4().hex)
        files = pyiceberg("IcebergWriter").io.load_file_io(catalog.properties, place)
        with files.new_output(place).create() as stream:
            stream.write(b"can be removed")
        files.delete(place)

    def commit(
        self, window: StagedWindow, files: list[StagedRows], table: IcebergTable | None, columns: pa.Schema
    ) -> IcebergTable:
        """Commit files in one transaction, which sets a property to the window, and return the table with it."""
        assert table is not None  # it is created first
        key = window_key(window)
        marks = {SINK: key, "dagflow.window": str(window.number)}
        with table.for_commit().transaction() as transaction:
            if self.mode == "upsert":
                rows, gone = self.net_rows(window, files, columns)
                if keys := self.row_keys():
                    touched = pyiceberg("IcebergWriter").table.upsert_util.create_match_filter(
                        pa.concat_tables([rows, gone]), list(keys)
                    )
                elif gone.num_rows:
                    stay, names = self.rows_that_stay(window, table, gone)
                    rows, touched = pa.concat_tables([rows, stay]), table.with_values(gone.select(names))
                else:
                    touched = pyiceberg("IcebergWriter").expressions.AlwaysFalse()
                if any(table.table.scan(touched).plan_files()):
                    transaction.overwrite(rows, touched, snapshot_properties=marks)
                elif rows.num_rows:
                    transaction.append(rows, snapshot_properties=marks)
            else:
                if self.mode == "replace" and table.version != -1:
                    transaction.delete("True", snapshot_properties=marks)
                names = [f"{table.data_location}/{file.name}" for file in files]
                transaction.add_files(names, snapshot_properties=marks, check_duplicate_files=False)
            transaction.set_properties({WINDOW + key: str(window.number), DECISION + key: window.decision})
        table.expire(self.keep_snapshots)
        return table


def _paths(field: pa.Field[Any]) -> Iterator[str]:
    yield field.name
    if t.is_struct(field.type):
        yield from (f"{field.name}.{name}" for part in field.type for name in _paths(part))
