"""Several inputs, outputs on different stores, and several applications at once."""

from __future__ import annotations

import contextlib
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG
from dagflow.errors import OperatorFailed, StorageError
from dagflow.ledger import Ledger, committed_files
from dagflow.storage import file_system
from dagflow.storage.remote.files import FsspecFileSystem
from dagflow.testing import run_dag
from operators import Map, RecordWriter, Union
from tests.conformance.apps import Populate, lines_in
from tests.conformance.windows import InWindows
from tests.runtime.windows.test_datasets import Spread

INPUTS = {"short": [["a"]], "long": [["b", "c"], ["d"], ["e"], ["f"]], "idle": [[], [], ["g"]]}
ALL = Counter(record for windows in INPUTS.values() for window in windows for record in window)


def copied(*outputs: str) -> Populate:
    """Three inputs, which end at different times → their union → tasks → each output."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        union = dag.add_operator("union", Union[str](len(INPUTS)))
        for number, (name, windows) in enumerate(INPUTS.items()):
            source = dag.add_operator(name, InWindows[str](windows))
            dag.add_stream(f"of {name}", source.output, getattr(union, f"input_{number}"))
        sinks = [dag.add_operator(f"out{number}", RecordWriter[str](output)) for number, output in enumerate(outputs)]
        spread = dag.add_operator("spread", Spread())
        dag.add_stream("records", union.output, spread.input)
        dag.add_stream("spread records", spread.output, *(sink.input for sink in sinks))

    return populate_dag


def rows(output: str) -> Counter[str]:
    """The records of all files that the ledger of an output names."""
    assert Ledger.open(output).verify().is_clean
    found: Counter[str] = Counter()
    for file in committed_files(output):
        with contextlib.closing(file_system(file).open(file)) as reader:
            found.update(reader.read(-1).decode().split())
    return found


@pytest.fixture
def remote() -> str:
    """A folder in another store than the disk."""
    return f"memory://stores-{uuid.uuid4().hex}"


def test_inputs_that_end_at_different_times_are_read_once_over_launches(runner: str, tmp_path: Path) -> None:
    output = str(tmp_path / "out")
    windows = [run_dag(copied(output), runner=runner, max_windows=2).windows for _ in range(6)]
    assert windows[-1] == 0, "nothing is left"
    assert rows(output) == ALL
    sources = Ledger.open(output).resume().sources
    assert set(sources) == set(INPUTS), "the ledger has a position of each input"


@pytest.mark.parametrize("first", ["local", "remote"])
def test_outputs_on_different_stores_get_the_same_windows(first: str, tmp_path: Path, remote: str) -> None:
    outputs = [str(tmp_path / "out"), f"{remote}/out"]
    if first == "remote":
        outputs.reverse()
    for _ in range(6):
        run_dag(copied(*outputs), max_windows=2)
    assert [rows(output) for output in outputs] == [ALL, ALL]
    one, other = (Ledger.open(output).resume() for output in outputs)
    assert one.windows == other.windows, "the same application, and the same windows of it"


def test_a_store_that_fails_after_the_decision_gets_its_window_at_the_next_launch(
    tmp_path: Path, remote: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = [str(tmp_path / "out"), f"{remote}/out"]
    run_dag(copied(*outputs), max_windows=1)
    before = [rows(output) for output in outputs]

    def refused(self: FsspecFileSystem, source: str, target: str) -> None:
        raise PermissionError(13, "Permission denied", target)

    with monkeypatch.context() as patched:
        patched.setattr(FsspecFileSystem, "rename", refused)
        with pytest.raises(StorageError, match="final name"):
            run_dag(copied(*outputs), max_windows=1)
    assert rows(outputs[1]) == before[1], "no row of the window is visible there"
    for _ in range(5):
        run_dag(copied(*outputs))
    assert [rows(output) for output in outputs] == [ALL, ALL]


def failing(output: str) -> Populate:
    """One input; its first record fails in the task."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("source", InWindows[str]([["x"]]))
        spread = dag.add_operator("spread", Spread())
        fails = dag.add_operator("fails", Map(lambda text: str(1 // 0)))
        out = dag.add_operator("out", RecordWriter[str](output))
        dag.add_stream("text", source.output, spread.input)
        dag.add_stream("spread text", spread.output, fails.input)
        dag.add_stream("made", fails.output, out.input)

    return populate_dag


def test_several_applications_run_at_once(runner: str, tmp_path: Path) -> None:
    """On Spark they share a session and its slots. One that fails cancels its own jobs only."""
    outputs = [str(tmp_path / f"out{number}") for number in range(3)]
    applications = [*map(copied, outputs), failing(str(tmp_path / "failed"))]

    def launched(application: Populate) -> str | None:
        try:
            return run_dag(application, runner=runner).status
        except OperatorFailed as error:
            return error.operator

    with ThreadPoolExecutor(len(applications)) as pool:
        ended = list(pool.map(launched, applications))
    assert ended == ["done", "done", "done", "fails"]
    assert [rows(output) for output in outputs] == [ALL] * 3
    assert lines_in(tmp_path / "failed") == Counter()
