from __future__ import annotations

from collections.abc import Iterator

import pytest

from dagflow.errors import FirstNotSplitPoint
from dagflow.ranges import ClaimedRecords, OffsetRangeTracker

Found = tuple[int, bool, str]
RECORDS: list[Found] = [(0, True, "a"), (3, False, "b"), (5, True, "c"), (12, False, "d"), (14, True, "e"), (15, False, "f")]


def records(tracker: OffsetRangeTracker, seen: list[str] | None = None) -> Iterator[Found]:
    try:
        yield from (found for found in RECORDS if found[0] >= tracker.start_position)
    finally:
        if seen is not None:
            seen.append("closed")


def test_records_that_belong_to_the_range() -> None:
    """The tail behind the stop belongs to its split point; what follows the refused one belongs to that one."""
    tracker = OffsetRangeTracker(0, 10)
    seen: list[str] = []
    iterator = ClaimedRecords(tracker, records(tracker, seen))
    assert "".join(record for _, _, record in iterator) == "abcd"
    assert (iterator.has_next(), next(iterator, None), seen) == (False, None, ["closed"])


def test_what_is_promised_is_claimed_once() -> None:
    tracker = OffsetRangeTracker(0, 20)
    iterator = ClaimedRecords(tracker, records(tracker))
    assert not tracker.try_split_at_position(5)
    assert all(iterator.has_next() for _ in range(3))
    assert not tracker.try_split_at_position(0)
    assert tracker.try_split_at_position(6)
    assert [next(iterator)[2], next(iterator)[2]] == ["a", "b"]
    assert iterator.has_next()
    assert not tracker.try_split_at_position(5)
    assert [record for _, _, record in iterator] == ["c", "d"]


def test_what_was_promised_is_returned_after_the_end_too() -> None:
    tracker = OffsetRangeTracker(0, 20)
    iterator = ClaimedRecords(tracker, records(tracker))
    assert iterator.has_next()
    iterator.close()
    assert [record for _, _, record in iterator] == ["a"]


def test_a_reader_that_starts_in_the_middle_is_told() -> None:
    tracker = OffsetRangeTracker(1, 20)
    with pytest.raises(FirstNotSplitPoint):
        ClaimedRecords(tracker, records(tracker)).has_next()


def test_nothing_found() -> None:
    iterator: ClaimedRecords[int, str] = ClaimedRecords(OffsetRangeTracker(0, 1), iter(()))
    assert not iterator.has_next()
    assert list(iterator) == []
