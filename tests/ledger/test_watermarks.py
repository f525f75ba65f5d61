"""Event time in a chain of datasets: what holds of every sequence of watermarks, against a plain model."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dagflow.ledger import DERIVATIVE, Ledger, Seed, SetTransform, smallest_watermark
from dagflow.storage import MemoryStore
from tests.ledger.chains import SCHEMA, Ticks, ingest, is_well, txn

names = ("a", "b", "c")
steps = st.lists(st.tuples(st.sampled_from(names), st.one_of(st.none(), st.integers(0, 50)), st.integers(0, 2)), max_size=12)


def made(dataset: str) -> Ledger:
    ledger = Ledger.open(MemoryStore(), clock=Ticks())
    ledger.append(Seed(dataset_id=dataset))
    ledger.append(SCHEMA)
    return ledger


@given(steps, st.data())
def test_a_datasets_watermark_is_the_smallest_of_its_inputs_carried_ones(steps: list[tuple[str, int | None, int]], data) -> None:
    above = {name: made(name) for name in names}
    below = Ledger.open(MemoryStore(), clock=Ticks())
    below.append(Seed(dataset_id="below", dataset_kind=DERIVATIVE))
    below.append(SetTransform(inputs=names, plan_hash="p"))
    known: dict[str, int | None] = dict.fromkeys(names)
    seen: dict[str, int | None] = dict.fromkeys(names)
    for number, (name, mark, rows) in enumerate(steps):
        last = known[name]
        if rows or (mark is not None and (last is None or mark > last)):
            ingest(above[name], number, rows, watermark=mark)
            known[name] = max((each for each in (known[name], mark) if each is not None), default=None)
        state = below.resume()
        asked = data.draw(st.sets(st.sampled_from(names)))  # the others idle: they are not even asked
        seen |= {each: known[each] for each in asked}
        slices = [above[each].slice_after(state.inputs.get(each), None if each in asked else 0) for each in names]
        if any(each.new_block is not None for each in slices):
            before = state.watermark
            below.append(state.execute_query(txn(number, "below"), slices))
            found = below.resume().watermark
            assert found == (None if None in seen.values() else min(each for each in seen.values() if each is not None))
            assert before is None or (found is not None and found >= before)
    assert is_well(below)
    assert below.verify(inputs=above).is_clean


@given(st.lists(st.one_of(st.none(), st.integers())))
def test_the_smallest_of_several(watermarks: list[int | None]) -> None:
    found = smallest_watermark(watermarks)
    if not watermarks or None in watermarks:
        assert found is None
    else:
        assert found in watermarks
        assert all(found <= each for each in watermarks if each is not None)
