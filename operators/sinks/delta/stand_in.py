"""`StandIn`: an empty copy of a Delta table, which refuses what the table would refuse, while that still helps."""

from __future__ import annotations

import json
import pathlib
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from typing import Any

import attrs
import pyarrow as pa

from operators.extras.delta_log import LOG
from operators.extras.tables import deltalake
from operators.sinks.tables.modes import Mode

_FIRST = "00000000000000000000.json"


@attrs.frozen
class StandIn:
    """A table without rows, with protocol, columns and rules of another one, in a folder that goes with it.

    `deltalake` alone knows which features of a table it writes, and evaluates constraints, invariants and generated columns as it
    commits. Here it does so before the window is decided.
    """

    folder: str

    @classmethod
    def of(cls, table: Any) -> StandIn:
        """Copy a table. `table`: as `deltalake` opens it."""
        metadata, protocol = table.metadata(), table.protocol()
        features: Mapping[str, Any] = {
            name: each
            for name, each in (("readerFeatures", protocol.reader_features), ("writerFeatures", protocol.writer_features))
            if each is not None
        }
        versions = {"minReaderVersion": protocol.min_reader_version, "minWriterVersion": protocol.min_writer_version}
        described = {
            "id": str(metadata.id),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": table.schema().to_json(),
            "partitionColumns": list(metadata.partition_columns),
            "configuration": dict(metadata.configuration),
            "createdTime": 0,
        }
        folder = tempfile.mkdtemp(prefix="dagflow-delta-")
        log = pathlib.Path(folder, LOG)
        log.mkdir()
        actions = [{"protocol": {**versions, **features}}, {"metaData": described}]
        (log / _FIRST).write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
        stand_in = cls(folder)
        weakref.finalize(stand_in, shutil.rmtree, folder, ignore_errors=True)
        return stand_in

    def refusal(self, mode: Mode) -> str | None:
        """Return the reason for which the table takes no commits of a mode; None if it takes some."""
        package = deltalake("DeltaWriter")
        try:
            table = package.DeltaTable(self.folder)
            table.create_write_transaction([], "append" if mode == "append" else "overwrite", table.schema())
        except Exception as error:  # noqa: BLE001  # the package has no base of its errors
            return str(error).strip()
        return None

    def take(self, rows: pa.Table) -> None:
        """Commit rows, as the table would. Raises DeltaError for rows that its rules refuse."""
        deltalake("DeltaWriter").write_deltalake(self.folder, rows, mode="append")
