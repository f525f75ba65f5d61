"""The line of the report on a window in which nothing was taken over."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import pytest

from dagflow.launching.launch import launch
from dagflow.runtime.rebalancing.policy import imbalance
from dagflow.runtime.stage.outcome import BusyInterval, TaskEndStats
from operators import BlockReader, FixedBytesReaderContext, FSSliceReader, Map, RecordWriter
from tests.conformance.apps import chain
from tests.runtime.rebalancing import skewed
from tests.runtime.rebalancing.skewed import MOVED, pause, slowly, very_slow_until
from tests.runtime.rebalancing.threads import ThreadRunner

OTHER_ENDS = ("after report",)  # the task without slow lines is the first one to report
WANTED = "another reader waits for the slot"
BIG = BusyInterval(0.0, 9.0, "big.gz cannot be split")
QUICK = BusyInterval(0.0, 0.1, "the last records of a.txt had been begun")


def ending(begun: float, until: float, longest: BusyInterval = QUICK, **more: Any) -> TaskEndStats:
    return TaskEndStats(begun=begun, until=until, longest=longest, room=2, **more)


@pytest.mark.parametrize(
    ("endings", "reason"),
    [
        ([], None),
        ([ending(0, 1.0), ending(0, 1.1)], None),  # less than is worth a steal
        ([ending(0, 9.0, BIG), ending(0, 8.9, BIG)], None),  # neither can be split, and both took as long
        ([ending(0, 9.0, BIG), ending(0, 1.0)], BIG.reason),
        ([ending(0, 9.0, BIG), ending(0, 1.0), ending(1.0, 8.9)], None),  # its slot was used
        ([ending(0, 9.0, BIG), ending(0, 1.0), ending(1.0, 3.0)], BIG.reason),
        ([ending(0, 1.0), ending(0, 1.0), ending(0.5, 9.0, BIG)], BIG.reason),  # there were more slots than two
        ([ending(0, 0.01), ending(0.02, 9.0, BIG)], BIG.reason),  # there were two slots, although they were not at work at once
        ([ending(0, 0.01), ending(8.9, 9.0, BIG)], None),  # it could not begin before
        (
            [ending(0, 1.0, stopped=WANTED), ending(0, 1.0, stopped=WANTED), ending(1.0, 9.0)],
            WANTED,
        ),  # two slots left to one task
        ([ending(0, 9.0), ending(0, 1.0, stopped=WANTED)], WANTED),
        (
            [ending(0, 9.0), ending(0, 1.0, refusals=2, refusal="not worth it")],
            "asked 2 times in vain, the last answer: not worth it",
        ),
        ([ending(0, 9.0, BusyInterval(0, 1.5, "x")), ending(0, 1.0, stopped=WANTED)], WANTED),  # that was not what took so long
    ],
)
def test_the_reason_is_taken_from_how_the_tasks_ended(endings: list[TaskEndStats], reason: str | None) -> None:
    for order in (endings, endings[::-1]):
        found = imbalance(order)
        assert (None if found is None else found.reason) == reason


def test_a_file_that_cannot_be_split_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    noise = random.Random(4)
    lines = [f"slow {noise.randbytes(20).hex()}\n" for _ in range(250)]
    (folder / "big.gz").write_bytes(gzip.compress("".join(lines).encode()))
    for n in range(3):
        (folder / f"{n}.txt").write_text("fast line\n")
    report, _ = skewed.run(folder, tmp_path / "out", blocks=1, until=OTHER_ENDS)
    assert not report.rebalanced
    assert report.rebalancing.startswith(f"{folder}/big.gz cannot be split; a reader was idle for ")


@pytest.mark.full  # real threads and real time
def test_so_is_a_block_of_fixed_cuts(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"slow one" * 200 + b"fast one" * 200)
    reader: Any = FSSliceReader(reader_context=FixedBytesReaderContext(length=8), min_readers=2, max_readers=2)
    sink = RecordWriter(str(tmp_path / "out"), terminator="")
    application = chain(tmp_path / "a.bin", Map(slow_bytes), sink=sink, reader=reader, block_size=1600)
    with very_slow_until(*OTHER_ENDS):
        report = launch(application, runner=ThreadRunner(), durability="process", rebalance="auto").report
    assert report.rebalancing.startswith(f"{tmp_path}/a.bin cannot be split; a reader was idle for ")


def slow_bytes(record: Any) -> Any:
    if record.record.startswith(b"slow"):
        pause()
    return record


@pytest.mark.full  # real threads and real time
@pytest.mark.parametrize("stolen", [True, False])
def test_a_reader_that_ended_for_others_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stolen: bool) -> None:
    """The one that is through first does not look for work where it may not keep its slot."""
    lines = [f"{'slow' if n < 150 else 'fast'} line {n:04d}\n" for n in range(300)]
    (tmp_path / "a.txt").write_text("".join(lines))
    monkeypatch.setattr("dagflow.runtime.rebalancing.peers.PeerView.wait_for_slots", lambda others, room: not stolen)
    reader: Any = BlockReader(min_readers=2, max_readers=2)
    application = chain(
        tmp_path / "a.txt", Map(slowly), sink=RecordWriter(str(tmp_path / "out")), reader=reader, block_size=15 * 150
    )
    with very_slow_until(*(MOVED if stolen else OTHER_ENDS)):
        report = launch(application, runner=ThreadRunner(), durability="process", rebalance="auto").report
    assert bool(report.rebalanced) == stolen
    if not stolen:
        assert report.rebalancing.startswith(f"{WANTED}; a reader was idle for ")
