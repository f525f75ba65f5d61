"""DAGs with exchanges: levels, diamonds, several inputs, errors; the same on both runners."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, FileMetadata, InputPort, Operator, OutputPort, WindowState
from dagflow.errors import OperatorFailed
from dagflow.render.report import report_text
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import FlatMap, Map, RecordWriter
from tests.conformance.apps import left_over, lines_in
from tests.conformance.keys.exchanges import (
    CombinedTally,
    Counted,
    Line,
    Noted,
    Tally,
    adaptive,
    as_counter,
    count_words,
    expected,
    lengths,
    read,
    split_and_tally,
    words,
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("the cat and the dog\n" * 40 + "alone\n")
    (folder / "b.txt").write_text("a dog, a dog, the dog\n\n" * 25)
    return folder


@pytest.mark.parametrize("tally", [Tally, CombinedTally])
def test_words_are_counted_by_key(runner: str, source: Path, tally: type[Tally]) -> None:
    seen = Collector[Counted]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        last = count_words(dag, source, tally())
        dag.add_stream("totals", last.output, dag.add_operator("seen", seen).input)

    report = run_dag(populate_dag, runner=runner)
    assert {c.word: c.n for c in seen.records} == expected(source)
    assert len(seen.records) == len(expected(source)), "each key is in one partition"
    assert (report.windows, report.jobs, report.readers["tally"].now) == (1, 1, 3)
    figures = report.exchanges["tally.input"]
    assert figures.before == sum(expected(source).values())
    assert (figures.records < figures.before) == (tally is CombinedTally)


def test_two_levels(runner: str, source: Path, tmp_path: Path) -> None:
    """Words, then how many words there are of each length; with a sink in each level."""
    seen = Collector[Counted]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source)
        split, tally = split_and_tally(dag, Tally())
        of_length = dag.add_operator("lengths", FlatMap(lengths))
        second = dag.add_operator("second", CombinedTally(), partitioner=StatelessPartitioner(2))
        shown = dag.add_operator("shown", Map(lambda counted: f"{counted.word} {counted.n}"))
        out = dag.add_operator("out", RecordWriter[str](str(tmp_path / "words")))
        copy = dag.add_operator("copy", RecordWriter[Line](str(tmp_path / "lines")))
        dag.add_operator("seen", seen)
        dag.add_stream("text", lines.messages, split.input, copy.input)
        dag.add_stream("ones", split.output, tally.input)
        dag.add_stream("totals", tally.output, of_length.input, shown.input)
        dag.add_stream("of length", of_length.output, second.input)
        dag.add_stream("shown", shown.output, out.input)
        dag.add_stream("lengths", second.output, seen.input)

    report = run_dag(populate_dag, runner=runner)
    words = expected(source)
    assert lines_in(tmp_path / "words") == Counter(f"{word} {n}".encode() for word, n in words.items())
    assert {c.word: c.n for c in seen.records} == Counter(str(len(word)) for word in words)
    assert sum(lines_in(tmp_path / "lines").values()) == report.operators["lines"].records_out == 91
    assert left_over(tmp_path / "words") == left_over(tmp_path / "lines") == []
    assert report.jobs == 1


def test_no_stage_of_a_diamond_runs_twice(runner: str, source: Path, tmp_path: Path) -> None:
    """A stream with two ways through exchanges, two sinks: each operator before them runs once in each of its tasks."""
    one, other = Collector[Counted](), Collector[Counted]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source)
        split, tally = split_and_tally(dag, Tally())
        noted = dag.add_operator("noted", Noted(str(tmp_path / "notes")))
        second = dag.add_operator("second", Tally(), partitioner=StatelessPartitioner(2))
        dag.add_stream("text", lines.messages, noted.input)
        dag.add_stream("noted", noted.output, split.input)
        dag.add_stream("ones", split.output, tally.input, second.input)
        dag.add_stream("totals", tally.output, dag.add_operator("one", one).input)
        dag.add_stream("again", second.output, dag.add_operator("other", other).input)

    report = run_dag(populate_dag, runner=runner)
    assert as_counter(one.records) == as_counter(other.records) == expected(source)
    assert (tmp_path / "notes").read_text().count("ran") == report.readers["lines"].now
    assert report.jobs == 1


@attrs.define
class Joined(Operator):
    """Looks up each word's total among all lines, and how many files there are: inputs of three places."""

    scope = "window"

    totals = InputPort[Counted](partition_by="word")
    ones = InputPort[Counted](partition_by="word")
    files = InputPort[FileMetadata](partition_by=lambda file: "")
    output = OutputPort[str]()
    summed = WindowState[Counter[str]](factory=Counter)
    single = WindowState[Counter[str]](factory=Counter)
    found = WindowState(0)

    @totals.process
    def total(self, counted: Counted) -> None:
        self.summed[counted.word] += counted.n

    @ones.process
    def one(self, counted: Counted) -> None:
        self.single[counted.word] += 1

    @files.process
    def file(self, file: FileMetadata) -> None:
        self.found += 1

    def end_window(self) -> None:
        for word, n in self.summed.items():
            self.output.emit(f"{word} {n} {self.single[word]}")
        if self.found:
            self.output.emit(f"files {self.found}")


def test_inputs_of_the_driver_and_of_two_levels(runner: str, source: Path) -> None:
    seen = Collector[str]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files, lines = read(dag, source)
        split, tally = split_and_tally(dag, Tally())
        joined = dag.add_operator("joined", Joined(), partitioner=StatelessPartitioner(4))
        dag.add_stream("text", lines.messages, split.input)
        dag.add_stream("ones", split.output, tally.input, joined.ones)
        dag.add_stream("totals", tally.output, joined.totals)
        dag.add_stream("found", files.files_metadata_output, joined.files)
        dag.add_stream("joined", joined.output, dag.add_operator("seen", seen).input)

    run_dag(populate_dag, runner=runner)
    assert Counter(seen.records) == Counter([*(f"{word} {n} {n}" for word, n in expected(source).items()), "files 2"])


class Plain:
    """A class without an Arrow form."""

    def __init__(self, text: str) -> None:
        self.text = text


@attrs.define
class Texts(Operator):
    input = InputPort[Plain](partition_by=lambda plain: plain.text)
    output = OutputPort[str]()

    @input.process
    def each(self, plain: Plain) -> None:
        self.output.emit(plain.text)


def plain(line: Line) -> Plain:
    return Plain(line.record)


def test_records_without_an_arrow_form_travel_pickled(runner: str, source: Path) -> None:
    seen = Collector[str]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source)
        made = dag.add_operator("made", Map(plain))
        texts = dag.add_operator("texts", Texts(), partitioner=StatelessPartitioner(2))
        dag.add_stream("text", lines.messages, made.input)
        dag.add_stream("made", made.output, texts.input)
        dag.add_stream("texts", texts.output, dag.add_operator("seen", seen).input)

    run_dag(populate_dag, runner=runner)
    assert Counter(seen.records) == Counter(line for path in source.iterdir() for line in path.read_text().splitlines())


def refuse(counted: Counted) -> str:
    if counted.word == "alone":
        raise ValueError("nobody should be alone")
    return counted.word


def test_an_error_behind_an_exchange_names_its_operator(runner: str, source: Path, tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        tally = count_words(dag, source)
        refused = dag.add_operator("refused", Map(refuse))
        out = dag.add_operator("out", RecordWriter[str](str(tmp_path / "out")))
        dag.add_stream("totals", tally.output, refused.input)
        dag.add_stream("words", refused.output, out.input)

    with pytest.raises(OperatorFailed) as caught:
        run_dag(populate_dag, runner=runner)
    assert (caught.value.operator, caught.value.window) == ("refused", 0)
    assert "nobody should be alone" in str(caught.value)
    assert "in refuse: raise ValueError" in str(caught.value)
    assert not (tmp_path / "out").exists() or lines_in(tmp_path / "out") == Counter()


def fails_before(line: Line) -> list[Counted]:
    if line.record == "alone":
        raise ValueError("nobody should be alone")
    return [Counted("x", 1)]


def test_an_error_before_an_exchange_ends_the_run(runner: str, source: Path) -> None:
    """Tasks behind it do not run on what there is: else their own trouble with half of the records might be told."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source)
        fails = dag.add_operator("fails", FlatMap(fails_before))
        tally = dag.add_operator("tally", Tally())
        dag.add_stream("text", lines.messages, fails.input)
        dag.add_stream("ones", fails.output, tally.input)
        dag.add_stream("totals", tally.output, dag.add_operator("seen", Collector[Counted]()).input)

    with pytest.raises(OperatorFailed) as caught:
        run_dag(populate_dag, runner=runner)
    assert (caught.value.operator, caught.value.window) == ("fails", 0)
    assert "a.txt, position" in str(caught.value)


def test_windows_go_on_from_one_another(runner: str, source: Path) -> None:
    """Several windows, each a job with two levels; a second launch finds nothing to do."""
    seen = Collector[Counted]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        tally = count_words(dag, source, blocks_threshold=8)
        dag.add_stream("totals", tally.output, dag.add_operator("seen", seen).input)

    report = run_dag(populate_dag, runner=runner, windows_in_flight=2)
    assert report.windows == report.jobs > 1
    assert as_counter(seen.records) == expected(source)


@attrs.define
class Slow(Operator):
    """Takes its time with some lines."""

    input = InputPort[Line]()
    output = OutputPort[Line]()

    @input.process
    def each(self, line: Line) -> None:
        if line.record == "alone":
            time.sleep(0.3)
        self.output.emit(line)


@pytest.mark.spark
def test_work_on_spark_is_shared_before_an_exchange(spark_session: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("alone\n" * 12 + "fast\n" * 2000)
    seen = Collector[Counted]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, folder, block_size=4096)
        split, tally = split_and_tally(dag, Tally())
        slow = dag.add_operator("slow", Slow())
        dag.add_stream("text", lines.messages, slow.input)
        dag.add_stream("slowly", slow.output, split.input)
        dag.add_stream("ones", split.output, tally.input)
        dag.add_stream("totals", tally.output, dag.add_operator("seen", seen).input)

    report = run_dag(populate_dag, runner="spark", rebalance="auto")
    assert report.rebalanced > 0, report.rebalancing
    assert as_counter(seen.records) == Counter(alone=12, fast=2000)
    assert os.listdir(folder) == ["a.txt"]


def long_ones(counted: Counted) -> str:
    if counted.n > 1:
        raise ValueError(f"{counted.word} is there too often")
    return counted.word


@attrs.define
class Each(Operator):
    input = InputPort[Counted](partition_by="word")

    @input.process
    def each(self, counted: Counted) -> None:
        if counted.word == "alone":
            raise ValueError("nobody should be alone")


def test_an_error_tells_which_task_has_sent_the_record_and_what_that_read(runner: str, source: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source, block_size=500)
        split = dag.add_operator("words", FlatMap(words))
        each = dag.add_operator("each", Each(), partitioner=StatelessPartitioner(2))
        dag.add_stream("text", lines.messages, split.input)
        dag.add_stream("ones", split.output, each.input)

    with pytest.raises(OperatorFailed) as caught:
        run_dag(populate_dag, runner=runner)
    assert caught.value.source is not None
    assert re.match(r"task s0-000\d, which was given bytes [\d, to]+ of .*a\.txt", caught.value.source)
    assert (caught.value.operator, caught.value.record) == ("each", "Counted(word='alone', n=1)")


@pytest.mark.parametrize("on_error", ["skip", "route"])
def test_errors_behind_an_exchange_may_pass(runner: str, source: Path, on_error: Any) -> None:
    seen, bad = Collector[str](), Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        tally = count_words(dag, source)
        checked = dag.add_operator("checked", Map(long_ones, on_error=on_error))
        dag.add_stream("totals", tally.output, checked.input)
        dag.add_stream("words", checked.output, dag.add_operator("seen", seen).input)
        dag.add_stream("bad", checked.errors, dag.add_operator("bad", bad).input)

    report = run_dag(populate_dag, runner=runner)
    assert seen.records == ["alone"]
    assert report.operators["checked"].errors == len(expected(source)) - 1
    assert len(bad.records) == (len(expected(source)) - 1 if on_error == "route" else 0)


def test_a_hot_key_is_named_and_kills_nothing(runner: str, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("hot hot hot hot hot hot hot hot hot cold\n" * 4000)
    seen = Collector[Counted]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        tally = count_words(dag, folder, block_size=20_000)
        dag.add_stream("totals", tally.output, dag.add_operator("seen", seen).input)

    report = run_dag(populate_dag, runner=runner)
    assert as_counter(seen.records) == Counter(hot=36_000, cold=4_000)
    assert next(iter(report.exchanges["tally.input"].hot())) == "'hot'"
    told = re.search(r"hottest keys: 'hot' (\d+) %", report_text(report))
    assert told is not None
    assert 85 <= int(told[1]) <= 95  # it is a sample, of which each task begins its own


@pytest.mark.spark
def test_adaptive_execution_of_spark_leaves_partitions_alone(spark_session: Any, source: Path, tmp_path: Path) -> None:
    """Small partitions would be put together, and keys with them, if Spark chose where rows go. What is pinned is set back."""
    seen = Collector[Counted]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        tally = count_words(dag, source)
        again = dag.add_operator("again", Noted(str(tmp_path / "notes")), partitioner=StatelessPartitioner(5))
        line = dag.add_operator("line", Map(as_line))
        dag.add_stream("totals", tally.output, line.input, dag.add_operator("seen", seen).input)
        dag.add_stream("lines again", line.output, again.input)

    before = spark_session.conf.get("spark.sql.execution.arrow.maxBytesPerBatch")
    with adaptive(spark_session):
        report = run_dag(populate_dag, runner="spark")
    assert as_counter(seen.records) == expected(source)
    assert (tmp_path / "notes").read_text().count("ran") == report.readers["again"].now == 5
    assert spark_session.conf.get("spark.sql.execution.arrow.maxBytesPerBatch") == before


def as_line(counted: Counted) -> Line:
    return Line(0, counted.n, counted.word)
