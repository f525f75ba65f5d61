"""Operators whose body is a function of DataFrames, between levels: on Spark, through Spark Connect, and in a local Spark of the
in-process runner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from pyspark.sql import functions as f

from dagflow import DAG, FileMetadata
from dagflow.errors import ColumnsDiffer, DagflowError, NullMade, OperatorFailed
from dagflow.ledger import read_dataset
from dagflow.runtime.events import Event, WindowDecided, WindowStarted
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag, run_operator
from operators import CsvFormat, FileSplitterInput, FlatMap, Map, ParquetWriter, ScanReader, SparkOperator
from tests.cluster.servers import connect_server
from tests.conformance.keys.exchanges import Counted, Line, Noted, Tally, as_counter, expected, read, split_and_tally, words

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as server:
        yield server.address


def runners(tier: pytest.MarkDecorator) -> list[Any]:
    """The runners, of which Spark Connect belongs to a tier."""
    return ["local", "spark", pytest.param("connect", marks=[tier, pytest.mark.cluster])]


@pytest.fixture(params=runners(pytest.mark.nightly))
def runner(request: pytest.FixtureRequest, spark_session: Any) -> dict[str, str]:
    """The runner. The first two run in the session of all tests, which is active: the in-process runner takes it too."""
    if request.param == "connect":
        return {"runner": "spark", "remote": request.getfixturevalue("server")}
    return {"runner": str(request.param)}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for name, text in {"a": "the cat and the dog\n" * 9, "b": "a dog, a dog\n\n" * 7, "c": "alone\n"}.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def totals(frame: Any) -> Any:
    return frame.groupBy("word").sum("n").withColumnRenamed("sum(n)", "n")


def joined_with_itself(frame: Any) -> Any:
    return totals(frame).join(frame.select("word").distinct(), "word")


def body_behind_words(dag: DAG, source: Path, body: Any, **splitter: Any) -> SparkOperator[Counted, Counted]:
    _, lines = read(dag, source, **splitter)
    split = dag.add_operator("words", FlatMap(words))
    made = dag.add_operator("body", SparkOperator[Counted, Counted](body, scope="window"))
    dag.add_stream("text", lines.messages, split.input)
    dag.add_stream("ones", split.output, made.input)
    return made


@pytest.mark.full
@pytest.mark.parametrize("runner", runners(pytest.mark.full), indirect=True)
@pytest.mark.parametrize("adaptive", ["false", "true"])
def test_nothing_runs_twice(runner: dict[str, str], source: Path, tmp_path: Path, spark_session: Any, adaptive: str) -> None:
    """Two bodies of the same records, of which one joins them with themselves, and a keyed operator: level 0 runs once."""
    one, other, beside = Collector[Counted](), Collector[Counted](), Collector[Counted]()
    ran = tmp_path / "ran"

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source)
        noted = dag.add_operator("noted", Noted(str(ran)))
        split, tally = split_and_tally(dag, Tally(), 2)
        first = dag.add_operator(
            "first", SparkOperator[Counted, Counted](joined_with_itself), partitioner=StatelessPartitioner(3)
        )
        second = dag.add_operator("second", SparkOperator[Counted, Counted](totals))
        third = dag.add_operator("third", SparkOperator[Counted, Counted](lambda frame: frame.filter("n > 0")))
        for name, collector in (("one", one), ("other", other), ("beside", beside)):
            dag.add_operator(name, collector)
        dag.add_stream("text", lines.messages, noted.input)
        dag.add_stream("noted", noted.output, split.input)
        dag.add_stream("ones", split.output, first.input, second.input, tally.input)
        dag.add_stream("first totals", first.output, one.input)
        dag.add_stream("second totals", second.output, third.input)
        dag.add_stream("third totals", third.output, other.input)
        dag.add_stream("tallied", tally.output, beside.input)

    before = spark_session.conf.get("spark.sql.adaptive.enabled")
    try:
        few = {"spark.sql.shuffle.partitions": "2"}  # of the bodies' own exchanges: 200 tasks prove no more
        report = run_dag(populate_dag, {"spark.sql.adaptive.enabled": adaptive, **few}, **runner)
    finally:
        spark_session.conf.set("spark.sql.adaptive.enabled", before)
    for found in (one, other, beside):
        assert as_counter(found.records) == expected(source)
        assert len(found.records) == len(expected(source))
    assert len(ran.read_text().splitlines()) == report.readers["lines"].now
    assert (report.exchanges["first.input"].records, report.operators["first"].records_out) == (
        sum(expected(source).values()),
        len(expected(source)),
    )


@pytest.mark.full
@pytest.mark.parametrize("runner", runners(pytest.mark.full), indirect=True)
def test_windows_and_tables(runner: dict[str, str], source: Path, tmp_path: Path, spark_session: Any) -> None:
    """The rows that a body makes of a window are committed with it, as all others; meanwhile no other window makes the view."""

    def tell_kinds(session: Any) -> None:
        kinds = [("dog", "animal"), ("cat", "animal")]
        session.createDataFrame(kinds, "word string, kind string").createOrReplaceTempView("kinds")

    def with_kinds(frame: Any) -> Any:
        if "remote" in runner:  # a session of the run's own
            tell_kinds(frame.sparkSession)
        frame.createOrReplaceTempView("found")
        return frame.sparkSession.sql(
            "SELECT coalesce(kind, 'other') AS word, sum(n) AS n FROM found LEFT JOIN kinds USING (word) GROUP BY 1"
        )

    def populate_dag(dag: DAG, conf: Any) -> None:
        made = body_behind_words(dag, source, with_kinds, blocks_threshold=2)
        dag.add_stream("made", made.output, dag.add_operator("out", ParquetWriter[Counted](str(tmp_path / "out"))).input)

    tell_kinds(spark_session)
    events: list[Event] = []
    report = run_dag(populate_dag, **runner, subscribers=[events.append], windows_in_flight=2)
    assert report.windows > 1
    told = [type(each) for each in events if isinstance(each, WindowStarted | WindowDecided)]
    assert told == [WindowStarted, WindowDecided] * report.windows
    found: Counter[str] = Counter()
    for row in read_dataset(tmp_path / "out").to_table().to_pylist():
        found[row["word"]] += row["n"]
    animals = expected(source)["dog"] + expected(source)["cat"]
    assert found == {"animal": animals, "other": sum(expected(source).values()) - animals}
    assert run_dag(populate_dag, **runner).windows == 0


def test_functions_of_columns_are_those_of_the_session(runner: dict[str, str], source: Path, spark_session: Any) -> None:
    """And outside the body they are still those of the session of all tests."""
    seen = Collector[Counted]()

    def upper(frame: Any) -> Any:
        return frame.groupBy(f.upper("word").alias("word")).agg(f.sum(f.col("n")).alias("n"))

    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.add_stream("made", body_behind_words(dag, source, upper).output, dag.add_operator("seen", seen).input)

    run_dag(populate_dag, **runner)
    assert as_counter(seen.records) == {word.upper(): n for word, n in expected(source).items()}
    assert spark_session.range(1).select(f.lit(7).alias("n")).collect() == [(7,)]


def test_batches_of_a_scan_and_given_columns(runner: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,city,size\n1,Oslo,2.5\n2,Bergen,\n3,Oslo,4\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path / "a.csv")]))
        rows = dag.add_operator("rows", ScanReader(CsvFormat()))
        given, made = "size: float64, city: string", "city: string, size: float64, sizes: list<float64>"
        body = dag.add_operator("body", SparkOperator(by_city, input_schema=given, output_schema=made))
        out = dag.add_operator("out", ParquetWriter(str(tmp_path / "out")))
        dag.add_stream("blocks", files.blocks_metadata_output, rows.blocks_metadata_input)
        dag.add_stream("rows", rows.batches, body.input)
        dag.add_stream("made", body.output, out.input)

    def by_city(frame: Any) -> Any:
        assert frame.columns == ["size", "city"]
        return (
            frame.groupBy("city")
            .agg({"size": "sum", "*": "count"})
            .selectExpr("`sum(size)` AS size", "array(1.0d) AS sizes", "city")
        )

    run_dag(populate_dag, **runner)
    table = read_dataset(tmp_path / "out").to_table()
    assert table.schema.field("sizes").type == pa.list_(pa.float64())
    assert sorted((row["city"], row["size"]) for row in table.to_pylist()) == [("Bergen", None), ("Oslo", 6.5)]


def test_records_of_the_driver(runner: dict[str, str], source: Path) -> None:
    """The metadata of files go to the body through a relay."""
    seen = Collector[str]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(source)]))
        body = dag.add_operator("body", SparkOperator[FileMetadata, str](lambda f: f.selectExpr("file_name AS value")))
        short = dag.add_operator("short", Map(lambda name: name[:1]))
        dag.add_operator("seen", seen)
        dag.add_stream("found", files.files_metadata_output, body.input)
        dag.add_stream("names", body.output, short.input)
        dag.add_stream("short", short.output, seen.input)

    run_dag(populate_dag, **runner)
    assert sorted(seen.records) == ["a", "b", "c"]


def unknown_column(frame: Any) -> Any:
    return frame.select("word", "nowhere")  # the line that is told


def no_frame(frame: Any) -> Any:
    return "nothing"


@pytest.mark.parametrize(
    ("body", "error", "told"),
    [
        (
            unknown_column,
            OperatorFailed,
            ["operator 'body' failed in its body", "`nowhere`", "the line that is told", "window  0"],
        ),
        (no_frame, OperatorFailed, ["it returned str, but must return a DataFrame"]),
        (lambda f: f.select("word"), ColumnsDiffer, ["'body'", "the result of its body has no column 'n' (bigint)", "window  0"]),
        (
            lambda f: f.withColumn("n", f.n.cast("int")),
            ColumnsDiffer,
            ["column 'n' as int, but bigint is declared", "cast('bigint')"],
        ),
        (lambda f: f.withColumn("more", f.n), ColumnsDiffer, ["a column 'more' (bigint) that is not declared"]),
        (
            lambda f: f.selectExpr("word", "n DIV (n - 1) AS n"),
            OperatorFailed,
            ["'body' failed in its body", "DIVIDE_BY_ZERO", "  in n DIV (n - 1)"],
        ),
        (lambda f: f.selectExpr("word", "cast(NULL AS bigint) AS n"), NullMade, ["'body'", "a null in column 'n'"]),
    ],
)
def test_errors_of_bodies(runner: dict[str, str], source: Path, body: Any, error: type[DagflowError], told: list[str]) -> None:
    seen = Collector[Counted]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.add_stream("made", body_behind_words(dag, source, body).output, dag.add_operator("seen", seen).input)

    with pytest.raises(error) as caught:
        run_dag(populate_dag, **runner)
    text = str(caught.value)
    for part in told:
        if part == "the line that is told" and "remote" in runner:
            continue  # Spark Connect looks at columns when the body has returned: no line of it is to blame
        assert part in text, text
    assert "org.apache" not in text
    assert "pyspark/" not in text
    assert "contextlib" not in text
    assert len(text.splitlines()) < 8, text


def test_a_task_before_that_fails_is_told_and_not_the_body(runner: dict[str, str], source: Path) -> None:
    def broken(line: Line) -> list[Counted]:
        if line.record == "alone":
            raise ValueError("of the task")
        return words(line)

    def raising(frame: Any) -> Any:
        return frame.selectExpr("word", "cast(raise_error('of the body') AS bigint) AS n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        _, lines = read(dag, source)
        split = dag.add_operator("words", FlatMap(broken))
        made = dag.add_operator("body", SparkOperator[Counted, Counted](raising))
        dag.add_stream("text", lines.messages, split.input)
        dag.add_stream("ones", split.output, made.input)
        dag.add_stream("made", made.output, dag.add_operator("seen", Collector[Counted]()).input)

    with pytest.raises(OperatorFailed, match="of the task"):
        run_dag(populate_dag, **runner)


def test_an_error_behind_a_body_names_it_as_the_source(runner: dict[str, str], source: Path) -> None:
    def broken(counted: Counted) -> str:
        raise ValueError(counted.word)

    def populate_dag(dag: DAG, conf: Any) -> None:
        made = body_behind_words(dag, source, totals)
        shown = dag.add_operator("shown", Map(broken))
        dag.add_stream("made", made.output, shown.input)
        dag.add_stream("shown", shown.output, dag.add_operator("seen", Collector[str]()).input)

    with pytest.raises(OperatorFailed, match="'shown'") as caught:
        run_dag(populate_dag, **runner)
    assert caught.value.source == "the result of the body of body"


def test_columns_that_do_not_come_are_told_with_the_reader(runner: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,city\n1,Oslo\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path / "a.csv")]))
        rows = dag.add_operator("rows", ScanReader(CsvFormat()))
        body = dag.add_operator("body", SparkOperator(lambda f: f, input_schema=wanted, output_schema=wanted))
        dag.add_stream("blocks", files.blocks_metadata_output, rows.blocks_metadata_input)
        dag.add_stream("rows", rows.batches, body.input)
        dag.add_stream("made", body.output, dag.add_operator("seen", Collector[Any]()).input)

    wanted = "town: string"
    with pytest.raises(ColumnsDiffer, match="'body': its input has no column 'town'"):
        run_dag(populate_dag, **runner)
    wanted = "city: int64"
    with pytest.raises(ColumnsDiffer, match="'body': its input has column 'city' as string, but int64 is declared"):
        run_dag(populate_dag, **runner)


@attrs.frozen
class City:
    name: str
    size: float | None


def test_one_operator_alone(spark_session: Any) -> None:
    def large(frame: Any) -> Any:
        return frame.filter("size > 1")

    found = run_operator(SparkOperator[City, City](large), {"input": [City("Oslo", 2.5), City("Bergen", None)]})
    assert found == {"output": [City("Oslo", 2.5)]}
    batch = pa.RecordBatch.from_pylist([{"name": "Voss", "size": 2.0, "more": 1}])
    assert run_operator(SparkOperator[City, City](large), {"input": [batch]}) == {"output": [City("Voss", 2.0)]}
