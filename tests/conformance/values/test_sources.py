"""Each value of the table out of each source, written by another library: it comes out as it was written, or it is one bad row.

Each format and each input that `operators` exports takes part: `SOURCES` says who writes for it and what it refuses, `NO_VALUES`
why there is nothing to say. Sources of text also read each text of `texts.py` in columns of each type, declared and inferred.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import functools
import inspect
import io
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as t
import pytest

import operators
from dagflow import InputOperator, Module, OperatorContext
from dagflow.scan import Format
from dagflow.testing import run_operator
from dagflow.testing.files import blocks_of
from operators import (
    AvroFormat,
    CsvFormat,
    DeltaInput,
    FixedWidthFormat,
    IcebergInput,
    JsonLinesFormat,
    ParquetFormat,
    PostgresRanges,
    PostgresReader,
    RegexFormat,
    ScanReader,
)
from operators.logs.memory import MemoryLog, MemoryLogInput, MemoryLogScanReader
from tests.conformance.values.table import DAY, VALUES, Value, canonical, column_name, rows
from tests.conformance.values.texts import NUMBERS, REFUSED, TEXTS, TYPES, holds_text, meaning, written_again

Read = tuple[list[pa.RecordBatch], list[Any]]
"""The batches of a source, and its bad rows."""
_names = itertools.count()


# ----------------------------------------------------------------------------------------------------------------- reading


def read(reader: Any, blocks: Sequence[Any]) -> Read:
    """Read blocks as a window does: the columns are agreed on before."""
    batches: list[pa.RecordBatch] = []
    bad: list[Any] = []
    agreed = reader.agree(blocks, None, OperatorContext(name="reader"))
    reader.setup(OperatorContext(name="reader", agreed=agreed))
    reader.batches.emit_batch = batches.append
    reader.errors.emit = bad.append
    for block in blocks:
        reader.read_block(block)
    reader.teardown()
    return batches, bad


def read_files(format: Format, paths: Iterable[Path], schema: Any = None, **options: Any) -> Read:
    blocks = [attrs.evolve(block, block_id=n) for n, path in enumerate(paths) for block in blocks_of(str(path))]
    return read(ScanReader(format, schema=schema, on_bad_row="route", **options), blocks)


def values_of(batches: list[pa.RecordBatch]) -> dict[int, dict[str, Any]]:
    """The canonical values that are not null, by row and column."""
    found: dict[int, dict[str, Any]] = {}
    for batch in batches:
        columns = {name: canonical(batch.column(name)) for name in batch.schema.names if name != "n"}
        for row, n in enumerate(batch.column("n").to_pylist()):
            assert n not in found, f"row {n} came twice"
            found[n] = {name: values[row] for name, values in columns.items() if values[row] is not None}
    return found


def schema_of(batch: pa.RecordBatch) -> pa.Schema:
    """The schema of a user for a batch."""
    return pa.schema([pa.field(field.name, field.type) for field in batch.schema])


# ----------------------------------------------------------------------------------------------------------------- writing


def iso(value: int, kind: Any) -> str:
    """A date or time in ISO 8601, by its canonical value, also of years that ISO 8601 does not have."""
    seconds, fraction = divmod(value, 10**9)
    days, second = (0, seconds) if t.is_time(kind) else divmod(seconds, DAY)
    clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}" + (f".{fraction:09}".rstrip("0") if fraction else "")
    if t.is_time(kind):
        return clock
    cycles, day = divmod(days + 719_162, 146_097)  # of 400 years
    date = datetime.date.fromordinal(day + 1)
    text = f"{date.year + cycles * 400:04}-{date.month:02}-{date.day:02}"
    return text if t.is_date(kind) else f"{text}T{clock}{'Z' if kind.tz else ''}"


def text_of(column: Any) -> str | None:
    """The text of the only value of a column without parts, as Python writes it."""
    kind, value = column.type, column[0]
    if not value.is_valid:
        return None
    if t.is_date(kind) or t.is_time(kind) or t.is_timestamp(kind):
        return iso(canonical(column)[0], kind)
    if t.is_boolean(kind):
        return str(value.as_py()).lower()
    if t.is_decimal(kind):
        return format(value.as_py(), "f")
    return value.as_py().decode() if t.is_binary(kind) else str(value.as_py())


def plain_of(column: Any, leaf: Callable[[Any], Any]) -> Any:
    """The only value of a column as lists, dictionaries and leaves."""
    kind = column.type
    if column.null_count:
        return None
    if t.is_struct(kind):
        return {field.name: plain_of(part, leaf) for field, part in zip(kind, column.flatten(), strict=True)}
    if t.is_map(kind):
        start, stop = column.offsets[0].as_py(), column.offsets[1].as_py()
        return {column.keys[n].as_py(): plain_of(column.items.slice(n, 1), leaf) for n in range(start, stop)}
    if t.is_nested(kind):
        return [plain_of(column.flatten().slice(n, 1), leaf) for n in range(len(column.flatten()))]
    return leaf(column)


def records_of(batch: pa.RecordBatch, leaf: Callable[[Any], Any]) -> list[dict[str, Any]]:
    """The rows of a batch as dictionaries. `leaf`: makes a value of a column of one."""
    names = batch.schema.names
    return [{name: plain_of(batch.column(name).slice(n, 1), leaf) for name in names} for n in range(batch.num_rows)]


def csv_bytes(records: list[dict[str, str | None]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def quoted_bytes(records: list[dict[str, str | None]]) -> bytes:
    """CSV in which all cells but nulls are in quotes."""
    lines = [",".join("" if cell is None else '"' + cell.replace('"', '""') + '"' for cell in row.values()) for row in records]
    return "\n".join([",".join(records[0]), *lines, ""]).encode()


def json_bytes(records: list[dict[str, Any]]) -> bytes:
    lines = [json.dumps({name: value for name, value in record.items() if value is not None}) for record in records]
    return "".join(f"{line}\n" for line in lines).encode()


def json_leaf(column: Any) -> Any:
    """A value as JSON has it; decimals as text."""
    kind = column.type
    return column[0].as_py() if t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) else text_of(column)


def regex_bytes(records: list[dict[str, str | None]]) -> bytes:
    return "".join("\x1e".join(value or "" for value in record.values()) + "\n" for record in records).encode()


def regex_of(names: Iterable[str]) -> RegexFormat:
    return RegexFormat("\x1e".join(f"(?P<{name}>[^\x1e]*)" for name in names))


WIDTH = 100


def fixed_bytes(records: list[dict[str, str | None]]) -> bytes:
    return b"".join(b"".join((value or "").encode().ljust(WIDTH) for value in record.values()) + b"\n" for record in records)


def fixed_of(names: Iterable[str]) -> FixedWidthFormat:
    return FixedWidthFormat({name: (n * WIDTH, WIDTH) for n, name in enumerate(names)})


# ----------------------------------------------------------------------------------------------------------------- sources


def from_text(
    batch: pa.RecordBatch, folder: Path, request: Any, *, write: Callable[[list[Any]], bytes], format: Callable[[Any], Format]
) -> Read:
    path = folder / "values"
    path.write_bytes(write(records_of(batch, text_of)))
    return read_files(format(batch.schema.names), [path], schema_of(batch))


def from_json(batch: pa.RecordBatch, folder: Path, request: Any) -> Read:
    path = folder / "values.jsonl"
    path.write_bytes(json_bytes(records_of(batch, json_leaf)))
    return read_files(JsonLinesFormat(), [path], schema_of(batch))


def from_log(batch: pa.RecordBatch, folder: Path, request: Any) -> Read:
    log = MemoryLog(f"values-{next(_names)}")
    for line in json_bytes(records_of(batch, json_leaf)).splitlines():
        log.append("values", line)
    blocks = run_operator(MemoryLogInput(log.name, topics="values"), {})["blocks_metadata_output"]
    return read(MemoryLogScanReader(log_name=log.name, schema=schema_of(batch), on_bad_row="route", message_columns=()), blocks)


def from_decoder(batch: pa.RecordBatch, folder: Path, request: Any) -> Read:
    """Messages that a function decodes: Python's own objects, such as decoders of Avro return."""
    records = {str(n).encode(): record for n, record in enumerate(records_of(batch, lambda column: column[0].as_py()))}
    log = MemoryLog(f"values-{next(_names)}")
    for message in records:
        log.append("values", message)
    blocks = run_operator(MemoryLogInput(log.name, topics="values"), {})["blocks_metadata_output"]
    options = {"schema": schema_of(batch), "on_bad_row": "route", "message_columns": ()}
    return read(MemoryLogScanReader(log_name=log.name, value_format=records.__getitem__, **options), blocks)


def from_parquet(batch: pa.RecordBatch, folder: Path, request: Any) -> Read:
    path = folder / "values.parquet"
    pq.write_table(pa.Table.from_batches([batch]), path)
    return read_files(ParquetFormat(), [path])


def from_avro(batch: pa.RecordBatch, folder: Path, request: Any) -> Read:
    fastavro = pytest.importorskip("fastavro", reason="fastavro is not installed")
    names = (f"record{n}" for n in itertools.count())
    fields = [{"name": field.name, "type": ["null", avro_type(field.type, names)]} for field in batch.schema]
    path = folder / "values.avro"
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, records_of(batch, avro_leaf))
    return read_files(AvroFormat(), [path])


def avro_type(kind: Any, names: Iterator[str]) -> Any:
    """The type of Avro that holds a type, as its specification names it. Raises LookupError if there is none."""
    if t.is_struct(kind):
        fields = [{"name": field.name, "type": ["null", avro_type(field.type, names)]} for field in kind]
        return {"type": "record", "name": next(names), "fields": fields}
    if t.is_map(kind):
        return {"type": "map", "values": ["null", avro_type(kind.item_type, names)]}
    if t.is_nested(kind):
        return {"type": "array", "items": ["null", avro_type(kind.value_type, names)]}
    if t.is_decimal(kind):
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if t.is_timestamp(kind):
        unit = {"ms": "millis", "us": "micros", "ns": "nanos"}[kind.unit]
        return {"type": "long", "logicalType": f"{'timestamp' if kind.tz else 'local-timestamp'}-{unit}"}
    logical = {pa.date32(): "date", pa.time32("ms"): "time-millis", pa.time64("us"): "time-micros"}
    if kind in logical:
        return {"type": "int" if kind.bit_width == 32 else "long", "logicalType": logical[kind]}
    if t.is_integer(kind) and kind != pa.uint64():
        return "int" if kind.bit_width < 32 or kind == pa.int32() else "long"
    plain = {pa.bool_(): "boolean", pa.float32(): "float", pa.float64(): "double", pa.string(): "string", pa.binary(): "bytes"}
    return plain[kind]


def avro_leaf(column: Any) -> Any:
    kind = column.type
    return column.view(f"int{kind.bit_width}")[0].as_py() if t.is_temporal(kind) else column[0].as_py()


def from_delta(batch: pa.RecordBatch, folder: Path, request: Any) -> Read:
    deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
    deltalake.write_deltalake(folder / "t", pa.Table.from_batches([batch]))
    blocks = run_operator(DeltaInput(str(folder / "t")), {})["blocks_metadata_output"]
    return read(ScanReader(ParquetFormat(), on_bad_row="route"), blocks)


def from_iceberg(batch: pa.RecordBatch, folder: Path, request: Any) -> Read:
    pyiceberg = pytest.importorskip("pyiceberg.catalog", reason="pyiceberg is not installed")
    catalog = {"type": "sql", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"file://{folder}/wh"}
    with contextlib.closing(pyiceberg.load_catalog(**catalog)) as loaded:
        loaded.create_namespace("ns")
        loaded.create_table("ns.t", schema=batch.schema).append(pa.Table.from_batches([batch]))
    blocks = run_operator(IcebergInput("ns.t", catalog), {})["blocks_metadata_output"]
    return read(ScanReader(ParquetFormat(), on_bad_row="route"), blocks)


def from_postgres(batch: pa.RecordBatch, folder: Path, request: Any) -> Read:
    database = request.getfixturevalue("postgres")
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    kinds = [postgres_kind(field.type) for field in batch.schema]
    table = ", ".join(f'"{field.name}" {kind}' for field, kind in zip(batch.schema, kinds, strict=True))
    database.run(f"CREATE TABLE t ({table}, PRIMARY KEY (n))")
    with psycopg.connect(database.address, autocommit=True) as connection, connection.cursor() as cursor:
        places = ", ".join(f"%s::{kind}" for kind in kinds)
        cursor.executemany(f"INSERT INTO t VALUES ({places})", [list(each.values()) for each in records_of(batch, postgres_leaf)])
    blocks = run_operator(PostgresRanges(database.address, "t", key="n"), {})["blocks_metadata_output"]
    return read(PostgresReader(database.address, "t", key="n"), blocks)


def postgres_kind(kind: Any) -> str:
    """The type of PostgreSQL that holds a type, as its documentation names it."""
    if t.is_list(kind):
        return f"{postgres_kind(kind.value_type)}[]"
    if t.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    if t.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if t.is_integer(kind):
        is_signed = str(kind).startswith("int")
        return {8: "smallint", 16: "smallint" if is_signed else "integer", 32: "integer" if is_signed else "bigint"}.get(
            kind.bit_width, "bigint" if is_signed else "numeric(20, 0)"
        )
    names = {pa.bool_(): "boolean", pa.float32(): "real", pa.float64(): "double precision", pa.binary(): "bytea"}
    return names.get(kind) or ("date" if t.is_date(kind) else "time" if t.is_time(kind) else "text")


def postgres_leaf(column: Any) -> Any:
    return column[0].as_py() if t.is_binary(column.type) or t.is_integer(column.type) else text_of(column)


@attrs.frozen
class Source:
    """The way of values out of a source into which another library wrote them.

    `written_and_read`: takes a batch, a folder and the request of the test. `lacks`: the reason for which values of a type are
    not written, None for those that are. `refuses`: the traits of values that may be bad rows. `leaves_out`: the traits of values
    that are not written, each with the reason. `is_blank`: whether a text is null here.
    """

    written_and_read: Callable[[pa.RecordBatch, Path, pytest.FixtureRequest], Read]
    lacks: Callable[[Any], str | None]
    refuses: frozenset[str] = attrs.field(default=(), converter=frozenset)
    leaves_out: Mapping[str, str] = attrs.field(factory=dict)
    is_blank: Callable[[str], bool] = attrs.field(default=lambda text: False)

    @property
    def values(self) -> list[Value]:
        """The values that are written."""
        return [each for each in VALUES if self.lacks(each.column.type) is None and not traits_of(each) & self.leaves_out.keys()]

    def expected(self, value: Value) -> Any:
        """The canonical value that comes out; None: null."""
        found = canonical(value.column)[0]
        return None if isinstance(found, str) and self.is_blank(found) else found


def traits_of(value: Value) -> frozenset[str]:
    """The traits of a value, those of texts that some forms of files do not keep, and the second that Arrow's parser lacks."""
    kind: Any = value.column.type
    text = value.column[0].as_py() if t.is_string(kind) else ""
    traits = {
        "no object": not _is_object(value),
        "first second": t.is_timestamp(kind) and kind.unit == "ns" and canonical(value.column)[0] < 10**9 - 2**63,
        "long text": len(text) > WIDTH,
        "lines": "\n" in text,
        "blanks": text != text.strip(" \0"),
    }
    return value.traits | {name for name, has_it in traits.items() if has_it}


def _is_object(value: Value) -> bool:
    try:
        pa.array(value.column.to_pylist(), value.column.type)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def text_lacks(kind: Any) -> str | None:
    return "it has parts, and their text is JSON" if t.is_nested(kind) else json_lacks(kind)


def json_lacks(kind: Any) -> str | None:
    if t.is_binary(kind):
        return "bytes that are not text have no usual text"
    return "no text of a duration is read" if t.is_duration(kind) else None


def avro_lacks(kind: Any) -> str | None:
    try:
        avro_type(kind, iter(["r", "s"]))
    except LookupError:
        return "Avro has no such type"
    return None


def delta_lacks(kind: Any) -> str | None:
    if t.is_time(kind) or t.is_duration(kind) or t.is_unsigned_integer(kind):
        return "Delta has no such type"
    return "deltalake does not write times without a zone in a map" if t.is_map(kind) else None


def iceberg_lacks(kind: Any) -> str | None:
    if t.is_timestamp(kind) and kind.tz not in (None, "UTC"):
        return "Iceberg has no zones but UTC"
    if (t.is_timestamp(kind) and kind.unit == "ns") or (t.is_time(kind) and kind.unit != "us"):
        return "pyiceberg writes microseconds"
    return "Iceberg has no such type" if t.is_duration(kind) or kind in (pa.uint32(), pa.uint64()) else None


def postgres_lacks(kind: Any) -> str | None:
    if t.is_duration(kind):
        return "an interval has months and days, and is read only with a cast"
    if t.is_nested(kind) and kind != pa.list_(pa.int64()):
        return "it is jsonb, which is read as text"
    return None


OF_TEXT = ("years", "day", "first second")
FINER = "the library keeps microseconds"
BEYOND = "the library does not write it"
PARQUET = {"seconds": "Parquet counts milliseconds, and the library does not write what these do not count"}
SOURCES: dict[str, Source] = {
    "CsvFormat": Source(
        functools.partial(from_text, write=csv_bytes, format=lambda names: CsvFormat()),
        text_lacks,
        OF_TEXT,
        {"nul": "the library of Python 3.11 does not write it"},
        is_blank=lambda text: text == "",
    ),
    "FixedWidthFormat": Source(
        functools.partial(from_text, write=fixed_bytes, format=fixed_of),
        text_lacks,
        OF_TEXT,
        {"long text": "a column has a width", "blanks": "the rest of a column is blanks", "nul": "it counts as a blank"},
        is_blank=lambda text: text.strip(" \0") == "",
    ),
    "RegexFormat": Source(
        functools.partial(from_text, write=regex_bytes, format=regex_of),
        text_lacks,
        OF_TEXT,
        {"lines": "a line is a row"},
        is_blank=lambda text: text == "",
    ),
    "JsonLinesFormat": Source(from_json, json_lacks, OF_TEXT),
    "KafkaScanInput": Source(from_log, json_lacks, OF_TEXT),
    "NatsScanInput": Source(from_log, json_lacks, OF_TEXT),
    "a decoder": Source(
        from_decoder,
        lambda kind: None,
        (),
        {**dict.fromkeys(["no object", "years", "day"], "Python has no such object"), "fine": FINER},
    ),
    "ParquetFormat": Source(from_parquet, lambda kind: None, (), PARQUET),
    "AvroFormat": Source(from_avro, avro_lacks),
    "DeltaInput": Source(
        from_delta, delta_lacks, (), {"fine": FINER, "seconds": BEYOND, "milliseconds": BEYOND, "years": BEYOND}
    ),
    "IcebergInput": Source(
        from_iceberg, iceberg_lacks, (), {"fine": FINER, "years": BEYOND, "seconds": BEYOND, "milliseconds": BEYOND}
    ),
    "PostgresInput": Source(
        from_postgres,
        postgres_lacks,
        (),
        {
            "fine": FINER,
            "years": "the run ends: see test_values_that_arrow_does_not_have_are_named",
            "day": BEYOND,
            "nul": BEYOND,
        },
    ),
}
"""The sources. Logs of Kafka and NATS differ in what brings their messages, and share the readers of these: a double stands for
both."""
NO_VALUES = {
    "DatasetInput": "it emits the files that sinks wrote, which formats read",
    "FileInput": "it emits what its reader reads, records of lines or columns of a format",
    "FileSplitterInput": "it emits blocks of files, which formats read",
    "KafkaInput": "its records are the bytes of messages",
    "KafkaSplitterInput": "it emits offsets",
    "NatsInput": "its records are the bytes of messages",
    "NatsSplitterInput": "it emits offsets",
    "PostgresRanges": "it emits ranges of keys, which PostgresInput reads",
    "AbstractLogSplitterInput": "a base",
}
"""Formats and inputs that read no values themselves."""
SLOW = ("DeltaInput", "IcebergInput", "PostgresInput")


def test_each_source_that_is_exported_takes_part() -> None:
    exported = {name: getattr(operators, name) for name in operators.__all__}
    bases = (Format, InputOperator)
    sources = {
        name
        for name, cls in exported.items()
        if inspect.isclass(cls) and (issubclass(cls, bases) or (issubclass(cls, Module) and name.endswith("Input")))
    }
    assert sources == {*SOURCES, *NO_VALUES} - {"a decoder"}, "give a new source an entry, which says who writes for it"


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.full] * (name in SLOW)) for name in SOURCES])
def test_values_come_out_as_they_were_written(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """All values beside one another; then only those that are not bad rows, for which the parsers are the fast ones."""
    source = SOURCES[name]
    wrong, refused = compared(source, source.values, tmp_path, request)
    assert not wrong, "\n".join(wrong)
    assert len(source.values) > len(refused) + 10
    if refused:
        good = [each for each in source.values if each.name not in refused]
        assert compared(source, good, tmp_path, request) == ([], [])


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in SOURCES if name not in SLOW])
def test_values_come_out_between_ordinary_ones(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    source, wrong = SOURCES[name], []
    plain = {each.column.type: each for each in VALUES if source.lacks(each.column.type) is None and not traits_of(each)}
    for value in source.values:
        if (ordinary := plain.get(value.column.type)) is not None:
            wrong += compared(source, [ordinary, value, ordinary], tmp_path, request)[0]
    assert not wrong, "\n".join(wrong)


def compared(source: Source, values: list[Value], folder: Path, request: Any) -> tuple[list[str], list[str]]:
    """Return the differences of values that were written and read, and the names of those that are bad rows."""
    batches, bad = source.written_and_read(rows(values), folder, request)
    found, wrong, refused = values_of(batches), [], []
    for row, value in enumerate(values):
        expected = source.expected(value)
        if row not in found:
            refused.append(value.name)
            if not traits_of(value) & source.refuses:
                wrong.append(f"{value.name} is a bad row")
        elif (came := list(found[row].values())) != ([] if expected is None else [expected]):
            wrong.append(f"{value.name}: {expected!r:.100} came out as {came!r:.100}")
    if len(bad) != len(refused):
        wrong.append(f"{len(refused)} rows did not come out, and {len(bad)} are bad")
    return wrong, refused


# ----------------------------------------------------------------------------------------- texts, in columns of each type


@attrs.frozen
class TextSource:
    """A source of text: how its files are written, and what it does to texts that stay text.

    `write`: makes a file of records. `format`: the format for columns of some names. `keeps`: whether a text can be a cell.
    `cell`: the text that a cell stands for; None: null.
    """

    write: Callable[[list[dict[str, str | None]]], bytes]
    format: Callable[[Iterable[str]], Format]
    keeps: Callable[[str], bool] = attrs.field(default=lambda text: True)
    cell: Callable[[str], str | None] = attrs.field(default=lambda text: text or None)


TEXT_SOURCES = {
    "CSV": TextSource(csv_bytes, lambda names: CsvFormat()),
    "CSV in quotes": TextSource(quoted_bytes, lambda names: CsvFormat(), cell=lambda text: text),
    "JSON": TextSource(json_bytes, lambda names: JsonLinesFormat(), cell=lambda text: text),
    "lines": TextSource(regex_bytes, regex_of, lambda text: "\n" not in text),
    "fixed width": TextSource(
        fixed_bytes, fixed_of, lambda text: len(text.encode()) <= WIDTH, cell=lambda text: text.strip(" \0") or None
    ),
}


Cell = tuple[str, Any]
"""A text, and the type of its column."""
QUICK = ("CSV", "JSON")
COLUMNS = 5
JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


@pytest.fixture(scope="module")
def refused_in_json(tmp_path_factory: pytest.TempPathFactory) -> set[Cell]:
    """The texts that are bad rows in lines of JSON, with the types of their columns."""
    cells = [(text, kind) for kind in TYPES for text in TEXTS]
    return set(texts_compared(TEXT_SOURCES["JSON"], cells, tmp_path_factory.mktemp("json"))[1])


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.full] * (name not in QUICK)) for name in TEXT_SOURCES])
def test_texts_in_columns_of_each_type(name: str, tmp_path: Path, refused_in_json: set[Cell]) -> None:
    """A text is its value, or a bad row: the same in each source, and whether bad rows stand beside it or not."""
    source = TEXT_SOURCES[name]
    cells = [(text, kind) for kind in TYPES for text in TEXTS if source.keeps(text)]
    wrong, refused = texts_compared(source, cells, tmp_path)
    assert not wrong, "\n".join(wrong)
    good = [cell for cell in cells if cell not in refused]
    assert len(good) > 700
    assert texts_compared(source, good, tmp_path) == ([], [])
    assert set(refused) == refused_in_json.intersection(cells)


def test_numbers_of_json_in_columns_of_each_type(tmp_path: Path) -> None:
    """Numbers that stand in JSON as such are what their texts are, but no times; as text they are the same number."""
    tokens = [text for text in NUMBERS if JSON_NUMBER.fullmatch(text)]
    cells = [(token, kind) for kind in TYPES for token in tokens if not t.is_binary(kind)]
    names = [column_name(kind) for kind in TYPES]
    for is_among_bad_rows in (True, False):
        lines = [f'{{"n": {n}, "{column_name(kind)}": {token}}}\n' for n, (token, kind) in enumerate(cells)]
        (path := tmp_path / "numbers.jsonl").write_text("".join(lines))
        schema = pa.schema([("n", pa.int64()), *zip(names, TYPES, strict=True)])
        batches, bad = read_files(JsonLinesFormat(), [path], schema)
        found = values_of(batches)
        assert len(bad) == len(cells) - len(found)
        assert bool(bad) == is_among_bad_rows
        for n, (token, kind) in enumerate(cells):
            came, expected = found.get(n, {}).get(column_name(kind), REFUSED), meaning(token, kind)
            if holds_text(kind):
                assert came == REFUSED or float(came) == float(token), (token, kind)
            else:
                assert came in (expected, REFUSED), (token, kind)
        cells = [cell for n, cell in enumerate(cells) if n in found]
    assert len(cells) > 300


def texts_compared(source: TextSource, cells: list[Cell], folder: Path) -> tuple[list[str], list[Cell]]:
    """Return the differences of texts that were written and read, and the bad rows. A file has columns of a few types."""
    wrong, refused = [], []
    for start in range(0, len(TYPES), COLUMNS):
        types = TYPES[start : start + COLUMNS]
        wrong_of_file, refused_of_file = compared_in_file(source, types, [cell for cell in cells if cell[1] in types], folder)
        wrong += wrong_of_file
        refused += refused_of_file
    return wrong, refused


def compared_in_file(source: TextSource, types: list[Any], cells: list[Cell], folder: Path) -> tuple[list[str], list[Cell]]:
    names = [column_name(kind) for kind in types]
    schema = pa.schema([("n", pa.int64()), *zip(names, types, strict=True)])
    records: list[dict[str, str | None]] = [
        {"n": str(n), **dict.fromkeys(names), column_name(kind): text} for n, (text, kind) in enumerate(cells)
    ]
    if not records:
        return [], []
    (path := folder / "texts").write_bytes(source.write(records))
    batches, bad = read_files(source.format(schema.names), [path], schema)
    found, wrong, refused = values_of(batches), [], []
    for n, (text, kind) in enumerate(cells):
        cell = source.cell(text) if holds_text(kind) else text
        expected = None if cell is None else meaning(cell, kind)
        if n not in found:
            refused.append((text, kind))
        elif (came := found[n]) != ({} if expected is None else {column_name(kind): expected}):
            wrong.append(f"{text!r:.60} as {kind}: {expected!r:.60} came out as {came!r:.100}")
    if len(bad) != len(refused):
        wrong.append(f"{len(refused)} rows did not come out, and {len(bad)} are bad")
    return wrong, refused


# ------------------------------------------------------------------------------------------------------ inferred types

ORDINARY = {
    "integer": "7",
    "real": "7.5",
    "truth": "true",
    "day": "2020-05-06",
    "moment": "2020-05-06 07:08:09",
    "clock": "07:08:09",
    "word": "word",
}
OF_CSV = [pytest.param("CSV"), pytest.param("CSV in quotes", marks=pytest.mark.full)]


def again(source: TextSource, text: str, kind: Any) -> Any:
    """The canonical value of a cell in a column whose type was inferred."""
    return source.cell(text) if holds_text(kind) else written_again(text, kind)


@pytest.mark.parametrize("name", OF_CSV)
def test_what_is_in_the_sample_comes_out_as_it_was_written(name: str, tmp_path: Path) -> None:
    """A text between two ordinary ones: no row is bad, and the text is still there, or the number that is written so."""
    source, wrong = TEXT_SOURCES[name], []
    for plain in ORDINARY.values():
        columns = {f"c{n}": text for n, text in enumerate(TEXTS)}
        lines: list[Any] = [dict.fromkeys(columns, plain), columns]
        (path := tmp_path / "values.csv").write_bytes(source.write(lines))
        [batch], bad = read_files(CsvFormat(), [path])
        assert bad == []
        for name_of_column, text in columns.items():
            column = batch.column(name_of_column)
            if (came := canonical(column)) != [again(source, plain, column.type), again(source, text, column.type)]:
                wrong.append(f"{text!r:.60} beside {plain} came out as {came!r:.100}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", OF_CSV)
def test_what_is_behind_the_sample_comes_out_as_it_was_written_or_is_a_bad_row(name: str, tmp_path: Path) -> None:
    source = TEXT_SOURCES[name]
    cells = [(text, column) for column in ORDINARY for text in TEXTS]
    (sample := tmp_path / "a.csv").write_bytes(source.write([{"n": "-1", **ORDINARY}]))
    records: list[dict[str, str | None]] = [
        {"n": str(n), **dict.fromkeys(ORDINARY), column: text} for n, (text, column) in enumerate(cells)
    ]
    (later := tmp_path / "b.csv").write_bytes(source.write(records))
    batches, bad = read_files(CsvFormat(), [sample, later], sample_files=1)
    kinds, found = {field.name: field.type for field in batches[0].schema}, values_of(batches)
    assert not any(holds_text(kind) for column, kind in kinds.items() if column != "word")
    assert len(bad) == len(cells) + 1 - len(found)
    for n, (text, column) in enumerate(cells):
        expected = again(source, text, kinds[column])
        assert n not in found or found[n].get(column) == expected, (text, column)
        assert (n in found) == (expected != REFUSED) or kinds[column] not in (pa.int64(), pa.float64(), pa.string()), (
            text,
            column,
        )


def test_numbers_of_json_that_are_in_the_sample_come_out_as_they_were_written(tmp_path: Path) -> None:
    tokens = [text for text in NUMBERS if JSON_NUMBER.fullmatch(text) and text not in ("1e400", "-1e400") and len(text) < 4300]
    for plain in ("7", "7.5", '"word"', "true", "null"):
        lines = [
            "{" + ", ".join(f'"c{n}": {each}' for n, each in enumerate(row)) + "}\n" for row in ([plain] * len(tokens), tokens)
        ]
        (path := tmp_path / "values.jsonl").write_text("".join(lines))
        [batch], bad = read_files(JsonLinesFormat(), [path])
        assert bad == []
        for n, token in enumerate(tokens):
            column = batch.column(f"c{n}")
            came, is_integer = canonical(column)[1], token.lstrip("-").isdigit()
            if holds_text(column.type):
                assert Decimal(came) == Decimal(token) if is_integer else float(came) == float(token), (plain, token)
            else:
                assert came == meaning(token, column.type), (plain, token)
                assert not is_integer or Decimal(column[1].as_py()) == Decimal(token), (plain, token)
