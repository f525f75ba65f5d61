"""One entry tells what all of them add up to."""

from __future__ import annotations

import attrs
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import NothingAdded, NothingExecuted
from dagflow.ledger import (
    Checkpoint,
    EntryRef,
    InputSlice,
    ResumeState,
    SetSource,
    SetTransform,
    SourceState,
    fold,
    resume,
)
from tests.ledger.chains import HASH, derivative, root, rows, txn

MOVES = st.none() | st.integers(-3, 9)


def follow(ledger, events):
    """At every moment, the newest data entry alone tells what all entries add up to."""
    entries = list(ledger.entries())
    for event in events:
        try:
            entries.append(ledger.append(event(ledger.resume(), len(entries))))
        except (NothingAdded, NothingExecuted):
            continue
        last = [entry for entry in entries if entry.data is not None]
        assert ledger.resume() == resume(last[-1] if last else None) == fold(entries)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), MOVES, st.none() | st.sampled_from("ab"), st.sampled_from(["same", "new", "none"]), st.booleans()
        ),
        max_size=12,
    )
)
def test_resuming_a_root(steps):
    ledger = root()

    def step(count, moved, source, checkpoint, is_setting):
        def event(state, number):
            if is_setting:
                return SetSource(name="s", merge=f"{number}")
            more = {"same": {}, "new": {"checkpoint": Checkpoint(hash=f"sha256:{number}")}, "none": {"checkpoint": None}}
            sources = [] if source is None else [SourceState(name=source, kind="k", value=f"{number}")]
            data = rows(state.next_offset, count) if count else None
            return state.add_data(txn(number), data, watermark=moved, sources=sources, **more[checkpoint])

        return event

    follow(ledger, [step(*each) for each in steps])


@given(st.lists(st.tuples(st.integers(0, 2), MOVES, MOVES, st.integers(0, 3), st.booleans()), max_size=12))
def test_resuming_a_derivative(steps):
    ledger = derivative(inputs=("a", "b"))

    def step(count, moved, watermark, which, is_setting):
        def event(state, number):
            names = ("a", "b") if number % 5 else ("b", "c")
            current = ledger.transform_at(ledger.head().seq).inputs
            if is_setting and names != current:
                return SetTransform(inputs=names, plan_hash=f"{number}")
            inputs = []
            for bit, name in enumerate(current):
                each = state.inputs.get(name, InputSlice(dataset_id=name))
                if which >> bit & 1:
                    seq = 0 if each.prev_block is None else each.prev_block.seq
                    offset = -1 if each.prev_offset is None else each.prev_offset
                    higher = max((m for m in (each.watermark, watermark) if m is not None), default=None)
                    each = attrs.evolve(
                        each,
                        new_block=EntryRef(seq + 1, HASH),
                        new_offset=offset + moved if moved is not None and moved > 0 else None,
                        watermark=higher,
                    )
                inputs.append(each)
            return state.execute_query(txn(number), inputs, rows(state.next_offset, count) if count else None)

        return event

    follow(ledger, [step(*each) for each in steps])


def test_files_become_a_slice():
    state = ResumeState(last_offset=9)
    data = state.data_slice([("a", 3, 30, HASH), ("empty", 0, 0, HASH), ("b", 1, 10, HASH)], schema_hash=HASH)
    assert [(file.path, file.interval.start, file.interval.end) for file in data.files] == [("a", 10, 12), ("b", 13, 13)]
    assert (data.interval.start, data.interval.end, data.size) == (10, 13, 40)
    assert state.data_slice([("empty", 0, 0, HASH)], schema_hash=HASH) is None
    assert state.data_slice([], schema_hash=HASH) is None
