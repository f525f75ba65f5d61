"""Keys: the figures of Beam's own tests, and laws."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import (
    FirstNotSplitPoint,
    KeyOutsideRange,
    NoFraction,
    NoRange,
    PositionsDecrease,
    RecordBeforeRange,
    SplitPointTwice,
)
from dagflow.ranges import ByteKey, ByteKeyRange, ByteKeyRangeTracker

KEYS = [
    *("", "00", "0001", "000101", "000102", "000102fe", "000103fe", "00fefefe", "00fefeff", "00feff00", "00ffff00", "00ffff01"),
    *("00fffffe", "00ffffff", "01", "0102", "010203", "03", "dd", "fe", "fefe", "feff", "ff", "ff00", "fffe", "ffff", "ffffff"),
    "ffffffff",
]
FRACTIONS = [0.01, 0.1, 0.123, 0.2, 0.3, 0.45738, 0.5, 0.6, 0.7182, 0.8, 0.95, 0.97, 0.99]
PAIRS = [*itertools.combinations(KEYS, 2), *((key, "") for key in KEYS)]


def key(digits: str) -> ByteKey:
    return ByteKey.fromhex(digits)


def keys(start: str, stop: str) -> ByteKeyRange:
    return ByteKeyRange(key(start), key(stop))


def tracked(start: str = "12", stop: str = "34") -> ByteKeyRangeTracker:
    return ByteKeyRangeTracker(key(start), key(stop))


def test_keys_are_bytes_in_their_order() -> None:
    assert sorted(map(key, reversed(KEYS))) == [key(digits) for digits in KEYS]
    assert key("") == ByteKey.EMPTY == b"" != key("00")
    assert key("0123ab") == b"\x01\x23\xab" == ByteKey([1, 0x23, 0xAB])
    assert (str(key("0123ab")), f"{key('00')}", repr(key("0a"))) == ("[0123ab]", "[00]", "ByteKey.fromhex('0a')")
    assert key("12") < key("12").next_key() == key("1200") < key("120000")
    assert {key("12"): 1}[b"\x12"] == 1  # type: ignore[index]
    for twin in (copy.copy(key("12")), pickle.loads(pickle.dumps(key("12")))):
        assert (twin, type(twin)) == (key("12"), ByteKey)
    for wrong in (5, "text"):
        with pytest.raises(TypeError, match="made of bytes"):
            ByteKey(wrong)  # type: ignore[arg-type]


def test_what_a_range_contains() -> None:
    assert [key(digits) in keys("12", "34") for digits in ("11ff", "12", "1200", "33ff", "34")] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert all(key(digits) in ByteKeyRange.ALL_KEYS for digits in KEYS)
    assert key("12") not in keys("12", "12")
    assert ByteKeyRange() == ByteKeyRange.ALL_KEYS == ByteKeyRange(b"", b"")
    assert (str(keys("12", "34")), str(keys("12", ""))) == ("[[12], [34])", "[[12], no end)")
    assert [*keys("12", "34")] == [b"\x12", b"\x34"]
    with pytest.raises(NoRange, match=r"starts at \[34\] and stops at \[12\]"):
        keys("34", "12")


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        (("05", "10"), ("01", "10"), True),
        (("05", "10"), ("05", "50"), True),
        (("05", "10"), ("", ""), True),
        (("", "01"), ("01", ""), False),
        (("05", "10"), ("10", "50"), False),
    ],
)
def test_which_ranges_overlap(one: tuple[str, str], other: tuple[str, str], answer: bool) -> None:
    assert keys(*one).overlaps(keys(*other)) is keys(*other).overlaps(keys(*one)) is answer


@pytest.mark.parametrize(
    ("start", "stop", "fraction", "at"),
    [
        ("", "", 0.5, "80"),
        ("", "", 0.25, "40"),
        ("", "", 0.75, "c0"),
        ("", "", 0.875, "e0"),
        ("00", "", 0.5, "80"),
        ("0000", "", 0.5, "80"),
        ("", "fe", 0.5, "7f"),
        ("", "80", 0.5, "40"),
        ("30", "50", 0.5, "40"),
        ("300001", "4fffff0000", 0.5, "40"),
        ("80", "", 7 / 128, "87"),
        ("", "10", 7 / 16, "07"),
        ("40", "80", 7 / 64, "47"),
        ("40", "80", 15 / 128, "4780"),
        ("aaaaaa", "eeeeee", 0.25, "bbbbbb"),
        ("61" * 100, "61" * 99 + "65", 0.5, "61" * 99 + "63"),
        *(("", "2f", i / 47, f"{i:02x}") for i in range(1, 47)),
        *(("fdec", "fdec53", i / 83, f"fdec{i:02x}") for i in range(1, 83)),
    ],
)
def test_figures(start: str, stop: str, fraction: float, at: str) -> None:
    assert keys(start, stop).interpolate_key(fraction) == key(at)
    assert keys(start, stop).estimate_fraction_for_key(key(at)) == pytest.approx(fraction, abs=1e-12)


def test_the_ends_of_a_range() -> None:
    for start, stop in PAIRS:
        tested = keys(start, stop)
        assert (tested.interpolate_key(0), tested.interpolate_key(1)) == (key(start), key(stop))
        assert tested.estimate_fraction_for_key(key(start)) == 0.0
        assert not stop or tested.estimate_fraction_for_key(key(stop)) == 1.0
    for outside in ("11", "35"):
        with pytest.raises(KeyOutsideRange, match=rf"key \[{outside}\] is not in the range from \[12\] to \[34\]"):
            keys("12", "34").estimate_fraction_for_key(key(outside))
    with pytest.raises(KeyOutsideRange, match=r"from \[12\] to no end"):
        keys("12", "").estimate_fraction_for_key(b"")
    for fraction in (-0.1, 1.5, float("nan")):
        with pytest.raises(NoFraction):
            keys("12", "").interpolate_key(fraction)


def test_next_to_the_ends_the_shortest_key_is_still_in_the_range() -> None:
    almost_one, almost_none = 1 - 2**-53, 2**-80
    long_start, long_stop = "30" + "00" * 9 + "01", "30" + "ff" * 9
    assert keys(long_start, "").interpolate_key(almost_none) == key(long_start)  # not 30
    assert keys("", long_stop).interpolate_key(almost_one) == key(long_stop)  # not 31
    assert ByteKeyRange.ALL_KEYS.interpolate_key(almost_one) == b""  # not 256
    begun = tracked("", "")
    assert begun.try_return_record_at(True, b"")
    assert begun.try_split_at_fraction(almost_one) is None


def test_interpolating_is_the_reverse_of_estimating_and_never_decreases() -> None:
    for start, stop in PAIRS:
        tested = keys(start, stop)
        is_narrow = bool(stop) and key(stop).rstrip(b"\0") == key(start).rstrip(b"\0")
        found = [tested.interpolate_key(fraction) for fraction in FRACTIONS]
        assert found == sorted(found)
        for fraction, at in zip(FRACTIONS, found, strict=True):
            if is_narrow:
                assert at == tested.stop
                continue
            assert at != b""
            assert at in tested
            assert abs(tested.estimate_fraction_for_key(at) - fraction) < 1e-7


def test_estimates_never_decrease() -> None:
    for start, stop in PAIRS:
        tested = keys(start, stop)
        found = [tested.estimate_fraction_for_key(key(digits)) for digits in KEYS if key(digits) in tested]
        assert found == sorted(found)


@given(st.binary(max_size=6), st.binary(max_size=6), st.floats(0, 1), st.floats(0, 1))
def test_any_range_at_any_fraction(one: bytes, other: bytes, low: float, high: float) -> None:
    for tested in (ByteKeyRange(*sorted((one, other))), ByteKeyRange(one, b"")):
        first, second = (tested.interpolate_key(fraction) for fraction in sorted((low, high)))
        for at, fraction in ((first, min(low, high)), (second, max(low, high))):
            assert at == tested.stop or at in tested
            if at and tested.stop.rstrip(b"\0") != tested.start.rstrip(b"\0"):
                assert abs(tested.estimate_fraction_for_key(at) - fraction) < 1e-12
        assert first <= second or second == b""


def test_parts_are_neighbours() -> None:
    for (start, stop), parts in itertools.product(PAIRS, (1, 2, 5, 32)):
        tested = keys(start, stop)
        found = tested.split(parts)
        assert (found[0].start, found[-1].stop) == (tested.start, tested.stop)
        assert all(one.stop == other.start != b"" for one, other in itertools.pairwise(found))
        assert len(found) <= parts
    assert len(ByteKeyRange.ALL_KEYS.split(64)) == 64
    assert keys("", "00000000").split(5) == [keys("", "00000000")]
    with pytest.raises(ValueError, match="into 1 part or more, not into 0"):
        ByteKeyRange.ALL_KEYS.split(0)


def call(tracker: ByteKeyRangeTracker, script: str) -> None:
    """Runs calls and checks their answers: `C12=T`; what it cannot be is an error's name."""
    kinds: dict[str, Any] = {
        "C": lambda at: tracker.try_return_record_at(True, at),
        "N": lambda at: tracker.try_return_record_at(False, at),
        "S": tracker.try_split_at_position,
    }
    for part in script.split():
        asked, _, answer = part.partition("=")
        assert kinds[asked[0]](key(asked[1:])) is (answer == "T"), part


@pytest.mark.parametrize(
    "script",
    [
        "C12=T N12=T C23=T C33=T C34=F C33=F",
        "S23=F C12=T S33=T S34=F C23=T S23=F S2300=T C2300=F",
        "C12=T N35=T C36=F N37=T",
        "C34=F S20=F C12=F",
        "C12=T S1200=T C1200=F",
    ],
)
def test_claims_and_splits(script: str) -> None:
    call(tracked(), script)


def test_the_fraction_consumed() -> None:
    tracker = tracked()
    assert tracker.fraction_consumed == 0.0
    found = []
    for step in ("C12=T", "C23=T", "C33=T", "N35=T"):
        call(tracker, step)
        found.append(tracker.fraction_consumed)
    assert found == [0.0, 0.5, 1 - 1 / 34, 1.0]
    refused = tracked()
    call(refused, "C12=T C34=F")
    assert refused.fraction_consumed == 1.0
    moved = tracked()
    call(moved, "C14=T")
    assert moved.range == keys("12", "34")  # the start stays where it is
    assert moved.fraction_consumed == 2 / 34


def test_a_range_without_an_end_has_sensible_fractions() -> None:
    """Beam's Java says 1.0 of all that has begun."""
    tracker = tracked("", "")
    call(tracker, "C=T")
    assert (tracker.fraction_consumed, tracker.stop_position) == (0.0, ByteKey.EMPTY)
    call(tracker, "C40=T")
    assert tracker.fraction_consumed == 0.25
    assert tracker.position_at_fraction(0.5) == key("80")
    assert tracker.try_split_at_fraction(0.75) == keys("c0", "")
    assert tracker.fraction_consumed == pytest.approx(1 / 3)
    call(tracker, "S=F C80=T Cbfff=T Cc0=F")
    last = tracked("fffe", "")
    call(last, "Cffff=T")
    assert last.fraction_consumed == 0.5
    assert last.try_split_at_fraction(1.0) is None


def test_split_points_are_counted() -> None:
    tracker = tracked()
    found = [tracker.split_points()]
    for step in ("C12=T", "C13=T", "N23=T", "C33=T", "S3300=T", "C34=F"):
        call(tracker, step)
        found.append(tracker.split_points())
    assert found == [(0, None), (0, None), (1, None), (1, None), (2, None), (2, 1), (3, 0)]


def test_a_batch_of_keys() -> None:
    tracker = tracked()
    assert tracker.try_return_batch_at([key("12"), key("20"), key("2000")]) == 3
    assert tracker.try_return_batch_at([b"\x30", b"\x33\xff", b"\x34"]) == 2
    assert tracker.fraction_consumed == 1.0


@pytest.mark.parametrize(
    ("before", "step", "error", "message"),
    [
        ("", "N12", FirstNotSplitPoint, r"range \[\[12\], \[34\]\) is at \[12\], which is not a split point"),
        ("", "C11", RecordBeforeRange, r"at \[11\] lies before the range's start, \[12\]"),
        ("C12=T C23=T", "C13", PositionsDecrease, r"at \[13\] comes after the one at \[23\]"),
        ("C12=T", "C12", SplitPointTwice, r"at \[12\] has the position of the split point before it, \[12\]"),
    ],
)
def test_a_readers_errors_name_both_keys(before: str, step: str, error: type[Exception], message: str) -> None:
    tracker = tracked()
    call(tracker, before)
    with pytest.raises(error, match=message):
        call(tracker, step)


def test_trackers_are_made_of_plain_bytes_too_and_copied() -> None:
    tracker = ByteKeyRangeTracker(b"\x12", b"\x34")
    assert tracker.try_return_record_at(True, b"\x15")
    assert tracker.try_split_at_position(b"\x30")
    for twin in (copy.copy(tracker), pickle.loads(pickle.dumps(tracker))):
        assert (twin.range, repr(twin)) == (keys("12", "30"), repr(tracker))
        call(twin, "S20=T C20=F")
    call(tracker, "C20=T")
    endless = copy.copy(tracked("12", ""))
    assert endless.range == keys("12", "")
    with pytest.raises(TypeError):
        ByteKeyRangeTracker("a", "b")  # type: ignore[arg-type]
