"""State that operators may keep, and fields that they must not change: the same on both runners."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import InputPort, Operator, OutputPort, ReaderRecord, WindowState
from dagflow.errors import FieldFrozen
from dagflow.testing import Collector, run_dag
from operators import BlockReader
from tests.conformance.apps import chain


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.txt").write_text("1\n2\n3\n4\n")
    return folder


@attrs.define
class Counter(Operator):
    """Emits how many lines it has seen, at the end of a window."""

    scope = "window"

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[int]()
    count = WindowState(0)

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        self.count += 1

    def end_window(self) -> None:
        self.output.emit(self.count)


def test_window_state_begins_anew_in_each_window(runner: str, source: Path) -> None:
    seen = Collector[int]()
    report = run_dag(
        chain(source, Counter(), sink=seen, reader=BlockReader[str](max_readers=1), blocks_threshold=1), runner=runner
    )
    assert (report.windows, seen.records) == (3, [4, 4, 4])


@attrs.define
class Undeclared(Operator):
    input = InputPort[ReaderRecord[str]]()
    how: str = "field"
    count: int = 0

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        if self.how == "field":
            self.count += 1
        elif self.how == "new":
            self.total: int = 1
        else:
            del self.count


@pytest.mark.parametrize(("how", "name"), [("field", "count"), ("new", "total"), ("del", "count")])
def test_undeclared_state_is_refused_not_lost(runner: str, source: Path, how: str, name: str) -> None:
    if runner == "spark" and how != "field":
        how, name = "field", "count"  # once is enough there
    with pytest.raises(FieldFrozen) as caught:
        run_dag(chain(source, sink=Undeclared(how)), runner=runner)
    assert (caught.value.operator, caught.value.field) == ("Undeclared", name)


@attrs.define
class Appends(Operator):
    """Changes a mutable field, which Python cannot forbid: it is lost with the task's copy, on both runners."""

    scope = "window"

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[int]()
    seen: list[str] = attrs.field(factory=list)

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        self.seen.append(line.record)

    def end_window(self) -> None:
        self.output.emit(len(self.seen))


def test_instances_live_for_one_task_of_one_window(runner: str, source: Path) -> None:
    seen = Collector[int]()
    operator: Any = Appends()
    run_dag(chain(source, operator, sink=seen, reader=BlockReader[str](max_readers=1), blocks_threshold=1), runner=runner)
    assert seen.records == [4, 4, 4]
    assert operator.seen == []
