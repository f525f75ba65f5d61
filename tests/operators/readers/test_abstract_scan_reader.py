"""AbstractScanReader: columns of sources that are not files: messages with a schema each, and rows by ranges of keys."""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic

import attrs
import pyarrow as pa
import pytest
from typing_extensions import TypeVar

from dagflow import DAG, InputOperator, OperatorContext, OutputPort, State, launch
from dagflow.errors import BadRowFound, ColumnUnknown, MissingUntold, ReaderFailed
from dagflow.model.operator.context import OperatorServices
from dagflow.ranges import ByteKey
from dagflow.scan import AgreedSchema, BadRow, BatchLimits, Drift, ManagedReader, RowOrigin, SourceSchemaNegotiator
from dagflow.testing import Collector, assert_reader_is_splittable
from dagflow.testing.files import _Shared
from operators import AbstractScanReader
from operators.logs.blocks import OffsetBlock
from operators.logs.memory import MemoryLog, MemoryLogInput, MemoryServer
from operators.logs.protocol import LogStream

T = TypeVar("T", default=Any)
_names = itertools.count()

# ------------------------------------------------------------------------------------------------- a log, a schema a message

LogNegotiator = SourceSchemaNegotiator[OffsetBlock, LogStream]


class JsonMessages(ManagedReader[LogNegotiator]):
    """Loads a row of each message, with the fields that it has."""

    def open(self, negotiator: LogNegotiator) -> bool:
        self._asking, self._loader = negotiator, negotiator.build()
        self._claimed: deque[tuple[int, bytes]] = deque()
        self._has_more = True
        return True

    def next(self) -> bool:
        if not self._claimed:
            self._claim()
        while self._claimed and self._loader.start(RowOrigin(position=self._claimed[0][0])):
            offset, value = self._claimed.popleft()
            try:
                row = json.loads(value)
            except ValueError as error:
                self._asking.bad_row(str(error), position=offset, raw=value)
                continue
            for name, each in row.items():
                self._loader.set(name, each)
            self._loader.save()
        return bool(self._claimed) or self._has_more

    def _claim(self) -> None:
        batch = self._asking.stream.read(self._asking.block.stop)
        offsets = [] if batch is None else batch.column("offset").to_pylist()
        count = self._asking.claim(offsets)
        self._has_more = bool(offsets) and count == len(offsets)
        if batch is not None:
            self._claimed.extend(zip(offsets[:count], batch.column("value").to_pylist(), strict=False))


@attrs.define
class JsonLogReader(AbstractScanReader[T, OffsetBlock, LogStream], Generic[T]):
    """Reads messages of a MemoryLog as rows."""

    log_name: str = attrs.field(kw_only=True)

    def setup_stream(self, block: OffsetBlock) -> LogStream:
        return MemoryServer(self.log_name).connect().open(block.topic, block.partition, block.start, block.identity)

    def make_reader(self) -> JsonMessages:
        return JsonMessages()

    def can_split(self, item: OffsetBlock) -> bool:
        return True

    def place_of(self, block: OffsetBlock) -> str:
        return block.name


def new_log(*rows: Any) -> MemoryLog:
    log = MemoryLog(f"rows-{next(_names)}", batch_messages=3)
    log.create("events")
    for row in rows:
        log.append("events", row if isinstance(row, bytes) else json.dumps(row).encode())
    return log


def block_of(log: MemoryLog, start: int = 0, stop: int | None = None, number: int = 0) -> OffsetBlock:
    return OffsetBlock(number, "events", 0, start, log.topics["events"][0].end if stop is None else stop)


def table_of(reader: Any, *blocks: Any) -> pa.Table:
    agreed = AgreedSchema.of(reader.agree(list(blocks), None, OperatorContext(name="reader")))
    scan = reader._made(agreed, OperatorContext(name="reader"))
    batches = [batch for block in blocks for batch in scan.read(block)]
    return pa.Table.from_batches(batches) if batches else scan.finish().empty_table()


def test_columns_of_all_sampled_blocks_are_settled_before_the_first_row() -> None:
    log = new_log({"a": 1}, {"b": "x"}, {"a": 2.5, "c": [1]})
    blocks = [block_of(log, number, number + 1, number) for number in range(3)]
    table = table_of(JsonLogReader(log_name=log.name), *blocks)
    assert table.schema == pa.schema({"a": pa.float64(), "b": pa.string(), "c": pa.list_(pa.int64())})
    assert table.to_pylist() == [
        {"a": 1.0, "b": None, "c": None},
        {"a": None, "b": "x", "c": None},
        {"a": 2.5, "b": None, "c": [1]},
    ]


def test_projection_and_types_of_the_user() -> None:
    log = new_log({"a": "1", "m": {"x": 1, "y": 2}}, {"a": "2", "m": {"x": 3}, "other": 1})
    reader = JsonLogReader(log_name=log.name, columns=["m.x", "a"], schema="a: int32")
    assert table_of(reader, block_of(log)).to_pylist() == [{"m.x": 1, "a": 1}, {"m.x": 3, "a": 2}]
    assert reader.column_names("batches") == ["m.x", "a"]
    with pytest.raises(ColumnUnknown, match="no_such"):
        table_of(JsonLogReader(log_name=log.name, columns=["no_such"]), block_of(log))
    with pytest.raises(ColumnUnknown, match="filename"):
        table_of(JsonLogReader(log_name=log.name, columns=["filename"]), block_of(log))


@attrs.define
class Order:
    id: int
    price: float | None = None


def test_the_fields_of_a_class_are_the_columns(tmp_path: Path) -> None:
    log = new_log({"id": 1, "more": 1}, {"id": "2", "price": 3})
    reader = JsonLogReader[Order](log_name=log.name)
    rows, _ = launched(log, reader, tmp_path)
    assert rows == [{"id": 1, "price": None}, {"id": 2, "price": 3.0}]


@pytest.mark.parametrize(
    ("drift", "rows"),
    [
        ({"extra": "ignore"}, [{"a": 1}]),
        ({"extra": "widen"}, [{"a": 1, "b": 1}]),
        ({"extra": "rescue"}, [{"a": 1, "_rescued": '{"b": 1}'}]),
    ],
)
def test_drift_of_later_windows(drift: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    log = new_log({"a": 0})
    reader = JsonLogReader(log_name=log.name, drift=Drift(**drift))
    before = reader.agree([block_of(log)], None, OperatorContext(name="reader"))
    log.append("events", b'{"a": 1, "b": 1}')
    block = block_of(log, 1)
    agreed = reader.agree([block], before, OperatorContext(name="reader"))
    scan = reader._made(AgreedSchema.of(agreed), OperatorContext())
    assert [row for batch in scan.read(block) for row in batch.to_pylist()] == rows


def test_missing_columns_are_an_error_where_they_must_be_there() -> None:
    log = new_log({"a": 1}, {"b": 1})
    reader = JsonLogReader(log_name=log.name, drift=Drift(missing="error"))
    with pytest.raises(MissingUntold, match=r"events\[0\]"):
        table_of(reader, block_of(log, 0, 1), block_of(log, 1, 2, 1))


def test_bad_rows_name_the_place_and_the_offset(tmp_path: Path) -> None:
    log = new_log({"a": 1}, b"no json", {"a": "x"})
    with pytest.raises(BadRowFound, match=r"events\[0\]") as raised:
        table_of(JsonLogReader(log_name=log.name, schema="a: int64"), block_of(log))
    assert (raised.value.path, raised.value.position) == ("events[0]", 1)
    reader = JsonLogReader(log_name=log.name, schema="a: int64", on_bad_row="route")
    rows, bad = launched(log, reader, tmp_path)
    assert rows == [{"a": 1}]
    assert [(row.file_path, row.position, row.column) for row in bad] == [("events[0]", 1, None), ("events[0]", 2, "a")]


def test_batches_are_small_and_rows_have_an_origin() -> None:
    log = new_log(*({"n": n} for n in range(6)))
    reader = JsonLogReader(log_name=log.name, limits=BatchLimits(rows=2))
    agreed = AgreedSchema.of(reader.agree([block_of(log)], None, OperatorContext()))
    scan = reader._made(agreed, OperatorContext())
    origins = [(batch.num_rows, scan.origin(batch.num_rows - 1).position) for batch in scan.read(block_of(log))]
    assert origins == [(2, 1), (1, 2), (2, 4), (1, 5)]


def test_any_cut_and_any_steal() -> None:
    log = new_log(*({"n": n} for n in range(25)))
    log.compact("events", 0, {3, 4, 11, 24})
    kept = log.topics["events"][0].messages

    def make_reader(path: str, tracker: Any) -> Iterator[tuple[int, bool, Any]]:
        class Tracked(JsonLogReader):
            def tracker_of(self, item: Any) -> Any:
                return tracker

        reader = Tracked(log_name=log.name, schema="n: int64")
        context = OperatorContext(name="reader", services=OperatorServices(stealable=_Shared()))
        scan = reader._made(AgreedSchema(), context)
        try:
            for batch in scan.read(block_of(log, tracker.start_position, tracker.stop_position)):
                for number, row in enumerate(batch.to_pylist()):
                    yield scan.origin(number).position or 0, True, row["n"]
        finally:
            scan.close()

    values = [json.loads(each.value or b"")["n"] for each in kept]
    assert_reader_is_splittable(make_reader, "events", values, bounds=(0, 25), effort=0.2)


def test_a_reader_that_raises_is_named_with_its_range() -> None:
    class Failing(JsonLogReader):
        def make_reader(self) -> JsonMessages:
            class Broken(JsonMessages):
                def next(self) -> bool:
                    raise KeyError("a bug")

            return Broken()

    log = new_log({"a": 1})
    with pytest.raises(ReaderFailed, match=r"events\[0\]: Broken.next\(\) failed in the range 0 to 1"):
        table_of(Failing(log_name=log.name), block_of(log))


def launched(log: MemoryLog, reader: Any, folder: Path) -> tuple[list[dict[str, Any]], list[BadRow]]:
    """Launch an application once, two blocks a window. Return the rows and the bad rows."""
    rows, bad = Collector[Any](), Collector[Any]()

    def populate_dag(dag: DAG, conf: Any) -> None:
        splitter = dag.add_operator("splitter", MemoryLogInput(log.name, topics="events", block_records=3, window_blocks=2))
        reading = dag.add_operator("reader", reader)
        dag.add_stream("blocks", splitter.blocks_metadata_output, reading.blocks_metadata_input)
        dag.add_stream("rows", reading.batches, dag.add_operator("seen", rows).input)
        dag.add_stream("bad", reading.errors, dag.add_operator("bad", bad).input)

    launch(populate_dag, runner="local", run_folder=str(folder / "run"), durability="process")
    return [attrs.asdict(row) if attrs.has(type(row)) else dict(row) for row in rows.records], list(bad.records)


def test_launches(tmp_path: Path) -> None:
    log = new_log(*({"n": n} for n in range(20)))
    assert sorted(row["n"] for row in launched(log, JsonLogReader(log_name=log.name), tmp_path)[0]) == list(range(20))
    log.append("events", b'{"n": 20}')
    assert launched(log, JsonLogReader(log_name=log.name), tmp_path)[0] == [{"n": 20}]


# ------------------------------------------------------------------------------------------------------ a table, by its keys


@attrs.frozen
class KeyRange:
    """The rows of a table whose keys lie in `[start, stop)`."""

    block_id: int
    start: bytes
    stop: bytes


class Rows(ManagedReader[SourceSchemaNegotiator[KeyRange, sqlite3.Connection]]):
    """Loads rows in the order of their keys, which it claims."""

    def open(self, negotiator: SourceSchemaNegotiator[KeyRange, sqlite3.Connection]) -> bool:
        block = negotiator.block
        query = "SELECT name, age FROM people WHERE name >= ? AND name < ? ORDER BY name"
        self._rows = negotiator.stream.execute(query, [block.start.decode(), block.stop.decode()])
        negotiator.set_table_schema(pa.schema({"name": pa.string(), "age": pa.int64()}))
        self._asking, self._loader = negotiator, negotiator.build()
        return True

    def next(self) -> bool:
        rows = self._rows.fetchmany(4)
        count = self._asking.claim([name.encode() for name, _ in rows])
        if count:
            names, ages = zip(*rows[:count], strict=True)
            self._loader.add_batch(pa.record_batch({"name": list(names), "age": pa.array(ages, pa.int64())}))
        return bool(rows) and count == len(rows)


@attrs.define
class KeyReader(AbstractScanReader[Any, KeyRange, sqlite3.Connection]):
    """Reads ranges of keys. A ByteKeyRangeTracker guards them, without any code here."""

    database: str = attrs.field(kw_only=True)

    def setup_stream(self, block: KeyRange) -> sqlite3.Connection:
        return sqlite3.connect(self.database)

    def make_reader(self) -> Rows:
        return Rows()

    def can_split(self, item: KeyRange) -> bool:
        return True


@attrs.define
class KeyInput(InputOperator):
    output = OutputPort[KeyRange]()
    is_planned = State(False)

    def emit_tuples(self) -> None:
        if not self.is_planned:
            self.is_planned = True
            for number, (start, stop) in enumerate([(b"a", b"k"), (b"k", b"z")]):
                self.output.emit(KeyRange(number, start, stop))

    def is_exhausted(self) -> bool:
        return self.is_planned


def test_a_source_by_ranges_of_keys(tmp_path: Path) -> None:
    names = [f"{letter}{number}" for letter in "abkxy" for number in range(7)]
    connection = sqlite3.connect(tmp_path / "people.db")
    with connection:
        connection.execute("CREATE TABLE people (name TEXT PRIMARY KEY, age INTEGER)")
        connection.executemany("INSERT INTO people VALUES (?, ?)", [(name, len(name)) for name in names])
    connection.close()
    rows: Collector[Any] = Collector()

    def populate_dag(dag: DAG, conf: Any) -> None:
        ranges = dag.add_operator("ranges", KeyInput())
        reader = dag.add_operator("reader", KeyReader(database=str(tmp_path / "people.db"), columns=["name"]))
        dag.add_stream("blocks", ranges.output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, dag.add_operator("seen", rows).input)

    launch(populate_dag, runner="local", run_folder=str(tmp_path / "run"), durability="process")
    assert sorted(row["name"] if isinstance(row, dict) else row.name for row in rows.records) == names

    reader = KeyReader(database=str(tmp_path / "people.db"))
    tracker = reader.tracker_of(KeyRange(0, b"a", ByteKey(b"y").next_key()))
    assert tracker.try_return_batch_at([b"a0", b"b3", b"x"]) == 3
    assert tracker.try_split_at_fraction(0.99) is not None
