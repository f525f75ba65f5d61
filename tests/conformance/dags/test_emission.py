"""Emission points: at each of them all sinks show the result of one prefix of the input, and in between nothing changes."""

from __future__ import annotations

import datetime
import json
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow import DAG, launch
from dagflow.errors import ChangesHeld, EmissionMissing, NotHeld
from dagflow.launching.build import build
from dagflow.ledger import read_dataset
from dagflow.lineage.replay import replay
from dagflow.lineage.trace import ApplicationLocator
from dagflow.page.run.report import run_report as past_report
from dagflow.planning.held_changes import HeldChanges
from dagflow.planning.view import plan_view
from dagflow.render.plan import plan_text
from dagflow.render.report import report_text
from dagflow.runtime.events import Event, WindowDone, WindowPlanned
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, OperatorTask, check_operator, run_dag
from operators import DeltaWriter, Filter, GroupBy, HashJoin, JsonLinesWriter, Map, Tumbling, agg
from operators.aggregate.aggregate import KeyValue
from operators.aggregate.tumbling import WindowValue
from tests.conformance.orders import Newest, Order
from tests.conformance.windows import InWindows
from tests.operators.databases import Database
from tests.tiers import examples

Windows = list[list[Order]]
Rows = Counter[tuple[Any, ...]]


def as_pair(order: Order) -> tuple[int, float]:  # without an Arrow form
    return order.number, order.worth


@attrs.frozen
class Place:
    """The folder of an application with five sinks of different kinds, on different keys, behind one stream of orders."""

    folder: Path
    pairs: Collector[Any] = attrs.field(factory=Collector)

    @property
    def database(self) -> Database:
        return Database("sqlite", f"sqlite:///{self.folder}/out.db")

    def populate(self, windows: Windows) -> Callable[[DAG, object], None]:
        def populate_dag(dag: DAG, conf: object) -> None:
            source = dag.add_operator("source", InWindows[Order](windows))
            newest = dag.add_operator("newest", Newest())
            totals = dag.add_operator("totals", GroupBy("customer", n=agg.count(), worth=agg.sum("worth")))
            large = dag.add_operator("large", Filter[Any](pc.field("worth") > 4))
            joined = dag.add_operator("joined", HashJoin[Any, Any, Any]("customer"))
            pair = dag.add_operator("pair", Map(as_pair))
            dag.set_attributes(newest, partitioner=StatelessPartitioner(2))
            dag.add_stream("all", source.output, newest.input)
            sinks: dict[str, Any] = {
                "files": JsonLinesWriter(str(self.folder / "files")),
                "upserted": self.database.writer("totals", mode="upsert", keys=["customer"]),
                "replaced": self.database.writer("totals_again"),
                "joins": DeltaWriter(str(self.folder / "joins")),
                "pairs": self.pairs,
            }
            for name, sink in sinks.items():
                dag.add_operator(name, sink)
            dag.add_stream("orders", newest.output, totals.input, joined.left, pair.input)
            dag.add_stream(
                "by", totals.output, large.input, sinks["files"].input, sinks["upserted"].input, sinks["replaced"].input
            )
            dag.add_stream("larges", large.output, joined.right)
            dag.add_stream("matches", joined.output, sinks["joins"].input)
            dag.add_stream("as pairs", pair.output, sinks["pairs"].input)

        return populate_dag

    def run(self, windows: Windows, **options: Any) -> Any:
        return run_dag(self.populate(windows), run_folder=str(self.folder / "run"), **options)

    def content(self) -> dict[str, Rows]:
        """Return the rows that each sink has."""
        lines = (line for path in (self.folder / "files" / "current").glob("*") for line in path.read_text().splitlines())
        tables = {name: self.database.run(f"SELECT * FROM {name}") for name in self._tables()}
        joins: Any = []
        if (self.folder / "joins" / "_delta_log").exists():
            import deltalake

            joins = deltalake.DeltaTable(self.folder / "joins").to_pyarrow_table().to_pylist()
        return {
            "files": Counter(tuple(json.loads(line).values()) for line in lines),
            "upserted": Counter(map(tuple, tables.get("totals", []))),
            "replaced": Counter(map(tuple, tables.get("totals_again", []))),
            "joins": Counter((row["number"], row["customer"], row["worth"], row["n"], row["worth_right"]) for row in joins),
            "pairs": Counter(self.pairs.records),
        }

    def _tables(self) -> list[str]:
        if not (self.folder / "out.db").exists():
            return []
        return [name for (name,) in self.database.run("SELECT name FROM sqlite_master WHERE name LIKE 'totals%'")]


def expected(windows: Windows) -> dict[str, Rows]:
    """Return the rows of each sink for all input."""
    newest = {order.number: order for window in windows for order in window}
    orders = [order for order in newest.values() if order.customer is not None]
    by: dict[Any, list[float]] = defaultdict(list)
    for order in orders:
        by[order.customer].append(order.worth)
    totals = {customer: (customer, len(worths), sum(worths)) for customer, worths in by.items()}
    matches = [(o.number, o.customer, o.worth, *totals[o.customer][1:]) for o in orders if totals[o.customer][2] > 4]
    rows = Counter(totals.values())
    return {
        "files": rows,
        "upserted": rows,
        "replaced": rows,
        "joins": Counter(matches),
        "pairs": Counter(map(as_pair, orders)),
    }


CORRECTED: Windows = [
    [Order(n, "abc"[n % 3], float(n)) for n in range(9)],
    [Order(3, "b", 1.0), Order(4, "c", 9.0)],
    [Order(8, "c", 7.0)] * 2,
    [Order(8, None, 0.0), Order(2, "d", 1.5)],
]


# ------------------------------------------------------------------------------------------------------------- bounded launches


def test_a_bounded_launch_emits_once(runner: str, tmp_path: Path) -> None:
    place, seen = Place(tmp_path), list[tuple[int, dict[str, Rows]]]()

    def look(event: Event) -> None:
        if isinstance(event, WindowDone):
            seen.append((event.window, place.content()))

    report = place.run(CORRECTED, runner=runner, subscribers=[look])
    assert report.windows == len(CORRECTED) + 1, "the source cannot tell that the last window is the last"
    nothing = {name: Counter[Any]() for name in expected([])}
    assert [content for _, content in seen[:-1]] == [nothing] * len(CORRECTED)
    assert seen[-1][1] == expected(CORRECTED)
    assert report.held == {}
    assert len(list((tmp_path / "files" / "_snapshots").iterdir())) == 1


def test_the_window_that_exhausts_the_input_is_the_emission_point(tmp_path: Path) -> None:
    class Pausing(InWindows[Order]):
        """Never closes a window, so that all is in one."""

        def emit_tuples(self) -> None:
            super().emit_tuples()
            self.context.signals.window_closed = False

    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", Pausing(CORRECTED))
        newest = dag.add_operator("newest", Newest())
        dag.add_operator("seen", seen)
        dag.add_stream("all", source.output, newest.input)
        dag.add_stream("orders", newest.output, seen.input)

    assert run_dag(populate_dag).windows == 1
    assert Counter(map(as_pair, seen.records)) == expected(CORRECTED)["pairs"]


def test_a_limit_of_windows_is_not_an_emission_point(runner: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    for _ in range(2):
        report = place.run(CORRECTED, runner=runner, max_windows=2)
        assert not any(place.content().values())
        assert set(report.held) == {"files.current", "upserted.held", "replaced.current", "joins.current", "pairs.held"}
    assert report.held["upserted.held"] == 4
    assert re.search("waiting +files: .*\n.* upserted: 4 changes for the next emission point", report_text(report))
    assert past_report(str(tmp_path / "run")).held == report.held
    report = place.run(CORRECTED, runner=runner)
    assert (report.windows, report.held) == (1, {})
    assert place.content() == expected(CORRECTED), "a launch without new input emits what the others have left"
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("part-*")}
    assert place.run(CORRECTED, runner=runner).windows == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("part-*")} == before


def test_the_report_of_a_launch_without_windows_says_what_waits(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.run(CORRECTED, max_windows=1)
    log = WindowLog.open(str(tmp_path / "run"), durable=False)
    decision, plan = log.read_decision(0), log.read_plan(0)
    assert decision is not None
    assert plan is not None
    assert (decision.held["pairs.held"], plan.emits, plan.emitted_at) == (9, False, 0.0)


ORDERS = st.builds(Order, st.integers(0, 4), st.sampled_from(["a", "b", "c", None]), st.integers(0, 6).map(float))


@given(
    st.lists(st.lists(ORDERS, max_size=6), max_size=5),
    st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(1, 3), st.integers(1, 2)), max_size=4),
)
@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
def test_any_launches(
    tmp_path_factory: pytest.TempPathFactory, windows: Windows, launches: list[tuple[int, int | None, int]]
) -> None:
    """Launches see more and more of the input; some end early. What they emit is a prefix, and in the end all of it."""
    place, known = Place(tmp_path_factory.mktemp("emission")), 0
    for more, limit, flight in launches:
        known = min(len(windows), known + more)
        before = place.content()
        report = place.run(windows[:known], max_windows=limit, windows_in_flight=flight)
        assert place.content() == (before if report.held else expected(windows[:known]))
    place.run(windows)
    assert place.content() == expected(windows)


def hour_of(value: WindowValue[str, int]) -> Order:
    return Order(value.start.hour, value.key, float(value.count))


@pytest.mark.parametrize("scope", ["all", "window"])
def test_windows_of_event_time_that_end_with_the_input_are_in_the_result(scope: Any, tmp_path: Path) -> None:
    """They fire in the window behind the last one, which therefore is the emission point."""
    times = [[(1, "a"), (2, "b")], [(3601, "a"), (5, "a")], [(7300, "b")]]
    hits = [[Order(second, customer, 1.0) for second, customer in window] for window in times]

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](hits))
        hours = Tumbling[Any, str, Any](
            3600,
            time=lambda hit: hit.number * 1_000_000,
            by=lambda hit: hit.customer,
            allowed_lateness=0,
            out_of_orderness=3600,
            scope=scope,
        )
        dag.add_operator("hours", hours)
        orders = dag.add_operator("orders", Map(hour_of))
        totals = dag.add_operator("totals", GroupBy("customer", n=agg.count(), hits=agg.sum("worth")))
        files = dag.add_operator("files", JsonLinesWriter(str(tmp_path / "files")))
        dag.add_stream("hits", source.output, hours.input)
        dag.add_stream("by hour", hours.output, orders.input)
        dag.add_stream("as orders", orders.output, totals.input)
        dag.add_stream("totals", totals.output, files.input)

    for limit in (2, None):
        run_dag(populate_dag, run_folder=str(tmp_path / "run"), max_windows=limit)
        if scope == "window" and limit:
            assert not (tmp_path / "files" / "current").exists()
    assert Place(tmp_path).content()["files"] == Counter([("a", 2, 3.0), ("b", 2, 2.0)])
    assert [path.name for path in (tmp_path / "files" / "_snapshots").iterdir()] == [
        "w000003" if scope == "window" else "w000001"
    ]


def test_windows_are_replayed_as_they_were(tmp_path: Path) -> None:
    """In a continuous launch there was no operator that keeps changes, in a bounded one there was."""
    place = Place(tmp_path)
    place.run(CORRECTED[:1])
    continuous(place, CORRECTED[:3], every=0, max_windows=2)
    place.run(CORRECTED)
    report = replay(str(tmp_path / "files"), locator=ApplicationLocator(application=place.populate(CORRECTED)))
    assert report.problems == ()
    assert report.windows >= 1


# ---------------------------------------------------------------------------------------------------------- continuous launches


def prefixes(content: dict[str, Rows], windows: Windows) -> Iterator[int]:
    """Yield the numbers of windows whose input has just this result."""
    yield from (number for number in range(len(windows) + 1) if expected(windows[:number]) == content)


def continuous(place: Place, windows: Windows, **options: Any) -> list[tuple[int, bool, dict[str, Rows]]]:
    """Launch for all windows, and return what each sink had after each window, and whether it was an emission point."""
    log = WindowLog.open(str(place.folder / "run"), durable=False)
    seen = []

    def look(event: Event) -> None:
        if isinstance(event, WindowDone):
            plan = log.read_plan(event.window)
            assert plan is not None
            seen.append((event.window, plan.emits, place.content()))

    place.run(windows, **{"continuous": True, "max_windows": len(windows), "subscribers": [look], **options})
    return seen


UNLIKE: Windows = [[Order(number, "abcd"[number % 4], 1.0 + number)] for number in range(12)]


def test_each_emission_point_shows_one_prefix(tmp_path: Path) -> None:
    place = Place(tmp_path)
    seen = continuous(place, UNLIKE, every=0.4, window=0.1)
    last: dict[str, Rows] = {name: Counter() for name in expected([])}
    for window, emits, content in seen:
        if emits:
            (prefix,) = prefixes(content, UNLIKE)
            assert prefix <= window + 1
        else:
            assert content == last
        last = content
    assert seen[0][1], "the first window is one"
    place.run(UNLIKE)
    assert place.content() == expected(UNLIKE)


def test_without_every_each_window_is_an_emission_point(tmp_path: Path) -> None:
    place = Place(tmp_path)
    seen = continuous(place, CORRECTED, every=0)
    assert [content for _, emits, content in seen if emits] == [expected(CORRECTED[: n + 1]) for n in range(len(CORRECTED))]


def test_what_waits_is_emitted_without_new_input(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.run(CORRECTED[:2], max_windows=2)
    is_done = threading.Event()

    def look(event: Event) -> None:
        if isinstance(event, WindowDone):
            is_done.set()

    options: dict[str, Any] = {"run_folder": str(tmp_path / "run"), "durability": "process", "subscribers": [look]}
    run = launch(place.populate(CORRECTED[:2]), runner="local", once=False, every=3600, **options)
    assert is_done.wait(60)
    run.stop()
    assert run.wait(60).windows == 1
    assert place.content() == expected(CORRECTED[:2])


def test_a_continuous_launch_without_every_refuses_sinks_that_write_results_whole(tmp_path: Path) -> None:
    with pytest.raises(EmissionMissing) as error:
        Place(tmp_path).run(CORRECTED, continuous=True, max_windows=1)
    text = str(error.value)
    assert "sink 'files' (JsonLinesWriter, " in text
    assert "upserted" not in text
    assert "--every 1min" in text


def test_a_changelog_needs_no_every(tmp_path: Path) -> None:
    """It gets what has changed, as tables with `mode="upsert"` do."""

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](CORRECTED))
        newest = dag.add_operator("newest", Newest())
        log = dag.add_operator("log", JsonLinesWriter(str(tmp_path / "log"), mode="changelog", keys="number"))
        dag.add_stream("all", source.output, newest.input)
        dag.add_stream("rows", newest.output, log.input)

    run_dag(populate_dag, run_folder=str(tmp_path / "run"), continuous=True, max_windows=len(CORRECTED))
    rows = Counter[tuple[Any, ...]]()
    for row in read_dataset(str(tmp_path / "log")).to_table().to_pylist():
        rows[row["number"], row["worth"]] += 1 if row["_change_type"] in ("insert", "update_postimage") else -1
    assert +rows == expected(CORRECTED)["pairs"]


def test_every_is_for_continuous_launches(tmp_path: Path) -> None:
    report = Place(tmp_path).run(CORRECTED, every=60)
    assert any("every is for --continuous" in text for text in report.warnings)


# ------------------------------------------------------------------------------------------------ from one launch to another kind


def upserting(place: Place, windows: Windows, **options: Any) -> Any:
    """Run an application whose only sink keeps nothing where each window is an emission point."""

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](windows))
        newest = dag.add_operator("newest", Newest())
        sink = dag.add_operator("orders", place.database.writer("orders", mode="upsert", keys=["number"]))
        dag.set_attributes(newest, partitioner=StatelessPartitioner(2))
        dag.add_stream("all", source.output, newest.input)
        dag.add_stream("rows", newest.output, sink.input)

    return run_dag(populate_dag, run_folder=str(place.folder / "run"), **options)


def standing(windows: Windows) -> list[Any]:
    newest = {order.number: order for window in windows for order in window}
    return sorted(((n, o.customer, o.worth) for n, o in newest.items() if o.customer is not None), key=str)


def test_a_continuous_launch_does_not_lose_what_a_bounded_one_has_left(tmp_path: Path) -> None:
    place = Place(tmp_path)
    upserting(place, CORRECTED, max_windows=1)
    with pytest.raises(ChangesHeld, match="9 of 'orders', window 0"):
        upserting(place, CORRECTED, max_windows=1, continuous=True)
    upserting(place, CORRECTED[:2])
    assert place.database.rows("orders") == standing(CORRECTED[:2])
    upserting(place, CORRECTED, max_windows=2, continuous=True)
    assert place.database.rows("orders") == standing(CORRECTED)


@pytest.mark.parametrize("is_first_continuous", [True, False])
def test_a_window_that_a_launch_of_the_other_kind_has_planned(is_first_continuous: bool, tmp_path: Path) -> None:
    place, both = Place(tmp_path), [{"continuous": True, "max_windows": 2}, {}]
    first, second = both if is_first_continuous else both[::-1]

    def fail(event: Event) -> None:
        if isinstance(event, WindowPlanned) and event.window and event.items:
            raise RuntimeError("killed")

    upserting(place, CORRECTED[:1], **{**first, **({"max_windows": 1} if is_first_continuous else {})})
    with pytest.raises(RuntimeError, match="killed"):
        upserting(place, CORRECTED[:2], **first, subscribers=[fail])
    upserting(place, CORRECTED, **second)
    assert place.database.rows("orders") == standing(CORRECTED)


@pytest.mark.full
def test_records_of_a_class_go_to_the_partitions_of_their_state(tmp_path: Path) -> None:
    """The columns of a class are the key in their order, others in that of their names."""
    place = Place(tmp_path)

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order](CORRECTED))
        newest = dag.add_operator("newest", Newest())
        files = dag.add_operator("files", JsonLinesWriter(str(tmp_path / "files")))
        orders = dag.add_operator("orders", place.database.writer("orders", mode="upsert", keys=["number"]))
        dag.set_attributes(newest, partitioner=StatelessPartitioner(2))
        dag.add_stream("all", source.output, newest.input)
        dag.add_stream("rows", newest.output, files.input, orders.input)

    for limit in (1, 2, None):
        run_dag(populate_dag, run_folder=str(tmp_path / "run"), max_windows=limit, slots=2)
    assert place.database.rows("orders") == standing(CORRECTED)
    assert place.content()["files"] == Counter(standing(CORRECTED))


# ------------------------------------------------------------------------------------------------------------------ the operator


def test_equal_rows_cancel() -> None:
    batch = pa.record_batch({"x": [0.0, -0.0, None, float("nan")], "y": [[1], [1], None, [2]]})
    with OperatorTask(HeldChanges(), in_batches=True) as task:
        task.give("input", batch)
        task.give("input", batch.slice(1), retracts=True)
        emitted = task.end_window()
    assert emitted["output"] == [{"x": 0.0, "y": [1]}]


def test_many_rows_are_emitted_as_they_come_where_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagflow.planning.held_changes.MAX_ROWS", 3)
    batch = pa.record_batch({"x": [1, 2, 3, 4]})
    with OperatorTask(HeldChanges(), in_batches=True) as task:
        task.give("input", batch)
        task.give("input", batch.slice(0, 3), retracts=True)
        assert (len(task.emitted["output"]), len(task.retracted["output"])) == (4, 3)
        task.give("input", batch.slice(3), retracts=True)
    assert [row["x"] for row in task.retracted["output"]] == [1, 2, 3, 4]


def test_what_is_held_cancels() -> None:
    check_operator(
        HeldChanges(), st.builds(Order, st.integers(0, 2), st.sampled_from("ab"), st.just(1.0)), max_examples=examples(20)
    )


@pytest.mark.parametrize("record", [(1, "a", (None, 2.5)), {"a": [1, (2, None)]}, "text", b"bytes"])
def test_records_without_columns_are_held(record: Any, tmp_path: Path) -> None:
    assert held([record], tmp_path) == [record]


@pytest.mark.parametrize("key", [False, datetime.date(2026, 1, 2), ("a", datetime.date(2026, 1, 2), None), float("nan")])
def test_results_of_keys_and_values_of_any_type_are_held(key: Any, tmp_path: Path) -> None:
    records = [KeyValue(key, value) for value in (datetime.time(1, 2), Decimal("1.50"), None)]
    assert [repr(record) for record in held(records, tmp_path, KeyValue[Any, Any])] == [repr(record) for record in records]


def test_a_record_that_cannot_be_held_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotHeld, match=r"a Opaque cannot be kept.*\n.*put a Map before the sink"):
        held([Opaque(1)], tmp_path)


@attrs.define(eq=False)
class Opaque:
    """Equal to itself only."""

    number: int


def held(records: list[Any], folder: Path, tp: Any = Any) -> list[Any]:
    seen = Collector[tp]()

    def record_of(order: Order) -> Any:
        return records[order.number]

    def populate_dag(dag: DAG, conf: object) -> None:
        source = dag.add_operator("source", InWindows[Order]([[Order(n, "a", 1.0)] for n in range(len(records))]))
        newest = dag.add_operator("newest", Newest())
        made = dag.add_operator("made", Map[Order, tp](record_of))
        dag.add_operator("seen", seen)
        dag.add_stream("all", source.output, newest.input)
        dag.add_stream("orders", newest.output, made.input)
        dag.add_stream("made", made.output, seen.input)

    run_dag(populate_dag, run_folder=str(folder / "run"))
    return seen.records


def test_the_plan_says_when_results_are_emitted(tmp_path: Path) -> None:
    def text(**options: Any) -> str:
        return plan_text(plan_view(build(Place(tmp_path).populate([]), run=options).plan()))

    assert re.search(r"upserted.held +HeldChanges +partitioned by \*; emits when the input is exhausted", text())
    assert "emits every 60 s" in text(continuous=True, every=60)
    each = text(continuous=True, every=0)
    assert "upserted.held" not in each
    assert "gets changes with each window" in each
