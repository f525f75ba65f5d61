"""Final launches: all input is one window, of which nothing is kept, and their run has no other."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dagflow import DAG, InputPort, Operator, OutputPort, launch
from dagflow.errors import DagflowError
from dagflow.ledger import read_dataset
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator
from dagflow.runtime.run_folder.verify import verify_run_folder
from dagflow.runtime.windows.errors import PlannedElsewhere, RunIsFinal
from dagflow.runtime.windows.loop import WindowLoop
from operators import Filter, GroupBy, Join, Map, ParquetWriter, TopN, Tumbling, agg
from tests.conformance.faults.dying import Deadly, dies

ORDERS = ("customer,worth\nada,3\nbob,4\n", "customer,worth\nada,5\n", "customer,worth\nbob,1\neve,9\n")
COUNTRIES = "customer,country\nada,se\nbob,no\neve,se\n"


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


def run(populate: Any, **options: Any) -> Any:
    return launch(populate, runner="local", slots=1, progress="none", **options).report


def sums_of(home: Path) -> dict[str, int]:
    rows = read_dataset(str(home / "sums")).to_table().to_pylist()
    return {row["country"]: row["worth"] for row in rows}


def kept(home: Path) -> list[str]:
    """The records of states in the run folder."""
    folders = (home / "sums" / "_dagflow" / name for name in ("keyed-state", "task-states", "state"))
    return [str(path) for folder in folders if folder.exists() for path in folder.rglob("*") if path.is_file()]


def test_a_final_launch_takes_all_as_one_window_and_keeps_nothing(home: Path) -> None:
    for number in range(3):
        deliver(home, number)
    report = run(totals(home), final=True, window=0.001)
    assert (report.windows, report.operators["orders"].records_out) == (1, 5)
    assert sums_of(home) == {"se": 17, "no": 5}
    assert kept(home) == []
    assert Counter(row["worth"] for row in read_dataset(str(home / "top")).to_table().to_pylist()) == {9: 1, 4: 1}


def summed(dag: DAG, conf: Any) -> None:
    rows = dag.read(Path(conf["home"]) / "orders", "csv", name="orders")
    rows.to(GroupBy("customer", worth=agg.sum("worth")), name="sums").to(ParquetWriter(Path(conf["home"]) / "out"), name="out")


def test_its_window_is_replayed_from_nothing(home: Path) -> None:
    deliver(home, 0)
    launch(summed, {"home": str(home)}, runner="local", progress="none", final=True)
    report = replay(str(home / "out"), locator=ApplicationLocator(trust=True))
    assert (report.windows, report.rows, report.problems, report.left_out) == (1, 2, (), ())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"final": True}, {"final": True}),
        ({"final": True}, {}),
        ({"final": True}, {"once": False, "every": 0.0}),
        ({}, {"final": True}),
    ],
    ids=["final, final", "final, normal", "final, continuous", "normal, final"],
)
def test_it_is_the_only_one_of_its_run(home: Path, first: dict[str, Any], second: dict[str, Any]) -> None:
    deliver(home, 0)
    run(totals(home), **first)
    deliver(home, 1)
    with pytest.raises(RunIsFinal):
        launch(totals(home), runner="local", slots=1, progress="none", **second).wait()
    assert sums_of(home) == {"se": 3, "no": 4}
    run(totals(home), final=True, fresh=True)
    assert sums_of(home) == {"se": 8, "no": 4}


@pytest.mark.parametrize("final", [True, False])
def test_the_next_launch_completes_one_that_has_failed(home: Path, final: bool) -> None:
    deliver(home, 0)
    with pytest.raises(DagflowError):
        run(totals(home, broken=True), final=True)
    deliver(home, 1)
    report = run(totals(home), final=final)
    assert report.operators["orders"].records_out == 2, "the window is run from its plan, and no other is planned"
    assert sums_of(home) == {"se": 3, "no": 4}
    with pytest.raises(DagflowError, match="the last launch was final"):
        run(totals(home), final=final)


@pytest.mark.full
@pytest.mark.parametrize("touch", [1, 3, 8, 20, 30, 40, 50, 60, 80])
def test_one_that_is_killed_is_completed(home: Path, touch: int) -> None:
    deliver(home, 0)
    dies(functools.partial(run, totals(home), final=True), Deadly(str(home), touch))
    with contextlib.suppress(RunIsFinal):  # all was done before
        run(totals(home), final=True)
    assert sums_of(home) == {"se": 3, "no": 4}
    assert not verify_run_folder(str(home / "sums" / "_dagflow")).problems


def test_an_error_after_the_window_does_not_plan_another_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep, failures = WindowLoop._sweep, [PlannedElsewhere(0, "somewhere")]  # a transient error

    def failing(self: WindowLoop, done: list[int]) -> None:
        if done and failures:
            raise failures.pop()
        sweep(self, done)

    monkeypatch.setattr(WindowLoop, "_sweep", failing)
    deliver(home, 0)
    report = run(totals(home), final=True, retry_delay=0)
    assert (report.status, report.windows, failures) == ("done", 1, [])


def test_what_cannot_be_final_is_refused(home: Path) -> None:
    with pytest.raises(DagflowError, match="final and continuous exclude each other"):
        run(totals(home), final=True, continuous=True)

    def populate_dag(dag: DAG, conf: Any) -> None:
        rows = dag.read(home / "orders", "csv", name="orders", schema="customer: string, worth: int64, at: timestamp")
        late = Tumbling[Any, Any, Any](60, time="at", by="customer", allowed_lateness=0)
        rows.to(late, name="late").to(ParquetWriter(home / "out"), name="out")

    with pytest.raises(DagflowError, match="'late' follows event time"):
        run(populate_dag, final=True)


@pytest.mark.parametrize(("how", "rows"), [("inner", 0), ("anti", 1), ("semi", 0)])
def test_a_side_without_rows_whose_columns_nothing_tells(home: Path, how: Any, rows: int) -> None:
    deliver(home, 0)
    (home / "nothing").mkdir()

    def populate_dag(dag: DAG, conf: object) -> None:
        join = Join("value", how=how)
        adas = dag.read(home / "orders", "csv").to(Filter(pc.field("customer") == "ada"), name="ada")
        adas.to(Map[Any, Any](pc.field("customer")), name="names").to(join.left, name="join")
        others = dag.read(home / "nothing", "csv", schema="customer: string")
        others.to(Map[Any, Any](pc.field("customer")), name="others").to(join.right)
        join.output.to(ParquetWriter(home / "out"))

    run(populate_dag, final=True)
    assert read_dataset(str(home / "out")).to_table().num_rows == rows
