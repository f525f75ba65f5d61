"""The items that a task has not started, its progress, and the parts that it gives away: figures only, no files, no time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import FileBlockMetadata
from dagflow.ranges import OffsetRangeTracker
from dagflow.runtime.rebalancing.items import ItemInProgress, ItemQueue, PendingItem, Throughput
from dagflow.runtime.rebalancing.policy import StolenParts, remaining, steal_from
from dagflow.runtime.stage.parts import Part
from operators import BlockReader


def held(number: int, start: int, stop: int) -> PendingItem:
    return PendingItem.of(
        Part(number), ("reader", "blocks", None), FileBlockMetadata(number, "a.txt", start, stop, stop), BlockReader()
    )


def reading(start: int = 0, stop: int = 1000) -> Any:
    hand = ItemInProgress(held(0, start, stop), since=0.0)
    hand.track(OffsetRangeTracker(start, stop))
    return hand


def claimed(hand: ItemInProgress, *steps: tuple[float, int]) -> ItemInProgress:
    """At each time, a record at a position is claimed, and looked at."""
    for now, position in steps:
        assert hand.tracker.try_return_record_at(True, position)
        hand.look(now)
    return hand


@given(start=st.integers(0, 1 << 50), size=st.integers(3, 1 << 44), data=st.data())
def test_a_split_changes_nothing_of_what_is_known_of_the_present_record(start: int, size: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(start, start + size - 2))
    hand = claimed(reading(start, start + size), (1.0, at))
    key, consumed = hand.key, hand.consumed
    assert consumed == pytest.approx(at - start)
    assert hand.tracker.try_split_at_position(data.draw(st.integers(at + 1, start + size - 1)))
    hand.look(5.0)
    assert hand.key == key
    assert hand.consumed == pytest.approx(consumed)
    assert hand.claimed_at == (1.0 if at > start else 0.0)


def test_half_is_given_away_while_records_are_quick() -> None:
    """However long the part has been at hand: it is the present record that counts."""
    hand = claimed(reading(), *((n / 100, n) for n in range(800)))
    found = steal_from(hand, ItemQueue(), Throughput(), 8.0)
    assert found == StolenParts((Part(0, 900, None),), 100)


def test_all_but_the_present_record_is_given_away_where_that_takes_longer_than_the_rest() -> None:
    hand = claimed(reading(), (0.0, 0), (1.0, 500))
    assert steal_from(hand, ItemQueue(), Throughput(), 60.0) == StolenParts((Part(0, 501, None),), 499)


def test_the_pace_of_late_counts() -> None:
    """Quick records and then slow ones: as all were as quick on the average, nothing would be worth it."""
    hand = claimed(reading(), (0.001, 899), *((0.01 * n, 899 + n) for n in range(1, 51)))
    assert remaining(hand, ItemQueue(), Throughput(), 0.5) == pytest.approx(0.5, rel=0.1)
    assert remaining(claimed(reading(), (0.001, 899)), ItemQueue(), Throughput(), 0.1) == pytest.approx(0.011, rel=0.1)


def test_while_a_claim_takes_long_its_records_say_how_slow_they_are() -> None:
    hand = claimed(reading(), (0.1, 500), (0.2, 600))
    assert remaining(hand, ItemQueue(), Throughput(), 0.3) == pytest.approx(0.2)  # on the average
    hand.look(2.2)
    assert remaining(hand, ItemQueue(), Throughput(), 2.2) == pytest.approx(8.0)  # the last 100 have taken 2 s so far
    hand = claimed(hand, (3.2, 610))
    assert remaining(hand, ItemQueue(), Throughput(), 3.2) == pytest.approx(390 * 3.0 / 110)


def test_what_has_not_begun_goes_first() -> None:
    queue = ItemQueue()
    for number in range(1, 4):
        queue.put(held(number, 0, 1000))
    hand = claimed(reading(), *((n / 10, n) for n in range(10)))
    pace = Throughput(seconds=10.0, weight=1000.0)
    found = steal_from(hand, queue, pace, 1.0)
    assert isinstance(found, StolenParts)
    assert [part.number for part in found.parts][:1] == [3]
    assert hand.tracker.stop_position < 1000  # the part at hand is by far the slowest
