"""`dag.read` and `port.to`: DAGs as by `add_operator` and `add_stream`, with names that are made, and the same mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow.compute as pc
import pytest

from dagflow import DAG, Module, ProxyInputPort, ProxyOutputPort
from dagflow.errors import DagError, DuplicateName, EmptyName, FormatUnknown, NotAnOperator, PortTaken
from dagflow.testing import Collector, run_dag
from operators import (
    AvroFormat,
    Console,
    CsvFormat,
    FileSplitterInput,
    Filter,
    GroupBy,
    HashJoin,
    JsonLinesFormat,
    Map,
    ParquetFormat,
    ScanReader,
    Split,
    agg,
)


def test_a_chain_is_that_of_operators_and_streams() -> None:
    short, long = DAG(), DAG()
    short.read("sales/*.csv", name="sales").to(Filter(pc.field("price") > 3), name="large").to(Console(), name="show")
    files = long.add_operator("sales_files", FileSplitterInput("sales/*.csv"))
    rows = long.add_operator("sales", ScanReader[Any](CsvFormat()))
    large = long.add_operator("large", Filter(pc.field("price") > 3))
    show = long.add_operator("show", Console())
    long.add_stream("sales_files.blocks_metadata_output", files.blocks_metadata_output, rows.blocks_metadata_input)
    long.add_stream("sales.batches", rows.batches, large.input)
    long.add_stream("large.output", large.output, show.input)
    assert {name: (s.source, s.sinks) for name, s in short.streams.items()} == {
        name: (s.source, s.sinks) for name, s in long.streams.items()
    }
    assert [type(node.operator) for node in short.operators.values()] == [type(node.operator) for node in long.operators.values()]
    here = Path(__file__).name
    assert all(here in node.where for node in short.operators.values())


def test_names_are_made_from_classes_and_free() -> None:
    dag = DAG()
    rows = dag.read("a.csv")
    for _ in range(2):
        rows.to(GroupBy("k", n=agg.count())).to(Console())
    dag.read("b.csv")
    assert list(dag.operators) == [
        "read_files",
        "read",
        "group_by",
        "console",
        "group_by_2",
        "console_2",
        "read_2_files",
        "read_2",
    ]
    assert not dag.problems
    assert len(dag.streams["read.batches"].sinks) == 2


def test_a_join_gets_two_streams(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,town\n1,lund\n2,oslo\n")
    (tmp_path / "towns.jsonl").write_text('{"town": "oslo", "country": "no"}\n')
    joined = Collector[Any]()

    def populate_dag(dag: DAG, conf: object) -> None:
        join = HashJoin[Any, Any, Any]("town")
        dag.read(tmp_path / "people.csv").to(join.left, name="with_country")
        assert dag.read(tmp_path / "towns.jsonl").to(join.right) is join.output
        join.output.to(joined)

    report = run_dag(populate_dag)
    assert joined.records == [{"id": 2, "town": "oslo", "country": "no"}]
    assert "with_country" in report.operators


def test_a_reader_gets_its_other_properties_and_those_of_its_splitter(tmp_path: Path) -> None:
    (tmp_path / "days.csv").write_text("day,n\n2026-01-01,1\nyesterday,2\n2026-01-03,3\n")
    rows, bad = Collector[Any](), Collector[Any]()

    def populate_dag(dag: DAG, conf: object) -> None:
        days = dag.read(tmp_path, schema="day: date, n: int64", on_bad_row="route", block_size=10, name="days")
        days.to(rows)
        days.operator.errors.to(bad)

    report = run_dag(populate_dag)
    assert sorted(row["n"] for row in rows.records) == [1, 3]
    assert [row.raw for row in bad.records] == ["yesterday,2"]
    assert report.operators["days"].counters["blocks"] > 1


@pytest.mark.parametrize("name", ["on_bad_rows", "files", "scanner"])
def test_a_property_that_neither_the_reader_nor_the_splitter_has(name: str) -> None:
    with pytest.raises(TypeError, match=rf"dag.read\(\) has no property '{name}'"):
        DAG().read("days.csv", **{name: "drop"})


@attrs.define
class Doubled(Module):
    """Doubles numbers, with a chain of its own."""

    input = ProxyInputPort[int]()
    output = ProxyOutputPort[int]()

    def populate_dag(self, dag: DAG) -> None:
        first = dag.add_operator("first", Map[int, int](lambda number: number + number))
        second = Map[int, int](abs)
        first.output.to(second)
        self.input.set(first.input)
        self.output.set(second.output)


def test_modules_are_connected_and_fill_dags_of_their_own() -> None:
    from dagflow.model.graph.expand import expand

    dag = DAG()
    numbers = dag.add_operator("numbers", Map[str, int](int))
    numbers.output.to(Doubled()).to(Console())
    assert list(expand(dag).operators) == ["numbers", "doubled.first", "doubled.map", "console"]
    assert not expand(dag).problems


def files_of(folder: Path, *names: str) -> str:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return str(folder)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("a.csv", CsvFormat()),
        ("s3://bucket/logs/*.jsonl.gz", JsonLinesFormat()),
        ("a.TSV", CsvFormat(delimiter="\t")),
        ("year=*/part-*.parquet", ParquetFormat()),
        ("a.avro", AvroFormat()),
        ("a.ndjson.zst", JsonLinesFormat()),
    ],
)
def test_formats_by_names(path: str, kind: Any) -> None:
    assert DAG().read(path).operator.format == kind  # type: ignore[union-attr]  # a port of a DAG has an operator


def test_a_folder_has_the_format_of_its_first_file(tmp_path: Path) -> None:
    folder = files_of(tmp_path, "_SUCCESS", ".hidden.csv", "day=1/README", "day=1/part.parquet")
    assert DAG().read(folder).operator.format == ParquetFormat()  # type: ignore[union-attr]  # as above


PATTERNS: dict[str, tuple[Any, list[str]]] = {
    "in a folder": ("*.csv", ["a.csv", "b.csv"]),
    "one letter": ("?.csv", ["a.csv", "b.csv"]),
    "some letters": ("[!a].csv", ["b.csv"]),
    "any folders": ("**/*.csv", ["a.csv", "b.csv", "day=1/c.csv", "day=1/x+y/d.csv"]),
    "folders": ("day=*/*.csv", ["day=1/c.csv"]),
    "all below": ("day=1/**", ["day=1/c.csv", "day=1/x+y/d.csv"]),
    "a pattern and a folder": (["day=1/x+y", "a*.csv"], ["a.csv", "day=1/x+y/d.csv"]),
    "a file": ("a.csv", ["a.csv"]),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("is_absolute", [False, True])
def test_patterns(name: str, is_absolute: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("a.csv", "b.csv", "day=1/c.csv", "day=1/x+y/d.csv", "e.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"name\n{path}\n")
    monkeypatch.chdir(tmp_path)
    given, found = PATTERNS[name]
    paths = [f"{tmp_path}/{each}" if is_absolute else each for each in ([given] if isinstance(given, str) else given)]
    rows = Collector[Any]()
    run_dag(lambda dag, conf: dag.read(paths, "csv").to(rows))
    assert sorted(row["name"] for row in rows.records) == found


def problem(act: Callable[[DAG], object]) -> DagError:
    dag = DAG()
    try:
        act(dag)
    except DagError as error:
        return error
    return dag.problems[0]


@pytest.mark.parametrize("paths", ["logs/", ["a.csv", "b.parquet"], "s3://bucket/folder", "notes.txt"])
def test_a_format_that_is_not_known(paths: Any) -> None:
    error = problem(lambda dag: dag.read(paths))
    assert isinstance(error, FormatUnknown)
    assert "test_wiring.py" in error.message()


def test_mistakes() -> None:
    both = HashJoin[Any, Any, Any]("k")
    one = Filter[Any](bool)
    cases: list[tuple[Callable[[DAG], object], type[DagError], str]] = [
        (lambda dag: dag.read("a.csv").to("console"), NotAnOperator, "'console' was given where an operator, or an input port"),
        (lambda dag: dag.read("a.csv").to(Console), NotAnOperator, "make an object of the class"),
        (lambda dag: dag.read("a.csv").to(both), NotAnOperator, r"several \(left, right\)"),
        (lambda dag: dag.read("a.csv").to(FileSplitterInput("b")), NotAnOperator, "FileSplitterInput, which has none"),
        (lambda dag: Filter(bool).output.to(Console()), NotAnOperator, "add its operator to the DAG first"),
        (lambda dag: [dag.read("a.csv").to(one) for _ in range(2)], PortTaken, "two streams lead into filter.input"),
        (lambda dag: [dag.read("a.csv", name="a") for _ in range(2)], DuplicateName, "'a_files'"),
        (lambda dag: dag.read("a.csv").to(Console(), name=""), EmptyName, "''"),
    ]
    for act, kind, text in cases:
        error = problem(act)
        assert isinstance(error, kind)
        with pytest.raises(DagError, match=text):
            raise error


def test_operators_with_several_outputs_give_no_port() -> None:
    dag = DAG()
    split = Split[Any]({"low": lambda row: row["n"] < 1, "high": lambda row: row["n"] > 8})
    assert dag.read("a.csv").to(split) is None
    assert dag.read("b.csv").to(Console()) is None
