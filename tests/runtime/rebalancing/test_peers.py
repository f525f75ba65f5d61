"""The view that an idle task has of another one."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dagflow.runtime.rebalancing.ownership_log import OwnershipLog
from dagflow.runtime.rebalancing.peers import PeerView, gauge_of
from dagflow.runtime.rebalancing.policy import choose
from dagflow.runtime.rebalancing.stealing import StealingWork
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.stage.program import TaskSpec, Work
from dagflow.storage import MemoryStore
from dagflow.testing.stores import CountingStore

AREA = "claims/0000000000.r.s0"


@pytest.fixture
def two(tmp_path: Path) -> tuple[OwnershipLog, PeerView]:
    """A task at work, and what the idle one sees."""
    (tmp_path / "claims").mkdir()
    store = MemoryStore()
    works, idle = (OwnershipLog(store, AREA, partition=n, partitions=2, attempt=f"a{n}", assigned={}) for n in range(2))
    works.begin()
    idle.begin()
    return works, PeerView(store, str(tmp_path), AREA, "wanted", idle, 2)


def tell(folder: Path, **told: Any) -> None:
    gauge_of(str(folder), AREA, 0).write(json.dumps({"by": "a0", "left": 3.0, "key": "0:0"} | told).encode())


def test_a_task_that_has_answered_is_known_by_its_record(tmp_path: Path, two: tuple[OwnershipLog, PeerView]) -> None:
    _, others = two
    tell(tmp_path, key="0:10")
    assert [(each.state, each.remaining, each.asked) for each in others.look(0.0)] == [("working", 3.0, False)]
    others.asked(0)
    assert others.look(0.0)[0].asked
    tell(tmp_path, key="0:10", left=2.0)
    assert others.look(0.0)[0].asked
    tell(tmp_path, key="0:11")
    assert not others.look(0.0)[0].asked


def test_who_has_refused_somebody_during_a_record_is_asked_by_nobody_else(tmp_path: Path) -> None:
    """A task inside a slow record that cannot be cut refuses one of the others."""
    (tmp_path / "claims").mkdir()
    store = MemoryStore()
    items: dict[int, Any] = dict.fromkeys(range(3), ("lines", "in", None))
    works, asker, idle = (
        OwnershipLog(store, AREA, partition=n, partitions=3, attempt=f"a{n}", assigned={n: items[n]}) for n in range(3)
    )
    asker.begin()
    idle.begin()
    peers = [PeerView(store, str(tmp_path), AREA, "wanted", each, 3) for each in (works, idle)]
    flow: Any = SimpleNamespace(nodes={"lines": SimpleNamespace(operator=None)}, decoded=lambda item: item)
    with stealing(works, peers[0], tmp_path, room=3) as work:
        reading: Any = work.items(flow)
        next(reading)
        until(lambda: peers[1].look(0.0)[0].remaining is not None)
        assert not peers[1].look(0.0)[0].asked
        asked = asker.ask(0)
        assert asked is not None
        until(lambda: asker.answer(asked) is not None)
        assert asker.refusal(asked) == "not worth it"
        until(lambda: peers[1].look(0.0)[0].asked)
        reading.close()


def stealing(ownership: OwnershipLog, peers: PeerView, folder: Path, *, room: int, **more: Any) -> StealingWork:
    work = Work(numbers=tuple(ownership.items), items=tuple(ownership.items.values()), form="steal", room=room)
    spec = TaskSpec(window=0, epoch="r", stage="s0", partition=ownership.partition, partitions=2, work=work)
    gauge = gauge_of(str(folder), AREA, ownership.partition)
    return StealingWork(spec, WindowLog(MemoryStore()), ownership, peers, gauge, **more)


def until(happens: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_one_look_shows_that_others_wait_for_a_slot(tmp_path: Path) -> None:
    store = CountingStore()
    claims = [OwnershipLog(store, AREA, partition=n, partitions=8, attempt=f"a{n}", assigned={}) for n in range(8)]
    for each in claims[:3]:
        each.begin()
    others = PeerView(store, str(tmp_path), AREA, "wanted", claims[0], 8)
    before = store.counts["read"]
    assert others.wait_for_slots(room=2)
    assert store.counts["read"] == before + 1
    assert not others.wait_for_slots(room=8)  # there are slots for all: the last one starts
    claims[7].begin()
    assert not others.wait_for_slots(room=2)


@pytest.mark.parametrize("room", [1, 2, 4])  # windows beside may have ended: there may be more slots than a task knows
def test_when_the_last_one_has_begun_those_that_nobody_knows_of_work(tmp_path: Path, room: int) -> None:
    store = CountingStore()
    claims = [OwnershipLog(store, AREA, partition=n, partitions=4, attempt=f"a{n}", assigned={}) for n in range(4)]
    others = PeerView(store, str(tmp_path), AREA, "wanted", claims[1], 4)
    for each in claims[:3]:
        each.begin(quietly=True)
    claims[0].report({})
    assert [reader.state for reader in others.look(0.0)] == ["done", "waiting", "waiting"]
    claims[3].begin()
    assert not others.wait_for_slots(room)
    found = others.look(0.0)
    assert [reader.state for reader in found] == ["done", "working", "working"]
    assert choose(found, room=room, idle=0.0).action == "wait"
    assert others.look(0.0)[1].watched > 0  # not for ever


@pytest.mark.parametrize(("again", "partition", "written"), [(False, 0, 0), (False, 1, 1), (True, 0, 1)])
def test_the_last_task_and_one_that_is_begun_again_do_not_begin_quietly(
    tmp_path: Path, again: bool, partition: int, written: int
) -> None:
    store = CountingStore()
    claims = OwnershipLog(store, AREA, partition=partition, partitions=2, attempt="a", assigned={})
    others = PeerView(store, str(tmp_path), AREA, "wanted", claims, 2)
    with stealing(claims, others, tmp_path, room=2, again=again):
        assert store.counts["create"] == written


@pytest.mark.parametrize(("quietly", "costs"), [(False, (0, 2)), (True, (1, 1))])
def test_an_attempt_that_nobody_asks_reads_and_writes_next_to_nothing(quietly: bool, costs: tuple[int, int]) -> None:
    store = CountingStore()
    claims = OwnershipLog(store, AREA, partition=0, partitions=8, attempt="a0", assigned={})
    claims.begin(quietly=quietly)
    claims.report({})
    assert (store.counts["read"], store.counts["create"]) == costs


def test_what_an_attempt_before_has_told_is_not_believed(tmp_path: Path, two: tuple[OwnershipLog, PeerView]) -> None:
    works, others = two
    tell(tmp_path, by="a0", left=5.0)
    assert others.look(0.0)[0].remaining == 5.0
    again = OwnershipLog(works._logs[0]._store, AREA, partition=0, partitions=2, attempt="a0 again", assigned={})
    again.begin()
    assert others.look(0.0)[0].remaining is None
    tell(tmp_path, by="a0 again", idle=True)
    assert others.look(0.0)[0].state == "idle"
    again.report({})
    assert others.look(0.0)[0].state == "done"
