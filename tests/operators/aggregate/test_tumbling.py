from __future__ import annotations

import datetime
import decimal
import enum
from fractions import Fraction
from typing import Any

import attrs
import pyarrow as pa
import pytest

from dagflow.errors import ColumnNotThere, OperatorFailed
from dagflow.testing import OperatorTask, Window, run_operator
from operators import Tumbling
from operators.aggregate.errors import KeyColumnRefused, ValueNotKept
from operators.aggregate.event_time.times import FIRST, LAST, microseconds, times_of

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
EAST = datetime.timezone(datetime.timedelta(hours=2))


class Colour(enum.Enum):
    RED = 1


@attrs.frozen
class Named:
    name: str


@pytest.mark.parametrize(
    "given",
    [
        [NOON, NOON - datetime.timedelta(days=30_000)],
        [NOON.replace(tzinfo=None, microsecond=5)],
        [datetime.date(1969, 12, 31), datetime.date(2026, 1, 1)],
        [5, -5],
    ],
)
def test_times_are_the_same_in_records_and_columns(given: list[Any]) -> None:
    assert times_of(pa.array(given)).tolist() == [microseconds(each) for each in given]


def test_times_of_other_zones_and_units() -> None:
    assert microseconds(NOON.astimezone(EAST)) == microseconds(NOON)
    for unit in ("s", "ms", "us", "ns"):
        assert times_of(pa.array([NOON], pa.timestamp(unit, "Europe/Oslo"))).tolist() == [microseconds(NOON)]


@pytest.mark.parametrize("time", [None, "noon", 1.5])
def test_what_is_no_time_is_a_bad_record(time: Any) -> None:
    window: Tumbling[Any, Any, Any] = Tumbling(60, time=lambda record: record)
    with pytest.raises(OperatorFailed, match="event time"):
        run_operator(window, {"input": [time]})
    found = run_operator(Tumbling(60, time=lambda record: record, on_error="skip"), {"input": [5, time, 7]})
    assert ([value.count for value in found["output"]], found.skipped) == ([2], 1)


def test_rows_without_a_time_are_bad_rows() -> None:
    batch = pa.RecordBatch.from_pydict({"at": pa.array([1, None, 3], pa.int64()), "n": [1, 2, 3]})
    window: Tumbling[Any, Any, int] = Tumbling(60, time="at", aggregate="max", of="n", on_error="skip")
    found = run_operator(window, {"input": [batch]})
    assert ([(value.value, value.count) for value in found["output"]], found.skipped) == ([(3, 2)], 1)


@pytest.mark.parametrize("key", ["a", "", "# 1 '", 7, -7, None, 1.5, True, ("a", 1), datetime.date(2026, 1, 1), b"x"])
def test_keys_come_back(key: Any) -> None:
    found = run_operator(Tumbling(60, time=lambda _: 0, by=lambda record: record), {"input": [key, key]})
    assert [(value.key, value.value) for value in found["output"]] == [(key, 2)]


def test_late_rows_of_a_batch_stay_rows() -> None:
    def batch(*seconds: int) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict({"at": [second * 1_000_000 for second in seconds], "k": ["a"] * len(seconds)})

    window: Tumbling[Any, str, int] = Tumbling(10, time="at", by=("k",), allowed_lateness=0)
    found = run_operator(window, {"input": [Window([batch(1, 30)]), Window([batch(2, 35, 3)])]})
    assert found["late"] == [{"at": 2_000_000, "k": "a"}, {"at": 3_000_000, "k": "a"}]
    assert [(value.key, value.start.second, value.count) for value in found["output"]] == [
        (("a",), 0, 1),
        (("a",), 30, 2),
    ]


def test_a_window_without_values_has_none() -> None:
    window: Tumbling[Any, Any, int] = Tumbling(
        datetime.timedelta(minutes=1), time=lambda _: 0, aggregate="sum", of=lambda record: record
    )
    (value,) = run_operator(window, {"input": [None]})["output"]
    assert (value.value, value.count) == (None, 0)
    assert (value.start, value.stop - value.start) == (datetime.datetime(1970, 1, 1), datetime.timedelta(minutes=1))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"aggregate": "sum"}, "sum needs `of`"),
        ({"of": "n"}, "leave `of` out"),
        ({"allowed_lateness": -1}, "allowed_lateness"),
        ({"out_of_orderness": -1}, "out_of_orderness"),
        ({"out_of_orderness": 5}, "give allowed_lateness, too"),
        ({"out_of_orderness": None}, "give allowed_lateness, too"),
        ({"fire_at_end": False}, "give allowed_lateness, too"),
    ],
)
def test_properties_that_do_not_fit(properties: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Tumbling(60, time="at", **properties).check()


@pytest.mark.parametrize("name", ["size", "allowed_lateness", "out_of_orderness"])
@pytest.mark.parametrize(
    ("value", "error", "told"),
    [
        (True, TypeError, "must be seconds, a datetime.timedelta or text such as '5min'; got True"),
        (float("inf"), ValueError, "must be finite and not negative; got inf s"),
        (float("nan"), ValueError, "must be finite and not negative; got nan s"),
        (datetime.timedelta(seconds=-5), ValueError, "must be finite and not negative; got -5.0 s"),
    ],
)
def test_what_is_no_duration_is_told_at_once(name: str, value: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=f"{name} {told}"):
        Tumbling(**{"size": 60, "time": "at", name: value})


@pytest.mark.parametrize(
    ("size", "told"), [(0, "a microsecond or more; got 0.0 s"), (1e-7, "a microsecond or more"), (1e12, "no window of that size")]
)
def test_sizes_of_which_there_are_no_windows(size: float, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Tumbling(size, time="at")


@pytest.mark.parametrize(
    "time",
    [
        datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC),
        datetime.datetime.min.replace(tzinfo=EAST),
        datetime.datetime.max.replace(tzinfo=datetime.timezone(-datetime.timedelta(hours=2))),
        1_767_268_800_000_000_000,
        -(10**30),
    ],
)
def test_a_window_that_no_datetime_has_makes_a_bad_record(time: Any) -> None:
    """A watermark that is decided cannot be taken back: such a record must never be in it."""
    counted = Tumbling[Any, Any, Any](60, time=lambda record: record, on_error="skip", allowed_lateness=0)
    found = run_operator(counted, {"input": [Window([5, time]), Window([7])]})
    assert ([(value.count, value.firing) for value in found["output"]], found.skipped) == ([(2, 0)], 1)
    with pytest.raises(OperatorFailed, match="years 1 to 9999"):
        run_operator(Tumbling(60, time=lambda record: record), {"input": [time]})


@pytest.mark.parametrize(
    "times",
    [
        pa.array([5, 1_767_268_800_000_000_000, 7], pa.int64()),
        pa.array([5, 1 << 63, 7], pa.uint64()),
        pa.array([5, 1 << 60, 7], pa.timestamp("s")),
        pa.array([5, -1 << 60, 7], pa.timestamp("us")),
    ],
)
def test_nor_does_a_row_of_one(times: Any) -> None:
    batch = pa.RecordBatch.from_arrays([times], names=["at"])
    found = run_operator(Tumbling(60, time="at", on_error="skip"), {"input": [batch]})
    assert ([value.count for value in found["output"]], found.skipped) == ([2], 1)


@pytest.mark.parametrize("size", [60, 7, 0.000003, 86_400 * 400, (LAST // 1_000_000)])
def test_the_first_and_the_last_window(size: float) -> None:
    """Each time that has a window whose ends are datetimes is taken in; the next one to it is not."""
    window: Tumbling[Any, Any, Any] = Tumbling(size, time=lambda record: record, on_error="skip")
    step = round(size * 1_000_000)
    begin, end = -(-FIRST // step) * step, LAST // step * step
    assert run_operator(window, {"input": [begin, end - 1, begin - 1, end]}).skipped == 2
    start, *_, stop = run_operator(window, {"input": [begin, end - 1]})["output"] * 2
    assert (microseconds(start.start), microseconds(stop.stop)) == (begin, end)


@pytest.mark.parametrize("key", [Colour.RED, frozenset("a"), Named("a"), (1, Named("a")), (1, Colour.RED)])
def test_keys_that_would_not_come_back_are_refused(key: Any) -> None:
    window: Tumbling[Any, Any, Any] = Tumbling(60, time=lambda _: 0, by=lambda record: record, on_error="skip")
    with pytest.raises((OperatorFailed, ValueNotKept), match="cannot be kept"):
        run_operator(window, {"input": [key]})


def test_what_is_late_is_counted() -> None:
    """Also where nothing is connected to the port."""
    given = [[100_000_000], [1, 2, 200_000_000]]
    found = run_operator(Tumbling(60, time=lambda record: record, allowed_lateness=0), {"input": list(map(Window, given))})
    assert found.counters["late"] == 2
    batches = [pa.RecordBatch.from_pydict({"at": times}) for times in given]
    found = run_operator(Tumbling(60, time="at", allowed_lateness=0), {"input": [Window([batch]) for batch in batches]})
    assert found.counters["late"] == 2
    found = run_operator(Tumbling(60, time="at"), {"input": [Window([batch]) for batch in batches]})
    assert "late" not in found.counters
    assert [each.value for each in found["output"]] == [1, 2, 1], "none is late by default"


@pytest.mark.parametrize(("of", "time", "by"), [("vv", "at", "h"), ("v", "att", "h"), ("v", "at", "hh")])
def test_a_column_that_is_not_there_is_told_with_those_that_are(of: str, time: str, by: str) -> None:
    batch = pa.RecordBatch.from_pydict({"at": [1], "v": [1], "h": ["a"]})
    with pytest.raises(ColumnNotThere, match=r"columns  at \(int64\), v \(int64\), h \(string\)\n  help: did you mean"):
        run_operator(Tumbling(60, time=time, aggregate="sum", of=of, by=by), {"input": [batch]})


def test_a_column_that_is_no_key_has_the_name_that_it_was_given() -> None:
    batch = pa.RecordBatch.from_pydict({"at": [1], "tags": [["a"]]})
    with pytest.raises((OperatorFailed, KeyColumnRefused), match="'tags'"):
        run_operator(Tumbling(60, time="at", by="tags"), {"input": [batch]})


def at(*seconds: int) -> Window:
    return Window([second * 1_000_000 for second in seconds])


def counts_of(**properties: Any) -> Any:
    return Tumbling[Any, Any, int](60, time=lambda record: record, **properties)


def test_a_window_that_fires_again_takes_its_result_back() -> None:
    found = run_operator(counts_of(allowed_lateness=600), {"input": [at(5), at(70), at(71), at(8), at(200)]})
    assert [(r.start.minute, r.value, r.firing) for r in found["output"]] == [(0, 1, 0), (0, 2, 1), (1, 2, 0), (3, 1, 0)]
    assert [(r.start.minute, r.value, r.firing) for r in found.retracted["output"]] == [(0, 1, 0)]


def test_only_groups_are_kept_without_a_watermark() -> None:
    kept = [name for name in ("totals", "windows", "waited") if Tumbling(60, time="at").keeps_state(name)]
    assert kept == ["totals"]
    assert all(Tumbling(60, time="at", emit="final").keeps_state(name) for name in ("totals", "windows", "waited"))


@pytest.mark.parametrize("in_columns", [True, False])
@pytest.mark.parametrize(
    ("aggregate", "values", "gone", "results"),
    [
        ("count", [5, 6, 7], [6], [3, 2]),
        ("sum", [2**62, 2**62, 7], [2**62], [2**63 + 7, 2**62 + 7]),
        ("max", [5, 9, 7], [9], [9, 7]),
        ("min", ["b", "a"], ["a"], ["a", "b"]),
    ],
)
def test_records_are_taken_back(aggregate: Any, values: list[Any], gone: list[Any], results: list[Any], in_columns: bool) -> None:
    """By default no record is late, so one that is taken back is subtracted, and results that no longer hold are, too."""
    of = {} if aggregate == "count" else {"of": "v"}
    time: Any = "at" if in_columns else lambda row: row["at"]
    counted = Tumbling[Any, Any, Any](60, time=time, by="k", aggregate=aggregate, **of)
    states: Any = None
    found = []
    for number, (some, retracts) in enumerate([(values, False), (gone, True)]):
        batch = pa.RecordBatch.from_pydict({"at": [5] * len(some), "k": ["a"] * len(some), "v": some})
        with OperatorTask(counted, window=number, states=states) as task:
            task.give("input", batch if in_columns else batch.to_pylist(), retracts=retracts)
            task.end_window()
            states = task.states()
            found.append([(each.value, each.firing) for port in (task.retracted, task.emitted) for each in port["output"]])
    assert found == [[(results[0], 0)], [(results[0], 0), (results[1], 0)]]


def test_final_results_come_once() -> None:
    windows = {"input": [at(5), at(70), at(8), at(200), at(300)]}
    found = run_operator(counts_of(allowed_lateness=60, emit="final"), windows)
    assert [(r.start.minute, r.value, r.firing) for r in found["output"]] == [(0, 2, 0), (1, 1, 0), (3, 1, 0)], "not the open one"
    assert "output" not in found.retracted


@pytest.mark.parametrize(
    ("properties", "changes"),
    [
        ({}, True),
        ({"allowed_lateness": 0}, True),
        ({"emit": "final"}, False),
        ({"scope": "window"}, False),
        ({"allowed_lateness": 0, "fire_at_end": False}, False),
    ],
)
def test_results_change_where_a_window_may_fire_again(properties: dict[str, Any], changes: bool) -> None:
    assert counts_of(**properties).emits_changes is changes
    assert Tumbling.late.only_adds, "late records are never taken back"


@pytest.mark.parametrize("values", [[2**62, 2**62, 2**62], [0.1, 0.2, 0.3, 1e300, -1e300], [decimal.Decimal("0.1")] * 3])
def test_sums_are_exact_over_windows(values: list[Any]) -> None:
    sums = Tumbling[Any, Any, Any](60, time=lambda _: 5, aggregate="sum", of=lambda record: record)
    found = run_operator(sums, {"input": [Window([value]) for value in values]})["output"][-1]
    exact = sum(map(Fraction, values))
    assert found.value == (float(exact) if isinstance(values[0], float) else exact)
