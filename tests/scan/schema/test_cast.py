from __future__ import annotations

import datetime
from datetime import time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.scan import Column, to_type
from dagflow.scan.schema.cast import converted

BAD = object()


@pytest.mark.parametrize(
    ("values", "kind", "found"),
    [
        (["1", " 2 ", "x", "", "  ", None, "1.0", "-3"], "int64", [1, 2, BAD, None, None, None, 1, -3]),
        (["1", "300"], "int8", [1, BAD]),
        (["+5", "0x1F", "++5", "1_000", "\u0663"], "uint8", [5, 31, BAD, BAD, BAD]),
        (["+5", "1_000", "\u0663", "1e2"], "decimal128(5, 0)", [5, BAD, BAD, 100]),
        (["0x7F", "0xFF", "0xFFFF"], "int8", [127, BAD, BAD]),
        (["0xFF", "0xFFFFFFFFFFFFFFFF", "-1"], "int64", [255, BAD, -1]),
        (["7", "256", "0.5", "1e10"], "decimal128(38, 38)", [BAD, BAD, Decimal("0.5"), BAD]),
        (["20230102", "3.5e38"], "decimal128(9, 2)", [BAD, BAD]),
        (["0." + "9" * 39, "3.5e38"], "decimal128(38, 0)", [Decimal(1), BAD]),
        ([Decimal(7), Decimal(256), Decimal(0)], "decimal128(38, 38)", [BAD, BAD, Decimal(0)]),
        (['{"a": 0.12345678901234567890}'], "struct<a: decimal128(38, 20)>", [{"a": Decimal("0.12345678901234567890")}]),
        (["[1.50, 2]", "[1e400]"], "list<string>", [["1.5", "2"], BAD]),
        ([" x ", " ", ""], "binary", [b" x ", b" ", b""]),
        (["1.5", "1e3", "abc", "inf"], "float64", [1.5, 1000.0, BAD, float("inf")]),
        (["true", "T", "yes", "Y", "on", "1"], "bool", [True] * 6),
        (["FALSE", "f", "no", "n", "off", "0", "maybe"], "bool", [False] * 6 + [BAD]),
        (["2024-02-29", "2023-02-29"], "date32", [datetime.date(2024, 2, 29), BAD]),
        (["2024-01-01T10:00:00"], "timestamp[us]", [datetime.datetime(2024, 1, 1, 10)]),  # noqa: DTZ001
        (
            ["12:30:00", "9:00", "12:30:00.5", "12", "25:00:00", "13:05"],
            "time32[s]",
            [time(12, 30), BAD, BAD, BAD, BAD, time(13, 5)],
        ),
        (["12:30:00.000001", "12:30:00"], "time64[us]", [time(12, 30, 0, 1), time(12, 30)]),
        (["-56.789", "1", "99999.9", "x"], "decimal128(5, 2)", [Decimal("-56.79"), Decimal("1.00"), BAD, BAD]),
        (
            ["9" * 39, "9" * 45, "9" * 5_000, "9" * 38, "+" + "9" * 38],
            "decimal128(38, 0)",
            [BAD, BAD, BAD, *[Decimal("9" * 38)] * 2],
        ),
        (["1." + "0" * 60, "1e38", "9" * 30 + ".125"], "decimal128(38, 2)", [Decimal("1.00"), BAD, Decimal("9" * 30 + ".13")]),
        (["[1e400]", "[0.5]", "[" * 100_000, "[1" + "0" * 400 + "]"], "list<float64>", [BAD, [0.5], BAD, BAD]),
        (['{"a": 1, "a": 2}', '{"a": 1}'], "struct<a: int64>", [BAD, {"a": 1}]),
        (["[1, 2]", "{}", "[1, null]"], "list<int64>", [[1, 2], BAD, [1, None]]),
        (['{"a": 1}', '{"b": 1}'], "struct<a: int64>", [{"a": 1}, BAD]),
        (["1e400", "inf", "-Infinity"], "float64", [BAD, float("inf"), float("-inf")]),
        ([1e300, float("inf"), 0.5], "float32", [BAD, float("inf"), 0.5]),
        ([datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 2, 13)], "date32", [datetime.date(2024, 1, 2), BAD]),  # noqa: DTZ001
        ([datetime.datetime(2024, 1, 2)], "time64[us]", [BAD]),  # noqa: DTZ001
        ([1, 2], "string", ["1", "2"]),
        ([1.5, 2.0], "int64", [BAD, 2]),
        ([1, 2**40], "int32", [1, BAD]),
        ([1, 0, 2], "bool", [True, False, BAD]),
        ([True, False], "int64", [BAD, BAD]),
        ([True], "string", ["true"]),
        ([b"x", b"\xff"], "string", ["x", BAD]),
        ([[b"x"], [b"\xff"]], "list<string>", [["x"], BAD]),
        ([{"a": 1}, {"a": None}], "struct<a: float64, b: string>", [{"a": 1.0, "b": None}, {"a": None, "b": None}]),
        ([{"a": 1, "c": 2}], "struct<a: int64>", [BAD]),
        ([[1], None, [2, 3], []], "list<float64>", [[1.0], None, [2.0, 3.0], []]),
        ([[1], [2]], "list<string>", [["1"], ["2"]]),
        ([{"a": [1.5]}], "string", ['{"a": [1.5]}']),
        ([5], "timestamp[us]", [BAD]),
        ([None, None], "date32", [None, None]),
    ],
)
def test_what_values_become(values: list[Any], kind: str, found: list[Any]) -> None:
    made, bad = converted(pa.array(values), to_type(kind))
    assert made.type == to_type(kind)
    flags = [False] * len(values) if bad is None else bad.to_pylist()
    assert [BAD if flag else value for value, flag in zip(made.to_pylist(), flags, strict=True)] == found
    assert all(value is None for value, flag in zip(made.to_pylist(), flags, strict=True) if flag)


def test_timestamps_with_a_zone_become_others_by_its_clock() -> None:
    tokyo = pa.timestamp("us", "Asia/Tokyo")
    values = pa.array([datetime.datetime(2024, 1, 1, 15, tzinfo=datetime.UTC)], tokyo)
    local, _ = converted(values, pa.timestamp("us"))
    assert local.to_pylist() == [datetime.datetime(2024, 1, 2)]  # noqa: DTZ001
    assert converted(local, tokyo)[0].equals(values)
    assert converted(values, pa.date32())[0].to_pylist() == [datetime.date(2024, 1, 2)]


def test_properties_of_a_column() -> None:
    text = pa.array(["29.02.2024", "", "2024-01-01"])
    made, bad = converted(text, pa.date32(), Column("date32", format="%d.%m.%Y"))
    assert made.to_pylist() == [datetime.date(2024, 2, 29), None, None]
    assert bad is not None
    assert bad.to_pylist() == [False, False, True]
    made, bad = converted(pa.array(["7", " "]), pa.int64(), Column("int64", blank="zero"))
    assert (made.to_pylist(), bad) == ([7, 0], None)


texts = st.one_of(
    st.integers(-(2**70), 2**70).map(str), st.floats().map(repr), st.times().map(str), st.text(max_size=4), st.none()
)


@given(st.lists(texts, max_size=60), st.sampled_from(["int64", "float64", "bool", "decimal128(20, 3)", "date32", "time32[ms]"]))
def test_a_value_becomes_what_it_becomes_alone(values: list[str | None], kind: str) -> None:
    """Bad neighbours, and the way that a column is halved to find them, do not matter."""
    target = to_type(kind)
    made, bad = converted(pa.array(values, pa.string()), target)
    flags = [False] * len(values) if bad is None else bad.to_pylist()
    for value, found, flag in zip(values, made, flags, strict=True):
        alone, is_bad = converted(pa.array([value], pa.string()), target)
        assert str(found) == str(alone[0])  # NaN equals nothing
        assert flag == (is_bad is not None)


numbers = st.one_of(
    st.lists(st.none() | st.integers(-(2**62), 2**62), max_size=40), st.lists(st.none() | st.floats(-1e6, 1e6), max_size=40)
)


@given(numbers, st.sampled_from(["int8", "int64", "float64", "bool", "decimal128(7, 2)", "string", "timestamp[s]"]))
def test_so_does_a_number(values: list[Any], kind: str) -> None:
    target = to_type(kind)
    column = pa.array(values)
    made, bad = converted(column, target)
    flags = [False] * len(values) if bad is None else bad.to_pylist()
    for row, (found, flag) in enumerate(zip(made, flags, strict=True)):
        alone, is_bad = converted(column.slice(row, 1), target)
        assert str(found) == str(alone[0])
        assert flag == (is_bad is not None)
