"""Committed files are read, and no others."""

from __future__ import annotations

import datetime
import os

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dagflow.errors import EntryMissing, LedgerMissing, NoSuchDataset, NoSuchEntry
from dagflow.ledger import Ledger, SchemaField, SetSchema, committed_files, hash_bytes, read_dataset, schema_hash
from dagflow.ledger.tail import entry_name
from tests.ledger.chains import SCHEMA, Ticks, txn


class Writer:
    """Commits files as an application would."""

    def __init__(self, folder, schema=SCHEMA):
        self.folder = folder
        self.ledger = Ledger.create(folder, dataset_id="d", durable=False, clock=Ticks(0))
        self.schema = schema
        self.ledger.append(schema)
        self.window = 0

    def commit(self, *files):
        """Files as (name, rows); they are there already."""
        state = self.ledger.resume()
        found = []
        for name, count in files:
            with open(f"{self.folder}/{name}", "rb") as file:
                content = file.read()
            found.append((name, count, len(content), hash_bytes(content)))
        data = state.data_slice(found, schema_hash=schema_hash(self.schema))
        self.window += 1
        return self.ledger.append(state.add_data(txn(self.window), data, watermark=self.window))

    def text(self, name, text):
        os.makedirs(os.path.dirname(f"{self.folder}/{name}"), exist_ok=True)
        with open(f"{self.folder}/{name}", "wb") as file:
            file.write(text.encode())


def values(dataset):
    return dataset.to_table().column("value").to_pylist()


def test_text(folder):
    writer = Writer(folder)
    writer.text("b.txt", "one\ntwo\r\n\nwith, comma\ta\rb\x00\n")
    writer.text("a.txt", "日本")
    writer.commit(("b.txt", 4), ("a.txt", 1))
    writer.text("sub/c.log", "last\n")
    writer.commit(("sub/c.log", 1))
    writer.text("not committed.txt", "never\n")
    assert values(read_dataset(folder)) == ["one", "two", "", "with, comma\ta\rb\x00", "日本", "last"]
    assert read_dataset(folder).count_rows() == writer.ledger.resume().next_offset
    assert [os.path.basename(path) for path in committed_files(folder)] == ["b.txt", "a.txt", "c.log"]


def test_as_of(folder):
    writer = Writer(folder)
    for name in "abc":
        writer.text(f"{name}.txt", f"{name}\n")
        writer.commit((f"{name}.txt", 1))
        writer.commit()
    assert [len(committed_files(folder, as_of=seq)) for seq in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert values(read_dataset(folder, as_of=4)) == ["a", "b"]
    at = datetime.datetime.fromtimestamp(3, datetime.UTC)  # the clock ticks once an entry
    assert values(read_dataset(folder, as_of=at)) == ["a"]
    with pytest.raises(NoSuchEntry):
        read_dataset(folder, as_of=8)
    with pytest.raises(NoSuchEntry, match="its first is later"):
        read_dataset(folder, as_of=at - datetime.timedelta(hours=1))


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_tables(folder, kind):
    schema = SetSchema(
        schema=(SchemaField(name="n", type="int64", optional=True), SchemaField(name="s", type="string", optional=True))
    )
    writer = Writer(folder, schema)
    tables = [pa.table({"n": [1, 2], "s": ["a", "b,c"]}), pa.table({"n": [3], "s": ["d"]})]
    for number, table in enumerate(tables):
        path = f"{folder}/{number}.{kind}"
        pq.write_table(table, path) if kind == "parquet" else pyarrow.csv.write_csv(table, path)
        writer.commit((f"{number}.{kind}", table.num_rows))
    dataset = read_dataset(folder)
    assert isinstance(dataset, pa.dataset.FileSystemDataset)
    assert dataset.to_table().equals(pa.concat_tables(tables))
    assert dataset.to_table(filter=pa.dataset.field("n") > 2).num_rows == 1


def test_files_of_several_kinds(folder):
    writer = Writer(folder)
    writer.text("a.txt", "a\n")
    pq.write_table(pa.table({"value": ["b", "c"]}), f"{folder}/b.parquet")
    writer.text("c.txt", "d\n")
    writer.commit(("a.txt", 1), ("b.parquet", 2), ("c.txt", 1))
    assert sorted(values(read_dataset(folder))) == ["a", "b", "c", "d"]


def test_no_rows(folder):
    schema = SetSchema(schema=(SchemaField(name="n", type="int64"), SchemaField(name="l", type="list<item: string>")))
    Writer(folder, schema)
    assert read_dataset(folder).to_table().equals(pa.schema([("n", pa.int64()), ("l", pa.list_(pa.string()))]).empty_table())
    assert read_dataset(folder, as_of=0).to_table().num_columns == 0


def test_no_ledger(folder):
    with pytest.raises(NoSuchDataset):
        read_dataset(f"{folder}/nowhere")
    os.makedirs(folder, exist_ok=True)
    with pytest.raises(LedgerMissing, match="has no ledger"):
        read_dataset(folder)


def test_a_damaged_ledger_is_not_read_as_a_shorter_one(folder):
    writer = Writer(folder)
    for name in "abc":
        writer.text(f"{name}.txt", f"{name}\n")
        writer.commit((f"{name}.txt", 1))
    os.unlink(f"{folder}/_dagflow/{entry_name(3)}")
    with pytest.raises(EntryMissing):
        read_dataset(folder)
