"""Tasks that share their work, in threads against a real store: skewed work is taken over, even work not."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dagflow import ReaderRecord
from dagflow.launching.launch import launch
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator, trace
from dagflow.runtime.events import Claimed, Stolen
from dagflow.runtime.rebalancing import policy
from dagflow.runtime.run_folder.window_log import WindowLog
from operators import BlockReader, FSSliceReader, Map, RecordWriter
from operators.contexts import FixedBytesReaderContext, ReadAheadLineReaderContext
from tests.conformance.apps import chain, left_over, lines_in, written
from tests.runtime.rebalancing import skewed
from tests.runtime.rebalancing.skewed import MOVED, expected, pause, run, slowly, very_slow_until
from tests.runtime.rebalancing.threads import ThreadRunner

pytestmark = pytest.mark.full  # real threads and real time


@pytest.mark.parametrize("blocks", [2, 16])
def test_skewed_work_on_spark_is_taken_over(source: Path, tmp_path: Path, blocks: int) -> None:
    report, events = run(source, tmp_path / "out", blocks=blocks)
    assert lines_in(tmp_path / "out") == expected(source)
    stolen = [event for event in events if isinstance(event, Stolen)]
    assert stolen
    assert stolen[0].as_json()["from"] == "s0-0000"
    assert (stolen[0].to, stolen[0].window) == ("s0-0001", 0)
    assert (report.rebalanced, report.rebalanced_bytes) == (len(stolen), sum(event.bytes for event in stolen))
    assert {event.task for event in events if isinstance(event, Claimed)} == {"s0-0000", "s0-0001"}
    figures = report.operators["lines"]
    assert (figures.records_in, figures.records_out, figures.counters["blocks"]) == (blocks, 800, blocks)
    assert figures.counters["bytes"] == sum(path.stat().st_size for path in source.iterdir())
    assert left_over(tmp_path / "out") == []


def test_the_slow_part_is_shared(source: Path, tmp_path: Path) -> None:
    run(source, tmp_path / "out")
    slow = [path.read_bytes().count(b"slow") for path in written(tmp_path / "out")]
    assert sum(slow) == 200
    assert max(slow) <= 180  # 100 where the machine is idle and the first estimate good


def test_a_single_slow_block_is_cut_while_it_is_read_and_its_parts_have_files_of_their_own(source: Path, tmp_path: Path) -> None:
    report, _ = run(source, tmp_path / "out", blocks=2, per_block=True)
    names = [path.name for path in written(tmp_path / "out")]
    assert report.rebalanced
    parts = [name for name in names if "-" in name]
    whole = {name.partition("-")[0] for name in names}
    assert len(whole) == 2
    assert parts
    data = (source / "a.txt").read_bytes()
    for name in names:  # they go side by side
        _, _, start = name.partition("-")
        content = (tmp_path / "out" / name).read_bytes()
        at = data.find(content)
        assert at >= 0, name
        assert not start or at >= int(start)
    assert lines_in(tmp_path / "out") == expected(source)


def test_a_block_is_told_once_when_all_of_it_has_been_read(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever task reads its last part."""
    monkeypatch.setattr(skewed, "NOTES", tmp_path / "notes")
    report, _ = run(source, tmp_path / "out", blocks=2, told=tmp_path / "told")
    assert report.rebalanced
    assert lines_in(tmp_path / "told") == Counter([b"0", b"6000"])
    notes = (tmp_path / "notes").read_text().splitlines()
    for start in (0, 6000):
        after = [note.split() for note in notes[notes.index(f"block {start}") :]]
        assert not [position for kind, position in after if kind == "line" and start <= int(position) < start + 6000]


def test_even_work_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "EVEN", 5.0)  # the machine may be busy
    monkeypatch.setattr(policy, "is_worth", lambda remaining, cost=0: remaining >= 5)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"slow line {n:04d}\n" for n in range(80)))
    report, events = run(folder, tmp_path / "out", until=())
    assert not [event for event in events if isinstance(event, Stolen)]
    assert report.rebalancing == "the work was even"
    assert lines_in(tmp_path / "out") == expected(folder)


def test_more_readers_than_slots_do_not_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle tasks have slots, too: a task that waits for one gets it at once."""
    monkeypatch.setattr(policy, "NO_START", 60.0)
    folder = tmp_path / "in"
    folder.mkdir()
    for n in range(24):
        (folder / f"{n:02d}.txt").write_text(f"line {n}\n")
    application = chain(
        folder,
        sink=RecordWriter(str(tmp_path / "out")),
        reader=BlockReader(min_readers=8, max_readers=8),
        blocks_threshold=8,
    )
    began = time.monotonic()
    report = launch(application, runner=ThreadRunner(), durability="process", rebalance="auto", windows_in_flight=2).report
    assert report.jobs == 3
    assert lines_in(tmp_path / "out") == expected(folder)
    assert time.monotonic() - began < 30  # 0.2 s where the machine is idle


def test_work_that_turns_out_slow_at_its_very_end_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until its last block begins, nothing of the slow task seems to be worth a steal."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"{'slow' if n >= 38_000 else 'fast'} line {n:05d}\n" for n in range(40_000)))
    monkeypatch.setattr(skewed, "SLOW", 0)  # once they are stolen
    monkeypatch.setattr(policy, "GRACE", 300.0)  # the machine may be busy
    report, _ = run(folder, tmp_path / "out", blocks=20)
    assert report.rebalanced, report.rebalancing
    assert lines_in(tmp_path / "out") == expected(folder)


def test_slow_lines_behind_quick_ones_in_one_block_are_stolen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one block, and all of it is read in one go: what is slow must not be claimed before that is known."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"{'slow' if n >= 20_000 else 'fast'} line {n:05d}\n" for n in range(21_500)))
    monkeypatch.setattr(skewed, "SLOW", 0)  # once they are stolen
    monkeypatch.setattr(policy, "GRACE", 300.0)  # the machine may be busy
    report, _ = run(folder, tmp_path / "out", blocks=1)
    assert report.rebalanced, report.rebalancing
    assert lines_in(tmp_path / "out") == expected(folder)


@pytest.mark.parametrize(
    ("runner", "rebalance", "reason"),
    [
        (ThreadRunner(rebalancing_obstacle="spark.speculation is on"), "auto", "spark.speculation is on"),
        (ThreadRunner(), "off", "rebalance is off"),
        ("local", "auto", "tasks run one after the other"),
    ],
)
def test_where_it_is_off_the_report_says_why(source: Path, tmp_path: Path, runner: Any, rebalance: str, reason: str) -> None:
    report, events = run(source, tmp_path / "out", runner, rebalance=rebalance, until=())
    assert report.rebalancing == reason
    assert not [event for event in events if isinstance(event, Stolen | Claimed)]
    assert lines_in(tmp_path / "out") == expected(source)


def test_blocks_whose_records_depend_on_the_cuts_go_as_a_whole(source: Path, tmp_path: Path) -> None:
    def wait(record: ReaderRecord[bytes]) -> ReaderRecord[bytes]:
        if record.position < 4000:
            pause()
        return record

    reader: Any = FSSliceReader(reader_context=FixedBytesReaderContext(length=300), min_readers=2, max_readers=2)
    application = chain(
        source, Map(wait), sink=RecordWriter(str(tmp_path / "out"), terminator=""), reader=reader, block_size=1000
    )
    with very_slow_until(*MOVED):
        report = launch(application, runner=ThreadRunner(), durability="process", rebalance="auto").report
    assert report.rebalanced
    reference = chain(source, sink=RecordWriter(str(tmp_path / "ref"), terminator=""), reader=_again(reader), block_size=1000)
    expected = launch(reference, runner="local", durability="process").report
    assert report.operators["lines"].records_out == expected.operators["lines"].records_out
    data = (source / "a.txt").read_bytes()
    assert sum(path.stat().st_size for path in written(tmp_path / "out")) == len(data)


def _again(reader: Any) -> Any:
    return FSSliceReader(reader_context=reader.reader_context, min_readers=2, max_readers=2)


class OneByOne(ReadAheadLineReaderContext):
    """Overrides `next`, so that it is read one record at a time."""

    def next(self) -> Any:
        return super().next()


@pytest.mark.parametrize("context", [ReadAheadLineReaderContext, OneByOne])
@pytest.mark.parametrize("bad", [30, 120, 350])
def test_a_record_that_cannot_be_read_is_one_error_and_ends_the_part_that_it_is_in(
    tmp_path: Path, context: type[ReadAheadLineReaderContext], bad: int
) -> None:
    """The first one is in what the task keeps, the last one in what is taken over; the cut may be within the one between."""
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [b"slow line %04d" % n if n != bad else b"x" * 3000 for n in range(400)]
    (folder / "a.txt").write_bytes(b"".join(line + b"\n" for line in lines))
    reader: Any = BlockReader(reader_context=context(max_record_bytes=100), min_readers=2, max_readers=2, on_error="skip")
    output = tmp_path / "out"
    application = chain(folder, Map(slowly), sink=RecordWriter(str(output)), reader=reader, block_size=1 << 20)
    with very_slow_until(*MOVED):
        report = launch(application, runner=ThreadRunner(), durability="process", rebalance="auto").report
    assert report.rebalanced
    assert report.operators["lines"].errors == 1
    decision = WindowLog.open(f"{output}/_dagflow", durable=False).read_decision(0)
    assert decision is not None
    ends = sorted(stop for parts in decision.parts.values() for _, _, stop, *_ in parts if stop is not None)
    starts = [15 * n + (2986 if n > bad else 0) for n in range(400)]
    end = next((stop for stop in ends if stop > starts[bad]), 10_000)
    found = lines_in(output)
    assert found == Counter(line for line, start in zip(lines, starts, strict=True) if start < starts[bad] or start >= end)


def test_what_was_taken_over_can_be_replayed_and_traced(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    reader: Any = BlockReader(min_readers=2, max_readers=2)
    application = chain(source, Map(slowly), sink=RecordWriter(str(output)), reader=reader, block_size=4000)
    with very_slow_until(*MOVED):
        assert launch(application, runner=ThreadRunner(), durability="process", rebalance="auto").report.rebalanced
    fresh: Any = BlockReader(min_readers=2, max_readers=2)
    locator = ApplicationLocator(
        application=chain(source, Map(slowly), sink=RecordWriter(str(output)), reader=fresh, block_size=4000)
    )
    report = replay(str(output), locator=locator)
    assert (report.problems, report.left_out, report.windows, report.rows) == ((), (), 1, 800)
    rows = b"".join(path.read_bytes() for path in written(output)).splitlines()
    data = (source / "a.txt").read_bytes()
    for row in (0, 399, 799):
        found = trace(str(output), row, exact=True, locator=locator)
        assert found.problem is None
        assert found.source is not None
        assert found.source.data.rstrip() == rows[row]
        assert found.source.position == data.find(rows[row])
