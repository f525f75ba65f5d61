"""The reading side of a ledger."""

from __future__ import annotations

import datetime
import itertools
import threading
from collections.abc import Callable, Iterator

from dagflow.exports import shown_in_notebooks
from dagflow.ledger.codec import decode_entry
from dagflow.ledger.errors import (
    EntryMissing,
    EntryRewritten,
    LedgerDamaged,
    LedgerMissing,
    NoSuchEntry,
)
from dagflow.ledger.events import (
    DataFile,
    DataSlice,
    EntryRef,
    InputSlice,
    KeptFiles,
    LedgerEntry,
    OffsetInterval,
    Seed,
    SetSchema,
    SetSource,
    SetTransform,
)
from dagflow.ledger.rules.rule import ChainState
from dagflow.ledger.state import ResumeState, carried, resume
from dagflow.ledger.tail import Tail, entry_name
from dagflow.storage import Store

_KEPT = 64


class LedgerReader:
    """A ledger to be read. Safe to share between threads.

    Args:
        store: where the entries are.
        hints: where the hints are: the same place; it need not be durable.
        folder: the dataset's folder, by which files are found; None: files are not looked at.
    """

    def __init__(self, store: Store, *, hints: Store | None = None, folder: str | None = None) -> None:
        self.store = store
        self.folder = folder
        self._tail = Tail(store, store if hints is None else hints)
        self._head: LedgerEntry | None = None
        self._kept: dict[int, LedgerEntry] = {}
        self._lock = threading.RLock()

    _repr_mimebundle_ = shown_in_notebooks("ledger_bundle")

    @property
    def place(self) -> str:
        """The place of the ledger, for messages."""
        return self.store.url if self.folder is None else self.folder

    def refresh(self) -> LedgerEntry | None:
        """Look for the newest entry; None while there is none. Raises LedgerDamaged."""
        with self._lock:
            newest = self._tail.find(None if self._head is None else self._head.ref)
            if newest is not None and (self._head is None or self._head.seq != newest[0]):
                self._head = decode_entry(newest[1], newest[0], self.store.url)
                if self._head.seq != newest[0]:
                    raise EntryRewritten(self.store.url, newest[0], f"it says that it is entry {self._head.seq}")
            return self._head

    def known_head(self) -> LedgerEntry | None:
        """Return the newest entry that this handle knows; it is looked for only if there is none. Raises LedgerDamaged."""
        return self.refresh() if self._head is None else self._head

    def head(self) -> EntryRef | None:
        """Return the newest entry; None while there is none."""
        newest = self.refresh()
        return None if newest is None else newest.ref

    def resume(self, *, refresh: bool = True) -> ResumeState:
        """Return the state of the dataset: one read of the newest data entry, however long the chain is.

        `refresh`: False looks for newer entries only if this handle knows none. `append` then raises HeadMoved if there are.
        """
        with self._lock:
            head = self.refresh() if refresh else self.known_head()
            return resume(None if head is None or head.carried.data is None else self.entry(head.carried.data))

    def entry(self, seq: int) -> LedgerEntry:
        """Return one entry. Raises NoSuchEntry, EntryMissing, EntryMalformed."""
        with self._lock:
            if self._head is not None and seq == self._head.seq:
                return self._head
            if seq in self._kept:
                return self._kept[seq]
        stored = self.store.read(entry_name(seq)) if seq >= 0 else None
        if stored is None:
            head = self.refresh()
            if head is not None and 0 <= seq <= head.seq:
                raise EntryMissing(self.store.url, seq, f"it is missing, but entry {head.seq} is there")
            raise NoSuchEntry(self.place, f"entry {seq}", "it is empty" if head is None else f"its newest entry is {head.seq}")
        entry = decode_entry(stored, seq, self.store.url)
        if entry.seq != seq:
            raise EntryRewritten(self.store.url, seq, f"it says that it is entry {entry.seq}")
        self._keep(entry)
        return entry

    def _keep(self, entry: LedgerEntry) -> None:
        with self._lock:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[entry.seq] = entry

    def entries(self, newest_first: bool = False, start: int = 0, stop: int | None = None) -> Iterator[LedgerEntry]:
        """Yield the entries from `start` up to before `stop`, in their order or reversed, each linked to its neighbour.

        Raises EntryMissing, EntryMalformed, EntryRewritten where the chain is broken.
        """
        head = self.refresh()
        last = -1 if head is None else head.seq
        numbers = range(max(start, 0), last + 1 if stop is None else min(stop, last + 1))
        neighbour: LedgerEntry | None = None
        for seq in reversed(numbers) if newest_first else numbers:
            entry = self.entry(seq)
            if neighbour is not None:
                older, newer = (entry, neighbour) if newest_first else (neighbour, entry)
                if newer.prev_hash != older.hash:
                    reason = f"its hash is {older.hash}, but entry {newer.seq} follows {newer.prev_hash}"
                    raise EntryRewritten(self.store.url, older.seq, reason)
            neighbour = entry
            yield entry

    # ------------------------------------------------------------------------------------------------- what is in effect

    def seed(self) -> Seed:
        """Return the first entry, which says which dataset the ledger belongs to. Raises LedgerMissing."""
        if self._head is None and self.refresh() is None:
            raise LedgerMissing(self.place)
        event = self.entry(0).event
        if not isinstance(event, Seed):
            raise EntryRewritten(self.store.url, 0, "it is not a Seed")
        return event

    def schema_at(self, seq: int) -> SetSchema | None:
        """Return the schema in effect at an entry: two reads."""
        number = self.entry(seq).carried.schema
        event = None if number is None else self.entry(number).event
        return event if isinstance(event, SetSchema) else None

    def transform_at(self, seq: int) -> SetTransform | None:
        """Return the transform in effect at an entry: two reads."""
        number = self.entry(seq).carried.transform
        event = None if number is None else self.entry(number).event
        return event if isinstance(event, SetTransform) else None

    def source_at(self, seq: int, name: str) -> SetSource | None:
        """Return the source of a name in effect at an entry: two reads."""
        number = self.entry(seq).carried.sources.get(name)
        event = None if number is None else self.entry(number).event
        return event if isinstance(event, SetSource) else None

    def before(self, source: str | None = None) -> ChainState:
        """Return the state that the next entry finds, by the numbers that the newest entry carries: at most six reads."""
        head = self._head
        if head is None:
            return ChainState()
        at = head.carried
        known = None if source is None else self.source_at(head.seq, source)
        return ChainState(
            previous=head,
            data=None if at.data is None else self.entry(at.data),
            seed=self.seed(),
            schema=self.schema_at(head.seq),
            transform=self.transform_at(head.seq),
            sources={} if known is None else {known.name: known},
        )

    # ------------------------------------------------------------------------------------------------- looking things up

    def data_entries(self, newest: int | None = None) -> Iterator[LedgerEntry]:
        """Return the entries that added rows, newest first, from an entry (the newest): two reads each, whatever lies between."""
        head = self.refresh()
        if head is None:
            return
        at: LedgerEntry | None = self.entry(head.seq if newest is None else newest)
        while at is not None and at.carried.rows is not None:
            entry = self.entry(at.carried.rows)
            yield entry
            at = self.entry(entry.seq - 1) if entry.seq else None

    def content(self, newest: int | None = None) -> Iterator[LedgerEntry]:
        """Return the entries whose rows are the content of the dataset at an entry (the newest), newest first.

        These are all that added rows, from the newest one that replaced rows before it: that one names those that it has kept.
        """
        for entry in self.data_entries(newest):
            yield entry
            if entry.seq == entry.carried.replaced:
                return

    def content_files(self, newest: int | None = None) -> list[tuple[LedgerEntry, int, DataFile]]:
        """Return the files of the content at an entry (the newest), in the order of their rows.

        Each comes with the entry that names it and the number of the SetSchema under which it was written.
        """
        entries = reversed(list(self.content(newest)))
        return [(entry, schema, file) for entry in entries for schema, file in entry.content]

    def files_kept(self, is_replaced: Callable[[DataFile], bool], newest: int | None = None) -> tuple[KeptFiles, ...] | None:
        """Return the files of the content at an entry (the newest) that stay when others are replaced; None if all stay."""
        files = self.content_files(newest)
        kept = [(schema, file) for _, schema, file in files if file.rows and not is_replaced(file)]
        groups = itertools.groupby(kept, lambda each: each[0])
        kept_files = tuple(KeptFiles(schema=schema, files=tuple(file for _, file in mine)) for schema, mine in groups)
        return None if len(kept) == len(files) else kept_files

    def content_rows(self) -> int:
        """Return the number of rows that are content of the dataset: at most three reads."""
        data, after = self._replacing(), self.resume(refresh=False).next_offset
        if data is None:
            return after
        return after - data.interval.start + sum(file.rows for file in data.kept_files)

    def first_row(self, at: int | None = None) -> int:
        """Return the offset with which the content of the dataset at an entry (the newest) begins: at most two reads.

        Rows that the newest replacement has kept are before it.
        """
        data = self._replacing(at)
        return 0 if data is None else data.interval.start

    def _replacing(self, at: int | None = None) -> DataSlice | None:
        """Return the newest slice up to an entry (the newest) that replaced rows."""
        head = self.refresh()
        replaced = None if head is None else self.entry(head.seq if at is None else at).carried.replaced
        data = None if replaced is None else self.entry(replaced).data
        return None if data is None else data.new_data

    def entry_of(self, offset: int) -> LedgerEntry:
        """Return the entry that added a row: O(log n) reads. Raises NoSuchEntry."""
        head = self.refresh()
        low, high = 0, -1 if head is None else head.seq
        while low <= high:
            at = self.entry((low + high) // 2)
            rows = None if at.carried.rows is None else self.entry(at.carried.rows)
            interval = None if rows is None or rows.data is None or rows.data.new_data is None else rows.data.new_data.interval
            if rows is None or interval is None or offset > interval.end:
                low = (low + high) // 2 + 1
            elif offset >= interval.start:
                return rows
            else:
                high = rows.seq - 1
        newest = self.resume().last_offset
        raise NoSuchEntry(self.place, f"row {offset}", "it has no rows" if newest is None else f"its newest row is {newest}")

    def entry_at(self, time: datetime.datetime | int) -> LedgerEntry | None:
        """Return the newest entry up to a time (microseconds since the epoch, or a datetime with its zone): O(log n) reads."""
        if isinstance(time, datetime.datetime):
            if time.tzinfo is None:
                raise ValueError(f"{time} has no time zone; for UTC: {time!r}.replace(tzinfo=datetime.timezone.utc)")
            time = (time - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(microseconds=1)
        head = self.refresh()
        low, high = 0, 0 if head is None else head.seq + 1
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle).system_time <= time:
                low = middle + 1
            else:
                high = middle
        return self.entry(low - 1) if low else None

    def find_window(self, app_id: str, window_id: int) -> LedgerEntry | None:
        """Return the entry that committed a window of an application, None when there is none: O(log n) reads."""
        head = self.refresh()
        low, high = 0, 0 if head is None else head.seq + 1
        while low < high:
            middle = (low + high) // 2
            if self.entry(middle).carried.windows.get(app_id, -1) < window_id:
                low = middle + 1
            else:
                high = middle
        entry = self.entry(low) if head is not None and low <= head.seq else None
        if entry is None or entry.data is None or (entry.data.txn.app_id, entry.data.txn.window_id) != (app_id, window_id):
            return None
        return entry

    def slice_after(self, position: InputSlice | None, until: int | None = None) -> InputSlice:
        """Return the new slice for a dataset that has this one as an input and has read up to `position` (None: nothing).

        The position comes from `resume().inputs` of that dataset, or is the last slice. The new slice holds exactly the rows
        after it, up to an entry (`until`; default: the newest). Without new rows, its new fields are absent. Raises NoSuchEntry.
        """
        if until is None:
            state = self.resume()
        else:
            data = self.entry(until).carried.data
            state = resume(None if data is None else self.entry(data))
        consumed = InputSlice(dataset_id=self.seed().dataset_id) if position is None else carried(position)
        block, offset = consumed.prev_block, consumed.prev_offset
        is_new = state.at is not None and (block is None or state.at.seq > block.seq)
        has_rows = is_new and state.last_offset is not None and (offset is None or state.last_offset > offset)
        return InputSlice(
            dataset_id=consumed.dataset_id,
            prev_block=block,
            new_block=state.at if is_new else None,
            prev_offset=offset,
            new_offset=state.last_offset if has_rows else None,
            watermark=state.watermark if is_new and state.watermark is not None else consumed.watermark,
        )

    def rows_after(self, position: InputSlice | None, until: int | None = None) -> Iterator[LedgerEntry]:
        """Return the entries that added rows after a position (None: all), oldest first, up to an entry (the newest).

        Rows that an entry up to there has replaced are left out: the newest one that replaced rows after the position is the
        first, and what it has kept counts again (`LedgerEntry.content`). One or two reads each where they follow each other,
        O(log n) where n entries without rows lie between.

        Raises NoSuchEntry, LedgerDamaged.
        """
        head = self.refresh()
        consumed = None if position is None else carried(position)
        low = 0 if consumed is None or consumed.prev_block is None else consumed.prev_block.seq
        offset = 0 if consumed is None or consumed.prev_offset is None else consumed.prev_offset + 1
        stop = (-1 if head is None else head.seq) if until is None else self.entry(until).seq
        if stop > low and (replaced := self.entry(stop).carried.replaced) is not None and replaced > low:
            low, offset = replaced - 1, self.first_row(stop)
        while low < stop:
            hit = self._next_rows(low, stop, offset)
            if hit is None:
                return
            yield hit[0]
            low, offset = hit[0].seq, hit[1].end + 1

    def _next_rows(self, low: int, stop: int, offset: int) -> tuple[LedgerEntry, OffsetInterval] | None:
        """Return the entry after `low`, up to `stop`, that added the row `offset`; None if there is none. Gallops."""
        consumed, step = low, 1
        while (hit := self._rows_up_to(min(low + step, stop), consumed)) is None:
            if low + step >= stop:
                return None
            low, step = low + step, step * 2
        while hit[1].start > offset:  # it is another one, between low and this one
            if hit[0].seq - low < 2:
                raise LedgerDamaged(self.place, hit[0].seq, f"its rows begin at {hit[1].start}, but row {offset} is the next")
            middle = (low + hit[0].seq) // 2
            earlier = self._rows_up_to(middle, consumed)
            low, hit = (middle, hit) if earlier is None else (low, earlier)
        return hit

    def _rows_up_to(self, seq: int, consumed: int) -> tuple[LedgerEntry, OffsetInterval] | None:
        """Return the newest entry with rows up to `seq`, if it is after `consumed`."""
        number = self.entry(seq).carried.rows
        if number is None or number <= consumed:
            return None
        entry = self.entry(number)
        if entry.data is None or entry.data.new_data is None:
            raise LedgerDamaged(self.place, seq, f"it says that entry {number} added rows, but that one did not")
        return entry, entry.data.new_data.interval

    def files_of(self, part: InputSlice) -> Iterator[tuple[LedgerEntry, DataFile]]:
        """Return the files that hold the rows `(prev_offset, new_offset]` of a slice, in their order, each with its entry.

        Rows that an entry of the slice has replaced are left out.
        """
        if part.new_block is None or part.new_offset is None:
            return
        before = InputSlice(dataset_id=part.dataset_id, prev_block=part.prev_block, prev_offset=part.prev_offset)
        for entry in self.rows_after(before, part.new_block.seq):
            yield from ((entry, file) for _, file in entry.content)
