"""Copies the lines that do not start with a prefix: the chain that most applications begin with."""

from __future__ import annotations

import attrs
import pyarrow.compute as pc

from dagflow import DAG
from operators import BlockReader, FileSplitterInput, Filter, RecordWriter


@attrs.define
class Settings:
    """Copy the lines that do not start with a prefix."""

    input: list[str]  # files or directories
    output: str
    prefix: str = "."


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect splitter → reader → filter → writer."""
    splitter = dag.add_operator("splitter", FileSplitterInput(files=conf.input))
    lines = splitter.blocks_metadata_output.to(BlockReader(), name="reader")  # lines of text, read ahead, by default
    keep = lines.to(Filter(~pc.starts_with(pc.field("record"), conf.prefix)), name="keep")
    keep.to(RecordWriter(path=conf.output), name="writer")
