from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from dagflow import DAG, FileInfo, InputOperator, OutputPort
from dagflow.errors import PathMissing
from dagflow.model.graph.checks import check
from dagflow.model.operator.ports import ports_of
from dagflow.storage import file_system
from operators.files.errors import InputNotFile
from operators.files.splitter_base import FileSplitterBase
from operators.files.splitter_input import FileSplitterInput


def feed(driver, *infos: FileInfo):
    driver.begin_window()
    driver.give("input", infos)
    return driver.end()


def test_ports_and_types():
    assert list(ports_of(FileSplitterBase)) == ["errors", "files_metadata_output", "blocks_metadata_output", "input"]
    assert list(ports_of(FileSplitterInput)) == ["errors", "files_metadata_output", "blocks_metadata_output"]

    class Names(InputOperator):
        output = OutputPort[FileInfo]()

    dag = DAG()
    names = dag.add_operator("names", Names())
    splitter = dag.add_operator("splitter", FileSplitterBase(block_size=5))
    dag.add_stream("infos", names.output, splitter.input)
    assert list(check(dag).nodes) == ["names", "splitter"]
    assert pickle.loads(pickle.dumps(splitter)) == splitter


def test_files_wait_until_a_window_has_room(data, drive):
    driver = drive(FileSplitterBase(block_size=2, blocks_threshold=8))
    first = feed(driver, *(FileInfo(str(data), f"file{n}.txt") for n in range(3)))
    assert first.counts == (2, 8)
    assert not driver.operator.is_exhausted()
    second = feed(driver)
    assert second.counts == (1, 8)
    assert driver.context.signals.window_closed
    third = feed(driver, FileInfo(str(data), "file3.txt"))
    assert third.spans[:3] == [("file2.txt", 8, 10), ("file2.txt", 10, 11), ("file3.txt", 0, 2)]
    assert third.names == ["file3.txt"]
    while not driver.operator.is_exhausted():
        third = feed(driver)
    assert third.blocks[-1].block_id == 23


def test_what_waits_survives_a_restart(data, drive):
    first = drive(FileSplitterBase(block_size=2, blocks_threshold=7))
    feed(first, *(FileInfo(str(data), f"file{n}.txt") for n in range(3)))
    second = drive(FileSplitterBase(block_size=2, blocks_threshold=7), states=first.states())
    assert [b.block_id for b in feed(second).blocks] == list(range(7, 14))


def test_emit_tuples_drains_what_waits(data, drive):
    driver = drive(FileSplitterBase(block_size=2, blocks_threshold=4))
    feed(driver, FileInfo(None, str(data / "file1.txt")))
    found = driver.window()
    assert len(found.blocks) == 2
    assert driver.operator.is_exhausted()


def test_the_same_file_twice_is_split_twice(data, drive):
    info = FileInfo(str(data), "file1.txt")
    assert [b.block_id for b in feed(drive(FileSplitterBase(block_size=6)), info, info).blocks] == [0, 1, 2, 3]


def test_relative_paths_become_absolute(data, drive, monkeypatch):
    monkeypatch.chdir(data)
    found = feed(drive(FileSplitterBase()), FileInfo(None, "file1.txt"), FileInfo("../data", "file2.txt"))
    assert [b.file_path for b in found.blocks] == [str(data / "file1.txt"), str(data / "file2.txt")]


def test_file_names_the_file_system(drive):
    memory = file_system("memory://bucket/a")
    with memory.create("memory://bucket/a") as file:
        file.write(b"12345")
    try:
        found = feed(drive(FileSplitterBase(file="memory://bucket")), FileInfo(None, "/a"), FileInfo(None, "memory://bucket/a"))
        assert [b.file_path for b in found.blocks] == ["memory://bucket/a"] * 2
    finally:
        memory.remove_tree("memory://bucket")


def test_a_folder_is_reported_without_blocks(data, drive):
    found = feed(drive(FileSplitterBase()), FileInfo(None, str(data)))
    assert found.counts == (1, 0)
    assert found.files[0].is_directory
    assert (found.files[0].file_name, found.files[0].file_length) == ("data", 0)


def test_a_missing_file_ends_the_run(data, drive):
    with pytest.raises(PathMissing, match=r"file99\.txt: no such file or folder, while splitting a file"):
        feed(drive(FileSplitterBase()), FileInfo(str(data), "file99.txt"))


def test_a_pipe_is_refused(tmp_path: Path, drive):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputNotFile):
        feed(drive(FileSplitterBase()), FileInfo(str(tmp_path), "pipe"))


@pytest.mark.parametrize("on_error", ["skip", "route"])
def test_a_missing_file_may_be_set_aside(data, drive, on_error):
    driver = drive(FileSplitterBase(on_error=on_error))
    found = feed(driver, FileInfo(str(data), "file99.txt"), FileInfo(str(data), "file1.txt"))
    assert found.names == ["file1.txt"]
    assert driver.counters["files_set_aside"] == 1
    assert [e.file_path for e in found.errors] == ([str(data / "file99.txt")] if on_error == "route" else [])


def test_the_file_at_hand_is_named_while_it_is_worked_on(data, drive):
    seen = []

    class Asking(FileSplitterBase):
        def get_default_block_size(self) -> int:
            seen.append(self.context.services.cursor.path)
            return 4

    driver = drive(Asking())
    feed(driver, FileInfo(str(data), "file1.txt"))
    assert seen == [str(data / "file1.txt")]
    assert driver.context.services.cursor.path is None
