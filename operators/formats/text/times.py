"""Columns of text as times that are written in some way of their own."""

from __future__ import annotations

import datetime
import functools
from typing import TYPE_CHECKING, Any

from operators.formats.text.log_patterns import ACCESS_TIME

if TYPE_CHECKING:
    import pyarrow as pa

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ACCESS = r"^\d{2}/[A-Z][a-z]{2}/\d{4}:\d{2}:\d{2}:\d{2} [+-]\d{4}$"


def time_type(written: str) -> pa.DataType:
    """The type of times that are written so: with a zone, if the text has one.

    >>> time_type("%d/%b/%Y:%H:%M:%S %z"), time_type("%Y%m%d")
    (TimestampType(timestamp[us, tz=UTC]), TimestampType(timestamp[us]))
    """
    import pyarrow as pa

    return pa.timestamp("us", "UTC" if "%z" in written else None)


def times_of(texts: Any, written: str) -> Any:
    """A column of text as times, null where a text is none. `written` as in `datetime.strptime`, months in English.

    >>> import pyarrow as pa
    >>> times_of(pa.array(["10/Oct/2000:13:55:36 -0700", "31/Feb/2000:13:55:36 -0700", None]), "%d/%b/%Y:%H:%M:%S %z").to_pylist()
    [datetime.datetime(2000, 10, 10, 20, 55, 36, tzinfo=zoneinfo.ZoneInfo(key='UTC')), None, None]
    """
    import pyarrow as pa

    kind = time_type(written)
    if written == ACCESS_TIME:
        try:
            return _access_times(texts).cast(kind)
        except pa.ArrowInvalid:
            pass
    return pa.array([None if text is None else _time(text, written) for text in texts.to_pylist()], kind)


def _access_times(texts: Any) -> Any:
    """The times of access logs, all at once. Raises ArrowInvalid where a text is none."""
    import pyarrow as pa
    import pyarrow.compute

    c: Any = pyarrow.compute
    if not c.all(c.match_substring_regex(texts, _ACCESS), min_count=0).as_py():
        raise pa.ArrowInvalid("a text has another form")
    numbers = pa.array([f"{n:02}" for n in range(1, 13)])
    month = numbers.take(c.index_in(c.utf8_slice_codeunits(texts, 3, 6), value_set=pa.array(MONTHS)))
    parts = [c.utf8_slice_codeunits(texts, start, stop) for start, stop in ((7, 11), (0, 2), (12, 20), (21, 26))]
    year, day, time, zone = parts
    days = c.binary_join_element_wise(year, month, day, "-")
    is_wrong = c.and_(c.is_null(days), c.is_valid(texts))
    if c.any(is_wrong, min_count=0).as_py():
        raise pa.ArrowInvalid("a month is none")
    return c.binary_join_element_wise(days, "T", time, zone, "").cast(pa.timestamp("s", "UTC"))


@functools.lru_cache(maxsize=4096)
def _time(text: str, written: str) -> datetime.datetime | None:
    try:
        return datetime.datetime.strptime(text, written)  # noqa: DTZ007  # a zone is in it, or there is none
    except ValueError:
        return None
