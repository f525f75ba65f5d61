"""Each value of the table through each sink: it comes out as it went in, read by another library, or it is one bad row.

A sink that `operators` exports takes part: `TRIPS` says how it is written and read, and which traits of values it refuses.
"""

from __future__ import annotations

import contextlib
import csv
import inspect
import io
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as t
import pytest

import operators
from dagflow import Operator, OperatorContext, StagedWindow
from dagflow.errors import DagflowError, ValueNotWritable
from dagflow.testing import OperatorTask
from operators import (
    CsvWriter,
    DeltaWriter,
    IcebergWriter,
    JsonLinesWriter,
    KafkaWriter,
    NatsWriter,
    ParquetWriter,
    PostgresWriter,
    RecordWriter,
    SqlWriter,
)
from tests.conformance.values.table import VALUES, canonical, json_of, number, of_text, rows

REFUSED = "refused"
NULL = "<null>"
END = "<end of a record>"
Found = dict[int, Any]
"""The values that came out, by the number of their row."""


@attrs.frozen
class Trip:
    """The way of values through a sink, and back by another library.

    `there_and_back`: takes a batch, a folder and the request of the test; returns what came out. `lacks`: the types that the sink
    refuses, whatever their values. `refuses`: the traits of values that are bad rows. `zeros_have_signs`: -0.0 is not
    stored as 0.0, which equals it.
    """

    there_and_back: Callable[[pa.RecordBatch, Path, pytest.FixtureRequest], Found]
    refuses: frozenset[str] = attrs.field(converter=frozenset)
    lacks: Callable[[Any], bool] = attrs.field(default=lambda kind: False)
    zeros_have_signs: bool = True


def of_texts(schema: pa.Schema, texts: dict[str, Any]) -> Any:
    """The value of a row of texts: that of the only column that has one."""
    [(name, text)] = [(name, text) for name, text in texts.items() if text is not None]
    return of_text(text, schema.field(name).type)


def of_table(table: Any) -> Found:
    """The values of a table of Arrow."""
    columns = {name: canonical(table.column(name)) for name in table.schema.names if name != "n"}
    found: Found = {}
    for row, n in enumerate(table.column("n").to_pylist()):
        [found[n]] = [values[row] for values in columns.values() if values[row] is not None]
    return found


def files_of(sink: Any, batch: pa.RecordBatch) -> bytes:
    """The content of a sink's files. Bad rows are skipped, all of them from one batch."""
    with OperatorTask(sink) as task:
        task.give("input", batch)
    return b"".join(task.files.contents.values())


def staged(make: Callable[[], Any], batch: pa.RecordBatch) -> None:
    """Publish a window with all rows of a batch that the sink does not refuse."""
    task = make()
    task.setup(OperatorContext(name="sink", application="app", window=0))
    task.begin_window(0)
    for row in range(batch.num_rows):
        try:
            task.write_batch(batch.slice(row, 1))
        except DagflowError as error:
            if error.is_fatal:
                raise
    task.end_window()
    make().publish(StagedWindow("app", 0, (task.stage(),), "sink"))


def through_csv(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    data = files_of(CsvWriter("out", null=NULL, on_error="skip"), batch).decode()
    lines = csv.DictReader(io.StringIO(data, newline=""))
    csv.field_size_limit(1 << 20)
    found = {}
    for line in lines:
        number_of_row = int(line.pop("n"))
        found[number_of_row] = of_texts(batch.schema, {name: None if text == NULL else text for name, text in line.items()})
    return found


def through_json(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    data = files_of(JsonLinesWriter("out", on_error="skip"), batch).decode()
    return of_lines(batch.schema, data.removesuffix("\n").split("\n"))


def of_lines(schema: pa.Schema, lines: list[str]) -> Found:
    """The values of lines of JSON."""
    found = {}
    for line in lines:
        row = json_of(line)
        n = int(row.pop("n"))
        found[n] = of_texts(schema, row)
    return found


def through_parquet(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    return of_table(pq.read_table(pa.BufferReader(files_of(ParquetWriter("out", on_error="skip"), batch))))


def through_records(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    """Records of text and bytes, each behind its number: the only column that a row has."""
    records: list[Any] = []
    for row in batch.to_pylist():
        [record] = [value for name, value in row.items() if name != "n" and value is not None]
        mark = f"{row['n']}\x1e"
        records.append(mark + record if isinstance(record, str) else mark.encode() + record)
    with OperatorTask(RecordWriter[Any]("out", terminator=END, on_error="skip")) as task:
        task.give("input", records)
    found = {}
    for record in b"".join(task.files.contents.values()).split(END.encode())[:-1]:
        n, _, data = record.partition(b"\x1e")
        is_text = any(t.is_string(column.type) and column[int(n)].is_valid for column in batch.columns)
        found[int(n)] = data.decode() if is_text else data
    return found


def through_sqlite(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    staged(lambda: SqlWriter(f"sqlite:///{folder}/shop.db", "t"), batch)
    with contextlib.closing(sqlite3.connect(folder / "shop.db")) as database:
        cursor = database.execute("SELECT * FROM t")
        names = [column[0] for column in cursor.description]
        found = {}
        for row in cursor:
            values = dict(zip(names, row, strict=True))
            n = values.pop("n")
            [(name, value)] = [(name, value) for name, value in values.items() if value is not None]
            kind: Any = batch.schema.field(name).type
            found[n] = of_text(json_of(value) if t.is_nested(kind) else value, kind)
        return found


def through_postgres(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    database = request.getfixturevalue("postgres")
    staged(lambda: PostgresWriter(database.address, "t", on_error="skip"), batch)
    parts = []
    for field in batch.schema:
        kind: Any = field.type
        if t.is_duration(kind):
            per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
            parts.append(f'(extract(epoch FROM "{field.name}") * {per_second})::numeric(60, 0)::text')
        elif t.is_nested(kind):
            parts.append(f'to_json("{field.name}")::text')
        elif t.is_boolean(kind):
            parts.append(f"CASE \"{field.name}\" WHEN true THEN 'true' WHEN false THEN 'false' END")
        elif t.is_binary(kind):
            parts.append(f"encode(\"{field.name}\", 'hex')")
        elif t.is_timestamp(kind):
            zone = " AT TIME ZONE 'UTC'" if kind.tz else ""
            parts.append(f'("{field.name}"{zone})::text')
        else:
            parts.append(f'"{field.name}"::text')
    found = {}
    for row in database.run(f"SELECT {', '.join(parts)} FROM t"):
        values = dict(zip(batch.schema.names, row, strict=True))
        n = int(values.pop("n"))
        [(name, text)] = [(name, text) for name, text in values.items() if text is not None]
        kind = batch.schema.field(name).type
        if t.is_binary(kind):
            found[n] = bytes.fromhex(text)
        else:
            found[n] = of_text(json_of(text) if t.is_nested(kind) else text, kind)
    return found


def through_delta(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    staged(lambda: DeltaWriter(str(folder / "t"), on_error="skip"), batch)
    return of_table(deltalake.DeltaTable(str(folder / "t")).to_pyarrow_table())


def through_iceberg(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    pyiceberg = pytest.importorskip("pyiceberg.catalog", reason="pyiceberg is not installed")
    catalog = {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}/wh"}
    staged(lambda: IcebergWriter("ns.t", catalog=catalog, on_error="skip"), batch)
    with contextlib.closing(pyiceberg.load_catalog(**catalog)) as loaded:
        return of_table(loaded.load_table("ns.t").scan().to_arrow())


def through_kafka(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    """The messages as they are staged; tests of the broker show that it keeps bytes."""
    return of_lines(batch.schema, messages_of(KafkaWriter("h:1", "t").encoder(), batch))


def through_nats(batch: pa.RecordBatch, folder: Path, request: Any) -> Found:
    return of_lines(batch.schema, messages_of(NatsWriter("nats://h:1", "t", "t.a").encoder(), batch))


def messages_of(encoder: Any, batch: pa.RecordBatch) -> list[str]:
    """The values of the messages of rows that are not refused."""
    values = []
    for row in range(batch.num_rows):
        try:
            [value] = encoder.messages(batch.slice(row, 1)).column("value").to_pylist()
        except ValueNotWritable:
            continue
        values.append(value.decode())
    return values


def is_nested(kind: Any) -> bool:
    return bool(t.is_nested(kind) or t.is_binary(kind))


def is_binary(kind: Any) -> bool:
    return bool(t.is_binary(kind))


def is_clock(kind: Any) -> bool:
    return bool(t.is_time(kind) or t.is_duration(kind))


def is_duration(kind: Any) -> bool:
    return bool(t.is_duration(kind))


def is_no_text(kind: Any) -> bool:
    return not (t.is_string(kind) or t.is_binary(kind))


TEXT = ("years", "day")
JSON = (*TEXT, "nan", "infinite")
TRIPS: dict[str, Trip] = {
    "CsvWriter": Trip(through_csv, TEXT, is_nested),
    "JsonLinesWriter": Trip(through_json, JSON, is_binary),
    "ParquetWriter": Trip(through_parquet, ["seconds"]),
    "RecordWriter": Trip(through_records, (), is_no_text),
    "SqlWriter": Trip(through_sqlite, (*TEXT, "nan", "unsigned"), zeros_have_signs=False),
    "PostgresWriter": Trip(through_postgres, (*TEXT, "fine", "nul", "long", "nested nan")),
    "DeltaWriter": Trip(through_delta, (*TEXT, "fine"), is_clock),
    "IcebergWriter": Trip(through_iceberg, (*TEXT, "fine"), is_duration),
    "KafkaWriter": Trip(through_kafka, JSON, is_binary),
    "NatsWriter": Trip(through_nats, JSON, is_binary),
}
NO_VALUES = {"Console": "prints records for people"}
"""Sinks from which no value comes back."""
SLOW = ("PostgresWriter", "DeltaWriter", "IcebergWriter")


def test_each_sink_that_is_exported_takes_part() -> None:
    exported = {name: getattr(operators, name) for name in operators.__all__}
    sinks = {
        name
        for name, cls in exported.items()
        if inspect.isclass(cls) and issubclass(cls, Operator) and cls.__module__.startswith("operators.sinks.")
    }
    assert sinks == {*TRIPS, *NO_VALUES}, "give a new sink a Trip, which says how its values are read back"


@pytest.mark.parametrize("sink", [pytest.param(name, marks=[pytest.mark.full] * (name in SLOW)) for name in TRIPS])
def test_values_come_out_as_they_went_in(sink: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    trip = TRIPS[sink]
    values = [each for each in VALUES if not trip.lacks(each.column.type)]
    found = trip.there_and_back(rows(values), tmp_path, request)
    wrong = []
    for row, value in enumerate(values):
        expected = REFUSED if value.traits & trip.refuses else canonical(value.column)[0]
        if not trip.zeros_have_signs and expected == number(-0.0):
            expected = number(0.0)
        if (came := found.get(row, REFUSED)) != expected:
            wrong.append(f"{value.name}: {expected!r:.100} came out as {came!r:.100}")
    assert not wrong, "\n".join(wrong)
    assert len(found) > 10
