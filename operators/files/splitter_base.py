"""The base of file splitters, and the splitter that gets its files from an input port."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs

from dagflow import (
    ErrorRecord,
    FileBlockMetadata,
    FileInfo,
    FileMetadata,
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    State,
    WindowState,
)
from dagflow.config import Bytes, size_of
from dagflow.scaling import Backlog
from dagflow.storage import FileStatus, absolute, base_name, file_system, is_local, split_url, translate
from operators.files.blocks import COMPRESSED_SUFFIXES, LEAST_COST, FileBlocks, default_block_size, default_window_bytes
from operators.files.errors import InputNotFile
from operators.problems import all_problems, below_one


@attrs.define(slots=False)
class AbstractFileSplitter(Operator):
    """Cuts files into blocks without opening them; runs on the driver.

    Subclasses choose the files: `get_file_info` returns the next one. The metadata of a file is emitted first, then that of its
    blocks, which are made when they are emitted: a file may have any number. When a window is full, the rest of the file waits
    for the next one. Blocks have ids `0, 1, 2, …` over the whole run; a file that is split again gets new ones.

    Attributes:
        block_size: bytes in a block, but for the last one of a file; None: see `get_default_block_size`.
        blocks_threshold: how many blocks a window holds at most; None: any number. (Apache Apex Malhar documents 1, which
            would be one Spark job a block.)
        window_bytes: a window is full when its blocks hold this many bytes; None: such that its fixed costs stay below 3 %,
            1.25 GB for each slot (`slots * 250 MB/s * 0.15 s / 0.03`), where a block counts as at least 64 KiB, since
            opening a small file costs as much as reading that.
        one_block_suffixes: files whose names end so (in any case) get one block: compressed text that is not BGZF cannot be read
            by blocks. The splitter does not open files: set it empty if BGZF files are named `.gz`, or to copy files;
            readers go by content.
        idempotent: whether a window that is run again reads the same blocks of the same file versions, and fails where a file has
            changed since. False gives that up: it reads what is there by then.
    """

    partitionable: ClassVar[bool] = False
    at_once: ClassVar[int | None] = None

    files_metadata_output = OutputPort[FileMetadata]()
    blocks_metadata_output = OutputPort[FileBlockMetadata]()

    block_size: Bytes | None = attrs.field(default=None, kw_only=True, converter=size_of)
    blocks_threshold: int | None = attrs.field(default=None, kw_only=True)
    window_bytes: Bytes | None = attrs.field(default=None, kw_only=True, converter=size_of)
    idempotent: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))

    one_block_suffixes: tuple[str, ...] = attrs.field(default=COMPRESSED_SUFFIXES, converter=tuple, kw_only=True)

    next_block_id = State(0)
    unplanned = State[dict[str, Any] | None](None)  # the fields of FileBlocks, of the file that is being planned

    blocks_in_window = WindowState(0)
    bytes_in_window = WindowState(0)
    resumed = WindowState(False)

    def check(self) -> None:
        """Raise ValueError for sizes and thresholds that leave no blocks."""
        with all_problems(super().check) as problems:
            problems.extend(below_one(self, "block_size", "blocks_threshold", "window_bytes"))

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, and begin without work at hand."""
        self._context = context
        self._at_hand = AtHand()
        self._window_target = default_window_bytes(context.slots) if self.window_bytes is None else self.window_bytes

    # What subclasses override

    def process(self) -> None:
        """Emit blocks that an earlier call left, then files and their blocks, until the window is full or no file is left."""
        room = self.at_once
        if self.unplanned is not None and not self.resumed:
            self.resumed = True
            self.resume(FileBlocks(**self.unplanned))
        self.resumed = True
        room = self._emit_blocks(room)
        while (room is None or room > 0) and not self.is_window_full():
            info = self.get_file_info()
            if info is None:
                break
            room = self._process_file(info, room)
        if self.is_window_full():
            self._context.close_window()

    def get_file_info(self) -> FileInfo | None:
        """Return the next file to split, None when there is none now."""
        raise NotImplementedError

    def get_default_block_size(self) -> int:
        """Return the bytes of a block of the current file (`file_at_hand`) if `block_size` is not set. Called once per file.

        An eighth of each slot's share of the file, in whole MiB, from 1 MiB to 64 MiB: `length / (slots * 8)`.
        """
        return default_block_size(self.file_at_hand.length, self._context.slots)

    def get_file_status(self, path: str) -> FileStatus:
        """Length, modification time and kind of a file. Raises OSError where there is none."""
        return file_system(path).status(path)

    def resume(self, blocks: FileBlocks) -> None:
        """React to a window that continues with the blocks of a file that an earlier window began."""

    def part_of(self, status: FileStatus) -> dict[str, Any]:
        """Return the fields of FileBlocks that limit the part of a file to split; none for all of it."""
        return {}

    def planned(self, info: FileInfo, status: FileStatus) -> None:
        """React to a file's metadata that have been emitted."""

    # For the framework, and for subclasses to call

    @property
    def file_at_hand(self) -> FileStatus:
        """The file whose metadata is being made."""
        assert self._at_hand.status is not None, "there is a file at hand within get_default_block_size() only"
        return self._at_hand.status

    @property
    def context(self) -> OperatorContext:
        """The context of this operator."""
        return self._context

    def is_window_full(self) -> bool:
        """Return True if this window takes no more blocks."""
        return self._room_for_blocks(1) <= 0

    def emit_tuples(self) -> None:
        """Continue with the rest of earlier windows. The framework calls it until the window is full or closed."""
        self.process()

    def is_exhausted(self) -> bool:
        """Return True if nothing is left of what has been begun."""
        return self.unplanned is None

    def backlog(self) -> Backlog:
        """Return the blocks of known files that no window has yet. The number of readers depends on them."""
        if self.unplanned is None:
            return Backlog()
        blocks = FileBlocks(**self.unplanned)
        return Backlog(blocks.left, blocks.bytes_left)

    def blocks_of(self, status: FileStatus) -> Backlog:
        """Return the number of blocks that a file will have, and of bytes."""
        if status.is_directory:
            return Backlog()
        self._at_hand.status = status
        size = self.block_size if self.block_size is not None else self.get_default_block_size()
        return Backlog(-(-status.length // max(1, size)), status.length)

    def split(self, info: FileInfo, status: FileStatus) -> None:
        """Emit a file's metadata; its blocks are then the next to be emitted."""
        self._at_hand.status = status
        size = self.block_size if self.block_size is not None else self.get_default_block_size()
        if size <= 0:
            raise ValueError(f"get_default_block_size() returned {size} for {status.path}, and must return at least 1")
        length = 0 if status.is_directory else status.length
        if status.path.lower().endswith(self.one_block_suffixes):
            size = max(size, length)
        blocks = FileBlocks(status.path, length, status.modified_ns or None, size, self.next_block_id, version=status.version)
        blocks = attrs.evolve(blocks, **self.part_of(status))
        count = blocks.count
        self.files_metadata_output.emit(
            blocks.metadata(self._context.clock.now(), is_directory=status.is_directory, relative_path=relative_path(info))
        )
        self.next_block_id += count
        self.unplanned = blocks.as_state() if count else None
        self._context.count("directories" if status.is_directory else "files")
        self.planned(info, status)

    def set_aside(self, path: str, error: Exception) -> None:
        """Apply `on_error` to a file that cannot be split: raise, count, or emit on the port `errors`."""
        if self.on_error == "fail":
            raise error
        self._context.count("files_set_aside")
        if self.on_error == "route":
            text = f"{type(error).__name__}: {error}"
            self.errors.emit(ErrorRecord(self._context.name, self._context.window, path, None, text, path))

    def _process_file(self, info: FileInfo, room: int | None) -> int | None:
        path = info.file_path
        self._context.at(path)
        try:
            status = self.get_file_status(path)
        except OSError as error:
            problem = translate(error, path, "splitting a file")
            problem.__cause__ = error
            self.set_aside(path, problem)
        else:
            if status.is_regular or status.is_directory:
                self.split(info, status)
            else:
                self.set_aside(path, InputNotFile(operator=self._context.name, path=path))
        self._context.at(None)
        return self._emit_blocks(room if room is None else room - 1)

    def _emit_blocks(self, room: int | None) -> int | None:
        if self.unplanned is None:
            return room
        blocks = FileBlocks(**self.unplanned)
        most = self._room_for_blocks(blocks.block_size)
        if room is not None:
            most = min(most, room)
        most = min(most, blocks.left)
        if most <= 0:
            return room
        before = blocks.bytes_left
        self.blocks_metadata_output.emit_all(blocks.take(most, as_planned=self.idempotent))
        size = before - blocks.bytes_left
        self.blocks_in_window += most
        self.bytes_in_window += size if self.window_bytes is not None else max(size, most * LEAST_COST)
        self._context.count("blocks_planned", most)
        self._context.count("bytes_planned", size)
        self.unplanned = blocks.as_state() if blocks.left else None
        return room if room is None else room - most

    def _room_for_blocks(self, block_size: int) -> int:
        if self.window_bytes is None and block_size < LEAST_COST:
            block_size = LEAST_COST
        room = -(-(self._window_target - self.bytes_in_window) // block_size)
        if self.blocks_threshold is not None:
            room = min(room, self.blocks_threshold - self.blocks_in_window)
        return room


def relative_path(info: FileInfo) -> str:
    """Return a file's path from the name of its folder on; its name alone if it came without a folder.

    >>> relative_path(FileInfo("/data/logs", "2026/a.txt")), relative_path(FileInfo(None, "/data/a.txt"))
    ('logs/2026/a.txt', 'a.txt')
    """
    if info.directory_path is None:
        return base_name(info.relative_path)
    return f"{base_name(info.directory_path)}/{info.relative_path}".strip("/")


class AtHand:
    """The pending work of a splitter, also between windows. It need not survive a restart."""

    status: FileStatus | None = None


@attrs.define(slots=False)
class FileSplitterBase(AbstractFileSplitter):
    """Cuts the files that arrive on its port `input` into blocks.

    What exceeds a window waits, and is emitted when the next windows begin.

    >>> import os, tempfile
    >>> from dagflow import FileInfo
    >>> from dagflow.testing import run_operator
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open(os.path.join(folder, "a.txt"), "w") as file:
    ...         _ = file.write("hello")
    ...     found = run_operator(FileSplitterBase(block_size=2), {"input": [FileInfo(folder, "a.txt")]})
    >>> [(b.block_id, b.start, b.stop) for b in found["blocks_metadata_output"]]
    [(0, 0, 2), (1, 2, 4), (2, 4, 5)]

    Attributes:
        file: a path or URL whose file system is taken for file infos that say none (`s3://bucket/any` makes `s3://bucket/a` of
            `/a`); None: the local one.
    """

    file: str | None = None

    input = InputPort[FileInfo]()

    waiting = State[list[list[str | None]]](factory=list)  # directory path and relative path of files not begun

    @input.process
    def each(self, info: FileInfo) -> None:
        """Put a file in line, and emit as much as the window takes."""
        self.waiting.append([info.directory_path, info.relative_path])
        self.process()

    def begin_window(self, window: int) -> None:
        """Continue with the rest of earlier windows."""
        if not self.is_exhausted():
            self.process()

    def get_file_info(self) -> FileInfo | None:
        """Return the file that has waited longest, with an absolute path."""
        if not self.waiting:
            return None
        directory, relative = self.waiting.pop(0)
        path = self._with_file_system(FileInfo(directory, relative or "").file_path)
        folder = None if directory is None else self._with_file_system(directory).rstrip("/")
        if folder is None or not path.startswith(f"{folder}/"):
            return FileInfo(None, path)
        return FileInfo(folder, path[len(folder) + 1 :])

    def is_exhausted(self) -> bool:
        """Return True if nothing is left of what it was told."""
        return super().is_exhausted() and not self.waiting

    def _with_file_system(self, path: str) -> str:
        if not is_local(path):
            return path
        if self.file is not None and not is_local(self.file):
            scheme, rest = split_url(self.file)
            return f"{scheme}://{rest.partition('/')[0]}/{path.lstrip('/')}"
        return absolute(path)
