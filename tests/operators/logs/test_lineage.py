"""A row of an output leads to topic, partition and offset; past windows are read again."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, launch
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator
from dagflow.render.datasets.trace import trace_text
from operators import Map, ParquetWriter, RecordWriter
from operators.logs.memory import MemoryLog, MemoryLogInput, MemoryLogReader, MemoryLogScanReader
from tests.lineage.traced import exactly

_names = itertools.count()
TRUSTED = ApplicationLocator(trust=True)


@attrs.define
class Copy:
    log: str
    port: str
    output: str


def copying(dag: DAG, conf: Copy) -> None:
    """An application with a name, which a trace can load again."""
    blocks = dag.add_operator("splitter", MemoryLogInput(conf.log, "events", block_records=5, window_blocks=3))
    kind = MemoryLogScanReader if conf.port == "columns" else MemoryLogReader
    reader: Any = dag.add_operator("reader", kind(log_name=conf.log))
    dag.add_stream("blocks", blocks.blocks_metadata_output, reader.blocks_metadata_input)
    if conf.port != "messages":
        dag.add_stream("read", reader.batches, dag.add_operator("out", ParquetWriter(conf.output)).input)
    else:
        texts = dag.add_operator("texts", Map(text_of))
        dag.add_stream("read", reader.messages, texts.input)
        dag.add_stream("written", texts.output, dag.add_operator("out", RecordWriter(conf.output)).input)


def text_of(record: Any) -> str:
    text: str = record.record.decode()
    return text


def copied(log: str, folder: Path, port: str) -> None:
    settings = {"log": log, "port": port, "output": str(folder / "out")}
    launch(copying, settings, runner="local", durability="process").wait()


@pytest.mark.parametrize("port", ["batches", "messages", "columns"])
def test_each_row_leads_to_its_message(port: str, tmp_path: Path) -> None:
    log = MemoryLog(f"lineage-{next(_names)}", batch_messages=4)
    for number in range(20):
        log.append("events", b'{"message": %d}' % number, partition=number % 2)
        log.skip("events", partition=number % 2, count=number % 3)
    copied(log.name, tmp_path, port)
    expected = {(n, each.offset): each.value for n, there in log.topics["events"].items() for each in there.messages}
    found = {}
    for row in range(20):
        traced = exactly(tmp_path / "out", row)
        assert traced.source is not None
        [item] = traced.items
        found[item.value["partition"], traced.source.position] = traced.source.data
        text = trace_text(traced)
        assert f"events[{item.value['partition']}], offset {traced.source.position}" in text
        assert traced.source.data.decode() in text
    assert found == expected
    assert replay(str(tmp_path / "out"), locator=TRUSTED).rows == 20


def test_messages_that_are_gone_cannot_be_read_again(tmp_path: Path) -> None:
    log = MemoryLog(f"lineage-{next(_names)}")
    for number in range(5):
        log.append("events", b"%d" % number)
    copied(log.name, tmp_path, "batches")
    log.delete_before("events", 0, 3)
    report = replay(str(tmp_path / "out"), locator=TRUSTED)
    assert "no longer has the offsets 0 to 2" in str(report)
