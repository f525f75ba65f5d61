"""The slices that a reader takes of a dataset: bounded, with the files that they name."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import LedgerDamaged, NoSuchEntry
from dagflow.ledger import InputSlice, Ledger, LedgerEntry, SchemaField, SetSchema
from dagflow.storage import MemoryStore
from dagflow.testing.stores import CountingStore
from tests.ledger.chains import SCHEMA, MadeUpStore, chained, ingest, root, rows, stored, txn

WIDER = SetSchema(schema=(*SCHEMA.schema, SchemaField(name="more", type="int64", optional=True)))
steps = st.lists(st.one_of(st.integers(0, 3), st.just("schema")), max_size=30)


def grown(script: list[int | str]) -> Ledger:
    """A ledger in which each step adds rows, only moves the watermark (0), or sets a schema."""
    ledger = root(MemoryStore())
    schema = SCHEMA
    for window, step in enumerate(script):
        if step == "schema":
            ledger.append(schema := WIDER if schema is SCHEMA else attrs.evolve(schema, schema=wider(schema)))
        else:
            state = ledger.resume()
            new = rows(state.next_offset, int(step), schema=schema) if step else None
            ledger.append(state.add_data(txn(window), new, watermark=10 * window))
    return ledger


def wider(schema: SetSchema) -> tuple[SchemaField, ...]:
    return (*schema.schema, SchemaField(name=f"more{len(schema.schema)}", type="int64", optional=True))


def offsets(ledger: Ledger, part: InputSlice) -> list[int]:
    return [n for _, file in ledger.files_of(part) for n in range(file.interval.start, file.interval.end + 1)]


@given(steps, st.data())
def test_bounded_slices_tile_the_rows(script: list[int | str], data: st.DataObject) -> None:
    ledger = grown(script)
    head = ledger.head()
    assert head is not None
    borders = data.draw(st.lists(st.integers(0, head.seq), max_size=6))
    position, taken, watermarks = None, [], []
    for until in (*sorted(borders), None):
        part = Ledger.open(ledger.store).slice_after(position, until)
        found = offsets(ledger, part)
        assert len(found) == part.rows
        assert (part.new_block is None) <= (part.new_offset is None)
        taken += found
        watermarks.append(-1 if part.watermark is None else part.watermark)
        position = part
    whole = ledger.slice_after(None)
    assert taken == offsets(ledger, whole) == list(range(whole.rows))
    assert position is not None
    assert (position.last_block, position.last_offset, position.watermark) == (
        whole.new_block,
        whole.new_offset,
        whole.watermark,
    )
    assert watermarks == sorted(watermarks)


@given(steps, st.data())
def test_entries_with_rows_after_any_position(script: list[int | str], data: st.DataObject) -> None:
    ledger = grown(script)
    head = ledger.head()
    assert head is not None
    since, until = (data.draw(st.integers(0, head.seq)) for _ in range(2))
    position = ledger.slice_after(None, since)
    found = [entry.seq for entry in Ledger.open(ledger.store).rows_after(position, until)]
    assert found == [e.seq for e in ledger.entries() if since < e.seq <= until and e.data is not None and e.data.new_data]


def test_a_border_before_the_position_is_nothing_new() -> None:
    ledger = grown([2, 0, 3])
    position = ledger.slice_after(None)
    part = ledger.slice_after(position, 2)
    assert (part.new_block, part.new_offset, part.prev_offset, part.watermark) == (None, None, 4, 20)
    assert list(ledger.files_of(part)) == []


def test_a_border_that_is_not_there() -> None:
    with pytest.raises(NoSuchEntry):
        grown([1]).slice_after(None, 7)


def test_each_new_entry_is_read_once_or_twice() -> None:
    store = CountingStore()
    ledger = root(store)
    for window in range(300):
        ingest(ledger, window, 2)
    position = ledger.slice_after(None, 200)
    again = Ledger.open(store)
    again.refresh()
    store.reset()
    assert [entry.seq for entry in again.rows_after(position)] == list(range(201, 302))
    assert store.counts["read"] <= 105


def test_twelve_entries_among_a_million() -> None:
    store = MadeUpStore(1_000_000, data_at=range(70_000, 1_000_000, 78_000))
    ledger = Ledger.open(store)
    ledger.refresh()
    store.reads.clear()
    assert [entry.seq for entry in ledger.rows_after(None)] == store.data_at
    assert len(store.data_at) == 12
    assert len(store.reads) <= 12 * 60
    store.reads.clear()
    part = ledger.slice_after(ledger.slice_after(None, store.data_at[-2]), 999_000)
    assert [entry.seq for entry, _ in ledger.files_of(part)] == store.data_at[-1:]
    assert len(store.reads) <= 70


def test_rows_that_are_missing_are_damage() -> None:
    entries = list(grown([2, 2, 2]).entries())

    def without_rows(entry: LedgerEntry) -> LedgerEntry:
        return attrs.evolve(entry, event=attrs.evolve(entry.event, new_data=None))

    broken = [without_rows(entry) if entry.seq == 3 else entry for entry in entries]
    with pytest.raises(LedgerDamaged, match="row 2 is the next"):
        list(Ledger.open(stored(chained(entry.event for entry in broken))).rows_after(None))
    with pytest.raises(LedgerDamaged, match="did not"):
        list(Ledger.open(stored(broken)).rows_after(None))
