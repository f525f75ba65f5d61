from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.scan import NumberText
from dagflow.scan.schema.cast import converted
from tests.tiers import examples

INFERRED = NumberText(is_inferred=True)
GERMAN = NumberText(",", ".")
NUMBERS = [pa.int64(), pa.float64(), pa.decimal128(20, 2)]


def read(text: str, kind: pa.DataType, numbers: NumberText) -> Any:
    """The value of a text; "bad" for a text that has none."""
    values, bad = converted(pa.array([text], pa.string()), kind, numbers=numbers)
    return "bad" if bad is not None else values[0].as_py()


@pytest.mark.parametrize(
    ("text", "integer", "number"),
    [
        ("7", 7, 7.0),
        ("0", 0, 0.0),
        ("-7", -7, -7.0),
        ("1.0", 1, 1.0),
        ("1.50", "bad", 1.5),
        ("1e5", "bad", 1e5),
        ("6.02E+23", "bad", 6.02e23),
        (".5", "bad", 0.5),
        ("007", "bad", "bad"),
        ("00501", "bad", "bad"),
        ("00.5", "bad", "bad"),
        ("-07", "bad", "bad"),
        ("+7", "bad", "bad"),
        ("+1.5", "bad", "bad"),
        ("0x1F", "bad", "bad"),
        ("-0", "bad", -0.0),
        ("-0.0", "bad", -0.0),
        ("12345678901234567", 12345678901234567, "bad"),
        ("1234567890123456789012", "bad", "bad"),
        ("9007199254740992", 9007199254740992, 9007199254740992.0),
        ("0.12345678901234567890", "bad", 0.12345678901234568),
    ],
)
def test_a_type_that_was_inferred_takes_no_text_that_would_be_another_when_written_again(
    text: str, integer: Any, number: Any
) -> None:
    assert read(text, pa.int64(), INFERRED) == integer
    found = read(text, pa.float64(), INFERRED)
    assert found == number
    assert found == "bad" or math.copysign(1, found) == math.copysign(1, number)


@pytest.mark.parametrize("text", ["007", "+7", "7.", "7.00", " 7 "])
def test_a_type_that_was_given_takes_any_text_of_a_number(text: str) -> None:
    assert read(text, pa.int64(), NumberText()) == 7


@pytest.mark.parametrize("text", ["7.5", "0.7e1", "", "7.0.0", ".0"])
def test_other_texts_are_not_integers(text: str) -> None:
    assert read(text, pa.int64(), NumberText()) in ("bad", None)


@pytest.mark.parametrize(("text", "inferred"), [("true", True), ("TRUE", True), ("1", "bad"), ("yes", "bad"), ("t", "bad")])
def test_only_true_and_false_are_booleans_where_they_were_inferred(text: str, inferred: Any) -> None:
    assert read(text, pa.bool_(), INFERRED) == inferred
    assert read(text, pa.bool_(), NumberText()) is True


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.234,5", 1234.5),
        ("1234,5", 1234.5),
        ("1.234.567", 1234567.0),
        ("-0,25", -0.25),
        ("+1,5e3", 1500.0),
        ("1.5", "bad"),
        ("12.34,5", "bad"),
        ("1234.567", "bad"),
        ("1,234.5", "bad"),
        (".123", "bad"),
        ("1,2,3", "bad"),
        ("nan", math.nan),
    ],
)
def test_decimal_commas_and_separators_of_thousands(text: str, value: Any) -> None:
    assert repr(read(text, pa.float64(), GERMAN)) == repr(value)


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        (NumberText(",", "."), None),
        (NumberText(".", "'"), None),
        (NumberText(".", " "), None),
        (NumberText(",", ","), "decimal and thousands are both ','"),
        (NumberText("", ""), "decimal is ''"),
        (NumberText(".", "'x"), 'thousands is "\'x"'),
        (NumberText("e"), "decimal is 'e'"),
        (NumberText(".", "-"), "thousands is '-'"),
    ],
)
def test_problems(numbers: NumberText, problem: str | None) -> None:
    found = numbers.problem()
    assert found == problem if problem is None else (found or "").startswith(problem)


@settings(max_examples=examples(200))
@given(st.one_of(st.integers(-(10**12), 10**12), st.floats(allow_nan=False, allow_infinity=False)), st.sampled_from("., '_"))
def test_what_is_written_with_separators_is_read(value: float, thousands: str) -> None:
    decimal = "," if thousands == "." else "."
    text = f"{value:_}" if isinstance(value, int) else repr(value)
    spelled = text.replace(".", decimal) if isinstance(value, float) else text.replace("_", thousands)
    numbers = NumberText(decimal, thousands, is_inferred=True)
    assert read(spelled, pa.float64(), numbers) == value


@settings(max_examples=examples(300))
@given(st.text("01.-+eEx,9 ", max_size=9), st.sampled_from(NUMBERS))
def test_what_an_inferred_type_takes_a_given_one_takes_as_the_same_value(text: str, kind: pa.DataType) -> None:
    inferred, given_type = read(text, kind, INFERRED), read(text, kind, NumberText())
    assert inferred == "bad" or repr(inferred) == repr(given_type)
    stripped = text.strip()
    if inferred not in ("bad", None) and not pa.types.is_floating(kind):
        assert not stripped.startswith(("+", "-0")) or "." in stripped
        assert not stripped.lstrip("-").startswith("0") or stripped.lstrip("-")[1:2] in ("", ".", "e", "E")
