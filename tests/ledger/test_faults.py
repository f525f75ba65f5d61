"""Whatever the store answers, an entry is there once or not at all. Numbers are those of the fault cases."""

from __future__ import annotations

import errno

import pytest

from dagflow.errors import DiskFull, EntryMissing, HeadMoved, LedgerCut, LedgerDamaged, OutcomeUnknown, StoreRefused
from dagflow.ledger import (
    AddData,
    EntryRef,
    Ledger,
    Seed,
    SetSource,
)
from dagflow.ledger.tail import entry_name, hint_bytes
from dagflow.storage import MemoryStore
from dagflow.testing.stores import CountingStore
from tests.ledger.chains import (
    HASH,
    Ticks,
    ingest,
    is_well,
    overwrite,
    root,
    rows,
    rows_of,
    txn,
)


class Faults:
    """Raises for the n-th calls of a kind, before or after they take effect."""

    def __init__(self, **faults):
        self.faults = faults

    def __call__(self, call, name):
        if name.startswith("ledger/") and self.faults.get(call):
            fault = self.faults[call].pop(0)
            if fault is not None:
                raise fault


def lost() -> TimeoutError:
    return TimeoutError("no answer")


def full() -> DiskFull:
    return DiskFull(path="log", doing="publishing a record", reason="No space left on device")


def test_13_a_lost_answer_is_found_out_by_reading():
    store = CountingStore()
    ledger = root(store)
    store.after = Faults(create=[lost()])
    entry = ingest(ledger, 0, 5)
    assert (entry.seq, ledger.head()) == (2, entry.ref)
    ingest(ledger, 1, 5)
    assert is_well(ledger)


def test_13_a_lost_answer_of_a_setting_that_others_have_followed():
    store = CountingStore()
    ledger = root(store)

    def follow(call, name):
        if call == "create" and name.startswith("ledger/"):
            store.after = None
            Ledger.open(store, clock=Ticks()).append(SetSource(name="other"))
            raise lost()

    store.after = follow
    assert ledger.append(SetSource(name="mine")).seq == 2
    assert [entry.event.name for entry in ledger.entries(start=2)] == ["mine", "other"]
    ingest(ledger, 0, 1)
    assert is_well(ledger)


def test_13_a_lost_answer_of_a_loser():
    store = CountingStore()
    one, other = root(store), Ledger.open(store, clock=Ticks())
    event = other.resume().add_data(txn(0, "other"), rows(0, 3))
    ingest(one, 0, 5)
    store.after = Faults(create=[lost()])
    with pytest.raises(HeadMoved):
        other.append(event)
    assert is_well(one)


@pytest.mark.parametrize("times", [1, 2])
def test_15_a_store_that_fails_for_a_while(times):
    store = CountingStore()
    ledger = root(store)
    store.before = Faults(create=[lost() for _ in range(times)])
    ingest(ledger, 0, 5)
    assert is_well(ledger)


@pytest.mark.parametrize(("fault", "kind"), [(lost, OutcomeUnknown), (full, DiskFull)])
def test_15_19_a_store_that_fails_for_good(fault, kind):
    store = CountingStore()
    ledger = root(store)
    store.before = Faults(create=[fault() for _ in range(3)])
    with pytest.raises(kind):
        ingest(ledger, 0, 5)
    assert (ledger.head().seq, store.names("ledger/")[-1]) == (1, entry_name(1))
    ingest(ledger, 0, 5)
    assert is_well(ledger)


def test_7_16_an_entry_that_is_there_although_nobody_could_tell():
    store = CountingStore()
    ledger = root(store)
    event = ledger.resume().add_data(txn(0), rows(0, 5))
    store.after = Faults(create=[lost()])
    store.before = Faults(read=[lost()])
    with pytest.raises(OutcomeUnknown, match="entry 2"):
        ledger.append(event)
    assert ledger.append(event).seq == 2
    assert Ledger.open(store).append(event).seq == 2
    assert rows_of(ledger) == 5
    assert is_well(ledger)


class LateStore(MemoryStore):
    """Answers with an error, and does what it was asked for later."""

    def __init__(self):
        super().__init__()
        self.late: list[tuple[str, bytes]] | None = None

    def create(self, name, data):
        if self.late is not None and name.startswith("ledger/"):
            self.late.append((name, data))
            raise lost()
        return super().create(name, data)

    def arrive(self):
        late, self.late = self.late, None
        for name, data in late:
            super().create(name, data)


def test_14_an_entry_that_arrives_after_the_writer_gave_up():
    store = LateStore()
    ledger = root(store)
    event = ledger.resume().add_data(txn(0), rows(0, 5))
    store.late = []
    with pytest.raises(OutcomeUnknown, match="not there now"):
        ledger.append(event)
    store.arrive()
    assert ledger.append(event).seq == 2
    ingest(ledger, 1, 5)
    assert is_well(ledger)


def test_17_a_torn_entry_is_not_the_end():
    ledger = root()
    ingest(ledger, 0, 5)
    whole = ledger.store.read(entry_name(2))
    for length in range(len(whole)):
        overwrite(ledger.store, entry_name(2), whole[:length])
        with pytest.raises(LedgerDamaged):
            Ledger.open(ledger.store).resume()
        assert not Ledger.open(ledger.store).verify(files=False).is_clean


def test_18_a_listing_that_omits_the_newest(monkeypatch):
    ledger = root()
    for window in range(5):
        ingest(ledger, window, 1)
    names = MemoryStore.names
    monkeypatch.setattr(MemoryStore, "names", lambda self, prefix="": [n for n in names(self, prefix) if "6" not in n])
    again = Ledger.open(ledger.store)
    assert again.head().seq == 6
    assert again.verify().entries == 7


def hints(store):
    return store.names("ledger-hint/")


def test_21_hints_that_are_stale_missing_or_garbage():
    ledger = root()
    for window in range(50):
        ingest(ledger, window, 1)
    assert hints(ledger.store) == ["ledger-hint/000000000051"]
    head = ledger.head()
    ledger.store.discard("ledger-hint/000000000051")
    assert Ledger.open(ledger.store).head() == head
    for garbage in (b"", b"\n", b"garbage", b"{}\n{}\n", hint_bytes(EntryRef(80, HASH))[:-9], b"\xff" * 100):
        overwrite(ledger.store, "ledger-hint/000000000080", garbage)
        assert Ledger.open(ledger.store).head() == head
        assert Ledger.open(ledger.store).verify().is_clean
    overwrite(ledger.store, "ledger-hint/nonsense", hint_bytes(EntryRef(80, HASH)))
    assert Ledger.open(ledger.store).head() == head
    for stale in range(0, 52, 7):
        for name in hints(ledger.store):
            ledger.store.discard(name)
        ledger.store.create(f"ledger-hint/{stale:012d}", hint_bytes(ledger.entry(stale).ref))
        assert Ledger.open(ledger.store).head() == head


def test_21_a_hint_ahead_proves_that_entries_are_gone():
    ledger = root()
    for window in range(5):
        ingest(ledger, window, 1)
    for gone in (6, 5):
        ledger.store.discard(entry_name(gone))
        with pytest.raises(LedgerCut, match="entry 6: it was written"):
            Ledger.open(ledger.store).resume()
        assert any(isinstance(each, LedgerCut) for each in Ledger.open(ledger.store).verify().problems)
    with pytest.raises(LedgerCut):  # no writer writes over the loss
        Ledger.open(ledger.store).append(AddData(txn=txn(9), new_watermark=1))


def test_21_a_place_for_hints_that_does_not_work():
    store = CountingStore()
    ledger = Ledger.open(store)
    ledger.append(Seed(dataset_id="d"))

    def refuse(call, name):
        if name.startswith("ledger-hint"):
            raise PermissionError(errno.EACCES, "no")

    store.before = refuse
    ingest(ledger, 0, 0, watermark=1)
    assert Ledger.open(store).head().seq == 1


def test_22_a_store_that_ignores_the_condition_is_refused():
    class Careless(MemoryStore):
        def create(self, name, data):
            self._records[name] = data
            return True

    with pytest.raises(StoreRefused):
        Ledger.create(Careless(), dataset_id="d")
    with pytest.raises(StoreRefused):
        Ledger.open("ftp://127.0.0.1/data")


def test_a_hole_is_not_the_end():
    ledger = root()
    for window in range(9):
        ingest(ledger, window, 1)
    ledger.store.discard(entry_name(6))
    for name in hints(ledger.store):
        ledger.store.discard(name)
    with pytest.raises(EntryMissing, match=r"entry \d+: it is missing, but entry \d+ is there"):
        list(Ledger.open(ledger.store).entries())
    ledger.store.create("ledger-hint/000000000005", hint_bytes(ledger.entry(5).ref))
    with pytest.raises(EntryMissing, match="entry 6: it is missing, but entry 7 is there"):
        Ledger.open(ledger.store).resume()
