from __future__ import annotations

import random
import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.errors import ChangedInPlace, PlanMismatch, SegmentDamaged, SegmentMissing, StateNotPlain
from dagflow.model.operator.map_state import ABSENT, TrackedDict
from dagflow.model.types.plain_data import encode
from dagflow.model.types.snapshots import SAMPLES
from dagflow.state import MapId, MapLog, Policy, SegmentRef, erase_segments
from dagflow.state.maps import changed_rows
from dagflow.state.segment import OpenSegment, segments, weight_of, window_of
from dagflow.testing.stores import CountingStore

SEEN: MapId = ("files", "seen")
ETAGS: MapId = ("polled", "etags")
SMALL = Policy(
    fan_out=3, share=4, least_top=300, slack=300, tiny=100, most=6, sweep=2, kept=500
)  # all that happens to millions, with a few keys
Content = dict[MapId, dict[Any, Any]]


def copied(maps: dict[MapId, TrackedDict[Any, Any]]) -> Content:
    return {map_id: encode(dict(kept.items()), "") if map_id == SEEN else dict(kept) for map_id, kept in maps.items()}


class Run:
    """A run of many launches, with a model beside it of what each window's plan stands for."""

    def __init__(self, policy: Policy = SMALL, copies: bool = True) -> None:
        self.copies = copies
        self.store = CountingStore()
        self.policy = policy
        self.plans: dict[int, tuple[SegmentRef | None, Content]] = {}
        self.window = 0
        self.maps: dict[MapId, TrackedDict[Any, Any]] = {SEEN: TrackedDict(), ETAGS: TrackedDict()}
        self.log = MapLog(self.store, policy)

    def restored(self, window: int, ids: Any = (SEEN, ETAGS)) -> Content:
        return MapLog(self.store, self.policy).restore(self.plans[window][0], window, ids)

    def save(self) -> None:
        ref = self.log.save(self.window, self.maps)
        self.plans[self.window] = ref, copied(self.maps) if self.copies else {}
        self.window += 1

    def save_and_die(self) -> None:
        """Dies before the plan: the window comes again, from what the one before it has left."""
        self.log.save(self.window, self.maps)
        self.launch()

    def launch(self, ids: tuple[MapId, ...] = (SEEN, ETAGS)) -> None:
        self.log = MapLog(self.store, self.policy)
        ref, content = self.plans.get(self.window - 1, (None, {}))
        known = [map_id for map_id in ids if map_id in content]
        found = self.log.restore(ref, self.window - 1, known)
        assert found == {map_id: content[map_id] for map_id in known}
        self.maps = {map_id: TrackedDict(found.get(map_id, {})) for map_id in ids}

    def sweep(self, keep: int) -> None:
        oldest = self.window - keep
        self.plans = {window: plan for window, plan in self.plans.items() if window >= oldest}
        self.log.sweep(oldest)

    def check_all(self) -> None:
        for window, (_, content) in self.plans.items():
            assert self.restored(window, list(content)) == content, f"after window {window}"


KEYS = st.integers(0, 12).map(lambda n: f"k{n}")
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just(SEEN), KEYS, st.one_of(st.none(), st.text("xyz", max_size=20), st.integers(0, 2))),
        st.tuples(st.just(ETAGS), st.integers(0, 9), st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=3))),
        st.tuples(st.sampled_from([SEEN, ETAGS]), st.just("clear"), st.none()),
    ),
    max_size=8,
)
ENDS = st.sampled_from(["", "", "", "", "sweep", "sweep all", "launch", "die", "die twice", "drop"])


@given(st.lists(st.tuples(CHANGES, ENDS), max_size=40))
def test_each_window_can_be_restored_exactly(windows: list[tuple[list[tuple[MapId, Any, Any]], str]]) -> None:
    run = Run()

    def change(changes: list[tuple[MapId, Any, Any]]) -> None:
        for map_id, key, value in changes:
            if map_id not in run.maps:
                continue
            if key == "clear":
                run.maps[map_id].clear()
            elif value is None:
                run.maps[map_id].pop(key, None)
            else:
                run.maps[map_id][key] = value

    for changes, end in windows:
        change(changes)
        if end == "die":
            run.save_and_die()
            change(changes[::-1])
        elif end == "die twice":
            run.save_and_die()
            change(changes)  # the same once more: the very same segment
            run.save_and_die()
            change(changes[:3])
        run.save()
        if end in ("sweep", "sweep all"):
            run.sweep(4 if end == "sweep" else 1)
        elif end == "launch":
            run.launch()
        elif end == "drop":
            run.launch(() if len(run.maps) == 1 else (SEEN,))
            run.save()
            run.maps.setdefault(SEEN, TrackedDict())
            run.maps.setdefault(ETAGS, TrackedDict())
        run.check_all()
    run.sweep(1)
    run.check_all()
    counting = len(run.log.log.needed)
    assert len(segments(run.store)) == counting, "of what does not count nothing is left"


def test_what_does_not_change_is_not_written() -> None:
    run = Run()
    run.maps[SEEN]["a"] = 1
    run.save()
    run.store.reset()
    run.maps[SEEN]["a"] = 1
    run.save()
    assert run.store.calls == []
    assert run.plans[0][0] == run.plans[1][0]


def test_a_segment_without_its_plan_is_ignored_and_swept_once_the_window_has_one() -> None:
    run = Run()
    run.maps[SEEN]["a"] = 1
    run.save()
    run.maps[SEEN]["lost"] = 1
    run.save_and_die()
    assert run.maps[SEEN] == {"a": 1}
    assert [window_of(name) for name in segments(run.store)] == [0, 1]
    run.log.sweep(0)
    assert [window_of(name) for name in segments(run.store)] == [0, 1], "an old launch that still lives may yet publish its plan"
    run.maps[SEEN]["b"] = 2
    run.save()
    assert len(segments(run.store)) == 3
    run.log.sweep(1)
    assert len(segments(run.store)) == 2
    assert run.restored(1)[SEEN] == {"a": 1, "b": 2}


def test_a_window_that_comes_again_unchanged_uses_the_segment_that_is_there() -> None:
    run = Run()
    run.maps[SEEN]["a"] = 1
    run.save_and_die()
    run.maps[SEEN]["a"] = 1
    run.save()
    assert len(segments(run.store)) == 1
    run.log.sweep(5)
    assert run.restored(0)[SEEN] == {"a": 1}


def damaged(change: Any) -> tuple[MapLog, SegmentRef, str]:
    run = Run(Policy())
    for n in range(3):
        run.maps[SEEN][f"{n}"] = n
        run.save()
    name = segments(run.store)[1]
    data = run.store.read(name)
    assert data is not None
    run.store.discard(name)
    if change is not None:
        run.store.create(name, change(data))
    ref = run.plans[2][0]
    assert ref is not None
    return MapLog(run.store), ref, name


def test_a_missing_segment_is_named() -> None:
    log, ref, name = damaged(None)
    with pytest.raises(SegmentMissing) as caught:
        log.restore(ref, 2, [SEEN])
    assert str(caught.value) == (
        f"the MapState after window 2 cannot be read: there is no memory://store/{name}\n"
        "  help: restore the file from a copy of the run folder, or launch with --fresh to start over"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:-1], "it has [0-9]+ bytes, and should have [0-9]+"),
        (lambda data: b"", "it has 0 bytes"),
        (lambda data: data.replace(b"\x31", b"\x32", 1), "its bytes from 0 to [0-9]+ are not those that were written"),
        (lambda data: data.replace(b"tables", b"fables", 1), "its bytes have the hash sha256:"),
        (lambda data: data + b"x", "it has more bytes, and should have [0-9]+"),
    ],
)
def test_a_changed_segment_is_named(change: Any, reason: str) -> None:
    log, ref, name = damaged(change)
    with pytest.raises(SegmentDamaged, match=rf"memory://store/{re.escape(name)} is damaged \({reason}"):
        log.restore(ref, 2, [SEEN])


@given(st.integers(0, 10**6))
def test_any_flipped_bit_is_found(seed: int) -> None:
    def flip(data: bytes) -> bytes:
        at = seed % (8 * len(data))
        return data[: at // 8] + bytes([data[at // 8] ^ 1 << at % 8]) + data[at // 8 + 1 :]

    log, ref, _ = damaged(flip)
    with pytest.raises(SegmentDamaged):
        log.restore(ref, 2, [SEEN])


def test_a_segment_under_the_name_of_another_one_is_refused() -> None:
    log, ref, name = damaged(lambda data: data)
    whole = log.store.read(name)
    assert whole is not None
    log.store.create("state/0000000000-0123456789abcdef", whole)
    elsewhere = SegmentRef("state/0000000000-0123456789abcdef", ref.hash, len(whole))
    with pytest.raises(SegmentDamaged, match="it is state/0000000001"):
        MapLog(log.store).restore(elsewhere, 0, [SEEN])


def test_a_segment_that_was_not_sealed_is_refused() -> None:
    log, ref, name = damaged(lambda data: b'{"format":1,"window":1}\n[]\n')
    elsewhere = SegmentRef(name, ref.hash, len(b'{"format":1,"window":1}\n[]\n'))
    with pytest.raises(PlanMismatch, match=r"another version of dagflow .format 1, this one reads 5"):
        log.restore(elsewhere, 2, [SEEN])


@pytest.mark.parametrize(("key", "value"), [("a", object()), (True, 1), ("a", {1: 2})])
def test_what_is_not_plain_is_refused_by_name(key: Any, value: Any) -> None:
    kept: TrackedDict[Any, Any] = TrackedDict()
    kept[key] = value
    store = CountingStore()
    with pytest.raises(StateNotPlain, match="MapState 'seen' of operator 'files' holds a"):
        MapLog(store).save(0, {SEEN: kept})
    assert store.calls == []


def test_all_segments_are_erased_and_nothing_else() -> None:
    run = Run()
    run.maps[SEEN]["a"] = 1
    run.save()
    run.store.create("state/notes", b"mine")
    run.store.create("plan/0000000000", b"plan")
    erase_segments(run.store)
    assert run.store.names() == ["plan/0000000000", "state/notes"]


def test_what_may_pass_is_tried_again() -> None:
    heard = []

    def busy(call: str, name: str) -> None:
        if (call, name) not in heard:
            heard.append((call, name))
            raise TimeoutError("busy")

    def retry(window: int, doing: str, action: Any) -> Any:
        while True:
            try:
                return action()
            except TimeoutError:
                heard.append((window, doing))

    store = CountingStore(after=busy)
    log = MapLog(store, retry=retry)
    kept: TrackedDict[str, int] = TrackedDict()
    for window in range(2):
        kept["a"] = window
        ref = log.save(window, {SEEN: kept})
    saving = heard[:]
    heard.clear()
    assert MapLog(store, retry=retry).restore(ref, 1, [SEEN]) == {SEEN: {"a": 1}}
    again = MapLog(store, retry=retry)
    again.restore(None, -1, ())
    assert again.sweep(2) == 2
    assert {what for what in (*saving, *heard) if isinstance(what[0], int)} == {
        (0, "saving its state"),
        (1, "saving its state"),
        (1, "reading its state"),
        (1, "listing segments of its state"),
        (2, "removing old segments of its state"),
    }


# Bounds


@attrs.define
class Measured:
    """The writes of windows, and the state of the log."""

    changed: int = 0
    written: int = 0
    most_at_once: int = 0
    most_segments: int = 0
    heaviest: float = 0.0


def measure(run: Run, windows: int, each: Any) -> Measured:
    found = Measured()
    for n in range(windows):
        each(run.maps[SEEN], n)
        changed = weight_of(changed_rows(run.maps, {}))
        run.save()
        ref = run.plans[run.window - 1][0]
        assert ref is not None
        written = sum(layer.weight for layer in OpenSegment(run.store, ref, 0).index.layers)  # without heads of blocks
        run.sweep(1)
        found.changed += changed
        found.written += written
        found.most_at_once = max(found.most_at_once, written - 3 * changed)
        found.most_segments = max(found.most_segments, run.log.log.layers)
        if n % 50 == 0:
            weight = sum(ROW + len(key) + len(value) for key, value in run.maps[SEEN].items())
            found.heaviest = max(found.heaviest, run.log.log.weight / max(weight, run.policy.slack))
    return found


ROW = 23  # bytes of an entry beside its key and its value: a code, the ends of both, quotes
STEADY = Policy(fan_out=16, share=64, least_top=1000, slack=2000, tiny=1000, most=300, sweep=2)


@pytest.mark.parametrize("kind", ["grows", "hot key", "any key", "comes and goes", "one large value"])
def test_bounds_of_what_is_written_and_kept(kind: str) -> None:
    chance = random.Random(kind)
    run = Run(STEADY, copies=False)
    if kind not in ("grows", "comes and goes"):
        run.maps[SEEN].update({f"{n:020d}": "x" * 20 for n in range(3000)})
        run.save()

    def each(seen: TrackedDict[Any, Any], n: int) -> None:
        if kind == "grows":
            seen.update({f"{n:010d}{k:010d}": "x" * 20 for k in range(3)})
        elif kind == "hot key":
            seen["hot"] = f"{n:020d}"
        elif kind == "any key":
            seen.update({f"{chance.randrange(3000):020d}": f"{n:020d}" for _ in range(3)})
        elif kind == "comes and goes":
            seen[f"{n:020d}"] = "x" * 20
            seen.pop(f"{n - 500:020d}", None)
        else:
            seen["large"] = f"{n:03000d}"

    found = measure(run, 2000, each)
    assert run.restored(run.window - 1) == {**copied(run.maps)}
    assert found.written < 5 * found.changed, "write amplification"
    assert found.heaviest < 4.5, "the log against what is alive"
    assert found.most_segments <= STEADY.most + 2 * STEADY.share + 3 * STEADY.fan_out
    alive = sum(ROW + len(k) + len(v) for k, v in run.maps[SEEN].items())
    assert found.most_at_once <= 4 * max(alive // STEADY.share, STEADY.least_top), "no window pauses for all keys"


def test_what_windows_write_does_not_grow_with_what_is_known() -> None:
    written = []
    for known in (1_000, 100_000):
        run = Run(Policy(), copies=False)
        run.maps[SEEN].update({f"/logs/2026/{n:012d}.log": "1700000000000000000:1234" for n in range(known)})
        run.save()
        run.sweep(1)
        run.store.reset()
        size = calls = 0
        for n in range(100):
            run.maps[SEEN].update({f"/logs/new/{n:06d}{k:06d}.log": "1700000000000000000:1234" for k in range(10)})
            run.store.reset()
            run.save()
            calls += run.store.counts["create"]
            size += run.store.bytes_created
        assert calls == 100
        written.append(size)
    assert written[1] < 1.05 * written[0]
    assert written[1] < 5 * 100 * 10 * 60


READS = [
    lambda kept: kept["k5"],
    lambda kept: kept.get("k5"),
    lambda kept: kept.setdefault("k5", []),
    lambda kept: next(value for key, value in kept.items() if key == "k5"),
    lambda kept: list(kept.values())[5],
]


@pytest.mark.parametrize("count", [6, 20_000])
@pytest.mark.parametrize("read", READS)
def test_a_value_that_is_changed_in_place_is_found_when_a_window_is_saved(count: int, read: Any) -> None:
    kept: TrackedDict[Any, Any] = TrackedDict()
    log = MapLog(CountingStore())
    kept.update({f"k{n}": [n] for n in range(count)})
    log.save(0, {SEEN: kept})
    value = read(kept)
    value.append(1)
    kept["k5"] = value
    log.save(1, {SEEN: kept})  # it is assigned again
    read(kept).append(2)
    with pytest.raises(ChangedInPlace, match=r"files has changed the value of 'k5' in MapState 'seen' in place"):
        log.save(2, {SEEN: kept})


def test_values_that_are_only_read_or_replaced_are_fine() -> None:
    kept: TrackedDict[Any, Any] = TrackedDict({"a": [1], "b": [2], "c": [3], "d": 4})
    kept.watch()
    kept["a"].append(2)
    kept["a"] = kept["a"]
    kept["b"].append(2)
    del kept["b"]
    assert (kept["c"], kept.get("d"), kept.get("e"), kept.get("e", 5)) == ([3], 4, None, 5)
    assert kept.changed_in_place() is ABSENT
    assert type(kept) is TrackedDict  # a number was read: no more samples


def test_only_the_first_reads_of_a_window_are_sampled() -> None:
    kept: TrackedDict[Any, Any] = TrackedDict({n: [n] for n in range(100)})
    kept.watch()
    for _ in range(SAMPLES):
        assert kept[1] == [1]
    assert type(kept) is TrackedDict
    kept[2].append(1)
    assert kept.changed_in_place() is ABSENT
    kept[1].append(1)
    assert kept.changed_in_place() == 1
