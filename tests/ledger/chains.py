"""Ledgers to test with."""

from __future__ import annotations

from collections.abc import Iterable

from dagflow.ledger import (
    DERIVATIVE,
    AddData,
    CarriedNumbers,
    DataFile,
    DataSlice,
    Event,
    Ledger,
    LedgerEntry,
    OffsetInterval,
    SchemaField,
    Seed,
    SetSchema,
    SetTransform,
    Txn,
    encode_entry,
    fold,
    hash_bytes,
    resume,
    schema_hash,
)
from dagflow.ledger.codec import decode_entry, format_of
from dagflow.ledger.tail import entry_name
from dagflow.storage import MemoryStore, Store

SCHEMA = SetSchema(schema=(SchemaField(name="value", type="string"),))
HASH = hash_bytes(b"rows")


class Ticks:
    """A clock: a second a look."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        self.now += 1
        return self.now


def txn(window: int, app: str = "app", attempt: str | None = None) -> Txn:
    return Txn(app, window, attempt or f"attempt-{window}")


def rows(start: int, count: int, *, path: str | None = None, schema: SetSchema = SCHEMA) -> DataSlice:
    interval = OffsetInterval(start, start + count - 1)
    file = DataFile(path=path or f"part-{start}.txt", rows=count, size=100, physical_hash=HASH, interval=interval)
    return DataSlice(interval=interval, files=(file,), schema_hash=schema_hash(schema), logical_hash=HASH)


def root(store: Store | None = None, *, schema: bool = True, clock: Ticks | None = None) -> Ledger:
    ledger = Ledger.open(MemoryStore() if store is None else store, clock=clock or Ticks())
    ledger.append(Seed(dataset_id="d"))
    if schema:
        ledger.append(SCHEMA)
    return ledger


def derivative(store: Store | None = None, inputs: tuple[str, ...] = ("d",)) -> Ledger:
    ledger = Ledger.open(MemoryStore() if store is None else store, clock=Ticks())
    ledger.append(Seed(dataset_id="e", dataset_kind=DERIVATIVE))
    ledger.append(SCHEMA)
    ledger.append(SetTransform(inputs=inputs, plan_hash="p"))
    return ledger


def ingest(ledger: Ledger, window: int, count: int, watermark: int | None = None, **more: object) -> LedgerEntry:
    state = ledger.resume()
    new = rows(state.next_offset, count) if count else None
    return ledger.append(state.add_data(txn(window), new, watermark=watermark, **more))  # type: ignore[arg-type]


def chained(events: Iterable[Event]) -> list[LedgerEntry]:
    """Entries of events, linked and numbered rightly, whatever rules the events break."""
    made: list[LedgerEntry] = []
    carried = CarriedNumbers()
    for seq, event in enumerate(events):
        carried = carried.after(seq, event)
        entry = LedgerEntry(
            seq=seq,
            prev_hash=made[-1].hash if made else None,
            system_time=seq,
            event=event,
            carried=carried,
            format=format_of(event, carried),
        )
        made.append(sealed(entry))
    return made


def sealed(entry: LedgerEntry) -> LedgerEntry:
    """The entry with its hash."""
    return decode_entry(encode_entry(entry), entry.seq)


def stored(entries: Iterable[LedgerEntry], store: Store | None = None) -> Store:
    """A store that holds entries, whatever rules they break."""
    store = MemoryStore() if store is None else store
    for seq, entry in enumerate(entries):
        assert store.create(entry_name(seq), encode_entry(entry))
    return store


def overwrite(store: Store, name: str, data: bytes) -> None:
    """Overwrite an object: a store does not offer that, but damage does it."""
    store.discard(name)
    assert store.create(name, data)


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


class MadeUpStore(MemoryStore):
    """A ledger of any length that is made up when it is read: only `data_at` carry data, the others a watermark.

    Each entry's link points nowhere (computing a million hashes takes long); all else is as rules want it.
    """

    def __init__(self, length: int, data_at: Iterable[int], settings_at: Iterable[int] = ()) -> None:
        super().__init__()
        self.length = length
        self.data_at = sorted(data_at)
        self.schemas_at = sorted({1, *settings_at})
        self.reads: list[str] = []

    def entry(self, seq: int) -> LedgerEntry:
        before = [at for at in self.data_at if at <= seq]
        last = 10 * len(before) - 1
        event: Event
        if seq == 0:
            event = Seed(dataset_id="d")
        elif seq in self.schemas_at:
            event = self.schema(seq)
        elif seq in self.data_at:
            event = AddData(
                txn=txn(seq), prev_offset=last - 10 if last > 9 else None, new_data=rows(last - 9, 10), new_watermark=seq
            )
        else:
            event = AddData(txn=txn(seq), prev_offset=last if before else None, new_watermark=seq)
        is_data = isinstance(event, AddData)
        data = seq if is_data else next((at for at in range(seq, 0, -1) if at not in self.schemas_at), None)
        schemas = [at for at in self.schemas_at if at <= seq]
        return LedgerEntry(
            seq=seq,
            prev_hash=HASH if seq else None,
            system_time=seq,
            event=event,
            format=1,
            carried=CarriedNumbers(
                schema=schemas[-1] if schemas else None,
                data=data,
                rows=before[-1] if before else None,
                windows={} if data is None else {"app": data},
                kinds=tuple(sorted({"Seed", *(["SetSchema"] if schemas else []), *(["AddData"] if data is not None else [])})),
            ),
        )

    def schema(self, seq: int) -> SetSchema:
        if seq == 1:
            return SCHEMA
        return SetSchema(schema=(*SCHEMA.schema, SchemaField(name=f"added at {seq}", type="int64", optional=True)))

    def read(self, name: str) -> bytes | None:
        self.reads.append(name)
        kind, _, rest = name.partition("/")
        if kind == "ledger":
            seq = int(rest.partition("/")[2].partition(".")[0])
            if seq < self.length:
                return encode_entry(self.entry(seq))
        return super().read(name)

    def names(self, prefix: str = "") -> list[str]:
        if prefix.startswith("ledger/") and prefix != "ledger/":
            shard = int(prefix.split("/")[1])
            numbers = range(shard * 1000, min(shard * 1000 + 1000, self.length))
            return sorted({entry_name(seq) for seq in numbers} | set(super().names(prefix)))
        return super().names(prefix)
