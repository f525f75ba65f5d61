"""Scans: formats in three short methods. A format's reader opens, reads and closes; everything else is done here.

The layers, from the ground: `machine` (the scan operator, which knows no schema), `loader` (rows and columns in, batches out),
`managed` (what a format's author writes, and the schema-aware framework around it), `files`, `columns` (text without headers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from dagflow.scan.shape import Agreed
    from dagflow.scan.types import to_type, type_text, wider

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
        "agreement": ["agree", "files_of", "go_on", "is_enough", "told"],
        "bad_rows": ["BadRow", "OnBadRow", "RowOrigin"],
        "cast": ["is_overflown", "text_of"],
        "columns": ["make_scan", "reads_array"],
        "files": ["FileScan", "FileSchemaNegotiator", "FileSplit"],
        "format": ["Format"],
        "implicit": ["FileFacts"],
        "loader": ["BatchLimits", "ResultSetLoader"],
        "machine": ["RowBatchReader", "Scan"],
        "managed": ["ManagedReader", "SchemaNegotiator"],
        "plain": ["plain_batch", "plain_schema"],
        "projection": ["Asked", "is_implicit"],
        "schema": ["Column", "Drift", "TableSchema"],
        "settings": ["ScanSettings"],
        "shape": ["Agreed"],
        "types": ["to_type", "type_text", "wider"],
    }
    _MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> object:
        """Loads what is asked for: formats are properties of operators, which are made without pyarrow."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'dagflow.scan' has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(f"dagflow.scan.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return [*globals(), *__all__]
