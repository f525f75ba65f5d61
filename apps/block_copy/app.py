"""Copy the files that a list names, block by block: an input operator of one's own before the file splitter."""

from __future__ import annotations

from pathlib import Path

import attrs

from dagflow import DAG, FileInfo, InputOperator, OperatorContext, OutputPort, State
from dagflow.config import Bytes, KiB, MiB
from operators import FileSplitterBase, FixedBytesReaderContext, FSSliceReader, RecordWriter


@attrs.define
class ListedFiles(InputOperator):
    """Emit the files that the lines of a text file name, in order.

    It stands for a message queue, or another source that tells an application which files to read.
    """

    path: str
    at_once: int = attrs.field(default=100, validator=attrs.validators.ge(1))

    output = OutputPort[FileInfo]()

    taken = State(0)  # lines; saved with every window, so that a restarted run resumes behind them

    def setup(self, context: OperatorContext) -> None:
        """Read the list."""
        self._names = [line for line in Path(self.path).read_text(encoding="utf-8").splitlines() if line.strip()]

    def emit_tuples(self) -> None:
        """Emit the next files."""
        for name in self._names[self.taken : self.taken + self.at_once]:
            self.output.emit(FileInfo(directory_path=None, relative_path=name))
            self.taken += 1

    def is_exhausted(self) -> bool:
        """Return True if all lines have been taken."""
        return self.taken >= len(self._names)


@attrs.define
class Settings:
    """Copy the files of a list; each block becomes a file of its own, named by its id."""

    list: str  # a text file that names one file a line
    output: str
    block_size: Bytes = 4 * MiB


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect list → splitter → slices → writer."""
    files = dag.add_operator("files", ListedFiles(path=conf.list))
    splitter = dag.add_operator("splitter", FileSplitterBase(block_size=conf.block_size, one_block_suffixes=()))
    reader = dag.add_operator("reader", FSSliceReader(reader_context=FixedBytesReaderContext(length=256 * KiB)))
    writer = dag.add_operator("writer", RecordWriter(path=conf.output, per_block=True, terminator=""))
    dag.add_stream("file-info", files.output, splitter.input)
    dag.add_stream("block-metadata", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("slices", reader.messages, writer.input)
