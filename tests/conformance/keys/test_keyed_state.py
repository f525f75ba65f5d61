"""`MapState` of keyed operators over windows and launches, with other numbers of partitions; on both runners."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

import dagflow
from dagflow import DAG, InputPort, MapState, Operator, OutputPort
from dagflow.errors import ForeignStateKey, OperatorFailed
from dagflow.local.processes import ProcessRunner
from dagflow.local.runner import LocalRunner
from dagflow.runtime.task.execute import MAPS
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import Count, FlatMap, KeyValue, Sum, TopN
from tests.conformance.keys.exchanges import Counted, Line, adaptive, read, words


@attrs.define
class Running(Operator):
    """The totals of all windows so far, of the words that a window has; and when each word was there last."""

    input = InputPort[Counted](partition_by="word")
    output = OutputPort[Counted]()
    totals = MapState[str, int]()
    seen_in = MapState[str, int]()

    def begin_window(self, window: int) -> None:
        self.__dict__["window"] = window

    @input.process
    def each(self, counted: Counted) -> None:
        self.totals[counted.word] = self.totals.get(counted.word, 0) + counted.n
        self.seen_in[counted.word] = self.__dict__["window"]

    def end_window(self) -> None:
        for word, window in self.seen_in.items():
            if window == self.__dict__["window"]:
                self.output.emit(Counted(word, self.totals[word]))


def running(
    source: Path, seen: Collector[Counted], partitions: int | None, operator: Operator | None = None, threshold: int = 2
) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source, blocks_threshold=threshold, block_size=40)
        split = dag.add_operator("words", FlatMap(words))
        last: Any = dag.add_operator("running", operator or Running())
        if partitions is not None:
            dag.set_attributes(last, partitioner=StatelessPartitioner(partitions))
        dag.add_stream("text", lines.messages, split.input)
        dag.add_stream("ones", split.output, last.input)
        dag.add_stream("totals", last.output, dag.add_operator("seen", seen).input)

    return populate_dag


def segments(run_folder: Path) -> list[str]:
    return sorted(path.name for path in (run_folder / "keyed-state" / "state").iterdir())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def test_totals_go_on_over_windows_launches_and_numbers_of_partitions(runner: str, source: Path, tmp_path: Path) -> None:
    seen = Collector[Counted]()
    expected: Counter[str] = Counter()
    for launch, partitions in enumerate((2, 2, 11, 1, 3)):  # of 11, some have no entry
        MAPS.clear()  # another process
        text = f"the cat {launch} and the dog {launch % 2}\n" * 7
        (source / f"{launch}.txt").write_text(text)
        expected.update(text.split())
        seen.clear()
        report = run_dag(running(source, seen, partitions), runner=runner, run_folder=str(tmp_path / "run"))
        assert report.windows > 1
        newest = {counted.word: counted.n for counted in seen.records}
        assert newest == {word: n for word, n in expected.items() if word in text.split()}
        assert sum(c.n == 1 for c in seen.records) <= len(set(text.split()))


@pytest.mark.spark
def test_adaptive_execution_of_spark_leaves_states_where_they_are(spark_session: Any, source: Path, tmp_path: Path) -> None:
    """Of keys of which one has nearly all records, over windows and launches, in partitions that are far from full."""
    seen = Collector[Counted]()
    expected: Counter[str] = Counter()
    with adaptive(spark_session):
        for launch in range(2):
            MAPS.clear()  # another process
            text = f"hot hot hot hot hot cat{launch} dog{launch % 2} bird\n" * 9
            (source / f"{launch}.txt").write_text(text)
            expected.update(text.split())
            run_dag(running(source, seen, 4), runner="spark", run_folder=str(tmp_path / "run"))
    assert {word: max(c.n for c in seen.records if c.word == word) for word in expected} == expected


def test_what_is_in_memory_and_what_is_read_is_the_same(source: Path, tmp_path: Path) -> None:
    (source / "a.txt").write_text("".join(f"word{n % 13} x\n" for n in range(60)))
    found = []
    for name in ("kept", "read"):
        seen = Collector[Counted]()
        with pytest.MonkeyPatch.context() as patch:
            if name == "read":
                patch.setattr(MAPS, "size", 0)
            run_dag(running(source, seen, 3), runner="local", run_folder=str(tmp_path / name))
        found.append(seen.records)
        assert len(segments(tmp_path / name)) < 40, "old segments go"
    assert found[0] == found[1]


@attrs.define
class Launches:
    """A file of lines for each block, in launches with a number of slots."""

    source: Path
    run_folder: Path
    expected: Counter[str] = attrs.field(factory=Counter)

    def partitions(self, blocks: Sequence[int], slots: int = 4, runner: Any = None) -> list[int]:
        """Launch an application with windows of so many blocks, and return the number of partitions of each window."""
        numbers, seen = [], Collector[Counted]()
        for count in blocks:
            MAPS.clear()  # another process
            number = len(list(self.source.iterdir()))
            for file in range(number, number + count):
                text = f"the cat {file} and the dog {file % 3}\n"
                (self.source / f"{file:03d}.txt").write_text(text)
                self.expected.update(text.split())
            local = LocalRunner()
            local.slots = slots
            options = {"run_folder": str(self.run_folder), "durability": "process"}
            populate_dag = running(self.source, seen, None, threshold=1000)
            report = dagflow.launch(populate_dag, runner=runner or local, **options).report
            assert report.windows == 1
            numbers.append(report.readers["running"].now)
        newest = {counted.word: counted.n for counted in seen.records}
        assert newest == {word: self.expected[word] for word in newest}
        return numbers


def test_a_small_first_launch_does_not_fix_their_number(source: Path, tmp_path: Path) -> None:
    """It rises with the number of readers up to the slots, at least to twice as many, and windows of little input leave it."""
    launches = Launches(source, tmp_path / "run")
    assert launches.partitions([1, 1, 3, 1, 9, 2]) == [1, 1, 3, 3, 4, 4]
    assert launches.partitions([1, 9], slots=2) == [2, 2], "on a smaller machine"
    assert launches.partitions([1, 5, 1, 6], slots=64) == [2, 5, 5, 10]


def test_windows_in_which_they_keep_their_number_write_no_more_than_they_change(source: Path, tmp_path: Path) -> None:
    launches = Launches(source, tmp_path / "run")
    launches.partitions([9])
    before = {name.partition("-")[0] for name in segments(tmp_path / "run")}
    assert launches.partitions([1] * 5) == [4] * 5
    after = {name.partition("-")[0] for name in segments(tmp_path / "run")}
    assert before < after, "the segments of the first window still count"


@pytest.mark.full
@pytest.mark.parametrize("on", ["processes", pytest.param("spark", marks=pytest.mark.spark)])
def test_they_grow_likewise_on_both_runners(on: str, request: pytest.FixtureRequest, source: Path, tmp_path: Path) -> None:
    slots = 2 if on == "processes" else request.getfixturevalue("spark_session").sparkContext.defaultParallelism
    launches = Launches(source, tmp_path / "run")
    runner = ProcessRunner(slots) if on == "processes" else "spark"
    assert launches.partitions([1, 9, 1], runner=runner) == [1, min(slots, 9), min(slots, 9)]
    assert slots > 1


def pairs(line: Line) -> list[tuple[str, float]]:
    return [(word, len(word) / 2) for word in line.record.split()]


@pytest.mark.parametrize("by", [None, lambda pair: pair])
def test_running_counts_go_on_likewise(runner: str, source: Path, tmp_path: Path, by: Any) -> None:
    """Also of keys that are not text: each partition finds the entries of its keys."""
    seen = Collector[Any]()
    expected: Counter[Any] = Counter()
    for launch, partitions in enumerate((2, 5, 3)):
        MAPS.clear()  # another process
        text = f"the cat {launch} and the dog {launch % 2}\n" * 7
        (source / f"{launch}.txt").write_text(text)
        found = pairs(Line(0, 0, text))
        expected.update(found if by else [None] * len(found))

        def populate_dag(dag: DAG, conf: Any, partitions: int = partitions) -> None:
            _, lines = read(dag, source, blocks_threshold=2, block_size=40)
            made = dag.add_operator("pairs", FlatMap(pairs))
            count = dag.add_operator("count", Count(by=by), partitioner=StatelessPartitioner(partitions))
            dag.add_stream("text", lines.messages, made.input)
            dag.add_stream("made", made.output, count.input)
            dag.add_stream("totals", count.output, dag.add_operator("seen", seen).input)

        report = run_dag(populate_dag, runner=runner, run_folder=str(tmp_path / "run"))
        assert report.windows > 1
        assert Counter((kv.key, kv.value) for kv in seen.records) == Counter(expected.items())


@pytest.mark.spark
@pytest.mark.parametrize("excluded", [None, "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"])
def test_levels_run_without_rows_where_spark_adapts_its_plans(
    spark_session: Any, source: Path, tmp_path: Path, excluded: str | None, request: pytest.FixtureRequest
) -> None:
    """As in sessions of Spark Connect and Databricks: a level that sent nothing made those behind it superfluous."""
    rules = "spark.sql.adaptive.optimizer.excludedRules"
    conf = spark_session.conf
    for key, value in (("spark.sql.adaptive.enabled", "true"), (rules, excluded)):
        before = conf.get(key, None)
        undo = functools.partial(conf.unset, key) if before is None else functools.partial(conf.set, key, before)
        request.addfinalizer(undo)
        if value is not None:
            conf.set(key, value)
    test_running_counts_go_on_likewise("spark", source, tmp_path, None)
    assert conf.get(rules, None) == excluded, "settings of a session that is not ours are set back"


@pytest.mark.parametrize("combiner", [True, False])
@pytest.mark.parametrize("operator", [Sum("n", by=("word",)), TopN(1, "n", by=("word",))])
def test_keys_of_one_name_in_a_tuple(source: Path, tmp_path: Path, operator: Any, combiner: bool) -> None:
    operator, seen = attrs.evolve(operator, combiner=combiner), Collector[Any]()
    for launch in range(2):
        (source / f"{launch}.txt").write_text("a b c d e f g h a\n")
        run_dag(running(source, seen, 4, operator), runner="local", run_folder=str(tmp_path / "run"))
        if isinstance(operator, Sum):
            wanted = {(word, (launch + 1) * (1 + (word == "a"))) for word in "abcdefgh"}
            assert {(row["word"], row["value"]) for row in seen.records} == wanted
        else:
            assert sorted(counted.word for counted in seen.records) == list("abcdefgh")


@attrs.define
class OnceFailing(Operator):
    """Behind the operators that keep something; fails in one window, the first time that it runs there."""

    scope = "rows"
    takes_changes = True

    mark: str
    input = InputPort[KeyValue[str, int]]()
    output = OutputPort[KeyValue[str, int]]()

    @input.process
    def each(self, total: KeyValue[str, int]) -> None:
        self.output.emit(total)

    def begin_window(self, window: int) -> None:
        self.__dict__["window"] = window

    def end_window(self) -> None:
        if self.__dict__["window"] == 2 and not Path(self.mark).exists():
            Path(self.mark).touch()
            raise ValueError("the first time")


@pytest.mark.parametrize("is_known", [True, False], ids=["in the same process", "in another process"])
def test_a_window_that_is_run_again_sees_the_state_of_the_first_time(
    runner: str, source: Path, tmp_path: Path, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though all tasks below had saved theirs; also where a launch asks for another number of partitions meanwhile."""
    monkeypatch.setattr(MAPS, "size", 100)  # of all tasks, the one that failed included
    (source / "a.txt").write_text("".join(f"the cat and dog{n % 5}\n" for n in range(20)))
    found, failed = [], []
    for name, partitions in (("undisturbed", (3,)), ("failing", (3, 2))):
        seen = Collector[Any]()
        if name == "undisturbed":
            (tmp_path / "mark").touch()
        else:
            (tmp_path / "mark").unlink()
        for each in partitions:

            def populate_dag(dag: DAG, conf: Any, partitions: int = each, seen: Collector[Any] = seen) -> None:
                _, lines = read(dag, source, blocks_threshold=2, block_size=40)
                split = dag.add_operator("words", FlatMap(words))
                kept = dag.add_operator("running", Running(), partitioner=StatelessPartitioner(partitions))
                total = dag.add_operator("total", Sum("n", by="word"), partitioner=StatelessPartitioner(partitions))
                failing = dag.add_operator("failing", OnceFailing(str(tmp_path / "mark")), partitioner=StatelessPartitioner(1))
                dag.add_stream("text", lines.messages, split.input)
                dag.add_stream("ones", split.output, kept.input)
                dag.add_stream("totals", kept.output, total.input)
                dag.add_stream("sums", total.output, failing.input)
                dag.add_stream("passed", failing.output, dag.add_operator("seen", seen).input)

            if not is_known:
                MAPS.clear()
            try:
                run_dag(populate_dag, runner=runner, run_folder=str(tmp_path / name))
            except OperatorFailed as error:
                failed.append((name, error.window, each))
        found.append(Counter((kv.key, kv.value) for kv in seen.records))
    assert failed == [("failing", 2, 3)]
    assert found[0] == found[1]
    assert max(value for _, value in found[0]) > 40


@attrs.define
class Wrong(Running):
    @Running.input.process
    def each(self, counted: Counted) -> None:
        self.totals[f"{counted.word} "] = 1


def test_entries_of_other_keys_are_refused(source: Path, tmp_path: Path) -> None:
    (source / "a.txt").write_text("a b c d e f g h i j\n")
    with pytest.raises(ForeignStateKey) as caught:
        run_dag(running(source, Collector[Counted](), 4, Wrong()), runner="local")
    assert "is not a key of its partition" in str(caught.value)
