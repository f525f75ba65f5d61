from __future__ import annotations

import json
import pickle
from itertools import pairwise
from typing import Any

import attrs
import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import ReaderRecord
from dagflow.errors import OperatorFailed
from dagflow.testing import OperatorTask
from operators import AbstractBlockReader, Entity, ReaderContext

LOG = [json.dumps({"n": n}).encode() for n in range(20)] + [b"", b"not json"]


@attrs.frozen
class Offsets:
    """Messages `start` to `stop` of one topic: a block that is not a part of a file."""

    block_id: int
    start: int
    stop: int
    previous_block_id: int = -1


@attrs.define
class Messages:
    """A log that is read by offset."""

    log: list[bytes]
    is_closed: bool = False

    def message(self, offset: int) -> bytes:
        assert not self.is_closed
        return self.log[offset]

    def close(self) -> None:
        self.is_closed = True


@attrs.define
class MessageContext(ReaderContext):
    """Three methods, nothing else."""

    stream: Any = None
    at: int = 0
    stop: int = 0
    initialized: list[bool] = attrs.field(factory=list)
    closed: int = 0

    def initialize(self, stream: Any, block: Any, consecutive: bool) -> None:
        self.stream, self.at, self.stop = stream, block.start, block.stop
        self.initialized.append(consecutive)

    def next(self) -> Entity | None:
        if self.at >= self.stop:
            return None
        data = self.stream.message(self.at)
        self.at += 1
        return Entity(data, used_bytes=len(data) + 1, position=self.at - 1)

    def close(self) -> None:
        self.closed += 1


@attrs.define
class LogReader(AbstractBlockReader[dict[str, int], Offsets, Messages]):
    reader_context: ReaderContext = attrs.field(factory=MessageContext, kw_only=True)

    def setup_stream(self, block: Offsets) -> Messages:
        stream = Messages(LOG)
        self.opened.append(stream)
        return stream

    def setup(self, context: Any) -> None:
        super().setup(context)
        self.opened: list[Messages] = []

    def convert_to_record(self, data: bytes) -> dict[str, int] | None:
        return json.loads(data) if data else None


@given(st.lists(st.integers(0, 20), max_size=5))
def test_any_cut_of_an_in_memory_log(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), 20]
    blocks = [Offsets(n + 1, start, stop, n or -1) for n, (start, stop) in enumerate(pairwise(bounds))]
    reader = LogReader()
    with OperatorTask(reader) as task:
        task.give("blocks_metadata_input", blocks)
    found = task.emitted["messages"]
    assert [(record.position, record.record) for record in found] == [(n, {"n": n}) for n in range(20)]
    assert all(blocks[record.block_id - 1].start <= record.position < blocks[record.block_id - 1].stop for record in found)
    assert all(type(record) is ReaderRecord for record in found)
    assert task.emitted["blocks_metadata_output"] == blocks
    assert task.counters["blocks"] == len(blocks)
    assert task.counters["records"] == 20
    assert task.counters["bytes"] == sum(len(m) + 1 for m in LOG[:20])
    assert task.counters["streams_opened"] == 1
    assert reader.reader_context.initialized == [False] + [True] * (len(blocks) - 1)  # type: ignore[attr-defined]


def test_a_stream_serves_the_successor_only() -> None:
    reader = LogReader()
    with OperatorTask(reader) as task:
        task.give(
            "blocks_metadata_input",
            [Offsets(1, 0, 2), Offsets(2, 2, 4, 1), Offsets(4, 6, 8, 3), Offsets(3, 4, 6, 2), Offsets(4, 6, 8, 3)],
        )
        assert [stream.is_closed for stream in reader.opened] == [True, True, False]
    assert task.counters["streams_opened"] == 3
    assert [stream.is_closed for stream in reader.opened] == [True, True, True]
    assert reader.reader_context.closed == 1  # type: ignore[attr-defined]


def test_an_empty_block_is_counted_and_passed_on() -> None:
    with OperatorTask(LogReader()) as task:
        task.give("blocks_metadata_input", [Offsets(1, 5, 5)])
    assert task.emitted["messages"] == []
    assert task.emitted["blocks_metadata_output"] == [Offsets(1, 5, 5)]
    assert task.counters["blocks"] == 1


def test_a_block_is_passed_on_after_its_records() -> None:
    reader = LogReader()
    task = OperatorTask(reader)
    order: list[str] = []
    with task:
        task.give("blocks_metadata_input", [Offsets(6, 0, 0)])
        reader.messages.emit_all = lambda records: order.extend(f"record {r.position}" for r in records)  # type: ignore[method-assign]
        reader.blocks_metadata_output.emit = lambda block: order.append(f"block {block.block_id}")  # type: ignore[method-assign]
        task.give("blocks_metadata_input", [Offsets(7, 0, 2)])
    assert order == ["record 0", "record 1", "block 7"]


def test_none_drops_and_is_counted() -> None:
    with OperatorTask(LogReader()) as task:
        task.give("blocks_metadata_input", [Offsets(1, 19, 21)])
    assert [record.record for record in task.emitted["messages"]] == [{"n": 19}]
    assert task.counters["dropped"] == 1
    assert task.counters["records"] == 1
    assert task.counters["bytes"] == len(LOG[19]) + 2


def test_a_record_that_cannot_be_converted_fails_and_its_place_is_known() -> None:
    reader = LogReader()
    with OperatorTask(reader) as task:
        with pytest.raises(OperatorFailed, match="JSONDecodeError"):
            task.give("blocks_metadata_input", [Offsets(1, 0, 22)])
        assert task.context.services.cursor.position == 21
        assert task.emitted["blocks_metadata_output"] == []
        assert reader.opened[0].is_closed
        task.give("blocks_metadata_input", [Offsets(2, 0, 1, 1)])  # no successor of a block that was not read to its end
        assert len(reader.opened) == 2
    assert [record.position for record in task.emitted["messages"]] == [0]


@pytest.mark.parametrize("on_error", ["skip", "route"])
def test_on_error_applies_to_each_record(on_error: str) -> None:
    with OperatorTask(LogReader(on_error=on_error)) as task:  # type: ignore[arg-type]
        task.give("blocks_metadata_input", [Offsets(1, 18, 22), Offsets(2, 0, 1)])
    assert [record.record for record in task.emitted["messages"]] == [{"n": 18}, {"n": 19}, {"n": 0}]
    assert (task.skipped, task.counters["dropped"], task.counters["records"]) == (1, 1, 3)
    errors = task.emitted["errors"]
    assert len(errors) == (on_error == "route")
    if errors:
        assert (errors[0].position, errors[0].record, errors[0].file_path) == (21, "not json", None)
        assert errors[0].error == "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"


def test_an_error_of_the_stream_ends_the_block_and_closes_the_stream() -> None:
    reader = LogReader()
    with OperatorTask(reader) as task:
        with pytest.raises(OperatorFailed, match="IndexError"):
            task.give("blocks_metadata_input", [Offsets(1, 22, 999)])
        assert reader.opened[0].is_closed


def test_no_stream() -> None:
    @attrs.define
    class Lacking(AbstractBlockReader[bytes, Offsets, Messages]):
        pass

    with (
        OperatorTask(Lacking(reader_context=MessageContext())) as task,
        pytest.raises(OperatorFailed, match=r"NotImplementedError: .*override setup_stream"),
    ):
        task.give("blocks_metadata_input", [Offsets(1, 0, 1)])


def test_without_a_conversion_records_are_bytes() -> None:
    @attrs.define
    class Plain(AbstractBlockReader[bytes, Offsets, Messages]):
        def setup_stream(self, block: Offsets) -> Messages:
            return Messages(LOG)

    reader = Plain(reader_context=MessageContext())
    with OperatorTask(reader) as task:
        task.give("blocks_metadata_input", [Offsets(1, 0, 1)])
    assert task.emitted["messages"] == [ReaderRecord(1, 0, LOG[0])]
    assert reader.emitted_forms("messages", "record") == {"record"}


def test_entities_are_passed_on_in_bounded_lists() -> None:
    @attrs.define
    class Many(LogReader):
        def setup_stream(self, block: Offsets) -> Messages:
            return Messages([b"{}"] * 40_000)

    with OperatorTask(Many()) as task:
        task.give("blocks_metadata_input", [Offsets(1, 0, 40_000)])
    assert task.chunks["messages"] == [("records", 16_384), ("records", 16_384), ("records", 7_232)]
    assert [record.position for record in task.emitted["messages"]] == list(range(40_000))


def test_large_entities_are_passed_on_soon() -> None:
    @attrs.define
    class Large(LogReader):
        def setup_stream(self, block: Offsets) -> Messages:
            return Messages([b"{" + b" " * 300_000 + b"}"] * 10)

    with OperatorTask(Large()) as task:
        task.give("blocks_metadata_input", [Offsets(1, 0, 10)])
    assert task.chunks["messages"] == [("records", 4), ("records", 4), ("records", 2)]


def test_time_is_the_readers_own() -> None:
    @attrs.define
    class Slow(LogReader):
        def convert_to_record(self, data: bytes) -> dict[str, int] | None:
            self._loop.context.clock.sleep(0.0004)
            return None

    reader = Slow()
    task = OperatorTask(reader)
    reader.messages.emit_all = lambda records: task.clock.sleep(5)  # type: ignore[method-assign]
    with task:
        task.give("blocks_metadata_input", [Offsets(n, 0, 1) for n in range(10)])
    assert task.counters["time_ms"] == 4  # ten times 0.4


def test_the_weight_of_a_block() -> None:
    assert LogReader().item_weight(Offsets(1, 10, 25)) == 15
    assert LogReader().item_weight(Offsets(1, 10, 10)) == 1
    assert LogReader().item_weight("anything") == 1  # type: ignore[arg-type]
    assert LogReader.partitioner == "self"


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"min_readers": 8, "max_readers": 2}, "min_readers is 8, more than max_readers = 2"),
        ({"min_readers": 0}, "min_readers is 0, but must be at least 1"),
    ],
)
def test_bounds_that_do_not_fit(properties: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        LogReader(**properties).check()  # type: ignore[arg-type]


def test_properties_of_wrong_kinds() -> None:
    with pytest.raises(
        TypeError, match=r"reader_context is the class MessageContext, but must be an instance: MessageContext\(…\)"
    ):
        AbstractBlockReader(reader_context=MessageContext)  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"reader_context is 4, which has no initialize\(\): derive it from operators.ReaderContext"
    ):
        AbstractBlockReader(reader_context=4)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"convert_to_record is MessageContext\(.*\): write reader_context=MessageContext\(…\)"):
        LogReader(MessageContext())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="convert_to_record is 'int': write a function of a record's bytes"):
        LogReader("int")  # type: ignore[arg-type]


def test_it_pickles_after_use_without_what_it_made() -> None:
    reader = LogReader(lambda data: None, max_readers=3)
    with OperatorTask(reader):
        pass
    copy = pickle.loads(cloudpickle.dumps(reader))
    assert copy.max_readers == 3
    assert not hasattr(copy, "_loop")


@attrs.define
class Failing(MessageContext):
    """Fails at the fourth message."""

    def next(self) -> Entity | None:
        if self.at == 3:
            raise OSError("the log ends here")
        return super().next()


def test_what_was_found_before_an_error_is_passed_on() -> None:
    with OperatorTask(LogReader(reader_context=Failing())) as task:
        with pytest.raises(OperatorFailed, match="OSError: the log ends here"):
            task.give("blocks_metadata_input", [Offsets(1, 0, 9)])
        assert [found.record for found in task.emitted["messages"]] == [{"n": 0}, {"n": 1}, {"n": 2}]
        assert task.context.services.cursor.position == 2
