"""Columns of text as times in formats other than ISO 8601."""

from __future__ import annotations

import pyarrow as pa

from dagflow.scan import Column, converted


def time_type(written: str) -> pa.DataType:
    """Return the type of times in a format: with a zone if the format has one.

    >>> time_type("%d/%b/%Y:%H:%M:%S %z"), time_type("%Y%m%d")
    (TimestampType(timestamp[us, tz=UTC]), TimestampType(timestamp[us]))
    """
    return pa.timestamp("us", "UTC" if "%z" in written else None)


def times_of(texts: pa.Array, written: str) -> tuple[pa.Array, pa.Array | None]:
    """Return a column of text as times, and which texts are not times (None: none), as a Column with this format has it.

    >>> times, bad = times_of(pa.array(["10/Oct/2000:13:55:36 -0700", "31/Feb/2000:13:55:36 -0700"]), "%d/%b/%Y:%H:%M:%S %z")
    >>> times.is_valid().to_pylist(), bad.to_pylist()
    ([True, False], [False, True])
    """
    kind = time_type(written)
    return converted(texts, kind, Column(kind, format=written))
