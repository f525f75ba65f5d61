"""Attempts, zombies, and crashes at every step: what the accepted reports name is the whole, each part once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dagflow.errors import RecordRefused
from dagflow.runtime.rebalancing import failpoints
from dagflow.runtime.rebalancing.ownership_log import (
    ASK,
    GRANT,
    KINDS,
    REPORT,
    START,
    WITHDRAW,
    AttemptFenced,
    Entry,
    LogState,
    OwnershipLog,
    StealRequest,
    TaskLog,
)
from dagflow.runtime.run_folder.layout import task_name
from dagflow.runtime.stage.parts import Part, part_of, uncovered
from dagflow.storage import MemoryStore, seal
from tests.tiers import examples

AREA = "claims/0000000000.r.s0"
SIZE = 64  # of each item
DEALT = ((0, 1, 2), (), (3,))  # by partition: imbalance, so that there is something to ask for from the start


class Crash(BaseException):
    """The attempt is dead."""


class RacyStore(MemoryStore):
    """A store in which another writer may act just before a record is created."""

    before_create: Callable[[], None] | None = None

    def create(self, name: str, data: bytes | memoryview) -> bool:
        action, self.before_create = self.before_create, None
        if action is not None:
            action()
        return super().create(name, data)


class Attempt:
    """A task at work, without threads: the queue, what is done, and the question that it waits for."""

    def __init__(self, store: MemoryStore, partition: int, partitions: int, name: str) -> None:
        dealt = {number: ["op", "port", number] for number in DEALT[partition]}
        self.claims = OwnershipLog(store, AREA, partition=partition, partitions=partitions, attempt=name, assigned=dealt)
        self.queue: list[Part] = []
        self.done: list[Part] = []
        self.asked: StealRequest | None = None
        self.is_dead = False
        self.is_busy = False

    def do(self, action: Callable[[], Any]) -> None:
        """Does something as this attempt; it may die of it. One thing at a time."""
        if self.is_dead or self.is_busy:
            return
        self.is_busy = True
        try:
            action()
        except (Crash, AttemptFenced):
            self.is_dead = True
        finally:
            self.is_busy = False

    def begin(self, *, quietly: bool = False) -> None:
        self.queue = self.claims.begin(quietly=quietly)
        if self.claims.own.state.report is not None:
            self.is_dead = True

    def announce(self) -> None:
        self.claims.announce()

    def consume(self) -> None:
        if self.queue:
            self.done.append(self.queue.pop(0))

    def ask(self, partition: int) -> None:
        if self.asked is None and not self.queue:
            self.asked = self.claims.ask(partition)

    def look(self) -> None:
        if self.asked is not None and (parts := self.claims.answer(self.asked)) is not None:
            self.asked = None
            self.queue += parts

    def withdraw(self) -> None:
        if self.asked is not None:
            parts = self.claims.withdraw(self.asked)
            self.asked = None
            self.queue += parts

    def respond(self, cut: int | None) -> None:
        for ask in self.claims.requests():
            if not self.queue:
                self.claims.refuse(ask, "nothing left")
                continue
            part = self.queue.pop()
            if cut is not None and (part.start or 0) < cut < (part.stop or SIZE):
                self.queue.append(Part(part.number, part.start, cut))
                part = Part(part.number, cut, part.stop)
            failpoints.hit("narrowed")
            if not self.claims.grant(ask, [part], 1):
                self.queue.append(part)

    def finish(self) -> None:
        self.withdraw()
        self.done += self.queue
        self.queue.clear()
        late = self.claims.recover()
        self.done += late
        self.claims.report([list(part) for part in self.done])
        self.is_dead = True


class SharingMachine(RuleBasedStateMachine):
    """Up to three partitions; `zombies`: a new attempt may begin while the one before lives."""

    zombies = False

    def __init__(self) -> None:
        super().__init__()
        self.store = RacyStore()
        self.attempts: list[Attempt] = []
        self.names = 0

    @initialize(quietly=st.lists(st.booleans(), min_size=2, max_size=3))
    def start(self, quietly: list[bool]) -> None:
        self.partitions = len(quietly)
        for partition, quiet in enumerate(quietly):
            self.begin_in(partition, quietly=quiet)

    def begin_in(self, partition: int, *, quietly: bool = False) -> Attempt:
        self.names += 1
        attempt = Attempt(self.store, partition, self.partitions, f"a{self.names}")
        self.attempts.append(attempt)
        attempt.do(lambda: attempt.begin(quietly=quietly))
        return attempt

    def living(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if not attempt.is_dead and not attempt.is_busy]

    def action(self, which: int, what: str, other: int, cut: int | None) -> None:
        living = self.living()
        if not living:
            return
        attempt = living[which % len(living)]
        if what == "ask":
            partition = other % self.partitions
            if partition != attempt.claims.partition:
                attempt.do(lambda: attempt.ask(partition))
        elif what == "respond":
            attempt.do(lambda: attempt.respond(cut))
        else:
            attempt.do(getattr(attempt, what))

    what = st.sampled_from(["consume", "ask", "ask", "look", "withdraw", "respond", "respond", "announce", "finish"])
    cut = st.none() | st.integers(1, SIZE - 1)
    one_action = st.tuples(st.integers(0, 5), what, st.integers(0, 2), cut)

    @rule(which=st.integers(0, 5), what=what, other=st.integers(0, 2), cut=cut)
    def act(self, which: int, what: str, other: int, cut: int | None) -> None:
        self.action(which, what, other, cut)

    @rule(one=one_action, two=one_action)
    def race(self, one: Any, two: Any) -> None:
        """The second happens within the first, just before that publishes its entry."""
        self.store.before_create = lambda: self.action(*two)
        self.action(*one)
        self.store.before_create = None

    @rule(step=st.sampled_from(failpoints.NAMES), which=st.integers(0, 5), what=what, other=st.integers(0, 2), cut=cut)
    def crash_at(self, step: str, which: int, what: str, other: int, cut: int | None) -> None:
        def die(at: str) -> None:
            if at == step:
                raise Crash

        with hooked(die):
            self.action(which, what, other, cut)

    @rule(partition=st.integers(0, 2), step=st.none() | st.sampled_from(failpoints.NAMES), quietly=st.booleans())
    def begin_again(self, partition: int, step: str | None, quietly: bool) -> None:
        partition %= self.partitions
        mine = [a for a in self.living() if a.claims.partition == partition]
        if mine and not self.zombies:
            mine[0].is_dead = True  # killed

        def die(at: str) -> None:
            if at == step:
                raise Crash

        with hooked(die):
            self.begin_in(partition, quietly=quietly)

    @invariant()
    def nothing_is_read_twice(self) -> None:
        if hasattr(self, "partitions"):
            problems = uncovered(self.reported(), sum(map(len, DEALT[: self.partitions])))
            assert not [p for p in problems if "twice" in p or "no such" in p], problems

    def reported(self) -> list[Part]:
        found = []
        for partition in range(self.partitions):
            report = TaskLog(self.store, task_name(AREA, partition)).catch_up().report
            found += [part_of(part) for part in report or ()]
        return found

    def teardown(self) -> None:
        if not hasattr(self, "partitions"):
            return
        for attempt in self.living():
            if not self.zombies:
                attempt.is_dead = True
        for partition in range(self.partitions):
            attempt = self.begin_in(partition)
            attempt.do(attempt.finish)
        for attempt in self.living():
            attempt.do(attempt.finish)  # zombies: nothing of them counts
        problems = uncovered(self.reported(), sum(map(len, DEALT[: self.partitions])))
        assert not [p for p in problems if "twice" in p], problems
        if not self.zombies:
            assert problems == []


class hooked:  # noqa: N801  # used like a function
    """While this lasts, something happens at the steps."""

    def __init__(self, hook: Callable[[str], None]) -> None:
        self._hook = hook

    def __enter__(self) -> None:
        failpoints.hook = self._hook

    def __exit__(self, *exception: object) -> None:
        failpoints.hook = failpoints.nothing


class ZombieMachine(SharingMachine):
    zombies = True


_settings = settings(
    max_examples=examples(200),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestSharing = SharingMachine.TestCase
TestSharing.settings = _settings
TestZombies = ZombieMachine.TestCase
TestZombies.settings = _settings


def test_entries_come_back_from_their_records() -> None:
    entry = Entry(kind=GRANT, attempt="7", ask=3, parts=(Part(1), Part(2, 5, None)), items={1: ["a", "b", {}], 2: 0}, size=9)
    assert Entry.of(entry.to_bytes()) == entry
    assert [Entry.of(Entry(kind=kind, attempt="x").to_bytes()).kind for kind in KINDS] == list(KINDS)


def test_nothing_of_a_fenced_attempt_or_behind_the_report_counts() -> None:
    state = LogState()
    entries = [
        Entry(kind=START, attempt="1"),
        Entry(kind=ASK, attempt="x", asker=1),
        Entry(kind=START, attempt="2"),
        Entry(kind=GRANT, attempt="1", ask=1, parts=(Part(0),)),
        Entry(kind=REPORT, attempt="1", report="old"),
        Entry(kind=WITHDRAW, attempt="x", ask=1),
        Entry(kind=GRANT, attempt="2", ask=1, parts=(Part(0),)),
        Entry(kind=REPORT, attempt="2", report="new"),
        Entry(kind=START, attempt="3"),
    ]
    for entry in entries:
        state.add(entry)
    assert (state.grants, state.report, state.attempts) == ([], "new", ["1", "2"])
    assert state.answers[1].kind == WITHDRAW


def test_a_task_that_has_reported_is_not_asked_and_has_nothing_to_do() -> None:
    store = MemoryStore()
    one, other = Attempt(store, 0, 2, "a"), Attempt(store, 1, 2, "b")
    one.begin()
    other.begin()
    assert other.claims.ask(0) is not None
    one.finish()
    assert other.claims.answer(StealRequest(0, 1)) == []
    assert other.claims.ask(0) is None
    again = Attempt(store, 0, 2, "c")
    again.begin()
    assert again.queue == []
    assert again.claims.own.state.report is not None


def test_an_attempt_that_has_begun_quietly_writes_its_report_only() -> None:
    store = MemoryStore()
    one, other = Attempt(store, 0, 2, "a"), Attempt(store, 1, 2, "b")
    one.begin(quietly=True)
    other.begin(quietly=True)
    assert store.names() == []
    assert other.claims.ask(0) is None  # no other task knows that it has begun
    one.claims.check()
    one.finish()
    assert store.names() == [f"{task_name(AREA, 0)}.000000", f"{task_name(AREA, 1)}.000000"]  # who asks begins aloud
    again = Attempt(store, 0, 2, "c")
    again.begin(quietly=True)
    assert (again.queue, again.claims.own.state.report) == ([], [[number, None, None, False] for number in DEALT[0]])


@pytest.mark.parametrize("quietly", [True, False])
def test_of_two_attempts_of_which_one_has_begun_quietly_the_first_to_be_known_counts(quietly: bool) -> None:
    store = MemoryStore()
    one, other = Attempt(store, 0, 2, "a"), Attempt(store, 0, 2, "b")
    one.begin(quietly=True)
    other.begin(quietly=quietly)
    other.claims.announce()
    for action in (one.claims.announce, one.claims.check, lambda: one.claims.report([]), lambda: one.claims.ask(1)):
        with pytest.raises(AttemptFenced):
            action()
    other.claims.report([])


def test_a_task_that_has_not_begun_is_not_asked() -> None:
    store = MemoryStore()
    one = Attempt(store, 0, 2, "a")
    one.begin()
    assert one.claims.ask(1) is None


def test_a_fenced_attempt_stops() -> None:
    store = MemoryStore()
    one = Attempt(store, 0, 2, "a")
    one.begin()
    Attempt(store, 0, 2, "b").begin()
    for action in (one.claims.check, one.claims.requests, lambda: one.claims.report([]), lambda: one.claims.ask(1)):
        with pytest.raises(AttemptFenced):
            action()


@pytest.mark.parametrize("entry", [b"", b"{}", seal(f"{AREA}-0001.000000", Entry(kind=START, attempt="b").to_bytes())])
def test_an_entry_that_is_damaged_or_of_another_log_is_refused(entry: bytes) -> None:
    store = MemoryStore()
    log = TaskLog(store, task_name(AREA, 0))
    assert log.append(Entry(kind=START, attempt="a"))
    store.discard(f"{log.name}.000000")
    store.create(f"{log.name}.000000", entry)
    with pytest.raises(RecordRefused, match=f"{log.name}.000000 is .*\n.*help: launch again"):
        TaskLog(store, log.name).catch_up()
    with pytest.raises(RecordRefused):
        TaskLog(store, log.name).append(Entry(kind=START, attempt="b"))
