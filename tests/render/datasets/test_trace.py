from __future__ import annotations

import json
from typing import Any

import attrs

from dagflow.errors import WindowForgotten
from dagflow.ledger import (
    FORMAT,
    AddData,
    CarriedNumbers,
    DataFile,
    DataSlice,
    EntryRef,
    ExecuteQuery,
    InputSlice,
    LedgerEntry,
    OffsetInterval,
    Txn,
)
from dagflow.lineage.history import FileOrigin, Item
from dagflow.lineage.trace import SourceRecord, Trace
from dagflow.render.datasets.trace import trace_json, trace_text
from dagflow.render.style import Style, cells
from tests.golden.compare import Golden

TXN = Txn("line_filter-4a1f0c77d2c94d0a", 7, "20261120T081500-ab12cd")


def block(number: int, path: str = "logs/a.txt", size: int = 1 << 20) -> Item:
    value = {"block_id": number, "file_path": path, "start": number * size, "stop": (number + 1) * size}
    return Item("blocks_metadata_input", value)


def made(**more: Any) -> Trace:
    file = DataFile(
        path="part-000007-0003", rows=40_000, size=3_000_000, physical_hash="blake3:ab", interval=OffsetInterval(1_000, 40_999)
    )
    rows = DataSlice(interval=file.interval, files=(file,), schema_hash="sha256:cd")
    entry = LedgerEntry(
        seq=12,
        prev_hash="sha256:00",
        system_time=1_795_000_000_123_456,
        event=AddData(txn=TXN, prev_offset=999, new_data=rows),
        carried=CarriedNumbers(),
        format=FORMAT,
        hash="sha256:ef",
    )
    found = Trace(dataset="out", offset=12_345, entry=entry, file=file, row=11_345, run_folder="out/_dagflow")
    return attrs.evolve(found, **more)


def test_ranges(golden: Golden) -> None:
    items = (block(0), block(1), block(4), block(0, "logs/b.txt"))
    golden("trace_ranges.txt", trace_text(made(written=FileOrigin("writer", "s0-0003", 0), head="reader", items=items)) + "\n")


def test_exactly(golden: Golden) -> None:
    item = block(4)
    source = SourceRecord(item=item, path="/data/logs/a.txt", position=4_200_017, length=20, data="2026-11-20 größe\r\n".encode())
    found = made(written=FileOrigin("writer", "s0-0003", 0), head="reader", items=(item,), source=source)
    golden("trace_exact.txt", trace_text(found) + "\n")
    told = trace_json(found)
    assert json.loads(json.dumps(told)) == told
    assert told["source"]["text"] == "2026-11-20 größe\r\n"
    binary = attrs.evolve(found, source=attrs.evolve(source, data=b"\xff\x00", length=1 << 30))
    assert trace_json(binary)["source"]["text"] is None
    assert r"\xff\x00 … (the first 2 B)" in trace_text(binary)


def test_what_is_not_known_is_not_told() -> None:
    problem = WindowForgotten("out/_dagflow", 7, 9)
    text = trace_text(made(problem=problem))
    assert "read" not in text
    assert "written by" not in text
    assert trace_json(made(problem=problem))["ok"] is False


def test_derived_datasets_name_their_inputs() -> None:
    inputs = (
        InputSlice(dataset_id="sensors", prev_block=EntryRef(3, "a"), new_block=EntryRef(5, "b"), prev_offset=9, new_offset=19),
        InputSlice(dataset_id="fresh", new_block=EntryRef(2, "c"), new_offset=4),
        InputSlice(dataset_id="moved", new_block=EntryRef(2, "c")),
        InputSlice(dataset_id="idle"),
    )
    base = made()
    assert base.entry.data is not None
    event = ExecuteQuery(txn=TXN, inputs=inputs, new_data=base.entry.data.new_data)
    text = trace_text(made(entry=attrs.evolve(base.entry, event=event), inputs=inputs))
    for line in (
        "sensors: rows (9, 19], entries 4 to 5",
        "fresh: rows (start, 4], entries 0 to 2",
        "moved: no rows, entries 0 to 2",
        "idle: nothing new",
    ):
        assert line in text


def test_many_ranges_are_cut_and_lines_fit() -> None:
    items = tuple(block(2 * number) for number in range(100))
    text = trace_text(made(items=items, written=FileOrigin("writer", None, 0)), Style(width=60))
    assert max(cells(line) for line in text.split("\n")) <= 60
    assert "… and 80 ranges more" in text
    assert "writer, in the driver" in text
