"""Time windows as keys of rows, against `time_bucket` of DuckDB."""

from __future__ import annotations

import datetime as dt
from typing import Any

import attrs
import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow import DAG, StreamColumns
from dagflow.errors import ColumnNotThere, DagError
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, OperatorTask, Window, check_operator, run_dag, run_operator
from operators import Distinct, FlatMap, GroupBy, Map, Tumbling, agg, window
from operators.aggregate.errors import WindowColumnRefused
from operators.aggregate.event_time.time_window import TimeWindow
from tests.conformance.windows import InWindows
from tests.tiers import examples

NOON = dt.datetime(2026, 1, 1, 12)  # noqa: DTZ001
MICROSECOND = dt.timedelta(microseconds=1)
TYPES = {
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}
TIMES = st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)).map(lambda time: time.replace(microsecond=0))  # noqa: DTZ001


@attrs.frozen
class Hit:
    at: dt.datetime
    k: str


def at(*minutes: float) -> pa.RecordBatch:
    return pa.record_batch({"at": [NOON + dt.timedelta(minutes=each) for each in minutes]})


def counts(*windows: pa.RecordBatch, **options: Any) -> Any:
    found = run_operator(GroupBy(window("at", **options), n=agg.count()), {"input": [Window([each]) for each in windows]})
    return [((row["window_start"] - NOON) / dt.timedelta(minutes=1), row["n"]) for row in found["output"]]


@settings(max_examples=examples(60))
@given(
    times=st.lists(st.one_of(TIMES, st.none()), min_size=1, max_size=6),
    kind=st.sampled_from(sorted(TYPES)),
    size=st.sampled_from(["1s", "7s", "10m", "1h", "36h", "7d", "400d"]),
    offset=st.integers(-1_000_000, 1_000_000),
)
def test_windows_are_those_of_sql(times: list[Any], kind: str, size: str, offset: int) -> None:
    zone = dt.UTC if kind == "TIMESTAMPTZ" else None
    rows = pa.table({"at": pa.array([each and each.replace(tzinfo=zone) for each in times], TYPES[kind])})
    grouped = GroupBy(window("at", size, offset=offset), n=agg.count(), combiner=False)
    found = run_operator(grouped, {"input": rows.to_batches()})["output"]
    database: Any = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    seconds = f"to_seconds({grouped.window.size})"  # type: ignore[union-attr]
    of_sql = "TIMESTAMPTZ" if zone else "TIMESTAMP"
    start = f"time_bucket({seconds}, \"at\"::{of_sql}, {of_sql} '1970-01-01 00:00:00' + to_seconds({offset}))"
    query = f"SELECT {start} AS s, s + {seconds} AS e, count(*) AS n FROM rows GROUP BY ALL ORDER BY s NULLS LAST"
    expected = database.sql(query).fetchall()
    assert [(row["window_start"], row["window_end"], row["n"]) for row in found] == [tuple(row) for row in expected]


def test_a_row_is_in_all_windows_that_overlap_at_its_time() -> None:
    assert counts(at(1, 6), size="10m", slide="5m") == [(-5, 1), (0, 2), (5, 1)]
    assert counts(at(0), size="10m", slide="4m") == [(-8, 1), (-4, 1), (0, 1)], "12:00 is a multiple of 4 minutes"
    for minute in (2, 3):
        assert counts(at(minute), size="10m", slide="4m") == [(-4, 1), (0, 1)], "not the one from 11:52 to 12:02"


def test_no_row_is_late_and_results_follow() -> None:
    grouped = GroupBy(window("at", "10m"), n=agg.count())
    found = run_operator(grouped, {"input": [Window([at(1, 500)]), Window([at(2)])]})
    assert [row["n"] for row in found["output"]] == [1, 1, 2]
    assert [(row["window_start"], row["n"]) for row in found.retracted["output"]] == [(NOON, 1)]


def test_rows_are_taken_back_from_their_windows() -> None:
    with OperatorTask(GroupBy(window("at", "10m", slide="5m"), n=agg.count())) as task:
        task.give("input", at(1, 6, 17))
        task.give("input", at(6, 17), retracts=True)
        task.end_window()
        assert [(row["window_start"], row["n"]) for row in task.emitted["output"]] == [
            (NOON - dt.timedelta(minutes=5), 1),
            (NOON, 1),
        ]


def test_columns_have_the_order_of_the_keys_and_the_type_of_the_times() -> None:
    rows = pa.record_batch({"at": pa.array([NOON], pa.timestamp("ms", "Europe/Oslo")), "k": [1]})
    (row,) = run_operator(GroupBy("k", window("at", "10m"), n=agg.count()), {"input": [rows]})["output"]
    assert list(row) == ["k", "window_start", "window_end", "n"]
    assert str(row["window_start"].tzinfo) == str(row["window_end"].tzinfo) == "Europe/Oslo"
    assert row["window_start"] == NOON.replace(tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("kind", "size", "result"),
    [
        ("timestamp[s]", "10m", "timestamp[s]"),
        ("timestamp[s]", "1500ms", "timestamp[us]"),
        ("timestamp[ms, tz=UTC]", "1us", "timestamp[us, tz=UTC]"),
        ("timestamp[ns]", "10m", "timestamp[ns]"),
        ("date32[day]", "2d", "date32[day]"),
        ("date32[day]", "2h", None),
        ("string", "2h", None),
        (None, "2h", None),
    ],
)
def test_the_type_is_known_with_the_dag(kind: str | None, size: str, result: str | None) -> None:
    assert window("at", size).result_type(kind) == result


def test_dates_are_in_windows_of_whole_days() -> None:
    days = pa.record_batch({"day": [dt.date(1969, 12, 31), dt.date(1970, 1, 4), dt.date(1970, 1, 5)]})
    grouped = GroupBy(window("day", "7d", offset="4d"), n=agg.count())  # Mondays
    found = run_operator(grouped, {"input": [days]})["output"]
    assert [tuple(row.values()) for row in found] == [
        (dt.date(1969, 12, 29), dt.date(1970, 1, 5), 2),
        (dt.date(1970, 1, 5), dt.date(1970, 1, 12), 1),
    ]


@pytest.mark.parametrize(
    ("times", "size", "told"),
    [
        (pa.array(["noon"]), "10m", "time windows are of timestamps or dates"),
        (pa.array([5]), "10m", "time windows are of timestamps or dates"),
        (pa.array([dt.date(2026, 1, 1)]), "10m", "windows of dates have whole days"),
    ],
)
def test_columns_without_such_times_are_refused(times: Any, size: str, told: str) -> None:
    with pytest.raises(WindowColumnRefused, match=told):
        run_operator(GroupBy(window("at", size), n=agg.count()), {"input": [pa.record_batch({"at": times})]})


@pytest.mark.parametrize(
    "times",
    [
        pa.array([NOON, dt.datetime(9999, 12, 31, 23, 59)], pa.timestamp("us")),  # noqa: DTZ001
        pa.array([NOON, dt.datetime(1, 1, 1)], pa.timestamp("us")),  # noqa: DTZ001
        pa.array([5, 1 << 60], pa.timestamp("s")),
        pa.array([5, -(2**63)], pa.timestamp("ns")),
        pa.array([5, 2**63 - 1], pa.timestamp("ns")),
        pa.array([5, 2**31 - 1], pa.int32()).cast(pa.date32()),
    ],
)
def test_a_time_in_no_window_within_the_years_is_a_bad_row(times: Any) -> None:
    sized = window("at", "2d", slide="1d")
    rows = pa.RecordBatch.from_arrays([times], names=["at"])
    found = run_operator(GroupBy(sized, n=agg.count(), on_error="skip"), {"input": [rows]})
    assert ([row["n"] for row in found["output"]], found.skipped) == ([1, 1], 1)


def test_a_time_that_is_missing_is_a_window_of_its_own() -> None:
    rows = pa.record_batch({"at": pa.array([None, NOON, None], pa.timestamp("us"))})
    found = run_operator(GroupBy(window("at", "10m", slide="5m"), n=agg.count()), {"input": [rows]})["output"]
    assert [(row["window_start"], row["window_end"], row["n"]) for row in found][-1] == (None, None, 2)
    assert len(found) == 3


def test_windows_of_windows() -> None:
    minutes = run_operator(GroupBy(window("at", "1m"), n=agg.count()), {"input": [at(1, 1, 2, 61)]})["output"]
    rows = pa.RecordBatch.from_pylist(minutes)
    hours = run_operator(GroupBy(window("window_start", "1h"), n=agg.sum("n")), {"input": [rows]})["output"]
    assert [row["n"] for row in hours] == [3, 1]


def test_distinct_rows_of_windows() -> None:
    rows = pa.record_batch({"at": at(1, 2, 12).column(0), "user": ["a", "a", "a"]})
    found = run_operator(Distinct(window("at", "10m"), "user"), {"input": [rows]})["output"]
    assert [(row["window_start"].minute, row["user"]) for row in found] == [(0, "a"), (10, "a")]


def test_an_upsert_finds_rows_by_the_start_or_the_end() -> None:
    columns = GroupBy("k", window("at", "10m"), n=agg.count()).result_columns("output", lambda _: StreamColumns())
    assert columns is not None
    assert columns.identifies(["k", "window_start"])
    assert columns.identifies(["window_end", "k"])
    assert not columns.identifies(["k"])


def test_the_laws_of_operators() -> None:
    hits = st.builds(Hit, TIMES, st.sampled_from("ab"))
    check_operator(GroupBy("k", window("at", "10m", slide="4m"), n=agg.count()), hits, port="input", max_examples=examples(30))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (lambda: GroupBy(window("at", "10m"), window("at", "1h"), n=agg.count()), "one time window"),
        (lambda: window("at", "10m", slide="11m"), "rows between windows would be lost"),
        (lambda: window("at", 0), "a microsecond or more"),
        (lambda: window("at", "10m", slide=0), "a microsecond or more"),
        (lambda: window("at", "ten"), "expected a duration"),
        (lambda: window(("at",), "10m"), "column"),
        (lambda: GroupBy(window("at", "10m"), "window_end", n=agg.count()).check(), "'window_end' would be there twice"),
        (lambda: GroupBy(window("at", "10m"), n=agg.max("window_start")).check(), "which the time window makes"),
        (lambda: GroupBy("at", window=window("at", "10m")).check(), "lacks 'window_start'"),
    ],
)
def test_what_cannot_be_right_is_refused(made: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        made()


def test_a_column_that_is_not_there() -> None:
    grouped = GroupBy(window("att", "10m"), n=agg.count())
    with pytest.raises(ColumnNotThere, match=r"(?s)`window`.*did you mean"):
        run_operator(grouped, {"input": [at(1)]})

    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.add_operator("hits", InWindows[Hit]([[]])).output.to(grouped)

    with pytest.raises(DagError, match="att"):
        run_dag(populate_dag)


def test_its_text_is_what_one_would_write() -> None:
    assert str(window("at", 600, slide="300s", offset=-60)) == "window('at', '10min', slide='5min', offset=-60)"
    assert window("at", "10m") == TimeWindow("at", dt.timedelta(minutes=10))


def hit_of(seconds: int) -> Hit:
    return Hit(NOON + dt.timedelta(seconds=seconds), "a")


def hits_of(seconds: int) -> list[Hit]:
    times = (NOON, dt.datetime(1, 1, 1), NOON + dt.timedelta(seconds=seconds))  # noqa: DTZ001
    return [Hit(time, "a") for time in times]


def test_a_bad_row_of_a_class_is_skipped_behind_the_operator_that_emits_it() -> None:
    """It is not taken for a record of another type, since the port takes rows of any columns."""
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("seconds", InWindows[int]([[1, 2]]))
        hits = dag.add_operator("hits", FlatMap(hits_of), partitioner=StatelessPartitioner(2))
        dag.add_stream("seconds", source.output, hits.input)
        hits.output.to(GroupBy(window("at", "2d", slide="1d"), n=agg.count(), on_error="skip"), name="days").to(seen, name="seen")

    report = run_dag(populate_dag)
    assert [row["n"] for row in seen.records] == [4, 4]
    assert sum(operator.errors for operator in report.operators.values()) == 2


def test_records_of_a_generic_class_are_rows() -> None:
    seen = Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        source = dag.add_operator("seconds", InWindows[int]([[1, 2]]))
        counted = Tumbling[Hit, str, int](60, time=lambda hit: hit.at, by=lambda hit: hit.k)
        hits = dag.add_operator("hits", Map(hit_of), partitioner=StatelessPartitioner(2))
        dag.add_stream("seconds", source.output, hits.input)
        minutes = hits.output.to(counted, name="minutes")
        minutes.to(GroupBy(window("start", "1h"), n=agg.sum("value")), name="hours").to(seen, name="seen")

    run_dag(populate_dag)
    assert [row["n"] for row in seen.records] == [2]
