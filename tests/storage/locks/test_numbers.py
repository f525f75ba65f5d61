from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.storage import Holder, MemoryStore, Store, errors
from dagflow.storage.locks.numbers import NumberedLock
from dagflow.testing import FakeClock
from dagflow.testing.stores import CountingStore
from tests.tiers import examples

LEASE = 60.0


def launch_on(host: str, **fields: Any) -> Holder:
    """Return a holder on another host, which cannot be observed from here."""
    me = Holder.this_process(now=0.0, who=f"the launch on {host}", lease=LEASE, token=f"token of {host}")
    return attrs.evolve(me, host=host, **fields)


def lock_on(store: Store, clock: FakeClock | None = None, **options: Any) -> NumberedLock:
    clock = clock or FakeClock()
    return NumberedLock("run", store, lease=LEASE, clock=clock.monotonic, sleep=options.pop("sleep", clock.sleep), **options)


def held(store: Store, host: str = "a", clock: FakeClock | None = None) -> NumberedLock:
    lock = lock_on(store, clock)
    lock.acquire(launch_on(host))
    return lock


# ---------------------------------------------------------------------------------------------------------- who may follow


def test_a_lease_that_is_not_renewed_ends_by_the_clock_of_the_launch_that_waits():
    store, clock, awaited = MemoryStore(), FakeClock(now=5.0), []
    held(store, "a", FakeClock(now=2_000_000_000.0))
    lock = lock_on(store, clock, waiting=awaited.append)
    dead = lock.acquire(launch_on("b"))
    assert dead.host == "a"
    assert awaited == [dead]
    assert clock.monotonic() == pytest.approx(LEASE)


def test_the_lease_of_the_holder_counts_not_that_of_the_launch_that_waits():
    store, clock = MemoryStore(), FakeClock()
    lock_on(store).acquire(launch_on("a", lease=5.0))
    lock_on(store, clock).acquire(launch_on("b"))
    assert clock.monotonic() == pytest.approx(5.0)


def test_a_holder_that_renews_is_alive_and_the_other_launch_is_refused_at_once():
    store, clock = MemoryStore(), FakeClock()
    first = held(store)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if clock.monotonic() >= LEASE / 3:
            first.renew()

    with pytest.raises(errors.FolderInUse, match=r"on a since .* \(the launch on a\)") as caught:
        lock_on(store, clock, sleep=sleep).acquire(launch_on("b"))
    assert caught.value.remove is None
    assert clock.monotonic() < LEASE / 2
    first.confirm()


def test_a_holder_that_releases_is_followed_at_once():
    store, clock = MemoryStore(), FakeClock()
    first = held(store)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        first.release()

    second = lock_on(store, clock, sleep=sleep)
    assert second.acquire(launch_on("b")) is None
    second.confirm()
    assert clock.monotonic() <= LEASE / 10


def test_of_two_that_wait_one_follows_and_the_other_waits_for_that_one():
    store, clock = MemoryStore(), FakeClock()
    held(store)
    awaited: list[str] = []

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if clock.monotonic() >= LEASE and "b" not in awaited:
            lock_on(store).acquire(launch_on("b"))

    lock_on(store, clock, sleep=sleep, waiting=lambda holder: awaited.append(holder.host)).acquire(launch_on("c"))
    assert awaited == ["a", "b"]


def test_a_store_that_is_busy_for_a_moment_does_not_end_the_wait():
    store = CountingStore()
    held(store.inner)
    answers = [OSError(16, "busy"), OSError(16, "busy")]

    def before(call: str, name: str) -> None:
        if call == "read" and answers:
            raise answers.pop()

    def fail_from_now_on(holder: Holder) -> None:
        store.before = before

    assert lock_on(store, waiting=fail_from_now_on).acquire(launch_on("b")).host == "a"
    assert not answers


def test_two_that_find_the_same_dead_holder_do_not_both_succeed_it():
    me = Holder.this_process(now=0.0)
    for _ in range(20):
        store = MemoryStore()
        store.create("_lock/0000000001", attrs.evolve(me, born="1").to_bytes())
        barrier = threading.Barrier(4)

        def run(number: int, store: MemoryStore = store, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait()
            try:
                return NumberedLock("run", store).acquire(attrs.evolve(me, token=str(number))) is not None
            except errors.FolderInUse:
                return False

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(run, range(4))) == 1


# ------------------------------------------------------------------------------------------------- a holder that was paused


def test_a_holder_that_was_followed_can_do_nothing_more():
    store, clock = MemoryStore(), FakeClock()
    first = held(store, "a", clock)
    first.confirm()
    second = held(store, "b", FakeClock())
    first.check()  # nothing tells it so far: no time has passed for it
    with pytest.raises(errors.LeaseLost, match="on b took over since"):
        first.confirm()
    with pytest.raises(errors.LeaseLost):
        first.renew()
    first.release()
    second.confirm()
    second.renew()
    assert "b" in store.read(store.names()[-1]).decode()


def test_a_renewal_that_comes_too_late_fails():
    store = MemoryStore()
    first = held(store)
    second = held(store, "b")
    with pytest.raises(errors.LeaseLost):
        first.renew()
    second.confirm()


def test_a_renewal_under_a_number_that_was_removed_is_known_and_leaves_nothing():
    store = MemoryStore()
    first = held(store)
    second = held(store, "b")
    for _ in range(5):
        second.renew()
    before = store.names()
    assert "_lock/0000000002" not in before
    with pytest.raises(errors.LeaseLost):
        first.renew()
    assert store.names() == before
    second.confirm()


def test_check_reads_once_half_a_lease_has_passed_without_a_renewal():
    store, clock = CountingStore(), FakeClock()
    first = held(store, "a", clock)
    first.check()
    store.reset()
    for _ in range(10):
        clock.advance(LEASE / 3)
        first.renew()
        first.check()
    assert store.counts["read"] == 10, "the renewals"
    clock.advance(LEASE / 2 + 1)
    held(store.inner, "b")
    with pytest.raises(errors.LeaseLost):
        first.check()


def test_a_launch_that_was_paused_while_it_took_its_number():
    store = MemoryStore()
    held(store, "a").release()
    paused = held(store, "b")  # nothing is removed yet: it has found a lock that was released
    other = held(store, "c")
    with pytest.raises(errors.LeaseLost):
        paused.check()
    other.confirm()


def test_a_number_that_is_free_because_it_was_cleared_away_is_not_taken_for_the_newest():
    store = MemoryStore()
    lists = [["_lock/0000000003"]]  # an old list: since then 4 to 8 came, and 3 to 7 went
    real = store.names

    def names(prefix: str = "") -> list[str]:
        return lists.pop() if lists else real(prefix)

    store.create("_lock/0000000008", Holder.this_process(now=0.0, who="me").to_bytes())
    store.names = names  # type: ignore[method-assign]
    with pytest.raises(errors.FolderInUse):
        lock_on(store).acquire(launch_on("b"))
    assert real() == ["_lock/0000000008"]


def test_a_listing_that_lacks_the_newest_numbers():
    store = MemoryStore()
    real = store.names
    held(store, "a").release()
    held(store, "b").release()
    store.names = lambda prefix="": real(prefix)[:1]  # type: ignore[method-assign]
    lock = held(store, "c")
    lock.confirm()
    assert lock.number == 5


def test_a_listing_that_lacks_the_release_of_a_holder_that_lives_on():
    store = MemoryStore()
    NumberedLock("run", store).acquire(Holder.this_process(now=0.0, who="me"))
    store.create("_lock/0000000002", b"done\n")
    real = store.names
    store.names = lambda prefix="": real(prefix)[:1]  # type: ignore[method-assign]
    assert held(store, "b").number == 3


def test_a_listing_without_numbers_does_not_let_the_first_number_be_taken_again():
    store, clock = MemoryStore(), FakeClock()
    lock = held(store, "a")
    lock.renew()
    lock.renew()
    real = store.names
    assert real() == ["_lock/0000000000", "_lock/0000000002", "_lock/0000000003"]
    lists: list[list[str]] = [["_lock/0000000000"], []]  # from before the first number, and from between
    store.names = lambda prefix="": lists.pop() if lists else real(prefix)  # type: ignore[method-assign]
    clock_of_b = FakeClock()

    def renew_meanwhile(seconds: float) -> None:
        clock_of_b.sleep(seconds)
        if not lists:
            lock.renew()

    with pytest.raises(errors.FolderInUse):
        lock_on(store, clock_of_b, sleep=renew_meanwhile).acquire(launch_on("b"))
    lock.confirm()
    store.names = lambda prefix="": []  # type: ignore[method-assign]
    with pytest.raises(errors.StorageBusy):
        lock_on(store, clock).acquire(launch_on("c"))
    lock.confirm()


def test_a_listing_that_stays_old_is_refused_in_the_end():
    store, clock = MemoryStore(), FakeClock()
    store.names = lambda prefix="": ["_lock/0000000003"]  # type: ignore[method-assign]
    with pytest.raises(errors.StorageBusy, match="its listings show records that are no longer there"):
        lock_on(store, clock).acquire(launch_on("b"))


def test_a_takeover_that_fails_half_way_leaves_the_old_holder_in_place():
    def fail(call: str, name: str) -> None:
        if call == "discard" and not name.endswith("2"):
            raise OSError(5, "Input/output error")

    store = CountingStore(before=fail)
    first = held(store)
    with pytest.raises(OSError, match="Input/output error"):
        held(store, "b")
    first.confirm()
    first.renew()


def test_an_answer_that_was_lost_does_not_lose_the_lock():
    lost = [True]

    def lose(call: str, name: str) -> None:
        if call == "create" and name.endswith("2") and lost:
            lost.clear()
            raise errors.OutcomeUnknown(url=name, reason="the connection was reset")

    store = CountingStore(after=lose)
    lock = held(store)
    with pytest.raises(errors.OutcomeUnknown):
        lock.renew()
    lock.renew()
    lock.confirm()
    assert lock.number == 2


def test_the_reason_of_renewals_that_fail_is_told(monkeypatch: pytest.MonkeyPatch):
    failing = threading.Event()

    def fail(call: str, name: str) -> None:
        if failing.is_set() and call == "create":
            failed.set()
            raise PermissionError("the credentials have expired")

    failed = threading.Event()
    store = CountingStore(before=fail)
    lock = NumberedLock("run", store, lease=0.01)
    lock.acquire(launch_on("a", lease=0.01))
    failing.set()
    lock.keep_renewing()
    assert failed.wait(60)
    held(store.inner, "b")
    with pytest.raises(errors.LeaseLost, match="its last renewal failed: PermissionError: the credentials have expired"):
        lock.confirm()
    lock.release()


def test_a_thread_renews_until_the_lock_is_released():
    store, renewed = CountingStore(), threading.Event()
    lock = NumberedLock("run", store, lease=0.01)
    lock.acquire(launch_on("a", lease=0.01))

    def note(call: str, name: str) -> None:
        if call == "create" and lock.number >= 3:
            renewed.set()

    store.after = note
    lock.keep_renewing()
    assert renewed.wait(60)
    lock.release()
    names = store.inner.names()
    assert store.inner.read(names[-1]) == b"done\n"
    lock.renew()  # as the thread may call it once more
    assert store.inner.names() == names


# ------------------------------------------------------------------------------------------------------------- its price


def test_the_calls_of_the_store_are_few():
    store, clock = CountingStore(), FakeClock()
    held(store, "a", clock).release()
    store.reset()
    lock = held(store, "b", clock)
    assert store.counts == {"names": 1, "read": 1, "create": 1}
    store.reset()
    lock.check()
    assert store.counts == {"read": 1}
    for _ in range(100):
        lock.check()
    assert store.counts == {"read": 1}
    store.reset()
    lock.confirm()
    assert store.counts == {"read": 1}
    store.reset()
    lock.renew()
    assert store.counts == {"create": 1, "read": 1, "discard": 1}
    store.reset()
    lock.release()
    assert store.counts == {"create": 1}


def test_numbers_do_not_pile_up():
    store = MemoryStore()
    for _ in range(50):
        lock = held(store)
        lock.release()
    assert len(store.names()) <= 12
    lock = held(store)
    for _ in range(50):
        lock.renew()
    assert len(store.names()) <= 12


# ---------------------------------------------------------------------------------------------- any order of all the steps


class Turns:
    """A store whose calls wait for their turn, and a clock on which all leases may end at any time."""

    def __init__(self, store: MemoryStore) -> None:
        self.inner, self.url = store, store.url
        self.mine, self.theirs = threading.Semaphore(0), threading.Semaphore(0)
        self.ended = False
        self.time = 0.0

    def take(self) -> None:
        self.theirs.release()
        self.mine.acquire()

    def create(self, name: str, data: bytes | memoryview) -> bool:
        self.take()
        return self.inner.create(name, data)

    def read(self, name: str) -> bytes | None:
        self.take()
        return self.inner.read(name)

    def names(self, prefix: str = "") -> list[str]:
        self.take()
        return self.inner.names(prefix)

    def discard(self, name: str) -> None:
        self.take()
        self.inner.discard(name)

    def sleep(self, seconds: float) -> None:
        self.take()
        self.time += LEASE / 2

    def monotonic(self) -> float:
        return self.time


@attrs.define(eq=False)
class Launches:
    """Launches on different hosts, of which each holds a lock for some steps. Notes the order in which they were sure of it."""

    store: MemoryStore = attrs.field(factory=MemoryStore)
    sure: list[str] = attrs.field(factory=list)
    wrong: list[str] = attrs.field(factory=list)

    def live(self, host: str, turns: Turns, steps: str) -> None:
        lock = NumberedLock("run", turns, lease=LEASE, clock=turns.monotonic, sleep=turns.sleep)
        try:
            lock.acquire(launch_on(host))
            for step in ["confirm", *({"c": "confirm", "r": "renew"}[letter] for letter in steps)]:
                before = len(self.sure)
                getattr(lock, step)()
                if host not in self.sure:
                    self.sure.append(host)
                elif self.sure[:before][-1:] != [host]:
                    self.wrong.append(f"{host} was sure after {self.sure[:before]}")
            lock.release()
        except (errors.FolderInUse, errors.LeaseLost, errors.StorageBusy):
            pass
        finally:
            turns.ended = True
            turns.theirs.release()


@settings(max_examples=examples(500))
@given(
    st.lists(st.text("cr", max_size=6), min_size=2, max_size=4),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, 2, 3, 5, 40])), min_size=4, max_size=30),
)
def test_no_launch_is_sure_of_the_lock_once_another_one_was(lives: list[str], order: list[tuple[int, int]]) -> None:
    launches = Launches()
    turns = [Turns(launches.store) for _ in lives]
    threads = [
        threading.Thread(target=launches.live, args=(f"host {number}", each, steps), daemon=True)
        for number, (each, steps) in enumerate(zip(turns, lives, strict=True))
    ]
    for thread, each in zip(threads, turns, strict=True):
        thread.start()
        each.theirs.acquire()

    def go(number: int, calls: int) -> None:
        for _ in range(calls):
            if not turns[number].ended:
                turns[number].mine.release()
                turns[number].theirs.acquire()

    for number, calls in order:
        go(number % len(lives), calls)
    for number in range(len(lives)):
        go(number, 10_000)
    for thread in threads:
        thread.join()
    assert launches.wrong == []
    assert launches.sure, "one of them has had the lock"
