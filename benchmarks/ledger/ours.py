"""Our side: ledgers of any length, and what is asked of them."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

from benchmarks.ledger.log import FILE, ROWS, Read, data_file
from dagflow.ledger import (
    FORMAT,
    CarriedNumbers,
    DataFile,
    DataSlice,
    Event,
    Ledger,
    LedgerEntry,
    OffsetInterval,
    ResumeState,
    SchemaField,
    SetSchema,
    Txn,
    encode_entry,
    hash_bytes,
    schema_hash,
)
from dagflow.storage import LocalStore
from dagflow.testing.stores import CountingStore

SCHEMA = SetSchema(schema=(SchemaField(name="value", type="string"),))
APP = "benchmark"
BY_LIBRARY = 10


class OurLog:
    """The ledger of a dataset. `durable`: a commit survives a power cut."""

    def __init__(self, folder: Path, durable: bool) -> None:
        self.folder = str(folder)
        self.durable = durable
        self.commits = 0
        folder.mkdir(parents=True)

    @property
    def name(self) -> str:
        return f"dagflow, durable={self.durable}"

    def build(self, commits: int) -> None:
        """So many commits: the first and the last few by `append`, those between by the bytes that `append` would write."""
        ledger = Ledger.create(self.folder, dataset_id=APP, durable=False)
        ledger.append(SCHEMA)
        self._append(ledger, min(commits, BY_LIBRARY))
        between = commits - self.commits - BY_LIBRARY
        if between > 0:
            self._write(ledger, between)
        self._append(Ledger.open(self.folder, durable=False), commits - self.commits)

    def _write(self, ledger: Ledger, count: int) -> None:
        entry = ledger.refresh()
        assert entry is not None
        carried, last, previous = entry.carried, entry.hash, ledger.resume().last_offset
        for seq in range(entry.seq + 1, entry.seq + 1 + count):
            new = _slice(ResumeState(last_offset=previous), self.commits)
            event = ResumeState(last_offset=previous).add_data(_txn(self.commits), new)
            carried, previous = carried.after(seq, event), event.last_offset
            stored = encode_entry(_entry(seq, last, entry.system_time, event, carried))
            last = hash_bytes(stored.partition(b"\n")[0] + b"\n")
            path = Path(self.folder, "_dagflow", "ledger", f"{seq // 1000:09d}", f"{seq:012d}.json")
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(stored)
            self.commits += 1

    def _append(self, ledger: Ledger, count: int) -> list[float]:
        taken = []
        for window in range(self.commits, self.commits + count):
            data_file(Path(self.folder), window)
            began = perf_counter()
            state = ledger.resume()
            ledger.append(state.add_data(_txn(window), _slice(state, window)))
            taken.append(perf_counter() - began)
        self.commits += count
        return taken

    def append(self, count: int) -> list[float]:
        """The seconds of each of so many commits by one writer, that of looking where the chain stands in it."""
        ledger = Ledger.open(self.folder, durable=self.durable)
        ledger.resume()
        return self._append(ledger, count)

    def resume(self) -> object:
        """Return the newest committed window, knowing only the folder."""
        return Ledger.open(self.folder, durable=self.durable).resume().windows[APP]

    def read(self) -> Read:
        """Return the reads of a resume."""
        store = CountingStore(LocalStore(f"{self.folder}/_dagflow", self.durable))
        Ledger(store).resume()
        size = sum(len(store.inner.read(name) or b"") for call, name in store.calls if call == "read")
        return Read(store.counts["read"], store.counts["names"], size)


def _txn(window: int) -> Txn:
    return Txn(APP, window, "attempt")


def _slice(state: ResumeState, window: int) -> DataSlice:
    interval = OffsetInterval(state.next_offset, state.next_offset + ROWS - 1)
    name = FILE.format(window)
    file = DataFile(path=name, rows=ROWS, size=ROWS, physical_hash=hash_bytes(name.encode()), interval=interval)
    return DataSlice(interval=interval, files=(file,), schema_hash=schema_hash(SCHEMA))


def _entry(seq: int, last: str, now: int, event: Event, carried: CarriedNumbers) -> LedgerEntry:
    return LedgerEntry(seq=seq, prev_hash=last, system_time=now, event=event, carried=carried, format=FORMAT)
