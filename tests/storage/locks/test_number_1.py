"""Number 1 beside number 0, and records that come back under a number that was there before."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from dagflow.storage import Holder, MemoryStore, Store, errors
from dagflow.storage.locks.numbers import NumberedLock
from dagflow.testing import FakeClock
from tests.storage.locks.test_numbers import LEASE, held, launch_on, lock_on


class OldListings:
    """A store whose listings are from before the numbers, as often as told; the process dies when it reads `dies_at`."""

    def __init__(self, store: Store, times: int, dies_at: str = "") -> None:
        self._store, self._times, self._dies_at = store, times, dies_at

    def names(self, prefix: str = "") -> list[str]:
        self._times -= 1
        return [] if self._times >= 0 else self._store.names(prefix)

    def read(self, name: str) -> bytes | None:
        if name == self._dies_at:
            raise SystemExit
        return self._store.read(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def with_number_1_of_a_dead_launch(monkeypatch: pytest.MonkeyPatch) -> tuple[MemoryStore, NumberedLock]:
    """Return a store that another launch holds, where a launch has died before it looked for number 0."""
    store = MemoryStore()
    lock = held(store, "a")
    for _ in range(3):
        lock.renew()
    with monkeypatch.context() as patch:
        patch.setattr(store, "discard", lambda name: None)  # a dead process removes nothing
        dead = attrs.evolve(Holder.this_process(now=0.0, lease=LEASE, token="dead"), born="1")
        with pytest.raises(SystemExit):
            lock_on(OldListings(store, 1, dies_at="_lock/0000000000")).acquire(dead)
    assert store.names() == [f"_lock/000000000{number}" for number in (0, 1, 3, 4)]
    return store, lock


def test_number_1_of_a_launch_that_died_before_it_looked_for_number_0_is_not_followed(monkeypatch: pytest.MonkeyPatch):
    store, lock = with_number_1_of_a_dead_launch(monkeypatch)
    other = lock_on(OldListings(store, 3))
    assert other.acquire(launch_on("c")) == launch_on("a")
    assert other.number == 5, "it waited for the lease of the launch that holds the folder"
    other.confirm()
    with pytest.raises(errors.LeaseLost):
        lock.confirm()


def test_number_1_of_a_launch_that_died_is_not_followed_by_one_whose_listing_ends_with_it(monkeypatch: pytest.MonkeyPatch):
    store, lock = with_number_1_of_a_dead_launch(monkeypatch)
    monkeypatch.setattr(store, "names", lambda prefix="": ["_lock/0000000000", "_lock/0000000001"])
    with pytest.raises(errors.StorageBusy):
        held(store, "c")
    assert store.read("_lock/0000000001") is None
    lock.confirm()
    lock.renew()


def test_number_1_of_a_launch_that_died_does_not_revive_the_first_holder():
    store = MemoryStore()
    first = held(store, "a")  # paused before its first check
    second = held(store, "b")
    second.renew()
    assert store.create("_lock/0000000001", launch_on("c").to_bytes())
    with pytest.raises(errors.LeaseLost):
        first.confirm()
    second.confirm()


def test_a_release_that_comes_too_late_leaves_nothing():
    store, clock = MemoryStore(), FakeClock()
    first = held(store, "a", clock)
    first.confirm()
    second = held(store, "b")
    for _ in range(5):
        second.renew()
    names = store.names()
    clock.advance(2 * LEASE)
    first.release()
    assert store.names() == names


def test_a_folder_whose_newest_record_was_removed_by_hand_says_which_one_is_left_to_remove():
    store = MemoryStore()
    store.create("_lock/0000000000", b"done\n")
    store.create("_lock/0000000007", b"damaged")
    for number in (7, 0):
        with pytest.raises(errors.FolderInUse, match=f"remove run/_lock/{number:010d} and launch again"):
            held(store, "a")
        store.discard(f"_lock/{number:010d}")
    assert held(store, "a").number == 1
