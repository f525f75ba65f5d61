"""Shapes of data that ledgers have stumbled over. Numbers are those of the fault cases."""

from __future__ import annotations

import attrs
import pytest

from dagflow.errors import LedgerRuleError, NothingAdded
from dagflow.ledger import (
    AddData,
    Checkpoint,
    EntryRef,
    InputSlice,
    Ledger,
    SchemaField,
    Seed,
    SetSchema,
    SetTransform,
    SourceState,
    hash_bytes,
)
from dagflow.storage import MemoryStore
from dagflow.testing.stores import CountingStore
from tests.ledger.chains import (
    HASH,
    SCHEMA,
    derivative,
    ingest,
    is_well,
    root,
    rows,
    txn,
)


def test_31_one_row():
    ledger = root()
    ingest(ledger, 0, 1)
    assert (ledger.resume().last_offset, ledger.resume().next_offset) == (0, 1)
    below = derivative()
    new = below_step(below, ledger, 0, 1)
    assert (new.prev_offset, new.new_offset, new.rows) == (None, 0, 1)
    ingest(ledger, 1, 1)
    assert below_step(below, ledger, 1, 1).rows == 1
    assert is_well(below)


def below_step(below, above, window, count, **more):
    """One query: what is new above becomes `count` rows below."""
    state = below.resume()
    new = above.slice_after(state.inputs.get("d"))
    data = rows(state.next_offset, count) if count else None
    below.append(state.execute_query(txn(window, "below"), [new], data, **more))
    return new


def test_32_38_no_rows_but_progress():
    above, below = root(), derivative()
    ingest(above, 0, 5)
    assert below_step(below, above, 0, 0).rows == 5
    assert below.resume().inputs["d"].prev_offset == 4
    assert below.resume().next_offset == 0
    with pytest.raises(Exception, match="changes nothing"):
        below_step(below, above, 1, 0)
    assert is_well(below)


@pytest.mark.full
def test_33_thousand_entries_without_data():
    store = CountingStore()
    ledger = root(store)
    ingest(ledger, 0, 5)
    for window in range(1, 1001):
        ingest(ledger, window, 0, watermark=window)
    again = Ledger.open(store)
    store.reset()
    assert again.resume().next_offset == 5
    assert store.counts["read"] <= 4
    ingest(again, 1001, 5)
    assert next(again.data_entries()).data.new_data.interval.start == 5
    assert again.verify().is_clean


def test_34_an_idle_input_holds_the_watermark_where_it_is():
    below = derivative(inputs=("a", "b", "c"))
    b3 = EntryRef(3, HASH)

    def step(window, **watermarks):
        state = below.resume()
        new = []
        for name in "abc":
            last = state.inputs.get(name, InputSlice(dataset_id=name))
            moved = watermarks.get(name)
            block = None if moved is None else EntryRef(b3.seq + window, HASH)
            new.append(attrs.evolve(last, new_block=block, watermark=last.watermark if moved is None else moved))
        below.append(state.execute_query(txn(window), new))
        return below.resume().watermark

    assert step(0, a=10) is None
    assert step(1, a=20, b=5) is None
    assert step(2, c=7) == 5
    assert step(3, b=30) == 7  # a idles at 20, c at 7
    assert step(4, a=40) == 7
    assert step(5, c=50) == 30
    assert is_well(below)


@pytest.mark.parametrize("count", [1, 5])
def test_35_a_watermark_alone_goes_downstream(count):
    above, below = root(), derivative()
    ingest(above, 0, count, watermark=10)
    below_step(below, above, 0, count)
    ingest(above, 1, 0, watermark=20)
    new = below_step(below, above, 1, 0)
    assert (new.new_offset, new.prev_offset, below.resume().watermark) == (None, count - 1, 20)
    assert is_well(below)


def test_36_37_what_is_carried():
    ledger = root()
    logs = SourceState(name="logs", kind="etag", value="1")
    ledger.append(ledger.resume().add_data(txn(0), sources=[logs]))
    ingest(ledger, 1, 0, watermark=5)  # a watermark by hand
    assert ledger.resume().sources == {"logs": logs}
    checkpoint = Checkpoint(hash=hash_bytes(b"buffered"))
    ingest(ledger, 2, 0, checkpoint=checkpoint)
    ingest(ledger, 3, 4)
    state = ledger.resume()
    assert (state.sources, state.watermark, state.checkpoint) == ({"logs": logs}, 5, checkpoint)
    assert is_well(ledger)


def test_40_a_schema_that_grows_within_a_run():
    ledger = root()
    ingest(ledger, 0, 5)
    wider = SetSchema(schema=(*SCHEMA.schema, SchemaField(name="more", type="int64", optional=True)))
    ledger.append(wider)
    ledger.append(ledger.resume().add_data(txn(1), rows(5, 5, schema=wider)))
    assert (ledger.schema_at(2), ledger.schema_at(4)) == (SCHEMA, wider)
    assert is_well(ledger)


def test_41_a_new_input_begins_at_nothing():
    above, below = root(), derivative()
    ingest(above, 0, 5)
    below_step(below, above, 0, 5)
    below.append(SetTransform(inputs=("d", "f"), plan_hash="q"))
    state = below.resume()
    ingest(above, 1, 5)
    new = [above.slice_after(state.inputs["d"]), InputSlice(dataset_id="f", new_block=EntryRef(2, HASH), new_offset=3)]
    below.append(state.execute_query(txn(1, "below"), new))
    assert (below.resume().inputs["d"].prev_offset, below.resume().inputs["f"].prev_offset) == (9, 3)
    assert is_well(below)


def test_42_offsets_near_the_end():
    ledger = root()
    ledger.append(AddData(txn=txn(0), new_data=rows(0, 2**63 - 2)))
    ingest(ledger, 1, 2)
    assert ledger.resume().last_offset == 2**63 - 1
    with pytest.raises(LedgerRuleError, match="Offsets fit into 63 bits"):
        ingest(ledger, 2, 1)
    assert is_well(ledger)


def test_43_a_clock_that_goes_back():
    times = iter([100.0, 200.0, 150.0, 300.0])
    ledger = Ledger.open(MemoryStore(), clock=lambda: next(times))
    ledger.append(Seed(dataset_id="d"))
    for window in range(3):
        ingest(ledger, window, 0, watermark=window)
    assert [entry.system_time // 1_000_000 for entry in ledger.entries()] == [100, 200, 200, 300]


def test_an_idle_window_writes_nothing():
    ledger = root()
    ingest(ledger, 0, 5, watermark=5)
    with pytest.raises(NothingAdded):
        ingest(ledger, 1, 0)
    with pytest.raises(NothingAdded):
        ingest(ledger, 2, 0, watermark=3)
    assert ledger.head().seq == 2
