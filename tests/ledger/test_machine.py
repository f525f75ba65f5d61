"""Two datasets, the second made of the first, against plain lists: whatever is lost, repeated or raced, all rows are there."""

from __future__ import annotations

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dagflow.errors import HeadMoved, NothingAdded, NothingExecuted, OutcomeUnknown
from dagflow.ledger import (
    DERIVATIVE,
    DataEvent,
    Ledger,
    SetSource,
    SetTransform,
    SourceState,
    fold,
    resume,
)
from dagflow.testing.stores import CountingStore
from tests.ledger.chains import SCHEMA, Ticks, rows, txn
from tests.tiers import examples

# What becomes of the calls of one append: an exception before or after they take effect, in turn.
FAULTS = st.sampled_from(["none", "none", "lost", "refused", "refused for good", "lost and mute"])


@attrs.define
class Model:
    """The rows that a dataset should hold."""

    files: list[tuple[str, int]] = attrs.field(factory=list)
    watermark: int | None = None
    window: int = 0
    consumed: int = 0
    sources: dict[str, str] = attrs.field(factory=dict)
    committed: list[tuple[DataEvent, int]] = attrs.field(factory=list)
    entries: int = 0

    @property
    def rows(self) -> int:
        return sum(count for _, count in self.files)


class Datasets(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.stores = [CountingStore(), CountingStore()]
        self.above, self.below = Model(entries=2), Model(entries=3)
        self.clock = Ticks()
        for store, kind in zip(self.stores, ("root", DERIVATIVE), strict=True):
            ledger = Ledger.create(store, dataset_id="d" if kind == "root" else "e", dataset_kind=kind)
            ledger.append(SCHEMA)
            if kind == DERIVATIVE:
                ledger.append(SetTransform(inputs=("d",), plan_hash="p"))
        self.handles = [Ledger.open(store, clock=self.clock) for store in self.stores]
        self.others = [Ledger.open(store, clock=self.clock) for store in self.stores]

    def commit(self, which: int, event: DataEvent, fault: str) -> bool:
        """Appends until it is known to be there; a crash is a new handle. False: it changed nothing."""
        store = self.stores[which]

        def before(call, name):
            if call == "create" and name.startswith("ledger/") and fault.startswith("refused"):
                self.left -= 1
                if self.left >= 0:
                    raise ConnectionError("refused")
            if call == "read" and fault == "lost and mute" and self.left == 0:
                self.left = -1
                raise ConnectionError("mute")

        def after(call, name):
            if call == "create" and name.startswith("ledger/") and fault.startswith("lost") and self.left > 0:
                self.left = 0
                raise TimeoutError("no answer")

        self.left = 3 if fault == "refused for good" else 1
        store.before, store.after = before, after
        try:
            entry = self.handles[which].append(event)
        except OutcomeUnknown:
            store.before = store.after = None
            self.handles[which] = Ledger.open(store, clock=self.clock)
            entry = self.handles[which].append(event)
        except (NothingAdded, NothingExecuted):
            return False
        finally:
            store.before = store.after = None
        model = (self.above, self.below)[which]
        assert entry.seq == model.entries
        model.entries += 1
        model.committed.append((event, entry.seq))
        return True

    @rule(count=st.integers(0, 3), moved=st.none() | st.integers(-2, 5), source=st.none() | st.sampled_from("ab"), fault=FAULTS)
    def ingest(self, count, moved, source, fault):
        model, state = self.above, self.handles[0].resume()
        path = f"above-{model.window}"
        watermark = None if moved is None else (model.watermark or 0) + moved
        sources = [] if source is None else [SourceState(name=source, kind="k", value=path)]
        event = state.add_data(
            txn(model.window), rows(state.next_offset, count, path=path) if count else None, watermark=watermark, sources=sources
        )
        model.window += 1
        if self.commit(0, event, fault):
            model.files += [(path, count)] if count else []
            model.watermark = max((each for each in (model.watermark, watermark) if each is not None), default=None)
            model.sources |= {each.name: each.value for each in sources}
        else:
            assert not count
            assert not sources

    @rule(fault=FAULTS)
    def query(self, fault):
        model, state = self.below, self.handles[1].resume()
        new = self.handles[0].slice_after(state.inputs.get("d"))
        assert new.rows == self.above.rows - model.consumed
        count = new.rows // 2
        path = f"below-{model.window}"
        event = state.execute_query(
            txn(model.window, "below"), [new], rows(state.next_offset, count, path=path) if count else None
        )
        model.window += 1
        if self.commit(1, event, fault):
            model.files += [(path, count)] if count else []
            model.watermark = self.above.watermark
            model.consumed = self.above.rows
        else:
            assert new.rows == 0

    @rule(which=st.integers(0, 1))
    def crash(self, which):
        self.handles[which] = Ledger.open(self.stores[which], clock=self.clock)

    @rule(which=st.integers(0, 1))
    def lose_hints(self, which):
        for name in self.stores[which].names("ledger-hint/"):
            self.stores[which].discard(name)

    @rule(which=st.integers(0, 1), data=st.data())
    def repeat_what_is_committed(self, which, data):
        committed = (self.above, self.below)[which].committed
        if committed:
            event, seq = data.draw(st.sampled_from(committed))
            again = attrs.evolve(event, txn=attrs.evolve(event.txn, attempt_id="again"))
            assert data.draw(st.sampled_from([self.handles[which], self.others[which]])).append(again).seq == seq

    @rule(which=st.integers(0, 1))
    def look_with_the_other(self, which):
        self.others[which].resume()

    @rule(name=st.sampled_from("ab"), window=st.integers(0, 99))
    def set_source(self, name, window):
        self.others[0].append(SetSource(name=name, merge=f"{self.above.entries}"))
        self.above.entries += 1

    @precondition(lambda self: self.others[0]._head is not None)
    @rule(count=st.integers(1, 3))
    def second_writer(self, count):
        """It plans from what it saw last, which may be long ago."""
        other, model = self.others[0], self.above
        seen = other._head.carried.data
        state = resume(None if seen is None else other.entry(seen))
        path = f"other-{model.entries}"
        event = state.add_data(txn(model.entries, "other"), rows(state.next_offset, count, path=path))
        newest = self.handles[0].resume().at
        is_stale = (None if newest is None else newest.seq) != seen
        try:
            entry = other.append(event)
        except HeadMoved:
            assert is_stale
            assert other.resume().at == newest
        else:
            assert not is_stale
            assert entry.seq == model.entries
            model.entries += 1
            model.files.append((path, count))
            model.committed.append((event, entry.seq))

    @invariant()
    def nothing_is_lost_or_doubled(self):
        for store, model in zip(self.stores, (self.above, self.below), strict=True):
            ledger = Ledger.open(store)
            entries = list(ledger.entries())
            found = [e.data.new_data for e in entries if e.data is not None and e.data.new_data is not None]
            assert [(file.path, file.rows) for each in found for file in each.files] == model.files
            assert list(ledger.data_entries())[::-1] == [e for e in entries if e.data and e.data.new_data]
            state = ledger.resume()
            assert state == fold(entries)
            assert (state.next_offset, state.watermark, len(entries)) == (model.rows, model.watermark, model.entries)
            assert {name: each.value for name, each in state.sources.items()} == model.sources
            assert [each.start for each in (e.interval for e in found)] == [
                sum(count for _, count in model.files[:number]) for number in range(len(found))
            ]

    def teardown(self):
        inputs = {"d": Ledger.open(self.stores[0])}
        for store in self.stores:
            assert Ledger.open(store).verify(inputs=inputs).problems == ()


TestDatasets = Datasets.TestCase
TestDatasets.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)
