"""Records and their rows in batches have the same content; equal records have, others have another one."""

from __future__ import annotations

import datetime
import decimal
import enum
import math
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import ReaderRecord
from dagflow.model.types.forms import to_batch
from operators.transform.content import column_contents, contents

EAST = datetime.timezone(datetime.timedelta(hours=2))


@attrs.frozen
class Place:
    name: str
    height: float
    tags: list[str]
    more: dict[str, int | None]
    seen: datetime.datetime | None = None


TIMES = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1))  # noqa: DTZ001  # as in columns
PLACES = st.builds(
    Place,
    st.text(max_size=4),
    st.floats(allow_nan=False) | st.integers(-9, 9),
    st.lists(st.text(max_size=2), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(-(2**62), 2**62) | st.none(), max_size=3),
    TIMES | st.none(),
)
KINDS: list[tuple[Any, Any]] = [
    (str, st.text()),
    (bytes, st.binary()),
    (int, st.integers(-(2**63), 2**63 - 1)),
    (bool, st.booleans()),
    (float, st.floats() | st.integers(-9, 9)),
    (datetime.datetime, TIMES),
    (datetime.date, st.dates(datetime.date(1900, 1, 1))),
    (datetime.timedelta, st.timedeltas(datetime.timedelta(-999), datetime.timedelta(999))),
    (list[int], st.lists(st.integers(-9, 9))),
    (dict[str, float], st.dictionaries(st.text(max_size=2), st.floats(allow_nan=False))),
    (Place, PLACES),
    (ReaderRecord[str], st.builds(ReaderRecord, st.integers(0, 9), st.integers(0, 99), st.text())),
    (ReaderRecord[Place], st.builds(ReaderRecord, st.integers(0, 9), st.integers(0, 99), PLACES)),
]


@pytest.mark.parametrize(("kind", "strategy"), KINDS, ids=[str(kind) for kind, _ in KINDS])
def test_records_and_rows_have_the_same_contents(kind: Any, strategy: st.SearchStrategy[Any]) -> None:
    @given(st.lists(strategy, min_size=1, max_size=5))
    def hold(records: list[Any]) -> None:
        assert list(zip(*column_contents(to_batch(records, kind)), strict=True)) == list(map(contents, records))

    hold()


@given(st.lists(st.text(max_size=4), min_size=1), st.integers(0, 5), st.integers(0, 5))
def test_a_part_of_a_batch(texts: list[str], skipped: int, taken: int) -> None:
    batch = to_batch(texts, str).slice(skipped, taken)
    assert list(zip(*column_contents(batch), strict=True)) == list(map(contents, texts[skipped : skipped + taken]))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3) | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(PLAIN, min_size=1, max_size=2), st.lists(PLAIN, min_size=1, max_size=2))
def test_content_is_equal_where_records_are_and_only_there(one: Any, other: Any) -> None:
    assert (contents(one) == contents(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (True, 1),
        (0.0, -0.0),
        (decimal.Decimal("1.50"), 1.5),
        (math.nan, float("nan")),
        ((1, 2), [1, 2]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({1, 2}, {2, 1}),
        (datetime.datetime(2026, 1, 1, 10, tzinfo=datetime.UTC), datetime.datetime(2026, 1, 1, 12, tzinfo=EAST)),
        (datetime.time(10, tzinfo=datetime.UTC), datetime.time(12, tzinfo=EAST)),
        ("a", np.str_("a")),
        (1, np.int64(1)),
        (ReaderRecord(1, 5, "a"), ReaderRecord(2, 5, "a")),
    ],
)
def test_what_is_the_same(one: Any, other: Any) -> None:
    assert contents([one]) == contents([other])
    assert contents(one) == contents(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["a,b"], ["a", "b"]),
        (["'a'"], ["a"]),
        ([None], ["None"]),
        ([b"a"], ["a"]),
        (None, "None"),
        (b"a", "a"),
        (b"1", 1),
        (1, "1"),
        (b"\xff1", 1),
        ([1], "[1]"),
        (datetime.date(2026, 1, 1), "2026-01-01"),
        (datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),  # noqa: DTZ001  # the point
        (decimal.Decimal("12345678901234567890.12"), decimal.Decimal("12345678901234567890.13")),
        (decimal.Decimal("0.1"), 0.1),
        ([[1], 2], [1, [2]]),
        (math.inf, -math.inf),
        (2**53, 2**53 + 1),
        (ReaderRecord(1, 5, "a"), ReaderRecord(1, 6, "a")),
    ],
)
def test_what_is_not_the_same(one: Any, other: Any) -> None:
    assert contents(one) != contents(other)


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.duration("ns"), pa.list_(pa.duration("ns"))])
def test_nanoseconds_of_a_column_count(kind: pa.DataType) -> None:
    values: list[Any] = [[1], [2], [2]] if pa.types.is_list(kind) else [1, 2, 2]
    (column,) = column_contents(pa.record_batch({"value": pa.array(values, kind)}))
    first, *others = column
    assert first not in others
    assert len(set(others)) == 1


class Colour(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):  # noqa: UP042  # as people have written it
    ONE = "one"


def test_an_enumeration_is_its_value_and_subclasses_are_their_bases() -> None:
    class Name(str):
        __slots__ = ()

    assert contents([Colour.RED]) == contents(["red"])
    assert contents(Colour.RED) == contents("red")
    assert contents(Word.ONE) == contents("one")
    assert contents([Word.ONE]) == contents(["one"])
    assert contents([Name("a")]) == contents(["a"])
    assert contents(Name("a")) == contents("a")


@pytest.mark.parametrize("text", ["", "é", "\n", "\0", "\U0001f600"])
def test_text_is_its_bytes(text: str) -> None:
    assert contents(text) == (text.encode(),)


def test_text_that_is_no_unicode_has_contents_too() -> None:
    """Names of files may hold bytes that are not UTF-8."""
    assert contents("\udc80") == (b"\xed\xb2\x80",)


def test_what_is_no_plain_data_is_told() -> None:
    with pytest.raises(TypeError, match=r"object is not plain data: name what counts with key=…"):
        contents(object())
