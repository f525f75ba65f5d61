"""AbstractLogSplitterInput on a log in memory: what it plans, remembers, refuses and reports."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import DagflowError
from dagflow.testing import OperatorTask
from operators.logs.blocks import OffsetBlock, cut_ranges
from operators.logs.errors import LogUnavailable, OffsetsLost, StartTooFar, TopicMissing, TopicReplaced
from operators.logs.memory import MemoryClient, MemoryLog, MemoryLogInput, MemoryStream

SECOND = 1_000_000
_names = itertools.count()


def new_log(counts: dict[int, int] | None = None, topic: str = "events") -> MemoryLog:
    """Return a log with so many messages in each partition of a topic. Each second has one in each."""
    log = MemoryLog(f"source-{next(_names)}")
    for partition, count in (counts or {}).items():
        log.create(topic, partition + 1)
        fill(log, count, partition, topic)
    return log


def fill(log: MemoryLog, count: int, partition: int = 0, topic: str = "events") -> None:
    log.create(topic, partition + 1)
    for _ in range(count):
        log.append(topic, b"x" * 100, partition=partition, time=log.topics[topic][partition].end * SECOND)


def source(log: MemoryLog, topics: Any = "events", **options: Any) -> MemoryLogInput:
    return MemoryLogInput(log.name, topics, **options)


def planned(operator: MemoryLogInput, states: Any = None, **options: Any) -> tuple[list[OffsetBlock], dict[str, Any]]:
    """Plan one launch with --once. Return its blocks, and the state after it."""
    blocks: list[OffsetBlock] = []
    with OperatorTask(operator, states=states, **options) as task:
        while True:
            task.begin_window()
            while task.emit_tuples() and not task.context.signals.window_closed:
                pass
            blocks += task.end_window()["blocks_metadata_output"]
            task.context.signals.window_closed = False
            if operator.is_exhausted():
                return blocks, task.states()


def offsets(blocks: list[OffsetBlock]) -> list[tuple[str, int]]:
    return sorted((block.name, offset) for block in blocks for offset in range(block.start, block.stop))


@given(st.dictionaries(st.integers(0, 3), st.integers(0, 50), min_size=1), st.integers(1, 20), st.integers(1, 8))
def test_every_offset_is_planned_once(counts: dict[int, int], block_records: int, window_blocks: int) -> None:
    log = new_log(counts)
    blocks, states = planned(source(log, block_records=block_records, window_blocks=window_blocks))
    assert offsets(blocks) == sorted((f"events[{n}]", offset) for n, count in counts.items() for offset in range(count))
    assert [block.block_id for block in blocks] == list(range(len(blocks)))
    before: dict[str, OffsetBlock] = {}
    for block in blocks:  # each follows the one before it in its partition
        last = before.get(block.name)
        assert (block.start, block.previous_block_id) == ((0, -1) if last is None else (last.stop, last.block_id))
        assert block.stop - block.start <= block_records
        before[block.name] = block
    fill(log, 3, partition=min(counts))
    later, _ = planned(source(log, block_records=block_records), states)
    first = min(counts)
    assert offsets(later) == [(f"events[{first}]", counts[first] + n) for n in range(3)]
    assert planned(source(log), planned(source(log), states)[1])[0] == []


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 9)), max_size=5), st.integers(0, 30))
def test_cuts(sizes: list[tuple[int, int]], room: int) -> None:
    unread = {str(n): (7, 7 + size) for n, (size, _) in enumerate(sizes)}
    records = {str(n): each for n, (_, each) in enumerate(sizes)}
    ranges = cut_ranges(unread, records, room)
    needed = sum(-(-size // each) for size, each in sizes)
    assert len(ranges) == min(room, needed)
    for name, (start, _) in unread.items():
        mine = [each for each in ranges if each[0] == name]
        assert [each[1] for each in mine] == [start, *(each[2] for each in mine[:-1])][: len(mine)]


def test_a_window_is_full_and_partitions_take_turns() -> None:
    log = new_log({0: 1000, 1: 20, 2: 20})
    operator = source(log, block_records=10, window_blocks=6)
    with OperatorTask(operator) as task:
        task.emit_tuples()
        assert task.context.signals.window_closed
        blocks = task.end_window()["blocks_metadata_output"]
        assert [block.name for block in blocks] == ["events[0]"] * 2 + ["events[1]"] * 2 + ["events[2]"] * 2
        assert not operator.is_exhausted()
        assert operator.backlog().items == 98
        assert operator.backlog().size == 98_000
        assert operator.position_text(task.states()) == "events[0] < 20, events[1] < 20, events[2] < 20"


def test_blocks_are_bounded_by_bytes_and_there_is_work_for_all() -> None:
    log = new_log({0: 10_000})
    blocks, _ = planned(source(log, block_bytes=150_000), slots=1)
    assert {block.stop - block.start for block in blocks} == {1000}
    assert {block.size for block in blocks} == {100_000}
    fine, _ = planned(source(log, block_bytes=20_000), slots=1)
    assert {block.stop - block.start for block in fine} == {200}


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("earliest", [2, 0]),
        ("latest", []),
        ("1970-01-01T00:00:04Z", [4, 4]),
        (4 * SECOND, [4, 4]),
        ("2026-01-01", []),
        ({"events[0]": 5}, [5, 0]),
    ],
)
def test_where_reading_starts(start: Any, first: list[int]) -> None:
    log = new_log({0: 8, 1: 8})
    log.delete_before("events", 0, 2)
    blocks, states = planned(source(log, start=start, block_records=100))
    assert [block.start for block in blocks] == first
    fill(log, 1)
    assert [block.start for block in planned(source(log, start=start), states)[0]] == [8]


def test_partitions_and_topics_are_found_while_running() -> None:
    log = new_log({0: 2})
    operator = source(log, ["events", "^events-.*"], start="latest")
    with OperatorTask(operator, continuous=True) as task:
        assert task.emit_tuples() == 0
        log.create("events", 2)
        fill(log, 3, partition=1)
        log.create("events-b")
        fill(log, 1, topic="events-b")
        log.create("other")
        assert task.emit_tuples() == 0  # it is not time to look
        task.clock.sleep(0.2)
        assert task.emit_tuples() == 2
        assert offsets(task.emitted["blocks_metadata_output"]) == [("events-b[0]", 0), *(("events[1]", n) for n in range(3))]
        assert not operator.is_exhausted()


def test_a_launch_with_once_ends_at_what_was_there_first() -> None:
    log = new_log({0: 5})
    operator = source(log, block_records=2, window_blocks=1)
    with OperatorTask(operator) as task:
        task.emit_tuples()
        fill(log, 5)
        task.clock.sleep(60)
        for _ in range(2):
            task.end_window()
            task.context.signals.window_closed = False
            task.emit_tuples()
        assert operator.is_exhausted()
        assert [block.stop for block in task.emitted["blocks_metadata_output"]] == [2, 4, 5]


def test_a_continuous_run_waits_for_a_topic_and_reads_it_from_its_first_message_also_with_latest() -> None:
    log = new_log()
    operator = source(log, wait=True, start="latest")
    with OperatorTask(operator, continuous=True) as task:
        assert task.emit_tuples() == 0
        fill(log, 5)
        task.clock.sleep(1)
        assert task.emit_tuples() == 1
        assert offsets(task.emitted["blocks_metadata_output"]) == [("events[0]", n) for n in range(5)]


def test_a_continuous_run_waits_for_partitions_that_have_an_offset_to_start_at() -> None:
    log = new_log()
    operator = source(log, wait=True, start={"events[0]": 2})
    with OperatorTask(operator, continuous=True) as task:
        assert task.emit_tuples() == 0
        fill(log, 5)
        task.clock.sleep(1)
        task.emit_tuples()
        assert offsets(task.emitted["blocks_metadata_output"]) == [("events[0]", n) for n in (2, 3, 4)]


def test_an_offset_to_start_at_that_is_not_there_yet() -> None:
    log = new_log({0: 5})
    with pytest.raises(StartTooFar, match=r"start is offset 17 of events\[0\], which ends before offset 5"):
        planned(source(log, start={"events[0]": 17}))
    assert planned(source(log, start={"events[0]": 5}))[0] == []


def test_a_time_to_start_at_whose_message_is_not_readable_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """An open transaction is not readable, and its messages have times all the same."""
    log = new_log({0: 5})
    monkeypatch.setattr(MemoryClient, "offsets_at", lambda self, partitions, time: [8 for _ in partitions])
    operator = source(log, start="1970-01-01T00:00:08Z")
    with OperatorTask(operator, continuous=True) as task:
        assert task.emit_tuples() == 0
        task.clock.sleep(1)
        assert task.emit_tuples() == 0
        fill(log, 5)
        task.clock.sleep(1)
        task.emit_tuples()
        assert offsets(task.emitted["blocks_metadata_output"]) == [("events[0]", 8), ("events[0]", 9)]


def test_blocks_are_counted_once() -> None:
    log = new_log({0: 5})
    with OperatorTask(source(log, block_records=5), continuous=True) as task:
        for _ in range(3):
            task.emit_tuples()
            fill(log, 5)
            task.clock.sleep(1)
        assert task.context.signals.counters["blocks_planned"] == 3


def test_topics_may_be_added_and_not_removed() -> None:
    log = new_log({0: 3})
    fill(log, 2, topic="clicks")
    states = states_after(log, start="latest")
    assert "topics" not in source(log).state_properties()
    blocks, both = planned(source(log, ["events", "clicks"], start="latest"), states)
    assert offsets(blocks) == [("clicks[0]", 0), ("clicks[0]", 1)]
    assert planned(source(log, ["^ev.*", "clicks"]), both)[0] == []
    with pytest.raises(TopicReplaced, match="`topics` no longer has it"):
        planned(source(log, "clicks"), both)


# What logs do to readers


def states_after(log: MemoryLog, **options: Any) -> Any:
    return planned(source(log, **options))[1]


def test_messages_that_were_deleted_before_they_were_planned_are_an_error() -> None:
    log = new_log({0: 3})
    states = states_after(log)
    fill(log, 7)
    log.delete_before("events", 0, 5)
    with pytest.raises(OffsetsLost, match=r"events\[0\] no longer has the offsets 3 to 4"):
        planned(source(log), states)


def test_or_they_are_skipped_counted_and_reported() -> None:
    log = new_log({0: 3})
    states = states_after(log)
    fill(log, 7)
    log.delete_before("events", 0, 5)
    warned: list[str] = []
    operator = source(log, on_lost="skip")
    with OperatorTask(operator, states=states) as task:
        task.context.services.on_warn = warned.append
        task.emit_tuples()
    assert [(block.start, block.stop) for block in task.emitted["blocks_metadata_output"]] == [(5, 10)]
    assert [(error.file_path, error.position) for error in task.emitted["errors"]] == [("events[0]", 3)]
    assert "offsets 3 to 4" in warned[0]


def test_retention_that_did_not_overtake_is_nothing() -> None:
    log = new_log({0: 3})
    states = states_after(log)
    log.delete_before("events", 0, 3)
    assert planned(source(log), states)[0] == []


def test_a_topic_that_was_created_again() -> None:
    log = new_log({0: 3})
    states = states_after(log)
    log.recreate("events")
    fill(log, 9)
    with pytest.raises(TopicReplaced, match="deleted and created again"):
        planned(source(log), states)


def test_a_topic_that_was_created_again_after_its_mark_was_unknown_once() -> None:
    log = new_log({0: 3})
    mark, log.identities["events"] = log.identities["events"], None  # type: ignore[assignment]  # a server that does not tell it
    states = states_after(log)
    log.identities["events"] = mark
    _, states = planned(source(log), states)
    log.recreate("events")
    fill(log, 9)
    with pytest.raises(TopicReplaced, match="deleted and created again"):
        planned(source(log), states)


def test_a_topic_that_ends_before_what_was_read() -> None:
    log = new_log({0: 3})
    states = states_after(log)
    log.topics["events"][0].end = 2
    with pytest.raises(TopicReplaced, match="read up to offset 2, and ends before offset 2 now"):
        planned(source(log), states)


def test_a_topic_that_is_gone() -> None:
    log = new_log({0: 3})
    states, by_pattern = states_after(log), states_after(log, topics="^ev.*")
    log.topics.clear()
    with pytest.raises(TopicReplaced, match="no longer has it"):
        planned(source(log), states)
    assert planned(source(log, "^ev.*"), by_pattern)[0] == []


@pytest.mark.parametrize(("topics", "named"), [("evnts", "evnts"), ("^x.*", "^x.*"), (["events", "b"], "b")])
def test_a_topic_that_is_not_there(topics: Any, named: str) -> None:
    log = new_log({0: 3})
    operator = source(log, topics)
    with OperatorTask(operator, name="src") as task:
        with pytest.raises(TopicMissing) as raised:
            operator.check_inputs(task.context)
        assert raised.value.topic == named
        with pytest.raises(DagflowError):
            task.emit_tuples()


def test_a_continuous_run_may_wait_for_a_topic() -> None:
    log = new_log()
    operator = source(log, wait=True)
    with OperatorTask(operator, continuous=True) as task:
        operator.check_inputs(task.context)
        assert task.emit_tuples() == 0
        log.create("events")
        fill(log, 1)
        task.clock.sleep(1)
        assert task.emit_tuples() == 1


# Event time


def test_without_event_time_there_is_no_watermark() -> None:
    assert not source(new_log({0: 1})).tells_watermark()


def test_the_watermark_is_that_of_the_slowest_partition() -> None:
    log = new_log({0: 100, 1: 30})
    operator = source(log, block_records=10, window_blocks=4, event_time="timestamp", out_of_orderness="2s")
    watermarks = []
    with OperatorTask(operator) as task:
        assert operator.tells_watermark()
        while not operator.is_exhausted():
            task.emit_tuples()
            watermarks.append(operator.watermark())
            task.end_window()
            task.context.signals.window_closed = False
            task.clock.sleep(10)
    assert watermarks == [17 * SECOND, 27 * SECOND, 27 * SECOND, 67 * SECOND]  # partition 1 is idle after 30 s without messages


def test_event_times_of_a_field_of_values() -> None:
    log = new_log({})
    log.create("events", 2)
    for value in (b'{"at": "1970-01-01T00:00:30Z"}', b'{"at": "1970-01-01T00:00:20Z"}', b"not json", b'{"at": null}'):
        log.append("events", value, time=99 * SECOND)
    log.append("events", b'{"at": 40000000}', partition=1)
    operator = source(log, event_time="value.at", out_of_orderness="5s")
    with OperatorTask(operator) as task:
        task.emit_tuples()
        assert operator.watermark() == 25 * SECOND


def test_messages_without_an_event_time_are_warned_of() -> None:
    log, warnings = new_log({0: 3}), list[str]()
    operator = source(log, event_time="value.at", block_records=1, window_blocks=1)
    with OperatorTask(operator) as task:
        task.context.services.on_warn = warnings.append
        for _ in range(2):
            task.emit_tuples()
            assert operator.watermark() is None
            task.end_window()
    assert [("have no event time (value.at)" in text) for text in warnings] == [True]


@pytest.mark.parametrize(("name", "value"), [("event_time", "at"), ("value_format", "xml")])
def test_event_times_that_cannot_be(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is '{value}', and must be"):
        source(new_log({0: 1}), **{name: value}).check()


def test_an_idle_partition_does_not_hold_the_watermark_back() -> None:
    log = new_log({0: 100, 1: 3, 2: 0})
    operator = source(log, event_time="timestamp", idle_timeout=10.0)
    with OperatorTask(operator, continuous=True) as task:
        task.emit_tuples()
        assert operator.watermark() is None  # of partition 2 no time is known
        for _ in range(2):
            task.clock.sleep(6)
            fill(log, 1)
            task.emit_tuples()
        assert operator.watermark() == (101 - 10) * SECOND
        fill(log, 1, partition=1)
        task.clock.sleep(1)
        task.emit_tuples()
        assert operator.watermark() == 3 * SECOND  # it holds the watermark again (which never goes back)


def test_an_active_partition_that_is_behind_is_not_idle_when_it_is_caught_up() -> None:
    log = MemoryLog(f"source-{next(_names)}")
    operator = source(log, event_time="timestamp", idle_timeout=30.0)
    log.create("events", 2)
    with OperatorTask(operator, continuous=True) as task:
        for second in range(0, 100, 5):
            log.append("events", b"a", partition=0, time=(1000 + second) * SECOND)
            log.append("events", b"b", partition=1, time=(900 + second) * SECOND)
            task.emit_tuples()
            assert operator.watermark() == (900 + second) * SECOND
            task.end_window()
            task.clock.sleep(5)
        log.append("events", b"a", partition=0, time=4_000_000_000 * SECOND)  # from a clock that is wrong
        task.emit_tuples()
        assert operator.watermark() == (900 + 95) * SECOND


def test_with_once_a_partition_without_new_messages_is_idle_at_once() -> None:
    log = new_log({0: 100, 1: 3, 2: 0})
    states = states_after(log)
    fill(log, 100)
    operator = source(log, event_time="timestamp", idle_timeout=10.0)
    with OperatorTask(operator, states=states) as task:
        task.emit_tuples()
        assert operator.watermark() == (199 - 10) * SECOND


def test_before_the_first_look_there_is_no_watermark() -> None:
    log = new_log({0: 100, 1: 3})
    _, states = planned(source(log, event_time="timestamp"))
    fill(log, 50, partition=1)
    operator = source(log, event_time="timestamp")
    with OperatorTask(operator, states=states, continuous=True):
        assert operator.watermark() is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": "yesterday"}, "start is 'yesterday'"),
        ({"block_records": 0}, "block_records is 0"),
        ({"topics": ""}, "topics is empty"),
        ({"topics": ["events", "^("]}, r"topics has the pattern '\^\(', which is not a regular expression"),
        ({"start": {"events[0]": "17"}}, "and must be earliest"),
        ({"start": ["events"]}, "and must be earliest"),
        ({"start": True}, "and must be earliest"),
    ],
)
def test_properties_that_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        source(new_log(), **options).check()


def test_a_log_that_fails_while_a_window_is_planned_doubles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = new_log({0: 10, 1: 10})
    operator = source(log, event_time="timestamp", block_records=5)
    read, fails = MemoryStream.read, [True]

    def failing(self: MemoryStream, stop: int) -> Any:
        if self.partition == 1 and stop == 10 and self.position == 9 and fails and fails.pop():
            raise LogUnavailable(log="memory", doing="reading", reason="test")
        return read(self, stop)

    monkeypatch.setattr(MemoryStream, "read", failing)
    with OperatorTask(operator) as task:
        with pytest.raises(LogUnavailable):
            task.emit_tuples()
        assert task.emitted["blocks_metadata_output"] == []
        task.emit_tuples()
        assert offsets(task.emitted["blocks_metadata_output"]) == [(f"events[{n}]", at) for n in (0, 1) for at in range(10)]


def test_offsets_may_be_far_apart_and_get_further_apart() -> None:
    log = new_log({0: 1})
    operator = source(log)
    with OperatorTask(operator) as task:
        task.emit_tuples()
        for _ in range(200):
            log.skip("events", count=10**12)
            log.append("events", b"x" * 100)
        operator._see()  # as a continuous run does after a while
        operator._plan()
        first, *blocks = task.end_window()["blocks_metadata_output"]
    assert (first.start, first.stop) == (0, 1)
    assert len(blocks) <= 2
    assert (blocks[0].start, blocks[-1].stop) == (1, log.topics["events"][0].end)
    assert sum(block.size for block in blocks) == pytest.approx(200 * 100, rel=0.1)
