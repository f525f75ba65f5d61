"""Formats of dates and times: parsed as `datetime.strptime` does, but never another day; what they may say is checked at once."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.scan import Column
from dagflow.scan.schema.cast import converted
from tests.tiers import examples

MIN, MAX = datetime.datetime(1969, 1, 1), datetime.datetime(2068, 12, 31)  # noqa: DTZ001  # strptime has no zone
FORMATS = [
    "%d.%m.%Y",
    "%Y%m%d",
    "%Y-%j",
    "%d/%b/%Y:%H:%M:%S",
    "%A, %d %B %Y %I:%M %p",
    "%m/%d/%y %H:%M",
    "%a %b %d %H:%M:%S %Y",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S%z",
    "%d. %m. (%Y) %%",
]


def read(text: str | None, kind: str, written: str) -> Any:
    """The value of a text; a ValueError for a bad one."""
    column = Column(kind, format=written)
    values, bad = converted(pa.array([None, text], pa.string()), column.arrow, column)
    if bad is not None:
        raise ValueError(f"{text} is bad")
    assert values.to_pylist()[0] is None
    return values.to_pylist()[1]


@pytest.mark.parametrize("written", FORMATS)
@settings(max_examples=examples(30), deadline=None)
@given(at=st.datetimes(MIN, MAX), short=st.booleans())
def test_times_come_back(written: str, at: datetime.datetime, short: bool) -> None:
    text = at.replace(tzinfo=datetime.UTC).strftime(written)
    if short and written in ("%d.%m.%Y", "%d. %m. (%Y) %%"):
        text = text.replace("0" + text[1:2] + ".", text[1:2] + ".", 1) if text[0] == "0" else text
    expected = datetime.datetime.strptime(text, written)  # noqa: DTZ007  # the oracle
    zone = ", tz=UTC" if "%z" in written else ""
    assert read(text, f"timestamp[us{zone}]", written) == expected


DATES = "%d.%m.%Y"
BAD = [
    ("31.02.2020", DATES),
    ("29.02.2021", DATES),
    ("29.02.1900", DATES),
    ("31.04.2021", DATES),
    ("00.01.2021", DATES),
    ("01.13.2021", DATES),
    ("01.01.0000", DATES),
    ("01.01.10000", DATES),
    ("1.1.21", DATES),
    ("2021-366", "%Y-%j"),
    ("2021-000", "%Y-%j"),
    ("2020-367", "%Y-%j"),
    ("2020-01-01 24:00:00", "%Y-%m-%d %H:%M:%S"),
    ("2020-01-01 23:60:00", "%Y-%m-%d %H:%M:%S"),
    ("2016-12-31 23:59:60", "%Y-%m-%d %H:%M:%S"),
    ("00:30 AM", "%I:%M %p"),
    ("13:30 PM", "%I:%M %p"),
    ("Tue 02 Feb 2026", "%a %d %b %Y"),
    ("02 Xxx 2026", "%d %b %Y"),
    ("202013", "%Y%m%d"),
    ("01.02.2020 x", DATES),
    ("01.02.2020 00:00 CET", "%d.%m.%Y %H:%M"),
    ("10:00:00.1234567", "%H:%M:%S.%f"),
]


@pytest.mark.parametrize(("text", "written"), BAD)
def test_what_does_not_exist_is_a_bad_value(text: str, written: str) -> None:
    with pytest.raises(ValueError, match="is bad"):
        read(text, "timestamp[us]", written)


def test_zones() -> None:
    utc, written = datetime.UTC, "%Y-%m-%d %H:%M%z"
    for text in ("2020-07-01 12:00+0200", "2020-07-01 12:00+02:00", "2020-07-01 10:00Z"):
        assert read(text, "timestamp[us, tz=UTC]", written) == datetime.datetime(2020, 7, 1, 10, tzinfo=utc)
    with pytest.raises(ValueError, match="is bad"):
        read("2020-07-01 12:00+9900", "timestamp[us, tz=UTC]", written)


def test_text_without_an_offset_has_the_zone_of_its_column() -> None:
    read_there = read("01.07.2020 12:00", "timestamp[us, tz=Europe/Oslo]", "%d.%m.%Y %H:%M")
    assert read_there == datetime.datetime(2020, 7, 1, 10, tzinfo=datetime.UTC)
    with pytest.raises(ValueError, match="is bad"):  # an hour that clocks leave out
        read("29.03.2020 02:30", "timestamp[us, tz=Europe/Oslo]", "%d.%m.%Y %H:%M")


def test_nothing_of_a_time_is_lost() -> None:
    assert read("01.02.2020 00:00", "date32", "%d.%m.%Y %H:%M") == datetime.date(2020, 2, 1)
    assert read("12:30:01.5", "time64[us]", "%H:%M:%S.%f") == datetime.time(12, 30, 1, 500_000)
    assert read("12:30:01.500", "time32[ms]", "%H:%M:%S.%f") == datetime.time(12, 30, 1, 500_000)
    for text, kind, written in [
        ("01.02.2020 10:00", "date32", "%d.%m.%Y %H:%M"),
        ("12:30:01.5", "time32[s]", "%H:%M:%S.%f"),
        ("12:30:01.0005", "timestamp[ms]", "%H:%M:%S.%f"),
    ]:
        with pytest.raises(ValueError, match="is bad"):
            read(text, kind, written)


REFUSED = [
    ("timestamp[us]", "%d.%m.%Y %H:%M %Z", "%Z, which is not supported"),
    ("timestamp[us]", "%s", "%s, which is not supported"),
    ("date32", "%c", "%c, which is not supported"),
    ("date32", "%Y-%U-%w", "%U, which is not supported"),
    ("date32", "%Y-%m-%", "%, which is not supported"),
    ("date32", "%d.%d.%Y", "%d twice"),
    ("date32", "%F %Y", "%Y twice"),
    ("date32", "%Y %y", "say the same"),
    ("date32", "%Y-%m-%d %j", "say the same"),
    ("timestamp[us]", "%F %I:%M", "%I without %p"),
    ("timestamp[us]", "%F %H.%f", "%f without %S"),
    ("timestamp[us]", "%F %T%z", "a type with a zone"),
    ("time64[us]", "%F %T", "which a time64"),
    ("date32", "today", "no directive"),
    ("int64", "%Y", "format is for dates and times"),
    ("duration[s]", "%S", "format is for dates and times"),
]


@pytest.mark.parametrize(("kind", "written", "reason"), REFUSED)
def test_formats_that_cannot_be_read_are_refused_at_once(kind: str, written: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Column(kind, format=written)


def test_a_bad_text_does_not_spoil_others() -> None:
    texts = [f"{day:02}.02.2021" for day in range(1, 32)] * 20
    column = Column("date32", format=DATES)
    values, bad = converted(pa.array(texts), column.arrow, column)
    assert bad is not None
    assert bad.to_pylist() == [int(text[:2]) > 28 for text in texts]
    assert values.null_count == 60
