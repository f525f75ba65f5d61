"""The maps of one keyed task: what is written, and what an attempt of the same window begins with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import InputPort, MapState, Operator
from dagflow.model.types.keys import GROUPS, KeyAssignment, group_of
from dagflow.state import Policy, SegmentRef, StateRef, log, task_states
from dagflow.state.log import StateLog
from dagflow.state.references import StartStates, chains
from dagflow.state.task_states import MapCache, TaskStates, sweep_attempts, sweep_replaced
from dagflow.storage import LocalStore, MemoryStore

ALL = KeyAssignment(1)


class Keeps(Operator):
    input = InputPort[str](partition_by="value")
    totals = MapState[str, int]()


def task(
    run: Path, window: int, left: list[StateRef], partition: int = 0, keys: KeyAssignment = ALL, cache: MapCache | None = None
) -> tuple[TaskStates, Keeps]:
    """A task; without a cache, in a process of its own."""
    start = StartStates(chains={"keeps": chains(left, partition, keys)})
    states = TaskStates(LocalStore(str(run)), False, window, partition, keys, start, cache or MapCache())
    operator = Keeps()
    states.restore({"keeps": operator})
    return states, operator


@given(st.integers(1, 9), st.integers(1, 9))
def test_all_groups_of_a_partition_are_in_the_chains_that_it_begins_with(before: int, now: int) -> None:
    left = [StateRef("", 0, segment=SegmentRef(f"state/{n}", "", 0)) for n in range(before)]
    keys = KeyAssignment(now)
    for group in range(0, GROUPS, 97):
        found = chains(left, keys.of_group(group), keys)
        assert KeyAssignment(before).of_group(group) in {chain.partition for chain in found}


def test_a_window_that_is_run_again_begins_with_what_it_began_with(tmp_path: Path) -> None:
    states, operator = task(tmp_path, 0, [])
    operator.totals.update({"a": 1, "b": 2})
    left = [states.save()["keeps"]]
    for value in (10, 20):  # two attempts of window 1, of which the first was not decided
        states, operator = task(tmp_path, 1, left)
        assert operator.totals == {"a": 1, "b": 2}
        operator.totals["a"] = value
        after = [states.save()["keeps"]]
    swept(LocalStore(str(tmp_path)), 1, {"keeps": after})
    _, operator = task(tmp_path, 2, after)
    assert operator.totals == {"a": 20, "b": 2}
    assert len(list((tmp_path / "keyed-state" / "state").glob("0000000001-*"))) == 1, "that of the other attempt is gone"


def swept(store: LocalStore, window: int, states: dict[str, list[StateRef]]) -> None:
    """Remove all that windows behind this one do not need."""
    sweep_attempts(store, window, states)
    sweep_replaced(store, {window: states})


@pytest.mark.parametrize(
    "deals",
    [
        [KeyAssignment(3), KeyAssignment(5), KeyAssignment(1), KeyAssignment(4)],
        [
            KeyAssignment(3, (0, 1, 2, 0)),
            KeyAssignment(3, (0, 1, 2, 0)),
            KeyAssignment(3, (2, 1, 0, 2)),
            KeyAssignment(3),
            KeyAssignment(2, (1, 0)),
        ],
    ],
    ids=["other numbers", "other keys"],
)
def test_another_deal_takes_the_entries_along(tmp_path: Path, deals: list[KeyAssignment]) -> None:
    entries = {f"key {n}": n for n in range(300)}
    left: list[StateRef] = []
    for window, deal in enumerate(deals):
        after, found = [], {}
        for partition in range(deal.partitions):
            states, operator = task(tmp_path, window, left, partition, deal)
            mine = {k: n for k, n in entries.items() if deal.of_group(group_of(k)) == partition}
            if not left:
                operator.totals.update(mine)
            assert operator.totals == mine
            found.update(operator.totals)
            after.append(states.save()["keeps"])
        assert found == entries
        left = after
        swept(LocalStore(str(tmp_path)), window, {"keeps": left})
        assert len(list((tmp_path / "keyed-state" / "state").iterdir())) == deal.partitions


def written(run: Path) -> int:
    return sum(path.stat().st_size for path in (run / "keyed-state" / "state").iterdir())


@pytest.mark.parametrize("keys", [20_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_a_window_writes_what_it_has_changed(tmp_path: Path, keys: int) -> None:
    """At most five times the bytes of the changed keys, over many windows."""
    cache = MapCache()
    states, operator = task(tmp_path, 0, [], cache=cache)
    operator.totals.update({f"key {n:07d}": n for n in range(keys)})
    left = [states.save()["keeps"]]
    changed = made = 0
    windows, each = 60, keys // 500
    for window in range(1, windows + 1):
        states, operator = task(tmp_path, window, left, cache=cache)
        for n in range(each):
            key = f"key {(window * 7919 + n * 31) % keys:07d}"
            operator.totals[key] += 1
            changed += len(f'"{key}",{operator.totals[key]},')
        before = written(tmp_path)
        left = [states.save()["keeps"]]
        made += written(tmp_path) - before
        swept(LocalStore(str(tmp_path)), window, {"keeps": left})
    assert made <= 5 * changed


def test_the_pieces_of_a_large_window_stay_until_others_replace_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "Policy", partial(Policy, piece=50_000))
    cache, left, entries = MapCache(), list[StateRef](), dict[str, int]()
    for window, (count, in_pieces) in enumerate(
        [(5_000, True), (10, False), (5_000, True), (5_000, True), (0, False), (10, False)]
    ):
        for attempt in (0, 1):  # of which the first was not decided
            states, operator = task(tmp_path, window, left, cache=cache if window % 2 else None)
            assert operator.totals == entries
            operator.totals.update({f"key {number}": number + window + attempt for number in range(count)})
            after = [states.save()["keeps"]]
        entries, left = dict(operator.totals), after
        assert bool(left[0].pieces) is in_pieces
        swept(LocalStore(str(tmp_path)), window, {"keeps": left})
        newest = left[0].segment
        assert newest is not None
        needed = StateLog(LocalStore(str(tmp_path / "keyed-state")))
        needed.restore(newest, window)
        assert {f"state/{path.name}" for path in (tmp_path / "keyed-state" / "state").iterdir()} == needed.needed.keys()


@pytest.mark.parametrize("cache_home", ["cache", "file/folder"])
def test_segments_of_an_object_store_are_read_from_a_local_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_home: str
) -> None:
    class Bucket(MemoryStore):
        url = "s3://bucket/run"
        requests = 0

        def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes] | None:
            self.requests += len(ranges)
            return super().read_ranges(name, ranges)

    bucket = Bucket()
    monkeypatch.setattr(task_states, "open_store", lambda url, durable: bucket)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / cache_home))
    left: list[StateRef] = []
    for window in range(3):
        states, operator = task(tmp_path, window, left)
        assert len(operator.totals) == 1000 * window
        operator.totals.update({f"key {window} {number}": number for number in range(1000)})
        left = [states.save()["keeps"]]
    assert (bucket.requests == 0) is (cache_home == "cache")


def test_types_are_checked_before_they_are_kept(tmp_path: Path) -> None:
    states, operator = task(tmp_path, 0, [])
    wrong: Any = "one"
    operator.totals["a"] = wrong
    with pytest.raises(Exception, match="MapState\\[str, int\\]"):
        states.save()


def test_a_segment_that_partitions_share_goes_when_none_of_them_needs_it(tmp_path: Path) -> None:
    """Of many bytes, others than those that each partition would rather copy."""
    store, folder = LocalStore(str(tmp_path)), tmp_path / "keyed-state" / "state"
    entries = {f"{'key' * 300} {n}": n for n in range(300)}
    states, operator = task(tmp_path, 0, [])
    operator.totals.update(entries)
    left = [states.save()["keeps"]]
    assert left[0].segment is not None
    first, keys = folder.parent / left[0].segment.name, KeyAssignment(2)
    there = []
    for window in range(1, 14):
        after = []
        for partition in range(2):
            states, operator = task(tmp_path, window, left, partition, keys)
            assert operator.totals == {k: n for k, n in entries.items() if keys.of_group(group_of(k)) == partition}
            if window > 1 + 4 * partition:  # one of them changes later than the other
                for key in operator.totals:
                    operator.totals[key] += 1
                entries |= operator.totals
            after.append(states.save()["keeps"])
        left = after
        if window == 1:
            assert sum(path.stat().st_size for path in folder.glob("0000000001-*")) < first.stat().st_size / 50
        swept(store, window, {"keeps": left})
        there.append(first.exists())
    assert there[:5] == [True] * 5, "the second partition needs it"
    assert not there[-1]
    needed = set()
    for ref in left:
        log = StateLog(LocalStore(str(folder.parent)))
        log.restore(ref.segment, 13)
        needed |= log.needed.keys()
    assert {f"state/{path.name}" for path in folder.iterdir()} == needed
