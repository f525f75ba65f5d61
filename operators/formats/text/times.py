"""Columns of text as times in formats other than ISO 8601."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import datetime
import functools
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from operators.formats.text.log_patterns import ACCESS_TIME

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ACCESS = r"^\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}$"


def time_type(written: str) -> pa.DataType:
    """Return the type of times in a format: with a zone if the format has one.

    >>> time_type("%d/%b/%Y:%H:%M:%S %z"), time_type("%Y%m%d")
    (TimestampType(timestamp[us, tz=UTC]), TimestampType(timestamp[us]))
    """
    return pa.timestamp("us", "UTC" if "%z" in written else None)


def times_of(texts: Any, written: str) -> Any:
    """Return a column of text as times, null where a text is not a time. `written` as in `datetime.strptime`, months in English.

    >>> import pyarrow as pa
    >>> times_of(pa.array(["10/Oct/2000:13:55:36 -0700", "31/Feb/2000:13:55:36 -0700", None]), "%d/%b/%Y:%H:%M:%S %z").to_pylist()
    [datetime.datetime(2000, 10, 10, 20, 55, 36, tzinfo=zoneinfo.ZoneInfo(key='UTC')), None, None]
    """
    kind = time_type(written)
    if written == ACCESS_TIME:
        try:
            return _access_times(texts).cast(kind)
        except pa.ArrowInvalid:
            pass
    return pa.array([None if text is None else _time(text, written) for text in texts.to_pylist()], kind)


def _access_times(texts: Any) -> Any:
    """Return the times of access logs, all at once. Raises ArrowInvalid if a text is not a time."""
    if not pc.all(pc.match_substring_regex(texts, _ACCESS), min_count=0).as_py():
        raise pa.ArrowInvalid("a text has another form")
    numbers = pa.array([f"{n:02}" for n in range(1, 13)])
    month = numbers.take(pc.index_in(pc.utf8_slice_codeunits(texts, 3, 6), value_set=pa.array(MONTHS)))
    parts = [pc.utf8_slice_codeunits(texts, start, stop) for start, stop in ((7, 11), (0, 2), (12, 20), (21, 26))]
    year, day, time, zone = parts
    days = pc.binary_join_element_wise(year, month, day, "-")
    is_wrong = pc.and_(pc.is_null(days), pc.is_valid(texts))
    if pc.any(is_wrong, min_count=0).as_py():
        raise pa.ArrowInvalid("a month is none")
    return pc.binary_join_element_wise(days, "T", time, zone, "").cast(pa.timestamp("s", "UTC"))


@functools.lru_cache(maxsize=4096)
def _time(text: str, written: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(text, written)  # noqa: DTZ007  # a zone is in it, or there is none
    except ValueError:
        return None
