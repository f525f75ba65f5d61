"""Block readers whose blocks are split while they read them: what is left and what was split off are the whole."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import FileBlockMetadata
from dagflow.model.operator.context import ItemPart
from dagflow.ranges import OffsetRangeTracker
from dagflow.runtime.stage.parts import Part, narrowed
from dagflow.testing import FakeClock, OperatorTask
from operators import BlockReader, Entity, FSSliceReader, ReadAheadLineReaderContext, ReaderContext, RecordWriter
from operators.contexts import FixedRecordsReaderContext, Piece
from operators.readers.reading.claiming import FIRST, MOST, TARGET, Claiming
from tests.operators.compression.samples import bgzf
from tests.tiers import examples


@attrs.define
class OneByOne(ReaderContext):
    """Lines, one at a time."""

    inner: ReadAheadLineReaderContext = attrs.field(factory=ReadAheadLineReaderContext)

    def initialize(self, stream: Any, block: Any, consecutive: bool) -> None:
        self.inner.initialize(stream, block, consecutive)

    def next(self) -> Entity | None:
        return self.inner.next()


@attrs.define
class Splitter:
    """Splits the tracked range whenever the reader looks up; the residuals."""

    chance: random.Random
    rate: float = 0.5
    tracker: Any = None
    trackers: int = 0
    residuals: list[tuple[int, int]] = attrs.field(factory=list)

    def track(self, tracker: Any) -> None:
        self.tracker = tracker
        self.trackers += 1

    def check(self) -> None:
        if self.tracker is not None and self.chance.random() < self.rate:
            residual = self.tracker.try_split_at_fraction(self.chance.random())
            if residual is not None:
                self.residuals.append(tuple(residual))

    def completes(self, operator: str) -> bool:
        return not self.residuals


READERS = {
    "pieces": lambda: BlockReader(),
    "small pieces": lambda: BlockReader(reader_context=ReadAheadLineReaderContext(piece_bytes=16)),
    "converted": lambda: BlockReader(lambda data: data.decode()),
    "entities": lambda: BlockReader(reader_context=OneByOne()),
    "members (BGZF)": lambda: BlockReader(reader_context=ReadAheadLineReaderContext(piece_bytes=16)),
    "members (BGZF), one by one": lambda: BlockReader(reader_context=OneByOne()),
    "fixed records": lambda: BlockReader(reader_context=FixedRecordsReaderContext(length=3, partial="emit")),
}


def read_all(make: Any, blocks: list[Any], chance: random.Random | None, batches: bool = False) -> list[Any]:
    """The records of blocks, and of what was split off from them, read one after the other."""
    found: list[Any] = []
    parts = [(block, None) for block in blocks]
    while parts:
        block, part = parts.pop(0)
        task = OperatorTask(make(), in_batches=batches)
        sharing = None
        if chance is not None:
            sharing = task.context.services.stealable = Splitter(chance)
        with task:
            if part is not None:
                task.context.services.cursor.part = ItemPart(block, part.start, part.stop)
            task.give("blocks_metadata_input", [block if part is None else narrowed(block, part)])
            emitted = task.emitted["messages"]
            assert task.counters.get("blocks", 0) == (part is None)
            completes = part is None if sharing is None else not sharing.residuals
            assert task.emitted["blocks_metadata_output"] == ([block] if completes else [])
        found += [tuple(record.values() if isinstance(record, dict) else record) for record in emitted]
        parts += [(block, Part(0, *residual)) for residual in (sharing.residuals if sharing is not None else ())]
    return sorted(found)


@pytest.mark.parametrize("batches", [False, True])
@pytest.mark.parametrize("kind", READERS)
@settings(max_examples=examples(40), deadline=None)
@given(
    lines=st.lists(st.text("ab", max_size=5), max_size=60), cuts=st.sets(st.integers(1, 80), max_size=2), seed=st.integers(0, 99)
)
def test_what_is_left_and_what_was_split_off_are_the_whole(
    kind: str, batches: bool, lines: list[str], cuts: set[int], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        data = "".join(f"{line}\n" for line in lines).encode()
        if kind.startswith("members"):
            data = bgzf(data, [5, 1, 17])
            cuts = {cut * 5 for cut in cuts}
        path.write_bytes(data)
        bounds = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
        blocks = [
            FileBlockMetadata(n, str(path), start, stop, len(data), previous_block_id=n - 1)
            for n, (start, stop) in enumerate(pairwise(bounds))
        ]
        expected = read_all(READERS[kind], blocks, None, batches)
        assert read_all(READERS[kind], blocks, random.Random(seed), batches) == expected


@attrs.define
class Watching:
    """Notes the number of claimed records at each call of `check`."""

    claimed: list[int]
    tracker: Any = None

    def track(self, tracker: Any) -> None:
        self.tracker = tracker

    def check(self) -> None:
        self.claimed.append(self.tracker.split_points()[0] + 1)

    def completes(self, operator: str) -> bool:
        return True


@attrs.define
class Noting:
    """Does something at each look up."""

    look: Callable[[], None]

    def track(self, tracker: Any) -> None: ...

    def completes(self, operator: str) -> bool:
        return True

    def check(self) -> None:
        self.look()


def one_file(folder: Path, lines: int) -> FileBlockMetadata:
    path = folder / "file"
    path.write_bytes(b"line\n" * lines)
    return FileBlockMetadata(0, str(path), 0, 5 * lines, 5 * lines)


def watched(convert: Callable[[bytes], str], kind: str, claimed: list[int]) -> OperatorTask:
    """A reader that converts records; `claimed`: up to where it has claimed, at each look."""
    context = OneByOne() if kind == "entities" else ReadAheadLineReaderContext()
    task = OperatorTask(BlockReader(convert, reader_context=context))
    task.context.services.stealable = Watching(claimed)
    return task


@pytest.mark.parametrize("kind", ["converted", "entities"])
def test_slow_records_are_claimed_few_at_a_time(tmp_path: Path, kind: str) -> None:
    claimed: list[int] = []

    def slow(data: bytes) -> str:
        task.clock.sleep(TARGET)
        return data.decode()

    task = watched(slow, kind, claimed)
    with task:
        task.give("blocks_metadata_input", [one_file(tmp_path, 3 * FIRST)])
    assert claimed == [FIRST, *range(FIRST + 1, 3 * FIRST + 1)]  # after the first ones, one at a time


@pytest.mark.parametrize("kind", ["converted", "entities"])
def test_a_slow_block_after_very_many_is_noticed_by_its_first_records(tmp_path: Path, kind: str) -> None:
    claimed: list[int] = []
    seconds = 1e-4

    def work(data: bytes) -> str:
        task.clock.sleep(seconds)
        return data.decode()

    task = watched(work, kind, claimed)
    block = one_file(tmp_path, 400)
    with task:
        task.give("blocks_metadata_input", [attrs.evolve(block, block_id=n) for n in range(100)])
        claimed.clear()
        seconds = 1.0
        task.give("blocks_metadata_input", [attrs.evolve(block, block_id=100)])
    assert claimed[:2] == [FIRST, FIRST + 1]


def test_slow_members_are_claimed_one_at_a_time(tmp_path: Path) -> None:
    """Of files that are compressed by members, these are what can be given away."""
    path = tmp_path / "file"
    path.write_bytes(bgzf(b"line\n" * 40, [23]))  # members begin within lines, too
    length = path.stat().st_size
    sizes: list[int] = []
    converted: list[bytes] = []

    def slow(data: bytes) -> str:
        task.clock.sleep(TARGET)
        converted.append(data)
        return data.decode()

    task = OperatorTask(BlockReader(slow))
    task.context.services.stealable = Noting(lambda: sizes.append(len(converted)))
    with task:
        task.give("blocks_metadata_input", [FileBlockMetadata(0, str(path), 0, length, length)])
    assert max(after - before for before, after in pairwise([0, *sizes])) == 5  # lines that begin in one member
    assert sizes[-1] == 40


def claimed_of(*blocks: float, warming_up: float = 0.0, claim: float = 1e-4, in_batches: bool = False) -> list[int]:
    """The numbers of records that are claimed at a time of the last of some blocks; a record of each takes so many seconds.

    `claim`: the seconds that each claim takes.
    """
    clock = FakeClock()
    claiming = Claiming(clock, in_batches)
    found: list[int] = []
    for seconds in blocks:
        claiming.begin()
        claiming.track(OffsetRangeTracker(0, 2000))
        found = []
        for part in claiming.parts(Piece.of_slices(b"x" * 2000, range(2001), position=0)):
            found.append(len(part))
            clock.sleep(claim + len(part) * seconds + warming_up)
            warming_up = 0.0
    return found


def test_a_block_whose_first_records_are_as_quick_as_ever_is_taken_to_be_like_the_one_before() -> None:
    assert claimed_of(1e-7, claim=4e-4) == [FIRST, 499, 1024, 473]  # 499: the first ones took 0.4 ms
    assert claimed_of(1e-7, 1e-7, claim=4e-4) == [FIRST, 1024, 972]
    assert claimed_of(1e-7, 2e-5, claim=4e-4)[:2] == [FIRST, 1024]  # two hundred times as slow, and still next to nothing
    assert claimed_of(1e-7, 1e-7, 0.025)[:2] == [FIRST, 1]  # a slow block is noticed at once
    assert claimed_of(0.025, 0.025)[:2] == [FIRST, 1]


def test_no_more_is_claimed_than_what_is_little_work_if_it_is_as_quick_as_what_was_before() -> None:
    assert max(claimed_of(0.0)) == MOST
    assert max(claimed_of(1e-4)) == 498
    assert max(claimed_of(1e-5, in_batches=True)) == 1428  # a batch costs as much as many rows


def wide_claims(columns: int, claim: float, row: float, rows: int = 2000) -> list[int]:
    """The rows that are claimed at a time of pieces of 300 rows; a claim takes so many seconds, and so many for each row."""
    clock = FakeClock()
    claiming = Claiming(clock, in_batches=True, columns=columns)
    claiming.begin()
    claiming.track(OffsetRangeTracker(0, rows))
    found: list[int] = []
    for start in range(0, rows, 300):
        for part in claiming.parts(Piece.of_slices(b"x" * (stop := min(300, rows - start)), range(stop + 1), position=start)):
            found.append(len(part))
            clock.sleep(claim + len(part) * row)
    return found


@pytest.mark.parametrize(("slow", "share"), [(1, 0.2), (2, 0.25), (4, 0.55)])
@pytest.mark.parametrize("columns", [1000, 2000, 5000])
def test_claims_of_very_many_columns_are_worth_the_cost_of_their_batches(columns: int, slow: int, share: float) -> None:
    """Each batch costs 35 µs for each column, and each of its values 0.7. The machine may be slower, too."""
    batch, row = columns * 35e-6 * slow, columns * 0.7e-6 * slow
    claims = wide_claims(columns, batch, row)
    assert len(claims) * batch <= share * 2000 * row


def test_slow_rows_of_very_many_columns_are_claimed_few_at_a_time() -> None:
    assert wide_claims(1000, 0.0001, 1.0) == [62, *[1] * (2000 - 62)]
    assert max(wide_claims(20, 0.1, 0.01)) <= 5  # few columns do not cost that: the rows may


def test_slow_records_behind_quick_ones_are_not_claimed_with_them(tmp_path: Path) -> None:
    """They are in one piece. No other task could take them over otherwise."""
    claimed: list[int] = []

    def slow_at_the_end(data: bytes) -> str:
        task.clock.sleep(1e-7 if len(claimed) < 8 else 0.01)
        return data.decode()

    task = OperatorTask(BlockReader(slow_at_the_end))
    task.context.services.stealable = Watching(claimed)
    with task:
        task.give("blocks_metadata_input", [one_file(tmp_path, 20_000)])
    assert len(task.emitted["messages"]) == 20_000
    steps = [after - before for before, after in pairwise(claimed)]
    assert max(steps) <= MOST
    assert max(steps[10:]) == 5  # what takes 50 ms


@pytest.mark.parametrize("in_batches", [False, True])
def test_where_very_many_blocks_are_short_not_each_has_first_records(in_batches: bool) -> None:
    """To pass them on by themselves costs nearly as much as to pass on all."""

    def of(*blocks: float) -> list[int]:
        return claimed_of(*blocks, in_batches=in_batches)

    assert of(*[1e-7] * 40)[0] == FIRST
    assert of(*[1e-7] * 41)[0] > FIRST
    assert of(*[1e-7] * 41, *[1e-5] * 30)[0] == FIRST  # worth it: the blocks before took 20 ms


def test_first_records_that_are_slow_say_something_whatever_those_before_were() -> None:
    assert claimed_of(1e-6, 0.05, warming_up=1.0)[:2] == [FIRST, 1]


@pytest.mark.full
def test_fast_records_are_claimed_many_at_a_time(tmp_path: Path) -> None:
    calls: list[int] = []
    task = OperatorTask(BlockReader())
    task.context.services.stealable = Watching(calls)
    with task:
        task.give("blocks_metadata_input", [one_file(tmp_path, 1_000_000)])
    assert len(task.emitted["messages"]) == 1_000_000
    assert len(calls) <= 1_000_000 / MOST + 15


@pytest.mark.full
def test_fast_rows_are_claimed_by_the_piece(tmp_path: Path) -> None:
    calls: list[int] = []
    task = OperatorTask(BlockReader(), in_batches=True)
    task.context.services.stealable = Watching(calls)
    with task:
        task.give("blocks_metadata_input", [one_file(tmp_path, 400_000)])
    assert len(task.emitted["messages"]) == 400_000
    assert len(calls) < 15


def test_blocks_that_must_not_be_cut_are_not_tracked(tmp_path: Path) -> None:
    block = one_file(tmp_path, 4)
    later = attrs.evolve(block, as_planned=False)
    for reader, item in ((FSSliceReader(), block), (BlockReader(), later)):
        assert not reader.can_split(item)
        task = OperatorTask(reader)
        sharing = task.context.services.stealable = Splitter(random.Random(0))
        with task:
            task.give("blocks_metadata_input", [item])
            assert sharing.trackers == 0
            assert task.emitted["messages"]
    assert BlockReader().can_split(block)


def test_files_of_parts_are_called_by_where_they_begin() -> None:
    from dagflow import ReaderRecord

    with OperatorTask(RecordWriter("out", per_block=True, suffix=".txt")) as task:
        task.give("input", [ReaderRecord(10, 0, "one")])
        task.context.services.cursor.part = ItemPart(None, None, 40)
        task.give("input", [ReaderRecord(11, 0, "first")])
        task.context.services.cursor.part = ItemPart(None, 40, None)
        task.give("input", [ReaderRecord(11, 44, "second")], "stream")
    assert task.files.contents == {"a.txt": b"one\n", "b.txt": b"first\n", "b-40.txt": b"second\n"}
