"""Ranges of keys are rebalanced like ranges of bytes: positions mean something to the tracker only."""

from __future__ import annotations

import functools
import sqlite3
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.key_ranges.app import KeyBlock, KeyRangeInput, KeyRangeReader
from dagflow import DAG, ReaderRecord
from dagflow.launching.launch import launch
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator, trace
from dagflow.local.runner import LocalRunner
from dagflow.model.types.plain_data import dumps, loads
from dagflow.ranges import ByteKeyRangeTracker, OffsetRangeTracker
from dagflow.ranges.splitting import cuts, fraction_at
from dagflow.render.datasets.trace import trace_json, trace_text
from dagflow.render.report import report_text
from dagflow.runtime.events import Stolen
from dagflow.runtime.rebalancing import yielding
from dagflow.runtime.rebalancing.items import ItemInProgress, ItemQueue, PendingItem, Throughput
from dagflow.runtime.rebalancing.policy import StolenParts, remaining, steal_from
from dagflow.runtime.stage.parts import Part, part_of, uncovered
from operators import Map, RecordWriter
from tests.conformance.apps import left_over, lines_in, wait_for_file
from tests.runtime.rebalancing.skewed import MOVED, pause, very_slow_until
from tests.runtime.rebalancing.threads import ThreadRunner

ROWS = 400


@attrs.define
class Settings:
    database: str
    output: str
    blocks: int = 2
    told: str = ""
    other_read: str = ""


def slowly(row: ReaderRecord[str], other_read: str = "") -> str:
    """A row; those of the first quarter take long, and wait until another task has made a file, if it is named."""
    if row.position <= ROWS // 4:
        if other_read:
            wait_for_file(other_read)
        pause()
    elif row.position >= ROWS - 1 and other_read:
        Path(other_read).touch()
    return row.record


def start_of(block: KeyBlock) -> str:
    return block.start.hex()


def skewed_keys(dag: DAG, conf: Settings) -> None:
    ranges = dag.add_operator("ranges", KeyRangeInput(conf.database, "people", "name", conf.blocks))
    reader = dag.add_operator("reader", KeyRangeReader(min_readers=2, max_readers=2))
    lines = dag.add_operator("lines", Map(functools.partial(slowly, other_read=conf.other_read)))
    writer = dag.add_operator("writer", RecordWriter(conf.output))
    dag.add_stream("blocks", ranges.output, reader.blocks_metadata_input)
    dag.add_stream("rows", reader.messages, lines.input)
    dag.add_stream("lines", lines.output, writer.input)
    if conf.told:
        ids: Any = dag.add_operator("ids", Map(start_of))
        told = dag.add_operator("told", RecordWriter(conf.told))
        dag.add_stream("read", reader.blocks_metadata_output, ids.input)
        dag.add_stream("ids", ids.output, told.input)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name TEXT PRIMARY KEY, age INTEGER)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [(f"person {n:04d} é", n) for n in range(ROWS)])
    connection.close()
    return path


def expected() -> Counter[bytes]:
    return Counter(f'{{"name": "person {n:04d} é", "age": {n}}}'.encode() for n in range(ROWS))


def run(database: Path, tmp_path: Path, runner: Any = None, rebalance: str = "auto", **settings: Any) -> tuple[Any, list[Any]]:
    events: list[Any] = []
    with very_slow_until(*(MOVED if runner is None else ())):
        report = launch(
            skewed_keys,
            {"database": str(database), "output": str(tmp_path / "out"), **settings},
            runner=runner or ThreadRunner(),
            durability="process",
            rebalance=rebalance,
            subscribers=[events.append],
        ).report
    assert lines_in(tmp_path / "out") == expected()
    assert left_over(tmp_path / "out") == []
    return report, [event for event in events if isinstance(event, Stolen)]


@pytest.mark.full  # real threads and real time
def test_keys_are_taken_over_while_they_are_read(database: Path, tmp_path: Path) -> None:
    report, stolen = run(database, tmp_path, told=str(tmp_path / "told"))
    assert stolen
    assert report.rebalanced_bytes == sum(each.bytes for each in stolen) == 0  # keys are not weighed in bytes
    assert report.operators["reader"].counters["blocks"] == 2
    assert "rebalanced" in report_text(report)
    assert len(lines_in(tmp_path / "told")) == 2  # each block once, when all of it has been read


@pytest.mark.full  # real threads and real time
def test_where_claims_are_too_slow_the_rest_is_cut_for_a_further_job(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yielding, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(yielding, "YIELD_COST", 0.02)
    report, stolen = run(database, tmp_path, rebalance="yield")
    assert report.jobs > report.windows == 1
    assert stolen
    assert report.rebalanced > 0


@pytest.mark.full  # real threads and real time
@pytest.mark.parametrize("rebalance", ["auto", "yield"])
def test_what_was_taken_over_can_be_replayed_and_traced(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rebalance: str
) -> None:
    monkeypatch.setattr(yielding, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(yielding, "YIELD_COST", 0.02)
    settings = {"database": str(database), "output": str(tmp_path / "out")}
    report, _ = run(database, tmp_path, rebalance=rebalance)
    assert report.rebalanced
    locator = ApplicationLocator(application=skewed_keys, definitions=[f"{key}={value}" for key, value in settings.items()])
    out = str(tmp_path / "out")
    again = replay(out, locator=locator)
    assert (again.problems, again.left_out, again.windows, again.rows) == ((), (), 1, ROWS)
    rows = [line for path in sorted((tmp_path / "out").glob("part-*")) for line in path.read_bytes().splitlines()]
    for row in (0, ROWS // 2, ROWS - 1):
        found = trace(out, row, exact=True, locator=locator)
        assert found.problem is None
        assert found.source is not None
        assert found.source.data == rows[row]
        assert "position " in trace_text(found)
        assert "$bytes" not in trace_text(found)
        dumps(trace_json(found))


def test_a_row_of_a_stream_without_seek_is_read_again(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By reading its block up to it, where the source says nothing of its own."""
    monkeypatch.delattr(KeyRangeReader, "record_at")
    run(database, tmp_path, LocalRunner())
    locator = ApplicationLocator(application=skewed_keys, definitions=[f"database={database}", f"output={tmp_path / 'out'}"])
    found = trace(str(tmp_path / "out"), 3, exact=True, locator=locator)
    assert found.source is not None
    assert found.source.data == '{"name": "person 0003 é", "age": 3}'.encode()


# Figures


def block(start: bytes = b"a", stop: bytes = b"k", size: int = 1000) -> KeyBlock:
    return KeyBlock(0, "d", "t", "k", start, stop, size)


WHOLE = Part(0)


def held(value: Any = None, part: Part = WHOLE) -> PendingItem:
    return PendingItem.of(part, ("reader", "blocks", None), value or block(), KeyRangeReader())


def test_a_part_weighs_as_much_as_its_share_of_the_range() -> None:
    assert held().weight == 1000
    assert held(part=Part(0, b"c", b"d")).weight == pytest.approx(100)
    first, rest = held().cut(0.5) or (held(), held())
    assert (first.part, rest.part) == (Part(0, None, b"f"), Part(0, b"f", None))
    assert first.weight == rest.weight == pytest.approx(500)
    assert held(block(b"a", b"a\0")).cut(0.5) is None  # one key


def test_what_names_a_record_fits_in_a_gauge_however_long_keys_are() -> None:
    """Gauges are 200 bytes: with more, others would see nothing of a reader."""
    hand = ItemInProgress(held(block(b"a" * 500, b"b" * 500)), since=0.0)
    assert len(hand.key) < 30
    assert hand.key != ItemInProgress(held(block(b"a" * 501, b"b" * 500)), since=0.0).key


def test_half_of_a_range_without_an_end_is_given_away() -> None:
    hand = ItemInProgress(held(block(b"", b"")), since=0.0)
    hand.track(ByteKeyRangeTracker(b"", b""))
    for number in range(0x40):
        assert hand.tracker.try_return_record_at(True, bytes([number, 1]))
        hand.look(number / 10)
    assert remaining(hand, ItemQueue(), Throughput(), 6.4) == pytest.approx(19.2, rel=0.1)
    given = steal_from(hand, ItemQueue(), Throughput(), 6.4)
    assert isinstance(given, StolenParts)
    assert given.size == pytest.approx(375, abs=10)
    assert hand.read().stop == given.parts[0].start == hand.tracker.stop_position
    assert given.parts[0].stop is None


@given(st.lists(st.binary(max_size=3), min_size=2, max_size=2, unique=True), st.integers(1, 9))
def test_pieces_make_up_a_range(bounds: list[bytes], count: int) -> None:
    whole = block(min(bounds), max(bounds))
    pieces = held(whole).pieces(count)
    assert 1 <= len(pieces) <= count
    assert uncovered([piece.part for piece in pieces], 1) == []
    assert sum(piece.weight for piece in pieces) == pytest.approx(1000, rel=1e-6)
    for piece in pieces:
        assert part_of(loads(dumps(piece.part.to_list()))) == piece.part


@given(st.integers(0, 1 << 60), st.integers(0, 100), st.integers(1, 9))
def test_pieces_of_integers_are_about_equal(start: int, size: int, count: int) -> None:
    tracker = OffsetRangeTracker(start, start + size)
    bounds = [start, *cuts(tracker, count), start + size]
    assert bounds == sorted(bounds)
    sizes = [after - before for before, after in pairwise(bounds)]
    assert max(sizes) - min(sizes) <= 1 + size // count
    assert all(0.0 <= fraction_at(tracker, position) <= 1.0 for position in bounds)
