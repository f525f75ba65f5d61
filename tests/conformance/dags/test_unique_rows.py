"""Keys of upserts: two rows of a changing stream that stand with the same keys are refused, whatever windows they came in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import deltalake
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dagflow import DAG
from dagflow.errors import PlanMismatch, RowsShareKeys
from dagflow.launching.build import build
from dagflow.testing import run_dag
from operators import DeltaWriter, Filter, GroupBy, JsonLinesWriter, Map, TopN, agg
from tests.conformance.orders import Order, Signed
from tests.conformance.windows import InWindows
from tests.operators.databases import Database
from tests.tiers import examples


def application(windows: list[list[Order]], writer: Any, *between: Any) -> Callable[[DAG, object], None]:
    def populate_dag(dag: DAG, conf: object) -> None:
        end = dag.add_operator("source", InWindows[Order](windows)).output
        for number, operator in enumerate([*between, writer]):
            made = dag.add_operator("table" if operator is writer else f"o{number}", operator)
            dag.add_stream(f"s{number}", end, made.input)
            end = None if operator is writer else made.output

    return populate_dag


def is_checked(writer: Any, *between: Any) -> bool:
    return "table.unique" in build(application([], writer, *between)).plan().dag.nodes


def test_only_what_the_dag_does_not_exclude_is_checked(tmp_path: Path) -> None:
    def upserts(*keys: str) -> Any:
        return Database("sqlite", f"sqlite:///{tmp_path}/out.db").writer("orders", mode="upsert", keys=list(keys))

    totals = GroupBy("customer", "number", worth=agg.sum("worth"))
    assert not is_checked(upserts("number", "customer"), totals)
    assert not is_checked(upserts("customer"), totals, TopN(1, "worth", by="customer"))
    assert not is_checked(upserts("number", "customer"), totals, Filter(lambda row: True))
    assert is_checked(upserts("customer"), totals)
    assert is_checked(upserts("number", "customer"), totals, Map(lambda row: row))
    assert not is_checked(upserts("customer"))  # rows are only added: the last one counts
    assert not is_checked(JsonLinesWriter(str(tmp_path)), totals)
    assert is_checked(JsonLinesWriter(str(tmp_path), mode="changelog", keys=["customer"]), totals)


ORDERS = [Order(1, "a", 1.0), Order(2, "b", 1.0), Order(3, "a", 2.0)]


@pytest.mark.parametrize("options", [{}, {"continuous": True, "every": 0}], ids=["at the end", "with each window"])
def test_rows_of_several_windows_and_launches(options: dict[str, Any], tmp_path: Path) -> None:
    database = Database("sqlite", f"sqlite:///{tmp_path}/out.db")

    def run(windows: list[list[Order]]) -> None:
        writer = database.writer("orders", mode="upsert", keys=["customer"])
        options_of = {**options, "max_windows": len(windows)} if options else {}
        run_dag(application(windows, writer, Signed()), run_folder=str(tmp_path / "run"), **options_of)

    run([ORDERS[:1], ORDERS[1:2]])
    with pytest.raises(RowsShareKeys, match=r"2 rows stand with the same customer.*'number': 3"):
        run([ORDERS[:1], ORDERS[1:2], ORDERS[2:]])
    assert sorted(database.rows("orders")) == [(1, "a", 1.0), (2, "b", 1.0)]


@pytest.mark.parametrize("keys", [["number", "customer"], ["number"]])
def test_other_keys_are_refused_once_there_are_rows(keys: list[str], tmp_path: Path) -> None:
    """Rows stand in the table by the keys that it had."""

    def run(keys: list[str], windows: list[list[Order]]) -> None:
        writer = DeltaWriter(str(tmp_path / "orders"), mode="upsert", keys=keys)
        run_dag(application(windows, writer, Signed()), run_folder=str(tmp_path / "run"))

    run(keys, [ORDERS[:1]])
    with pytest.raises(PlanMismatch, match=r"table.keys = \(.*\) → \(customer\)"):
        run(["customer"], [ORDERS[:1], ORDERS[2:]])
    run(keys, [ORDERS[:1], ORDERS[2:]])
    assert deltalake.DeltaTable(tmp_path / "orders").to_pyarrow_table().num_rows == 2


def test_a_window_that_is_planned_for_other_emission_points_is_refused(tmp_path: Path) -> None:
    """Its records go from the driver to an operator that only a continuous launch has: they would be lost."""
    database = Database("sqlite", f"sqlite:///{tmp_path}/out.db")
    folder = str(tmp_path / "run")

    def run(windows: list[list[Order]], **options: Any) -> None:
        writer = database.writer("orders", mode="upsert", keys=["customer"])
        run_dag(application(windows, writer, Signed()), run_folder=folder, **options)

    back = attrs.evolve(ORDERS[0], worth=-1.0)
    with pytest.raises(RowsShareKeys):
        run([ORDERS[:1], ORDERS[2:]], continuous=True, every=0, max_windows=2)
    with pytest.raises(PlanMismatch, match=r"window 1 is planned with work for relay to table\.unique\.input"):
        run([ORDERS[:1], ORDERS[2:], [back]])
    assert database.rows("orders") == [(1, "a", 1.0)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(15), phases=[Phase.generate])
@given(
    drawn=st.lists(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab")), max_size=3), min_size=1, max_size=4),
    data=st.data(),
)
def test_a_window_is_refused_exactly_where_two_rows_share_keys(
    drawn: list[list[tuple[int, str]]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each window is an emission point. Rows come, and are taken back, in any order."""
    folder, stands, windows = tmp_path_factory.mktemp("unique"), Counter[Order](), list[list[Order]]()
    is_refused = False
    for adds in drawn:
        window = [Order(number, customer, 1.0) for number, customer in adds]
        standing = sorted(stands.elements(), key=repr)
        window += [attrs.evolve(order, worth=-1.0) for order in standing if data.draw(st.booleans())]
        if window:  # a window without rows is none
            windows.append(data.draw(st.permutations(window)))
        for order in window:
            stands[attrs.evolve(order, worth=1.0)] += 1 if order.worth > 0 else -1
        of_keys = Counter(order.customer for order in stands.elements())
        if is_refused := max(of_keys.values(), default=0) > 1:
            break
    database = Database("sqlite", f"sqlite:///{folder}/out.db")
    writer = database.writer("orders", mode="upsert", keys=["customer"])
    options: dict[str, Any] = {"run_folder": str(folder / "run"), "continuous": True, "every": 0, "max_windows": len(windows)}
    if is_refused:
        with pytest.raises(RowsShareKeys):
            run_dag(application(windows, writer, Signed()), slots=1, **options)
    elif windows:
        run_dag(application(windows, writer, Signed()), slots=1, **options)
        assert Counter(Order(*row) for row in database.rows("orders")) == +stands
