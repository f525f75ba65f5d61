"""The event time that a splitter declares: when its files were modified."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from operators import FileSplitterInput


def put(folder: Path, name: str, microseconds: int, length: int = 2) -> None:
    (folder / name).write_bytes(b"x" * length)
    os.utime(folder / name, ns=(microseconds * 1000, microseconds * 1000))


def test_the_newest_time_of_the_files_that_are_planned(tmp_path, drive):
    put(tmp_path, "a", 5)
    put(tmp_path, "b", 3)
    put(tmp_path, "c", 9)
    driver = drive(FileSplitterInput(tmp_path, event_time="modified", blocks_threshold=1))
    found = []
    while not driver.operator.is_exhausted():
        found += [(block.file_path[-1], driver.operator.watermark()) for block in driver.window().blocks]
    assert found == [("a", 5), ("b", 5), ("c", 9)]


def test_a_file_counts_when_its_last_block_is_planned(tmp_path, drive):
    put(tmp_path, "a", 5)
    put(tmp_path, "b", 9, length=5)
    driver = drive(FileSplitterInput(tmp_path, event_time="modified", block_size=2, blocks_threshold=1))
    assert driver.operator.watermark() is None
    assert [(driver.window().spans, driver.operator.watermark()) for _ in range(4)] == [
        ([("a", 0, 2)], 5),
        ([("b", 0, 2)], 5),
        ([("b", 2, 4)], 5),
        ([("b", 4, 5)], 9),
    ]


def test_it_goes_on_over_launches_and_never_back(tmp_path, drive):
    put(tmp_path, "a", 5)
    first = drive(FileSplitterInput(tmp_path, event_time="modified"))
    first.window()
    put(tmp_path, "b", 4)
    second = drive(FileSplitterInput(tmp_path, event_time="modified"), states=first.states())
    assert second.operator.watermark() == 5
    assert (second.window().names, second.operator.watermark()) == (["b"], 5)


def test_without_event_time_there_is_no_watermark(tmp_path, drive):
    put(tmp_path, "a", 5)
    driver = drive(FileSplitterInput(tmp_path))
    driver.window()
    assert driver.operator.watermark() is None


def test_other_event_times_are_refused(tmp_path):
    with pytest.raises(ValueError, match="event_time"):
        FileSplitterInput(tmp_path, event_time="created")  # type: ignore[arg-type]
