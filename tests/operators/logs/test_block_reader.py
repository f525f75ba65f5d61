"""AbstractLogReader on a log in memory: cuts, gaps, steals, poisoned and lost messages."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.testing import OperatorTask, assert_reader_is_splittable
from dagflow.testing.readers import reader_of
from operators.logs.blocks import OffsetBlock
from operators.logs.errors import LogRefused, MessageNotReadable, OffsetsLost, TopicReplaced
from operators.logs.memory import MemoryClient, MemoryLog, MemoryLogReader, MemoryStream

_names = itertools.count()


def new_log(batch_messages: int = 7) -> MemoryLog:
    return MemoryLog(f"log-{next(_names)}", batch_messages)


def log_with_gaps(gaps: Sequence[int], batch_messages: int = 7) -> MemoryLog:
    """Return a log with a message before each gap of so many offsets; values are the offsets."""
    log = new_log(batch_messages)
    log.create("events")
    for gap in gaps:
        log.append("events", b"%d" % log.topics["events"][0].end)
        log.skip("events", count=gap)
    return log


def blocks_of(bounds: Sequence[int], topic: str = "events") -> list[OffsetBlock]:
    return [OffsetBlock(n, topic, 0, start, stop, n - 1) for n, (start, stop) in enumerate(pairwise(bounds))]


def read(reader: MemoryLogReader[Any], blocks: Sequence[OffsetBlock], in_batches: bool = False) -> OperatorTask:
    with OperatorTask(reader, in_batches=in_batches) as task:
        task.give("blocks_metadata_input", blocks)
    return task


@pytest.mark.parametrize("in_batches", [False, True])
def test_any_cut_and_any_steal(in_batches: bool) -> None:
    log = log_with_gaps([0, 0, 3, 0, 1, 0, 0, 12, 0, 0, 0, 2, 0, 5] * 3)
    messages = log.topics["events"][0]

    def block_of(path: str, start: int, stop: int) -> OffsetBlock:
        return OffsetBlock(0, "events", 0, start, stop)

    assert_reader_is_splittable(
        reader_of(MemoryLogReader(log_name=log.name), block_of=block_of, in_batches=in_batches),
        "events",
        [each.value for each in messages.messages],
        bounds=(0, messages.end),
        effort=0.5,
    )


@given(st.lists(st.integers(0, 3), max_size=30), st.data())
def test_each_message_comes_once(gaps: list[int], data: st.DataObject) -> None:
    log = log_with_gaps(gaps, batch_messages=data.draw(st.integers(1, 9)))
    end = log.topics["events"][0].end
    cuts = data.draw(st.lists(st.integers(0, end), max_size=6))
    blocks = blocks_of([0, *sorted(cuts), end])
    task = read(MemoryLogReader(log_name=log.name), blocks, in_batches=data.draw(st.booleans()))
    offsets = [each.offset for each in log.topics["events"][0].messages]
    assert [(each.position, each.record) for each in task.emitted["messages"]] == [(n, b"%d" % n) for n in offsets]
    assert [each.offset for each in task.emitted["batches"]] == offsets
    assert task.counters.get("records", 0) == len(offsets)
    assert task.counters["blocks"] == len(blocks)
    assert task.counters["streams_opened"] == 1
    assert log.connections == 1


def test_all_columns() -> None:
    log = new_log()
    log.append("events", b"a", key=b"k", partition=2, time=1_700_000_000_123_456, headers=[("one", b"1"), ("two", None)])
    log.append("events", None, partition=2)
    task = read(MemoryLogReader(log_name=log.name), [OffsetBlock(0, "events", 2, 0, 2)], in_batches=True)
    first, second = task.emitted["batches"]
    assert (first.key, first.value, first.topic, first.partition, first.offset) == (b"k", b"a", "events", 2, 0)
    assert first.timestamp.isoformat() == "2023-11-14T22:13:20.123456"
    assert [(each.name, each.value) for each in first.headers] == [("one", b"1"), ("two", None)]
    assert (second.key, second.value, second.timestamp, second.headers) == (None, None, None, [])


@pytest.mark.parametrize("convert", [None, bytes.decode])
def test_a_message_without_a_value_is_dropped_from_messages(convert: Any) -> None:
    log = new_log()
    for value in (b"a", None, b"c", None):
        log.append("events", value)
    task = read(MemoryLogReader(convert, log_name=log.name), blocks_of([0, 4]), in_batches=convert is None)
    assert [each.position for each in task.emitted["messages"]] == [0, 2]
    assert len(task.emitted["batches"]) == 4
    assert task.counters["dropped"] == 2


def test_a_poisoned_message_is_routed_with_its_topic_partition_and_offset() -> None:
    log = new_log()
    for value in (b"{}", b"no json", b"[]"):
        log.append("events", value, partition=3)
    reader: MemoryLogReader[Any] = MemoryLogReader(json.loads, log_name=log.name, on_error="route")
    task = read(reader, [OffsetBlock(0, "events", 3, 0, 3)])
    assert [each.record for each in task.emitted["messages"]] == [{}, []]
    [error] = task.emitted["errors"]
    assert (error.file_path, error.position, error.record) == ("events[3]", 1, "no json")


def test_blocks_of_other_partitions_share_the_connection() -> None:
    log = new_log()
    for number in range(3):
        log.append("events", b"%d" % number, partition=number)
    task = read(MemoryLogReader(log_name=log.name), [OffsetBlock(n, "events", n, 0, 1) for n in range(3)])
    assert [each.record for each in task.emitted["messages"]] == [b"0", b"1", b"2"]
    assert (task.counters["streams_opened"], log.connections) == (3, 1)


def test_messages_that_were_deleted_after_the_plan_are_an_error() -> None:
    log = log_with_gaps([0] * 10)
    log.delete_before("events", 0, 4)
    with pytest.raises(OffsetsLost, match=r"events\[0\] no longer has the offsets 2 to 3") as raised:
        read(MemoryLogReader(log_name=log.name), blocks_of([2, 8]))
    assert (raised.value.start, raised.value.stop) == (2, 4)


def test_or_they_are_skipped_and_reported() -> None:
    log = log_with_gaps([0] * 10)
    log.delete_before("events", 0, 4)
    task = read(MemoryLogReader(log_name=log.name, on_lost="skip", on_error="route"), blocks_of([0, 2, 8]))
    assert [each.position for each in task.emitted["messages"]] == [4, 5, 6, 7]
    assert task.counters["offsets_lost"] == 4
    assert [(each.file_path, each.position) for each in task.emitted["errors"]] == [("events[0]", 0), ("events[0]", 2)]


@pytest.mark.parametrize("on_error", ["fail", "skip", "route"])
@pytest.mark.parametrize(("owner", "method"), [(MemoryClient, "open"), (MemoryStream, "read"), (MemoryStream, "seek")])
def test_no_block_is_skipped_because_a_client_fails(
    owner: type, method: str, on_error: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise ValueError("no such setting")

    log = log_with_gaps([0] * 10)
    log.delete_before("events", 0, 4)
    monkeypatch.setattr(owner, method, fail)
    reader: MemoryLogReader[bytes] = MemoryLogReader(log_name=log.name, on_error=on_error, on_lost="skip")
    with pytest.raises(LogRefused, match=r"memory://.* events\[0\]: ValueError: no such setting"):
        read(reader, blocks_of([2, 8]))


def test_a_topic_that_was_replaced_is_told_with_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise TopicReplaced(operator="", partition="events[0]", reason="it was created again")

    monkeypatch.setattr(MemoryClient, "open", fail)
    with pytest.raises(TopicReplaced) as raised:
        read(MemoryLogReader(log_name=new_log().name, on_error="skip"), blocks_of([0, 1]))
    assert raised.value.operator


def test_a_message_is_found_again_by_its_offset() -> None:
    log = log_with_gaps([0, 2, 0, 1, 0])
    reader: MemoryLogReader[bytes] = MemoryLogReader(log_name=log.name)
    with OperatorTask(reader):
        assert reader.record_at(OffsetBlock(0, "events", 0, 0, 8), 4) == b"4"
        assert reader.record_at(OffsetBlock(0, "events", 0, 0, 8), 2) is None


def test_batches_are_made_without_pandas_which_takes_long_to_import() -> None:
    program = """
import sys
from operators.logs.messages import message_batch
message_batch("t", 0, [1, 2], [b"a", None], keys=[None, None], times=[1, 2])
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("on_error", ["skip", "route"])
def test_a_message_whose_time_python_cannot_hold_costs_itself(on_error: str) -> None:
    log = new_log()
    for number in range(10):
        log.append("events", b"%d" % number, time=1_700_000_000_000 * (10**6 if number == 4 else 1))
    task = read(MemoryLogReader(log_name=log.name, on_error=on_error), blocks_of([0, 10]), in_batches=True)
    assert [each.offset for each in task.emitted["batches"]] == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    assert len(task.emitted["messages"]) == 10  # values alone, which are good
    assert task.skipped == 1
    if on_error == "route":
        [error] = task.emitted["errors"]
        assert (error.file_path, error.position, error.record) == ("events[0]", 4, "4")
    with pytest.raises(MessageNotReadable, match=r"at offset 4 of events\[0\], its time is .* outside of the years"):
        read(MemoryLogReader(log_name=log.name), blocks_of([0, 10]), in_batches=True)
