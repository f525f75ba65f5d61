"""DeltaInput: reads a Delta table, and then what is appended to it."""

from __future__ import annotations

import os
from typing import ClassVar

import attrs

from dagflow.config import Secret
from dagflow.storage import absolute, explained, file_system, join
from operators.extras.delta_log import LOG
from operators.extras.tables import deltalake
from operators.problems import all_problems
from operators.tables.delta_history import DeltaHistory
from operators.tables.table_input import AbstractTableInput


@attrs.define(slots=False)
class DeltaInput(AbstractTableInput):
    """Reads a Delta table: first all rows of one version, then those that each later version appended, each row once.

    Needs the package `deltalake` (`pip install 'dagflow[delta]'`). It emits the blocks of the table's Parquet files, for
    `ScanReader(ParquetFormat())`. Columns by which the table is partitioned come from the folders of the files. Versions that
    only compact files (`OPTIMIZE`) are skipped. `docs/how-to/delta.md` says which tables and changes are refused.

    >>> import tempfile, deltalake, pyarrow as pa
    >>> from dagflow.testing import run_operator
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for n in (1, 2):
    ...         deltalake.write_deltalake(folder, pa.table({"n": [n]}), mode="append")
    ...     blocks = run_operator(DeltaInput(folder), {})["blocks_metadata_output"]
    ...     len(blocks)
    2

    Attributes:
        path: the folder or URL of the table.
        from_version: the version of which all rows are read first; None: the newest one.
        storage_options: options of `deltalake` for object stores, which opens the table with them. Its log and files are read
            with the environment only, which must have the credentials and the endpoint anyway, here and where the tasks run.
        scan_interval_millis, wait, block_size, blocks_threshold, window_bytes: see `AbstractTableInput`.

    Raises InputTableMissing, InputTableReplaced, InputTableRolledBack, InputTableChanged, InputTableHistoryGone,
    InputTableFileGone, InputTableUnsupported, PackageMissing, TableUnreachable.
    """

    empty_is_null: ClassVar[bool] = True

    path: str = attrs.field(converter=os.fspath)
    from_version: int | None = attrs.field(default=None, kw_only=True)
    storage_options: dict[str, Secret] = attrs.field(factory=dict, kw_only=True, repr=False)

    def check(self) -> None:
        """Raise ValueError for an empty path, and a negative version."""
        with all_problems(super().check) as problems:
            if not self.path:
                problems.append("path is empty: name the folder of a table")
            if self.from_version is not None and self.from_version < 0:
                problems.append(f"from_version is {self.from_version}, and versions begin at 0")

    @property
    def table_name(self) -> str:
        """The table, for messages."""
        return absolute(self.path)

    @property
    def first_version(self) -> int | None:
        """The version that is read first; None: the newest one."""
        return self.from_version

    def input_paths(self) -> list[str]:
        """Return the folder of the table."""
        return [absolute(self.path)]

    def why_missing(self) -> str | None:
        """Return the reason why there is no table; None if there is one. Raises PackageMissing."""
        deltalake("DeltaInput")
        path, log = self.table_name, join(self.table_name, LOG)
        with explained(path, "looking for a table"):
            if file_system(path).exists(log):
                return None
            return f"the folder has no {LOG}" if file_system(path).exists(path) else "there is no such folder"

    def open_table(self, operator: str) -> DeltaHistory | None:
        """Open the newest version of the table; None if there is none."""
        try:
            return DeltaHistory.open(operator, self.table_name, self.storage_options)
        except deltalake(operator).exceptions.TableNotFoundError:
            return None
