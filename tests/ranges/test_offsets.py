"""Offsets: the cases of Beam's own tests (Java's and Python's), and what these leave open."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import (
    FirstNotSplitPoint,
    NoFraction,
    NoRange,
    PositionsDecrease,
    RecordBeforeRange,
    SplitPointTwice,
    UnboundedRange,
)
from dagflow.ranges import OFFSET_INFINITY, OffsetRange, OffsetRangeTracker, RangeTracker

INF = math.inf


def play(tracker: RangeTracker[Any], script: str, position: Callable[[str], Any] = int) -> str:
    """Runs calls and appends their answers: C split point, N other record, S split at a position, B batch."""
    answers = []
    for call in script.split():
        kind, at = call[0], call[1:]
        if kind == "B":
            answers.append(f"{call}={tracker.try_return_batch_at([position(p) for p in at.split(',')])}")
            continue
        method = {
            "C": lambda p: tracker.try_return_record_at(True, p),
            "N": lambda p: tracker.try_return_record_at(False, p),
            "S": tracker.try_split_at_position,
        }[kind]
        answers.append(f"{call}={'TF'[not method(position(at))]}")
    return " ".join(answers)


def check(tracker: RangeTracker[Any], script: str, position: Callable[[str], Any] = int) -> None:
    calls = " ".join(part.partition("=")[0] for part in script.split())
    assert play(tracker, calls, position) == script


@pytest.mark.parametrize(
    ("start", "stop", "script"),
    [
        (3, 6, "C3=T C4=T C5=T C6=F"),
        (100, 200, "C110=T C140=T C183=T C210=F"),
        (9, 18, "C10=T N12=T N14=T C16=T N18=T N20=T C22=F"),
        (100, 200, "S150=F C110=T S150=T"),
        (100, 200, "C110=T S109=F S110=F S200=F S210=F S170=T S150=T C135=T C149=T C150=F C151=F N152=T N160=T C171=F"),
        (100, 200, "C110=T S111=T C111=F"),
        (100, 200, "C110=T S199=T C198=T C199=F"),
        (100, 200, "C110=T C210=F S150=F C150=F C120=F S120=F"),
        (100, 200, "C200=F C100=F S150=F"),
        (100, 200, "C110=T N115=T S115=F S116=T C116=F"),
        (100, 200, "C110=T N110=T N115=T C115=T"),
        (100, 200, "C150=T C199=T S199=F"),
        (100, 200, "C190=T N250=T S195=F C260=F"),
        (100, 100, "S100=F C100=F C101=F"),
        (-20, -10, "C-20=T S-15=T C-15=F"),
        (100, OFFSET_INFINITY, "C150=T C250=T S1000=T C999=T C1000=F"),
        (100, 200, "B100,120,199=3 C200=F"),
        (100, 200, "B100,120,200=2 C130=F S150=F N250=T"),
        (100, 200, "B200,220=0 C130=F S150=F"),
        (100, 200, "B110=1 B120,130=2 S130=F S131=T B131,140=0"),
        (100, 200, "C110=T S150=T B120,149,150,151,180=2"),
    ],
)
def test_claims_and_splits(start: int, stop: int, script: str) -> None:
    check(OffsetRangeTracker(start, stop), script)


def test_the_start_stays_where_it_is() -> None:
    tracker = OffsetRangeTracker(100, 200)
    check(tracker, "C150=T C180=T")
    assert (tracker.start_position, tracker.stop_position) == (100, 200)
    assert tracker.try_split_at_position(190)
    assert (tracker.start_position, tracker.stop_position) == (100, 190)


@pytest.mark.parametrize(
    ("start", "stop", "fractions"),
    [
        (3, 6, {"": 0, "C3": 0, "C4": 1 / 3, "C5": 2 / 3, "N6": 1, "N7": 1, "C7": 1}),
        (100, 200, {"": 0, "C100": 0, "C110": 0.1, "C150": 0.5, "C195": 0.95, "C200": 1, "N201": 1}),
        (100, 200, {"C110": 0.1, "S150": 0.2, "C125": 0.5, "B130,140": 0.8, "B149,150": 1}),
        (100, 200, {"C200": 1}),
        (100, 100, {"": 0, "C100": 1}),
        (100, OFFSET_INFINITY, {"C150": 0, "C250": 0, "S400": 0.5, "C400": 1}),
    ],
)
def test_the_fraction_consumed(start: int, stop: int, fractions: dict[str, float]) -> None:
    tracker = OffsetRangeTracker(start, stop)
    for call, fraction in fractions.items():
        play(tracker, call)
        assert tracker.fraction_consumed == pytest.approx(fraction), call


@pytest.mark.parametrize(
    ("fraction", "position"), [(0, 3), (1 / 6, 4), (0.333, 4), (0.334, 5), (0.666, 5), (0.667, 6), (0.999, 6), (1, 6)]
)
def test_a_position_at_a_fraction_is_rounded_up(fraction: float, position: int) -> None:
    found = OffsetRangeTracker(3, 6).position_at_fraction(fraction)
    assert (found, type(found)) == (position, int)


@given(st.integers(1, 10**12), st.data(), st.integers(-(10**12), 10**12))
def test_the_position_at_a_positions_fraction_is_that_position(size: int, data: st.DataObject, start: int) -> None:
    """Rounding up does not mean one more whenever floating point is off in its last bit (0.07 of 100 is 7)."""
    steps = data.draw(st.integers(0, size))
    tracker = OffsetRangeTracker(start, start + size)
    assert tracker.position_at_fraction(steps / size) == start + steps


def test_the_same_for_all_fractions_of_small_ranges() -> None:
    assert 0.07 * 100 > 7
    for size in range(1, 150):
        tracker = OffsetRangeTracker(5, 5 + size)
        assert [tracker.position_at_fraction(k / size) - 5 for k in range(size + 1)] == list(range(size + 1))


@given(st.integers(0, 2**62), st.floats(0, 1), st.floats(0, 1))
def test_positions_at_fractions_never_leave_the_range_nor_decrease(size: int, one: float, other: float) -> None:
    tracker = OffsetRangeTracker(7, 7 + size)
    low, high = (tracker.position_at_fraction(fraction) for fraction in sorted((one, other)))
    assert 7 <= low <= high <= 7 + size


def test_a_split_at_a_fraction_gives_the_residual() -> None:
    tracker = OffsetRangeTracker(100, 200)
    assert tracker.try_split_at_fraction(0.5) is None  # not begun
    check(tracker, "C110=T")
    assert tracker.try_split_at_fraction(0.1) is None  # consumed
    assert tracker.try_split_at_fraction(1.0) is None  # nothing behind
    residual = tracker.try_split_at_fraction(0.505)
    assert residual == OffsetRange(151, 200) == (151, 200)
    assert (residual.start, residual.stop, tracker.stop_position) == (151, 200, 151)
    assert tracker.try_split_at_fraction(0.5) == (126, 151)  # fractions are of what is left
    check(tracker, "C125=T C126=F")
    assert tracker.try_split_at_fraction(0.99) is None


@pytest.mark.parametrize("stop", [None, INF, OFFSET_INFINITY, OffsetRangeTracker.OFFSET_INFINITY])
def test_a_range_may_have_no_end(stop: Any) -> None:
    tracker = OffsetRangeTracker(100, stop)
    assert tracker.stop_position == OFFSET_INFINITY
    check(tracker, "C150=T C250=T")
    assert tracker.fraction_consumed == 0.0
    assert tracker.split_points() == (1, None)
    assert tracker.try_split_at_fraction(0.5) is None
    with pytest.raises(UnboundedRange, match="the range from 100 on has no end"):
        tracker.position_at_fraction(0.5)
    assert tracker.try_split_at_position(300)
    assert tracker.position_at_fraction(0.5) == 200


def test_split_points_are_counted() -> None:
    tracker = OffsetRangeTracker(100, 400)
    assert tracker.split_points() == (0, None)
    found = []
    for call in ("C120", "N130", "C140", "S200", "B150,160", "C198", "S199", "C230", "N240"):
        play(tracker, call)
        found.append(tracker.split_points())
    assert found == [(0, None), (0, None), (1, None), (1, None), (3, None), (4, None), (4, 1), (5, 0), (5, 0)]
    assert OffsetRangeTracker(5, 5).split_points() == (0, 0)
    last = OffsetRangeTracker(0, 2)
    check(last, "C1=T")
    assert last.split_points() == (0, 1)


@pytest.mark.parametrize(
    ("before", "call", "error", "message"),
    [
        ("", "N120", FirstNotSplitPoint, r"range \[100, 200\) is at 120, which is not a split point"),
        ("C210=F", "N220", FirstNotSplitPoint, r"range \[100, 200\) is at 220, which is not a split point"),
        ("", "C50", RecordBeforeRange, "split point at 50 lies before the range's start, 100"),
        ("", "B50,150", RecordBeforeRange, "split point at 50 lies before the range's start, 100"),
        ("C120=T", "C110", PositionsDecrease, "record at 110 comes after the one at 120"),
        ("C120=T", "C50", PositionsDecrease, "record at 50 comes after the one at 120"),
        ("C120=T", "N119", PositionsDecrease, "record at 119 comes after the one at 120"),
        ("C120=T N130=T", "C125", PositionsDecrease, "record at 125 comes after the one at 130"),
        ("C120=T C200=F N130=T", "N129", PositionsDecrease, "record at 129 comes after the one at 130"),
        ("C120=T", "B110,130", PositionsDecrease, "record at 110 comes after the one at 120"),
        ("", "B130,120", PositionsDecrease, "record at 120 comes after the one at 130"),
        ("C120=T", "C120", SplitPointTwice, "split point at 120 has the position of the split point before it, 120"),
        ("C120=T", "B120,121", SplitPointTwice, "split point at 120 has the position of the split point before it, 120"),
        ("", "B120,120", SplitPointTwice, "split point at 120 has the position of the split point before it, 120"),
        ("B110,120=2", "C120", SplitPointTwice, "split point at 120 has the position"),
    ],
)
def test_a_readers_errors_name_both_positions_and_change_nothing(
    before: str, call: str, error: type[Exception], message: str
) -> None:
    tracker = OffsetRangeTracker(100, 200)
    check(tracker, before)
    state = repr(tracker), tracker.split_points(), tracker.fraction_consumed
    for _ in range(2):
        with pytest.raises(error, match=message) as caught:
            play(tracker, call)
        assert isinstance(caught.value, ValueError)
    assert (repr(tracker), tracker.split_points(), tracker.fraction_consumed) == state


def test_what_is_no_range_is_refused() -> None:
    with pytest.raises(NoRange, match="starts at 10 and stops at 9"):
        OffsetRangeTracker(10, 9)
    for start, stop in (("a", 5), (1.5, 5), (0, 2.5), (None, 5), (0, "9")):
        with pytest.raises(TypeError):
            OffsetRangeTracker(start, stop)  # type: ignore[arg-type]
    tracker = OffsetRangeTracker(0, 10)
    check(tracker, "C0=T")
    with pytest.raises(TypeError):
        tracker.try_split_at_position(5.5)  # type: ignore[arg-type]
    for fraction in (-0.1, 1.1, math.nan, INF):
        with pytest.raises(NoFraction, match="between 0 and 1, but"):
            tracker.position_at_fraction(fraction)
        with pytest.raises(NoFraction):
            tracker.try_split_at_fraction(fraction)


def test_positions_of_arrays_are_fine() -> None:
    import numpy as np

    tracker = OffsetRangeTracker(0, 100)
    assert tracker.try_return_batch_at(np.array([0, 10, 20])) == 3  # type: ignore[arg-type]
    assert tracker.try_return_record_at(True, np.int64(30))  # type: ignore[arg-type]
    assert tracker.try_split_at_position(np.int64(50))  # type: ignore[arg-type]
    assert type(tracker.stop_position) is int
    assert tracker.try_return_batch_at(np.array([40, 49, 50, 60])) == 2  # type: ignore[arg-type]
    assert tracker.try_return_batch_at(np.array([])) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda tracker: pickle.loads(pickle.dumps(tracker))])
def test_a_copy_has_a_life_of_its_own(copied: Callable[[Any], Any]) -> None:
    tracker = OffsetRangeTracker(100, 200)
    check(copied(tracker), "S150=F C110=T")
    check(tracker, "C110=T S170=T")
    twin = copied(tracker)
    assert repr(twin) == repr(tracker) == "OffsetRangeTracker(100, 170: last at 110)"
    assert twin._lock is not tracker._lock
    check(twin, "S110=F C150=T C170=F S160=F")
    check(tracker, "S150=T C140=T")
    with pytest.raises(SplitPointTwice):
        copied(tracker).try_return_record_at(True, 140)
    over = copied(twin)
    assert (over.fraction_consumed, over.split_points()) == (1.0, (2, 0))


def test_it_is_a_range_tracker() -> None:
    tracker: RangeTracker[int] = OffsetRangeTracker(start=0, stop=10)
    assert isinstance(tracker, RangeTracker)
    assert not isinstance(range(10), RangeTracker)
    assert tracker.try_return_record_at(is_at_split_point=True, record_start=0)
    assert repr(OffsetRangeTracker(0, 1)) == "OffsetRangeTracker(0, 1: nothing returned)"
