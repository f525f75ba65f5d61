"""Event times of messages: their timestamps, or a field of their values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

import pyarrow as pa

from dagflow.errors import DagflowError
from operators.aggregate.event_time.times import FIRST, LAST, microseconds
from operators.logs.protocol import time_of

ValueFormat = Literal["json"] | Callable[[bytes], Any]

_VALUE = "value."


def value_format_problem(value_format: Any) -> str | None:
    """Return the problem with a property `value_format`, if there is one.

    >>> value_format_problem("json"), value_format_problem("xml")
    (None, "value_format is 'xml', and must be 'json' or a function of bytes that returns a dictionary, such as AvroDecoder(…)")
    """
    if value_format == "json" or callable(value_format):
        return None
    return (
        f"value_format is {value_format!r}, and must be 'json' or a function of bytes that returns a dictionary, such as "
        "AvroDecoder(…)"
    )


def event_time_problem(event_time: Any) -> str | None:
    """Return the problem with a property `event_time`, if there is one.

    >>> [event_time_problem(each) is None for each in (None, "timestamp", "value.sent.at", "time", "value.")]
    [True, True, True, False, False]
    """
    if event_time in (None, "timestamp"):
        return None
    if isinstance(event_time, str) and event_time.startswith(_VALUE) and all(event_time.split(".")):
        return None
    return f"event_time is {event_time!r}, and must be timestamp (of the message), or a field of its value: value.time"


def event_times_of(batch: pa.RecordBatch, event_time: str, value_format: ValueFormat) -> list[int]:
    """Return the event times of messages, in microseconds since the epoch. Messages that have none are left out.

    A time is text in ISO 8601, an integer of microseconds, or what a decoder returns as a datetime, in the years 1 to 9999.

    >>> from operators.logs.messages import message_batch
    >>> values = [b'{"sent": {"at": "1970-01-01T00:00:01Z"}}', b"not json", None, b'{"sent": {"at": 7}}', b'{"sent": null}']
    >>> values.append(b'{"sent": {"at": 1000000000000000000000000}}')
    >>> event_times_of(message_batch("events", 0, range(6), values), "value.sent.at", "json")
    [1000000, 7]
    """
    if event_time == "timestamp":
        stamps: list[int] = batch.column("timestamp").drop_null().cast("int64").to_pylist()
        return [stamp for stamp in stamps if FIRST <= stamp <= LAST]
    decode, path = json.loads if value_format == "json" else value_format, event_time.split(".")[1:]
    times = []
    for value in batch.column("value").drop_null().to_pylist():
        try:
            part = decode(value)
            for name in path:
                part = part[name] if isinstance(part, Mapping) else getattr(part, name)
            time = time_of(part) if isinstance(part, str) else microseconds(part)
        except Exception as error:  # a message that cannot be read is the affair of its reader
            if isinstance(error, DagflowError) and error.is_fatal:
                raise
            continue
        if FIRST <= time <= LAST:
            times.append(time)
    return times
