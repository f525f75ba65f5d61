from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from dagflow.errors import FirstNotSplitPoint, NoFraction, NoRange
from dagflow.ranges import ByteKeyRangeTracker, OffsetRangeTracker, RangeTracker, UnsplittableRangeTracker

MAKERS = [lambda: UnsplittableRangeTracker(100, 200), lambda: UnsplittableRangeTracker(OffsetRangeTracker(100, 200))]


@pytest.mark.parametrize("make", MAKERS)
def test_it_is_never_split(make: Any) -> None:
    tracker = make()
    assert isinstance(tracker, RangeTracker)
    assert (tracker.start_position, tracker.stop_position) == (100, 200)
    for position, answer in ((110, True), (140, True), (183, True), (210, False)):
        for place in (111, 150, 184, 199):
            assert tracker.try_split_at_position(place) is False
        assert tracker.try_split_at_fraction(0.99) is None
        assert tracker.try_return_record_at(True, position) is answer
    assert (tracker.start_position, tracker.stop_position) == (100, 200)


def test_all_else_is_as_for_its_positions() -> None:
    tracker: UnsplittableRangeTracker[int] = UnsplittableRangeTracker(100, 200)
    with pytest.raises(FirstNotSplitPoint):
        tracker.try_return_record_at(False, 100)
    assert tracker.try_return_batch_at([100, 120]) == 2
    assert (tracker.fraction_consumed, tracker.position_at_fraction(0.5)) == (0.2, 150)
    with pytest.raises(NoFraction):
        tracker.try_split_at_fraction(2.0)
    with pytest.raises(NoRange):
        UnsplittableRangeTracker(2, 1)
    assert UnsplittableRangeTracker(100, None).fraction_consumed == 0.0


def test_keys_too() -> None:
    for tracker in (UnsplittableRangeTracker(b"0", b"8"), UnsplittableRangeTracker(ByteKeyRangeTracker(b"0", b"8"))):
        assert tracker.try_return_record_at(True, b"2")
        assert tracker.try_split_at_position(b"3") is False
        assert tracker.fraction_consumed == 0.25
    assert UnsplittableRangeTracker(b"0").stop_position == b""


def test_the_whole_range_is_one_split_point() -> None:
    tracker: UnsplittableRangeTracker[int] = UnsplittableRangeTracker(0, 10)
    found = [tracker.split_points()]
    for position in (0, 4, 10):
        tracker.try_return_record_at(True, position)
        found.append(tracker.split_points())
    assert found == [(0, 1), (0, 1), (0, 1), (1, 0)]
    empty: UnsplittableRangeTracker[int] = UnsplittableRangeTracker(0, 10)
    empty.try_return_record_at(True, 10)
    assert empty.split_points() == (0, 0)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda tracker: pickle.loads(pickle.dumps(tracker))])
def test_a_copy_has_a_life_of_its_own(copied: Any) -> None:
    tracker: UnsplittableRangeTracker[int] = UnsplittableRangeTracker(0, 10)
    tracker.try_return_record_at(True, 5)
    twin = copied(tracker)
    assert twin.try_return_record_at(True, 8)
    assert (tracker.fraction_consumed, twin.fraction_consumed) == (0.5, 0.8)
    assert twin.try_split_at_position(9) is False
