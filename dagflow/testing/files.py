"""A reader of files on its own: one file, cut into blocks at will."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import Any

from dagflow.model.errors.dag import UnknownName
from dagflow.model.operator.base import Operator
from dagflow.model.operator.ports import output_ports
from dagflow.model.types.records import FileBlockMetadata, ReaderRecord
from dagflow.testing.operators import run_operator


def read_file(
    reader: Operator,
    path: str | os.PathLike[str],
    block_size: int | None = None,
    cuts: Iterable[int] | None = None,
    *,
    consecutive: bool = False,
) -> list[Any]:
    r"""The records of one file in the order of the file, read block by block without Spark. Of a ReaderRecord its record.

    Args:
        reader: a block reader: an operator with the ports `blocks_metadata_input` and `messages`.
        path: the file.
        block_size: bytes of each block but the last. Default: the whole file is one block.
        cuts: positions at which blocks end, instead of `block_size`.
        consecutive: True: one reader goes from block to block on one stream. False: no block follows the one before it, as when
            its neighbours are read elsewhere.

    >>> import pathlib, tempfile
    >>> from operators import BlockReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.txt")
    ...     _ = path.write_bytes(b"one\ntwo\nthree\n")
    ...     read_file(BlockReader(), path, block_size=4)
    ['one', 'two', 'three']
    """
    if "messages" not in output_ports(type(reader)):
        raise UnknownName(f"output port of {type(reader).__name__}", "messages", tuple(output_ports(type(reader))))
    blocks = blocks_of(os.fspath(path), block_size, cuts)
    # Backwards, so that no block is the successor of the one that was read before it.
    order = blocks if consecutive else blocks[::-1]
    emitted = run_operator(reader, {"blocks_metadata_input": order})["messages"]
    if not consecutive:
        emitted = _in_order_of_blocks(emitted)
    return [record.record if isinstance(record, ReaderRecord) else record for record in emitted]


def blocks_of(path: str, block_size: int | None = None, cuts: Iterable[int] | None = None) -> list[FileBlockMetadata]:
    """The blocks of a file, each with its neighbours' ids, as a splitter makes them. An empty file has none.

    Raises ValueError when both `block_size` and `cuts` are given, for a size below 1, and for cuts outside the file.
    """
    status = os.stat(path)
    length = status.st_size
    if block_size is not None and cuts is not None:
        raise ValueError("give block_size or cuts, not both")
    if block_size is not None and block_size < 1:
        raise ValueError(f"block_size is {block_size}, and must be at least 1")
    inner = sorted(set(cuts)) if cuts is not None else list(range(block_size or length or 1, length, block_size or length or 1))
    outside = [cut for cut in inner if not 0 <= cut <= length]
    if outside:
        raise ValueError(f"{path} has {length} bytes: it cannot be cut at {outside[0]}")
    bounds = [0, *(cut for cut in inner if 0 < cut < length), length] if length else []
    return [
        FileBlockMetadata(
            block_id=number,
            file_path=os.path.abspath(path),
            start=start,
            stop=stop,
            file_length=length,
            is_last_block=stop == length,
            previous_block_id=number - 1,
            modified_ns=status.st_mtime_ns,
        )
        for number, (start, stop) in enumerate(itertools.pairwise(bounds))
    ]


def _in_order_of_blocks(records: list[Any]) -> list[Any]:
    """Sorts records by block, those of one block as they came."""
    return sorted(records, key=lambda record: record.block_id if isinstance(record, ReaderRecord) else 0)
