from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG
from dagflow.errors import FolderInUse, ForeignFiles, LocalPathRemoteMaster, OutputOwned, StorageBusy
from dagflow.planning.steps import make_plan
from dagflow.runtime.run_folder.folders import Folders, foreign_files, refuse_local_paths
from dagflow.storage import FileStatus, FolderLock
from dagflow.storage.remote.files import FsspecFileSystem
from dagflow.testing import run_dag
from operators import BlockReader, FileSplitterInput, RecordWriter


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("a\n")
    return path


def to(source: Path, *outputs: Path) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)]))
        lines = dag.add_operator("lines", BlockReader())
        sinks = [dag.add_operator(f"out{n}", RecordWriter(str(path))) for n, path in enumerate(outputs)]
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("lines", lines.messages, *(sink.input for sink in sinks))

    return populate_dag


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name[0] not in "._")


def test_an_output_with_foreign_files_is_refused_and_left_alone(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    for n in range(3):
        (output / f"mine{n}").write_text("precious")
    with pytest.raises(ForeignFiles) as caught:
        run_dag(to(source, output))
    assert caught.value.files == ("mine0", "mine1", "mine2")
    assert visible(output) == ["mine0", "mine1", "mine2"]
    with pytest.raises(ForeignFiles):
        run_dag(to(source, output), fresh=True)


def test_hidden_files_are_nobodys_output(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / ".gitignore").touch()
    (output / "_SUCCESS").touch()
    run_dag(to(source, output))
    assert visible(output) == ["part-000000-0000"]


def test_the_output_of_another_run_is_refused_and_left_alone(source: Path, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    run_dag(to(source, theirs))
    for fresh in (False, True):
        with pytest.raises(OutputOwned) as caught:
            run_dag(to(source, mine, theirs), fresh=fresh)
        assert caught.value.owner == str(theirs / "_dagflow")
    assert run_dag(to(source, theirs)).windows == 0, "their log is still there"


def test_a_folder_that_was_moved_as_a_whole_goes_on(source: Path, tmp_path: Path) -> None:
    run_dag(to(source, tmp_path / "out"))
    (tmp_path / "out").rename(tmp_path / "moved")
    assert run_dag(to(source, tmp_path / "moved")).windows == 0


def test_the_run_folder_may_be_elsewhere(source: Path, tmp_path: Path) -> None:
    options = {"run_folder": str(tmp_path / "run")}
    assert run_dag(to(source, tmp_path / "out", tmp_path / "copy"), **options).windows == 1
    assert run_dag(to(source, tmp_path / "out", tmp_path / "copy"), **options).windows == 0
    assert (tmp_path / "run" / "decision").is_dir()
    assert not (tmp_path / "out" / "_dagflow" / "decision").exists()
    assert run_dag(to(source, tmp_path / "out", tmp_path / "copy"), fresh=True, **options).windows == 1
    assert visible(tmp_path / "out") == visible(tmp_path / "copy") == ["part-000000-0000"]


def test_starting_over_leaves_what_others_put_there(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run_dag(to(source, output))
    (output / "notes.txt").write_text("mine")
    run_dag(to(source, output), fresh=True)
    assert visible(output) == ["notes.txt", "part-000000-0000"]


def test_two_at_once_are_refused(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run_dag(to(source, output))
    with FolderLock(str(output / "_dagflow"), who="the first"), pytest.raises(FolderInUse, match="the first"):
        run_dag(to(source, output))


def test_local_paths_with_executors_elsewhere_are_refused(source: Path, tmp_path: Path) -> None:
    dag = DAG()
    to(source, tmp_path / "out")(dag, None)
    plan = make_plan(dag)
    refuse_local_paths(plan, None)
    refuse_local_paths(plan, "local[4]")
    with pytest.raises(LocalPathRemoteMaster) as caught:
        refuse_local_paths(plan, "spark://boss:7077")
    assert caught.value.path in (str(source), str(tmp_path / "out"))


def test_half_written_records_of_a_launch_that_died_are_swept_in_all_folders(source: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / name for name in ("one", "two")]
    run_dag(to(source, *outputs))
    half = [output / "_dagflow" / folder / ".tmp-half" for output in outputs for folder in ("", "ledger")]
    half += [outputs[0] / "_dagflow" / folder / ".tmp-half" for folder in ("plan", "decision", "done")]
    for path in half:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{")
    dies = "import os, sys; from dagflow.storage import FolderLock; FolderLock(sys.argv[1]).acquire(); os._exit(9)"
    subprocess.run([sys.executable, "-c", dies, str(outputs[0] / "_dagflow")], check=False)
    run_dag(to(source, *outputs))
    assert [path for path in half if path.exists()] == []


def test_half_written_reports_of_tasks_that_were_killed_are_swept(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run_dag(to(source, output))
    half = [output / "_dagflow" / folder / ".tmp-half" for folder in ("reports", "task-states")]
    for path in half:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"{")
    run_dag(to(source, output))
    assert [path for path in half if path.exists()] == []


def test_a_store_that_is_busy_before_the_launch_has_its_lock_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(files: FsspecFileSystem, path: str) -> FileStatus:
        raise OSError(errno.EBUSY, "Service Unavailable", path)

    monkeypatch.setattr(FsspecFileSystem, "status", busy)
    with pytest.raises(StorageBusy, match="memory://run"):
        Folders.of_operators([], "memory://run").has_undone()
    with pytest.raises(StorageBusy, match="memory://out"):
        foreign_files("memory://out")
