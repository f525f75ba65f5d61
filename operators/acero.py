"""Arrow's engine, Acero, without the modules that its public module loads."""

from __future__ import annotations

import functools
import importlib
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
    engine = acero()
    source = engine.Declaration("table_source", engine.TableSourceNodeOptions(table))
    result: pa.Table = engine.Declaration(node, options, inputs=[source]).to_table(use_threads=False)
    return result
