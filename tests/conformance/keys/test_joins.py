"""HashJoin over exchanges, as rows of tables and as records, on both runners."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pyarrow.compute as pc
import pytest

from dagflow import DAG, ReaderRecord
from dagflow.planning.steps import make_plan
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import CsvFormat, CsvWriter, FileInput, FileSplitterInput, Filter, HashJoin, Map, ScanReader

Line = ReaderRecord[str]


@attrs.frozen
class Sale:
    town: str
    amount: int


@attrs.frozen
class Town:
    name: str
    country: str


@attrs.frozen
class Placed:
    country: str | None
    amount: int


def sale_of(line: Line) -> Sale:
    town, amount = line.record.split(",")
    return Sale(town, int(amount))


def town_of(line: Line) -> Town:
    return Town(*line.record.split(","))


def placed(sale: Sale, town: Town | None) -> Placed:
    return Placed(town and town.country, sale.amount)


SALES = [(f"t{n % 9}", n % 4) for n in range(300)]
TOWNS = [(f"t{n}", f"c{n % 3}") for n in range(6)] + [("t2", "twice"), ("t77", "none")]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name, header, rows in (("sales", "town,amount", SALES), ("towns", "name,country", TOWNS)):
        (tmp_path / name).mkdir()
        (tmp_path / f"{name}.csv").mkdir()
        for part in (0, 1):
            lines = [f"{one},{other}\n" for one, other in rows[part::2]]
            (tmp_path / name / f"{part}.txt").write_text("".join(lines))
            (tmp_path / f"{name}.csv" / f"{part}.csv").write_text("".join([f"{header}\n", *lines]))
    return tmp_path


def wanted(how: str) -> Counter[tuple[str, str | None, int]]:
    found: Counter[tuple[str, str | None, int]] = Counter()
    for town, amount in SALES:
        partners: list[str | None] = [country for name, country in TOWNS if name == town]
        found.update((town, country, amount) for country in partners or ([None] if how == "left" else []))
    return found


def records(source: Path, join: Any, seen: Collector[Any]) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        sales = dag.add_module("sales", FileInput(str(source / "sales"), block_size=300))
        towns = dag.add_module("towns", FileInput(str(source / "towns")))
        left, right = dag.add_operator("left", Map(sale_of)), dag.add_operator("right", Map(town_of))
        dag.add_operator("join", join, partitioner=StatelessPartitioner(3))
        dag.add_stream("sales", sales.messages, left.input)
        dag.add_stream("towns", towns.messages, right.input)
        dag.add_stream("lefts", left.output, join.left)
        dag.add_stream("rights", right.output, join.right)
        dag.add_stream("joined", join.output, dag.add_operator("seen", seen).input)

    return populate_dag


@pytest.mark.parametrize("how", ["inner", "left"])
def test_records_of_two_streams(runner: str, source: Path, how: Any) -> None:
    seen = Collector[Any]()
    report = run_dag(records(source, HashJoin("town", right_by="name", how=how, combine=placed), seen), runner=runner)
    pairs = Counter((country, amount) for _, country, amount in wanted(how).elements())
    assert Counter((placed.country, placed.amount) for placed in seen.records) == pairs
    assert report.jobs == 1


def test_types_and_levels_of_a_join(source: Path) -> None:
    dag = DAG()
    join = HashJoin("town", right_by="name", combine=placed)
    records(source, join, Collector[Any]())(dag, None)
    plan = make_plan(dag)
    assert plan.stage_of("join").level == 1
    assert {str(port): tp for port, tp in plan.dag.types.items()}["join.output"] is Placed
    assert set(plan.forms.crossing.values()) == {"batches"}


def test_columns_of_a_left_join_are_known_where_no_partner_is(source: Path) -> None:
    """Of three partitions, some have no town at all; the type of the records tells their columns."""
    seen = Collector[Any]()
    for path in (source / "towns").iterdir():
        path.write_text("t0,c0\n" if path.name == "0.txt" else "")
    run_dag(records(source, HashJoin("town", right_by="name", how="left"), seen))
    assert {tuple(row) for row in seen.records} == {("town", "amount", "country")}
    assert Counter(row["country"] for row in seen.records) == {"c0": 34, None: 266}


def test_columns_of_a_left_join_are_known_where_no_row_is(runner: str, source: Path) -> None:
    """The agreement of readers tells them, also behind a filter: which partitions get a row is a matter of the data."""
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        join = dag.add_operator("join", HashJoin("town", right_by="name", how="left"), partitioner=StatelessPartitioner(4))
        few = dag.add_operator("few", Filter(pc.field("name") == "t0"))
        for name, port in (("sales", join.left), ("towns", few.input)):
            files = dag.add_operator(f"{name}_files", FileSplitterInput(str(source / f"{name}.csv")))
            scan = dag.add_operator(name, ScanReader(CsvFormat()))
            dag.add_stream(f"{name} blocks", files.blocks_metadata_output, scan.blocks_metadata_input)
            dag.add_stream(name, scan.batches, port)
        dag.add_stream("few", few.output, join.right)
        dag.add_stream("joined", join.output, dag.add_operator("seen", seen).input)

    run_dag(populate_dag, runner=runner)
    assert {tuple(row) for row in seen.records} == {("town", "amount", "country")}
    countries = [row["country"] for row in seen.records if row["town"] == "t0"]
    assert Counter(row["country"] for row in seen.records if row["town"] != "t0") == {None: len(seen.records) - len(countries)}
    assert None not in countries
    assert countries


@pytest.mark.parametrize(("how", "scope"), [("inner", "all"), ("left", "window")])  # files do not take rows back
def test_tables_of_two_scans(runner: str, source: Path, how: Any, scope: Any, tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        join = dag.add_operator(
            "join",
            HashJoin("town", right_by="name", how=how, right_columns="name: string, country: string", scope=scope),
            partitioner=StatelessPartitioner(2),
        )
        for name, port in (("sales", join.left), ("towns", join.right)):
            files = dag.add_operator(f"{name}_files", FileSplitterInput(str(source / f"{name}.csv"), block_size=500))
            scan = dag.add_operator(name, ScanReader(CsvFormat()))
            dag.add_stream(f"{name} blocks", files.blocks_metadata_output, scan.blocks_metadata_input)
            dag.add_stream(name, scan.batches, port)
        writer = dag.add_operator("writer", CsvWriter(str(tmp_path / "out")))
        dag.add_stream("joined", join.output, writer.input)

    run_dag(populate_dag, runner=runner)
    texts = [path.read_text() for path in (tmp_path / "out").glob("part-*")]
    rows = [row for text in texts for row in csv.DictReader(io.StringIO(text))]
    found = Counter((row["town"], row["country"] or None, int(row["amount"])) for row in rows)
    assert found == wanted(how)
