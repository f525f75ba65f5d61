"""The log of rows: whatever windows, launches, merges and numbers of partitions do, it holds what a dict would."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import SegmentDamaged, SegmentMissing
from dagflow.model.types.keyed_rows import codes_of, merged, rows_of, schema_of
from dagflow.model.types.keys import KeyAssignment, group_of
from dagflow.state import Policy, SegmentRef, segment
from dagflow.state.log import StateLog, groups_of_partition
from dagflow.state.segment import BLOCK, TableId, segments
from dagflow.storage import MemoryStore
from dagflow.testing.stores import CountingStore

SMALL = Policy(fan_out=3, share=4, least_top=300, slack=300, tiny=100, most=6, kept=400)
PIECES = attrs.evolve(SMALL, piece=60)
IDS = [("count", "totals")]
COLUMNS = [("n", pa.int64())]
TYPES: dict[str, Any] = {"int64": pa.int64(), "string": pa.string()}

ONE = KeyAssignment(1)


def table_of(kind: str) -> TableId:
    return (*IDS[0], kind)


@attrs.define
class Partitions:
    """The logs of the partitions of one operator, and a dict for each window."""

    store: CountingStore = attrs.field(factory=CountingStore)
    policy: Policy = SMALL
    keys: KeyAssignment = ONE
    logs: list[StateLog] = attrs.field(factory=list)
    window: int = 0
    content: dict[Any, int] = attrs.field(factory=dict)
    left: dict[int, tuple[KeyAssignment, list[SegmentRef | None], dict[Any, int]]] = attrs.field(factory=dict)

    def begin(self, keys: KeyAssignment | None = None) -> None:
        """Launch: continue from the last window, with the same partitions or others."""
        before, refs, self.content = self.left.get(self.window - 1, (self.keys, [], {}))
        self.content = dict(self.content)
        self.logs = []
        assigned = keys or before
        for partition in range(assigned.partitions):
            log = StateLog(self.store, self.policy)
            if assigned == before and refs and refs[partition] is not None:
                log.restore(refs[partition], self.window - 1, IDS)
            else:
                chains = [ref for ref in refs if ref is not None and assigned != before]
                log.take_over(chains, self.window - 1, IDS, groups_of_partition(assigned, partition))
            self.logs.append(log)
        self.keys = assigned

    def save(self, changes: dict[Any, int | None]) -> None:
        for key, value in changes.items():
            if value is None:
                self.content.pop(key, None)
            else:
                self.content[key] = value
        for partition, log in enumerate(self.logs):
            mine = {key: n for key, n in changes.items() if self.keys.of_group(group_of(key)) == partition}
            log.save(self.window, {table_of(kind): rows for kind in TYPES if (rows := rows_of_changes(mine, kind)) is not None})
        self.left[self.window] = (self.keys, [log.newest for log in self.logs], dict(self.content))
        self.window += 1

    def sweep(self) -> None:
        """As the driver does: its own log knows what it has replaced; of several, one may still need what others have."""
        if len(self.logs) == 1:
            self.logs[0].sweep(self.window)
        else:
            needed = {name for log in self.logs for name in log.needed}
            self.store.discard_all([name for name in segments(self.store) if name not in needed])

    def check(self) -> None:
        found: dict[Any, int] = {}
        for log in self.logs:
            for kind in TYPES:
                if (rows := log.rows(table_of(kind))) is not None:
                    own = dict(zip(rows.batch.column("key").to_pylist(), rows.batch.column("n").to_pylist(), strict=True))
                    assert not own.keys() & found.keys(), "a key has one partition"
                    found |= own
        assert found == self.content
        asked = [*range(-3, 15), *(f"k{n}" for n in range(12))]
        for partition, log in enumerate(self.logs):
            for kind in TYPES:
                keys = [key for key in asked if kind_of(key) == kind and self.keys.of_group(group_of(key)) == partition]
                assert looked_up(log, kind, keys) == {key: self.content[key] for key in keys if key in self.content}


def kind_of(key: Any) -> str:
    return "int64" if type(key) is int else "string"


def rows_of_changes(changes: dict[Any, int | None], kind: str) -> Any:
    keys = [key for key in changes if kind_of(key) == kind]
    parts = []
    schema = schema_of(TYPES[kind], COLUMNS)
    for removed in (False, True):
        some = [key for key in keys if (changes[key] is None) is removed]
        values = [] if removed else [pa.array([changes[key] for key in some], pa.int64())]
        parts.append(rows_of(pa.array(some, TYPES[kind]), values, schema, removed=removed))
    return merged(parts) if keys else None


def looked_up(log: StateLog, kind: str, keys: list[Any]) -> dict[Any, int]:
    array = pa.array(keys, TYPES[kind])
    codes = codes_of(array)
    order = codes.argsort(kind="stable")
    array = array.take(pa.array(order))
    found = {}
    for places, rows, numbers in log.find(table_of(kind), codes[order], array):
        for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
            key = array[place].as_py()
            assert rows.batch.column("key")[number].as_py() == key
            assert key not in found
            found[key] = rows.batch.column("n")[number].as_py()
    return found


KEYS = st.one_of(st.integers(-2, 12), st.integers(0, 9).map(lambda n: f"k{n}"))
CHANGES = st.dictionaries(KEYS, st.one_of(st.none(), st.integers(0, 5), st.integers(-(2**63), 2**63 - 1)), max_size=8)
ASSIGNED = st.sampled_from([KeyAssignment(1), KeyAssignment(2), KeyAssignment(5), KeyAssignment(3, (0, 1, 2, 0))])
ENDS = st.one_of(st.sampled_from(["", "", "", "launch", "die", "sweep"]), ASSIGNED)


@given(st.lists(st.tuples(CHANGES, ENDS), max_size=40), st.sampled_from([SMALL, PIECES]))
def test_it_holds_what_a_dict_holds(windows: list[tuple[dict[Any, int | None], Any]], policy: Policy) -> None:
    run = Partitions(policy=policy)
    run.begin()
    for changes, end in windows:
        if end == "die":  # before its window is decided
            run.save(changes)
            run.window -= 1
            run.left.pop(run.window)
            run.begin()
        run.save(dict(list(changes.items())[:2]) if end == "die" else changes)
        run.check()
        if end == "launch":
            run.begin()
        elif end == "sweep":
            run.sweep()
        elif isinstance(end, KeyAssignment):
            run.begin(end)
        run.check()


def test_another_number_of_partitions_writes_references_only() -> None:
    run = Partitions()
    run.begin()
    run.save({n: n for n in range(20_000)})
    written = run.store.bytes_created
    for partitions in (4, 3, 7):
        run.begin(KeyAssignment(partitions))
        run.save({})
        run.check()
    assert run.store.bytes_created - written < 14 * 1500 < written / 20
    before = run.left[0][1][0]
    assert before is not None
    assert all(before.name in log.needed for log in run.logs), "the first segment has their rows"
    assert all(before.name not in log.own for log in run.logs), "no partition removes what others need"


def test_large_changes_are_saved_in_pieces_of_the_memory_that_they_may_take() -> None:
    """Of a log that they sweep, and of one that is larger; lookups find all."""
    chance = np.random.default_rng(3)
    run = Partitions(policy=attrs.evolve(Policy(), piece=100_000))
    run.begin()
    for count in (20_000, 3_000, 20_000, 5_000, 5_000):
        keys = chance.choice(30_000, count, replace=False).tolist()
        run.save({key: None if key % 7 == count % 7 else key + count for key in keys})
        run.check()
        (log,) = run.logs
        written = [ref for ref in log.needed.values() if ref.window == run.window - 1]
        assert (len(written) > 1) is (count > 3_000)
        assert max(ref.size for ref in written) < 400_000, "a piece of the changes, and of the layers that it merges"
        run.begin()
        run.check()
        assert {ref.name for ref in run.logs[0].needed.values()} == {ref.name for ref in log.needed.values()}
        log.sweep(run.window)


def test_a_lookup_reads_the_blocks_of_its_keys_only() -> None:
    run = Partitions()
    run.begin()
    run.save({n: n for n in range(100_000)})
    size = sum(len(run.store.inner.read(name) or b"") for name in segments(run.store))
    run.begin()
    read = []
    inner = run.store.inner
    plain = inner.read_ranges
    inner.read_ranges = lambda name, ranges: read.extend(stop - start for start, stop in ranges) or plain(name, ranges)  # type: ignore[method-assign,func-returns-value]
    assert looked_up(run.logs[0], "int64", [5, 70_000, 123_456]) == {5: 5, 70_000: 70_000}
    assert sum(read) < size / 5, "three blocks, the index and the filter"
    before = sum(read)
    assert looked_up(run.logs[0], "int64", list(range(200_000, 200_100))) == {}
    assert sum(read) - before < 6 * BLOCK, "the filter knows nearly all that are not there"


class DistantStore(MemoryStore):
    """A store far away. Counts the reads that are under way at the same time."""

    url = "s3://bucket/run"

    def __init__(self) -> None:
        super().__init__()
        self.under_way, self.most = 0, 0

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes] | None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        time.sleep(0.02)
        self.under_way -= 1
        return super().read_ranges(name, ranges)


def test_the_segments_of_an_object_store_are_opened_at_once() -> None:
    run = Partitions(CountingStore(DistantStore()), PIECES)
    run.begin()
    run.save({n: n for n in range(100)})
    assert len(segments(run.store)) > 3
    run.begin()
    assert looked_up(run.logs[0], "int64", list(range(200))) == run.content
    assert run.store.inner.most > 1


def test_a_filter_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Partitions()
    run.begin()
    with monkeypatch.context() as patch:
        patch.setattr(segment, "_FILTER", 1)
        patch.setattr(segment, "bloom_of", lambda codes: np.zeros(1 << 8, np.uint8))
        run.save({n: n for n in range(10_000)})
    run.begin()
    assert looked_up(run.logs[0], "int64", [5, 7_000, 12_345]) == {5: 5, 7_000: 7_000}


@given(st.integers(1024, 3000), st.integers(0, 1 << 30))
def test_a_filter_lets_through_its_codes_and_few_others(count: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    codes, others = (chance.integers(0, 1 << 63, size, dtype=np.uint64) for size in (count, 10_000))
    bloom = segment.bloom_of(codes)
    assert segment.may_have(bloom, codes).all()
    assert segment.may_have(bloom, others).mean() < 0.04


@pytest.mark.parametrize("codes", [[7, 7, 7], [7, 2**64 - 1, 7], [2**64 - 1] * 3])
def test_keys_of_one_code_are_told_apart(codes: list[int]) -> None:
    schema = schema_of(pa.string(), COLUMNS)

    def made(keys: list[str], values: list[int]) -> Any:
        own = np.array([codes["abc".index(key)] for key in keys], dtype=np.uint64)
        return rows_of(pa.array(keys), [pa.array(values)], schema, codes=own)

    both = merged([made(["c", "a"], [1, 2]), made(["b", "a"], [3, 4]), made(["b"], [5])])
    assert sorted(zip(both.batch.column("key").to_pylist(), both.batch.column("n").to_pylist(), strict=True)) == [
        ("a", 4),
        ("b", 5),
        ("c", 1),
    ]
    asked = sorted(zip(codes, "abc", strict=True))
    numbers = both.find(np.array([code for code, _ in asked], dtype=np.uint64), pa.array([key for _, key in asked]), np.arange(3))
    assert [both.batch.column("key")[number].as_py() for number in numbers] == [key for _, key in asked]


def amplification(windows: int, rows: int, known: int, policy: Policy | None = None) -> tuple[float, float, int]:
    """Return the bytes written for each byte changed, those of the largest window for each byte alive, and the most layers."""
    chance, store = np.random.default_rng(11), CountingStore()
    log = StateLog(store, policy)
    schema = schema_of(pa.int64(), COLUMNS)
    log.save(0, {table_of("int64"): rows_of(pa.array(np.arange(known)), [pa.array(np.arange(known))], schema)})
    alive, changed, most, layers = store.bytes_created, 0, 0, 0
    written = -alive
    for window in range(1, windows + 1):
        keys = pa.array(chance.choice(known, rows, replace=False))
        changes = rows_of(keys, [pa.array(np.full(rows, window))], schema)
        changed += changes.batch.nbytes
        before = store.bytes_created
        log.save(window, {table_of("int64"): changes})
        log.sweep(window)
        most, layers = max(most, store.bytes_created - before), max(layers, log.layers)
    return (written + store.bytes_created) / changed, most / alive, layers


SIZES = [(150, 300, 20_000), pytest.param(1000, 1000, 100_000, marks=pytest.mark.full)]


@pytest.mark.parametrize(("windows", "rows", "known"), SIZES)
def test_at_most_five_bytes_are_written_for_each_byte_changed(windows: int, rows: int, known: int) -> None:
    """Heads and indexes of segments included."""
    written, largest, layers = amplification(windows, rows, known)
    assert written < 5
    assert largest < 0.3, "no window merges all"
    assert layers < 500


def test_damage_is_found_by_the_lookup_that_reads_it() -> None:
    run = Partitions()
    run.begin()
    run.save({n: n for n in range(20_000)})
    (name,) = segments(run.store)
    whole = run.store.read(name)
    assert whole is not None
    run.store.discard(name)
    run.store.create(name, b"\1" * 100 + whole[100:])
    run.begin()
    first, last = (sorted(range(20_000), key=lambda n: int(codes_of(pa.array([n]))[0]))[at] for at in (0, -1))
    assert looked_up(run.logs[0], "int64", [last]) == {last: last}, "other blocks can be read"
    with pytest.raises(SegmentDamaged, match=f"{name} is damaged .its bytes from 0 to [0-9]+ are not those that were written"):
        looked_up(run.logs[0], "int64", [first])
    run.store.discard(name)
    with pytest.raises(SegmentMissing, match=f"there is no memory://store/{name}"):
        run.begin()
