"""The input operator that reads what other applications have committed."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Literal

import attrs

from dagflow import FileBlockMetadata, FileMetadata, OperatorContext, OutputPort, State, WindowState
from dagflow.config import Bytes, one_of, size_of
from dagflow.errors import LedgerDamaged, NoSuchEntry, ObjectDamaged, ObjectMissing
from dagflow.ledger import DataFile, EntryRef, InputSlice, Ledger, LedgerEntry
from dagflow.scaling import Backlog
from dagflow.storage import FileStatus, absolute, base_name, explained, file_system, inside, translate
from operators.files.blocks import LEAST_COST, FileBlocks, default_block_size, default_window_bytes
from operators.files.errors import DatasetMissing, DatasetReplaced, DatasetRewritten, RowsReplaced
from operators.polling import PollingInput
from operators.problems import all_problems, below_one


@attrs.define(slots=False)
class DatasetInput(PollingInput):
    """Reads a dataset: exactly the rows that were committed after those that it has read before.

    A dataset is the output folder of an application. Only files that its ledger names are read. A window takes as
    many whole entries as fit, at least one, and emits the blocks of their files, for any reader. A run with `--once` reads what
    is committed when it first looks; a continuous one checks for more after each interval. The position is remembered over
    windows and launches. Progress without rows (a watermark) makes a window without blocks.

    An output made from datasets alone is a derived dataset: its ledger names the entries of its inputs.

    >>> import os, tempfile
    >>> from dagflow.ledger import Ledger, SchemaField, SetSchema, Txn, hash_bytes, schema_hash
    >>> from dagflow.testing import run_operator
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(folder, durable=False)
    ...     schema = ledger.append(SetSchema(schema=(SchemaField(name="value", type="string"),))).event
    ...     for name in ("a.txt", "b.txt"):
    ...         with open(os.path.join(folder, name), "w") as file:
    ...             _ = file.write("hello")
    ...     rows = ledger.resume().data_slice([("a.txt", 1, 5, hash_bytes(b"hello"))], schema_hash=schema_hash(schema))
    ...     _ = ledger.append(ledger.resume().add_data(Txn("app", 0, "attempt"), rows))
    ...     found = run_operator(DatasetInput(folder, block_size=4), {})
    >>> [(os.path.basename(b.file_path), b.start, b.stop) for b in found["blocks_metadata_output"]]
    [('a.txt', 0, 4), ('a.txt', 4, 5)]

    Attributes:
        path: the dataset's folder, by path or URL.
        block_size: bytes in a block, but for the last one of a file; None: an eighth of each slot's share of the file.
        window_bytes: a window is full when its files hold this many bytes; None: see `FileSplitterInput`.
        on_replace: the reaction to a window that replaced all rows of the dataset after rows of it were read: `fail`, or `reread`
            what is there now, all of it, in windows of its own. Snapshots between two looks are skipped.
        wait: whether a dataset that is not there is waited for; continuous runs only.
    """

    path: str = attrs.field(converter=os.fspath)
    block_size: Bytes | None = attrs.field(default=None, kw_only=True, converter=size_of)
    window_bytes: Bytes | None = attrs.field(default=None, kw_only=True, converter=size_of)
    on_replace: Literal["fail", "reread"] = attrs.field(default="fail", kw_only=True, validator=one_of(("fail", "reread")))
    wait: bool = attrs.field(default=False, kw_only=True)

    files_metadata_output = OutputPort[FileMetadata]()
    blocks_metadata_output = OutputPort[FileBlockMetadata]()

    position = State[InputSlice | None](None)  # what the next slice begins with: only `prev_…` and the watermark
    next_block_id = State(0)

    @property
    def scope(self) -> Literal["window"] | None:  # type: ignore[override]
        """`window` where each state of the dataset is read whole, in a window of its own."""
        return "window" if self.on_replace == "reread" else None

    began = WindowState[InputSlice | None](None)
    bytes_in_window = WindowState(0)

    def check(self) -> None:
        """Raise ValueError for an empty path, and sizes that leave no blocks."""
        with all_problems(super().check) as problems:
            if not self.path:
                problems.append("path is empty: name the folder of a dataset")
            problems.extend(below_one(self, "block_size", "window_bytes"))

    @property
    def input_path(self) -> str:
        """The dataset's folder, as an absolute path or URL."""
        return absolute(self.path)

    def dataset_id(self) -> str | None:
        """Return the dataset's id; None before it has one. Also called before `setup`."""
        entries: NewEntries | None = self.__dict__.get("_entries")
        if entries is not None:
            return entries.dataset_id
        ledger = Ledger.open(self.path)
        return None if ledger.head() is None else ledger.seed().dataset_id

    def input_paths(self) -> list[str]:
        """Return the dataset's folder."""
        return [self.input_path]

    def check_inputs(self, context: OperatorContext) -> None:
        """Raise DatasetMissing."""
        if not (self.wait and context.continuous) and Ledger.open(self.path).head() is None:
            raise self._missing(context)

    def setup(self, context: OperatorContext) -> None:
        """Look at the ledger. Raises DatasetMissing, DatasetReplaced, DatasetRewritten, LedgerDamaged."""
        super().setup(context)
        self._entries = NewEntries(Ledger.open(self.path))
        self._window_target = default_window_bytes(context.slots) if self.window_bytes is None else self.window_bytes
        self.check_inputs(context)
        self._look()

    def begin_window(self, window: int) -> None:
        """Remember where the window begins."""
        self.began = self.position

    def emit_tuples(self) -> None:
        """Emit the blocks of the next entry's files, until the window is full."""
        entries = self._entries
        if entries.until is None and not self.is_time(entries.looked):
            return
        if entries.until is None:
            self._look()
        if entries.until is None:
            return
        entry = entries.next_entry()
        if entry is None:
            self._take(entries.until)
            entries.until = None
            return
        cost = sum(self._cost(file) for file in files_of(entry))
        is_snapshot = entry.seq == entry.carried.replaced
        if is_snapshot:
            self._check_replaced(entry)
        if self.bytes_in_window and (is_snapshot or self.bytes_in_window + cost > self._window_target):
            entries.put_back(entry)
            self._context.close_window()
            return
        for file in files_of(entry):
            self._emit(entry, file)
        self.bytes_in_window += cost
        self._context.count("entries")
        self._take(entry.seq)
        if self.bytes_in_window >= self._window_target:
            self._context.close_window()

    def is_exhausted(self) -> bool:
        """Return True if all has been taken that was committed at the first look. Never in a continuous run."""
        return not self._context.continuous and self._entries.until is None

    def backlog(self) -> Backlog:
        """Return what was committed at the last look and has not been emitted: its rows are known, their weight is estimated.

        By what rows have weighed in this launch: the entries to come are not read for that.
        """
        entries = self._entries
        if entries.until is None or not entries.emitted_rows:
            return Backlog()
        taken = 0 if self.position is None or self.position.prev_offset is None else self.position.prev_offset + 1
        share = max(0, entries.rows - taken) / entries.emitted_rows
        return Backlog(math.ceil(share * entries.emitted.items), math.ceil(share * entries.emitted.size))

    def watermark(self) -> int | None:
        """Return the dataset's own watermark, as of the last entry that was read."""
        return None if self.position is None else self.position.watermark

    def input_slice(self) -> InputSlice | None:
        """Return the input of the current window; None as long as the dataset does not exist."""
        began, now = self.began, self.position
        if now is None:
            known = self.dataset_id()
            return None if known is None else InputSlice(dataset_id=known)
        block, offset = (None, None) if began is None else (began.prev_block, began.prev_offset)
        return InputSlice(
            dataset_id=now.dataset_id,
            prev_block=block,
            new_block=now.prev_block if now.prev_block != block else None,
            prev_offset=offset,
            new_offset=now.prev_offset if now.prev_offset != offset else None,
            watermark=now.watermark,
        )

    def _look(self) -> None:
        """Look for entries that are new."""
        entries, ledger = self._entries, self._entries.ledger
        entries.looked = self._context.clock.monotonic()
        try:
            head = ledger.head()
        except LedgerDamaged:
            self._check_same()
            raise
        if head is None:
            return
        if entries.dataset_id is None:
            entries.dataset_id = ledger.seed().dataset_id
            self._check_position(head)
        if head.seq > entries.seen:
            entries.seen = entries.until = head.seq
            entries.entries = ledger.rows_after(self.position, head.seq)
            last = ledger.slice_after(self.position, head.seq).last_offset
            entries.rows = 0 if last is None else last + 1

    def _check_same(self) -> None:
        """Raise DatasetReplaced if the ledger is not the one that is known."""
        before = self._entries.dataset_id if self.position is None else self.position.dataset_id
        after = Ledger.open(self.path)
        if before is not None and after.head() is not None and after.seed().dataset_id != before:
            now = after.seed().dataset_id
            raise DatasetReplaced(operator=self._context.name, path=self.input_path, before=before, after=now)

    def _check_position(self, head: EntryRef) -> None:
        position, now = self.position, self._entries.dataset_id
        if position is None or now is None:
            return
        operator, path = self._context.name, self.input_path
        if position.dataset_id != now:
            raise DatasetReplaced(operator=operator, path=path, before=position.dataset_id, after=now)
        last = position.prev_block
        if last is None:
            return
        try:
            there = self._entries.ledger.entry(last.seq).ref
        except NoSuchEntry as error:
            newest = f"its newest entry is {head}"
            raise DatasetRewritten(operator=operator, path=path, before=str(last), after=newest) from error
        if there.hash != last.hash:
            raise DatasetRewritten(operator=operator, path=path, before=str(last), after=f"entry {there}")

    def _check_replaced(self, entry: LedgerEntry) -> None:
        """Raise RowsReplaced if rows that were read before are not in the dataset any more."""
        position = self.position
        if position is not None and position.prev_offset is not None and self.on_replace == "fail":
            where = {"operator": self._context.name, "path": self.input_path}
            raise RowsReplaced(**where, entry=entry.seq, rows=position.prev_offset + 1)

    def _take(self, until: int) -> None:
        taken = self._entries.ledger.slice_after(self.position, until)
        self.position = InputSlice(
            dataset_id=taken.dataset_id, prev_block=taken.last_block, prev_offset=taken.last_offset, watermark=taken.watermark
        )

    def _cost(self, file: DataFile) -> int:
        return file.size if self.window_bytes is not None else max(file.size, LEAST_COST)

    def _emit(self, entry: LedgerEntry, file: DataFile) -> None:
        status = self._status(entry, file)
        size = default_block_size(file.size, self._context.slots) if self.block_size is None else self.block_size
        blocks = FileBlocks(
            status.path, status.length, status.modified_ns or None, size, self.next_block_id, version=status.version
        )
        relative = f"{base_name(self.input_path)}/{file.path}"
        self.files_metadata_output.emit(blocks.metadata(self._context.clock.now(), relative_path=relative))
        self.next_block_id += blocks.count
        self._context.count("files")
        self._context.count("blocks_planned", blocks.count)
        self._context.count("bytes_planned", file.size)
        self._entries.emitted += Backlog(blocks.count, file.size)
        self._entries.emitted_rows += file.rows
        self.blocks_metadata_output.emit_all(blocks.take(blocks.count))

    def _status(self, entry: LedgerEntry, file: DataFile) -> FileStatus:
        """Return the status of a committed file. Raises PathOutside, ObjectMissing, ObjectDamaged, StorageError."""
        path = inside(self.input_path, file.path)
        with explained(path, "looking at a committed file"):
            try:
                status = file_system(path).status(path)
            except FileNotFoundError as error:
                reason = f"{file.path} is not there; {file.rows} rows were committed in it"
                raise ObjectMissing(self.input_path, entry.seq, reason) from error
        if status.length != file.size:
            reason = f"{file.path} has {status.length} bytes, {file.size} were committed"
            raise ObjectDamaged(self.input_path, entry.seq, reason)
        return status

    def _missing(self, context: OperatorContext) -> DatasetMissing:
        path, parent, nearest = self.input_path, None, None
        reason = "the folder has no ledger"
        try:
            if not file_system(path).status(path).is_directory:
                reason = "it is a file"
        except OSError as error:
            known = translate(error, path, "looking for the input")
            reason, parent, nearest = "there is no such folder", getattr(known, "parent", None), getattr(known, "nearest", None)
        return DatasetMissing(operator=context.name, path=path, reason=reason, parent=parent, nearest=nearest, waits=self.wait)


class NewEntries:
    """The entries of a dataset that a launch has not emitted yet.

    Attributes:
        seen: the newest entry that was seen; -1: none.
        until: the newest entry of those that are being taken; None: all have been taken.
        rows: how many rows the dataset has up to there.
        emitted, emitted_rows: blocks, bytes and rows that have been emitted in this launch.
        looked: when the dataset was looked at last, by the monotonic clock.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.dataset_id: str | None = None
        self.seen = -1
        self.until: int | None = None
        self.rows = 0
        self.emitted = Backlog()
        self.emitted_rows = 0
        self.looked = 0.0
        self.entries: Iterator[LedgerEntry] = iter(())
        self._next: LedgerEntry | None = None

    def next_entry(self) -> LedgerEntry | None:
        """Return the next entry with rows."""
        entry, self._next = self._next, None
        return next(self.entries, None) if entry is None else entry

    def put_back(self, entry: LedgerEntry) -> None:
        """Make an entry the next one again."""
        self._next = entry


def files_of(entry: LedgerEntry) -> tuple[DataFile, ...]:
    """Return the files that an entry has added, and those that it has kept where it replaced others."""
    return tuple(file for _, file in entry.content)
