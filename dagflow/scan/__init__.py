"""Scans: formats in three short methods. A format's reader opens, reads and closes; everything else is done here.

The layers, from the ground: `machine` (the scan operator, which knows no schema), `loader` (rows and columns in, batches out),
`managed` (what a format's author writes, and the schema-aware framework around it), `files`, `columns` (text without headers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dagflow.arrow_types import type_text, wider
    from dagflow.scan.agreement import agree, files_of, go_on, is_enough, told
    from dagflow.scan.bad_rows import BadRow, OnBadRow, RowOrigin
    from dagflow.scan.cast import is_overflown, text_of
    from dagflow.scan.columns import make_scan, reads_array
    from dagflow.scan.files import FileScan, FileSchemaNegotiator, FileSplit
    from dagflow.scan.format import Format
    from dagflow.scan.implicit import FileFacts
    from dagflow.scan.loader import BatchLimits, ResultSetLoader
    from dagflow.scan.machine import RowBatchReader, Scan
    from dagflow.scan.managed import ManagedReader, SchemaNegotiator
    from dagflow.scan.plain import plain_batch, plain_schema
    from dagflow.scan.projection import Asked, is_implicit
    from dagflow.scan.schema import Column, Drift, TableSchema
    from dagflow.scan.settings import ScanSettings
    from dagflow.scan.shape import Agreed, column_names
    from dagflow.scan.types import to_type

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
        "dagflow.scan.cast": ["is_overflown", "text_of"],
        "dagflow.scan.columns": ["make_scan", "reads_array"],
        "dagflow.scan.files": ["FileScan", "FileSchemaNegotiator", "FileSplit"],
        "dagflow.scan.format": ["Format"],
        "dagflow.scan.implicit": ["FileFacts"],
        "dagflow.scan.loader": ["BatchLimits", "ResultSetLoader"],
        "dagflow.scan.machine": ["RowBatchReader", "Scan"],
        "dagflow.scan.managed": ["ManagedReader", "SchemaNegotiator"],
        "dagflow.scan.plain": ["plain_batch", "plain_schema"],
        "dagflow.scan.projection": ["Asked", "is_implicit"],
        "dagflow.scan.schema": ["Column", "Drift", "TableSchema"],
        "dagflow.scan.settings": ["ScanSettings"],
        "dagflow.scan.shape": ["Agreed", "column_names"],
        "dagflow.scan.types": ["to_type"],
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
