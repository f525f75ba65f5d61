from __future__ import annotations

import datetime
import math
import operator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow.testing import scan_table
from operators import ParquetFormat, ScanReader
from operators.formats.errors import ValueMisfit
from tests.tiers import examples

ORDER = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
DAY = datetime.date(2024, 1, 1)
MIDNIGHT, NOON, NEXT = (datetime.datetime.fromisoformat(f"2024-01-{text}") for text in ("01", "01 12:00", "02"))
UTC = datetime.UTC


def found(folder: Path, column: pa.Array, where: Any, rows_of_group: int = 2) -> list[Any]:
    path = folder / "a.parquet"
    pq.write_table(pa.table({"v": column}), path, row_group_size=rows_of_group)
    read: list[Any] = scan_table(ScanReader(ParquetFormat(where=where)), path)["v"].to_pylist()
    return read


NUMBERS: list[tuple[Any, list[Any]]] = [
    (pa.int8(), [-128, -1, 0, 3, 4, 127]),
    (pa.uint8(), [0, 3, 4, 255]),
    (pa.int64(), [-(1 << 63), 0, 3, (1 << 53), (1 << 53) + 1, (1 << 63) - 1]),
    (pa.uint64(), [0, 3, (1 << 64) - 1]),
    (pa.float64(), [-math.inf, -1.5, 0.0, -0.0, 3.0, 3.5, float(1 << 53), math.inf]),
    (pa.float32(), [-1.5, 0.0, 3.5, 2.0**24, 2.0**127, math.inf]),
    (pa.decimal128(5, 2), [Decimal("-999.99"), Decimal("0.00"), Decimal("3.49"), Decimal("3.50"), Decimal("999.99")]),
]
VALUES: Any = st.sampled_from(
    [
        *[3.5, 3, 4, -1, 0, -0.0, 2**70, -(2**70), 10**400, math.inf, -math.inf, math.nan, (1 << 53) + 1, (1 << 24) + 1],
        *[Decimal("3.495"), Decimal("3.5"), Decimal("-1e30"), 255, 256, 127.5, -128.5, (1 << 63) - 1, (1 << 64) - 1, 1e300],
    ]
)
many = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=examples(150))


@many
@given(column=st.sampled_from(NUMBERS), value=VALUES, name=st.sampled_from(sorted(ORDER)), rows=st.sampled_from([1, 100]))
def test_numbers_are_compared_as_they_are_whatever_a_column_can_hold(
    tmp_path: Path, column: Any, value: Any, name: str, rows: int
) -> None:
    kind, own = column
    is_number = value == value  # decimals refuse the comparison else
    expected = [each for each in own if (ORDER[name](each, value) if is_number else name == "!=")]
    assert found(tmp_path, pa.array([*own, None], kind), [("v", name, value)], rows) == expected


@many
@given(column=st.sampled_from(NUMBERS), values=st.lists(VALUES, max_size=4), rows=st.sampled_from([1, 100]))
def test_among_numbers(tmp_path: Path, column: Any, values: Any, rows: int) -> None:
    kind, own = column
    data = pa.array([*own, None], kind)
    among = [each for each in own if any(each == value for value in values)]
    assert found(tmp_path, data, [("v", "in", values)], rows) == among
    assert found(tmp_path, data, [("v", "not in", values)], rows) == [e for e in own if all(e != value for value in values)]


def test_reals_stand_for_the_nearest_short_real_and_the_decimal_that_they_are_written_as(tmp_path: Path) -> None:
    assert len(found(tmp_path, pa.array([0.1, 0.2], pa.float32()), [("v", "=", 0.1)])) == 1
    assert found(tmp_path, pa.array([Decimal("3.10")]), [("v", "=", 3.1)]) == [Decimal("3.10")]


def test_numbers_of_numpy(tmp_path: Path) -> None:
    small = pa.array([1, 2], pa.int8())
    assert found(tmp_path, small, [("v", "<", np.int64(300))]) == [1, 2]
    assert found(tmp_path, small, [("v", "<=", np.float32(1.5))]) == [1]


@pytest.mark.parametrize("name", sorted(ORDER))
def test_a_column_that_has_no_values_has_none_of_these(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, pa.nulls(2), [("v", name, 5)]) == []


DATES = [DAY, datetime.date(2024, 1, 2)]
TIMES = [datetime.time(12), datetime.time(12, 0, 0, 1000)]
STAMPS = [MIDNIGHT, NOON, NEXT]
TOKYO = datetime.datetime(2023, 12, 31, 15, tzinfo=UTC)  # midnight there, the new year's


@pytest.mark.parametrize("rows", [1, 100])
@pytest.mark.parametrize(
    ("own", "kind", "where", "expected"),
    [
        (DATES, pa.date32(), [("v", ">=", NOON)], DATES[1:]),
        (DATES, pa.date32(), [("v", "<=", NOON)], DATES[:1]),
        (DATES, pa.date32(), [("v", "=", MIDNIGHT)], DATES[:1]),
        (DATES, pa.date32(), [("v", "in", [NOON, "2024-01-02"])], DATES[1:]),
        (DATES, pa.date64(), [("v", ">", "2024-01-01 12:00")], DATES[1:]),
        (DATES, pa.date64(), [("v", "<=", DAY)], DATES[:1]),
        (STAMPS, pa.timestamp("ms"), [("v", ">", NOON + datetime.timedelta(microseconds=1))], STAMPS[2:]),
        (STAMPS, pa.timestamp("ms"), [("v", ">=", NOON + datetime.timedelta(microseconds=1))], STAMPS[2:]),
        (STAMPS, pa.timestamp("ms"), [("v", "=", NOON + datetime.timedelta(microseconds=1))], []),
        (STAMPS, pa.timestamp("ms"), [("v", "<", NOON + datetime.timedelta(microseconds=1))], STAMPS[:2]),
        (STAMPS, pa.timestamp("ms"), [("v", ">=", DATES[1])], STAMPS[2:]),
        (STAMPS, pa.timestamp("ns"), [("v", "<", "2500-01-01")], STAMPS),
        (STAMPS, pa.timestamp("us"), [("v", "<", "2024-01-01 12:00:00.000000001")], STAMPS[:2]),
        ([TOKYO], pa.timestamp("us", "UTC"), [("v", ">=", "2024-01-01")], []),
        ([TOKYO], pa.timestamp("us", "UTC"), [("v", ">=", "2023-12-31T15:00Z"), ("v", "<", DAY)], [TOKYO]),
        ([TOKYO], pa.timestamp("us", "UTC"), [("v", "=", TOKYO)], [TOKYO]),
        ([TOKYO], pa.timestamp("us", "Asia/Tokyo"), [("v", "=", "2024-01-01")], [TOKYO]),
        ([TOKYO], pa.timestamp("us", "Asia/Tokyo"), [("v", "=", MIDNIGHT)], [TOKYO]),
        (TIMES, pa.time64("us"), [("v", "<=", "12:00")], TIMES[:1]),
        (TIMES, pa.time64("us"), [("v", ">", datetime.time(12))], TIMES[1:]),
        (TIMES, pa.time32("ms"), [("v", "<=", "12:00:00.0005")], TIMES[:1]),
        ([datetime.timedelta(seconds=1)], pa.duration("ms"), [("v", "<", datetime.timedelta(seconds=1, microseconds=1))], None),
        ([True, False], pa.bool_(), [("v", "=", "true")], [True]),
        ([None], pa.null(), [("v", "is null")], [None]),
    ],
)
def test_dates_and_times(tmp_path: Path, own: Any, kind: Any, where: Any, expected: Any, rows: int) -> None:
    read = found(tmp_path, pa.array([*own, None] if own != [None] else own, kind), where, rows)
    assert read == (own if expected is None else expected)


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (pa.timestamp("us"), "2024-01-01T00:00Z", "'2024-01-01T00:00Z' has a zone, the column has none"),
        (pa.timestamp("us"), "soon", "'soon' is not a date or time"),
        (pa.date32(), 5, "5 is not a date or time"),
        (pa.time64("us"), "25:00", "'25:00' is not a time of day"),
        (pa.time64("us"), 5, "5 is not a time of day"),
        (pa.int64(), "five", "'five' is not a number"),
        (pa.string(), 5, "5 is not text"),
        (pa.binary(3), b"ab", ""),
    ],
)
def test_what_is_not_compared(tmp_path: Path, kind: Any, value: Any, told: str) -> None:
    with pytest.raises(ValueMisfit) as caught:
        found(tmp_path, pa.array([None], kind), [("v", "=", value)])
    assert told in str(caught.value)
