"""Files that symbolic links lead to are read once, whenever the links appear."""

from __future__ import annotations

from pathlib import Path

from operators import FileSplitterInput
from operators.files.scanner import TimeBasedDirectoryScanner


def watching(drive, clock, *files: Path, **properties):
    scanner = TimeBasedDirectoryScanner([*files], scan_interval_millis=1000, **properties)
    driver = drive(FileSplitterInput(scanner=scanner), continuous=True, clock=clock)

    def window() -> list[str]:
        clock.sleep(1)
        return driver.window().names

    return window


def test_a_link_beside_its_target(tmp_path, drive, clock):
    (tmp_path / "m").write_text("x")
    (tmp_path / "z").symlink_to("m")
    window = watching(drive, clock, tmp_path)
    assert window() == ["m"]
    (tmp_path / "a").symlink_to("m")
    assert window() == [], "its name comes first now, its content is known"
    (tmp_path / "m").write_text("longer")
    assert len(window()) == 1
    (tmp_path / "a").unlink()
    assert window() == []


def test_links_to_a_file_elsewhere(tmp_path, drive, clock):
    source = tmp_path / "in"
    source.mkdir()
    (tmp_path / "elsewhere").write_text("x")
    (source / "b").symlink_to("../elsewhere")
    (source / "c").symlink_to("../elsewhere")
    window = watching(drive, clock, source)
    assert window() == ["b"]
    (source / "a").symlink_to("../elsewhere")
    (tmp_path / "elsewhere").rename(source / "elsewhere")
    assert window() == ["elsewhere"], "it is another path, and no link leads to it"


def test_a_link_to_a_folder_that_comes_later_and_before_it(tmp_path, drive, clock):
    (tmp_path / "m" / "deep").mkdir(parents=True)
    (tmp_path / "m" / "f").write_text("x")
    (tmp_path / "m" / "deep" / "g").write_text("x")
    window = watching(drive, clock, tmp_path)
    assert window() == ["m", "f", "deep", "g"]
    (tmp_path / "a").symlink_to("m")
    assert window() == []
    (tmp_path / "m" / "new").write_text("x")
    assert window() == ["new"]
    (tmp_path / "a").unlink()
    assert window() == []


def test_an_input_that_is_a_link(tmp_path, drive, clock):
    (tmp_path / "f").write_text("x")
    (tmp_path / "link").symlink_to("f")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "g").write_text("x")
    (tmp_path / "to-folder").symlink_to("folder")
    window = watching(drive, clock, tmp_path / "link", tmp_path / "f", tmp_path / "to-folder")
    assert window() == ["link", "g"]
    (tmp_path / "f").write_text("longer")
    assert len(window()) == 1


def test_a_linked_file_that_changes_in_the_middle_is_looked_up_again(tmp_path, drive, clock):
    source = tmp_path / "in"
    source.mkdir()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "f").write_text("abcdef")
    (source / "link").symlink_to(tmp_path / "deep")
    scanner = TimeBasedDirectoryScanner([source], scan_interval_millis=1000)
    driver = drive(FileSplitterInput(scanner=scanner, block_size=2, blocks_threshold=2), continuous=True, clock=clock)
    assert len(driver.window().blocks) == 2
    (tmp_path / "deep" / "f").write_text("abcdefgh")
    assert [(b.start, b.stop) for b in driver.window().blocks] == [(0, 2), (2, 4)]
    assert driver.counters["files_read_again"] == 1
