from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord
from dagflow.testing import Collector, Window, run_dag, run_operator
from operators import BlockReader, FileSplitterInput
from tests.conformance.windows import InWindows


@attrs.define
class Word:
    """A record of this module: travels by value to Spark, and comes back as what it was."""

    text: str
    length: tuple[int, ...]


@attrs.define
class Words(Operator):
    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[Word]()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        for word in line.record.split():
            self.output.emit(Word(word, (len(word),)))


def test_it_collects_records_as_they_are_on_both_runners(runner: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("to be\nor\n")
    (tmp_path / "b.txt").write_text("not\n")
    seen = Collector[Word]()

    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path)], blocks_threshold=1))
        lines = dag.add_operator("lines", BlockReader())
        words = dag.add_operator("words", Words())
        dag.add_operator("seen", seen)
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("text", lines.messages, words.input)
        dag.add_stream("split", words.output, seen.input)

    report = run_dag(populate_dag, runner=runner)
    assert report.windows == 2
    assert seen.records == [Word("to", (2,)), Word("be", (2,)), Word("or", (2,)), Word("not", (3,))]
    seen.clear()
    assert seen.records == []


def test_windows_come_in_order() -> None:
    seen = Collector[int]()
    run_operator(seen, {"input": [Window(range(3000)), Window([5]), Window([6])]})
    assert seen.records == [*range(3000), 5, 6]


@pytest.mark.full
def test_its_folder_goes_with_it() -> None:
    seen = Collector[int]()
    folder = seen.folder
    run_operator(seen, {"input": [1]})
    assert os.path.exists(folder)
    del seen
    gc.collect()
    assert not os.path.exists(folder)


@attrs.define
class Change(Operator):
    """Takes back the second element of each pair, and emits the first one, if there is any."""

    emits_changes: ClassVar[bool | None] = True

    input = InputPort[list[Any]]()
    output = OutputPort[Any]()

    @input.process
    def each(self, change: list[Any]) -> None:
        come, gone = change
        if come is not None:
            self.output.emit(come)
        if gone is not None:
            self.output.retract(gone)


def changed(*changes: list[Any]) -> Collector[Any]:
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[list[Any]]([[each] for each in changes]))
        change = dag.add_operator("change", Change())
        dag.add_operator("seen", seen)
        dag.add_stream("changes", source.output, change.input)
        dag.add_stream("rows", change.output, seen.input)

    run_dag(populate_dag)
    return seen


def test_records_with_nan_are_taken_back() -> None:
    nan = float("nan")
    seen = changed([{"x": nan, "y": 0.0}, None], [{"x": 1.0, "y": nan}, None], [None, {"x": -nan, "y": -0.0}])
    assert [each["x"] for each in seen.records] == [1.0]


def test_a_record_that_is_taken_back_and_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="is not there: 'b'"):
        _ = changed(["a", None], [None, "b"]).records
