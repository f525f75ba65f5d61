"""Files that change, vanish or become folders after they were found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from operators.files.errors import FileModified, PlannedFileGone
from operators.files.scanner import TimeBasedDirectoryScanner
from operators.files.splitter_input import FileSplitterInput


def rewrite(path: Path, text: str, seconds_later: int = 1) -> None:
    """Writes a file anew; its modification time moves on by whole seconds, or not at all."""
    modified = path.stat().st_mtime_ns + seconds_later * 10**9
    path.write_text(text)
    os.utime(path, ns=(modified, modified))


def watching(folder: Path, drive, clock, modified: str = "reread", **properties):
    scanner = TimeBasedDirectoryScanner(folder, modified=modified, scan_interval_millis=1000)
    driver = drive(FileSplitterInput(scanner=scanner, block_size=2, **properties), continuous=True, clock=clock)

    def window():
        clock.sleep(1)
        return driver.window()

    return driver, window


def test_same_length_and_same_time_are_both_needed(data, drive, clock):
    driver, window = watching(data, drive, clock)
    window()
    rewrite(data / "file1.txt", "other text!", seconds_later=1)  # 11 bytes, as before
    rewrite(data / "file2.txt", "longer than it was", seconds_later=0)  # the original misses this one
    rewrite(data / "file3.txt", "back in time", seconds_later=-10)
    assert sorted(window().names) == ["file1.txt", "file2.txt", "file3.txt"]
    assert window().counts == (0, 0)
    assert driver.counters["files_read_again"] == 3


def test_modified_files_may_be_ignored(data, drive, clock):
    driver, window = watching(data, drive, clock, "ignore")
    window()
    rewrite(data / "file1.txt", "other")
    assert window().counts == (0, 0)
    assert window().counts == (0, 0)
    assert driver.counters["modified_files_ignored"] == 1
    (data / "new").write_text("x")
    assert window().names == ["new"]


def test_modified_files_may_end_the_run(data, drive, clock):
    path = data / "file1.txt"
    os.utime(path, ns=(1_700_000_000_000_000_001, 1_700_000_000_000_000_001))
    _, window = watching(data, drive, clock, "error")
    window()
    rewrite(path, "other", seconds_later=5)
    with pytest.raises(FileModified) as caught:
        window()
    assert str(caught.value) == (
        f"operator 'splitter': {path} has changed since it was split\n"
        "  before  11 bytes, modified 2023-11-14 22:13:20.000000001 UTC\n"
        "  now     5 bytes, modified 2023-11-14 22:13:25.000000001 UTC\n"
        "  help: -D operator.splitter.scanner.modified=reread reads such a file again, whole; "
        "append reads what was appended; ignore leaves it\n"
        "        for files that are still being written when they are found: -D operator.splitter.scanner.min_age=1min"
    )


def half_planned(tmp_path: Path, drive, clock, modified: str, **properties):
    path = tmp_path / "f"
    path.write_text("0123456789")
    driver, window = watching(tmp_path, drive, clock, modified, blocks_threshold=2, **properties)
    assert [b.block_id for b in window().blocks] == [0, 1]
    return path, driver, window


def test_a_file_that_changes_while_it_is_planned_is_begun_anew(tmp_path, drive, clock):
    path, driver, window = half_planned(tmp_path, drive, clock, "reread")
    rewrite(path, "abc")
    found = window()
    assert [(f.file_name, f.file_length) for f in found.files] == [("f", 3)]
    assert [(b.block_id, b.start, b.stop, b.file_length) for b in found.blocks] == [(5, 0, 2, 3), (6, 2, 3, 3)]
    assert window().counts == (0, 0)
    assert driver.counters["files_read_again"] == 1


def test_a_change_while_it_is_planned_may_be_ignored(tmp_path, drive, clock):
    path, driver, window = half_planned(tmp_path, drive, clock, "ignore")
    rewrite(path, "0123456789 and more")
    assert window().spans == [("f", 4, 6), ("f", 6, 8)]
    assert window().spans == [("f", 8, 10)]
    assert window().counts == (0, 0)
    assert driver.counters["modified_files_ignored"] == 1


def test_a_change_while_it_is_planned_may_end_the_run(tmp_path, drive, clock):
    path, _, window = half_planned(tmp_path, drive, clock, "error")
    rewrite(path, "abc")
    with pytest.raises(FileModified, match="10 bytes"):
        window()


def test_a_file_that_vanishes_while_it_is_planned_ends_the_run(tmp_path, drive, clock):
    path, _, window = half_planned(tmp_path, drive, clock, "reread")
    path.unlink()
    with pytest.raises(PlannedFileGone, match="f is gone; 2 of its 5 blocks had been planned") as caught:
        window()
    assert isinstance(caught.value.__cause__, FileNotFoundError)


@pytest.mark.parametrize("on_error", ["skip", "route"])
def test_a_file_that_vanishes_while_it_is_planned_may_be_set_aside(tmp_path, drive, clock, on_error):
    path, driver, window = half_planned(tmp_path, drive, clock, "reread", on_error=on_error)
    path.unlink()
    (tmp_path / "g").write_text("xy")
    found = window()
    assert found.names + window().names == ["g"]
    assert driver.counters["files_set_aside"] == 1
    assert [(e.operator, e.file_path) for e in found.errors] == ([("splitter", str(path))] if on_error == "route" else [])


def test_a_file_may_become_a_folder(tmp_path, drive, clock):
    (tmp_path / "x").write_text("x")
    _, window = watching(tmp_path, drive, clock)
    window()
    (tmp_path / "x").unlink()
    (tmp_path / "x").mkdir()
    (tmp_path / "x/y").write_text("y")
    assert window().names == ["x", "y"]
