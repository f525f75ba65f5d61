"""The partitioner that follows the backlog: what it adds up, when it decides, and that its bounds hold always."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.scaling import (
    UNASSIGNED,
    Backlog,
    BacklogPartitioner,
    Load,
    OperatorStats,
    Partition,
    Partitioner,
    PartitioningContext,
    Response,
    StatsListener,
)
from dagflow.scaling.errors import PolicyFailed
from dagflow.testing import FakeClock
from operators import BlockReader


def following(clock: FakeClock, slots: int | None = None, **properties: object) -> BacklogPartitioner:
    made = BacklogPartitioner(**properties)  # type: ignore[arg-type]
    made.define_partitions([Partition("reader")], PartitioningContext(clock=clock, slots=slots))
    return made


def defined(partitioner: Partitioner, before: int = 1) -> int:
    return len(partitioner.define_partitions([Partition("reader")] * before, PartitioningContext()))


def test_readers_are_both() -> None:
    for each in (BlockReader(), BacklogPartitioner()):
        assert isinstance(each, Partitioner)
        assert isinstance(each, StatsListener)


def test_the_first_stats_are_looked_at_at_once_and_the_next_after_an_interval() -> None:
    clock = FakeClock()
    readers = following(clock, interval_millis=500)
    assert readers.process_stats(OperatorStats(2, 10)) == Response(True, 10, Backlog(10))
    assert readers.process_stats(OperatorStats(2, 16)) == Response(False, 10, Backlog(16))
    clock.advance(0.499)
    assert not readers.process_stats(OperatorStats(2, 16)).repartition_required
    clock.advance(0.002)
    assert readers.process_stats(OperatorStats(2, 16)) == Response(True, 16, Backlog(16))
    clock.advance(0.5)
    assert readers.process_stats(OperatorStats(2, 10)) == Response(False, 16, Backlog(10)), "hysteresis"
    clock.advance(0.5)
    assert readers.process_stats(OperatorStats(2, 3)) == Response(True, 3, Backlog(3))


def test_the_original_s_policy_as_its_test_has_it() -> None:
    clock = FakeClock()
    readers = following(clock, interval_millis=500, policy="power_of_two")
    first = readers.process_stats(OperatorStats(2, 10))
    assert (first.repartition_required, first.partitions) == (True, 8)
    clock.advance(0.5)
    second = readers.process_stats(OperatorStats(2, 10))
    assert (second.repartition_required, second.partitions) == (False, 8)
    assert defined(readers) == 8


def test_the_backlog_is_that_of_all_partitions_as_they_have_told_last() -> None:
    clock = FakeClock()
    readers = following(clock, max_readers=100)
    readers.process_stats(OperatorStats(0, 3, 30))
    readers.process_stats(OperatorStats(1, 9, 90))
    readers.process_stats(OperatorStats(1, 4, 40))
    clock.advance(60)
    found = readers.process_stats(OperatorStats(UNASSIGNED, 5, 50))
    assert found == Response(True, 12, Backlog(12, 120)), "who has not told anything since counts with what he told"
    all_at_once = [OperatorStats(0, 1, 10), OperatorStats(1, 1, 10)]
    assert readers.process_stats(all_at_once).backlog == Backlog(2, 20), "and these are all there are"


def test_what_partitions_that_are_gone_have_told_is_forgotten() -> None:
    clock = FakeClock()
    readers = following(clock)
    readers.process_stats(OperatorStats(0, 10))
    partitions = readers.define_partitions([Partition("reader")], PartitioningContext(clock=clock))
    assert len(partitions) == 10
    assert readers.process_stats(OperatorStats(7, 1)).backlog == Backlog(1)


def test_static_where_stats_are_not_collected() -> None:
    clock = FakeClock()
    readers = following(clock, min_readers=3, collect_stats=False)
    assert readers.process_stats(OperatorStats(0, 1_000)) == Response(False, 3, Backlog(1_000))
    assert [defined(readers, before) for before in (1, 3, 8)] == [3, 3, 3]


@pytest.mark.parametrize(("before", "count"), [(1, 4), (4, 4), (6, 6), (8, 8), (20, 8)])
def test_before_any_stats_there_are_as_many_as_there_were_between_the_bounds(before: int, count: int) -> None:
    assert defined(BacklogPartitioner(4, 8), before) == count


@attrs.frozen
class Wild:
    """Says whatever comes next."""

    answers: list[int]
    name: str = "wild"

    def readers(self, load: Load) -> int:
        return self.answers.pop(0)


@given(
    answers=st.lists(st.integers(-5, 500), min_size=1, max_size=20),
    low=st.integers(1, 20),
    more=st.integers(0, 30),
    slots=st.none() | st.integers(1, 8),
)
def test_the_bounds_hold_whatever_a_policy_says(answers: list[int], low: int, more: int, slots: int | None) -> None:
    clock = FakeClock()
    readers = following(clock, slots=slots, min_readers=low, max_readers=low + more, policy=Wild(list(answers)))
    partitions = readers.define_partitions([Partition("reader")], PartitioningContext(clock=clock, slots=slots))
    assert len(partitions) == low
    for answer in answers:
        clock.advance(10)
        if readers.process_stats(OperatorStats(0, 1)).repartition_required:
            partitions = readers.define_partitions(partitions, PartitioningContext(clock=clock, slots=slots))
        assert len(partitions) == max(low, min(answer, low + more)) == readers.readers


def test_a_policy_that_says_no_whole_number_is_named() -> None:
    half: Any = 2.5
    told = r"^the policy Wild \('wild'\) returned 2\.5 for Load\(backlog=1, [^\n]*\n  help: readers\(load\) returns an integer; "
    with pytest.raises(PolicyFailed, match=told):
        following(FakeClock(), policy=Wild([half])).process_stats(OperatorStats(0, 1))


def test_a_policy_that_raises_is_blamed_with_its_line() -> None:
    class Third:
        name = "third"

        def readers(self, load: Any) -> int:
            return int(load.backlog.items) // 3

    told = r"the policy .*Third \('third'\) failed in readers\(load\): AttributeError: .*\n  at .*test_backlog\.py:\d+ in readers"
    with pytest.raises(PolicyFailed, match=told):
        following(FakeClock(), policy=Third()).process_stats(OperatorStats(0, 1))


def test_with_another_clock_the_next_stats_are_looked_at_at_once() -> None:
    one, other = FakeClock(), FakeClock()
    readers = following(one)
    one.advance(1_000)
    assert readers.process_stats(OperatorStats(0, 8)).repartition_required
    assert len(readers.define_partitions([Partition("reader")], PartitioningContext(clock=other))) == 8
    assert readers.process_stats(OperatorStats(0, 9)).repartition_required


def test_properties_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"^min_readers is 4 and max_readers 2: at least 1, and in this order$"):
        BacklogPartitioner(4, 2)
    with pytest.raises(ValueError, match="policy is 'fast'"):
        BlockReader(policy="fast")
