"""An application of several files, as users write them: none of it is installed where the tasks run."""

from __future__ import annotations

import attrs
from helpers.shout import Shout
from rules import Keep

from dagflow import DAG
from operators import BlockReader, FileSplitterInput, Filter, RecordWriter


@attrs.define
class Settings:
    """Copies the lines that do not start with a dot, in capitals."""

    input: list[str]
    output: str
    mark: str = "!"
    kill: str = ""  # a folder: something is killed there, once
    victim: str = "executor"
    hold: str = ""  # a file: while it exists, tasks wait in the middle of their lines
    slow: str = ""  # a file: tasks note beside it that they are slow, and the first of them is


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Splitter → reader → filter → shout → writer."""
    files = dag.add_operator("files", FileSplitterInput(files=conf.input, block_size=200))
    lines = dag.add_operator("lines", BlockReader())
    keep = dag.add_operator("keep", Filter(Keep(".", conf.kill, conf.victim, conf.hold, conf.slow)))
    shout = dag.add_operator("shout", Shout(conf.mark))
    writer = dag.add_operator("writer", RecordWriter(path=conf.output))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, keep.input)
    dag.add_stream("kept", keep.output, shout.input)
    dag.add_stream("loud", shout.output, writer.input)
