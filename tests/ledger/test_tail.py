"""Resuming reads the same few records however long the chain is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.ledger import EntryRef, Ledger, hash_bytes
from dagflow.ledger.codec import encode_entry
from dagflow.ledger.errors import EntryMissing
from dagflow.ledger.tail import HINTS, entry_name, entry_number, hint_bytes, parse_hint
from dagflow.storage import MemoryStore
from dagflow.testing.stores import CountingStore
from tests.ledger.chains import MadeUpStore, ingest, root, txn

LENGTHS = [20, 1_000, 100_000, 1_000_000]


def made_up(length: int, **more) -> MadeUpStore:
    """A year of a dataset with data in twelve entries."""
    store = MadeUpStore(length, [2 + month * (length - 2) // 12 for month in range(12)], **more)
    note(store, length - 1)
    store.reads.clear()
    return store


def note(store: MadeUpStore, seq: int) -> None:
    for name in store.names(f"{HINTS}/"):
        store.discard(name)
    store.create(
        f"{HINTS}/{seq:012d}", hint_bytes(EntryRef(seq, hash_bytes(encode_entry(store.entry(seq)).split(b"\n")[0] + b"\n")))
    )


def test_resuming_reads_the_same_at_any_length():
    counts = {}
    for length in LENGTHS:
        store = made_up(length)
        state = Ledger.open(store).resume()
        assert (state.next_offset, state.watermark) == (120, length - 1)
        counts[length] = len(store.reads)
    assert set(counts.values()) == {3}  # the hint, its entry, and that there is none after it


def test_resuming_after_settings_reads_one_more():
    counts = set()
    for length in LENGTHS:
        store = made_up(length, settings_at=[length - 1])
        assert Ledger.open(store).resume().watermark == length - 2
        counts.add(len(store.reads))
    assert counts == {4}


@pytest.mark.parametrize("lag", [0, 1, 2, 5, 100, 40_000])
def test_an_old_hint_costs_a_few_probes(lag):
    store = made_up(100_000)
    note(store, 100_000 - 1 - lag)
    store.reads.clear()
    assert Ledger.open(store).head().seq == 99_999
    assert len(store.reads) <= 3 + 2 * (lag + 1).bit_length()


def test_without_a_hint_it_gallops():
    store = MadeUpStore(1_000_000, [2])
    assert Ledger.open(store).head().seq == 999_999
    assert len(store.reads) <= 45


def test_what_is_in_effect_takes_two_reads_at_any_entry():
    settings = [10, 500, 77_777, 600_000]
    store = made_up(1_000_000, settings_at=settings)
    for seq in (1, 9, 10, 11, 499, 500, 70_000, 599_999, 600_000, 999_999):
        ledger = Ledger.open(store)
        store.reads.clear()
        expected = max(at for at in (1, *settings) if at <= seq)
        assert ledger.schema_at(seq) == store.schema(expected)
        assert len(store.reads) <= 2


def test_rows_are_found_in_few_reads():
    store = made_up(1_000_000)
    ledger = Ledger.open(store)
    for offset in (0, 9, 10, 55, 119):
        assert ledger.entry_of(offset).seq == store.data_at[offset // 10]
    assert len(store.reads) < 150
    store.reads.clear()
    assert [entry.seq for entry in Ledger.open(store).data_entries()] == store.data_at[::-1]
    assert len(store.reads) <= 3 + 2 * 12


def test_appending_reads_the_same_at_any_length():
    counts = set()
    for length in LENGTHS:
        store = made_up(length)
        ledger = Ledger.open(store)
        ingest(ledger, length, 3, watermark=length)
        counts.add(len(store.reads))
        assert ledger.head().seq == length
    assert len(counts) == 1
    assert counts.pop() <= 10


def test_following_entries_of_its_own_reads_nothing_more():
    store = CountingStore()
    ledger = root(store)
    ingest(ledger, 0, 1)
    state = ledger.resume()
    store.reset()
    ledger.append(state.add_data(txn(1), watermark=1))
    assert store.counts["read"] == 0


@given(length=st.integers(1, 3000), hint=st.integers(-1, 2999))
def test_the_end_is_found_from_any_hint(length, hint):
    store = MadeUpStore(length, [])
    if 0 <= hint < length:
        note(store, hint)
    assert Ledger.open(store).head().seq == length - 1


@given(st.integers(0, 10**9 - 1))
def test_names(seq):
    assert entry_number(entry_name(seq)) == seq
    assert entry_number(entry_name(seq).replace(".json", "")) is None


@given(st.integers(0, 10**9), st.text(max_size=8), st.data())
def test_hints_are_sealed(seq, text, data):
    stored = bytearray(hint_bytes(EntryRef(seq, text)))
    assert parse_hint(bytes(stored)) == EntryRef(seq, text)
    bit = data.draw(st.integers(0, 8 * len(stored) - 1))
    stored[bit // 8] ^= 1 << bit % 8
    assert parse_hint(bytes(stored)) is None


def test_no_hint_is_no_entry():
    assert parse_hint(None) is None
    assert Ledger.open(MemoryStore()).head() is None


class ObjectStore(MemoryStore):
    """Records in this process, under a URL that says that each request counts."""

    url = "s3://bucket/dataset"


def test_in_an_object_store_few_entries_get_a_hint_and_any_handle_finds_the_end():
    store = ObjectStore()
    ledger = root(store)
    entries = [ingest(ledger, number, 1) for number in range(40)]
    assert store.names(f"{HINTS}/") == [f"{HINTS}/{32:012d}"]
    counting = CountingStore(store)
    assert Ledger.open(counting).head() == entries[-1].ref
    assert counting.counts["read"] <= 4  # the hint, its entry, the newest entry, and that there is none after it


class OldListings(ObjectStore):
    """Lists what was there at another time, if `listed` says what."""

    listed: list[str] | None = None

    def names(self, prefix: str = "") -> list[str]:
        return super().names(prefix) if self.listed is None else [name for name in self.listed if name.startswith(prefix)]


@pytest.mark.parametrize("length", [0, 1, 7, 40])
def test_in_an_object_store_the_end_is_found_whatever_is_listed(length: int):
    store = OldListings()
    ledger = root(store)
    head = ledger.head()
    for number in range(length):
        head = ingest(ledger, number, 1).ref
    now = store.names()
    for lag in range(len(now) + 1):
        store.listed = now[:lag]
        assert Ledger.open(store).head() == head
    counting = CountingStore(store)
    store.listed = now
    assert Ledger.open(counting).head() == head
    assert counting.counts["names"] <= 3  # the hints, and the entries near the hinted one


def test_in_an_object_store_a_listing_of_entries_that_were_erased_is_not_damage():
    store = OldListings()
    ledger = root(store)
    for number in range(10):
        ingest(ledger, number, 1)
    store.listed = [name for name in store.names() if not name.startswith(HINTS)]
    for name in store.listed:
        store.discard(name)
    assert Ledger.open(store).head() is None


def test_in_an_object_store_a_lost_entry_is_noticed():
    store = ObjectStore()
    ledger = root(store)
    for number in range(10):
        ingest(ledger, number, 1)
    store.discard(entry_name(5))
    with pytest.raises(EntryMissing):
        Ledger.open(store).head()
