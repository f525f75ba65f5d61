from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest

from dagflow.errors.run import OperatorFailed
from dagflow.testing import Window, run_operator
from operators import Tumbling
from operators.aggregate.tumbling import microseconds, times_of

NOON = datetime.datetime(2026, 1, 1, 12, tzinfo=datetime.UTC)
EAST = datetime.timezone(datetime.timedelta(hours=2))


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

    window: Tumbling[Any, str, int] = Tumbling(10, time="at", by=("k",))
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
    ],
)
def test_properties_that_do_not_fit(properties: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Tumbling(60, time="at", **properties).check()
