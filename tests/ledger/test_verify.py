"""Whatever is changed in what was written, verifying names it, and no reader takes it for the end of the ledger."""

from __future__ import annotations

import itertools
import os
import shutil
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.errors import (
    EntryMalformed,
    EntryMissing,
    EntryRewritten,
    ForeignObject,
    InputDiverged,
    LedgerCut,
    LedgerDamaged,
    LedgerError,
    ObjectDamaged,
    ObjectMissing,
)
from dagflow.ledger import RULES, Checkpoint, EntryRef, Ledger, encode_entry, hash_bytes
from dagflow.ledger.tail import entry_name
from dagflow.storage import MemoryStore
from tests.ledger.chains import HASH, SCHEMA, derivative, ingest, overwrite, root, rows, sealed, txn
from tests.tiers import examples


def small(name="d", count=5) -> Ledger:
    """A ledger of seven entries: settings, data, a watermark, data with a checkpoint."""
    ledger = root() if name == "d" else Ledger.create(MemoryStore(), dataset_id=name)
    if name != "d":
        ledger.append(SCHEMA)
    ingest(ledger, 0, count, watermark=1)
    ingest(ledger, 1, 0, watermark=2)
    ingest(ledger, 2, count, checkpoint=Checkpoint(hash=HASH))
    ingest(ledger, 3, count)
    ingest(ledger, 4, 0, watermark=3)
    return ledger


LAST = 6


def copy(ledger: Ledger) -> MemoryStore:
    store = MemoryStore()
    for name in ledger.store.names():
        store.create(name, ledger.store.read(name))
    return store


GOOD = small()
assert GOOD.verify().is_clean


def found(store) -> list[Any]:
    """The problems by their class; those that break a rule by its name."""
    return [NAMES.get(each.code, type(each)) for each in Ledger.open(store).verify().problems]


NAMES = {rule.code: rule.name for rule in RULES}


def nobody_goes_on(store) -> None:
    """Readers see the damage or an intact prefix's end that a hint knows not to be the end; no writer appends silently."""
    with pytest.raises(LedgerError):
        list(Ledger.open(store).entries())


@given(seq=st.integers(0, LAST), data=st.data())
def test_44_a_flipped_bit(seq, data):
    store = copy(GOOD)
    stored = bytearray(store.read(entry_name(seq)))
    bit = data.draw(st.integers(0, 8 * len(stored) - 1))
    stored[bit // 8] ^= 1 << bit % 8
    overwrite(store, entry_name(seq), bytes(stored))
    assert EntryMalformed in found(store)
    nobody_goes_on(store)


@pytest.mark.parametrize("pair", list(itertools.combinations(range(LAST + 1), 2)))
def test_45_two_entries_swapped(pair):
    store = copy(GOOD)
    one, other = (store.read(entry_name(seq)) for seq in pair)
    overwrite(store, entry_name(pair[0]), other)
    overwrite(store, entry_name(pair[1]), one)
    assert {"numbered", "linked"} <= set(found(store))
    nobody_goes_on(store)


@pytest.mark.parametrize("seq", range(LAST + 1))
def test_46_a_deleted_entry(seq):
    store = copy(GOOD)
    store.discard(entry_name(seq))
    assert (EntryMissing if seq < LAST else LedgerCut) in found(store)
    nobody_goes_on(store)


@pytest.mark.parametrize("left", range(LAST + 1))
def test_46_a_cut_tail(left):
    store = copy(GOOD)
    for seq in range(left, LAST + 1):
        store.discard(entry_name(seq))
    assert found(store) == [LedgerCut]
    nobody_goes_on(store)
    # with the hint gone too, who noted the newest entry elsewhere knows
    for name in store.names("ledger-hint/"):
        store.discard(name)
    ledger = Ledger.open(store)
    assert [type(each) for each in ledger.verify(noted=GOOD.head()).problems] == [LedgerCut]


@pytest.mark.parametrize("seq", range(2, LAST + 1))
def test_47_an_entry_rewritten_with_its_hash_made_to_fit(seq):
    store = copy(GOOD)
    entry = GOOD.entry(seq)
    # nothing that a rule would see: another time, within its neighbours'
    overwrite(store, entry_name(seq), encode_entry(attrs.evolve(entry, system_time=entry.system_time - 1)))
    assert found(store) == (["linked"] if seq < LAST else [EntryRewritten])
    nobody_goes_on(store)


def test_47_prev_offset_rewritten():
    store = copy(GOOD)
    entry = GOOD.entry(3)
    overwrite(store, entry_name(3), encode_entry(attrs.evolve(entry, event=attrs.evolve(entry.event, prev_offset=3))))
    assert found(store)[:2] == ["offset_carried", "linked"]


@pytest.mark.parametrize("seq", range(LAST + 2))
def test_49_an_entry_of_another_dataset(seq):
    other = small("other", count=4)
    if seq > LAST:
        ingest(other, 5, 1)
    store = copy(GOOD)
    overwrite(store, entry_name(seq), other.store.read(entry_name(seq)))
    assert set(found(store)) & {"linked", EntryRewritten}
    nobody_goes_on(store)


def test_something_foreign_among_the_entries():
    store = copy(GOOD)
    store.create("ledger/000000000/notes.txt", b"hello")
    store.create("ledger/000000001/000000000003.json", b"")
    assert found(store) == [ForeignObject, ForeignObject]


def test_after_an_unreadable_entry_links_are_still_checked():
    store = copy(GOOD)
    overwrite(store, entry_name(1), b"garbage")
    overwrite(store, entry_name(5), encode_entry(attrs.evolve(GOOD.entry(5), system_time=1)))
    assert found(store) == [EntryMalformed, EntryRewritten]
    report = Ledger.open(store).verify()
    assert [each.seq for each in report.problems] == [1, 5]
    with pytest.raises(EntryMalformed, match="dagflow verify"):
        report.check()


def test_a_living_writer_sees_what_was_changed_behind_it():
    ledger = small()
    overwrite(ledger.store, entry_name(LAST), encode_entry(attrs.evolve(ledger.entry(LAST), system_time=2**60)))
    with pytest.raises(EntryRewritten):
        ledger.resume()


def test_a_writer_does_not_follow_a_fork():
    ledger = small()
    fork = copy(ledger)
    other = Ledger.open(fork)
    last = ledger.entry(LAST)
    changed = sealed(attrs.evolve(last, system_time=last.system_time + 1))
    overwrite(fork, entry_name(LAST), encode_entry(changed))
    overwrite(fork, "ledger-hint/000000000006", b"")
    ingest(other, 9, 1)
    ledger.store.create(entry_name(LAST + 1), fork.read(entry_name(LAST + 1)))
    with pytest.raises(LedgerDamaged, match=r"entry 7: it follows sha256:"):
        ledger.append(ledger.before().event and attrs.evolve(ledger.before().event, txn=txn(10), new_watermark=99))


# --------------------------------------------------------------------------------------------------------------- files


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """A folder with a ledger and three files."""
    folder = str(tmp_path_factory.mktemp("dataset"))
    ledger = Ledger.create(folder, dataset_id="d", durable=False)
    ledger.append(SCHEMA)
    for window in range(3):
        content = b"".join(b"line %d of %d\n" % (line, window) for line in range(3))
        path = f"part/{window}.txt"
        os.makedirs(f"{folder}/part", exist_ok=True)
        with open(f"{folder}/{path}", "wb") as file:
            file.write(content)
        state = ledger.resume()
        data = state.data_slice([(path, 3, len(content), hash_bytes(content))], schema_hash=rows(0, 1).schema_hash)
        ledger.append(state.add_data(txn(window), data))
    report = ledger.verify()
    assert (report.is_clean, report.entries, report.rows, report.files) == (True, 5, 9, 3)
    return folder


@settings(max_examples=examples(30))
@given(number=st.integers(0, 2), data=st.data())
def test_44_48_a_damaged_file(dataset, number, data):
    path = f"{dataset}/part/{number}.txt"
    with open(path, "rb") as file:
        content = file.read()
    kind = data.draw(st.sampled_from(["flip", "cut", "longer", "gone"]))
    try:
        if kind == "gone":
            os.unlink(path)
        else:
            at = data.draw(st.integers(0, len(content) - 1))
            flipped = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            with open(path, "wb") as file:
                file.write({"flip": flipped, "cut": content[:at], "longer": content + b"x"}[kind])
        report = Ledger.open(dataset).verify()
        assert [type(each) for each in report.problems] == [ObjectMissing if kind == "gone" else ObjectDamaged]
        assert report.problems[0].seq == number + 2
        assert f"part/{number}.txt" in str(report.problems[0])
        assert Ledger.open(dataset).verify(files=False).is_clean
    finally:
        with open(path, "wb") as file:
            file.write(content)


def test_a_dataset_can_be_moved(dataset, tmp_path):
    shutil.copytree(dataset, tmp_path / "moved")
    assert Ledger.open(str(tmp_path / "moved")).verify().is_clean


# -------------------------------------------------------------------------------------------------------------- inputs


def test_what_is_said_of_inputs():
    above, below = small(), derivative()
    below.append(below.resume().execute_query(txn(0), [above.slice_after(None)]))
    ingest(above, 5, 2)
    new = above.slice_after(below.resume().inputs["d"])
    for changed, field in [
        (attrs.evolve(new, new_offset=15), "inputs[0].new_offset"),
        (attrs.evolve(new, new_block=EntryRef(7, HASH)), "inputs[0].new_block"),
        (attrs.evolve(new, new_block=EntryRef(99, HASH)), "inputs[0]"),
    ]:
        branch = Ledger.open(copy(below))
        branch.append(branch.resume().execute_query(txn(1), [changed]))
        assert branch.verify().is_clean  # the chain alone does not tell
        problems = branch.verify(inputs={"d": above}).problems
        assert [(type(each), each.seq, each.field) for each in problems] == [(InputDiverged, 4, field)]
    below.append(below.resume().execute_query(txn(1), [new]))
    assert below.verify(inputs={"d": above}).is_clean
    assert [type(each) for each in below.verify(inputs={"d": small("other")}).problems][:1] == [InputDiverged]
