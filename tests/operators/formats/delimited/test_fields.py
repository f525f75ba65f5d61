from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.formats.delimited.dialect import Dialect
from operators.formats.delimited.fields import FieldSplitter, column_names
from tests.tiers import examples


def texts(record: str, dialect: Dialect) -> list[str]:
    return [field.text.decode() for field in FieldSplitter(dialect).split(record.encode())]


@settings(max_examples=examples(500))
@given(st.text('ab,"', max_size=20))
def test_fields_are_those_of_the_csv_module(record: str) -> None:
    assert texts(record, Dialect()) == next(csv.reader(io.StringIO(record, newline="")), [""])


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ('first"field"here,another "field', ['first"field"here', 'another "field']),
        ('end quote",another"', ['end quote"', 'another"']),
        ('many"""",more""', ['many""""', 'more""']),
        ('"newline\nhere","and here""\n"', ["newline\nhere", 'and here"\n']),
        ("a,", ["a", ""]),
        ("", [""]),
    ],
)
def test_quotes(record: str, expected: list[str]) -> None:
    assert texts(record, Dialect()) == expected


def test_escapes_make_the_next_character_text() -> None:
    dialect = Dialect(quote="@", escape="~")
    assert texts("@foo~@bar@,~,,@foo~~bar@\r\n", dialect) == ["foo@bar", ",", "foo~bar"]


def test_trimming_leaves_what_is_quoted() -> None:
    fields = FieldSplitter(Dialect(trim=True)).split(b' a b , " c " ,"d" e ,\t\n')
    assert [field.text for field in fields] == [b"a b", b" c ", b"d e", b""]
    assert [field.raw for field in fields] == [b"a b", b'" c "', b'"d" e', b""]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("a,b,c", ["a", "b", "c"]),
        (" a , b ,  c ", ["a", "b", "c"]),
        ("   ", ["column_1"]),
        (",", ["column_1", "column_2"]),
        (" , ", ["column_1", "column_2"]),
        ("a,   ", ["a", "column_2"]),
        ("+", ["column_1"]),
        ("+,-", ["column_1", "column_2"]),
        ("9a", ["col_9a"]),
        ("+9a", ["col_9a"]),
        ("a+b", ["a_b"]),
        ("EXPR$0", ["EXPR_0"]),
        ("(_-^-_)", ["col_" + "_" * 6]),
        ("a_123_", ["a_123_"]),
        ("Αθήνα,Москва", ["Αθήνα", "Москва"]),
        ("a,a", ["a", "a_2"]),
        ("a,A", ["a", "A_2"]),
        ("a,A,A_2", ["a", "A_3", "A_2"]),
        ("col,col,col_2,col_2_2", ["col", "col_3", "col_2", "col_2_2"]),
        ("$,,9b,c,c,c_2", ["column_1", "column_2", "col_9b", "c", "c_3", "c_2"]),
    ],
)
def test_names_of_columns(header: str, names: list[str]) -> None:
    assert column_names(header.split(",")) == names


@given(st.lists(st.text("aA_2+ ", max_size=4), min_size=1, max_size=8), st.booleans())
def test_names_differ_from_each_other(fields: list[str], clean: bool) -> None:
    names = column_names(fields, clean=clean)
    assert len({name.casefold() for name in names}) == len(fields)


def test_a_name_that_is_too_long_is_refused() -> None:
    assert column_names(["é" * 512]) == ["é" * 512]
    with pytest.raises(ValueError, match="more than 1024 bytes"):
        column_names(["é" * 513])


def test_delimiters_of_several_characters_are_taken_from_the_left() -> None:
    assert texts('a||"b||c"|||d', Dialect(delimiter="||")) == ["a", "b||c", "|d"]
