"""Each sink refuses before a window is decided what its store would refuse for ever: the run is never stuck.

`REFUSALS` is the table: a sink, a store with a rule, rows that break it, and rows that do not. A sink that is not in it fails
`test_each_sink_has_refusals`.
"""

from __future__ import annotations

import contextlib
import datetime
import inspect
import sqlite3
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import operators
from dagflow import Sink, SinkLaunch, launch
from dagflow.errors import ColumnNamesClash, DagflowError, RowsRefused, TypeNotWritable
from dagflow.runtime.run_folder.window_log import WindowLog
from operators import DeltaWriter, FileSplitterInput, IcebergWriter, KafkaWriter, ParquetFormat, ScanReader
from operators.sinks.table_formats.errors import TableSchemaDiffers
from tests.logs import brokers
from tests.logs.mock_cluster import MockCluster
from tests.operators.databases import Database
from tests.operators.sinks.tables import staged_window

deltalake = pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")


@attrs.frozen
class Setting:
    """A setting of a topic, as servers describe it."""

    value: str


@attrs.frozen
class Refusal:
    """A rule of a store. `prepare`: makes the store, and returns the sink; `bad`: rows that break the rule; `good`: others."""

    sink: str
    name: str
    prepare: Callable[[Path], Any]
    bad: pa.Table
    good: pa.Table
    message: str


def delta(schema: list[Any] | None = None, configuration: dict[str, str] | None = None, **properties: Any) -> Any:
    def prepare(folder: Path) -> Any:
        if schema is not None:
            fields = [deltalake.Field(*field) if len(field) == 2 else deltalake.Field(*field[:2], **field[2]) for field in schema]
            deltalake.DeltaTable.create(folder / "table", deltalake.Schema(fields), configuration=configuration)
        return DeltaWriter(str(folder / "table"), **properties)

    return prepare


def constrained(folder: Path) -> Any:
    sink = delta([("n", "long"), ("v", "long")], mode="upsert", keys=["n"])(folder)
    deltalake.DeltaTable(folder / "table").alter.add_constraint({"positive": "v > 0"})
    return sink


def iceberg(fields: list[Any] | None = None, **properties: Any) -> Any:
    def prepare(folder: Path) -> Any:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.schema import Schema

        catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/warehouse"}
        if fields is not None:
            loaded: Any = load_catalog(**catalog)
            loaded.create_namespace("shop")
            loaded.create_table("shop.t", Schema(*fields))
            loaded.close()
        return IcebergWriter("shop.t", catalog, **properties)

    return prepare


def required(kind: Any, number: int = 1, name: str = "n") -> Any:
    from pyiceberg.types import NestedField

    return NestedField(number, name, kind, required=True)


def sql(statement: str, kind: str = "sqlite", **properties: Any) -> Any:
    def prepare(folder: Path) -> Any:
        database = Database(kind, f"sqlite:///{folder}/shop.db") if kind == "sqlite" else Database(kind, POSTGRES[0])
        if kind == "postgres":
            database.run("DROP TABLE IF EXISTS sales; DROP TABLE IF EXISTS _dagflow_windows")
        if statement:
            database.run(statement)
        return database.writer(**properties)

    return prepare


POSTGRES: list[str] = []
NATS: list[str] = []


def rows(**columns: Any) -> pa.Table:
    return pa.table(columns)


def _longs() -> Any:
    from pyiceberg.types import LongType

    return LongType()


NULL = rows(n=pa.array([1, None], pa.int64())), rows(n=[1, 2])
LATE = pa.array([2**62], pa.timestamp("us")), pa.array([datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us"))  # noqa: DTZ001
TWICE = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
UPSERT: dict[str, Any] = {"mode": "upsert", "keys": ["n"]}
EVOLVE: dict[str, Any] = {"on_schema_change": "evolve"}
FORMATS = [("delta", delta), ("iceberg", iceberg)]
REFUSALS = [
    Refusal("delta", "not null", delta([("n", "long", {"nullable": False})]), *NULL, "has null"),
    Refusal("iceberg", "not null", iceberg([required(_longs())]), *NULL, "has null"),
    Refusal("iceberg", "not null, merged", iceberg([required(_longs())], **UPSERT), *NULL, "has null"),
    Refusal(
        "iceberg", "float keys", iceberg(**UPSERT), rows(n=[0.0, -0.0]), rows(n=[1, 2]), "which the keys of Iceberg does not"
    ),
    Refusal("delta", "constraint", constrained, rows(n=[1], v=[-1]), rows(n=[1], v=[1]), "refuses rows: .*validation check"),
    Refusal("delta", "names", delta(), rows(n=[1], N=[1]), rows(n=[1]), "'n' and 'N' are one column"),
    Refusal("iceberg", "names with dots", iceberg(), rows(**{"a.b": [1], "a": [{"b": 1}]}), rows(n=[1]), "a.b"),
    Refusal(
        "delta", "empty partition", delta(partition_columns=["p"]), rows(p=[""], n=[1]), rows(p=["a"], n=[1]), "an empty text"
    ),
    *(
        each
        for name, make in FORMATS
        for each in (
            Refusal(name, "time", make(), rows(n=LATE[0]), rows(n=LATE[1]), "years 1 to 9999"),
            Refusal(name, "nested time", make(), rows(n=[[LATE[0][0]]]), rows(n=[[LATE[1][0]]]), "years 1 to 9999"),
            Refusal(name, "nested keys", make(**UPSERT), rows(n=[[1]], v=[1]), rows(n=[1], v=[1]), "the keys of"),
            Refusal(
                name,
                "long folder",
                make(partition_columns=["p"]),
                rows(p=["中" * 30], n=[1]),
                rows(p=["a"], n=[1]),
                "longer than 240",
            ),
            Refusal(
                name,
                "long folder, merged",
                make(partition_columns=["p"], **UPSERT),
                rows(p=["中" * 30], n=[1]),
                rows(p=["a"], n=[1]),
                "longer than 240",
            ),
        )
    ),
    *(
        Refusal(kind, rule, sql(f"CREATE TABLE sales ({columns})", kind, **properties), bad, good, message)
        for kind in ("sqlite", "postgres")
        for rule, columns, properties, bad, good, message in (
            ("not null", "n INTEGER NOT NULL", {}, *NULL, "has null"),
            ("missing", "n INTEGER, v INTEGER NOT NULL", {}, rows(n=[1]), rows(n=[1], v=[1]), "'v' is missing|'v' has null"),
            ("check", "n INTEGER CHECK (n < 3)", {}, rows(n=[5]), rows(n=[1]), r"(?is)check constraint.*a\.parquet, position 4"),
            ("check, merged", "n INTEGER PRIMARY KEY CHECK (n < 3)", UPSERT, rows(n=[5]), rows(n=[1]), "(?i)check constraint"),
            ("unique", "n INTEGER UNIQUE", {}, rows(n=[1, 1]), rows(n=[1, 2]), "(?i)unique"),
            ("unique, replaced", "n INTEGER UNIQUE", {"mode": "replace"}, rows(n=[1, 1]), rows(n=[1, 2]), "(?i)unique"),
            ("evolved", "n INTEGER UNIQUE", EVOLVE, rows(n=[1, 1], v=[1, 2]), rows(n=[1], v=[1]), "(?i)unique"),
            ("new column", "n INTEGER", {}, rows(n=[1], v=[1]), rows(n=[1]), "'v' .*is not in the table"),
        )
    ),
    *(
        Refusal("postgres", rule, sql(f"CREATE TABLE sales ({columns})", "postgres"), bad, good, message)
        for rule, columns, bad, good, message in (
            ("length", "n varchar(2)", rows(n=["abc"]), rows(n=["ab"]), "takes 2 characters"),
            ("integer", "n smallint", rows(n=[70_000]), rows(n=[7]), "takes -32,768 to 32,767"),
            ("digits", "n numeric(3,1)", rows(n=[Decimal("100.0")]), rows(n=[Decimal("1.5")]), "numeric"),
            ("syntax", "n uuid", rows(n=["x"]), rows(n=["6ba7b810-9dad-11d1-80b4-00c04fd430c8"]), "uuid"),
            ("zero", "n text", rows(n=["a\0"]), rows(n=["a"]), "NUL"),
            ("generated", "n int, v int GENERATED ALWAYS AS (n) STORED", rows(n=[1], v=[1]), rows(n=[1]), "non-DEFAULT"),
            (
                "in the table",
                "n int UNIQUE); INSERT INTO sales VALUES (5",
                rows(n=[5]),
                rows(n=[1]),
                r"Key \(n\)=\(5\) already exists",
            ),
        )
    ),
]


def refusal_of_kafka(cluster: MockCluster) -> Refusal:
    cluster.create("out", 2)
    sink = KafkaWriter(cluster.bootstrap, "out", partition="n", value="v", timeout=5)
    return Refusal("kafka", "partition", lambda _: sink, rows(n=[7], v=["a"]), rows(n=[1], v=["a"]), "has 2 partitions")


def application(source: Path, sink: Any) -> Any:
    def populate_dag(dag: Any, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(str(source)))
        reader = dag.add_operator("reader", ScanReader(ParquetFormat()))
        out = dag.add_operator("out", sink)
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, out.input)

    return populate_dag


def check(refusal: Refusal, folder: Path) -> None:
    """Launch with bad rows, which must be refused while no window is decided; then with good ones, which go through."""
    sink = refusal.prepare(folder)
    source, run = folder / "in", folder / "run"
    source.mkdir()
    pq.write_table(refusal.bad, source / "a.parquet")
    with pytest.raises(DagflowError, match=refusal.message):
        launch(application(source, sink), {"run_folder": str(run)}, runner="local")
    assert WindowLog.open(str(run), durable=False).windows("decision") == []
    pq.write_table(refusal.good, source / "a.parquet")
    report = launch(application(source, sink), {"run_folder": str(run), "fresh": True}, runner="local").report
    assert (report.status, report.windows) == ("done", 1)


@pytest.mark.parametrize(
    "refusal", [each for each in REFUSALS if each.sink != "postgres"], ids=lambda each: f"{each.sink}: {each.name}"
)
def test_refusals_come_before_the_decision(refusal: Refusal, tmp_path: Path) -> None:
    check(refusal, tmp_path)


@pytest.mark.parametrize("make", [delta, iceberg])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (rows(n=pa.nulls(1)), "is of type null"),
        (rows(n=[1], v=[{}]), "is of type struct<>"),
        (TWICE, "two columns are named 'n'"),
    ],
)
def test_batches_that_no_file_holds_are_refused_in_the_task(make: Any, bad: pa.Table, message: str, tmp_path: Path) -> None:
    with pytest.raises((TypeNotWritable, ColumnNamesClash), match=message):
        staged_window(make()(tmp_path), 0, *bad.to_batches())


def fields_without_nulls(make: Any) -> dict[str, Any]:
    """Columns with a field that takes no nulls in them, as a format describes them, by the name of that field."""
    if make is delta:
        from deltalake.schema import ArrayType, MapType, StructType

        struct: Any = StructType([deltalake.Field("a", "long", nullable=False)])
        kinds = {
            "n.a": struct,
            "n.element.a": ArrayType(struct),
            "n.element": ArrayType("long", contains_null=False),
            "n.value": MapType("string", "long", value_contains_null=False),
        }
        return {path: ("n", kind) for path, kind in kinds.items()}
    from pyiceberg.types import ListType, LongType, MapType, NestedField, StringType, StructType

    struct = StructType(NestedField(4, "a", LongType(), required=True))
    kinds = {
        "n.a": struct,
        "n.element.a": ListType(3, struct, element_required=False),
        "n.element": ListType(3, LongType(), element_required=True),
        "n.value": MapType(2, StringType(), 3, LongType(), value_required=True),
    }
    return {path: NestedField(1, "n", kind, required=False) for path, kind in kinds.items()}


@pytest.mark.parametrize("make", [delta, iceberg])
@pytest.mark.parametrize("path", ["n.a", "n.element.a", "n.element", "n.value"])
def test_a_table_with_a_field_without_nulls_in_a_column_is_refused_at_launch(make: Any, path: str, tmp_path: Path) -> None:
    sink = make([fields_without_nulls(make)[path]])(tmp_path)
    with pytest.raises(TableSchemaDiffers, match=f"'{path}' within a column takes no nulls"):
        sink.check_store(SinkLaunch(name="app", sink="sink"))


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize(
    ("make", "one", "other", "message"),
    [
        (delta, {"v": 1}, {"V": 1}, "'v' and 'V' are one column"),
        (delta, {"v": [1]}, {"v": {"a": 1}}, "'v' is list.* in some rows, and string in all"),
        (iceberg, {"v": 2**60 + 1}, {"v": 1.5}, "'v' is int64 in some rows, and double in all\n  help: Integer value"),
    ],
)
def test_files_of_two_tasks_that_do_not_go_into_one_table_are_refused(
    make: Any, mode: str, one: Any, other: Any, message: str, tmp_path: Path
) -> None:
    sink = make(mode=mode, keys=["n"] if mode == "upsert" else [])(tmp_path)
    windows = [staged_window(sink, 0, *pa.Table.from_pylist([{"n": 1, **each}]).to_batches()) for each in (one, other)]
    window = attrs.evolve(windows[0], staged=windows[0].staged + windows[1].staged)
    with pytest.raises((ColumnNamesClash, TableSchemaDiffers), match=message):
        sink.check_window(window)
    sink.check_window(windows[0])
    sink.publish(windows[0])


def test_rows_of_several_batches_are_compared_before_the_decision(tmp_path: Path) -> None:
    sink, run = sql("CREATE TABLE sales (n INTEGER UNIQUE)")(tmp_path), tmp_path / "run"
    for number in range(2):
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(rows(n=[1, number + 2]), tmp_path / "in" / f"{number}.parquet")
    settings = {"run_folder": str(run)}
    with pytest.raises(
        RowsRefused, match=r"(?is)unique.*the window is not decided.*operator 'out' in check_window\(\), window 0"
    ):
        launch(application(tmp_path / "in", sink), settings, runner="local")
    assert WindowLog.open(str(run), durable=False).windows("decision") == []
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        database.execute("DROP TABLE sales")
    assert launch(application(tmp_path / "in", sink), settings, runner="local").report.windows == 1


@pytest.mark.full
@pytest.mark.parametrize("refusal", [each for each in REFUSALS if each.sink == "postgres"], ids=lambda each: each.name)
def test_refusals_of_postgres_come_before_the_decision(refusal: Refusal, postgres: Database, tmp_path: Path) -> None:
    POSTGRES[:] = [postgres.address]
    check(refusal, tmp_path)


def test_refusals_of_kafka_come_before_the_decision(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    with contextlib.closing(MockCluster(1)) as cluster:
        check(refusal_of_kafka(cluster), tmp_path)


def test_messages_without_a_key_for_a_compacted_topic_are_refused_before_the_decision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("confluent_kafka")
    from operators.sinks.logs.kafka import OpenTopic

    # the mock cluster does not know settings of topics
    monkeypatch.setattr(OpenTopic, "_config", lambda _: {"cleanup.policy": Setting("compact,delete")})
    with contextlib.closing(MockCluster(1)) as cluster:
        cluster.create("out", 2)
        sink = KafkaWriter(cluster.bootstrap, "out", key="k", value="v", timeout=5)
        bad, good = rows(k=["a", None], v=["a", "b"]), rows(k=["a"], v=["a"])
        check(Refusal("kafka", "no key", lambda _: sink, bad, good, "takes no messages without a key"), tmp_path)


@pytest.fixture
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A NATS server with a stream."""
    pytest.importorskip("nats")
    with brokers.nats(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.mark.full
def test_refusals_of_nats_come_before_the_decision(nats: Any, tmp_path: Path) -> None:
    from operators import NatsWriter
    from tests.logs.any_log import with_jetstream

    async def add(jetstream: Any) -> None:
        await jetstream.add_stream(name="S", subjects=["orders.*"])

    with_jetstream(nats.url, add)
    sink = NatsWriter(nats.url, "S", "{s}", value="v", settle=0.1, timeout=5.0)
    bad, good = rows(s=["bills.1"], v=["a"]), rows(s=["orders.1"], v=["a"])
    check(Refusal("nats", "subject", lambda _: sink, bad, good, r"has the subjects orders\.\*"), tmp_path)


def test_each_sink_has_refusals() -> None:
    sinks = {
        name
        for name in operators.__all__
        if inspect.isclass(each := getattr(operators, name)) and issubclass(each, Sink) and each is not Sink
    }
    known = {"delta": "DeltaWriter", "iceberg": "IcebergWriter", "sqlite": "SqlWriter", "postgres": "PostgresWriter"}
    assert sinks == {*(known[each.sink] for each in REFUSALS), "KafkaWriter", "NatsWriter"}
