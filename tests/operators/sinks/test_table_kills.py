"""Launches that die between any two steps of publishing a window to a table, and others that resume there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest

from dagflow import DAG, ReaderRecord, launch
from dagflow.errors import OperatorFailed
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.storage.local.files import LocalFileSystem
from dagflow.testing import run_dag
from operators import DeltaWriter, FileInput, IcebergWriter, Map
from operators.sinks.table_formats import writer
from operators.sinks.table_formats.published import PublishedNotes
from operators.sinks.table_formats.staged_files import StagedParquet
from tests.chaos.dying import after, before, die_at
from tests.of_windows import OfWindows, every
from tests.tiers import mostly_nightly

STEPS = {
    "after the plan": after("plan", WindowLog),
    "after a staged file": after("close", StagedParquet),
    "before the decision": before("decide", WindowLog),
    "after the decision": after("decide", WindowLog),
    "after one name": after("rename", LocalFileSystem),
    "before the commit": before("commit", DeltaWriter, IcebergWriter),
    "after the commit": after("commit", DeltaWriter, IcebergWriter),
    "before the note": before("write", PublishedNotes),
    "after the note": after("write", PublishedNotes),
    "before the mark": before("done", WindowLog),
    "after the mark": after("done", WindowLog),
    "before sweeping": before("sweep_staged", writer),
    "after sweeping": after("sweep_staged", writer),
}
LINES = 24
KINDS = ("delta", "iceberg")
kinds = pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])


class Died(BaseException):
    """Passes all handlers of errors, as a kill does."""


def die() -> None:
    raise Died


def number_of(line: ReaderRecord[str]) -> int:
    return int(line.record)


def sink_of(kind: str, folder: Path, mode: Any) -> Any:
    keys = ["value"] if mode == "upsert" else []
    if kind == "delta":
        return DeltaWriter[int](str(folder / "table"), mode, keys=keys)
    catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/table"}
    return IcebergWriter[int]("shop.numbers", catalog, mode, keys=keys)


def populate(folder: Path, kind: str, mode: str) -> Callable[[DAG, Any], None]:
    def populate_dag(dag: DAG, conf: Any) -> None:
        lines = dag.add_module("lines", FileInput(str(folder / "in")))
        numbers = dag.add_operator("numbers", Map[Any, int](number_of))
        sink = dag.add_operator("sink", sink_of(kind, folder, mode))
        dag.add_stream("read", lines.messages, numbers.input)
        rows = numbers.output.to(OfWindows[int](every), name="windows") if mode == "replace" else numbers.output
        dag.add_stream("numbered", rows, sink.input)

    return populate_dag


def prepared(folder: Path) -> Path:
    (folder / "in").mkdir()
    for file in range(4):
        numbers = range(file * LINES // 4, (file + 1) * LINES // 4)
        (folder / "in" / f"{file}.txt").write_text("".join(f"{number:02d}\n" for number in numbers))
    return folder


SMALL: dict[str, Any] = {
    "operator.lines.splitter.block_size": 9,
    "operator.lines.splitter.blocks_threshold": 2,
    "windows_in_flight": 2,
}


def run(folder: Path, kind: str, mode: str = "append") -> Any:
    return launch(populate(folder, kind, mode), {"run_folder": str(folder / "run"), **SMALL}, runner="local").wait()


def content(folder: Path, kind: str) -> tuple[list[int], list[int], set[str]]:
    """The rows, the windows in the order of their commits, and the files of a table."""
    if kind == "delta":
        table = deltalake.DeltaTable(folder / "table")
        rows = table.to_pyarrow_table().column("value").to_pylist()
        windows = [each["dagflow.window"] for each in reversed(table.history()) if "dagflow.window" in each]
        return rows, windows, set(table.file_uris())
    opened = sink_of(kind, folder, "replace").open_table().table
    marks = [int(each.summary["dagflow.window"]) for each in opened.snapshots()]
    files = {each.file.file_path.removeprefix("file://") for each in opened.scan().plan_files()}
    return opened.scan().to_arrow().column("value").to_pylist(), marks, files


def check(folder: Path, kind: str, mode: str = "append") -> None:
    """Every row is in the table once, no file is in its folder that its log does not name, nothing is staged."""
    rows, windows, named = content(folder, kind)
    if mode == "replace":
        assert rows
        assert set(rows) < set(range(LINES))
    else:
        assert sorted(rows) == list(range(LINES))
    assert windows == sorted(windows if kind == "iceberg" and mode != "append" else set(windows)), "a window was published twice"
    files = {str(path) for path in (folder / "table").rglob("*.parquet") if path.parent.name != "_delta_log"}
    assert named <= files
    if mode == "append":
        assert named == files


@kinds
def test_without_a_kill(kind: str, tmp_path: Path) -> None:
    run(prepared(tmp_path), kind)
    check(tmp_path, kind)
    before = content(tmp_path, kind)
    assert len(before[1]) >= 4
    run(tmp_path, kind)
    assert content(tmp_path, kind) == before


QUICK = ("after the decision", "after the commit")


@kinds
@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("step", [step if step in QUICK else pytest.param(step, marks=pytest.mark.full) for step in STEPS])
def test_every_step(step: str, number: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(tmp_path)
    with monkeypatch.context() as patch:
        die_at(STEPS[step], number, die, patch.setattr)
        with pytest.raises((Died, OperatorFailed)):
            run(tmp_path, kind)
    run(tmp_path, kind)
    check(tmp_path, kind)


@pytest.mark.full
@kinds
@pytest.mark.parametrize("mode", ["upsert", "replace"])
@pytest.mark.parametrize("step", ["after the decision", "before the commit", "after the commit", "before the mark"])
def test_other_modes(step: str, mode: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(tmp_path)
    for number in (0, 1):
        with monkeypatch.context() as patch:
            die_at(STEPS[step], number, die, patch.setattr)
            with pytest.raises((Died, OperatorFailed)):
                run(tmp_path, kind, mode)
    run(tmp_path, kind, mode)
    check(tmp_path, kind, mode)


def lose_the_answer() -> None:
    raise TimeoutError("no answer")


@kinds
@pytest.mark.parametrize("step", ["before the commit", "after the commit"])
def test_a_lost_answer_is_found_in_the_table(step: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    die_at(STEPS[step], 1, lose_the_answer, monkeypatch.setattr)
    run_dag(populate(prepared(tmp_path), kind, "append"), {**SMALL, "retry_delay": 0.01}, run_folder=str(tmp_path / "run"))
    check(tmp_path, kind)


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
@kinds
def test_spark_writes_the_same_table(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    die_at(STEPS["after the commit"], 1, lose_the_answer, monkeypatch.setattr)
    run_dag(populate(prepared(tmp_path), kind, "append"), SMALL, run_folder=str(tmp_path / "run"), runner="spark")
    check(tmp_path, kind)


def main(folder: str, kind: str, mode: str, step: str, number: str) -> None:
    """Launch in a process of its own, which is killed at a step."""
    die_at(STEPS[step], int(number))
    run(Path(folder), kind, mode)


@pytest.mark.full
@pytest.mark.parametrize("seed", mostly_nightly(range(4), 0, 1))
def test_processes_that_are_killed(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    prepared(tmp_path)
    kind, mode = KINDS[seed % 2], rng.choice(["append", "upsert"])
    killed = 0
    for _ in range(4):
        step, number = rng.choice(list(STEPS)), rng.randrange(3)
        command = [sys.executable, "-m", __name__, str(tmp_path), kind, mode, step, str(number)]
        ended = subprocess.run(command, check=False, cwd=Path(__file__).parents[3])
        assert ended.returncode in (0, -signal.SIGKILL)
        killed += ended.returncode != 0
    assert killed
    run(tmp_path, kind, mode)
    check(tmp_path, kind, mode)


if __name__ == "__main__":
    main(*sys.argv[1:])
