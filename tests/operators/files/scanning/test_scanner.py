from __future__ import annotations

import copy
import os
import pickle
import socket
import threading
from pathlib import Path

import pytest

from dagflow import OperatorContext
from dagflow.errors import NotReadable
from dagflow.storage import FileStatus, file_system
from operators.files.errors import ScanFailed
from operators.files.scanner import TimeBasedDirectoryScanner
from operators.files.splitter_input import FileSplitterInput


def names(folder: Path, *more: Path, **properties) -> list[str]:
    scanner = TimeBasedDirectoryScanner([folder, *more], **properties)
    return [os.path.relpath(s.path, folder) for visit in scanner.scan_once() for s in visit.found]


def tree(folder: Path, *paths: str) -> Path:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x")
    return folder


def test_order_is_that_of_names_files_before_folders(tmp_path):
    tree(tmp_path, "b", "a/z", "a/b/y", "c", "Z", "é", "d/e")
    assert names(tmp_path) == ["Z", "b", "c", "é", "a", "a/z", "a/b", "a/b/y", "d", "d/e"]


def test_names_that_say_they_are_no_input_are_passed_over_and_counted(tmp_path, drive):
    tree(tmp_path, "f.txt", ".f.txt.Xy12Ab", "_SUCCESS", "_temporary/0/part", ".git/x", "_year=2026/g", "h._COPYING_")
    assert names(tmp_path) == ["f.txt", "_year=2026", "_year=2026/g"]
    assert len(names(tmp_path, hidden_files=True)) == 11
    assert names(tmp_path / "_temporary") == ["0", "0/part"], "an input may be called as it likes"
    assert names(tmp_path / "_SUCCESS") == ["."]
    driver = drive(FileSplitterInput([tmp_path]))
    driver.window()
    assert {name: driver.counters[name] for name in ("hidden_files", "hidden_folders")} == {
        "hidden_files": 3,
        "hidden_folders": 2,
    }


def test_a_name_that_a_copying_tool_gives_for_a_while_is_never_read(tmp_path, drive, clock):
    """As rsync has it: hidden while it is written, renamed when it is whole."""
    tree(tmp_path, ".f.txt.Xy12Ab")
    driver = drive(FileSplitterInput([tmp_path]), continuous=True, clock=clock)
    assert driver.window().names == []
    (tmp_path / ".f.txt.Xy12Ab").rename(tmp_path / "f.txt")
    clock.sleep(5)
    assert driver.window().names == ["f.txt"]


def test_without_recursion_folders_are_reported_and_not_entered(tmp_path):
    tree(tmp_path, "b", "a/z", "d.txt/e")
    assert names(tmp_path, recursive=False) == ["b", "a", "d.txt"]
    assert names(tmp_path, recursive=False, file_pattern_regular_exp=".*[.]txt") == ["d.txt"], "they pass the patterns like files"


def test_patterns_match_the_whole_path(tmp_path):
    tree(tmp_path, "a.txt", "b.csv", "sub/c.txt", "sub/d.txt.gz")
    assert names(tmp_path, file_pattern_regular_exp=".*[.]txt") == ["a.txt", "sub", "sub/c.txt"]
    assert names(tmp_path, file_pattern_regular_exp="[.]txt") == ["sub"], "folders that are entered are reported all the same"
    assert names(tmp_path, ignore_file_pattern_regular_exp=".*/sub/.*") == ["a.txt", "b.csv", "sub"]
    both = {"file_pattern_regular_exp": ".*[.]txt", "ignore_file_pattern_regular_exp": ".*/a.*"}
    assert names(tmp_path, **both) == ["sub", "sub/c.txt"]


def test_accept_may_be_overridden(tmp_path):
    class Short(TimeBasedDirectoryScanner):
        def accept(self, path: str) -> bool:
            return len(os.path.basename(path)) == 1

    tree(tmp_path, "a", "bb", "c")
    scanner = Short(tmp_path, ignore_file_pattern_regular_exp=".*/c")
    assert [os.path.basename(s.path) for v in scanner.scan_once() for s in v.found] == ["a"]


def test_links_in_a_circle_are_entered_once(tmp_path):
    tree(tmp_path, "a/b/f")
    (tmp_path / "a/b/up").symlink_to(tmp_path / "a")
    (tmp_path / "a/self").symlink_to(".")
    (tmp_path / "z").symlink_to(tmp_path / "a/b")
    assert names(tmp_path) == ["a", "a/b", "a/b/f"]


def test_a_link_to_a_file_is_a_file_and_one_that_leads_nowhere_is_not(tmp_path):
    tree(tmp_path, "a")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "nowhere").symlink_to("gone")
    (tmp_path / "round").symlink_to("round")
    assert names(tmp_path) == ["a", "link"]


def test_pipes_and_sockets_are_passed_over_and_counted(tmp_path, drive, monkeypatch):
    tree(tmp_path, "a")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        driver = drive(FileSplitterInput([tmp_path]))
        assert driver.window().names == ["a"]
    assert driver.counters["no_regular_files"] == 2


def test_folders_of_our_own_are_passed_over(tmp_path):
    tree(tmp_path, "_dagflow/log/0", "_dagflow_staging/x", "_other/f", "_dagflow.txt")
    assert names(tmp_path, hidden_files=True) == ["_dagflow.txt", "_other", "_other/f"]


def test_only_an_empty_input_is_reported_as_a_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    assert names(tmp_path) == ["empty"]
    assert names(tmp_path / "empty") == ["."]
    assert names(tree(tmp_path / "full", "b.csv"), file_pattern_regular_exp=".*txt") == [], "nothing wanted is not empty"


def test_young_files_are_left_for_later(tmp_path, drive, clock):
    tree(tmp_path, "old", "young")
    os.utime(tmp_path / "old", (clock.now() - 60, clock.now() - 60))
    os.utime(tmp_path / "young", (clock.now() - 5, clock.now() - 5))
    scanner = TimeBasedDirectoryScanner(tmp_path, min_age=10)
    driver = drive(FileSplitterInput(scanner=scanner), clock=clock, continuous=True)
    assert driver.window().names == ["old"]
    assert driver.counters["files_younger_than_min_age"] == 1
    clock.sleep(5)
    assert driver.window().names == ["young"]


def test_inputs_are_absolute_and_once(tmp_path, monkeypatch):
    tree(tmp_path, "logs/a")
    monkeypatch.chdir(tmp_path)
    scanner = TimeBasedDirectoryScanner(["logs", "logs/", "./logs", tmp_path / "logs", "logs/a", f"file://{tmp_path}/logs"])
    visits = list(scanner.scan_once())
    assert [s.path for v in visits for s in v.found] == [str(tmp_path / "logs/a")] * 2, (
        "the file itself once more: a splitter drops it"
    )


def test_files_of_any_file_system(drive):
    memory = file_system("memory://logs")
    for path in ("memory://logs/a.txt", "memory://logs/sub/b.txt", "memory://logs/sub/c.csv"):
        with memory.create(path) as file:
            file.write(b"12345")
    try:
        scanner = TimeBasedDirectoryScanner("memory://logs/", file_pattern_regular_exp=".*[.]txt")
        found = drive(FileSplitterInput(scanner=scanner, block_size=4)).window()
        assert [(b.file_path, b.start, b.stop) for b in found.blocks] == [
            ("memory://logs/a.txt", 0, 4),
            ("memory://logs/a.txt", 4, 5),
            ("memory://logs/sub/b.txt", 0, 4),
            ("memory://logs/sub/b.txt", 4, 5),
        ]
    finally:
        memory.remove_tree("memory://logs")


def test_what_vanishes_during_a_scan_is_left_out(tmp_path):
    tree(tmp_path, "a/f", "b/f")
    scan = TimeBasedDirectoryScanner(tmp_path).scan_once()
    first = next(scan)
    (tmp_path / "b/f").unlink()
    (tmp_path / "b").rmdir()
    assert [status.path for visit in (first, *scan) for status in visit.found] == [f"{tmp_path}/a", f"{tmp_path}/a/f"]


class Refusing:
    """A file system in which one folder may not be read (the user who runs the tests may read everything)."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def status(self, path: str) -> FileStatus:
        return file_system(path).status(path)

    def scan(self, path: str):
        if path == self.folder:
            raise PermissionError(13, "Permission denied", path)
        return file_system(path).scan(path)


def test_an_unreadable_folder_ends_the_run_or_is_counted(tmp_path, drive, monkeypatch):
    tree(tmp_path, "a/f", "b/f")
    monkeypatch.setattr("operators.files.tree.file_system", lambda path: Refusing(tmp_path / "a"))
    driver = drive(FileSplitterInput([tmp_path]))
    with pytest.raises(NotReadable, match=f"{tmp_path}/a: permission to read was denied, while scanning the input"):
        driver.window()
    driver = drive(FileSplitterInput(scanner=TimeBasedDirectoryScanner(tmp_path, on_unreadable="skip")))
    assert driver.window().names == ["b", "f"]
    assert driver.counters["unreadable_folders"] == 1


def test_an_error_in_the_thread_ends_the_run_with_its_cause(tmp_path, drive):
    class Broken(TimeBasedDirectoryScanner):
        def accept(self, path: str) -> bool:
            raise LookupError("no such rule")

    tree(tmp_path, "f")
    driver = drive(FileSplitterInput(scanner=Broken(tmp_path)))
    with pytest.raises(ScanFailed) as caught:
        driver.window()
    assert isinstance(caught.value.__cause__, LookupError)
    line = Broken.accept.__code__.co_firstlineno + 1
    assert str(caught.value) == (
        f"operator 'splitter': scanning {tmp_path}/f failed: LookupError: no such rule\n  at {__file__}:{line} in accept"
    )
    assert not driver.operator.is_exhausted(), "what failed is not done"
    with pytest.raises(ScanFailed):
        driver.emit_tuples()


def test_trigger_during_a_scan_asks_for_another_one(tmp_path, clock):
    tree(tmp_path, "a", "b")
    inside, go_on, scans = threading.Event(), threading.Event(), []

    class Slow(TimeBasedDirectoryScanner):
        def accept(self, path: str) -> bool:
            if path.endswith("a"):
                scans.append(path)
                inside.set()
                assert go_on.wait(30)
            return True

    scanner = Slow(tmp_path)
    scanner.trigger()  # before it runs: nothing to do
    scanner.setup(OperatorContext(clock=clock))
    try:
        assert inside.wait(30)
        scanner.trigger()
        scanner.trigger()
        go_on.set()
        found = 0
        while not scanner.is_idle() or found == 0:
            visit = scanner.take(1)
            found += len(visit.found) if visit else 0
        assert len(scans) == 2, "two requests during a scan are one scan"
        assert found == 4
    finally:
        scanner.teardown()


def scanned(scanner: TimeBasedDirectoryScanner) -> None:
    """Returns when no scan is under way or asked for; what was found may still wait."""
    thread = scanner._thread
    with thread._changed:
        assert thread._changed.wait_for(lambda: not (thread._scanning or thread._requested), 30)


def test_the_next_scan_waits_until_everything_has_been_taken(tmp_path, clock):
    tree(tmp_path, "a", "sub/b")
    scans = []

    class Counting(TimeBasedDirectoryScanner):
        def accept(self, path: str) -> bool:
            scans.append(path)
            return True

    scanner = Counting(tmp_path, scan_interval_millis=125)
    scanner.setup(OperatorContext(clock=clock, continuous=True))
    try:
        scanned(scanner)
        clock.sleep(1)
        assert scanner.take(30) is not None
        assert scanner.take(30) is not None, "this was found by the first scan"
        assert len(scans) == 2
        assert scanner.take(30) is not None, "and this by the next one, which was due"
        assert scanner.take(30) is not None
        assert len(scans) == 4
        scanned(scanner)
        clock.sleep(0.0625)
        assert scanner.take(0.01) is None, "not yet: the interval begins at the end of a scan"
        clock.sleep(0.0625)
        assert scanner.take(30) is not None
    finally:
        scanner.teardown()


def test_teardown_ends_the_thread_in_the_middle_of_a_scan(tmp_path, monkeypatch):
    monkeypatch.setattr("operators.files.scan_thread.MOST_WAITING", 1)
    tree(tmp_path, *(f"{n}/f" for n in range(20)))
    scanner = TimeBasedDirectoryScanner(tmp_path)
    scanner.setup(OperatorContext(name="busy"))
    thread = next(t for t in threading.enumerate() if t.name == "dagflow-scanner-busy")
    assert thread.daemon
    assert scanner.take(30) is not None
    scanner.teardown()
    assert not thread.is_alive()
    scanner.teardown()


def test_a_scan_never_runs_far_ahead(tmp_path, monkeypatch, drive):
    monkeypatch.setattr("operators.files.scan_thread.MOST_WAITING", 1)
    tree(tmp_path, *(f"{n:02}/f" for n in range(30)))
    driver = drive(FileSplitterInput([tmp_path]))
    assert len(driver.window().blocks) == 30


def test_copies_and_pickles_hold_properties_only(tmp_path):
    tree(tmp_path, "a")
    scanner = TimeBasedDirectoryScanner(tmp_path, recursive=False, min_age=3)
    scanner.setup(OperatorContext())
    try:
        for other in (copy.copy(scanner), copy.deepcopy(scanner), pickle.loads(pickle.dumps(scanner))):
            assert other == scanner
            assert other._thread is None
        operator = pickle.loads(pickle.dumps(FileSplitterInput(scanner=scanner)))
        assert operator.scanner == scanner
        assert operator.scanner._thread is None
    finally:
        scanner.teardown()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"scan_interval_millis": -1}, "scan_interval_millis is -1, but cannot be negative"),
        ({"min_age": -0.5}, "min_age is -0.5, but cannot be negative"),
        ({"modified": "again"}, "modified"),
        ({"on_unreadable": "weep"}, "on_unreadable"),
        ({"files": ["a", ""]}, "files holds an empty path"),
    ],
)
def test_properties_are_checked_when_they_are_set(properties, message):
    with pytest.raises(ValueError, match=message):
        TimeBasedDirectoryScanner(**properties)
    scanner = TimeBasedDirectoryScanner()
    ((name, value),) = properties.items()
    with pytest.raises(ValueError, match=message):
        setattr(scanner, name, value)


def test_a_bad_regular_expression_says_where():
    scanner = TimeBasedDirectoryScanner(["x"], file_pattern_regular_exp="logs/[a-z.txt")
    with pytest.raises(ValueError, match="is not a regular expression") as caught:
        scanner.check()
    assert str(caught.value) == (
        "file_pattern_regular_exp is not a regular expression: unterminated character set at position 5\n"
        "    logs/[a-z.txt\n"
        "         ^\n"
        "  help: it is matched against the whole path; for all files that end in .txt: .*[.]txt"
    )
    with pytest.raises(
        ValueError, match=r"scanner\.ignore_file_pattern_regular_exp is not a regular expression: nothing to repeat at position 0"
    ):
        FileSplitterInput(["x"], scanner=TimeBasedDirectoryScanner(ignore_file_pattern_regular_exp="*.txt")).check()
