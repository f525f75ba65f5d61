"""The state of aggregates over windows: keys and values that come back from plain data."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import uuid
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dagflow.model.types.keys import key_hash
from operators.aggregate.errors import ValueNotKept
from operators.aggregate.kept_keys import as_plain, entry_of, from_plain, key_of


class Colour(enum.Enum):
    RED = "red"


class Fruit(enum.Enum):
    RED = "cherry"


class Place(enum.StrEnum):
    HERE = "here"


@attrs.frozen
class Point:
    x: int
    y: float
    label: str = attrs.field(default="", eq=False)


ZONES = st.sampled_from([datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))])
PLAIN_KEYS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=3)
    | st.sampled_from(["\0null", "\0", "1", Place.HERE, "here", Colour.RED, Fruit.RED, "RED", "red"])
    | st.binary(max_size=2)
    | st.decimals(allow_nan=False)
    | st.sampled_from([decimal.Decimal(text) for text in ("0.1", "0.10", "0.5", "1E+3", "-0")])
    | st.datetimes()
    | st.datetimes(timezones=ZONES)
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.uuids()
    | st.builds(Point, st.integers(0, 2), st.sampled_from([0.0, 1.0, 0.5]), st.text(max_size=1))
)
KEYS = PLAIN_KEYS | st.tuples(PLAIN_KEYS) | st.tuples(PLAIN_KEYS, PLAIN_KEYS)


@given(KEYS, KEYS)
@example(Place.HERE, "here")
@example(True, 1.0)
@example("\0null", None)
def test_equal_keys_are_one_entry_and_others_are_not(one: Any, other: Any) -> None:
    assert (entry_of(one) == entry_of(other)) == (one == other)


@given(KEYS)
def test_an_entry_goes_where_its_records_go(key: Any) -> None:
    entry = entry_of(key)
    assert type(entry) in (str, int)
    assert key_hash(key_of(json.loads(json.dumps(entry)))) == key_hash(key)


def test_what_is_not_a_number_is_one_key() -> None:
    for key, same in ((float("nan"), -float("nan")), ((float("nan"), 1), (float("nan"), 1.0))):
        assert entry_of(key) == entry_of(same)
        assert key_hash(key_of(entry_of(key))) == key_hash(key)


def test_keys_that_cannot_be_written_down() -> None:
    with pytest.raises(TypeError, match="a total cannot be kept by a key of type frozenset"):
        entry_of(frozenset("a"))


@pytest.mark.parametrize(
    ("kind", "same"),
    [
        (pa.timestamp("ns"), datetime.datetime(2001, 9, 9, 1, 46, 40, tzinfo=datetime.UTC).replace(tzinfo=None)),
        (pa.duration("ns"), datetime.timedelta(seconds=10**9)),
    ],
)
def test_times_below_a_microsecond_are_no_keys_of_totals(kind: pa.DataType, same: Any) -> None:
    whole, beyond = pa.array([10**18, 10**18 + 1], kind).to_pylist()
    assert entry_of(whole) == entry_of(same)
    for key in (beyond, ("a", beyond)):
        with pytest.raises(TypeError, match="below microseconds no time is kept; cast the column"):
            entry_of(key)


def unfolded(time: Any) -> Any:
    return time.replace(fold=0)


VALUES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
    | st.decimals(allow_nan=False) | st.datetimes(timezones=st.none() | ZONES).map(unfolded) | st.dates()
    | st.times().map(unfolded) | st.timedeltas()
    | st.builds(uuid.UUID, int=st.integers(0, 1 << 64)),
    lambda inner: st.lists(inner, max_size=2) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


@given(VALUES)
def test_values_come_back_as_they_were(value: Any) -> None:
    back = from_plain(as_plain(value))
    assert (type(back), back, repr(back)) == (type(value), value, repr(value))


@pytest.mark.parametrize(
    "value", [Point(1, 2.0), [Point(1, 2.0)], (1, {"a": Point(1, 2.0)}), Colour.RED, {1: 2}, frozenset("a"), Place.HERE]
)
def test_values_that_would_not_come_back_are_refused(value: Any) -> None:
    """An attrs object would be written down, and come back as a dict."""
    with pytest.raises(ValueNotKept, match="cannot be kept over windows"):
        as_plain(value)
