"""Appending: once each, whatever the store answers and whoever else writes. Numbers are those of the fault cases."""

from __future__ import annotations

import datetime
import errno
import threading
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

from dagflow.errors.ledger import (
    EntryMalformed,
    EntryMissing,
    HeadMoved,
    LedgerCut,
    LedgerDamaged,
    LedgerMissing,
    LedgerTaken,
    NewerLedger,
    NoSuchEntry,
    ObjectDamaged,
    ObjectMissing,
    WindowConflict,
    WindowPassed,
)
from dagflow.errors.ledger_rules import NothingAdded, OffsetTooLarge
from dagflow.errors.surroundings import DiskFull, OutcomeUnknown, StoreRefused
from dagflow.ledger import (
    DERIVATIVE,
    AddData,
    Checkpoint,
    EntryRef,
    InputSlice,
    Ledger,
    SchemaField,
    Seed,
    SetSchema,
    SetSource,
    SetTransform,
    SourceState,
    UnknownEvent,
    fold,
    resume,
)
from dagflow.ledger.tail import entry_name, hint_bytes
from dagflow.storage import CountingStore, LocalStore, MemoryStore
from tests.ledger.chains import HASH, SCHEMA, Ticks, chained, derivative, ingest, overwrite, root, rows, sealed, stored, txn


def is_well(ledger: Ledger) -> bool:
    """The oracle: verify is clean, and one entry tells what all add up to."""
    again = Ledger.open(ledger.store)
    entries = list(again.entries())
    last = [entry for entry in entries if entry.data is not None]
    assert again.verify().problems == ()
    assert again.resume() == fold(entries) == resume(last[-1] if last else None)
    return True


def rows_of(ledger: Ledger) -> int:
    return sum(entry.data.new_data.interval.rows for entry in ledger.data_entries() if entry.data and entry.data.new_data)


# ------------------------------------------------------------------------------------------------------ what it is for


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
    with pytest.raises(LedgerTaken, match=r"holds the ledger of d \(root\), not of other \(root\)"):
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


# ------------------------------------------------------------------------------------------------------ the store, 13 to 22


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
    with pytest.raises(LedgerCut):  # nobody writes over the loss
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


# ------------------------------------------------------------------------------------------------ several writers, 23 to 30


def test_23_two_writers_of_one_window():
    ledger = root()
    writers = [Ledger.open(ledger.store, clock=Ticks(now)) for now in (2e9, 3e9)]
    events = [w.resume().add_data(txn(0, attempt=f"try-{n}"), rows(0, 5, path=f"try-{n}")) for n, w in enumerate(writers)]
    first, second = [writer.append(event) for writer, event in zip(writers, events, strict=True)]
    assert first == second
    assert rows_of(ledger) == 5
    assert is_well(ledger)


def test_24_two_writers_of_two_windows():
    ledger = root()
    one, other = (Ledger.open(ledger.store, clock=Ticks()) for _ in range(2))
    event = other.resume().add_data(txn(0, "other"), rows(0, 3, path="other"))
    ingest(one, 0, 5)
    with pytest.raises(HeadMoved) as caught:
        other.append(event)
    assert (caught.value.expected[:2], caught.value.actual[:2]) == ("1 ", "2 ")
    state = other.resume()
    other.append(state.add_data(txn(0, "other"), rows(state.next_offset, 3, path="other")))
    assert rows_of(ledger) == 8
    assert is_well(ledger)


def test_a_writer_of_settings_does_not_disturb_a_writer_of_data():
    ledger = root()
    other = Ledger.open(ledger.store, clock=Ticks())
    event = ledger.resume().add_data(txn(0), rows(0, 3))
    other.append(SetSource(name="s"))
    assert ledger.append(event).seq == 3
    other.append(SetSource(name="t"))
    assert is_well(ledger)


def test_an_event_that_rests_on_an_entry_which_the_handle_has_not_seen():
    ledger = root()
    stale = Ledger.open(ledger.store, clock=Ticks())
    stale.resume()
    ingest(ledger, 0, 5)
    assert stale.append(ledger.resume().add_data(txn(1), rows(5, 1))).seq == 3


def test_a_stale_writer_may_not_take_back_what_a_source_told():
    ledger = root()
    other = Ledger.open(ledger.store, clock=Ticks())
    event = other.resume().add_data(txn(0, "other"), sources=[SourceState(name="b", kind="k", value="1")])
    ledger.append(ledger.resume().add_data(txn(0), sources=[SourceState(name="b", kind="k", value="2")]))
    with pytest.raises(HeadMoved):
        other.append(event)
    assert ledger.resume().sources["b"].value == "2"


def test_expecting():
    ledger = root()
    state = ledger.resume()
    assert state.at is None
    first = ledger.append(state.add_data(txn(0), rows(0, 3)), expecting=None)
    assert ledger.append(state.add_data(txn(0), rows(0, 3)), expecting=None) == first  # it is committed
    ledger.append(SetSource(name="s"), expecting=first.ref)
    with pytest.raises(HeadMoved, match="the newest entry is 3"):
        ledger.append(SetSource(name="t"), expecting=first.ref)
    ledger.append(ledger.resume().add_data(txn(1), watermark=1), expecting=first.ref)
    with pytest.raises(HeadMoved):
        ledger.append(ledger.resume().add_data(txn(2), watermark=2), expecting=first.ref)


@pytest.mark.parametrize("kind", ["memory", "local"])
def test_25_sixteen_writers(kind, tmp_path):
    store = MemoryStore() if kind == "memory" else LocalStore(str(tmp_path / "log"), durable=False)
    root(store)
    commits = 12 if kind == "memory" else 4
    barrier = threading.Barrier(16)

    def write(number):
        ledger = Ledger.open(store, clock=Ticks())
        barrier.wait()
        for window in range(commits):
            while True:
                state = ledger.resume()
                data = rows(state.next_offset, 1 + number % 3, path=f"{number}-{window}")
                try:
                    ledger.append(state.add_data(txn(window, f"app-{number}"), data))
                    break
                except HeadMoved:
                    continue

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(write, range(16)))
    ledger = Ledger.open(store)
    paths = [file.path for entry in ledger.data_entries() for file in entry.data.new_data.files]
    assert sorted(paths) == sorted(f"{number}-{window}" for number in range(16) for window in range(commits))
    assert rows_of(ledger) == sum(commits * (1 + number % 3) for number in range(16))
    assert is_well(ledger)


def test_26_a_writer_that_slept_while_others_went_on():
    ledger = root()
    sleeper = Ledger.open(ledger.store, clock=Ticks())
    event = sleeper.resume().add_data(txn(0, "sleeper"), rows(0, 1))
    for window in range(60):
        ingest(ledger, window, 1)
    with pytest.raises(HeadMoved, match="the newest entry is 61"):
        sleeper.append(event)
    ingest(sleeper, 60, 1)
    assert is_well(ledger)


def test_27_a_reader_sees_whole_entries_only(tmp_path):
    ledger = root(LocalStore(str(tmp_path / "log"), durable=False))
    done = threading.Event()

    def read():
        seen = 0
        while not done.is_set():
            count = len(list(Ledger.open(ledger.store).entries()))
            assert count >= seen
            seen = count

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        for window in range(100):
            ingest(ledger, window, 1)
        done.set()
        reading.result()


def test_29_two_pipelines_with_one_application_id():
    ledger = root()
    ingest(ledger, 0, 5)
    with pytest.raises(WindowConflict, match="give each its own") as caught:
        Ledger.open(ledger.store).append(AddData(txn=txn(0, attempt="b"), new_data=rows(0, 4, path="b")))
    assert (caught.value.field, caught.value.seq) == ("new_data.interval", 2)
    other = attrs.evolve(rows(0, 5, path="b"), logical_hash="sha256:other")
    with pytest.raises(WindowConflict):
        ledger.append(AddData(txn=txn(0, attempt="b"), new_data=other))


def test_30_an_application_goes_on_after_it_was_deployed_again():
    ledger = root()
    ingest(ledger, 0, 5)
    again = Ledger.open(ledger.store, clock=Ticks())
    assert ingest(again, 7, 5).data.prev_offset == 4
    with pytest.raises(WindowPassed, match="window 3 of application 'app' comes too late, window 7 is committed"):
        again.append(again.resume().add_data(txn(3), rows(10, 1)))
    assert again.resume().windows == {"app": 7}


# --------------------------------------------------------------------------------------------------- shapes of data, 31 to 43


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
    assert is_well(ledger)


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


def test_35_a_watermark_alone_goes_downstream():
    above, below = root(), derivative()
    ingest(above, 0, 5, watermark=10)
    below_step(below, above, 0, 5)
    ingest(above, 1, 0, watermark=20)
    new = below_step(below, above, 1, 0)
    assert (new.new_offset, new.prev_offset, below.resume().watermark) == (None, 4, 20)
    assert is_well(below)


def test_36_37_what_is_carried():
    ledger = root()
    logs = SourceState(name="logs", kind="etag", value="1")
    ledger.append(ledger.resume().add_data(txn(0), sources=[logs]))
    ingest(ledger, 1, 0, watermark=5)  # a watermark by hand
    assert ledger.resume().sources == {"logs": logs}
    checkpoint = ledger.save_checkpoint(b"buffered")
    ingest(ledger, 2, 0, checkpoint=checkpoint)
    ingest(ledger, 3, 4)
    state = ledger.resume()
    assert (state.sources, state.watermark, state.checkpoint) == ({"logs": logs}, 5, checkpoint)
    assert ledger.read_checkpoint(checkpoint) == b"buffered"
    assert ledger.save_checkpoint(b"buffered") == checkpoint
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
    with pytest.raises(OffsetTooLarge):
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


# ------------------------------------------------------------------------------------------------------ files and versions


def test_files_that_are_not_there_are_not_committed(folder):
    ledger = Ledger.create(folder, dataset_id="d", durable=False)
    ledger.append(SCHEMA)
    with pytest.raises(ObjectMissing, match=r"part-0\.txt is to be committed, and is not there"):
        ingest(ledger, 0, 5)
    with open(f"{folder}/part-0.txt", "w") as file:
        file.write("too short")
    with pytest.raises(ObjectDamaged, match="with 100 bytes, and has 9"):
        ingest(ledger, 0, 5)
    with pytest.raises(ObjectMissing, match="checkpoint"):
        ingest(ledger, 0, 0, checkpoint=Checkpoint(hash=HASH, size=1))
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
    entries[2] = sealed(attrs.evolve(entries[2], format=2))
    ledger = Ledger.open(stored(entries))
    assert ledger.verify().is_clean
    with pytest.raises(NewerLedger, match="format 2"):
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
    with pytest.raises(ValueError, match="new_watermark is 1.5"):
        ledger.append(AddData(txn=txn(0), new_watermark=1.5))
    assert ledger.head().seq == 1
