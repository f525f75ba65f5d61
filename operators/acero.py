"""Arrow's engine, Acero, without the modules that its public module loads."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa


@functools.cache
def acero() -> Any:
    """Return Arrow's engine. The public module loads datasets too, and with them pandas: 0.5 s in each worker."""
    try:
        return importlib.import_module("pyarrow._acero")
    except ImportError:
        return importlib.import_module("pyarrow.acero")


def computed_by(node: str, options: Any, table: pa.Table) -> pa.Table:
    """Run one node of the engine on a table, in this thread: other threads are busy with other tasks."""
    result: pa.Table = _declared(node, options, table).to_table(use_threads=False)
    return result


def batches_of(node: str, options: Any, *tables: pa.Table) -> Iterator[pa.RecordBatch]:
    """Run one node of the engine on tables, in this thread, and yield its batches as they are made."""
    yield from _declared(node, options, *tables).to_reader(use_threads=False)


def _declared(node: str, options: Any, *tables: pa.Table) -> Any:
    engine = acero()
    sources = [engine.Declaration("table_source", engine.TableSourceNodeOptions(table)) for table in tables]
    return engine.Declaration(node, options, inputs=sources)
