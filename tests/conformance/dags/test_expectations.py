"""Limits of rejected records: a window is committed or not by the counts of all its tasks; on both runners."""

from __future__ import annotations

import contextlib
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG, InputPort, Operator, OutputPort, ReaderRecord
from dagflow.errors import ExpectationFailed
from dagflow.ledger import Ledger
from dagflow.render.report import report_text
from dagflow.runtime.events import Event, ExpectationChecked, Warned, WindowDecided, WindowRetried
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import BlockReader, Count, CsvFormat, Expect, FileSplitterInput, Filter, Map, RecordWriter, ScanReader
from tests.conformance.apps import chain, left_over, lines_in
from tests.conformance.windows import InWindows
from tests.tiers import examples

FILES = ["1\n2\n3\n4\n", "5\nx\n6\n7\n", "8\n\n9\ny\n"]
"""The windows of the cases: none, one and two bad lines of four."""


def number_of(line: ReaderRecord[str]) -> str:
    return str(int(line.record))


def is_number(line: ReaderRecord[str]) -> bool:
    return line.record.isdigit()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number, text in enumerate(FILES):
        (folder / f"{number}.txt").write_text(text)
    return folder


def limited(source: Path, output: Path, operator: Operator, **splitter: Any) -> Any:
    """Reads each file in a window of its own, in blocks of two lines."""
    return chain(source, operator, sink=RecordWriter(str(output)), **{"block_size": 4, "blocks_threshold": 2, **splitter})


def verdicts(events: list[Event]) -> list[tuple[int, int, int, str]]:
    return [(e.window, e.records, e.rejected, e.status) for e in events if isinstance(e, ExpectationChecked)]


CASES = {
    "max_rejects, a share": (Map(number_of, on_error="skip", max_rejects="25%"), b"9", "max_rejects"),
    "max_rejects, a count": (Map(number_of, on_error="skip", max_rejects=1), b"9", "max_rejects"),
    "Expect, a function": (Expect(is_number, max_share=0.25, drop=True, name="digits"), b"9", "digits"),
    "Expect, an expression": (
        Expect(pc.utf8_is_digit(pc.field("record")), max_share=0.25, drop=True, name="digits"),
        b"9",
        "digits",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_breach_ends_the_run_before_the_window_is_committed(runner: str, case: str, source: Path, tmp_path: Path) -> None:
    operator, lost, name = CASES[case]
    output, events = tmp_path / "out", list[Event]()
    with pytest.raises(ExpectationFailed) as caught:
        run_dag(limited(source, output, operator), runner=runner, subscribers=[events.append])
    assert set(lines_in(output)) == {b"1", b"2", b"3", b"4", b"5", b"6", b"7"}
    assert lost not in lines_in(output)
    assert verdicts(events) == [(0, 4, 0, "ok"), (1, 4, 1, "ok"), (2, 4, 2, "failed")]
    assert not any(isinstance(event, WindowRetried) for event in events), "it is not transient"
    assert [event.window for event in events if isinstance(event, WindowDecided)] == [0, 1]
    error = caught.value
    assert (error.code, error.exit_code, error.window, error.where_in_run["operator"]) == ("DF395", 1, 2, "m0")
    text = str(error)
    assert text.startswith("window 2 is not committed: operator 'm0' rejected 2 of 4 records (50%); limit ")
    assert f"({name})" in text
    assert "'y'" in text
    assert "launch again" in text


def test_the_next_launch_gives_the_same_verdict_until_the_limit_allows_it(runner: str, source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    app = limited(source, output, Map(number_of, on_error="skip", max_rejects=1))
    for _ in range(2):
        with pytest.raises(ExpectationFailed, match=r"window 2 .* rejected 2 of 4 records"):
            run_dag(app, runner=runner)
    report = run_dag(app, {"operator.m0.max_rejects": "50%"}, runner=runner)
    assert (report.status, report.windows, report.first_window) == ("done", 1, 2)
    assert set(lines_in(output)) == {str(n).encode() for n in range(1, 10)}
    assert left_over(output) == []


def test_a_warning_is_given_once_for_each_window_and_the_run_goes_on(runner: str, source: Path, tmp_path: Path) -> None:
    output, events = tmp_path / "out", list[Event]()
    expect = Expect(is_number, on_breach="warn", name="digits")
    report = run_dag(limited(source, output, expect), runner=runner, subscribers=[events.append])
    assert verdicts(events) == [(0, 4, 0, "ok"), (1, 4, 1, "warned"), (2, 4, 2, "warned")]
    warnings = [
        "window 1: operator 'm0' rejected 1 of 4 records (25%); limit 0% (digits)",
        "window 2: operator 'm0' rejected 2 of 4 records (50%); limit 0% (digits)",
    ]
    assert [event.text for event in events if isinstance(event, Warned)] == report.warnings == warnings
    assert sum(lines_in(output).values()) == 12, "an expectation alone changes no data"
    assert report.operators["m0"].errors == 3
    assert "expected m0: digits: 3 of 12 records rejected; 1 window ok, 2 windows warned" in " ".join(report_text(report).split())


def test_the_decision_and_the_ledger_keep_the_verdicts(source: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    run_dag(limited(source, output, Map(number_of, on_error="skip", max_rejects="50%")))
    log = WindowLog.open(str(output / "_dagflow"), durable=False)
    kept = [decision.expectations for window in range(3) if (decision := log.read_decision(window)) is not None]
    assert [(each.operator, each.rejected, each.status) for window in kept for each in window] == [
        ("m0", 0, "ok"),
        ("m0", 1, "ok"),
        ("m0", 2, "ok"),
    ]
    data = [entry.data for entry in Ledger.open(str(output)).entries() if entry.data is not None]
    assert data[-1].extra["expectations"][0] == {
        "operator": "m0",
        "name": "max_rejects",
        "records": 4,
        "rejected": 2,
        "limit": "50%",
        "status": "ok",
    }


def test_a_window_without_records_is_not_a_breach(runner: str, tmp_path: Path) -> None:
    seen, events = Collector[str](), list[Event]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        numbers = dag.add_operator("numbers", InWindows[str]([["a"], [], ["b"]]))
        start = dag.add_operator("start", Start())
        nothing = dag.add_operator("nothing", Filter[str](lambda text: text == "b"))
        check = dag.add_operator("check", Expect(lambda text: text == "b"))
        dag.add_operator("seen", seen)
        dag.add_stream("numbers", numbers.output, start.input)
        dag.add_stream("started", start.output, nothing.input)
        dag.add_stream("some", nothing.output, check.input)
        dag.add_stream("checked", check.output, seen.input)

    run_dag(populate_dag, runner=runner, subscribers=[events.append])
    assert seen.records == ["b"]
    assert verdicts(events) == [(0, 0, 0, "ok"), (1, 1, 0, "ok")]


def test_a_share_of_a_reader_counts_records_not_blocks(runner: str, source: Path) -> None:
    reader = BlockReader[int](int, on_error="skip", max_rejects="25%")
    app = chain(source, sink=Collector[Any](), reader=reader, block_size=4, blocks_threshold=2)
    with pytest.raises(ExpectationFailed, match=r"window 2 .* operator 'lines' rejected 2 of 4 records \(50%\); limit 25%"):
        run_dag(app, runner=runner)


def test_bad_rows_are_rejects(runner: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n1\nx\n3\n")
    events: list[Event] = []
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path / "a.csv")]))
        schema = {"n": "int64"}
        rows = dag.add_operator("rows", ScanReader(CsvFormat(), schema=schema, on_bad_row="drop", max_rejects="10%"))
        dag.add_operator("seen", seen)
        dag.add_stream("blocks", files.blocks_metadata_output, rows.blocks_metadata_input)
        dag.add_stream("rows", rows.batches, seen.input)

    with pytest.raises(ExpectationFailed, match="rejected 1 of 3 records") as caught:
        run_dag(populate_dag, runner=runner, subscribers=[events.append])
    assert seen.records == []
    assert "a.csv" in str(caught.value)


def test_records_that_were_combined_before_an_exchange_count_one_by_one(runner: str) -> None:
    """Count has a partial aggregation, whose operator rejects the records that have no key."""
    events: list[Event] = []
    words = ["a"] * 96 + ["b", "b", "", "a"]

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("source", InWindows[str]([words]))
        start = dag.add_operator("start", Start())
        count = dag.add_operator("count", Count[str](by=lambda word: word[0], on_error="skip", max_rejects="1%"))
        seen = dag.add_operator("seen", Collector[Any]())
        dag.add_stream("words", source.output, start.input)
        dag.add_stream("started", start.output, count.input)
        dag.add_stream("counts", count.output, seen.input)

    run_dag(populate_dag, runner=runner, subscribers=[events.append])
    assert verdicts(events)[0] == (0, 100, 1, "ok")


class Start(Operator):
    """Starts the partitioned part."""

    partitioner = StatelessPartitioner(3)
    input = InputPort[str]()
    output = OutputPort[str]()

    @input.process
    def each(self, word: str) -> None:
        self.output.emit(word)


@settings(max_examples=examples(60), deadline=None)
@given(
    windows=st.lists(st.lists(st.integers(-2, 8), max_size=12), min_size=1, max_size=4),
    percent=st.integers(0, 100),
    partitions=st.integers(1, 4),
    by_batch=st.booleans(),
)
def test_a_run_fails_if_and_only_if_a_window_has_too_large_a_share(
    windows: list[list[int]], percent: int, partitions: int, by_batch: bool
) -> None:
    def is_breach(window: list[int]) -> bool:
        return Fraction(sum(n < 0 for n in window) * 100) > percent * len(window)

    predicate = pc.field("value") >= 0 if by_batch else lambda n: n >= 0

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("source", InWindows[int](windows))
        check = dag.add_operator("check", Expect[int](predicate, max_share=percent / 100))
        text = dag.add_operator("text", Map(str))
        sink = dag.add_operator("sink", RecordWriter(folder))
        dag.set_attributes(check, partitioner=StatelessPartitioner(partitions))
        dag.add_stream("numbers", source.output, check.input)
        dag.add_stream("checked", check.output, text.input)
        dag.add_stream("texts", text.output, sink.input)

    windows_run = [window for window in windows if window]  # without records there is no window
    first = next((number for number, window in enumerate(windows_run) if is_breach(window)), None)
    with tempfile.TemporaryDirectory() as folder:
        expected = contextlib.nullcontext() if first is None else pytest.raises(ExpectationFailed, match=f"window {first} is not")
        with expected:
            run_dag(populate_dag)
        committed = [str(n).encode() for window in windows_run[:first] for n in window]
        assert sorted(lines_in(Path(folder)).elements()) == sorted(committed)
