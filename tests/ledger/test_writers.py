"""Several writers: one wins, the others are told, nothing is lost or doubled. Numbers are those of the fault cases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

from dagflow.errors import HeadMoved, WindowConflict, WindowPassed
from dagflow.ledger import (
    AddData,
    Ledger,
    SetSource,
    SourceState,
)
from dagflow.storage import LocalStore, MemoryStore
from tests.ledger.chains import (
    Ticks,
    ingest,
    is_well,
    root,
    rows,
    rows_of,
    txn,
)


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
    assert (caught.value.field, caught.value.seq) == ("new_data.interval.rows", 2)
    other = attrs.evolve(rows(0, 5, path="b"), logical_hash="sha256:other")
    with pytest.raises(WindowConflict):
        ledger.append(AddData(txn=txn(0, attempt="b"), new_data=other))


def test_29_two_pipelines_that_add_no_rows():
    ledger = root()
    ingest(ledger, 0, 0, watermark=1)
    with pytest.raises(WindowConflict, match="new_watermark is"):
        ledger.append(AddData(txn=txn(0, attempt="b"), new_watermark=2))


def test_a_window_that_is_made_anew_from_a_later_state():
    ledger = root()
    first = ingest(ledger, 0, 5, watermark=1)
    ingest(ledger, 1, 0, watermark=7)
    assert ingest(ledger, 0, 5) == first
    with pytest.raises(WindowConflict):
        ingest(ledger, 0, 4)


def test_30_an_application_goes_on_after_it_was_deployed_again():
    ledger = root()
    ingest(ledger, 0, 5)
    again = Ledger.open(ledger.store, clock=Ticks())
    assert ingest(again, 7, 5).data.prev_offset == 4
    with pytest.raises(WindowPassed, match="window 3 of application 'app' comes too late: window 7 is already committed"):
        again.append(again.resume().add_data(txn(3), rows(10, 1)))
    assert again.resume().windows == {"app": 7}
