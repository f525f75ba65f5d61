"""Reading by ranges: which requests are made, and how many at a time."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.storage import read_fully
from dagflow.storage.remote import ranges
from dagflow.storage.remote.ranges import BEYOND, MAX_AHEAD, RangeReader
from tests.tiers import examples

DATA = random.Random(17).randbytes(1 << 20)
PIECE = 16 << 10


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "PIECE", PIECE)


class Store:
    """Serves ranges at once, or as many at a time as are under way once `waits_for` are."""

    def __init__(self, waits_for: int = 0) -> None:
        self.requests: list[tuple[int, int]] = []
        self.most = 0
        self._under_way = 0
        self._waits_for = waits_for
        self._changed = threading.Condition()

    def fetch(self, start: int, stop: int) -> bytes:
        with self._changed:
            self.requests.append((start, stop))
            self._under_way += 1
            self.most = max(self.most, self._under_way)
            self._changed.notify_all()
            # a slow connection: an answer takes as long as it takes the reader to ask for everything that it wants meanwhile
            self._changed.wait_for(lambda: self.most >= self._waits_for, timeout=0.01)
            self._under_way -= 1
        return DATA[start:stop]


def pieces(reader: RangeReader, size: int, until: int) -> Iterator[bytes]:
    while reader.tell() < until and (piece := reader.read(min(size, until - reader.tell()))):
        yield piece


def test_a_small_file_takes_one_request() -> None:
    store = Store()
    with RangeReader(store.fetch, 1000, 1000) as reader:
        assert b"".join(pieces(reader, 100, 1000)) == DATA[:1000]
        assert reader.read(100) == b""
    assert store.requests == [(0, 1000)]


def test_an_empty_file_takes_none() -> None:
    store = Store()
    with RangeReader(store.fetch, 0, 0) as reader:
        assert reader.read(10) == b""
        assert reader.readall() == b""
    assert store.requests == []


def test_nothing_behind_the_block_is_requested_before_it_is_read() -> None:
    store = Store()
    start, stop = 5 * PIECE + 7, 20 * PIECE + 3
    with RangeReader(store.fetch, len(DATA), stop) as reader:
        reader.seek(start)
        assert b"".join(pieces(reader, 1000, stop)) == DATA[start:stop]
        assert all(start <= first < last <= stop for first, last in store.requests)
        assert sorted(store.requests) == [(at, min(at + PIECE, stop)) for at in range(start, stop, PIECE)]
        store.requests.clear()
        assert reader.read(10) == DATA[stop : stop + 10]
        assert store.requests == [(stop, stop + BEYOND)]
        reader.seek(stop + BEYOND)
        assert read_fully(reader, 5 * BEYOND) == DATA[stop + BEYOND : stop + 6 * BEYOND]
        assert store.requests[1:] == [(stop + BEYOND, stop + 6 * BEYOND)], "what is asked for comes with one request"


def test_a_slow_connection_is_read_by_several_requests_at_a_time() -> None:
    store = Store(waits_for=MAX_AHEAD)
    with RangeReader(store.fetch, len(DATA), len(DATA)) as reader:
        assert b"".join(pieces(reader, 1000, len(DATA))) == DATA
    assert 4 <= store.most <= MAX_AHEAD + 1


def test_places_here_and_there_are_read_one_by_one() -> None:
    store = Store()
    with RangeReader(store.fetch, len(DATA), len(DATA)) as reader:
        for at in (3 * PIECE, 50 * PIECE, 7 * PIECE):
            reader.seek(at)
            assert read_fully(reader, 10) == DATA[at : at + 10]
    assert store.requests == [(at, at + PIECE) for at in (3 * PIECE, 50 * PIECE, 7 * PIECE)]


def test_an_error_is_raised_where_its_piece_is_read() -> None:
    class Failing(Store):
        def fetch(self, start: int, stop: int) -> bytes:
            if start == 3 * PIECE:
                raise ConnectionResetError("peer")
            return super().fetch(start, stop)

    with RangeReader(Failing().fetch, len(DATA), len(DATA)) as reader:
        assert read_fully(reader, 3 * PIECE) == DATA[: 3 * PIECE]
        with pytest.raises(ConnectionResetError):
            reader.read(1)


def test_a_file_that_is_shorter_than_its_length_is_an_error() -> None:
    with RangeReader(lambda start, stop: b"", 10, 10) as reader, pytest.raises(OSError, match="the file ends at 0"):
        reader.read(1)


@settings(max_examples=examples(100), deadline=None)
@given(
    length=st.integers(0, 10 * PIECE),
    stop=st.integers(0, 12 * PIECE),
    steps=st.lists(st.tuples(st.none() | st.integers(0, 11 * PIECE), st.integers(1, 3 * PIECE)), max_size=20),
)
def test_it_reads_what_a_file_in_memory_does(length: int, stop: int, steps: list[tuple[int | None, int]]) -> None:
    with RangeReader(Store().fetch, length, stop) as reader:
        at = 0
        for seek, size in steps:
            if seek is not None:
                at = reader.seek(seek)
            assert read_fully(reader, size) == DATA[:length][at : at + size]
            at = reader.tell()
