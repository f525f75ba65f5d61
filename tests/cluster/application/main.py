"""An application that is started as a script: its classes are those of `__main__`."""

from __future__ import annotations

import json
import sys
from typing import Any

import attrs
from helpers.words import loud

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord, launch
from operators import BlockReader, FileSplitterInput, Filter, RecordWriter


@attrs.define
class Number(Operator):
    """Lines with their length."""

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        """Adds the length."""
        self.output.emit(f"{loud(line.record)} {len(line.record)}")


def populate_dag(dag: DAG, conf: dict[str, Any]) -> None:
    """Splitter → reader → filter → number → writer."""
    files = dag.add_operator("files", FileSplitterInput(files=conf["input"]))
    lines = dag.add_operator("lines", BlockReader())
    keep = dag.add_operator("keep", Filter(lambda line: not line.record.startswith(".")))
    number = dag.add_operator("number", Number())
    writer = dag.add_operator("writer", RecordWriter(path=conf["output"]))
    dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
    dag.add_stream("lines", lines.messages, keep.input)
    dag.add_stream("kept", keep.output, number.input)
    dag.add_stream("numbered", number.output, writer.input)


if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    print(json.dumps({"windows": launch(populate_dag, {"input": "in", "output": "out"}, **options).report.windows}))
