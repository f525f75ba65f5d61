"""Datasets that are made of datasets: exactly the rows after the last position, whichever process is killed in between."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dagflow import DAG, launch
from dagflow.errors import DatasetTwice
from dagflow.ledger import DERIVATIVE, ROOT, ExecuteQuery, InputSlice, committed_files
from dagflow.runtime.events import Event, WindowDone
from dagflow.storage import file_system
from dagflow.testing import run_dag
from operators import BlockReader, DatasetInput, FileSplitterInput, RecordWriter
from operators.files.errors import DatasetMissing, DatasetReplaced
from tests.conformance.apps import lines_in
from tests.conformance.faults.derived import (
    first,
    heads,
    ledger,
    problems,
    run_first,
    run_second,
    second,
    values,
    wrong,
)
from tests.operators.files.datasets import Dataset

PROJECT = Path(__file__).parents[3]


def put(source: Path, name: str, *lines: str, microseconds: int) -> None:
    source.mkdir(exist_ok=True)
    (source / name).write_text("".join(f"{line}\n" for line in lines))
    os.utime(source / name, ns=(microseconds * 1000, microseconds * 1000))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    for number, name in enumerate("abc"):
        lines = [f"{dot}{name}{n}" for n in range(3) for dot in ("", ".")]
        put(folder, f"{name}.txt", *lines, microseconds=1_000_000 + number)
    return folder


def queries(folder: Path) -> list[ExecuteQuery]:
    return [entry.event for entry in ledger(folder).entries() if isinstance(entry.event, ExecuteQuery)]


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("stride", [pytest.param(7, marks=pytest.mark.nightly), 149])
def test_a_chain_is_continued_from_any_touch_of_a_file(source: Path, tmp_path: Path, stride: int) -> None:
    command = [sys.executable, "-m", "tests.conformance.faults.derived", str(source), str(tmp_path), str(stride)]
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["wrong"] == [], ran.stderr
    assert result["lines"] == 9
    assert result["cases"] > 500 // stride


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [pytest.param(300, marks=pytest.mark.nightly), 10])
def test_continuous_applications_in_a_chain_are_killed_at_random(tmp_path: Path, kills: int) -> None:
    seed = 97 if kills == 10 else random.SystemRandom().randrange(2**32)
    command = [sys.executable, "-m", "tests.conformance.faults.derived_random", str(tmp_path), str(kills), str(seed)]
    print("to see it again:", *command)
    ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    result = json.loads(ran.stdout.splitlines()[-1])
    assert result["wrong"] == [], ran.stderr
    assert sum(result["killed"].values()) >= kills


def test_the_second_takes_what_the_first_has_added(source: Path, tmp_path: Path) -> None:
    run_first(tmp_path, source)
    run_second(tmp_path)
    expected = Counter(f"{name}{n}".encode() for name in "abc" for n in range(3))
    assert wrong(tmp_path, expected) == []
    before = len(queries(tmp_path / "second"))
    assert before > 1
    put(source, "d.txt", "d0", ".d0", "d1", microseconds=2_000_000)
    run_first(tmp_path, source)
    report = run_second(tmp_path)
    assert report.operators["lines_lines"].records_out == 2
    assert wrong(tmp_path, expected + Counter([b"d0", b"d1"])) == []
    new = queries(tmp_path / "second")[before:]
    assert sum(each.inputs[0].rows for each in new) == 2
    assert new[0].inputs[0].prev_offset == 8
    assert new[-1].new_watermark == 2_000_000


def test_a_further_launch_adds_nothing(source: Path, tmp_path: Path) -> None:
    run_first(tmp_path, source)
    run_second(tmp_path)
    before = heads(tmp_path)
    assert (run_first(tmp_path, source).windows, run_second(tmp_path).windows) == (0, 0)
    assert heads(tmp_path) == before


def test_the_second_is_derived_from_the_first(source: Path, tmp_path: Path) -> None:
    run_first(tmp_path, source)
    run_second(tmp_path)
    above, below = ledger(tmp_path / "first"), ledger(tmp_path / "second")
    assert below.seed().dataset_kind == DERIVATIVE
    head = below.head()
    assert head is not None
    transform = below.transform_at(head.seq)
    assert transform is not None
    assert transform.inputs == (above.seed().dataset_id,)
    position: InputSlice | None = None
    for query in queries(tmp_path / "second"):
        [taken] = query.inputs
        assert taken.new_block is not None
        assert taken == above.slice_after(position, taken.new_block.seq)
        position = taken


class TestThreeInputs:
    """Numbers are those of the fault cases."""

    @pytest.fixture
    def inputs(self, tmp_path: Path) -> dict[str, Dataset]:
        return {name: Dataset(tmp_path / name, dataset_id=name) for name in "abc"}

    def query(self, tmp_path: Path, **more: Any) -> list[ExecuteQuery]:
        """Launches, and returns the entries that were added."""
        before = len(queries(tmp_path / "all")) if (tmp_path / "all").exists() else 0
        run_dag(second({name: tmp_path / name for name in "abc"}, tmp_path / "all", window_bytes=1000, **more))
        assert problems(tmp_path / "all", *(tmp_path / name for name in "abc")) == []
        return queries(tmp_path / "all")[before:]

    def test_34_one_that_idles_neither_jumps_nor_goes_back(self, tmp_path: Path, inputs: dict[str, Dataset]) -> None:
        marks = []
        for number, step in enumerate(({"a": 10}, {"a": 20, "b": 5}, {"c": 7}, {"b": 30}, {"a": 40}, {"c": 50})):
            for name, mark in step.items():
                inputs[name].commit([f"{name}{number}"], watermark=mark)
            [query] = self.query(tmp_path)
            marks.append(query.new_watermark)
            assert [each.dataset_id for each in query.inputs] == ["a", "b", "c"]
            assert {each.dataset_id for each in query.inputs if each.new_block is not None} == set(step)
        assert marks == [None, None, 5, 7, 7, 30]
        assert values(tmp_path / "all") == Counter([b"A0", b"A1", b"B1", b"C2", b"B3", b"A4", b"C5"])

    def test_35_a_watermark_alone_goes_downstream(self, tmp_path: Path, inputs: dict[str, Dataset]) -> None:
        for name, dataset in inputs.items():
            dataset.commit([name], watermark=10)
        [query] = self.query(tmp_path)
        assert (query.new_watermark, query.new_data is not None) == (10, True)
        for mark, dataset in zip((20, 30, 40), inputs.values(), strict=True):
            dataset.commit(watermark=mark)
        [query] = self.query(tmp_path)
        assert (query.new_watermark, query.new_data, query.prev_offset) == (20, None, 2)
        assert [(each.new_offset, each.prev_offset) for each in query.inputs] == [(None, 0)] * 3
        assert self.query(tmp_path) == []

    def test_one_that_never_says_a_watermark_leaves_it_unknown(self, tmp_path: Path, inputs: dict[str, Dataset]) -> None:
        inputs["a"].commit(["a"], watermark=10)
        inputs["b"].commit(["b"], watermark=20)
        inputs["c"].commit(["c"])
        [query] = self.query(tmp_path)
        assert query.new_watermark is None
        inputs["c"].commit(watermark=15)
        [query] = self.query(tmp_path)
        assert query.new_watermark == 10


class TestWaiting:
    def second(self, tmp_path: Path, *names: str, windows: int, **options: Any) -> None:
        application = second({name: tmp_path / name for name in names}, tmp_path / "out", wait=True, scan_interval_millis=0)
        settings = {"runner": "local", "once": False, "window": 0.05, "durability": "process", **options}
        launch(application, max_windows=windows, **settings).wait(60)

    def test_an_input_that_comes_later_is_declared_then(self, tmp_path: Path) -> None:
        Dataset(tmp_path / "a", "a").commit(["a"], watermark=5)
        self.second(tmp_path, "a", "b", windows=1)
        [one] = queries(tmp_path / "out")
        assert ([each.dataset_id for each in one.inputs], one.new_watermark) == (["a"], None)
        Dataset(tmp_path / "b", "b").commit(["b"], watermark=9)
        self.second(tmp_path, "a", "b", windows=1)
        [_, two] = queries(tmp_path / "out")
        assert [(each.dataset_id, each.prev_offset, each.new_offset) for each in two.inputs] == [("a", 0, None), ("b", None, 0)]
        assert two.new_watermark == 5
        assert problems(tmp_path / "out", tmp_path / "a", tmp_path / "b") == []
        assert values(tmp_path / "out") == Counter([b"A", b"B"])

    def test_an_input_that_comes_while_it_runs(self, tmp_path: Path) -> None:
        Dataset(tmp_path / "a", "a").commit(["a"])

        def later(event: Event) -> None:
            if isinstance(event, WindowDone) and event.window == 0:
                Dataset(tmp_path / "b", "b").commit(["b"])

        self.second(tmp_path, "a", "b", windows=2, subscribers=[later])
        assert [[each.dataset_id for each in query.inputs] for query in queries(tmp_path / "out")] == [["a"], ["a", "b"]]
        assert problems(tmp_path / "out", tmp_path / "a", tmp_path / "b") == []
        assert values(tmp_path / "out") == Counter([b"A", b"B"])


def test_a_dataset_and_files_into_one_output(source: Path, tmp_path: Path) -> None:
    """Not derived, since not all of it comes from datasets; exactly once all the same."""
    Dataset(tmp_path / "a", "a").commit(["x", "y"], watermark=10_000_000)

    def populate_dag(dag: DAG, conf: Any) -> None:
        dataset = dag.add_operator("known", DatasetInput(tmp_path / "a"))
        files = dag.add_operator("files", FileSplitterInput(files=[source], event_time="modified"))
        for name, port in (("known", dataset.blocks_metadata_output), ("files", files.blocks_metadata_output)):
            lines = dag.add_operator(f"{name}_lines", BlockReader())
            out = dag.add_operator(f"{name}_out", RecordWriter(str(tmp_path / "out")))
            dag.add_stream(f"{name} blocks", port, lines.blocks_metadata_input)
            dag.add_stream(f"{name} text", lines.messages, out.input)

    run_dag(populate_dag)
    state = ledger(tmp_path / "out").resume()
    assert ledger(tmp_path / "out").seed().dataset_kind == ROOT
    assert ({*state.sources}, state.watermark, state.next_offset) == ({"known", "files"}, 1_000_002, 20)
    Dataset(tmp_path / "a").commit(["z"], watermark=11_000_000)
    assert run_dag(populate_dag).windows == 1
    put(source, "d.txt", "d", microseconds=12_000_000)
    run_dag(populate_dag)
    state = ledger(tmp_path / "out").resume()
    assert (state.watermark, state.next_offset) == (11_000_000, 22)
    assert values(tmp_path / "out") == lines_in(source) + Counter([b"x", b"y", b"z"])
    assert problems(tmp_path / "out") == []


def test_a_dataset_by_url(source: Path) -> None:
    home = f"memory://chain-{os.getpid()}"
    run_dag(first(source, f"{home}/first"))
    run_dag(second({"lines": f"{home}/first"}, f"{home}/second"))
    assert sorted(read_dataset_lines(f"{home}/second")) == sorted(f"{name.upper()}{n}" for name in "abc" for n in range(3))
    assert run_dag(second({"lines": f"{home}/first"}, f"{home}/second")).windows == 0


def read_dataset_lines(url: str) -> list[str]:
    found = []
    for path in committed_files(url):
        with file_system(path).open(path) as file:
            found += file.read(1 << 20).decode().splitlines()
    return found


def test_one_dataset_by_two_operators_is_refused(tmp_path: Path) -> None:
    Dataset(tmp_path / "a", "a")
    with pytest.raises(DatasetTwice, match="operators 'one' and 'two' both read the dataset a"):
        run_dag(second({"one": tmp_path / "a", "two": tmp_path / "a"}, tmp_path / "out"))


def test_the_second_reads_while_the_first_commits(source: Path, tmp_path: Path) -> None:
    """Case 27: a reader never sees a part of a commit."""
    for number in range(30):
        put(source, f"more{number}.txt", *(f"more {number} {n}" for n in range(5)), microseconds=2_000_000 + number)
    run_dag(first(source, tmp_path / "first"), max_windows=1)
    child = os.fork()
    if not child:
        run_first(tmp_path, source)
        os._exit(0)
    launches = 0
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        run_second(tmp_path)
        launches += 1
    run_second(tmp_path)
    assert launches > 0
    assert wrong(tmp_path, lines_in(tmp_path / "first")) == []


def test_the_second_may_run_while_the_first_goes_on(source: Path, tmp_path: Path) -> None:
    run_dag(first(source, tmp_path / "first"), max_windows=1)
    for _ in range(3):
        run_second(tmp_path)
        run_dag(first(source, tmp_path / "first"), max_windows=1)
    run_first(tmp_path, source)
    run_second(tmp_path)
    assert wrong(tmp_path, lines_in(tmp_path / "first")) == []


def test_a_dataset_that_is_not_there_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(DatasetMissing):
        run_second(tmp_path)
    assert not (tmp_path / "second").exists()


def test_when_the_first_starts_over_so_must_the_second(source: Path, tmp_path: Path) -> None:
    run_first(tmp_path, source)
    run_second(tmp_path)
    run_dag(first(source, tmp_path / "first"), fresh=True)
    with pytest.raises(DatasetReplaced):
        run_second(tmp_path)
    run_dag(second({"lines": tmp_path / "first"}, tmp_path / "second"), fresh=True)
    assert wrong(tmp_path, lines_in(tmp_path / "first")) == []


def test_a_chain_that_was_moved_goes_on(source: Path, tmp_path: Path) -> None:
    run_first(tmp_path / "here", source)
    run_second(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    put(source, "d.txt", "d0", microseconds=2_000_000)
    run_first(tmp_path / "there", source)
    run_second(tmp_path / "there")
    assert wrong(tmp_path / "there", lines_in(tmp_path / "there" / "first")) == []


@pytest.mark.spark
@pytest.mark.usefixtures("spark_session")
def test_a_chain_on_spark(source: Path, tmp_path: Path) -> None:
    run_dag(first(source, tmp_path / "first"), runner="spark")
    run_dag(second({"lines": tmp_path / "first"}, tmp_path / "second"), runner="spark")
    assert sum(lines_in(tmp_path / "first").values()) == 9
    assert wrong(tmp_path, lines_in(tmp_path / "first")) == []
