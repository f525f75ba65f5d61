"""The example of RFC-014, whose values the seed text lost: bytes included. These bytes are a format: they do not change."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from dagflow.ledger import AddData, Ledger, LedgerEntry, Seed, decode_entry, encode_entry, hash_bytes
from tests.ledger.chains import HASH, SCHEMA, chained, rows, stored, txn

GOLDEN = Path(__file__).parent / "golden"
MIDNIGHT = 1_703_980_800_000_000  # 2023-12-31T00:00:00Z
HOUR = 3_600_000_000


def example() -> list[LedgerEntry]:
    """A Seed and a schema, then the three entries: data, data, watermark only."""
    return chained(
        [
            Seed(dataset_id="example"),
            SCHEMA,
            AddData(txn=txn(0), new_data=rows(0, 10), new_watermark=MIDNIGHT),
            AddData(txn=txn(1), prev_offset=9, new_data=rows(10, 10), new_watermark=MIDNIGHT + HOUR),
            AddData(txn=txn(2), prev_offset=19, new_watermark=MIDNIGHT + 3 * HOUR),
        ]
    )


@pytest.mark.parametrize("entry", example(), ids=lambda entry: f"{entry.seq}")
def test_bytes(entry):
    expected = (GOLDEN / f"entry-{entry.seq}.json").read_bytes()
    assert encode_entry(entry) == expected
    assert decode_entry(expected, entry.seq) == entry


def test_the_hash_is_that_of_the_first_line():
    for entry in example():
        line = (GOLDEN / f"entry-{entry.seq}.json").read_bytes().splitlines(keepends=True)[0]
        assert entry.hash == hash_bytes(line)


def test_the_example_keeps_all_rules_and_is_what_the_rfc_says():
    ledger = Ledger.open(stored(example()))
    assert ledger.verify().is_clean
    first, second, third = [entry.event for entry in ledger.entries(start=2)]
    assert [each.prev_offset for each in (first, second, third)] == [None, 9, 19]
    assert [each.new_data and (each.new_data.interval.start, each.new_data.interval.end) for each in (first, second, third)] == [
        (0, 9),
        (10, 19),
        None,
    ]
    assert [each.new_data and each.new_data.size for each in (first, second, third)] == [100, 100, None]
    assert first.new_data.logical_hash == first.new_data.files[0].physical_hash == HASH
    assert [each.new_watermark - MIDNIGHT for each in (first, second, third)] == [0, HOUR, 3 * HOUR]
    assert all(
        each.prev_checkpoint is None and each.new_checkpoint is None and not each.sources for each in (first, second, third)
    )
    state = ledger.resume()
    assert (state.next_offset, state.watermark) == (20, MIDNIGHT + 3 * HOUR)


def test_appending_makes_the_same_bytes():
    entries = example()
    ledger = Ledger.open(stored(entries[:2]), clock=lambda: 0)
    for entry in entries[2:]:
        ledger._clock = lambda entry=entry: entry.system_time / 1_000_000 + 1e-9
        assert ledger.append(attrs.evolve(entry.event)).hash == entry.hash
