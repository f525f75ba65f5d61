"""The records of the library's sources and readers: files, blocks, and records with their position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple

import attrs
from typing_extensions import TypeVar

R = TypeVar("R", default=str)
SPARSE = "dagflow.sparse"
"""Metadata of a field whose default is None or a boolean: plain forms lack the field where it has that. For records of which a
window may have a million."""


class ReaderRecord(NamedTuple, Generic[R]):
    """A record, the block that it was read from and where in its file it starts.

    A named tuple, not an attrs class: readers make one for every record, and a tuple costs half.

    >>> ReaderRecord(block_id=7, position=0, record="first line")
    ReaderRecord(block_id=7, position=0, record='first line')
    """

    block_id: int
    position: int
    record: R


BLOCK_ID, POSITION, RECORD_COLUMN = READER_COLUMNS = ReaderRecord._fields
"""The columns of batches of `ReaderRecord`s."""


@attrs.frozen
class FileInfo:
    """A file to be split: `directory_path` (None when the path stands alone) and the path below it."""

    directory_path: str | None
    relative_path: str

    @property
    def file_path(self) -> str:
        """The whole path."""
        if self.directory_path is None:
            return self.relative_path
        end = "" if self.directory_path.endswith(("/", "://")) else "/"
        return f"{self.directory_path}{end}{self.relative_path}"


@attrs.frozen
class BlockIds(Sequence[int]):
    """The ids `first, first + 1, …` (`total` of them) of one file's blocks, made when asked for: a file may have millions.

    >>> list(BlockIds(first=10, total=3))
    [10, 11, 12]
    """

    first: int
    total: int

    def __len__(self) -> int:
        return self.total

    def __getitem__(self, index: Any) -> Any:  # an int for an int, a range for a slice
        return range(self.first, self.first + self.total)[index]


@attrs.frozen
class FileMetadata:
    """A file as the splitter found it. Lengths in bytes, `discover_time` in milliseconds since the epoch.

    `relative_path` is as in Malhar: the name of the input folder and the path below it (`logs/2026/a.txt`); of a file that is
    itself an input, its name.
    """

    file_path: str
    file_name: str
    file_length: int
    number_of_blocks: int
    block_ids: BlockIds
    is_directory: bool = False
    discover_time: int = 0
    relative_path: str = ""


@attrs.frozen
class FileBlockMetadata:
    """The half-open byte range `[start, stop)` of one file.

    `previous_block_id` is -1 for the first block of a file. `modified_ns` is the file's modification time when
    it was planned (nanoseconds since the epoch; None when unknown): a reader refuses a file that has changed since.
    `as_planned` False: it reads what is there by then, as far as the file was planned. `version` is the mark that its server had
    for the content (an ETag), None where there is none. `record_end`: the file is appended to, and this part of it ends behind
    such a record end (`record_quote`: outside of these quotes); a reader then accepts that the file has grown.
    `folder_columns`: the columns that folders `key=value` of the path give its rows, as `"country: string, day: date32"`; None:
    all such folders. `empty_is_null`: a folder `key=` stands for null, as in Delta tables; not for an empty text.
    """

    block_id: int
    file_path: str
    start: int
    stop: int
    file_length: int
    is_last_block: bool = attrs.field(default=False, metadata={SPARSE: True})
    previous_block_id: int = -1
    modified_ns: int | None = attrs.field(default=None, metadata={SPARSE: True})
    as_planned: bool = attrs.field(default=True, metadata={SPARSE: True})
    version: str | None = attrs.field(default=None, metadata={SPARSE: True})
    record_end: str | None = attrs.field(default=None, metadata={SPARSE: True})
    record_quote: str | None = attrs.field(default=None, metadata={SPARSE: True})
    folder_columns: str | None = attrs.field(default=None, metadata={SPARSE: True})
    empty_is_null: bool = attrs.field(default=False, metadata={SPARSE: True})


class Window(list[R]):
    """One window's records, for tests that feed several windows: `[Window(["a"]), Window(["b"])]`."""


_RECORD_CHARACTERS = 200


def excerpt(record: Any) -> str:
    """Return the text of a record, cut. Work items are shown as the range that they stand for."""
    inner = record.record if isinstance(record, ReaderRecord) else record
    if isinstance(inner, FileBlockMetadata):
        return f"bytes {inner.start:,} to {inner.stop:,} of {inner.file_path}"
    if isinstance(inner, FileMetadata | FileInfo):
        return inner.file_path
    if isinstance(inner, str | bytes) and len(inner) > _RECORD_CHARACTERS:
        return f"{inner[:_RECORD_CHARACTERS]!r}… ({len(inner):,} long)"
    text = repr(inner)
    return text if len(text) <= _RECORD_CHARACTERS else f"{text[:_RECORD_CHARACTERS]}…"
