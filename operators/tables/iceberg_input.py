"""IcebergInput: reads an Iceberg table, and then what is appended to it."""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.config import Secret
from operators.extras.tables import loaded_catalog, pyiceberg
from operators.extras.unavailable import read
from operators.problems import all_problems
from operators.tables.iceberg_history import IcebergHistory
from operators.tables.table_input import AbstractTableInput


@attrs.define(slots=False)
class IcebergInput(AbstractTableInput):
    """Reads an Iceberg table: first all rows of one snapshot, then those that each later snapshot appended, each row once.

    Needs the package `pyiceberg` (`pip install 'dagflow[iceberg]'`). It emits the blocks of the table's Parquet files, for
    `ScanReader(ParquetFormat())`. Snapshots that only rewrite files (`replace`) are skipped. `docs/how-to/iceberg.md` says which
    tables and changes are refused.

    >>> import tempfile, pyarrow as pa
    >>> from pyiceberg.catalog import load_catalog
    >>> from dagflow.testing import run_operator
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
    ...     with load_catalog(**catalog) as opened:
    ...         opened.create_namespace("shop")
    ...         table = opened.create_table("shop.sales", pa.schema({"n": pa.int64()}))
    ...         for n in (1, 2):
    ...             table.append(pa.table({"n": [n]}))
    ...     blocks = run_operator(IcebergInput("shop.sales", catalog), {})["blocks_metadata_output"]
    ...     len(blocks)
    2

    Attributes:
        table: the name in the catalog, `namespace.name`.
        catalog: the properties of `pyiceberg.catalog.load_catalog`, `name` too if it matters. Without any, the settings of
            `pyiceberg` itself count.
        from_snapshot: the snapshot of which all rows are read first; None: the newest one.
        scan_interval_millis, wait, block_size, blocks_threshold, window_bytes: see `AbstractTableInput`.

    Raises InputTableMissing, InputTableReplaced, InputTableRolledBack, InputTableChanged, InputTableHistoryGone,
    InputTableFileGone, InputTableUnsupported, PackageMissing, TableUnreachable.
    """

    version_name: ClassVar[str] = "snapshot"

    table: str
    catalog: dict[str, Secret] = attrs.field(factory=dict, repr=False)
    from_snapshot: int | None = attrs.field(default=None, kw_only=True)

    def check(self) -> None:
        """Raise ValueError for a table without a namespace."""
        with all_problems(super().check) as problems:
            if not self.table.rpartition(".")[0]:
                problems.append(f"table is {self.table!r}, and must have a namespace: 'shop.{self.table or 'sales'}'")

    @property
    def table_name(self) -> str:
        """The table, for messages."""
        return self.table

    @property
    def first_version(self) -> int | None:
        """The snapshot that is read first; None: the newest one."""
        return self.from_snapshot

    def why_missing(self) -> str | None:
        """Return the reason why there is no table; None if there is one. Raises PackageMissing."""
        exceptions = pyiceberg("IcebergInput").exceptions
        try:
            read(lambda: loaded_catalog("IcebergInput", self.catalog).load_table(self.table))
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
            return "the catalog has no such table"
        return None

    def open_table(self, operator: str) -> IcebergHistory:
        """Open the newest snapshot of the table."""
        return IcebergHistory.open(operator, self.table, self.catalog)
