"""The open files of sinks of text, with the compression of the sink."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from dagflow import OperatorContext
from dagflow.config import MiB
from operators.compression.compressors import PACKERS
from operators.sinks.file_sink import FileSink
from operators.sinks.files.open_files import OpenFiles

PACKED: Mapping[str, range] = {"none": range(0), **{name: packer.levels for name, packer in PACKERS.items()}}
"""The compressions of files that can be appended to, with their levels."""

PACKING_MEMORY = 64 * MiB
"""The most memory that the compressors of a task's open files take together. With xz, that is 2 files."""


def packed_files(sink: FileSink, context: OperatorContext, digits: int = 1) -> OpenFiles:
    """Return the set of open files of a sink: fewer where a compressor takes much memory. Raises PackageMissing.

    `digits`: of the numbers of files that follow full ones.
    """
    limit, make, packed_suffix = sink.max_open_files, None, ""
    if sink.compression != "none":
        packer = PACKERS[sink.compression]
        level = packer.level if sink.compression_level is None else sink.compression_level
        limit = max(1, min(limit, PACKING_MEMORY // packer.memory(level)))
        make = functools.partial(packer.make, level)
        make()
        packed_suffix = packer.suffix
    return OpenFiles(
        create=lambda name: context.create_file(sink.path, name),
        limit=limit,
        operator=type(sink).__name__,
        suffix=sink.suffix,
        packed_suffix=packed_suffix,
        compressor=make,
        max_rows=sink.max_file_rows,
        max_bytes=sink.max_file_bytes,
        digits=digits,
    )
