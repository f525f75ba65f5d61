"""The meaning of expressions: the tables of docs/reference/expressions.md, and random values beside DuckDB."""

from __future__ import annotations

import datetime as dt
import math
import operator
import re
from decimal import Context, Decimal, localcontext
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from operators import Expression, col, lit, when
from operators.transform.errors import ExpressionFailed, ExpressionRefused
from operators.transform.expressions import values_of

PAGE = Path(__file__).parents[3] / "docs/reference/expressions.md"
NAMES = {
    "col": col,
    "lit": lit,
    "when": when,
    "Decimal": Decimal,
    "date": dt.date,
    "datetime": dt.datetime,
    "timedelta": dt.timedelta,
}
ERROR = "error"


def rows_of_the_page() -> list[tuple[str, ...]]:
    """Return the rows of the tables: expression, SQL, value, and that in DuckDB where it differs."""
    cell = r"(?:`((?:\\\||[^|`])+)`)?"
    rows = re.findall(rf"^\| {cell} \| {cell} \| {cell} \| ?{cell} \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [tuple(each.replace("\\|", "|") for each in row) for row in rows]


def value_of(expression: Expression, batch: pa.RecordBatch) -> Any:
    """Return the value of an expression for the only row of a batch, or `ERROR`."""
    try:
        return values_of(batch, expression, "Map").to_pylist()[0]
    except (ExpressionFailed, ExpressionRefused):
        return ERROR


def in_duckdb(sql: str, table: pa.Table | None = None) -> Any:
    """Return the only value of a query, or `ERROR`."""
    with duckdb.connect() as connection:
        if table is not None:
            connection.register("t", table)
        try:
            return connection.sql(f"SELECT {sql} FROM {'(SELECT 0 AS n)' if table is None else 't'}").fetchall()[0][0]
        except duckdb.Error:
            return ERROR


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal and of one type; all NaN are."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and bool(one == other)


def test_the_page_has_tables() -> None:
    assert len(rows_of_the_page()) > 100


@pytest.mark.parametrize(("expression", "sql", "value", "elsewhere"), rows_of_the_page())
def test_a_row_of_the_page(expression: str, sql: str, value: str, elsewhere: str) -> None:
    names = {**NAMES, "error": ERROR}
    expected = eval(value, names)
    assert same(value_of(eval(expression, names), pa.record_batch({"n": [0]})), expected)
    assert same(in_duckdb(sql), eval(elsewhere, names) if elsewhere else expected)


INTEGERS = st.one_of(st.integers(-20, 20), st.sampled_from([2**63 - 1, -(2**63), 2**62, 3037000500]), st.none())


@given(INTEGERS, INTEGERS, st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "==", "<", ">="]))
def test_integers(a: int | None, b: int | None, symbol: str) -> None:
    assume(symbol != "**" or (a is not None and b is not None and abs(a) < 100))  # large powers differ in the last bit
    table = pa.table({"a": pa.array([a], pa.int64()), "b": pa.array([b], pa.int64())})
    expression = eval(f"col('a') {symbol} col('b')")
    mine, theirs = value_of(expression, table.to_batches()[0]), in_duckdb(f"a {symbol.replace('==', '=')} b", table)
    if symbol == "**" and mine is not None:
        assert math.isclose(mine, theirs) or mine == theirs
    else:
        assert same(mine, theirs)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal | None]:
    """Return decimals of a type, few of them large."""
    most = 10**precision - 1
    whole = st.one_of(st.integers(-200, 200), st.sampled_from([most, -most, most // 2]))
    return st.one_of(st.none(), whole.map(lambda each: Decimal(f"{each}e-{scale}")))


TYPES = [(5, 2), (15, 2), (15, 4), (19, 0), (30, 10), (38, 2)]


@given(st.data(), st.sampled_from(TYPES), st.sampled_from(TYPES), st.sampled_from(["+", "-", "*", "==", "<", "/"]))
def test_decimals(data: st.DataObject, one: tuple[int, int], other: tuple[int, int], symbol: str) -> None:
    a, b = data.draw(decimals(*one)), data.draw(decimals(*other))
    batch = pa.record_batch({"a": pa.array([a], pa.decimal128(*one)), "b": pa.array([b], pa.decimal128(*other))})
    value = value_of(eval(f"col('a') {symbol} col('b')"), batch)
    if a is None or b is None:
        assert value is None
    elif symbol == "/":
        assert b == 0 or math.isclose(value, float(a) / float(b))
    elif symbol in ("==", "<"):
        assert value is (a == b if symbol == "==" else a < b)
    else:
        with localcontext(Context(prec=100)):
            exact = a + b if symbol == "+" else a - b if symbol == "-" else a * b
            scale = one[1] + other[1] if symbol == "*" else max(one[1], other[1])
            fits = abs(exact.scaleb(scale)) < 10**38
        if value == ERROR:
            assert not fits or (symbol == "*" and one[0] == other[0] == 38)
        else:
            assert value == exact


@given(decimals(15, 2), decimals(15, 2), st.sampled_from(["+", "-", "*", "/", "%"]))
def test_decimals_beside_duckdb(a: Decimal | None, b: Decimal | None, symbol: str) -> None:
    kind = pa.decimal128(15, 2)
    table = pa.table({"a": pa.array([a], kind), "b": pa.array([b], kind)})
    value, expected = value_of(eval(f"col('a') {symbol} col('b')"), table.to_batches()[0]), in_duckdb(f"a {symbol} b", table)
    if symbol == "/" and isinstance(value, float):
        assert math.isclose(value, expected) or same(value, expected)
    elif expected == ERROR and symbol == "*":  # DuckDB stops at 18 digits there
        assert abs(value) >= 10**14
    else:
        assert value == expected


TEXT = st.text(alphabet="ab%_\\\n.*é😀ß A", max_size=6)


@given(TEXT, TEXT)
@example("\\", "%\\")
@example("a\\", "a\\%")
def test_like(text: str, pattern: str) -> None:
    table = pa.table({"s": [text]})
    quoted = pattern.replace("'", "''")
    assert value_of(col("s").str.like(pattern), table.to_batches()[0]) is in_duckdb(f"s LIKE '{quoted}'", table)


@given(TEXT, TEXT.filter(bool), TEXT, st.integers(-7, 7), st.none() | st.integers(-7, 7))
def test_strings(text: str, old: str, new: str, start: int, stop: int | None) -> None:
    batch = pa.record_batch({"s": [text]})
    expected = {
        "replace": (col("s").str.replace(old, new), text.replace(old, new)),
        "slice": (col("s").str.slice(start, stop), text[start:stop]),
        "length": (col("s").str.length(), len(text)),
        "strip": (col("s").str.strip(), text.strip()),
        "contains": (col("s").str.contains(old), old in text),
        "starts_with": (col("s").str.starts_with(old), text.startswith(old)),
        "ends_with": (col("s").str.ends_with(old), text.endswith(old)),
        "joined": (col("s") + old, text + old),
    }
    assert {name: value_of(each, batch) for name, (each, _) in expected.items()} == {
        name: value for name, (_, value) in expected.items()
    }


@given(st.datetimes(dt.datetime.fromisoformat("1700-01-01"), dt.datetime.fromisoformat("2200-01-01")))
def test_parts_of_times(at: dt.datetime) -> None:
    batch = pa.record_batch({"t": pa.array([at], pa.timestamp("us"))})
    time = col("t").dt
    parts = [time.year(), time.month(), time.day(), time.hour(), time.minute(), time.second(), time.weekday(), time.date()]
    expected = [at.year, at.month, at.day, at.hour, at.minute, at.second, at.weekday(), at.date()]
    assert [value_of(each, batch) for each in parts] == expected
    assert value_of(time.truncate("week"), batch) == dt.datetime.combine(at.date() - dt.timedelta(at.weekday()), dt.time())


@given(st.lists(st.one_of(st.none(), st.booleans()), min_size=2, max_size=2))
def test_three_valued_logic(values: list[bool | None]) -> None:
    table = pa.table({name: pa.array([value], pa.bool_()) for name, value in zip("ab", values, strict=True)})
    a, b = col("a"), col("b")
    cases = {"a AND b": a & b, "a OR b": a | b, "NOT a": ~a, "a = b": a == b, "a IN (true, NULL)": a.isin([True, None])}
    for sql, expression in cases.items():
        assert value_of(expression, table.to_batches()[0]) is in_duckdb(sql, table)


@given(st.lists(st.one_of(st.none(), st.integers(-2, 2)), min_size=1, max_size=20))
def test_cases_only_compute_what_they_give(values: list[int | None]) -> None:
    table = pa.table({"n": pa.array(values, pa.int64()), "s": ["x" if n == 1 else str(n) for n in values]})
    n, s, large = col("n"), col("s"), 9223372036854775807
    expression = (
        when(n == 0).then(-1).when(n == 1).then(large).when(6 // n > 2).then(s.cast("int64")).otherwise(n * 4 + (large - 7))
    )
    sql = f"""CASE WHEN n = 0 THEN -1 WHEN n = 1 THEN {large} WHEN 6 // n > 2 THEN s::BIGINT ELSE n * 4 + {large - 7} END"""
    with duckdb.connect() as connection:
        connection.register("t", table)
        expected = [row[0] for row in connection.sql(f"SELECT {sql} FROM t").fetchall()]
    assert values_of(table.to_batches()[0], expression, "Map").to_pylist() == expected


@pytest.mark.parametrize("number", [24, Decimal("0.5"), Decimal("0.555"), 10**15, -(10**14)])
def test_decimals_are_compared_with_numbers_that_their_type_may_not_hold(number: Any) -> None:
    values = [Decimal("24.00"), Decimal("0.50"), Decimal("0.56"), Decimal("-0.01"), None]
    rows = pa.record_batch({"n": pa.array(values, pa.decimal128(9, 2))})
    for compare in (operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt):
        expected = [None if value is None else compare(value, number) for value in values]
        assert values_of(rows, compare(col("n"), number), "Map").to_pylist() == expected
        flipped = [None if value is None else compare(number, value) for value in values]
        assert values_of(rows, compare(lit(number), col("n")), "Map").to_pylist() == flipped
