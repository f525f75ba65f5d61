"""However claims and splits meet, the primary's records and the residuals' make up the range, each once.

Three proofs: any sequence of calls (calls are what a lock makes atomic); every place in the bytecode of a claim at which another
thread could come in between (that the lock does so); and real threads. The last two find the fault when the lock is taken out.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.ranges import ByteKeyRangeTracker, OffsetRangeTracker
from tests.tiers import examples

Record = tuple[int, bool]
LENGTH = 40


@pytest.fixture(autouse=True)
def threads_without_coverage() -> Iterator[None]:
    """Thousands of threads start here at once: of two that install coverage's trace function together, CPython 3.11 ends one."""
    before = threading.gettrace()
    threading.settrace(None)  # type: ignore[arg-type]  # typeshed lacks None
    yield
    threading.settrace(before)  # type: ignore[arg-type]  # likewise


@st.composite
def sources(draw: st.DrawFn) -> list[Record]:
    """Records of a source [0, LENGTH): split points at unique positions, each with records of its own behind it."""
    found: list[Record] = []
    for split_point in sorted(draw(st.sets(st.integers(0, LENGTH - 1), min_size=1, max_size=12))):
        at = max(split_point, found[-1][0] if found else 0)
        if at > split_point:
            continue  # the tail of the block before reaches past it
        found.append((split_point, True))
        for step in draw(st.lists(st.integers(0, 4), max_size=2)):
            at += step
            found.append((at, False))
    return found


def as_key(position: int) -> bytes:
    return bytes([position])


KINDS: list[tuple[Callable[..., Any], Callable[[int], Any]]] = [(OffsetRangeTracker, int), (ByteKeyRangeTracker, as_key)]


def records_from(source: list[Record], start: Any, position: Callable[[int], Any]) -> Iterator[tuple[Any, bool]]:
    """The records that a reader finds in a range: from its first split point on."""
    begun = False
    for at, is_split_point in source:
        begun = begun or (is_split_point and position(at) >= start)
        if begun:
            yield position(at), is_split_point


def groups(found: list[tuple[Any, bool]]) -> list[list[tuple[Any, bool]]]:
    """Runs of records that may be claimed together."""
    return [found[i : i + 3] for i in range(0, len(found), 3)]


def read(
    make: Callable[..., Any],
    bounds: tuple[Any, Any],
    source: list[Record],
    position: Callable[[int], Any],
    decide: Callable[[], float],
    depth: int = 0,
) -> list[tuple[Any, bool]]:
    """Reads a range while it is split at random, then the residuals; the records in their order."""
    tracker = make(*bounds)
    primary: list[tuple[Any, bool]] = []
    residuals: list[tuple[Any, Any]] = []

    def maybe_split() -> None:
        while depth < 6 and decide() < 0.5:
            before, stop = tracker.fraction_consumed, tracker.stop_position
            if decide() < 0.5:
                residual = tracker.try_split_at_fraction(decide())
                given = None if residual is None else tuple(residual)
            else:
                place = position(int(decide() * (LENGTH + 4)))
                given = (place, stop) if tracker.try_split_at_position(place) else None
            if given is not None:
                assert given == (tracker.stop_position, stop)
                assert primary, "split before it was begun"
                assert all(at < given[0] for at, _ in primary)
                assert tracker.fraction_consumed >= before
                residuals.insert(0, given)

    maybe_split()
    rest = list(records_from(source, bounds[0], position))
    while rest:
        batch = [at for at, _ in rest[: 1 + int(decide() * 3)] if all(s for _, s in rest[:3])]
        if batch and decide() < 0.3:
            taken = tracker.try_return_batch_at(batch)
            primary += rest[:taken]
            is_over = taken < len(batch)
        else:
            taken = int(tracker.try_return_record_at(rest[0][1], rest[0][0]))
            primary += rest[:taken]
            is_over = not taken
        rest = rest[taken:]
        maybe_split()
        if is_over:
            assert tracker.fraction_consumed == 1.0
            break
    for residual in residuals:
        primary += read(make, residual, source, position, decide, depth + 1)
    return primary


@settings(max_examples=examples(400))
@given(source=sources(), kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
def test_any_sequence_of_claims_and_splits(source: list[Record], kind: Any, seed: int) -> None:
    make, position = kind
    found = read(make, (position(0), position(LENGTH)), source, position, random.Random(seed).random)
    assert found == [(position(at), is_split_point) for at, is_split_point in source]


class Unlocked:
    """A lock that does not lock."""

    def __enter__(self) -> None: ...
    def __exit__(self, *error: object) -> None: ...
    def locked(self) -> bool:
        return False


def interrupted(tracker: Any, call: Callable[[], Any], other: Callable[[], Any], at: int) -> tuple[Any, Any, bool]:
    """Runs `call`, and at its `at`-th bytecode `other` in another thread, which goes as far as the lock lets it."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(other()))
    steps = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        if event == "opcode":
            if steps == at:
                sys.settrace(None)
                thread.start()
                # Held by us at this moment: it must wait until we are done; else it goes through before we go on.
                if not tracker._lock.locked():
                    thread.join()
            steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        answer = call()
    finally:
        sys.settrace(before)
    was_reached = thread.ident is not None
    if was_reached:
        thread.join()
    return answer, answers[0] if answers else None, was_reached


def races(
    lock: Any, claim: Callable[[Any], Any], split: Callable[[Any], Any], *, claims_first: bool
) -> set[tuple[Any, Any, Any]]:
    """All outcomes of a claim and a split that meet: (claim, split, stop). Either is interrupted by the other at every step."""
    outcomes = set()
    interrupted(OffsetRangeTracker(0, 1), lambda: None, lambda: None, -1)  # Python 3.12 traces bytecodes from the second time on
    for at in range(1000):
        tracker = OffsetRangeTracker(0, 100)
        tracker.try_return_record_at(True, 10)
        if lock is not None:
            tracker._lock = lock
        one, other = (partial(call, tracker) for call in ((claim, split) if claims_first else (split, claim)))
        answer, others, was_reached = interrupted(tracker, one, other, at)
        if not was_reached:
            break
        pair = (answer, others) if claims_first else (others, answer)
        outcomes.add((*pair, tracker.stop_position))
    assert at > 10
    return outcomes


CLAIMS = [lambda t: t.try_return_record_at(True, 50), lambda t: bool(t.try_return_batch_at([50]))]
SPLITS = [lambda t: t.try_split_at_position(50), lambda t: t.try_split_at_fraction(0.5) is not None]
LAWFUL = {(True, False, 100), (False, True, 50)}  # either the reader has the record at 50, or the residual has


@pytest.mark.parametrize("claims_first", [True, False])
@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("split", SPLITS)
def test_a_claim_and_a_split_that_meet_at_any_step(claims_first: bool, claim: Any, split: Any) -> None:
    outcomes = races(None, claim, split, claims_first=claims_first)
    assert outcomes == LAWFUL  # both happen, else nothing was tried


@pytest.mark.parametrize("claims_first", [True, False])
def test_without_the_lock_the_record_would_belong_to_both(claims_first: bool) -> None:
    outcomes = races(Unlocked(), CLAIMS[0], SPLITS[0], claims_first=claims_first)
    assert (True, True, 50) in outcomes


@pytest.mark.parametrize(("make", "position"), KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_one_thread_claims_and_others_split(make: Any, position: Any, seed: int) -> None:
    count = 200
    wide = position if make is OffsetRangeTracker else lambda at: at.to_bytes(2, "big")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        residuals: list[tuple[Any, Any]] = []
        tracker = make(wide(0), wide(count))
        done = threading.Event()

        def split(at_random: random.Random) -> None:
            while not done.is_set():
                fraction = min(1.0, tracker.fraction_consumed + at_random.random() / 4)
                residual = tracker.try_split_at_fraction(fraction)
                if residual is not None:
                    residuals.append(tuple(residual))

        threads = [threading.Thread(target=split, args=(random.Random(f"{seed}/{number}"),)) for number in range(3)]
        for thread in threads:
            thread.start()
        found = []
        for at in range(count):
            if not tracker.try_return_record_at(True, wide(at)):
                break
            found.append(wide(at))
        done.set()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert found
    for start, stop in residuals:
        found += [wide(at) for at in range(count) if start <= wide(at) < stop]
    assert sorted(found) == [wide(at) for at in range(count)]
