from __future__ import annotations

import errno
import os
import tempfile
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.storage import LocalStore, MemoryStore, Store, errors, file_system, open_store, probe, store
from dagflow.testing.stores import CountingStore
from tests.tiers import examples

KINDS = ["durable", "quick", "memory", "fsspec", "counting", "without links"]


@contextmanager
def a_store(kind: str):
    """A new, empty store of each kind."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if kind == "memory":
            yield MemoryStore()
        elif kind == "counting":
            yield CountingStore()
        elif kind == "fsspec":
            url = f"memory://store-{uuid.uuid4().hex}"
            yield open_store(url)
            file_system(url).remove_tree(url)
        else:
            if kind == "without links":
                patch.setattr(os, "link", refuse_links)
            yield LocalStore(f"{folder}/run/log", durable=kind == "durable")


def refuse_links(source: str, target: str) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted", source, None, target)


@pytest.fixture(params=KINDS)
def any_store(request):
    with a_store(request.param) as made:
        yield made


# ------------------------------------------------------------------------------------------------ laws of every store


def test_the_first_record_of_a_name_stays(any_store):
    assert isinstance(any_store, Store)
    assert any_store.read("log/0") is None
    assert any_store.names() == []
    assert any_store.create("log/0", b"first")
    assert not any_store.create("log/0", b"second")
    assert any_store.read("log/0") == b"first"
    assert any_store.create("log/1", b"")
    assert any_store.read("log/1") == b""
    assert any_store.create("top", b"x" * 3_000_000)
    assert any_store.read("top") == b"x" * 3_000_000
    assert any_store.names() == ["log/0", "log/1", "top"]
    assert any_store.names("log/") == ["log/0", "log/1"]
    assert any_store.names("t") == ["top"]
    assert any_store.names("lo") == ["log/0", "log/1"]
    assert any_store.names("none/") == []
    any_store.discard("log/0")
    any_store.discard("log/0")
    any_store.discard("no/such")
    assert any_store.names() == ["log/1", "top"]
    assert any_store.create("log/0", b"again")
    any_store.discard_all(["log/0", "no/such", "log/1"])
    any_store.discard_all([])
    assert any_store.names() == ["top"]
    assert any_store.url


def test_every_store_passes_the_probe_and_keeps_nothing_of_it(any_store):
    probe(any_store)
    assert any_store.names() == []


def test_the_probe_removes_the_records_of_one_that_was_killed(any_store):
    for name in ("probe/0123456789abcdef.0", "probe/0123456789abcdef.2", "probe/mark"):
        any_store.create(name, b"first")
    probe(any_store)
    assert any_store.names() == ["probe/mark"]


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", ".", "..", "a/../b", ".hidden", "a/.b", "a\0b"])
def test_a_name_that_may_not_be(any_store, name):
    for call in (lambda: any_store.create(name, b""), lambda: any_store.read(name), lambda: any_store.discard(name)):
        with pytest.raises(ValueError, match="is not a valid name of a record"):
            call()


names = st.sampled_from(["a", "b/0", "b/1", "b/c/2", "bb", "ä ö", "b/[x]*?"])
operations = st.lists(
    st.one_of(
        st.tuples(st.just("create"), names, st.binary(max_size=5)),
        st.tuples(st.just("read"), names),
        st.tuples(st.just("discard"), names),
        st.tuples(st.just("names"), st.sampled_from(["", "a", "b", "b/", "b/c", "b/c/", "x/"])),
    ),
    max_size=30,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(40), deadline=None)
@given(operations=operations)
def test_a_store_behaves_like_a_dictionary_that_never_replaces(kind, operations):
    model: dict[str, bytes] = {}
    with a_store(kind) as tried:
        for call, name, *data in operations:
            answer = getattr(tried, call)(name, *data)
            if call == "create":
                assert answer is (name not in model)
                model.setdefault(name, data[0])
            elif call == "read":
                assert answer == model.get(name)
                if answer is None or len(answer) > 1:
                    parts = tried.read_ranges(name, [(0, 1), (1, 3), (1, len(answer or b"") + 9)])
                    assert parts == (None if answer is None else [answer[:1], answer[1:3], answer[1:]])
            elif call == "discard":
                model.pop(name, None)
            else:
                assert answer == sorted(known for known in model if known.startswith(name))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(10), deadline=None)
@given(writers=st.integers(2, 8), published=st.integers(1, 6), data=st.binary(max_size=20))
def test_of_many_threads_exactly_one_wins(kind, writers, published, data):
    with a_store(kind) as tried:
        barrier = threading.Barrier(writers)

        def run(number: int) -> list[tuple[bool, bytes | None]]:
            seen = []
            for name in range(published):
                barrier.wait()
                won = tried.create(f"claims/{name}", data + b"#%d" % number)
                seen.append((won, tried.read(f"claims/{name}")))
            return seen

        with ThreadPoolExecutor(writers) as pool:
            seen = list(pool.map(run, range(writers)))
        for name in range(published):
            winners = [number for number in range(writers) if seen[number][name][0]]
            assert len(winners) == 1
            assert {seen[number][name][1] for number in range(writers)} == {data + b"#%d" % winners[0]}


# ------------------------------------------------------------------------------------------------ doubles and the probe


def test_the_counting_store_counts_and_fails_when_told():
    def lose_the_answer(call: str, name: str) -> None:
        if (call, name) == ("create", "b"):
            raise TimeoutError

    counting = CountingStore(after=lose_the_answer)
    counting.create("a", b"1")
    with pytest.raises(TimeoutError):
        counting.create("b", b"2")
    assert counting.read("b") == b"2"
    assert counting.names() == ["a", "b"]
    assert dict(counting.counts) == {"create": 2, "read": 1, "names": 1}
    counting.reset()
    assert counting.calls == []
    counting.before = lose_the_answer
    counting.discard("a")
    counting.discard("b")
    with pytest.raises(TimeoutError):
        counting.create("b", b"2")
    assert counting.names() == []


class Careless(MemoryStore):
    """Ignores the condition."""

    def create(self, name: str, data: bytes | memoryview) -> bool:
        self._records[name] = bytes(data)
        return True


class LooksFirst(MemoryStore):
    """Looks, and writes then."""

    def create(self, name: str, data: bytes | memoryview) -> bool:
        if self.read(name) is not None:
            return False
        threading.Event().wait(0.002)
        self._records[name] = bytes(data)
        return True


class Blind(MemoryStore):
    def names(self, prefix: str = "") -> list[str]:
        return []


class Late(MemoryStore):
    """Lists what is new the third time only."""

    asked = 0

    def names(self, prefix: str = "") -> list[str]:
        self.asked += 1
        return super().names(prefix) if self.asked > 2 else []


def test_the_probe_waits_for_a_listing_that_is_old(monkeypatch):
    monkeypatch.setattr(store, "_PAUSE", 0.0)
    store.probe(Late())


class Broken(MemoryStore):
    def create(self, name: str, data: bytes | memoryview) -> bool:
        raise RuntimeError("no such bucket")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (Careless, "a second record of one name was not refused"),
        (LooksFirst, r"of 4 writers of one name, \d were told that they won"),
        (Blind, "is not listed"),
        (Broken, "the check of the store failed .RuntimeError: no such bucket"),
    ],
)
def test_the_probe_refuses_stores_that_cannot_publish(bad, why, monkeypatch):
    monkeypatch.setattr(store, "_PAUSE", 0.0)
    made = bad()
    with pytest.raises(errors.StoreRefused, match=why):
        store.probe(made)
    assert made._records == {}
