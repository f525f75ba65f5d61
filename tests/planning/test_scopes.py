"""The state that operators keep and its bounds, and the rows that depend on windows: in the plan, and as a warning."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputPort, MapState, Operator, OutputPort, StateSize, launch
from dagflow.launching.build import build
from dagflow.page.run.data import drawn
from dagflow.planning.emission import Emission
from dagflow.planning.scopes import depending_on_windows, unbounded
from dagflow.planning.steps import make_plan
from dagflow.planning.view import OperatorView, StreamView, plan_view
from dagflow.render.plan import plan_text
from dagflow.testing import Collector
from operators import (
    Average,
    Console,
    Count,
    Deduplicate,
    Distinct,
    GroupBy,
    HashJoin,
    JsonLinesWriter,
    Max,
    ParquetWriter,
    SqlWriter,
    TopN,
    Tumbling,
    agg,
    window,
)


@attrs.define
class Kept(Operator):
    """Keeps something by key."""

    scope = "all"
    input = InputPort[dict](partition_by="k")
    output = OutputPort[dict]()
    last = MapState[str, int]()

    @input.process
    def each(self, row: dict[str, Any]) -> None:
        self.output.emit(row)


@attrs.define
class Sized(Kept):
    """Says how much that is."""

    def state_size(self, changing: Collection[str]) -> StateSize:
        return StateSize(f"rows that change at {', '.join(changing)}")


def rows(dag: DAG, name: str = "rows") -> Any:
    return dag.read("in/*.csv", "csv", schema="k: string, v: int64, t: timestamp[us]", name=name)


def behind(dag: DAG, *, changing: bool) -> Any:
    """Rows that never are taken back, or may be."""
    source = rows(dag)
    return source.to(TopN(100, "v", by="k"), name="best") if changing else source


def views(dag: DAG) -> tuple[dict[str, OperatorView], dict[str, StreamView]]:
    view = plan_view(dag)
    return {each.name: each for each in view.operators}, {each.source: each for each in view.streams}


@pytest.mark.parametrize(
    ("operator", "kept", "kept_of_changing"),
    [
        (GroupBy("k", n=agg.count()), "a row for each group, bounded by the different values of k", None),
        (GroupBy(n=agg.count(), s=agg.sum("v")), "one row", None),
        (
            GroupBy("k", m=agg.max("v"), n=agg.mean("v")),
            "a row for each group, bounded by the different values of k",
            "a row for each group with all different values of m, bounded by nothing",
        ),
        (GroupBy(m=agg.quantile("v", 0.5)), "one row with all different values of m, bounded by nothing", None),
        (Distinct("k"), "a row for each group, bounded by the different values of k", None),
        (Distinct(), "all different rows, bounded by nothing", None),
        (GroupBy(window("t", 60), "k", n=agg.count()), "a row for each group, bounded by nothing", None),
        (Tumbling(60, time="t", by="k"), "a row for each key and time window, bounded by nothing", None),
        (
            Tumbling(60, time="t", by="k", emit="final"),
            "a row for each key and time window, bounded by the windows that are not over by the watermark",
            "",
        ),
        (Count(by="k"), "a row for each key, bounded by the different keys", None),
        (Average(of="v"), "one row", None),
        (Max(of="v"), "one row", "one row with all different values, bounded by nothing"),
        (Deduplicate(), "all different rows, bounded by nothing", None),
        (Deduplicate(by="k"), "a row for each key, bounded by the different keys", "all rows, bounded by nothing"),
        (TopN(2, "v"), "2 rows", "all rows, bounded by nothing"),
        (TopN(2, "v", by="k"), "2 rows for each key, bounded by the different keys", "all rows, bounded by nothing"),
        (Count(by="k", scope="window"), None, ""),
    ],
)
def test_the_plan_says_what_is_kept_and_what_bounds_it(operator: Any, kept: str | None, kept_of_changing: str | None) -> None:
    for changing, expected in ((False, kept), (True, kept if kept_of_changing is None else kept_of_changing)):
        if expected == "":
            continue  # refused there
        dag = DAG("kept")
        behind(dag, changing=changing).to(attrs.evolve(operator), name="it").to(Console(), name="show")
        assert views(dag)[0]["it"].keeps == expected
        assert ("it" in unbounded(make_plan(dag).written)) == (expected or "").endswith("nothing")


def test_operators_of_users_are_shown_with_what_they_declare_or_say() -> None:
    dag = DAG("users")
    rows(dag).to(Kept(), name="kept").to(Console(), name="show")
    assert views(dag)[0]["kept"].keeps == "its state: last, bounded by nothing"
    assert unbounded(make_plan(dag).written) == {"kept": "its state: last"}
    dag = DAG("users")
    rows(dag).to(Sized(), name="sized").to(Console(), name="show")
    assert unbounded(make_plan(dag).written) == {"sized": "rows that change at "}


def test_time_windows_without_a_lateness_are_within_the_law() -> None:
    dag = DAG("law")
    source = rows(dag)
    source.to(Tumbling(60, time="t", by="k"), name="minutes").to(Console(), name="show")
    source.to(GroupBy(window("t", 60), n=agg.count()), name="groups").to(Console(), name="show_too")
    operators, _ = depending_on_windows(make_plan(dag).written)
    assert not operators.keys() & {"minutes", "groups"}


def test_what_the_planner_adds_is_bounded(tmp_path: Path) -> None:
    dag = DAG("added")
    best = behind(dag, changing=True)
    best.to(JsonLinesWriter(tmp_path / "out"), name="out")
    best.to(SqlWriter(f"sqlite:///{tmp_path / 'a.db'}", "best", mode="upsert", keys=["k"]), name="table")
    best.to(Console(), name="show")
    kept = {name: each.keeps for name, each in views(dag)[0].items() if "." in name and each.keeps}
    assert kept == {
        "out.current": "all rows that stand, bounded by the result",
        "table.held": "the changes since the last emission point, bounded by the next one",
        "table.unique": "a number for each key, bounded by the rows that stand",
        "show.held": "the changes since the last emission point, bounded by the next one",
    }


def test_rows_outside_the_law_are_marked_with_all_that_follows_from_them(tmp_path: Path) -> None:
    dag = DAG("law")
    source = rows(dag)
    source.to(Count(by="k"), name="counts").to(JsonLinesWriter(tmp_path / "log", mode="changelog"), name="log")
    source.to(Count(by="k", scope="window"), name="each").to(Console(), name="show_each")
    minutes = dag.add_operator("minutes", Tumbling(60, time="t", by="k", allowed_lateness=0))
    late = dag.add_operator("late", GroupBy("k", n=agg.count()))
    bad = dag.add_operator("bad", Console())
    dag.add_stream("timed", rows(dag, "timed_rows"), minutes.input)
    dag.add_stream("too_late", minutes.late, late.input)
    dag.add_stream("bad_rows", dag.operators["rows"].operator.errors, bad.input)
    late.output.to(Console(), name="show_late")
    operators, ports = depending_on_windows(make_plan(dag).written)
    assert operators == {
        "log": "which changes cancel before they are written",
        "each": "each covers a window",
        "show_each": "each covers a window",
        "minutes": "which records are late for minutes",
        "late": "which records are late for minutes",
        "show_late": "which records are late for minutes",
        "bad": "error records of rows",
    }
    assert set(map(str, ports)) == {"each.output", "minutes.late", "late.output", "rows.errors"}
    nodes, streams = views(dag)
    assert nodes["counts"].depends_on_windows is None
    assert streams["counts.output"].depends_on_windows is None
    assert streams["rows.errors"].depends_on_windows == "error records of rows"
    text = plan_text(plan_view(dag))
    assert "      depends on windows: each covers a window" in text
    assert "  rows of bad_rows depend on windows: error records of rows" in text


@attrs.define
class EmitsLater(Operator):
    """Emits what it keeps whenever a window ends."""

    input = InputPort[dict](partition_by="k")
    output = OutputPort[dict]()
    last = MapState[str, int]()

    @input.process
    def each(self, row: dict[str, Any]) -> None:
        self.last[row["k"]] = row["n"]

    def end_window(self) -> None:
        for key, n in self.last.items():
            self.output.emit({"k": key, "n": n})


@attrs.define
class SaysAll(EmitsLater):
    """Promises that the cut does not show in what it emits."""

    scope = "all"


def test_what_depends_on_the_order_or_the_end_of_windows_is_told() -> None:
    dag = DAG("order")
    source = rows(dag)
    source.to(SqlWriter("sqlite:///out.db", "newest", mode="upsert", keys=["k"]), name="last_wins")
    source.to(TopN(1, "n", by="k"), name="top").to(
        SqlWriter("sqlite:///out.db", "top", mode="upsert", keys=["k"]), name="one_each"
    )
    source.to(EmitsLater(), name="later").to(Console(), name="show")
    source.to(SaysAll(), name="promised").to(Console(), name="show_all")
    source.to(ParquetWriter("plain", mode="replace"), name="exported")
    source.to(Distinct("k"), name="keys").to(ParquetWriter("distinct", mode="replace"), name="kept")
    operators, _ = depending_on_windows(make_plan(dag).written)
    emitted = 'what later emits as windows end (scope = "all" in its class says that it does not)'
    assert operators == {
        "last_wins": "which row with the same k is the last",
        "later": emitted,
        "show": emitted,
        "exported": "exported has the rows of the newest launch that has any for it, or window of a continuous one",
    }


def test_the_page_has_the_facts_of_the_plan() -> None:
    dag = DAG("page")
    rows(dag).to(GroupBy("k", n=agg.count()), name="totals").to(Console(), name="show")
    page = drawn(plan_view(dag))
    node = next(each for each in page["nodes"] if each["name"] == "totals")
    assert (node["covers"], node["keeps"]) == ("all input", "a row for each group, bounded by the different values of k")
    held = next(each for each in page["nodes"] if each["name"] == "show.held")
    assert held["emits"] == "emits when the input is exhausted"
    edge = next(each for each in page["edges"] if each["source"] == "totals.output")
    assert (edge["changed_by"], edge["identified_by"], edge["rows"]) == ("totals", (("k",),), ("k", "n: int64"))


@pytest.mark.parametrize("continuous", [True, False])
def test_a_continuous_launch_warns_once_where_nothing_bounds_what_is_kept(tmp_path: Path, *, continuous: bool) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("k\na\n")

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.read(tmp_path / "in", "csv", name="rows")
        joined = dag.add_operator("joined", HashJoin(by="k"))
        dag.add_stream("both", source, joined.left, joined.right)
        joined.output.to(Deduplicate(), name="once").to(Collector[Any](), name="seen")

    options = {"run_folder": str(tmp_path / "run"), "max_windows": 1, "durability": "process"}
    report = launch(populate_dag, runner="local", once=not continuous, **options).wait(60)
    warnings = [text for text in report.warnings if "bounds" in text]
    expected = (
        "nothing bounds what these operators keep: joined (all rows of both sides), once (all different rows). "
        "It grows as long as input comes"
    )
    assert warnings == ([expected] if continuous else [])


def test_a_final_launch_keeps_nothing_and_its_plan_says_so(tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.read(tmp_path, "csv").to(GroupBy("k", n=agg.count()), name="totals").to(ParquetWriter[Any](str(tmp_path / "out")))

    def kept(emission: Emission) -> list[str | None]:
        view = plan_view(build(populate_dag).plan(emission))
        return [each.keeps for each in view.operators if each.name == "totals"]

    assert kept(Emission()) == ["a row for each group, bounded by the different values of k"]
    assert kept(Emission(is_final=True)) == [None]
