"""Datasets to read, made without an application."""

from __future__ import annotations

import itertools
from pathlib import Path

from dagflow.ledger import Ledger, LedgerEntry, SchemaField, SetSchema, Txn, hash_bytes, schema_hash

SCHEMA = SetSchema(schema=(SchemaField(name="value", type="string"),))


class Dataset:
    """The output folder of an application that is asked to commit this and that."""

    def __init__(self, folder: Path, dataset_id: str | None = None) -> None:
        self.folder = folder
        self.ledger = Ledger.create(str(folder), dataset_id=dataset_id, durable=False)
        if self.ledger.schema_at(0) is None and self.ledger.resume().at is None:
            self.ledger.append(SCHEMA)
        self.numbers = itertools.count(self.ledger.resume().windows.get("maker", -1) + 1)

    @property
    def dataset_id(self) -> str:
        return self.ledger.seed().dataset_id

    def commit(self, *files: list[str], watermark: int | None = None, replaces: bool = False) -> LedgerEntry:
        """One entry; each list is a file of lines."""
        window = next(self.numbers)
        made = []
        for number, lines in enumerate(files):
            data = "".join(f"{line}\n" for line in lines).encode()
            name = f"part-{window:06d}-{number:04d}"
            (self.folder / name).write_bytes(data)
            made.append((name, len(lines), len(data), hash_bytes(data)))
        state = self.ledger.resume()
        new = state.data_slice(made, schema_hash=schema_hash(SCHEMA), replaces=replaces)
        return self.ledger.append(state.add_data(Txn("maker", window, "attempt"), new, watermark=watermark))
