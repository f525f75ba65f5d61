"""AbstractLogScanReader on a log in memory: typed columns of JSON and of decoders, bad and lost messages, steals."""

from __future__ import annotations

import datetime
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, OperatorContext, launch
from dagflow.errors import BadRowFound
from dagflow.model.operator.context import OperatorServices
from dagflow.ranges import OffsetRangeTracker
from dagflow.scan import BadRow
from dagflow.testing import Collector, assert_reader_is_splittable
from dagflow.testing.files import _Shared
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import LogRefused, LogUnavailable, MessageNotReadable, OffsetsLost, TopicReplaced
from operators.logs.memory import MemoryClient, MemoryLog, MemoryLogInput, MemoryLogScanReader, MemoryStream

_names = itertools.count()
NOON = datetime.datetime.fromisoformat("2026-01-31T12:00")
PLACE = {"topic": "events", "partition": 0}


def new_log(*values: Any, batch_messages: int = 3) -> MemoryLog:
    log = MemoryLog(f"typed-{next(_names)}", batch_messages)
    log.create("events")
    for value in values:
        log.append("events", value if value is None or isinstance(value, bytes) else json.dumps(value).encode(), time=5)
    return log


def launched(log: MemoryLog, reader: Any, folder: Path) -> tuple[list[dict[str, Any]], list[BadRow]]:
    rows, bad = Collector[Any](), Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        splitter = MemoryLogInput(log.name, topics="events", block_records=4, window_blocks=2)
        blocks, read = dag.add_operator("splitter", splitter), dag.add_operator("reader", reader)
        dag.add_stream("blocks", blocks.blocks_metadata_output, read.blocks_metadata_input)
        dag.add_stream("rows", read.batches, dag.add_operator("seen", rows).input)
        dag.add_stream("bad", read.errors, dag.add_operator("bad", bad).input)

    launch(populate_dag, runner="local", run_folder=str(folder / "run"), durability="process")
    return [attrs.asdict(row) if attrs.has(type(row)) else dict(row) for row in rows.records], list(bad.records)


def test_members_are_columns_beside_the_place_of_the_message(tmp_path: Path) -> None:
    log = new_log({"page": "/a", "ms": 3}, None, {"page": "/b", "ms": 2.5}, b'{\n "page": "/c"\n}', {"page": "/d", "topic": "x"})
    rows, bad = launched(log, MemoryLogScanReader(log_name=log.name), tmp_path)
    assert rows == [
        {"page": "/a", "ms": 3.0, **PLACE, "offset": 0},
        {"page": "/b", "ms": 2.5, **PLACE, "offset": 2},
        {"page": "/c", "ms": None, **PLACE, "offset": 3},
        {"page": "/d", "ms": None, **PLACE, "offset": 4},
    ]
    assert not bad


@attrs.frozen
class Click:
    page: str
    time: datetime.datetime
    offset: int
    ms: int | None = None


def test_bad_messages_are_routed_with_partition_and_offset(tmp_path: Path) -> None:
    good = [{"page": f"/{n}", "time": "2026-01-31T12:00:00", "ms": n} for n in range(100)]
    poison: dict[int, bytes] = {
        7: b"not json",
        8: b"",
        20: b'{"page": "/x", "time": "soon"}',
        21: b'{"time": "2026-01-31T12:00:00"}',
        22: b"\xff",
        23: b"[1]",
    }
    log = new_log(*(poison.get(n, row) for n, row in enumerate(good)), batch_messages=90)
    reader = MemoryLogScanReader[Click](log_name=log.name, on_bad_row="route")
    rows, bad = launched(log, reader, tmp_path)
    bad.sort(key=lambda row: row.position or 0)
    assert [row["offset"] for row in rows] == [n for n in range(100) if n not in poison]
    assert rows[0] == {"page": "/0", "time": NOON, "offset": 0, "ms": 0}
    assert [(row.file_path, row.position) for row in bad] == [("events[0]", n) for n in poison]
    assert [row.reason.split(":")[0] for row in bad] == [
        "the value is not JSON",
        "the value is not JSON",
        "'soon' is not a valid timestamp[us]",
        "is null, but the column must have a value",
        "byte 0 of the value (0xff) is not UTF-8",
        "the value is a JSON list, but must be an object",
    ]
    assert bad[0].raw == "not json"
    assert json.loads(bad[3].raw) == {"time": "2026-01-31T12:00:00"}


def test_bad_messages_end_the_run_by_default(tmp_path: Path) -> None:
    log = new_log({"a": 1}, b"nothing")
    with pytest.raises(BadRowFound, match=r"events\[0\]"):
        launched(log, MemoryLogScanReader(log_name=log.name), tmp_path)


def decode(value: bytes) -> Mapping[str, Any] | None:
    if value == b"away":
        raise LogUnavailable(log="http://registry", doing="asking", reason="refused")
    if value == b"bad":
        raise MessageNotReadable(reason="it is bad")
    if value == b"bug":
        raise KeyError("page")
    if value == b"numbered":
        return {1: "page"}  # type: ignore[dict-item]
    return None if value == b"none" else {"page": value.decode(), "time": NOON, "offset": -1}


def test_records_of_a_decoder_are_columns(tmp_path: Path) -> None:
    log = new_log(b"/a", b"bad", b"bug", b"none", b"/b", b"numbered")
    reader = MemoryLogScanReader(
        log_name=log.name, value_format=decode, on_bad_row="route", message_columns=["offset", "timestamp"]
    )
    rows, bad = launched(log, reader, tmp_path)
    stamp = datetime.datetime.fromisoformat("1970-01-01T00:00:00.000005")
    assert rows == [{"page": page, "time": NOON, "offset": n, "timestamp": stamp} for page, n in (("/a", 0), ("/b", 4))]
    assert [(row.position, row.reason) for row in bad] == [
        (1, "it is bad"),
        (2, "KeyError: 'page'"),
        (5, "its decoder returned the name 1, which is not text"),
    ]


def test_no_message_is_skipped_because_a_registry_is_away(tmp_path: Path) -> None:
    log = new_log(b"/a", b"away")
    reader = MemoryLogScanReader(
        log_name=log.name, value_format=decode, on_bad_row="drop", schema="page: string", columns=["page"]
    )
    reader.setup(OperatorContext(name="reader"))
    with pytest.raises(LogUnavailable):
        list(reader._scan.read(OffsetBlock(0, "events", 0, 0, 2)))


def test_lost_messages(tmp_path: Path) -> None:
    log = new_log(*({"a": n} for n in range(10)))
    blocks = [OffsetBlock(0, "events", 0, 0, 6), OffsetBlock(1, "events", 0, 6, 10)]
    log.delete_before("events", 0, 4)

    def read(**properties: Any) -> tuple[list[int], dict[str, int]]:
        reader = MemoryLogScanReader(log_name=log.name, columns=["a"], **properties)
        context = OperatorContext(name="reader", agreed=reader.agree(blocks, None, OperatorContext(name="reader")))
        reader.setup(context)
        rows: list[int] = []
        for block in blocks:
            for batch in reader._scan.read(block):
                rows += batch.column("a").to_pylist()
        return rows, dict(context.signals.counters)

    rows, counters = read(on_lost="skip")
    assert rows == [4, 5, 6, 7, 8, 9]
    assert counters["offsets_lost"] == 4
    with pytest.raises(OffsetsLost):
        read()


@pytest.mark.parametrize("first", [None, b"bad"])
@pytest.mark.parametrize("value_format", ["json", decode])
@pytest.mark.parametrize("count", [3, 8])
def test_columns_are_those_of_the_first_messages_that_can_be_read(
    count: int, value_format: Any, first: bytes | None, tmp_path: Path
) -> None:
    """The others are a batch, or the blocks of a window."""
    page: Any = {"page": "/a"} if value_format == "json" else b"/a"
    log = new_log(*[first] * count, page)
    reader = MemoryLogScanReader(log_name=log.name, value_format=value_format, on_bad_row="route")
    rows, bad = launched(log, reader, tmp_path)
    assert [(row["page"], row["offset"]) for row in rows] == [("/a", count)]
    assert len(bad) == (count if first else 0)


def test_the_place_of_a_message_has_its_types_before_any_message_can_be_read(tmp_path: Path) -> None:
    log = new_log(*[b"bad"] * 8, {"page": "/a"})
    reader = MemoryLogScanReader(log_name=log.name, schema="page: string", columns=["page", "offset"], on_bad_row="drop")
    rows, _ = launched(log, reader, tmp_path)
    assert rows == [{"page": "/a", "offset": 8}]


def test_an_exception_of_an_adapter_is_no_fault_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log(*({"a": n} for n in range(10)))

    def failing(stream: MemoryStream, position: int) -> None:
        raise ConnectionResetError("gone")

    class Stolen(MemoryLogScanReader[Any]):
        def tracker_of(self, item: Any) -> Any:
            return OffsetRangeTracker(5, 10)

    reader = Stolen(log_name=log.name, schema="a: int64", columns=["a"])
    reader.setup(OperatorContext(name="reader"))
    monkeypatch.setattr(MemoryStream, "seek", failing)
    with pytest.raises(LogRefused, match="ConnectionResetError: gone"):
        list(reader._scan.read(OffsetBlock(0, "events", 0, 0, 10)))


def test_a_topic_that_was_replaced_is_told_with_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log({"a": 1})

    def replaced(*_: Any) -> None:
        raise TopicReplaced(operator="", partition="events[0]", reason="it was deleted")

    monkeypatch.setattr(MemoryClient, "open", replaced)
    with pytest.raises(TopicReplaced, match="operator 'reader'"):
        MemoryLogScanReader(log_name=log.name).agree([OffsetBlock(0, "events", 0, 0, 1)], None, OperatorContext(name="reader"))


def test_properties() -> None:
    with pytest.raises(ValueError, match="value_format is 'xml'"):
        MemoryLogScanReader(log_name="x", value_format="xml").check()  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="message_columns has where"):
        MemoryLogScanReader(log_name="x", message_columns="where").check()


@pytest.mark.parametrize("value_format", ["json", json.loads])
def test_any_cut_and_any_steal(value_format: Any) -> None:
    log = new_log(*({"n": n} for n in range(25)))
    log.compact("events", 0, {3, 4, 11, 24})
    values = [json.loads(each.value or b"")["n"] for each in log.topics["events"][0].messages]

    def make_reader(path: str, tracker: Any) -> Iterator[tuple[int, bool, Any]]:
        class Tracked(MemoryLogScanReader[Any]):
            def tracker_of(self, item: Any) -> Any:
                return tracker

        reader = Tracked(
            log_name=log.name, value_format=value_format, schema="n: int64, topic: string, partition: int64, offset: int64"
        )
        reader.setup(OperatorContext(name="reader", services=OperatorServices(stealable=_Shared())))
        try:
            for batch in reader._scan.read(OffsetBlock(0, "events", 0, tracker.start_position, tracker.stop_position)):
                for number, row in enumerate(batch.to_pylist()):
                    yield reader.origin_of(number).position or 0, True, row["n"]
        finally:
            reader.teardown()

    assert_reader_is_splittable(make_reader, "events", values, bounds=(0, 25), effort=0.2)


@pytest.mark.parametrize("value_format", ["json", json.loads])
def test_what_is_stolen_while_it_is_asked_for_is_not_loaded(value_format: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the range goes to a thief between a read and the claim of what it brought."""
    log, tracker, read = new_log(*({"n": n} for n in range(10))), OffsetRangeTracker(0, 10), MemoryStream.read

    def robbed(stream: MemoryStream, stop: int) -> Any:
        batch = read(stream, stop)
        if stream.position == 6:
            assert tracker.try_split_at_position(4)
        return batch

    class Tracked(MemoryLogScanReader[Any]):
        def tracker_of(self, item: Any) -> Any:
            return tracker

    monkeypatch.setattr(MemoryStream, "read", robbed)
    reader = Tracked(log_name=log.name, value_format=value_format, schema="n: int64", columns=["n"])
    reader.setup(OperatorContext(name="reader"))
    rows = [row["n"] for batch in reader._scan.read(OffsetBlock(0, "events", 0, 0, 10)) for row in batch.to_pylist()]
    assert rows == [0, 1, 2, 3]


@pytest.mark.parametrize("value_format", ["json", json.loads], ids=["JSON", "a decoder"])
def test_a_message_whose_time_python_cannot_hold_is_a_bad_row(value_format: Any, tmp_path: Path) -> None:
    log = new_log()
    for number in range(8):
        log.append("events", b'{"n": %d}' % number, time=2**60 if number == 5 else number)
    reader: Any = MemoryLogScanReader(
        log_name=log.name, value_format=value_format, message_columns=("timestamp", "offset"), on_bad_row="route"
    )
    rows, bad = launched(log, reader, tmp_path)
    assert [row["n"] for row in rows] == [0, 1, 2, 3, 4, 6, 7]
    [row] = bad
    assert (row.position, row.column) == (5, "timestamp")
    assert f"its time is the timestamp[us] {2**60}" in row.reason
