"""The agreement of an operator is published with the plan, and known to all tasks of its window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, FileBlockMetadata, InputPort, OperatorContext, OutputPort
from dagflow.errors import OperatorFailed
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.storage import open_store
from dagflow.testing import Collector, Window, run_dag, run_operator
from dagflow.testing.files import blocks_of
from operators import FileSplitterInput
from operators.readers.scaled_reader import ScaledReader


@attrs.define
class Counts(ScaledReader):
    """Tells for each block how many there have been, with those of its window."""

    fails: bool = False
    clears: bool = False

    blocks = InputPort[FileBlockMetadata]()
    output = OutputPort[int]()

    def agree(self, items: Sequence[FileBlockMetadata], before: Any, context: OperatorContext) -> Any:
        if self.fails:
            raise KeyError(f"nothing to agree on for {context.name}")
        agreed = {"blocks": len(items) + (0 if before is None else before["blocks"])}
        if self.clears:
            list.clear(items)  # type: ignore[arg-type]
        return agreed

    def setup(self, context: OperatorContext) -> None:
        self._agreed = context.agreed

    @blocks.process
    def tell(self, block: FileBlockMetadata) -> None:
        self.output.emit(self._agreed["blocks"])


def application(source: Path, seen: Collector[int], **properties: Any) -> Any:
    def populate(dag: DAG, conf: Any) -> None:
        splitter = dag.add_operator("splitter", FileSplitterInput([str(source)], block_size=4, blocks_threshold=3))
        counts = dag.add_operator("counts", Counts(min_readers=2, **properties))
        keep = dag.add_operator("keep", seen)
        dag.add_stream("blocks", splitter.blocks_metadata_output, counts.blocks)
        dag.add_stream("numbers", counts.output, keep.input)

    return populate


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "f"
    path.write_text("0123456789abcdefghij")
    return path


def test_all_tasks_of_a_window_know_it_and_the_next_window_goes_on_from_it(source: Path, tmp_path: Path) -> None:
    seen = Collector[int]()
    run_dag(application(source, seen), {}, run_folder=str(tmp_path / "run"))
    assert seen.records == [3, 3, 3, 5, 5]
    log = WindowLog(open_store(str(tmp_path / "run")))
    plans = [log.read_plan(window) for window in log.windows("plan")]
    assert [plan.agreed for plan in plans if plan is not None] == [{"counts": {"blocks": 3}}, {"counts": {"blocks": 5}}]


def test_an_error_names_the_operator(source: Path) -> None:
    with pytest.raises(OperatorFailed, match=r"'counts' failed in agree\(\)(.|\n)*nothing to agree on for counts"):
        run_dag(application(source, Collector[int](), fails=True), {})


def test_an_operator_that_changes_the_list_that_it_looks_at_takes_nothing_from_the_window(source: Path) -> None:
    seen = Collector[int]()
    run_dag(application(source, seen, clears=True), {})
    assert seen.records == [3, 3, 3, 5, 5]


def test_on_the_bench(source: Path) -> None:
    blocks = blocks_of(str(source), 4)
    assert run_operator(Counts(), {"blocks": [Window(blocks[:2]), Window(blocks[2:])]})["output"] == [2, 2, 5, 5, 5]
