"""Final launches: all input is one window, nothing is kept, and the next launch reads all again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort, launch
from dagflow.errors import DagflowError
from dagflow.ledger import read_dataset
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator
from operators import Filter, GroupBy, Join, ParquetWriter, TopN, Tumbling, agg, col

ORDERS = ("customer,worth\nada,3\nbob,4\n", "customer,worth\nada,5\n", "customer,worth\nbob,1\neve,9\n")
COUNTRIES = "customer,country\nada,se\nbob,no\neve,se\n"
TOTALS = {"se": [3, 8, 17], "no": [4, 4, 5]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "orders").mkdir()
    (tmp_path / "customers.csv").write_text(COUNTRIES)
    return tmp_path


def deliver(home: Path, number: int) -> None:
    (home / "orders" / f"{number}.csv").write_text(ORDERS[number])


class Broken(Exception):
    """The error of a handler."""


@attrs.define
class Gate(Operator):
    """Hands rows on, unless it is broken."""

    input = InputPort[Any]()
    output = OutputPort[Any]()
    broken: bool = False

    @input.batch
    def hand_on(self, batch: pa.RecordBatch) -> None:
        if self.broken:
            raise Broken
        self.output.emit_batch(batch)


def totals(home: Path, *, broken: bool = False) -> Any:
    """The worth of orders by country, with the largest order of each."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        orders = dag.read(home / "orders", "csv", name="orders").to(Gate(broken=broken), name="gate")
        join = Join("customer", "left")
        orders.to(join.left, name="named")
        dag.read(home / "customers.csv", "csv", name="customers").to(join.right)
        join.output.to(GroupBy("country", worth=agg.sum("worth")), name="sums").to(ParquetWriter(home / "sums"), name="sums_out")
        join.output.to(TopN(1, of="worth", by="country"), name="top").to(ParquetWriter(home / "top"), name="top_out")

    return populate_dag


def copied(home: Path, **options: Any) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = dag.read(home / "orders", "csv", name="orders").to(Filter(col("worth") > 0), name="worthy")
        rows.to(ParquetWriter(home / "out", **options), name="out")

    return populate_dag


def run(populate: Any, **options: Any) -> Any:
    return launch(populate, runner="local", slots=1, progress="none", **options).report


def sums_of(home: Path) -> dict[str, int]:
    rows = read_dataset(str(home / "sums")).to_table().to_pylist()
    return {row["country"]: row["worth"] for row in rows}


def kept(home: Path) -> list[str]:
    """The records of states in the run folder."""
    folders = (home / "sums" / "_dagflow" / name for name in ("keyed-state", "task-states", "state"))
    return [str(path) for folder in folders if folder.exists() for path in folder.rglob("*") if path.is_file()]


def test_each_final_launch_reads_all_and_keeps_nothing(home: Path) -> None:
    for number in range(3):
        deliver(home, number)
        report = run(totals(home), final=True, window=0.001)
        assert report.windows == 1
        assert report.operators["orders"].records_out == (2, 3, 5)[number]
        assert sums_of(home) == {"se": TOTALS["se"][number], "no": TOTALS["no"][number]}
        assert kept(home) == []
    assert Counter(row["worth"] for row in read_dataset(str(home / "top")).to_table().to_pylist()) == {9: 1, 4: 1}


def summed(dag: DAG, conf: Any) -> None:
    rows = dag.read(Path(conf["home"]) / "orders", "csv", name="orders")
    rows.to(GroupBy("customer", worth=agg.sum("worth")), name="sums").to(ParquetWriter(Path(conf["home"]) / "out"), name="out")


def test_windows_are_replayed_from_nothing(home: Path) -> None:
    for number, is_final in enumerate((False, True, True)):
        deliver(home, number)
        launch(summed, {"home": str(home)}, runner="local", progress="none", final=is_final)
    report = replay(str(home / "out"), locator=ApplicationLocator(trust=True))
    assert (report.windows, report.rows, report.problems, report.left_out) == (3, 2 + 2 + 3, (), ())


@pytest.mark.parametrize("final", [(True, False, False), (False, True, False), (False, False, True)], ids=str)
def test_the_launches_before_and_after_may_keep_what_they_read(home: Path, final: tuple[bool, ...]) -> None:
    read = []
    for number, is_final in enumerate(final):
        deliver(home, number)
        read.append(run(totals(home), final=is_final).operators["orders"].records_out)
        assert sums_of(home) == {"se": TOTALS["se"][number], "no": TOTALS["no"][number]}
    anew = [2, 3 if final[0] or final[1] else 1, 5 if final[1] or final[2] else 2]
    assert read == anew


def test_rows_are_never_added_twice(home: Path) -> None:
    deliver(home, 0)
    run(copied(home), final=True)
    deliver(home, 1)
    for is_final in (True, False):
        with pytest.raises(DagflowError, match=r"read again(.|\n)*operator 'out' \(ParquetWriter") as refused:
            run(copied(home), final=is_final)
        assert refused.value.code == "DF960"
    assert read_dataset(str(home / "out")).to_table().num_rows == 2
    run(copied(home), fresh=True)
    assert read_dataset(str(home / "out")).to_table().num_rows == 3


def test_a_sink_that_replaces_is_read_anew(home: Path) -> None:
    for number in range(2):
        deliver(home, number)
        run(copied(home, mode="replace"), final=True)
    assert read_dataset(str(home / "out")).to_table().num_rows == 3


@pytest.mark.parametrize("final", [True, False])
def test_the_next_launch_completes_one_that_has_failed(home: Path, final: bool) -> None:
    def populate(*, broken: bool) -> Any:
        def populate_dag(dag: DAG, conf: Any) -> None:
            rows = dag.read(home / "orders", "csv", name="orders").to(Gate(broken=broken), name="gate")
            rows.to(ParquetWriter(home / "out"), name="out")

        return populate_dag

    deliver(home, 0)
    with pytest.raises(DagflowError):
        run(populate(broken=True), final=True)
    deliver(home, 1)
    report = run(populate(broken=False), final=final)
    assert report.operators["orders"].records_out == 2, "the window is run from its plan, and no other is planned"
    assert read_dataset(str(home / "out")).to_table().num_rows == 2


def test_a_window_that_continues_with_what_is_kept_is_run_first(home: Path) -> None:
    deliver(home, 0)
    run(totals(home))
    deliver(home, 1)
    with pytest.raises(DagflowError):
        run(totals(home, broken=True))
    with pytest.raises(DagflowError, match="Launch once without --final"):
        run(totals(home), final=True)
    run(totals(home))
    assert sums_of(home) == {"se": 8, "no": 4}


def test_operators_over_the_input_of_a_launch_get_all_of_it_each_time(home: Path) -> None:

    def populate_dag(dag: DAG, conf: Any) -> None:
        counted = GroupBy("customer", scope="window", n=agg.count())
        rows = dag.read(home / "orders", "csv", name="orders").to(counted, name="counted")
        rows.to(ParquetWriter(home / "out", mode="replace"), name="out")

    for number in range(2):
        deliver(home, number)
        run(populate_dag, final=True)
    rows = read_dataset(str(home / "out")).to_table().to_pylist()
    assert {row["customer"]: row["n"] for row in rows} == {"ada": 2, "bob": 1}


def test_what_cannot_be_final_is_refused(home: Path) -> None:
    with pytest.raises(DagflowError, match="final and continuous exclude each other"):
        run(copied(home), final=True, continuous=True)

    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = dag.read(home / "orders", "csv", name="orders", schema="customer: string, worth: int64, at: timestamp")
        late = Tumbling[Any, Any, Any](60, time="at", by="customer", allowed_lateness=0)
        rows.to(late, name="late").to(ParquetWriter(home / "out"), name="out")

    with pytest.raises(DagflowError, match="'late' follows event time"):
        run(populate_dag, final=True)
