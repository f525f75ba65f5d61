"""The chain of a dataset: appending to it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from dagflow.errors import DagflowError
from dagflow.ledger.codec import FORMAT, decode_entry, encode_entry, format_of
from dagflow.ledger.errors import (
    HeadMoved,
    LedgerDamaged,
    LedgerRuleError,
    LedgerTaken,
    NewerLedger,
    ObjectDamaged,
    ObjectMissing,
    WindowConflict,
    WindowPassed,
)
from dagflow.ledger.events import (
    KINDS,
    ROOT,
    AddData,
    CarriedNumbers,
    DataEvent,
    EntryRef,
    Event,
    ExecuteQuery,
    LedgerEntry,
    Seed,
    SetSource,
    UnknownEvent,
)
from dagflow.ledger.reader import LedgerReader
from dagflow.ledger.rules.table import check_rules
from dagflow.ledger.tail import entry_name
from dagflow.ledger.verify import VerifyReport, verify
from dagflow.storage import OWN_FOLDER, Store, absolute, explained, file_system, inside, open_store, probe
from dagflow.storage.errors import OutcomeUnknown

ANY: Final[Any] = object()
_ATTEMPTS = 3
_RETRIES = 100


class Ledger(LedgerReader):
    """The ledger of a dataset: entries 0, 1, 2, …, each published by creating its number if it is absent, and never changed.

    >>> from dagflow.ledger import AddData, Ledger, Txn
    >>> from dagflow.storage import MemoryStore
    >>> ledger = Ledger.create(MemoryStore(), dataset_id="sensors", clock=lambda: 1.0)
    >>> event = ledger.resume().add_data(Txn("app", 0, "attempt"), watermark=5)
    >>> ledger.append(event).seq, ledger.resume().watermark, ledger.verify().is_clean
    (1, 5, True)
    """

    def __init__(
        self,
        store: Store,
        *,
        hints: Store | None = None,
        folder: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(store, hints=hints, folder=folder)
        self._clock = clock

    @classmethod
    def open(cls, place: str | Store, *, clock: Callable[[], float] = time.time, durable: bool = True) -> Ledger:
        """Return the ledger of a dataset's folder (path or URL), or in a store; it need not exist yet. Nothing is read yet.

        `clock`: seconds since the epoch. `durable`: entries survive a power cut. In a bare store, files are not checked.
        Raises StoreRefused where entries cannot be published.
        """
        if not isinstance(place, str):
            return cls(place, clock=clock)
        folder = absolute(place)
        ours = inside(folder, OWN_FOLDER)
        # hints may be lost in a power cut: they cost no syncs
        return cls(open_store(ours, durable=durable), hints=open_store(ours, durable=False), folder=folder, clock=clock)

    @classmethod
    def create(
        cls,
        place: str | Store,
        *,
        dataset_id: str | None = None,
        dataset_kind: str = ROOT,
        clock: Callable[[], float] = time.time,
        durable: bool = True,
    ) -> Ledger:
        """Return the ledger of a place, and begin one if it has none: then the store is checked first.

        Raises StoreRefused, and LedgerTaken when there is a ledger of another dataset already.
        """
        ledger = cls.open(place, clock=clock, durable=durable)
        ledger.begin(dataset_id=dataset_id, dataset_kind=dataset_kind)
        return ledger

    def begin(self, *, dataset_id: str | None = None, dataset_kind: str = ROOT, tried: Collection[str] = ()) -> None:
        """Write the first entry, unless there is one: then the store is checked first, if it is not among `tried`, by URL.

        Raises StoreRefused, and LedgerTaken when there is a ledger of another dataset already.
        """
        if self.known_head() is None:
            if self.store.url not in tried:
                probe(self.store)
            try:
                self.append(Seed(dataset_id=dataset_id or uuid.uuid4().hex, dataset_kind=dataset_kind), expecting=None)
            except HeadMoved:
                self.refresh()
        seed = self.seed()
        if dataset_id not in (None, seed.dataset_id) or dataset_kind != seed.dataset_kind:
            is_other = dataset_id not in (None, seed.dataset_id)
            expected = f"{dataset_id} ({dataset_kind})" if is_other else f"a {dataset_kind} dataset"
            raise LedgerTaken(self.place, expected, f"{seed.dataset_id} ({seed.dataset_kind})")

    def append(self, event: Event, *, expecting: EntryRef | None = ANY, check_files: bool = True) -> LedgerEntry:
        """Publish the next entry, and return it once it is durable.

        A data event whose window is already committed is not written again: the existing entry is returned. When another writer
        was faster, the event is written after its entry if it depends on nothing that changed, and refused (HeadMoved) otherwise.

        Args:
            event: the event; `resume().add_data(…)` and `execute_query(…)` make events that carry all they must.
            expecting: the entry that the event rests on: for data events the newest data entry (`resume().at`), for others the
                newest entry (`head()`); None: there is none. HeadMoved when it is another.
            check_files: whether to look at the files of the event. False for a caller that has just published them.

        Raises LedgerRuleError (NothingAdded and NothingExecuted: there was nothing to write), HeadMoved, WindowConflict,
        WindowPassed, NewerLedger, ObjectMissing, ObjectDamaged, StorageError; OutcomeUnknown: append it again,
        it is found if it is there.
        """
        with self._lock:
            if self._head is None:
                self.refresh()
            is_checked = not check_files
            for _ in range(_RETRIES):
                head = self._head
                data = None if head is None else head.carried.data
                committed = self._committed(event)
                if committed is not None:
                    return committed
                self._check_expected(event, expecting)
                entry = self._next(event)
                try:
                    check_rules(self.before(event.name if isinstance(event, SetSource) else None), entry)
                except LedgerRuleError:
                    if self.refresh() is head:  # else it may rest on an entry that this handle has not seen yet
                        raise
                    continue
                if not is_checked:
                    self._check_objects(event)
                    is_checked = True
                stored = encode_entry(entry)
                entry = decode_entry(stored, entry.seq, self.store.url)  # what would not come back is not written
                if self._publish(entry.seq, stored):
                    self._keep(entry)
                    self._head = entry
                    self._tail.note(entry.ref)
                    return entry
                refreshed = self._refresh_after(entry)
                if self.entry(entry.seq).hash == entry.hash:  # ours: an answer was lost
                    self._tail.note(entry.ref)
                    return entry
                is_data = isinstance(event, AddData | ExecuteQuery)
                if is_data and refreshed.carried.data != data and self._committed(event) is None:
                    expected = "none" if head is None else str(head.ref)
                    raise HeadMoved(self.place, expected, str(refreshed.ref))
            raise HeadMoved(self.place, f"one of {_RETRIES} that this writer tried to follow", str(self.head()))

    def verify(
        self, *, inputs: Mapping[str, LedgerReader] | None = None, files: bool = True, noted: EntryRef | None = None
    ) -> VerifyReport:
        """Read all entries, and check links, rules, and the sizes and hashes of all files. Damage is reported, not raised.

        Args:
            inputs: ledgers of inputs by dataset id; what the entries say of them is then checked, too.
            files: whether to read files.
            noted: an entry that was noted elsewhere (a report's `head`): it must be here still. A hint serves the same end,
                but lies in the same place as the entries.
        """
        return verify(self, inputs=inputs or {}, files=files, noted=noted)

    # ------------------------------------------------------------------------------------------------------- steps of append

    def _next(self, event: Event) -> LedgerEntry:
        head = self._head
        now = int(self._clock() * 1_000_000)
        seq = 0 if head is None else head.seq + 1
        self._check_known(event)
        carried = (CarriedNumbers() if head is None else head.carried).after(seq, event)
        return LedgerEntry(
            seq=seq,
            prev_hash=None if head is None else head.hash,
            system_time=now if head is None else max(now, head.system_time),  # clocks go back, ledgers do not
            event=event,
            carried=carried,
            format=max(format_of(event, carried), 1 if head is None else head.format),
        )

    def _check_known(self, event: Event) -> None:
        head = self._head
        if isinstance(event, UnknownEvent):
            raise NewerLedger(self.place, f"an event of the unknown kind {event.kind!r}")
        if head is not None and head.format > FORMAT:
            raise NewerLedger(self.place, f"entries of format {head.format} (this dagflow writes {FORMAT})")
        unknown = [] if head is None else [kind for kind in head.carried.kinds if kind not in KINDS]
        if unknown or (head is not None and isinstance(head.event, UnknownEvent)):
            raise NewerLedger(self.place, f"events of the unknown kind {', '.join(unknown)}")

    def _check_expected(self, event: Event, expecting: EntryRef | None) -> None:
        if expecting is ANY:
            return
        head = self._head
        actual = head
        if head is not None and isinstance(event, AddData | ExecuteQuery):
            actual = None if head.carried.data is None else self.entry(head.carried.data)
        newest = None if actual is None else actual.ref
        if newest != expecting:
            raise HeadMoved(self.place, str(expecting), str(newest))

    def _committed(self, event: Event) -> LedgerEntry | None:
        """Return the entry that committed the event's window already."""
        head = self._head
        if head is None or not isinstance(event, AddData | ExecuteQuery):
            return None
        txn = event.txn
        newest = head.carried.windows.get(txn.app_id)
        if newest is None or newest < txn.window_id:
            return None
        entry = self.find_window(txn.app_id, txn.window_id)
        if entry is None or entry.data is None:
            raise WindowPassed(self.place, txn.app_id, txn.window_id, newest)
        for field, committed, proposed in _differences(entry.data, event):
            raise WindowConflict(self.place, txn.app_id, txn.window_id, entry.seq, field, committed, proposed)
        return entry

    def _check_objects(self, event: Event) -> None:
        if not isinstance(event, AddData | ExecuteQuery):
            return
        if self.folder is None or event.new_data is None:
            return
        for file in event.new_data.files:
            path = inside(self.folder, file.path)
            with explained(path, "looking at a file to commit"):
                try:
                    status = file_system(path).status(path)
                except FileNotFoundError as error:
                    raise ObjectMissing(self.place, None, f"{file.path} is to be committed, and is not there") from error
            if status.length != file.size:
                raise ObjectDamaged(
                    self.place, None, f"{file.path} is to be committed with {file.size} bytes, and has {status.length}"
                )

    def _publish(self, seq: int, stored: bytes) -> bool:
        """Create the record of an entry; return False when it exists. After a lost answer, read what became of it."""
        name = entry_name(seq)
        for attempt in range(_ATTEMPTS):
            try:
                return self.store.create(name, stored)
            except Exception as error:
                try:
                    published = self.store.read(name)
                except Exception as second:  # noqa: BLE001  # drivers have exceptions of all kinds
                    reason = f"{type(error).__name__}: {error}; reading it back failed too: {type(second).__name__}: {second}"
                    raise OutcomeUnknown(url=f"{self.place}, entry {seq}", reason=reason) from error
                if published is not None:
                    return False  # whose it is, its hash will tell
                if attempt == _ATTEMPTS - 1:
                    if isinstance(error, DagflowError):
                        raise
                    reason = f"{type(error).__name__}: {error}; it is not there now"
                    raise OutcomeUnknown(url=f"{self.place}, entry {seq}", reason=reason) from error
        raise AssertionError("unreachable")

    def _refresh_after(self, entry: LedgerEntry) -> LedgerEntry:
        """Read the entries of faster writers, and check that they follow the head that this entry would have followed."""
        newest = self.refresh()
        if newest is None or newest.seq < entry.seq:
            raise LedgerDamaged(self.place, entry.seq, "its number is taken, but it cannot be read")
        winner = self.entry(entry.seq)
        if winner.prev_hash != entry.prev_hash:
            raise LedgerDamaged(
                self.place, entry.seq, f"it follows {winner.prev_hash}, but the entry before has the hash {entry.prev_hash}"
            )
        return newest


def _differences(committed: DataEvent, proposed: DataEvent) -> Iterator[tuple[str, object, object]]:
    """Return the differences between two events of one window: in content, not in attempt or names of files.

    An event that was made anew, from a state that has the window in it already, agrees in its rows; it may carry more.
    """
    pairs = zip(_content(committed), _content(proposed), strict=False)
    is_anew = (committed.prev_offset, committed.prev_checkpoint) != (proposed.prev_offset, proposed.prev_checkpoint)
    for (field, one), (_, other) in list(pairs)[: 3 if is_anew else None]:
        if one != other:
            yield field, one, other


def _content(event: DataEvent) -> list[tuple[str, object]]:
    data = event.new_data
    values = None if data is None else data.logical_hash or tuple(file.physical_hash for file in data.files)
    progress = event.sources if isinstance(event, AddData) else tuple((each.new_block, each.new_offset) for each in event.inputs)
    return [
        ("event", type(event).__name__),
        ("new_data.interval.rows", 0 if data is None else data.interval.rows),
        ("new_data, the hash of its values", values),
        ("new_watermark", event.new_watermark),
        ("sources" if isinstance(event, AddData) else "inputs", progress),
    ]
