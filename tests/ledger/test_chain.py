"""Appending and looking up; files and versions."""

from __future__ import annotations

import datetime

import attrs
import pytest

from dagflow.errors import EntryMalformed, LedgerMissing, LedgerTaken, NewerLedger, NoSuchEntry, ObjectDamaged, ObjectMissing
from dagflow.ledger import (
    DERIVATIVE,
    FORMAT,
    AddData,
    Ledger,
    Seed,
    SetSource,
    UnknownEvent,
)
from dagflow.storage import MemoryStore
from tests.ledger.chains import (
    SCHEMA,
    Ticks,
    chained,
    ingest,
    is_well,
    root,
    sealed,
    stored,
    txn,
)


def test_entries_in_both_directions():
    ledger = root()
    for window in range(3):
        ingest(ledger, window, 2)
    assert [entry.seq for entry in ledger.entries()] == [0, 1, 2, 3, 4]
    assert [entry.seq for entry in ledger.entries(newest_first=True)] == [4, 3, 2, 1, 0]
    assert [entry.seq for entry in ledger.entries(start=1, stop=3)] == [1, 2]
    assert [entry.seq for entry in ledger.entries(newest_first=True, start=3, stop=99)] == [4, 3]
    assert is_well(ledger)


def test_an_empty_ledger():
    ledger = Ledger.open(MemoryStore())
    assert (ledger.head(), list(ledger.entries()), ledger.verify().entries) == (None, [], 0)
    assert ledger.resume().next_offset == 0
    with pytest.raises(NoSuchEntry, match="it is empty"):
        ledger.entry(0)
    with pytest.raises(LedgerMissing):
        ledger.seed()


def test_create_begins_a_ledger_once():
    store = MemoryStore()
    assert Ledger.create(store, dataset_id="d").head() == Ledger.create(store, dataset_id="d").head()
    assert Ledger.create(store).seed() == Seed(dataset_id="d")
    with pytest.raises(LedgerTaken, match=r"holds the ledger of dataset d \(root\), not of other \(root\)"):
        Ledger.create(store, dataset_id="other")
    with pytest.raises(LedgerTaken):
        Ledger.create(store, dataset_kind=DERIVATIVE)


def test_what_is_looked_up():
    ledger = root(clock=Ticks(0))
    for window in range(40):
        ingest(ledger, window, window % 3, watermark=window)
    for offset in range(ledger.resume().next_offset):
        found = ledger.entry_of(offset).data.new_data.interval
        assert found.start <= offset <= found.end
    for beyond in (-1, ledger.resume().next_offset):
        with pytest.raises(NoSuchEntry, match="its newest row is 38"):
            ledger.entry_of(beyond)
    assert [ledger.find_window("app", window).data.txn.window_id for window in range(40)] == list(range(40))
    assert (ledger.find_window("app", 40), ledger.find_window("other", 0)) == (None, None)
    assert ledger.entry_at(0) is None
    assert [ledger.entry_at(second * 1_000_000).seq for second in (1, 2, 5, 1000)] == [0, 1, 4, 41]
    assert ledger.schema_at(0) is None
    assert ledger.schema_at(30) == SCHEMA
    with pytest.raises(ValueError, match="no time zone"):
        ledger.entry_at(datetime.datetime(2026, 1, 1))  # noqa: DTZ001


def test_files_that_are_not_there_are_not_committed(folder):
    ledger = Ledger.create(folder, dataset_id="d", durable=False)
    ledger.append(SCHEMA)
    with pytest.raises(ObjectMissing, match=r"part-0\.txt is to be committed, and is not there"):
        ingest(ledger, 0, 5)
    with open(f"{folder}/part-0.txt", "w") as file:
        file.write("too short")
    with pytest.raises(ObjectDamaged, match="with 100 bytes, and has 9"):
        ingest(ledger, 0, 5)
    assert ledger.head().seq == 1


def test_unknown_kinds_are_read_and_not_appended_to():
    entries = chained([Seed(dataset_id="d"), SCHEMA, UnknownEvent("SetVocab", {"offset": "o"}), SetSource(name="s")])
    ledger = Ledger.open(stored(entries))
    assert [type(entry.event).__name__ for entry in ledger.entries()] == ["Seed", "SetSchema", "UnknownEvent", "SetSource"]
    assert ledger.verify().is_clean
    with pytest.raises(NewerLedger, match="SetVocab"):
        ingest(ledger, 0, 0, watermark=1)
    with pytest.raises(NewerLedger, match="Wild"):
        root().append(UnknownEvent("Wild", {}))


def test_newer_formats_are_read_and_not_appended_to():
    entries = chained([Seed(dataset_id="d"), SCHEMA, SetSource(name="s")])
    entries[2] = sealed(attrs.evolve(entries[2], format=FORMAT + 1))
    ledger = Ledger.open(stored(entries))
    assert ledger.verify().is_clean
    with pytest.raises(NewerLedger, match=f"format {FORMAT + 1}"):
        ingest(ledger, 0, 0, watermark=1)


def test_what_newer_ones_carry_is_carried_on():
    entries = chained([Seed(dataset_id="d"), SCHEMA])
    newer = attrs.evolve(entries[1], carried=attrs.evolve(entries[1].carried, unknown={"vocab": 7}), unknown={"note": [1, None]})
    ledger = Ledger.open(stored([entries[0], sealed(newer)]))
    assert ingest(ledger, 0, 5).carried.unknown == {"vocab": 7}
    assert ledger.verify().is_clean


def test_values_without_a_place_are_refused_before_anything_is_written():
    ledger = root()
    for extra in ({"a": 1.5}, {"a": object()}, {1: 2}, {"a": {"b": b"bytes"}}, {"a": "\ud83d\ude00"}):
        with pytest.raises((ValueError, EntryMalformed)):
            ledger.append(AddData(txn=txn(0), new_watermark=1, extra=extra))
    with pytest.raises(ValueError, match=r"new_watermark is 1\.5"):
        ledger.append(AddData(txn=txn(0), new_watermark=1.5))
    assert ledger.head().seq == 1
