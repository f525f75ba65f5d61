"""The blocks of one file, made when they are asked for; and how large blocks and windows are by default."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dagflow import BlockIds, FileBlockMetadata, FileMetadata
from dagflow.config import MiB

LEAST_BLOCK = MiB
LARGEST_BLOCK = 64 * MiB
BLOCKS_PER_SLOT = 8

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
"""Names of compressed text that cannot be read by blocks. Not `.bgz`."""

FIXED_COST_SECONDS = 0.15
FIXED_COST_SHARE = 0.03
BYTES_PER_SECOND = 250_000_000
LEAST_COST = 64 * 1024


@attrs.define
class FileBlocks:
    """The blocks of a file of which none, some or all have been planned.

    Plain data throughout, so that a splitter can keep it as state: however many blocks there are, it stays this small.

    >>> rest = FileBlocks("a.txt", length=5, modified_ns=None, block_size=2, first_id=10)
    >>> [(b.block_id, b.start, b.stop, b.is_last_block) for b in rest.take(2)]
    [(10, 0, 2, False), (11, 2, 4, False)]
    >>> [(b.block_id, b.start, b.stop, b.is_last_block) for b in rest.take(2)]
    [(12, 4, 5, True)]

    Attributes:
        length, block_size: in bytes; the last block may be shorter.
        first_id: the id of the first block; the others follow without gaps.
        planned: how many blocks have been handed out.
        version: the server's mark of the content, None where there is none.
        begin: where the first block begins; above 0 where an earlier part of the file has been read.
        record_end, record_quote, folder_columns, empty_is_null: see `FileBlockMetadata`.
    """

    path: str
    length: int
    modified_ns: int | None
    block_size: int
    first_id: int
    planned: int = 0
    version: str | None = None
    begin: int = 0
    record_end: str | None = None
    record_quote: str | None = None
    folder_columns: str | None = None
    empty_is_null: bool = False

    @property
    def count(self) -> int:
        """Return the number of blocks of the file, 0 if it is empty."""
        return -(-(self.length - self.begin) // self.block_size)

    @property
    def left(self) -> int:
        """The number of blocks that have not been handed out."""
        return self.count - self.planned

    @property
    def bytes_left(self) -> int:
        """The number of bytes the blocks have that have not been handed out."""
        return max(0, self.length - self.begin - self.planned * self.block_size)

    def as_state(self) -> dict[str, Any]:
        """Return the fields by name, as `FileBlocks(**state)` takes them; faster than `attrs.asdict`."""
        state = {
            "path": self.path,
            "length": self.length,
            "modified_ns": self.modified_ns,
            "block_size": self.block_size,
            "first_id": self.first_id,
            "planned": self.planned,
        }
        if self.version is not None:
            state["version"] = self.version
        if self.record_end is not None:
            state |= {"begin": self.begin, "record_end": self.record_end, "record_quote": self.record_quote}
        if self.folder_columns is not None:
            state["folder_columns"] = self.folder_columns
        if self.empty_is_null:
            state["empty_is_null"] = True
        return state

    def metadata(self, seconds: float, *, is_directory: bool = False, relative_path: str = "") -> FileMetadata:
        """Return the metadata of the file, discovered at that time (since the epoch)."""
        return FileMetadata(
            file_path=self.path,
            file_name=self.path.rstrip("/").rpartition("/")[2],
            file_length=self.length,
            number_of_blocks=self.count,
            block_ids=BlockIds(self.first_id, self.count),
            is_directory=is_directory,
            discover_time=int(seconds * 1000),
            relative_path=relative_path,
        )

    def take(self, most: int, *, as_planned: bool = True) -> Iterator[FileBlockMetadata]:
        """Hand out the next `most` blocks, fewer at the end. They count as planned at once. `as_planned`: see the metadata."""
        first, last = self.planned, self.count - 1
        self.planned = min(first + most, last + 1)
        return self._blocks(first, self.planned, last, as_planned)

    def _blocks(self, first: int, stop: int, last: int, as_planned: bool) -> Iterator[FileBlockMetadata]:
        path, length, size, base, begin = self.path, self.length, self.block_size, self.first_id, self.begin
        known = (self.modified_ns, as_planned, self.version, self.record_end, self.record_quote)
        folders = (self.folder_columns, self.empty_is_null)
        before, start = base + first - 1 if first else -1, begin + first * size
        for k in range(first, stop):
            ends, block_id = k == last, base + k
            end = length if ends else start + size
            yield FileBlockMetadata(block_id, path, start, end, length, ends, before, *known, *folders)
            before, start = block_id, end  # the same integers, not equal ones: a plan may have a million blocks


def default_block_size(length: int, slots: int) -> int:
    """Return the size of a file's blocks if none is set: an eighth of each slot's share of the file, in MiB, from 1 to 64.

    Readers are assigned whole blocks. With eight for each slot, a single file keeps all slots busy to within some percent of the
    end; smaller ones than 1 MiB would cost more than they even out, larger ones than 64 MiB make no reader faster.

    >>> [default_block_size(n * MiB, slots=4) // MiB for n in (0, 1, 100, 1000, 100_000)]
    [1, 1, 4, 32, 64]
    """
    size = -(-length // (slots * BLOCKS_PER_SLOT * MiB)) * MiB
    return min(max(size, LEAST_BLOCK), LARGEST_BLOCK)


def default_window_bytes(slots: int) -> int:
    """Return the default size of a window: its fixed costs (about 0.15 s) stay below 3 % at 250 MB/s a slot.

    `slots * 250 MB/s * 0.15 s / 0.03`, which is 1.25 GB a slot, or 5 s of work.

    >>> default_window_bytes(4)
    5000000000
    """
    return round(slots * BYTES_PER_SECOND * FIXED_COST_SECONDS / FIXED_COST_SHARE)
