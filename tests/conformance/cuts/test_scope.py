"""Results of keyed operators do not depend on how a launch cuts its input; where they would, the launch is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort, WindowState
from dagflow.errors import Interrupted, ScopeNotWritten
from dagflow.ledger import ExecuteQuery, Ledger, read_dataset
from dagflow.runtime.run_report import RunReport
from dagflow.testing import Collector, run_dag
from operators import (
    Count,
    CsvFormat,
    CsvWriter,
    DatasetInput,
    Distinct,
    FileSplitterInput,
    Filter,
    HashJoin,
    ParquetFormat,
    ParquetWriter,
    ScanReader,
    Tumbling,
)
from tests.conformance.windows import InThreeParts, InWindows

KEYS, FILES = 5, 12


@attrs.define
class Home:
    """Twelve small files with the same keys, a file with a name for each key, and three outputs."""

    folder: Path

    def write(self) -> None:
        (self.folder / "in").mkdir()
        for number in range(FILES):
            self.add(f"{number:02}")
        (self.folder / "names.csv").write_text("k,name\n" + "".join(f"k{n},n{n}\n" for n in range(KEYS)))

    def add(self, name: str) -> None:
        (self.folder / "in" / f"{name}.csv").write_text("k,v\n" + "".join(f"k{n},{name}\n" for n in range(KEYS)))

    def populate(self, threshold: int | None = None, **scope: Any) -> Any:
        def populate_dag(dag: DAG, conf: object) -> None:
            rows = self._reader(dag, "rows", "in", threshold)
            names = self._reader(dag, "names", "names.csv", threshold)
            count = dag.add_operator("count", Count[Any, str](by="k", **scope))
            first = dag.add_operator("first", Distinct("k", **scope))
            join = dag.add_operator("join", HashJoin[Any, Any, Any]("k", **scope))
            dag.add_stream("all rows", rows, count.input, first.input, join.left)
            dag.add_stream("all names", names, join.right)
            for operator in (count, first, join):
                to = dag.add_operator(
                    f"{type(operator).__name__}_writer", ParquetWriter(f"{self.folder}/{type(operator).__name__}")
                )
                dag.add_stream(f"of {type(operator).__name__}", operator.output, to.input)

        return populate_dag

    def _reader(self, dag: DAG, name: str, files: str, threshold: int | None) -> Any:
        splitter = dag.add_operator(
            f"{name}_files", FileSplitterInput([f"{self.folder}/{files}"], block_size=16, blocks_threshold=threshold)
        )
        schema = "k: string, v: string" if name == "rows" else "k: string, name: string"
        reader = dag.add_operator(f"{name}_reader", ScanReader[Any](CsvFormat(), schema=schema))
        dag.add_stream(f"{name}_blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        return reader.batches

    def rows(self) -> list[int]:
        return [read_dataset(f"{self.folder}/{name}").count_rows() for name in ("Count", "Distinct", "HashJoin")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.write()
    return made


def run(home: Home, application: Any, **options: Any) -> RunReport:
    return run_dag(application, run_folder=f"{home.folder}/run", **options)


@pytest.mark.parametrize("threshold", [None, 1, 7])
@pytest.mark.parametrize("options", [{}, {"slots": 2}, {"window": 0.001}], ids=str)
def test_results_do_not_depend_on_the_cut(home: Home, threshold: int | None, options: dict[str, Any]) -> None:
    run(home, home.populate(threshold), **options)
    assert home.rows() == [KEYS, KEYS, KEYS * FILES]


@pytest.mark.spark
def test_nor_do_they_on_spark(home: Home) -> None:
    assert run(home, home.populate(1), runner="spark").windows > 1
    assert home.rows() == [KEYS, KEYS, KEYS * FILES]


def test_a_second_launch_adds_more_input(home: Home) -> None:
    run(home, home.populate())
    assert run(home, home.populate()).windows == 0  # nothing new
    home.add("more")
    run(home, home.populate())
    assert home.rows() == [KEYS, KEYS, KEYS * (FILES + 1)]


def test_results_of_each_window_are_written_down(home: Home) -> None:
    windows = run(home, home.populate(4, scope="window")).windows
    assert windows > 1
    assert home.rows()[0] > KEYS
    home.add("more")
    assert run(home, home.populate(4, scope="window")).windows >= 1


class Largest(Operator):
    """The largest value, with a window's state."""

    input = InputPort[int]()
    output = OutputPort[int]()
    value = WindowState(0)

    @input.process
    def each(self, n: int) -> None:
        self.value = max(self.value, n)

    def end_window(self) -> None:
        if self.value:
            self.output.emit(self.value)


class LargestOfAWindow(Largest):
    scope = "window"


class Stops(InWindows[int]):
    """Stops within a window without closing it, until the next one begins."""

    done = WindowState(False)

    def emit_tuples(self) -> None:
        if not self.done and not self.is_exhausted():
            self.output.emit_all(self.windows[self.at])
            self.at += 1
            self.done = True


@pytest.mark.parametrize("source", [InWindows, InThreeParts, Stops])
@pytest.mark.parametrize(("largest", "expected"), [(Largest, [4]), (LargestOfAWindow, [2, 1, 4])])
def test_operators_with_a_windows_state_get_all_input(source: Any, largest: Any, expected: list[int]) -> None:
    seen = Collector[int]()

    def populate_dag(dag: DAG, conf: object) -> None:
        numbers = dag.add_operator("numbers", source([[2, 0], [1, 0], [3, 4, 0]]))
        most = dag.add_operator("most", largest())
        dag.add_operator("seen", seen)
        dag.add_stream("n", numbers.output, most.input)
        dag.add_stream("m", most.output, seen.input)

    run_dag(populate_dag)
    assert seen.records == expected


def test_a_continuous_launch_is_refused_before_it_starts(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        numbers = dag.add_operator("numbers", InWindows([[1], [2]]))
        most = dag.add_operator("most", Largest())
        dag.add_stream("n", numbers.output, most.input)
        dag.add_stream("m", most.output, dag.add_operator("seen", Collector[int]()).input)

    with pytest.raises(ScopeNotWritten, match="by time and size") as caught:
        run_dag(populate_dag, continuous=True, run_folder=str(tmp_path / "run"))
    assert [name for name, _, _ in caught.value.operators] == ["most"]
    assert not (tmp_path / "run").exists()


def test_a_second_launch_is_refused_on_the_driver_too(tmp_path: Path) -> None:
    seen = Collector[int]()

    def launched(windows: list[list[int]]) -> None:
        def populate_dag(dag: DAG, conf: object) -> None:
            numbers = dag.add_operator("numbers", InWindows[int](windows))
            most = dag.add_operator("most", Largest())
            dag.add_operator("seen", seen)
            dag.add_stream("n", numbers.output, most.input)
            dag.add_stream("m", most.output, seen.input)

        run_dag(populate_dag, run_folder=str(tmp_path))

    launched([[1], [2]])
    launched([[1], [2]])  # nothing new
    with pytest.raises(ScopeNotWritten):
        launched([[1], [2], [5]])
    assert seen.records == [2]


def test_a_launch_that_was_stopped_while_it_planned_has_planned_nothing(home: Home) -> None:
    class Interrupts(InWindows[int]):
        def emit_tuples(self) -> None:
            super().emit_tuples()
            if self.at == 2:
                raise Interrupted("a test")

    def populate_dag(source: Any, dag: DAG) -> None:
        numbers = dag.add_operator("numbers", source([[2], [1], [3]]))
        most = dag.add_operator("most", Largest())
        writer = dag.add_operator("writer", CsvWriter(f"{home.folder}/most"))
        wrapped = dag.add_operator("wrapped", Filter[int](lambda n: True))
        dag.add_stream("n", numbers.output, most.input)
        dag.add_stream("m", most.output, wrapped.input)
        dag.add_stream("w", wrapped.output, writer.input)

    with pytest.raises(Exception, match="a test"):
        run(home, lambda dag, conf: populate_dag(Interrupts, dag))
    run(home, lambda dag, conf: populate_dag(InWindows, dag))
    assert read_dataset(f"{home.folder}/most").to_table().column(0).to_pylist() == [3]


def test_a_dataset_is_taken_whole_and_the_ledger_says_so(home: Home) -> None:
    def first(dag: DAG, conf: object) -> None:
        rows = home._reader(dag, "rows", "in", 3)
        writer = dag.add_operator("writer", ParquetWriter(f"{home.folder}/copied"))
        dag.add_stream("r", rows, writer.input)

    def second(dag: DAG, conf: object) -> None:
        entries = dag.add_operator("entries", DatasetInput(f"{home.folder}/copied", window_bytes=1))
        reader = dag.add_operator("reader", ScanReader[Any](ParquetFormat()))
        count = dag.add_operator("count", Count[Any, str](by="k"))
        writer = dag.add_operator("writer", ParquetWriter(f"{home.folder}/counted"))
        dag.add_stream("b", entries.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("r", reader.batches, count.input)
        dag.add_stream("c", count.output, writer.input)

    assert run_dag(first, run_folder=f"{home.folder}/run1").windows > 1
    assert run_dag(second, run_folder=f"{home.folder}/run2").windows > 1
    counted = read_dataset(f"{home.folder}/counted")
    assert sorted(counted.to_table().to_pylist(), key=str) == [{"key": f"k{n}", "value": FILES} for n in range(KEYS)]
    events = [entry.event for entry in Ledger.open(f"{home.folder}/counted").entries()]
    assert sum(each.rows for event in events if isinstance(event, ExecuteQuery) for each in event.inputs) == KEYS * FILES


@pytest.mark.parametrize("lateness", [None, 0])
@pytest.mark.parametrize("threshold", [None, 1])
def test_late_records_do_not_depend_on_the_cut(home: Home, threshold: int | None, lateness: int | None) -> None:
    folder = home.folder / "times"
    folder.mkdir()
    for number, seconds in enumerate([300, 10, 20, 200]):
        (folder / f"{number}.csv").write_text(f"t\n{seconds * 1_000_000}\n")
    fired, late = Collector[Any](), Collector[Any]()

    def populate_dag(dag: DAG, conf: object) -> None:
        splitter = dag.add_operator("files", FileSplitterInput([str(folder)], blocks_threshold=threshold))
        reader = dag.add_operator("reader", ScanReader[Any](CsvFormat(), schema="t: int64"))
        hits = dag.add_operator("hits", Tumbling[Any, None, int](60, time="t", allowed_lateness=lateness))
        dag.add_operator("fired", fired)
        dag.add_operator("late", late)
        dag.add_stream("b", splitter.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("r", reader.batches, hits.input)
        dag.add_stream("f", hits.output, fired.input)
        dag.add_stream("l", hits.late, late.input)

    run_dag(populate_dag)
    assert (sum(each.value for each in fired.records), late.records) == (4, [])
