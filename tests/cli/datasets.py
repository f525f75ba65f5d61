"""Datasets to look at."""

from __future__ import annotations

from pathlib import Path

from dagflow.ledger import (
    DERIVATIVE,
    ROOT,
    Checkpoint,
    Event,
    Ledger,
    LedgerEntry,
    SchemaField,
    SetSchema,
    SetTransform,
    SourceState,
    Txn,
    hash_bytes,
    schema_hash,
)

SCHEMA = SetSchema(schema=(SchemaField(name="value", type="string"),))
MINUTE = 60_000_000


class Dataset:
    """A dataset that is written as an application would: files of lines, a window an entry, a minute a look at the clock."""

    def __init__(self, folder: Path, name: str = "sensors", made_of: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.now = 1_700_000_000.0
        kind = ROOT if made_of is None else DERIVATIVE
        self.ledger = Ledger.create(str(folder), dataset_id=name, dataset_kind=kind, durable=False, clock=self._clock)
        self.append(SCHEMA)
        if made_of is not None:
            self.append(SetTransform(inputs=tuple(made_of), plan_hash="sum per month", spec={"paths": made_of}))
        self.window = 0

    def _clock(self) -> float:
        self.now += 60
        return self.now

    def append(self, event: Event) -> LedgerEntry:
        return self.ledger.append(event)

    def commit(
        self, files: dict[str, str], *, watermark: int | None = None, source: str | None = None, state: bytes | None = None
    ) -> LedgerEntry:
        """One window: files with their lines."""
        before = self.ledger.resume()
        more = {} if state is None else {"checkpoint": Checkpoint(hash=hash_bytes(state), size=len(state))}
        sources = [] if source is None else [SourceState(name="logs", kind="dagflow/window", value=source)]
        event = before.add_data(self._txn(), self._slice(files), watermark=watermark, sources=sources, **more)
        return self.append(event)

    def derive(self, files: dict[str, str], *inputs: Dataset) -> LedgerEntry:
        """One window of a derived dataset: all that is new in its inputs."""
        before = self.ledger.resume()
        slices = [each.ledger.slice_after(before.inputs.get(each.ledger.seed().dataset_id)) for each in inputs]
        return self.append(before.execute_query(self._txn(), slices, self._slice(files)))

    def _txn(self) -> Txn:
        self.window += 1
        return Txn("4a1f0c77d2c94d0a", self.window - 1, "1.a")

    def _slice(self, files: dict[str, str]) -> object:
        found = []
        for name, text in files.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
            found.append((name, text.count("\n"), len(text), hash_bytes(text.encode())))
        return self.ledger.resume().data_slice(found, schema_hash=schema_hash(SCHEMA))


def sensors(folder: Path) -> Dataset:
    """A dataset of five windows."""
    made = Dataset(folder)
    made.commit({"a.txt": "1\n2\n3\n"}, watermark=1_700_000_000_000_000, source="a.txt:6", state=b"one")
    made.commit({"b.txt": "4\n", "sub/c.txt": "5\n6\n"}, source="c.txt:4")
    made.commit({}, watermark=1_700_000_000_000_000 + 90 * MINUTE)
    made.commit({}, source="d.txt:0", state=b"two")
    made.commit({"e.txt": "7\n" * 1000}, source="e.txt:2000", watermark=1_700_000_000_000_000 + 91 * MINUTE)
    return made
