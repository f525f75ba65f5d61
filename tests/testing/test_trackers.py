"""Trackers with one fault each are refused by their proof, and readers that are always wrong by what is expected."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from dagflow.ranges import ClaimedRecords
from dagflow.testing.splittable import assert_reader_is_splittable
from tests.testing import faulty
from tests.testing.test_splittable import LINES, Found, file, found_lines, sound

__all__ = ["file"]


@pytest.mark.parametrize(("tracker", "message"), faulty.FAULTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_fault_of_a_tracker_is_found(file: Any, tracker: Any, message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_reader_is_splittable(sound, file(LINES), make_tracker=tracker)
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)
    assert tracker.__name__ in str(caught.value)


def test_a_fault_of_batches_of_claims_is_found(file: Any) -> None:
    def by_batches(path: str, tracker: Any) -> Iterator[Found]:
        found = list(found_lines(path, tracker.start_position))
        for first in range(0, len(found), 2):
            some = found[first : first + 2]
            granted = tracker.try_return_batch_at([position for position, _, _ in some])
            yield from some[:granted]
            if granted < len(some):
                return

    assert_reader_is_splittable(by_batches, file(LINES))
    with pytest.raises(AssertionError, match=r"7, trackers: .*GrantsWholeBatches\(.* granted the split point"):
        assert_reader_is_splittable(by_batches, file(LINES), make_tracker=faulty.GrantsWholeBatches)


def expected_of(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def changed(path: str, tracker: Any, change: Callable[[list[Found]], list[Found]]) -> Iterator[Found]:
    """Always the same fault, wherever a range is cut: no law of cuts finds it."""
    found = change(list(found_lines(path, 0)))
    return ClaimedRecords(tracker, (each for each in found if each[0] >= tracker.start_position))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda found: [each for each in found if each[2] != b"three\r\n"], "lost  .*three"),
        (lambda found: found[1:], "lost  .*one"),
        (lambda found: found[:-1], "lost  .*six"),
        (lambda found: [twin for each in found for twin in (each, (each[0], False, each[2]))], "twice .*one"),
        (lambda found: [(at, is_split_point, record.strip()) for at, is_split_point, record in found], "new  .*b'one'"),
        (lambda found: [(at, is_split_point, found[-1 - n][2]) for n, (at, is_split_point, _) in enumerate(found)], "expected"),
    ],
    ids=["drops one", "drops the first", "drops the last", "doubles", "strips", "reverses"],
)
def test_what_is_always_wrong_is_found_by_what_is_expected(file: Any, change: Any, told: str) -> None:
    reader = partial(changed, change=change)
    assert_reader_is_splittable(reader, file(LINES))
    with pytest.raises(AssertionError) as caught:
        assert_reader_is_splittable(reader, file(LINES), expected_of(LINES))
    assert re.search(f"8, records: .*other records than expected.*{told}", str(caught.value), re.DOTALL), str(caught.value)


def test_what_is_expected_is_compared_as_records_are(file: Any) -> None:
    assert_reader_is_splittable(sound, file(LINES), expected=expected_of(LINES))
    assert_reader_is_splittable(sound, file(LINES), [LINES], compare=b"".join)
    with pytest.raises(AssertionError, match="8, records"):
        assert_reader_is_splittable(sound, file(LINES), [LINES[1:]], compare=b"".join)
