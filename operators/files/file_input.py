"""FileInput: the records of files, as one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic

import attrs

from dagflow import DAG, ErrorRecord, FileBlockMetadata, FileMetadata, Module, ProxyOutputPort, ReaderRecord
from dagflow.config import Bytes, size_of
from operators.contexts import ReadAheadLineReaderContext, ReaderContext
from operators.files.scanner import TimeBasedDirectoryScanner, check_paths, paths
from operators.files.splitter_input import FileSplitterInput
from operators.readers.abstract_block_reader import R, a_context, a_converter
from operators.readers.block_reader import BlockReader


@attrs.define
class FileInput(Module, Generic[R]):
    r"""Finds files and reads their records, lines of text by default: a FileSplitterInput and a BlockReader.

    The operators inside are called `splitter` and `reader`. What both can do and this module does not name is set there:
    `operator.NAME.reader.on_error = "skip"`, `operator.NAME.splitter.window_bytes = "1GiB"`.

    Args:
        files, scanner, block_size, blocks_threshold: which files, how they are found and cut: see FileSplitterInput.
        convert_to_record, reader_context, min_readers, max_readers, sequential: how they are read: see BlockReader.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import Collector, run_dag
    >>> numbers = Collector()
    >>> def populate_dag(dag, conf):
    ...     files = dag.add_module("files", FileInput(conf["input"], convert_to_record=int))
    ...     dag.add_operator("numbers", numbers)
    ...     dag.add_stream("all", files.messages, numbers.input)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.txt").write_text("1\n22\n333\n")
    ...     report = run_dag(populate_dag, {"input": folder, "operator.files.block_size": 2})
    >>> [number.record for number in numbers.records], list(report.operators)
    ([1, 22, 333], ['files.splitter', 'files.reader', 'numbers'])
    """

    files: list[str] = attrs.field(factory=list, converter=paths, validator=check_paths)
    scanner: TimeBasedDirectoryScanner = attrs.field(
        factory=TimeBasedDirectoryScanner, kw_only=True, validator=attrs.validators.instance_of(TimeBasedDirectoryScanner)
    )
    block_size: Bytes | None = attrs.field(default=None, kw_only=True, converter=size_of)
    blocks_threshold: int | None = attrs.field(default=None, kw_only=True)

    converter: Callable[[bytes], R | None] | None = attrs.field(
        default=None, alias="convert_to_record", kw_only=True, validator=a_converter
    )
    reader_context: ReaderContext = attrs.field(factory=ReadAheadLineReaderContext, kw_only=True, validator=a_context)
    min_readers: int = attrs.field(default=1, kw_only=True)
    max_readers: int = attrs.field(default=16, kw_only=True)
    sequential: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    files_metadata_output = ProxyOutputPort[FileMetadata]()
    blocks_metadata_output = ProxyOutputPort[FileBlockMetadata]()
    messages = ProxyOutputPort[ReaderRecord[R]]()
    errors = ProxyOutputPort[ErrorRecord]()

    def populate_dag(self, dag: DAG) -> None:
        """Splitter, reader, and the blocks between them."""
        splitter = dag.add_operator("splitter", self.make(FileSplitterInput))
        reader: Any = dag.add_operator("reader", self.make(BlockReader))
        dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        self.files_metadata_output.set(splitter.files_metadata_output)
        self.blocks_metadata_output.set(splitter.blocks_metadata_output)
        self.messages.set(reader.messages)
        self.errors.set(reader.errors)
