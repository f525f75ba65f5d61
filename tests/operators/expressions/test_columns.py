"""Expressions as they are written: their text, and what cannot be one."""

from __future__ import annotations

import datetime
import pickle
import subprocess
import sys
from decimal import Decimal
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators import Expression, Filter, Split, col, lit, when

NAMES = {"col": col, "lit": lit, "when": when, "datetime": datetime, "Decimal": Decimal}
LITERALS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(max_size=3),
    st.decimals(allow_nan=False, allow_infinity=False, places=2, min_value=-100, max_value=100),
    st.dates(),
    st.timedeltas(),
)


def combined(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return expressions of one more operation."""
    either = st.one_of(parts, LITERALS)
    names = [name for name in dir(Expression) if name.startswith("__") and name.strip("_") in SYMBOLS]
    return st.one_of(
        st.builds(lambda one, name, other: getattr(one, name)(other), parts, st.sampled_from(names), either),
        st.builds(lambda one: -one, parts),
        st.builds(lambda one: ~one, parts),
        st.builds(lambda one: one.str.lower().dt.truncate("day").abs(), parts),
        st.builds(lambda one, other: one.between(other, 1).fill_null(other), parts, either),
        st.builds(lambda one, values: one.isin(values).is_null(), parts, st.lists(LITERALS, max_size=3)),
        st.builds(lambda one, digits: one.cast("int64").round(digits), parts, st.integers(-3, 3)),
        st.builds(lambda a, b, c, d: when(a).then(b).when(c).then(d).otherwise(b), either, either, either, either),
    )


SYMBOLS = {"add", "radd", "sub", "rsub", "mul", "truediv", "floordiv", "mod", "pow", "rpow", "eq", "ne", "lt", "ge", "and", "ror"}
EXPRESSIONS = st.recursive(st.one_of(st.builds(col, st.text(max_size=3)), st.builds(lit, LITERALS)), combined, max_leaves=8)


@given(EXPRESSIONS)
def test_the_text_of_an_expression_makes_the_same_one(expression: Expression) -> None:
    assert str(eval(str(expression), dict(NAMES))) == str(expression)
    assert str(pickle.loads(pickle.dumps(expression))) == str(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (col("price") * (1 - col("discount")), "col('price') * (1 - col('discount'))"),
        ((col("a") > 1) & ~(col("b") == "x"), "(col('a') > 1) & (~(col('b') == 'x'))"),
        (1 + col("a") > 1, "(1 + col('a')) > 1"),
        ((col("a") + col("b")).abs(), "(col('a') + col('b')).abs()"),
        (lit(1) + 2, "lit(1) + 2"),
        ((-1) ** col("a"), "lit(-1) ** col('a')"),
        (lit("a").str.upper(), "lit('a').str.upper()"),
        (col("a").isin([1, None]), "col('a').isin([1, None])"),
        (col("a") * float("nan"), "col('a') * float('nan')"),
        (col("s").str.slice(1), "col('s').str.slice(1)"),
        (when(col("a") > 1).then("x").otherwise(None), "when(col('a') > 1).then('x').otherwise(None)"),
    ],
)
def test_the_text_is_what_one_would_write(expression: Expression, text: str) -> None:
    assert str(expression) == repr(expression) == text


@pytest.mark.parametrize(
    "asks",
    [
        lambda a: bool(a),
        lambda a: a and a,
        lambda a: not a,
        lambda a: 1 < a < 3,
        lambda a: 1 in [2, a],
        lambda a: 1 if a == 2 else 3,
    ],
)
def test_an_expression_has_no_truth_value(asks: Any) -> None:
    with pytest.raises(TypeError, match="write & for and"):
        asks(col("a"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: col("a") + {1}, r"\{1\} \(set\) cannot be part of an expression\n  help: write col\('name'\)"),
        (lambda: col(1), "col takes the name of a column; got 1"),  # type: ignore[arg-type]  # that is the mistake
        (lambda: col("a").isin("abc"), r"write .isin\(\['abc'\]\)"),
        (lambda: col("a").cast(int), "cast takes the name of a type"),  # type: ignore[arg-type]  # that is the mistake
        (lambda: col("a").round(0.5), "round takes an integer"),  # type: ignore[arg-type]  # that is the mistake
        (lambda: col("a").str.like(col("b")), r"like takes a string; got col\('b'\)"),  # type: ignore[arg-type]  # that is the mistake
        (lambda: col("a").str.replace("", "x"), "which cannot be empty"),
        (lambda: col("a").dt.truncate("days"), "truncate takes one of year, quarter"),
        (lambda: lit(Decimal("NaN")), "is not a decimal number"),
        (lambda: lit(10**38), "more than 38 digits"),
        (lambda: col("a") + when(col("b")).then(1), r"when\(col\('b'\)\).then\(1\): .otherwise\(…\) is missing"),
        (lambda: col("a") + when(col("b")), r"when\(col\('b'\)\): .then\(…\) is missing"),  # type: ignore[operator]
        (lambda: Filter(when(col("b")).then(1)), "predicate must be a function of the record, or an expression"),  # type: ignore[arg-type]  # that is the mistake
    ],
)
def test_what_cannot_be_part_of_an_expression(wrong: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        wrong()


def test_the_columns_of_an_expression() -> None:
    assert when(col("b") > 1).then(col("a")).otherwise(col("b") + 1).columns() == ("b", "a")


def test_operators_with_expressions_pickle() -> None:
    copy = pickle.loads(cloudpickle.dumps(Split({"few": col("n") < 3})))
    assert str(copy.predicates["few"]) == "col('n') < 3"


def test_writing_an_expression_loads_no_pyarrow() -> None:
    code = "import sys; from operators import col, lit, when; when(col('a') > 1).then(lit(2)); print('pyarrow' in sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "False"
