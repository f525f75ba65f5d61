"""Aggregates by key over an exchange: with what runs ahead of it and without, in batches and in records, on both runners."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pyarrow.compute as pc
import pytest

from dagflow import DAG, ErrorRecord, ReaderRecord
from dagflow.errors import OperatorFailed
from dagflow.ledger import committed_files
from dagflow.planning.steps import make_plan
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag
from operators import (
    Average,
    Count,
    Deduplicate,
    FileInput,
    FlatMap,
    HashJoin,
    JsonLinesWriter,
    KeyValue,
    Map,
    Max,
    Min,
    RecordWriter,
    Sum,
    TopN,
)
from tests.conformance.apps import lines_in

Line = ReaderRecord[str]


@attrs.frozen
class Sale:
    customer: str
    amount: int


def sale_of(line: Line) -> Sale:
    customer, amount = line.record.split()
    return Sale(customer, int(amount))


@attrs.frozen
class Row:
    customer: str
    even: bool
    amount: int


def row_of(line: Line) -> Row:
    sale = sale_of(line)
    return Row(sale.customer, sale.amount % 2 == 0, sale.amount)


def words_of(line: Line) -> list[str]:
    return line.record.split()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        lines = [f"c{(7 * n + number) % 11} {n % 5 - 2}" for n in range(200)]
        (folder / f"{number}.txt").write_text("\n".join(lines))
    return folder


def sales(source: Path) -> list[Sale]:
    return [sale_of(Line(0, 0, text)) for path in source.iterdir() for text in path.read_text().splitlines()]


def aggregated(source: Path, makes: Any, operator: Any, partitions: int | None = 3) -> tuple[Any, Collector[Any]]:
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput(str(source), block_size=300))
        made = dag.add_operator("made", makes)
        more = {} if partitions is None else {"partitioner": StatelessPartitioner(partitions)}
        dag.add_operator("total", operator, **more)
        dag.add_operator("seen", seen)
        dag.add_stream("lines", files.messages, made.input)
        dag.add_stream("records", made.output, operator.input)
        dag.add_stream("totals", operator.output, seen.input)

    return populate_dag, seen


def by_customer(source: Path, result: Any) -> dict[str, Any]:
    groups: dict[str, list[int]] = {}
    for sale in sales(source):
        groups.setdefault(sale.customer, []).append(sale.amount)
    return {customer: result(amounts) for customer, amounts in groups.items()}


@pytest.mark.parametrize("combiner", [True, False])
@pytest.mark.parametrize(
    ("operator", "result"),
    [(Sum, sum), (Min, min), (Max, max), (Average, lambda values: sum(values) / len(values)), (Count, len)],
)
def test_each_aggregate_by_customer(runner: str, source: Path, operator: Any, result: Any, combiner: bool) -> None:
    made = operator(by="customer", combiner=combiner)
    if operator is not Count:
        made.of = "amount"
    populate_dag, seen = aggregated(source, Map(sale_of), made)
    report = run_dag(populate_dag, runner=runner)
    assert {kv.key: kv.value for kv in seen.records} == by_customer(source, result)
    assert len(seen.records) == 11, "each key is in one partition"
    crossed = report.exchanges["total.partials" if combiner else "total.input"].records
    assert crossed == 600 if not combiner else crossed < 600
    assert report.jobs == 1


@pytest.mark.parametrize("partitions", [1, 4, None])
def test_all_records_are_one_group(source: Path, partitions: int | None) -> None:
    populate_dag, seen = aggregated(source, Map(sale_of), Sum("amount"), partitions)
    run_dag(populate_dag)
    assert seen.records == [KeyValue(None, sum(sale.amount for sale in sales(source)))]


def test_words_in_batches(runner: str, source: Path) -> None:
    """A bare column: split, counted and sent on as Arrow."""
    words = FlatMap[Line, str](pc.utf8_split_whitespace(pc.field("record")))
    populate_dag, seen = aggregated(source, words, Count(by="value"))
    run_dag(populate_dag, runner=runner)
    wanted = Counter(word for path in source.iterdir() for word in path.read_text().split())
    assert {kv.key: kv.value for kv in seen.records} == wanted


def test_keys_of_several_columns_reach_joins_and_sinks_as_columns(runner: str, source: Path, tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = dag.add_module("files", FileInput(str(source), block_size=300)).messages.to(Map(row_of))
        join = dag.add_operator(
            "join", HashJoin(("customer", "even"), right_columns="customer: string, even: bool, value: int64")
        )
        rows.to(Count(by=("customer", "even"))).to(join.left)
        rows.to(Sum("amount", by=("customer", "even"))).to(join.right)
        join.output.to(JsonLinesWriter(str(tmp_path / "out")))

    run_dag(populate_dag, {"run_folder": str(tmp_path / "run")}, runner=runner)
    wanted: dict[tuple[str, bool], list[int]] = {}
    for sale in sales(source):
        wanted.setdefault((sale.customer, sale.amount % 2 == 0), []).append(sale.amount)
    lines = [json.loads(line) for path in committed_files(str(tmp_path / "out")) for line in Path(path).read_text().splitlines()]
    assert {(row["customer"], row["even"]): (row["value"], row["value_right"]) for row in lines} == {
        key: (len(amounts), sum(amounts)) for key, amounts in wanted.items()
    }
    assert len(lines) == len(wanted)


def test_the_plan_shows_the_columns_of_keys(source: Path) -> None:
    dag = DAG()
    aggregated(source, Map(sale_of), Sum("amount", by=("customer", "amount")))[0](dag, None)
    plan = make_plan(dag)
    (total,) = (port for port in plan.dag.types if str(port) == "total.output")
    known = plan.dag.columns().behind(total)
    assert known.types == {"customer": "string", "amount": "int64", "value": "int64"}
    assert known.identifies(["customer", "amount"])
    assert {plan.forms.handled[port] for port in plan.forms.handled if port.operator.startswith("total")} == {"batch"}


def test_the_plan_shows_what_runs_ahead_and_types_have_arrow_forms(source: Path) -> None:
    dag = DAG()
    aggregated(source, FlatMap(words_of), Count(by="value"))[0](dag, None)
    plan = make_plan(dag)
    assert plan.stage_of("total.partial").level == 0
    assert plan.stage_of("total").level == 1
    types = {str(port): str(tp) for port, tp in plan.dag.types.items()}
    assert types["total.output"].endswith("KeyValue[str, int]")


def test_a_key_whose_type_is_given_crosses_in_batches(source: Path) -> None:
    given = Sum[Any, str, int]("amount", by="customer")
    for operator, crossing in ((given, "batches"), (Sum("amount", by="customer"), "pickled")):
        dag = DAG()
        aggregated(source, Map(lambda line: sale_of(line)), operator)[0](dag, None)
        forms = {str(port): form for port, form in make_plan(dag).forms.crossing.items()}
        assert forms == {"total.partials": "pickled", "seen.held.input": crossing}


def test_nothing_runs_ahead_where_errors_are_routed(source: Path) -> None:
    """Its bad records would need a second way to the port that they go to."""
    (source / "bad.txt").write_text("x y\n")
    errors = Collector[ErrorRecord]()
    populate_dag, _ = aggregated(source, FlatMap(words_of), Sum(int, by=len, on_error="route"))

    def with_errors(dag: DAG, conf: Any) -> None:
        populate_dag(dag, conf)
        dag.add_operator("errors", errors)
        dag.add_stream("bad", dag.operator("total").errors, errors.input)

    report = run_dag(with_errors)
    assert "total.input" in report.exchanges
    assert len(errors.records) == 602


def test_an_error_ahead_is_told_with_operator_and_source(source: Path) -> None:
    populate_dag, _ = aggregated(source, Map(sale_of), Sum(lambda sale: 1 // (sale.amount + 2), by="customer"))
    with pytest.raises(OperatorFailed, match=r"total\.partial") as found:
        run_dag(populate_dag)
    assert ".txt" in str(found.value)


@pytest.mark.parametrize("combiner", [True, False])
def test_the_top_of_each_customer(runner: str, source: Path, combiner: bool) -> None:
    populate_dag, seen = aggregated(source, Map(sale_of), TopN(2, "amount", by="customer", combiner=combiner))
    report = run_dag(populate_dag, runner=runner)
    tops = {customer: sorted(amounts)[-2:] for customer, amounts in by_customer(source, list).items()}
    found: dict[str, list[int]] = {}
    for sale in seen.records:
        found.setdefault(sale.customer, []).append(sale.amount)
    assert {customer: sorted(amounts) for customer, amounts in found.items()} == tops
    assert (report.exchanges["total.input"].records < 600) == combiner


@pytest.mark.parametrize("combiner", [True, False])
def test_equal_records_come_once(runner: str, source: Path, combiner: bool) -> None:
    populate_dag, seen = aggregated(source, Map(sale_of), Deduplicate(combiner=combiner))
    report = run_dag(populate_dag, runner=runner)
    assert Counter(map(str, seen.records)) == Counter(set(map(str, sales(source))))
    assert (report.exchanges["total.input"].records < 600) == combiner


def test_equal_words_in_batches_come_once(source: Path) -> None:
    words = FlatMap[Line, str](pc.utf8_split_whitespace(pc.field("record")))
    populate_dag, seen = aggregated(source, words, Deduplicate(by="value"))
    run_dag(populate_dag)
    assert sorted(seen.records) == sorted({word for path in source.iterdir() for word in path.read_text().split()})


def test_a_launch_with_another_combiner_goes_on(source: Path, tmp_path: Path) -> None:
    """Additions of the planner do not make it another application; nor do partitions."""
    out = tmp_path / "out"

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", FileInput(str(source)))
        words = dag.add_operator("words", FlatMap(words_of))
        count = dag.add_operator("count", Count(by="value", scope="window"))
        text = dag.add_operator("text", Map(lambda kv: f"{kv.key} {kv.value}"))
        writer = dag.add_operator("writer", RecordWriter[str](str(out)))
        dag.add_stream("lines", files.messages, words.input)
        dag.add_stream("words", words.output, count.input)
        dag.add_stream("counts", count.output, text.input)
        dag.add_stream("texts", text.output, writer.input)

    run_dag(populate_dag)
    (source / "more.txt").write_text("new new\n")
    report = run_dag(populate_dag, {"operator.count.combiner": False, "operator.count.partitioner": "2"})
    assert "count.partial" not in report.operators
    assert lines_in(out)[b"new 2"] == 1
