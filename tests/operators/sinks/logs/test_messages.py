"""Rows as messages: values, keys, partitions, headers, times and limits."""

from __future__ import annotations

import datetime
import json
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import ReaderRecord
from dagflow.errors import MessageTooLarge, TypeNotWritable, ValueNotWritable
from dagflow.testing import run_operator
from operators.sinks.logs.hashing import key_hashes
from operators.sinks.logs.messages import MessageEncoder
from tests.operators.sinks.logs.memory_log import LOGS, MemoryLog, MemoryWriter, Stored


@attrs.frozen
class Sale:
    item: str | None
    units: int
    at: datetime.datetime = datetime.datetime(2026, 1, 31, 12)  # noqa: DTZ001  # as columns without a zone have it


def encoder(**parts: Any) -> MessageEncoder:
    return MessageEncoder(operator="writer", **{"max_bytes": 1_000, **parts})


def written(writer: MemoryWriter, *records: Any) -> list[Stored]:
    """The messages that the log has after a window, of all partitions."""
    LOGS[""] = log = MemoryLog()
    run_operator(writer, {"input": list(records)})
    return [message for partition in log.partitions for message in partition]


# --------------------------------------------------------------------------------------------------------------- the values


@pytest.mark.parametrize("value", [None, lambda record: record])
def test_text_and_bytes_are_values_as_they_are(value: Any) -> None:
    assert [each.value for each in written(MemoryWriter(value=value), "a", "ä€", "")] == [b"a", "ä€".encode(), b""]
    assert [each.value for each in written(MemoryWriter(value=value), b"\x00\xff")] == [b"\x00\xff"]


def test_of_a_reader_record_the_record_is_the_value() -> None:
    assert [each.value for each in written(MemoryWriter(), ReaderRecord(1, 0, "line"))] == [b"line"]
    [message] = written(MemoryWriter(key=lambda record: record.position), ReaderRecord(1, 7, "line"))
    assert (message.key, message.value) == (b"7", b"line")


def test_rows_are_json_objects() -> None:
    [message] = written(MemoryWriter(key="item"), Sale("pen", 3))
    assert message.key == b"pen"
    assert json.loads(message.value or b"") == {"item": "pen", "units": 3, "at": "2026-01-31T12:00:00.000000"}


@given(
    st.lists(
        st.builds(
            Sale,
            st.none() | st.text(max_size=5),
            st.integers(-(2**63), 2**63 - 1),
            st.datetimes(datetime.datetime(1970, 1, 2)),  # noqa: DTZ001  # as columns without a zone have it
        ),
        min_size=1,
        max_size=5,
    )
)
def test_columns_and_functions_make_the_same_messages(sales: list[Sale]) -> None:
    schema = pa.schema({"item": pa.string(), "units": pa.int64(), "at": pa.timestamp("us")})
    batch = pa.RecordBatch.from_pylist([attrs.asdict(sale) for sale in sales], schema)
    columns = encoder(key="item", headers={"of": "item", "n": "units"}, time="at").messages(batch)
    functions = encoder(
        key=lambda sale: sale.item,
        headers={"of": lambda sale: sale.item, "n": lambda sale: sale.units},
        time=lambda sale: sale.at,
    )
    assert functions.batch_of([functions.message(sale) for sale in sales]).to_pylist() == columns.to_pylist()


@pytest.mark.parametrize("time", [0, -5, datetime.datetime(1969, 7, 20, tzinfo=datetime.UTC)])
def test_times_that_the_client_would_take_for_the_present_are_bad_records(time: Any) -> None:
    with pytest.raises(ValueNotWritable, match=r"column 'time' has 0 or less, [\s\S]*have times after 1970-01-01"):
        encoder(time="at").messages(pa.record_batch({"at": pa.array([None, time])}))
    with pytest.raises(ValueNotWritable, match="column 'time' has 0 or less"):
        encoder(time=lambda record: time).message({"n": 1})
    assert encoder(time="at").messages(pa.record_batch({"at": pa.array([None, 1])}))["time"].to_pylist() == [None, 1]


def test_a_value_may_be_null_as_a_tombstone_is() -> None:
    [message] = written(MemoryWriter(key="item", value=lambda sale: None), Sale("pen", 3))
    assert (message.key, message.value) == (b"pen", None)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array(["ä", None]), ["ä".encode(), None]),
        (pa.array([b"\xff", None], pa.large_binary()), [b"\xff", None]),
        (pa.array([7, None]), [b"7", None]),
        (pa.array([datetime.date(2026, 1, 31), None]), [b"2026-01-31", None]),
        (pa.array(["a", None]).dictionary_encode(), [b"a", None]),
        (pa.array([{"b": [1, 2]}, None]), [b'{"b":[1,2]}', None]),
    ],
)
def test_keys_and_values_of_each_type(column: Any, expected: list[bytes | None]) -> None:
    messages = encoder(key="c", value="c").messages(pa.record_batch({"c": column}))
    assert messages["key"].to_pylist() == messages["value"].to_pylist() == expected


def test_headers_are_columns_or_functions() -> None:
    headers = {"item": "item", "double": lambda sale: sale.units * 2}
    [message] = written(MemoryWriter(headers=headers), Sale("pen", 3))
    assert message.headers == [("item", b"pen"), ("double", b"6")]


def test_times_are_milliseconds() -> None:
    at = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
    for values in ([at], [int(at.timestamp() * 1000)]):
        messages = encoder(time="t").messages(pa.record_batch({"t": values}))
        assert messages["time"].to_pylist() == [int(at.timestamp() * 1000)]
    with pytest.raises(TypeNotWritable, match="name a column of timestamps, or of milliseconds"):
        encoder(time="t").messages(pa.record_batch({"t": ["noon"]}))


# ----------------------------------------------------------------------------------------------------------- the partitions


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_keys_are_hashed_as_the_tests_of_kafka_say(key: str, expected: int) -> None:
    keys = pa.array([b"before", key.encode(), None, b""], pa.binary()).slice(1, 2)
    assert key_hashes(keys).tolist() == [expected & 0x7FFFFFFF, -1]


def test_a_column_names_the_partition() -> None:
    routes = encoder(partition="p").messages(pa.record_batch({"p": pa.array([0, 2], pa.uint8())}))["route"]
    assert routes.to_pylist() == [-1, -3]
    for values, error in (([None, 1], ValueNotWritable), ([-1], ValueNotWritable), (["0"], TypeNotWritable)):
        with pytest.raises(error):
            encoder(partition="p").messages(pa.record_batch({"p": values}))
        with pytest.raises(error):
            encoder(partition=lambda value: value).message(values[0])


def test_a_function_names_the_partition() -> None:
    LOGS[""] = log = MemoryLog()
    run_operator(MemoryWriter(partition=lambda sale: sale.units), {"input": [Sale("a", 2), Sale("b", 0), Sale("c", 2)]})
    assert [len(partition) for partition in log.partitions] == [1, 0, 2]


# --------------------------------------------------------------------------------------------------------------- bad records


def test_messages_that_are_too_large_are_bad_records() -> None:
    batch = pa.record_batch({"value": ["a" * 11, "b"]})
    with pytest.raises(MessageTooLarge, match="a message has 11 bytes, and max_message_bytes is 10"):
        encoder(max_bytes=10).messages(batch)
    for key in (None, lambda _: None):
        writer = MemoryWriter(max_message_bytes=10, key=key)
        writer.on_error = "skip"
        assert [each.value for each in written(writer, "a" * 11, "b", "c" * 10)] == [b"b", b"c" * 10]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(TypeNotWritable, match="the columns are a, b"):
        encoder(key="c").messages(pa.record_batch({"a": [1], "b": [2]}))


def test_an_error_of_a_function_blames_its_record() -> None:
    writer = MemoryWriter(key=lambda text: text[0])
    writer.on_error = "skip"
    assert [each.value for each in written(writer, "a", "", "b")] == [b"a", b"b"]


def test_parts_and_headers_are_checked() -> None:
    with pytest.raises(ValueError, match=r"key is 5, .*\n  and headers has 'dagflow-window': names that begin with dagflow-"):
        MemoryWriter(key=5, headers={"dagflow-window": "a"}).check()  # type: ignore[arg-type]


def test_many_records_go_through_files_in_parts() -> None:
    values = [f"message {number}" for number in range(5_000)]
    for writer in (MemoryWriter(buffer_bytes=1_000), MemoryWriter(buffer_bytes=1_000, key=lambda _: None)):
        assert sorted(each.value or b"" for each in written(writer, *values)) == sorted(value.encode() for value in values)
