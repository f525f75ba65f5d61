"""The cache of segments: what it returns is what the store has, whatever happens to the cache."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.state import page_cache
from dagflow.state.page_cache import CachedStore, PageCache, with_cache
from dagflow.storage import LocalStore, MemoryStore

NAME = "state/0000000001-0123456789abcdef"


@attrs.define
class Refusing(MemoryStore):
    """A store that refuses ranges which begin at the end of a record, as object stores do, and counts the requests."""

    requests: int = 0

    def __attrs_pre_init__(self) -> None:
        super().__init__()

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes] | None:
        self.requests += len(ranges)
        data = self.read(name)
        assert data is None or all(start < len(data) for start, _ in ranges)
        return super().read_ranges(name, ranges)


def wanted(data: bytes, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
    return [data[start:stop] for start, stop in ranges]


@given(
    st.integers(1, 60),
    st.lists(st.lists(st.tuples(st.integers(0, 59), st.integers(1, 30)), min_size=1), max_size=5),
    st.booleans(),
)
def test_ranges_of_records_of_any_size(
    tmp_path_factory: pytest.TempPathFactory, size: int, reads: list[list[tuple[int, int]]], written_here: bool
) -> None:
    data, inner = bytes(range(size)), Refusing()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_cache, "PAGE", 8)
        store = CachedStore(inner, PageCache(tmp_path_factory.mktemp("cache") / "pages"))
        (store if written_here else inner).create(NAME, data)
        for some in reads:
            ranges = [
                (at % size, min(at % size + count, size + 1)) for at, count in some
            ]  # one more byte: it shows a longer record
            assert store.read_ranges(NAME, ranges) == wanted(data, ranges)
            before = inner.requests
            assert store.read_ranges(NAME, [(start, min(stop, size)) for start, stop in ranges]) is not None
            assert inner.requests == before, "it has them now"
    assert store.read_ranges("state/0000000002-0123456789abcdef", [(0, 5)]) is None


def test_damaged_pages_are_read_again(tmp_path: Path) -> None:
    inner, file = Refusing(), tmp_path / "pages"
    store = CachedStore(inner, PageCache(file))
    store.create(NAME, b"rows" * 10_000)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE pages SET data = ? WHERE number = 1", (b"odd" * 5000,))
    database.close()
    assert store.read_ranges(NAME, [(16_380, 16_390)]) == [b"rowsrowsro"]
    assert inner.requests == 1
    file.write_bytes(b"no database" * 100_000)
    (tmp_path / "pages-wal").unlink()
    for _ in range(2):
        assert CachedStore(inner, PageCache(file)).read_ranges(NAME, [(0, 4)]) == [b"rows"]
    assert inner.requests == 2, "it was made anew"


def test_pages_that_were_not_used_for_the_longest_time_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "PAGE", 8)
    monkeypatch.setattr(page_cache, "_CHECKED", 1)
    now = [0.0]
    cache = PageCache(tmp_path / "pages", max_bytes=80, clock=lambda: now[0])
    for number in range(10):
        cache.put(b"s", {number: b"12345678"})
    now[0] = 6000.0
    assert cache.get(b"s", [0, 1]).keys() == {0, 1}
    cache.put(b"t", {0: b"12345678"})
    assert cache.get(b"s", range(10)).keys() == {0, 1, 6, 7, 8, 9}
    assert cache.get(b"t", [0]).keys() == {0}


def test_a_cache_that_cannot_be_made_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(with_cache(LocalStore(str(tmp_path))), LocalStore)
    inner = Refusing()
    store = CachedStore(inner, PageCache(tmp_path / "no folder" / "pages"))
    store.create(NAME, b"rows")
    assert store.read_ranges(NAME, [(0, 2)]) == [b"ro"]
