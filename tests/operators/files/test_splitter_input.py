from __future__ import annotations

import os
import pickle
import time
import tracemalloc

import attrs
import pytest

from dagflow import FileInfo
from dagflow.errors import OperatorFailed, PathMissing
from dagflow.model.operator.base import fields_of
from dagflow.storage import FileStatus
from operators.files.errors import InputMissing, InputNotFile
from operators.files.scanner import TimeBasedDirectoryScanner
from operators.files.splitter_input import FileSplitterInput

TB = 10**12
MIB = 1024 * 1024


# Properties


def test_files_and_scanner_in_any_combination(tmp_path, drive):
    (tmp_path / "a").write_text("x")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b").write_text("x")
    flat = TimeBasedDirectoryScanner(recursive=False)
    own = TimeBasedDirectoryScanner(str(tmp_path), recursive=False)
    same = TimeBasedDirectoryScanner([f"{tmp_path}/"])

    def names(*args, **properties) -> list[str]:
        return drive(FileSplitterInput(*args, **properties)).window().names

    assert names(str(tmp_path)) == ["a", "sub", "b"]
    assert names([tmp_path], flat) == ["a", "sub"]
    assert names(scanner=own) == ["a", "sub"]
    assert names(files=tmp_path, scanner=same) == ["a", "sub", "b"]
    assert flat.files == [], "a run does not change the properties that it was given"


def test_properties_are_fields_that_configuration_reaches(tmp_path):
    operator = FileSplitterInput(files=[tmp_path])
    assert operator.files == [str(tmp_path)]
    assert operator.scanner == TimeBasedDirectoryScanner()
    operator.scanner.recursive = False
    operator.files = "one"
    assert operator.files == ["one"]
    assert pickle.loads(pickle.dumps(operator)) == operator
    expected = {"on_error", "block_size", "blocks_threshold", "window_bytes", "files", "scanner", "idempotent", "event_time"}
    expected |= {"one_block_suffixes", "max_rejects"}
    assert set(fields_of(operator)) == expected
    assert {a.name for a in attrs.fields(TimeBasedDirectoryScanner) if a.init} == {
        "files", "recursive", "scan_interval_millis", "file_pattern_regular_exp", "ignore_file_pattern_regular_exp",
        "modified", "record_end", "record_quote", "min_age", "wait", "on_unreadable", "hidden_files", "_trigger",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"files": []}, "files is empty: name at least one file or folder"),
        ({"block_size": 0}, r"block_size is 0, and must be at least 1 \(leave it out for the default\)"),
        ({"block_size": -5}, "block_size is -5"),
        ({"blocks_threshold": 0}, "blocks_threshold is 0"),
        ({"window_bytes": 0}, "window_bytes is 0"),
        ({"scanner": TimeBasedDirectoryScanner(["y"])}, r"files is \['x'\] and scanner.files is \['y'\]: give them in one place"),
        (
            {"scanner": TimeBasedDirectoryScanner(file_pattern_regular_exp="(")},
            "missing \\), unterminated subpattern at position 0",
        ),
    ],
)
def test_check_refuses(properties, message):
    with pytest.raises(ValueError, match=message):
        FileSplitterInput(**{"files": ["x"], **properties}).check()


def test_a_scanner_is_a_scanner():
    with pytest.raises(TypeError, match="scanner"):
        FileSplitterInput(["x"], scanner="x")


# Inputs that are not there


def test_a_missing_input_is_named_at_launch(tmp_path, drive):
    (tmp_path / "logs").mkdir()
    with pytest.raises(InputMissing) as caught:
        drive(FileSplitterInput([tmp_path / "logs", tmp_path / "lgos"]))
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"operator 'splitter': there is no file or folder {tmp_path}/lgos\n"
        f"  did you mean {tmp_path}/logs?\n"
        "  help: a continuous run waits for it with -D operator.splitter.scanner.wait=true"
    )


@pytest.mark.parametrize(
    ("path", "properties", "message"),
    [
        ("no/such/file", {}, "exists, but the rest of the path does not"),
        ("*.txt", {}, "`files` takes no patterns"),
        ("gone", {"wait": True}, "`wait` applies to continuous runs only"),
    ],
)
def test_a_missing_input_is_explained(tmp_path, drive, path, properties, message):
    with pytest.raises(InputMissing, match=message):
        drive(FileSplitterInput([tmp_path / path], scanner=TimeBasedDirectoryScanner(**properties)))


def test_a_pipe_is_no_input(tmp_path, drive):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputNotFile, match=f"{tmp_path}/pipe is neither a file nor a folder"):
        drive(FileSplitterInput([tmp_path / "pipe"]))


def test_wait_waits_until_an_input_appears(tmp_path, drive, clock):
    scanner = TimeBasedDirectoryScanner([tmp_path / "later", tmp_path / "never"], wait=True)
    driver = drive(FileSplitterInput(scanner=scanner), continuous=True, clock=clock)
    assert driver.window().counts == (0, 0)
    (tmp_path / "later").write_text("x")
    clock.sleep(5)
    assert driver.window().names == ["later"]
    assert not driver.operator.is_exhausted()


@pytest.mark.parametrize("wait", [True, False])
def test_an_input_may_vanish_during_a_continuous_run(tmp_path, drive, clock, wait):
    path = tmp_path / "f"
    path.write_text("x")
    scanner = TimeBasedDirectoryScanner(path, wait=wait, scan_interval_millis=1000)
    driver = drive(FileSplitterInput(scanner=scanner), continuous=True, clock=clock)
    assert driver.window().names == ["f"]
    path.unlink()
    clock.sleep(1)
    if not wait:
        with pytest.raises(PathMissing, match="f: no such file or folder, while scanning the input"):
            driver.window()
        return
    assert driver.window().counts == (0, 0)
    path.write_text("xy")
    clock.sleep(1)
    assert driver.window().names == ["f"]


# Once and continuous


def test_a_run_with_once_scans_once(data, drive, clock):
    driver = drive(FileSplitterInput([data]), clock=clock)
    assert driver.window().counts == (12, 12)
    assert driver.operator.is_exhausted()
    (data / "new").write_text("x")
    clock.sleep(3600)
    assert driver.window().counts == (0, 0)
    assert driver.operator.is_exhausted()


def test_a_second_launch_finds_nothing_new(data, drive):
    first = drive(FileSplitterInput([data], block_size=2))
    first.window()
    second = drive(FileSplitterInput([data], block_size=2), states=first.states())
    assert second.window().counts == (0, 0)
    assert second.operator.is_exhausted()
    assert second.counters == {}


# Windows


def test_ids_are_those_of_the_metadata(data, drive):
    (data / "empty").write_text("")
    driver = drive(FileSplitterInput([data], block_size=3, blocks_threshold=7))
    windows = driver.all_windows()
    blocks = [b for w in windows for b in w.blocks]
    files = [f for w in windows for f in w.files]
    assert [b.block_id for b in blocks] == list(range(48)) == [i for f in files for i in f.block_ids]
    assert [b.previous_block_id for b in blocks[:5]] == [-1, 0, 1, 2, -1]
    assert all(b.modified_ns == os.stat(b.file_path).st_mtime_ns for b in blocks)
    empty = next(f for f in files if f.file_name == "empty")
    assert (empty.number_of_blocks, list(empty.block_ids), empty.is_directory) == (0, [], False)
    assert files[0].discover_time == 2_000_000_000_000


def test_a_window_closes_at_its_bytes(data, drive):
    driver = drive(FileSplitterInput([data], block_size=4, window_bytes=24))
    windows = driver.all_windows()
    sizes = [sum(b.stop - b.start for b in w.blocks) for w in windows]
    assert sum(sizes) == 132
    assert all(24 <= size < 28 for size in sizes[:-1]), "at most one block more than wanted"


def test_the_default_window_counts_small_files_as_what_opening_them_costs(tmp_path, drive, monkeypatch):
    monkeypatch.setattr("operators.files.splitter_base.default_window_bytes", lambda slots: slots * 4 * 64 * 1024)
    for n in range(10):
        (tmp_path / f"{n}").write_text("x")
    assert [len(w.blocks) for w in drive(FileSplitterInput([tmp_path])).all_windows()] == [4, 4, 2]
    assert [len(w.blocks) for w in drive(FileSplitterInput([tmp_path]), slots=2).all_windows()] == [8, 2]


def test_a_full_window_takes_no_more_files(data, drive):
    driver = drive(FileSplitterInput([data], block_size=11, blocks_threshold=1))
    assert driver.window().counts == (1, 1)
    driver.begin_window()
    driver.emit_tuples()
    assert driver.context.signals.window_closed
    driver.emit_tuples()
    assert driver.end().counts == (1, 1)


def test_one_call_is_bounded_so_that_time_can_close_a_window(tmp_path, drive):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 25_000)
    driver = drive(FileSplitterInput([path], block_size=1, window_bytes=10**9))
    driver.begin_window()
    counts = []
    while len(counts) < 3:
        driver.emit_tuples()
        counts.append(len(driver.emitted["blocks_metadata_output"]))
    assert counts[0] <= 10_000
    assert not driver.context.signals.window_closed
    first = driver.end()
    assert len(first.blocks) + len(driver.window().blocks) == 25_000


@attrs.define
class Sparse(FileSplitterInput):
    """Files that seem to be 10 TB long."""

    def get_file_status(self, path: str) -> FileStatus:
        return attrs.evolve(super().get_file_status(path), length=10 * TB)


def test_a_file_of_ten_terabytes_is_planned_lazily(tmp_path, drive):
    (tmp_path / "f").write_text("x")
    driver = drive(Sparse([tmp_path], block_size=MIB), slots=4)
    tracemalloc.start()
    began = time.process_time()
    found = driver.window()
    seconds = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.files[0].number_of_blocks == len(found.files[0].block_ids) == -(-10 * TB // MIB)
    assert len(found.blocks) == -(-5 * 10**9 // MIB)
    assert driver.context.signals.window_closed
    assert peak < 10 * MIB
    assert seconds < 1, "about 0.01 s; tracing memory makes it slower"
    assert len(str(driver.states())) < 1000
    second = driver.window()
    assert second.files == []
    assert second.blocks[0].block_id == found.blocks[-1].block_id + 1


def test_default_blocks_are_sized_for_the_slots(tmp_path, drive):
    with (tmp_path / "f").open("wb") as file:
        file.truncate(100 * MIB)
    assert {b.stop - b.start for b in drive(FileSplitterInput([tmp_path]), slots=4).window().blocks} == {4 * MIB}
    assert len(drive(FileSplitterInput([tmp_path]), slots=1).window().blocks) == 8


# Overriding


def test_methods_may_be_overridden(data, drive):
    @attrs.define
    class Own(FileSplitterInput):
        def get_file_info(self) -> FileInfo | None:
            info = super().get_file_info()
            while info is not None and not info.file_path.endswith("1.txt"):
                info = super().get_file_info()
            return info

        def get_default_block_size(self) -> int:
            return self.file_at_hand.length // 2

        def process(self) -> None:
            super().process()
            self.context.count("calls")

    driver = drive(Own([data]))
    assert driver.window().spans == [
        (name, *span) for name in ("file1.txt", "file11.txt") for span in ((0, 5), (5, 10), (10, 11))
    ]
    assert driver.counters["calls"] >= 1


def test_a_default_block_size_of_nothing_is_refused(data, drive):
    @attrs.define
    class Own(FileSplitterInput):
        def get_default_block_size(self) -> int:
            return 0

    with pytest.raises(OperatorFailed, match=r"ValueError: get_default_block_size\(\) returned 0 for .*file0.txt"):
        drive(Own([data])).window()


# State


def test_state_is_small_and_plain(data, drive):
    driver = drive(FileSplitterInput([data], block_size=2, blocks_threshold=3))
    driver.window()
    state = driver.states()
    assert set(state) == {"next_block_id", "unplanned", "file_times", "seen", "parts"}
    assert state["next_block_id"] == 6
    modified = (data / "file0.txt").stat().st_mtime_ns
    assert driver.operator.seen == {str(data / "file0.txt"): f"{modified}:11"}
    assert state["unplanned"] == {
        "path": str(data / "file0.txt"), "length": 11, "modified_ns": modified, "block_size": 2, "first_id": 0, "planned": 3,
    }  # fmt: skip


@pytest.mark.parametrize("at", range(1, 8))
def test_a_restart_after_any_window_gives_the_same_blocks(data, drive, at):
    def made():
        return FileSplitterInput([data], block_size=3, blocks_threshold=7)

    whole = [b for w in drive(made()).all_windows() for b in w.blocks]
    first = drive(made())
    blocks = [b for _ in range(at) for b in first.window().blocks]
    state = first.states()
    blocks += [b for w in drive(made(), states=state).all_windows() for b in w.blocks]
    assert blocks == whole


def test_ten_thousand_files_are_found_and_found_again(tmp_path, drive, clock):
    for n in range(10):
        (tmp_path / str(n)).mkdir()
        for k in range(1000):
            (tmp_path / str(n) / f"{k}.log").touch()
    scanner = TimeBasedDirectoryScanner(tmp_path, file_pattern_regular_exp=".*[.]log")
    driver = drive(FileSplitterInput(scanner=scanner), continuous=True, clock=clock)
    began = time.process_time()
    assert len(driver.window().files) == 10_010
    found = time.process_time() - began
    clock.sleep(5)
    began = time.process_time()
    assert driver.window().counts == (0, 0)
    assert found < 2.5, "100,000 files in 5 s, and a lot to spare"
    assert time.process_time() - began < 1
