"""Applications whose rows are traced, by name, so that they can be loaded again; and tracing them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow.compute as pc

from dagflow import DAG, ErrorRecord, InputPort, MapState, Operator, OutputPort, ReaderRecord, State, WindowState
from dagflow.config import Secret
from dagflow.lineage.trace import ApplicationLocator, Trace, trace
from dagflow.scaling import StatelessPartitioner
from operators import (
    BlockReader,
    DatasetInput,
    Deduplicate,
    Distinct,
    FileSplitterInput,
    Filter,
    FlatMap,
    GroupBy,
    HashJoin,
    JsonLinesWriter,
    Map,
    RecordWriter,
    Select,
    Sum,
    TopN,
    Tumbling,
    agg,
    col,
    window,
)
from operators import Count as CountBy
from tests.of_windows import OfWindows


@attrs.define
class Settings:
    input: str
    output: str
    block_size: int = 1 << 20
    per_block: bool = False
    readers: int = 16
    prefix: str = "."
    threshold: int = 0
    password: Secret = "none"
    key: Secret = "none"
    context: Any = None


def reading(dag: DAG, conf: Settings, reader: BlockReader[Any] | None = None) -> Any:
    files = FileSplitterInput(files=conf.input, block_size=conf.block_size)
    if conf.threshold:
        files.blocks_threshold = conf.threshold
    splitter = dag.add_operator("splitter", files)
    found = dag.add_operator("reader", reader or BlockReader(max_readers=conf.readers))
    dag.add_stream("blocks", splitter.blocks_metadata_output, found.blocks_metadata_input)
    return found


def through(dag: DAG, conf: Settings, operator: Any, reader: Any = None, writer: Any = None) -> Any:
    middle = dag.add_operator("middle", operator)
    sink = dag.add_operator("writer", writer or RecordWriter(path=conf.output, per_block=conf.per_block))
    dag.add_stream("lines", reading(dag, conf, reader).messages, middle.input)
    dag.add_stream("made", middle.output, sink.input)
    return sink


def filtered(dag: DAG, conf: Settings) -> None:
    prefix = conf.prefix
    through(dag, conf, Filter(lambda record: not record.record.startswith(prefix)))


def replacing(dag: DAG, conf: Settings) -> None:
    """Each window replaces the rows of the one before."""
    keep = OfWindows(lambda record: not record.record.startswith("."))
    through(dag, conf, keep, writer=RecordWriter(path=conf.output, mode="replace"))


def in_batches(dag: DAG, conf: Settings) -> None:
    through(dag, conf, Filter[ReaderRecord[str]](~pc.starts_with(pc.field("record"), conf.prefix)))


def dealt(dag: DAG, conf: Settings) -> None:
    """The writer stands behind an exchange."""
    through(dag, conf, Map[ReaderRecord[str], str](upper))
    dag.set_attributes(dag.operators["middle"].operator, partitioner=StatelessPartitioner(3))


def keyed(dag: DAG, conf: Settings) -> None:
    """The writer stands behind an exchange by key, whose keys are dealt by mask."""
    through(dag, conf, Map[ReaderRecord[str], str](upper))
    dag.set_attributes(dag.operators["middle"].operator, partitioner=StatelessPartitioner(3), partition_by="record")


def position(line: ReaderRecord[str]) -> int:
    return line.position


def windows(dag: DAG, conf: Settings) -> None:
    """The writer gets windows of event time."""
    splitter = dag.add_operator("splitter", FileSplitterInput(files=conf.input, block_size=conf.block_size, blocks_threshold=1))
    reader = dag.add_operator("reader", BlockReader(max_readers=1))
    counts = dag.add_operator("counts", Tumbling[ReaderRecord[str], None, int](1, time=position, scope="window"))
    text = dag.add_operator("text", Map(str))
    sink = dag.add_operator("writer", RecordWriter(path=conf.output))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, counts.input)
    dag.add_stream("counts", counts.output, text.input)
    dag.add_stream("text", text.output, sink.input)


def first_letter(line: ReaderRecord[str]) -> str:
    return line.record[:1]


@attrs.define
class Tally(Operator):
    """The number of each line among those of its first letter."""

    input = InputPort[ReaderRecord[str]](partition_by=first_letter)
    output = OutputPort[str]()
    totals = MapState[str, int]()

    @input.process
    def each(self, line: ReaderRecord[str]) -> None:
        letter = first_letter(line)
        self.totals[letter] = self.totals.get(letter, 0) + 1
        self.output.emit(f"{letter} {self.totals[letter]}")


def running(dag: DAG, conf: Settings) -> None:
    """The number of lines of each first letter, over all windows."""
    splitter = dag.add_operator("splitter", FileSplitterInput(files=conf.input, block_size=conf.block_size, blocks_threshold=1))
    reader = dag.add_operator("reader", BlockReader(max_readers=1))
    counted = dag.add_operator("counted", Tally(), partitioner=StatelessPartitioner(conf.readers))
    sink = dag.add_operator("writer", RecordWriter(path=conf.output))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, counted.input)
    dag.add_stream("counts", counted.output, sink.input)


def growing(dag: DAG, conf: Settings) -> None:
    through(dag, conf, Map[ReaderRecord[str], str](upper), BlockReader(allow_growth=True))


def careless(dag: DAG, conf: Settings) -> None:
    splitter = dag.add_operator("splitter", FileSplitterInput(files=conf.input, idempotent=False))
    reader = dag.add_operator("reader", BlockReader(max_readers=1))
    sink = dag.add_operator("writer", RecordWriter(path=conf.output))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, sink.input)


def upper(record: ReaderRecord[str]) -> str:
    return f"<{record.record.upper()}>"


def mapped(dag: DAG, conf: Settings) -> None:
    through(dag, conf, Map[ReaderRecord[str], str](upper))


def words(record: ReaderRecord[str]) -> list[str]:
    return record.record.split()


def split(dag: DAG, conf: Settings) -> None:
    through(dag, conf, FlatMap[ReaderRecord[str], str](words))


@attrs.define
class Count(Operator):
    """The number of lines of a task, emitted at its end."""

    scope = "window"

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()
    seen = WindowState(0)

    @input.process
    def each(self, record: ReaderRecord[str]) -> None:
        self.seen += 1

    def end_window(self) -> None:
        self.output.emit(str(self.seen))


def counted(dag: DAG, conf: Settings) -> None:
    through(dag, conf, Count())


@attrs.define
class Numbered(Operator):
    """Puts a number before each line that goes on over windows."""

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()
    number = State(0, merge=sum)

    @input.process
    def each(self, record: ReaderRecord[str]) -> None:
        self.number += 1
        self.output.emit(f"{self.number} {record.record}")


def numbered(dag: DAG, conf: Settings) -> None:
    through(dag, conf, Numbered())


@attrs.define
class LazyWriter(Operator):
    """A sink that counts what it has written only at the end."""

    path: str
    without: str = "\n"
    input = InputPort[ReaderRecord[str]]()
    lines = WindowState(factory=list)

    def output_folders(self) -> list[str]:
        return [self.path]

    def setup(self, context: Any) -> None:
        self.context = context

    @input.process
    def each(self, record: ReaderRecord[str]) -> None:
        if not record.record.startswith(self.without):
            self.lines.append(record.record)

    def end_window(self) -> None:
        if self.lines:
            file = self.context.create_file(self.path, f"lazy-{self.context.window}-{self.context.partition}")
            file.write("".join(f"{line}\n" for line in self.lines).encode())
            file.records(len(self.lines))


def lazily(dag: DAG, conf: Settings) -> None:
    sink = dag.add_operator("writer", LazyWriter(conf.output))
    dag.add_stream("lines", reading(dag, conf).messages, sink.input)


def lazily_without_some(dag: DAG, conf: Settings) -> None:
    sink = dag.add_operator("writer", LazyWriter(conf.output, without=conf.prefix))
    dag.add_stream("lines", reading(dag, conf).messages, sink.input)


def as_number(data: bytes) -> int:
    return int(data)


@attrs.define
class ErrorText(Operator):
    input = InputPort[ErrorRecord]()
    output = OutputPort[str]()

    @input.process
    def each(self, error: ErrorRecord) -> None:
        self.output.emit(error.record)


def with_errors(dag: DAG, conf: Settings) -> None:
    """Numbers here, and the lines that are none there."""
    reader = reading(dag, conf, BlockReader(as_number, on_error="route"))
    text = dag.add_operator("text", Map[ReaderRecord[int], str](lambda record: str(record.record)))
    good = dag.add_operator("good", RecordWriter(path=f"{conf.output}/good"))
    bad = dag.add_operator("bad", RecordWriter(path=f"{conf.output}/bad"))
    told = dag.add_operator("told", Filter[ErrorRecord](lambda error: True))
    words = dag.add_operator("words", ErrorText())
    dag.add_stream("numbers", reader.messages, text.input)
    dag.add_stream("texts", text.output, good.input)
    dag.add_stream("errors", reader.errors, told.input)
    dag.add_stream("told", told.output, words.input)
    dag.add_stream("words", words.output, bad.input)


@attrs.define
class Pairs(Operator):
    """Every second line, with the one before it."""

    scope = "window"

    input = InputPort[ReaderRecord[str]]()
    output = OutputPort[str]()
    before = WindowState("")

    @input.stream
    def each(self, records: Iterator[ReaderRecord[str]]) -> None:
        for record in records:
            if self.before:
                self.output.emit(f"{self.before}+{record.record}")
                self.before = ""
            else:
                self.before = record.record


def paired(dag: DAG, conf: Settings) -> None:
    through(dag, conf, Pairs())


def derived(dag: DAG, conf: Settings) -> None:
    """Reads a dataset."""
    source = dag.add_operator("source", DatasetInput(conf.input, block_size=conf.block_size))
    reader = dag.add_operator("reader", BlockReader())
    middle = dag.add_operator("middle", Map[ReaderRecord[str], str](upper))
    sink = dag.add_operator("writer", RecordWriter(path=conf.output))
    dag.add_stream("blocks", source.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("lines", reader.messages, middle.input)
    dag.add_stream("made", middle.output, sink.input)


def exactly(out: Path, offset: int, **locator: Any) -> Trace:
    found = trace(str(out), offset, exact=True, locator=ApplicationLocator(**{"trust": True, **locator}))
    if found.problem is not None:
        raise found.problem
    return found


def record(found: Trace) -> bytes:
    """The record of a trace, after a look whether it stands where the trace says."""
    assert found.source is not None
    at = found.source
    with open(at.path, "rb") as file:
        file.seek(at.position)
        assert file.read(at.length) == at.data
    assert at.item.path == at.path
    assert found.items == (at.item,)
    return at.data


def sales_to(dag: DAG, conf: Settings, operator: Operator, *behind: Operator) -> None:
    """Sales in CSV, through operators, to lines of JSON."""
    port = dag.read(conf.input, format="csv").to(operator)
    for each in behind:
        port = port.to(each)
    port.to(JsonLinesWriter(conf.output))


def totals(dag: DAG, conf: Settings) -> None:
    sales_to(dag, conf, GroupBy("shop", sold=agg.sum("price")))


def total(dag: DAG, conf: Settings) -> None:
    sales_to(dag, conf, GroupBy(sold=agg.sum("price")))


def counts(dag: DAG, conf: Settings) -> None:
    sales_to(dag, conf, Sum("price", by="shop"))


def shop_of(sale: Any) -> str:
    return str(sale["shop"])


def by_function(dag: DAG, conf: Settings) -> None:
    sales_to(dag, conf, CountBy(by=shop_of))


def deduplicated(dag: DAG, conf: Settings) -> None:
    sales_to(dag, conf, Deduplicate(by="number"))


def ranked(dag: DAG, conf: Settings) -> None:
    sales_to(dag, conf, TopN(1, of="price", by="shop"))


def distinct(dag: DAG, conf: Settings) -> None:
    sales_to(dag, conf, Distinct())


def join_of(dag: DAG, conf: Settings) -> HashJoin[Any, Any, Any]:
    join = dag.add_operator("join", HashJoin[Any, Any, Any]("shop"))
    dag.read(conf.input, format="csv").to(join.left)
    dag.read(f"{conf.input}/../shops.csv", format="csv").to(join.right)
    return join


def joined(dag: DAG, conf: Settings) -> None:
    join_of(dag, conf).output.to(JsonLinesWriter(conf.output))


def towns(dag: DAG, conf: Settings) -> None:
    join_of(dag, conf).output.to(GroupBy("town", sold=agg.sum("price"))).to(JsonLinesWriter(conf.output))


def classes(dag: DAG, conf: Settings) -> None:
    """The number of shops by the tens of their totals."""
    tens = Select("shop", **{"class": col("sold") // 10})
    sales_to(dag, conf, GroupBy("shop", sold=agg.sum("price")), tens, GroupBy("class", shops=agg.count()))


def sliding(dag: DAG, conf: Settings, combiner: bool = True) -> None:
    """Totals of three hours, every two hours; the number of a sale is its hour."""
    times = Select("*", at=(col("number") * 3_600_000_000).cast("timestamp[us]"))
    windows = GroupBy(window("at", "3h", slide="2h"), "shop", sold=agg.sum("price"), combiner=combiner)
    port = dag.read(conf.input, format="csv").to(times, name="times").to(windows, name="windows")
    port.to(Select("shop", "sold", hour=col("window_start").dt.hour()), name="hours").to(JsonLinesWriter(conf.output), name="out")


def sliding_rows(dag: DAG, conf: Settings) -> None:
    sliding(dag, conf, combiner=False)


def hours(dag: DAG, conf: Settings) -> None:
    sales_to(dag, conf, Tumbling(3600, time=lambda sale: sale["number"] * 3_600_000_000, by="shop"))


def shop_and_town(sale: Any, town: Any) -> InTown:
    return InTown(sale["shop"], town["town"])


@attrs.frozen
class InTown:
    shop: str
    town: str


def combined(dag: DAG, conf: Settings) -> None:
    join = dag.add_operator("join", HashJoin[Any, Any, InTown]("shop", combine=shop_and_town))
    dag.read(conf.input, format="csv").to(join.left)
    dag.read(f"{conf.input}/../shops.csv", format="csv").to(join.right)
    join.output.to(JsonLinesWriter(conf.output))


def diamond(dag: DAG, conf: Settings) -> None:
    """Each sale with the total of its shop."""
    sales = dag.read(conf.input, format="csv")
    join = dag.add_operator("join", HashJoin[Any, Any, Any]("shop"))
    sales.to(join.left)
    sales.to(GroupBy("shop", sold=agg.sum("price"))).to(join.right)
    join.output.to(JsonLinesWriter(conf.output))


def changes(dag: DAG, conf: Settings) -> None:
    dag.read(conf.input, format="csv").to(GroupBy("shop", sold=agg.sum("price"))).to(
        JsonLinesWriter(conf.output, mode="changelog")
    )
