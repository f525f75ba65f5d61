"""A whole application in a test."""

from __future__ import annotations

from typing import Any

from dagflow.launching.launch import launch
from dagflow.runtime.run_report import RunReport


def run_dag(populate_dag: Any, settings: object = None, runner: str = "local", **options: Any) -> RunReport:
    r"""Runs an application until all its input is read, and returns the report. Takes what `launch` takes.

    Args:
        populate_dag: the function that fills the DAG, or what the command line would name.
        settings: an object of its Settings class, or a mapping of keys as for `-D`.
        runner: `local` (in this process, without a JVM) or `spark`.
        options: settings of the run: `max_windows`, `fresh`, `durability`…

    Raises what ends the run. Unless told otherwise, nothing is synced to disk: tests pull no plugs.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import Collector
    >>> from operators import BlockReader, FileSplitterInput
    >>> lines = Collector()
    >>> def populate_dag(dag, conf):
    ...     files = dag.add_operator("files", FileSplitterInput(files=conf["input"]))
    ...     reader = dag.add_operator("reader", BlockReader())
    ...     dag.add_operator("lines", lines)
    ...     dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    ...     dag.add_stream("text", reader.messages, lines.input)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("one\ntwo\n")
    ...     run_dag(populate_dag, {"input": folder}).status
    'done'
    >>> [line.record for line in lines.records]
    ['one', 'two']
    """
    return launch(populate_dag, settings, runner=runner, **{"durability": "process", **options}).report
