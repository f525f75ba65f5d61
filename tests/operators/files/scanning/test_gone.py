"""Files that vanish between scan and plan, and warnings of those that are read again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dagflow import launch
from operators import BlockReader, FileSplitterInput, Map, RecordWriter
from operators.files.errors import PlannedFileGone
from operators.files.scanner import TimeBasedDirectoryScanner


def found_and(drive, folder: Path, change, **properties):
    """A driver whose scan is over, and what it found has changed before any of it was planned."""
    scanner = TimeBasedDirectoryScanner(folder, scan_interval_millis=1000, **properties)
    driver = drive(FileSplitterInput(scanner=scanner), continuous=True, clock=FIXED)
    thread = scanner._thread
    with thread._changed:
        assert thread._changed.wait_for(lambda: not (thread._scanning or thread._requested), 30)
    change()
    return driver


class Fixed:
    time = 2_000_000_000.0

    def now(self) -> float:
        return self.time

    monotonic = now

    def sleep(self, seconds: float) -> None:
        self.time += seconds


FIXED = Fixed()


def test_a_file_that_is_gone_before_it_is_planned_is_found_again(tmp_path, drive):
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").write_text("y")
    driver = found_and(drive, tmp_path, (tmp_path / "a").unlink)
    assert driver.window().names == ["b"]
    assert driver.counters["files_gone_since_scan"] == 1
    (tmp_path / "a").write_text("back")
    FIXED.sleep(1)
    assert driver.window().names == ["a"]


def test_a_file_that_has_changed_before_it_is_planned_is_planned_as_it_is(tmp_path, drive):
    (tmp_path / "a").write_text("x")
    driver = found_and(drive, tmp_path, lambda: (tmp_path / "a").write_text("longer"))
    (block,) = driver.window().blocks
    assert (block.stop, block.modified_ns) == (6, (tmp_path / "a").stat().st_mtime_ns)
    FIXED.sleep(1)
    assert driver.window().names == []


def test_one_that_is_still_being_written_stays_for_a_later_scan(tmp_path, drive):
    path = tmp_path / "a"
    path.write_text("x")
    os.utime(path, (1, 1))

    def grow() -> None:
        path.write_text("longer")
        os.utime(path, (FIXED.time, FIXED.time))

    driver = found_and(drive, tmp_path, grow, min_age=60.0)
    assert driver.window().names == []
    FIXED.sleep(61)
    assert driver.window().names == ["a"]


def copy_app(source: Path, output: Path):
    def populate_dag(dag, conf):
        files = dag.add_operator("files", FileSplitterInput(source))
        reader = dag.add_operator("reader", BlockReader())
        text = dag.add_operator("text", Map(lambda line: line.record))
        writer = dag.add_operator("writer", RecordWriter(path=str(output)))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, text.input)
        dag.add_stream("texts", text.output, writer.input)

    return populate_dag


def test_a_file_that_is_read_again_is_named_in_a_warning(tmp_path):
    source = tmp_path / "in"
    source.mkdir()
    for n in range(12):
        (source / f"{n:02}").write_text("one\n")
    assert launch(copy_app(source, tmp_path / "out"), runner="local").report.warnings == []
    for n in range(12):
        (source / f"{n:02}").write_text("one\ntwo\n")
    report = launch(copy_app(source, tmp_path / "out"), runner="local").report
    assert len(report.warnings) == 10
    assert report.warnings[0] == (
        f"operator 'files': {source}/00 has changed since it was read, and is read again, whole "
        "(scanner.modified=append reads only what was appended)"
    )
    assert "no more of these warnings" in report.warnings[-1]
    assert report.operators["files"].counters["files_read_again"] == 12


def test_a_file_of_which_some_blocks_are_planned_is_an_error(tmp_path, drive):
    (tmp_path / "a").write_text("abcdef")
    driver = drive(FileSplitterInput(tmp_path, block_size=2, blocks_threshold=2))
    driver.window()
    (tmp_path / "a").unlink()
    with pytest.raises(PlannedFileGone, match="on_error=skip"):
        driver.window()
