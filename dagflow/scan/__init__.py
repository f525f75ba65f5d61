"""Scans: formats in three short methods. A format's reader opens, reads and closes; everything else is done here.

Read `readers` (what the author of a format writes, and how it becomes batches), then `schema` (the columns that a scan returns),
then `format`, `settings` and `output` (batches of a reader to batches of the scan), then `files` (a scan of files) and `columns`
(text without headers), then `agreement` (one schema for all files). `bad_rows` says what happens to rows that cannot be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagflow.arrow_types import type_text, wider
    from dagflow.scan.agreement import agree, files_of, go_on, is_enough, told
    from dagflow.scan.bad_rows import BadRow, OnBadRow, RowOrigin
    from dagflow.scan.columns import make_scan, reads_array
    from dagflow.scan.files import FileScan, FileSchemaNegotiator, FileSplit
    from dagflow.scan.format import Format
    from dagflow.scan.readers.loader import BatchLimits, ResultSetLoader
    from dagflow.scan.readers.machine import RowBatchReader, Scan
    from dagflow.scan.readers.managed import ManagedReader, SchemaNegotiator
    from dagflow.scan.schema.cast import is_overflown, text_of
    from dagflow.scan.schema.implicit import FileFacts
    from dagflow.scan.schema.plain import plain_batch, plain_schema
    from dagflow.scan.schema.projection import Asked, is_implicit
    from dagflow.scan.schema.shape import Agreed, column_names
    from dagflow.scan.schema.table import Column, Drift, TableSchema
    from dagflow.scan.schema.types import to_type
    from dagflow.scan.settings import ScanSettings

__all__ = [
    "Agreed",
    "Asked",
    "BadRow",
    "BatchLimits",
    "Column",
    "Drift",
    "FileFacts",
    "FileScan",
    "FileSchemaNegotiator",
    "FileSplit",
    "Format",
    "ManagedReader",
    "OnBadRow",
    "ResultSetLoader",
    "RowBatchReader",
    "RowOrigin",
    "Scan",
    "ScanSettings",
    "SchemaNegotiator",
    "TableSchema",
    "agree",
    "column_names",
    "files_of",
    "go_on",
    "is_enough",
    "is_implicit",
    "is_overflown",
    "make_scan",
    "plain_batch",
    "plain_schema",
    "reads_array",
    "text_of",
    "to_type",
    "told",
    "type_text",
    "wider",
]

if not TYPE_CHECKING:  # type checkers know the names above only, so that they find a misspelt one
    _MODULES = {
        "dagflow.arrow_types": ["type_text", "wider"],
        "dagflow.scan.agreement": ["agree", "files_of", "go_on", "is_enough", "told"],
        "dagflow.scan.bad_rows": ["BadRow", "OnBadRow", "RowOrigin"],
        "dagflow.scan.schema.cast": ["is_overflown", "text_of"],
        "dagflow.scan.columns": ["make_scan", "reads_array"],
        "dagflow.scan.files": ["FileScan", "FileSchemaNegotiator", "FileSplit"],
        "dagflow.scan.format": ["Format"],
        "dagflow.scan.schema.implicit": ["FileFacts"],
        "dagflow.scan.readers.loader": ["BatchLimits", "ResultSetLoader"],
        "dagflow.scan.readers.machine": ["RowBatchReader", "Scan"],
        "dagflow.scan.readers.managed": ["ManagedReader", "SchemaNegotiator"],
        "dagflow.scan.schema.plain": ["plain_batch", "plain_schema"],
        "dagflow.scan.schema.projection": ["Asked", "is_implicit"],
        "dagflow.scan.schema.table": ["Column", "Drift", "TableSchema"],
        "dagflow.scan.settings": ["ScanSettings"],
        "dagflow.scan.schema.shape": ["Agreed", "column_names"],
        "dagflow.scan.schema.types": ["to_type"],
    }
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> object:
        """Loads what is asked for: formats are properties of operators, which are made without pyarrow."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'dagflow.scan' has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(_MODULE_OF[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
