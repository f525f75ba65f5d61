"""Readers of files on their own: one file cut into blocks at will, or files as one table."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.model.errors.dag import UnknownName
from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import OperatorContext, OperatorServices
from dagflow.model.operator.ports import BATCH, RECORD, InputPort, output_ports
from dagflow.model.types.records import FileBlockMetadata, ReaderRecord
from dagflow.planning.errors import NotSupported
from dagflow.runtime.stage.failure import reported_errors
from dagflow.runtime.stage.program import OutputPlan, PortPlan, Program, ProgramOperator, RunOptions, TaskSpec, WindowFacts
from dagflow.runtime.task.compile import loaded, pickled
from dagflow.runtime.task.flow import Flow
from dagflow.storage import explained
from dagflow.testing.operators import run_operator
from dagflow.testing.readers import CountedFiles, MakeReader

if TYPE_CHECKING:
    import pyarrow as pa

    from dagflow.ranges import RangeTracker


def read_file(
    reader: Operator,
    path: str | os.PathLike[str],
    block_size: int | None = None,
    cuts: Iterable[int] | None = None,
    *,
    consecutive: bool = False,
) -> list[Any]:
    r"""Return the records of one file, read block by block without Spark, in file order; of a ReaderRecord, the record.

    Args:
        reader: a block reader: an operator with the ports `blocks_metadata_input` and `messages`.
        path: the file.
        block_size: bytes of each block but the last. Default: the whole file is one block.
        cuts: positions at which blocks end, instead of `block_size`.
        consecutive: True: one reader goes from block to block on one stream. False: no block follows the one before it, as when
            its neighbours are read elsewhere.

    >>> import pathlib, tempfile
    >>> from operators import BlockReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.txt")
    ...     _ = path.write_bytes(b"one\ntwo\nthree\n")
    ...     read_file(BlockReader(), path, block_size=4)
    ['one', 'two', 'three']
    """
    if "messages" not in output_ports(type(reader)):
        raise UnknownName(f"output port of {type(reader).__name__}", "messages", tuple(output_ports(type(reader))))
    blocks = blocks_of(os.fspath(path), block_size, cuts)
    # Backwards, so that no block is the successor of the one that was read before it.
    order = blocks if consecutive else blocks[::-1]
    emitted = run_operator(reader, {"blocks_metadata_input": order})["messages"]
    if not consecutive:
        emitted = _in_order_of_blocks(emitted)
    return [record.record if isinstance(record, ReaderRecord) else record for record in emitted]


def blocks_of(path: str, block_size: int | None = None, cuts: Iterable[int] | None = None) -> list[FileBlockMetadata]:
    """Return the blocks of a file, each with its neighbours' ids, as a splitter makes them. An empty file has none.

    Raises ValueError when both `block_size` and `cuts` are given, for a size below 1, and for cuts outside the file.
    """
    status = os.stat(path)
    length = status.st_size
    if block_size is not None and cuts is not None:
        raise ValueError("give block_size or cuts, not both")
    if block_size is not None and block_size < 1:
        raise ValueError(f"block_size is {block_size}, and must be at least 1")
    inner = sorted(set(cuts)) if cuts is not None else list(range(block_size or length or 1, length, block_size or length or 1))
    outside = [cut for cut in inner if not 0 <= cut <= length]
    if outside:
        raise ValueError(f"{path} has {length} bytes: it cannot be cut at {outside[0]}")
    bounds = [0, *(cut for cut in inner if 0 < cut < length), length] if length else []
    return [
        FileBlockMetadata(
            block_id=number,
            file_path=os.path.abspath(path),
            start=start,
            stop=stop,
            file_length=length,
            is_last_block=stop == length,
            previous_block_id=number - 1,
            modified_ns=status.st_mtime_ns,
        )
        for number, (start, stop) in enumerate(itertools.pairwise(bounds))
    ]


def _in_order_of_blocks(records: list[Any]) -> list[Any]:
    """Sort records by block, those of one block as they came."""
    return sorted(records, key=lambda record: record.block_id if isinstance(record, ReaderRecord) else 0)


READER, TABLE, OFFSET = "reader", "table", "block_offset"
Path = str | os.PathLike[str]


def scan_table(
    reader: Operator, paths: Path | Sequence[Path], columns: Sequence[str] | None = None, block_size: int | None = None
) -> pa.Table:
    r"""Read files with a ScanReader as one table, without Spark: files in the order given, their blocks in order.

    Args:
        reader: a `ScanReader`; it works on a copy.
        paths: one file, or several.
        columns: the columns to read, instead of the reader's own.
        block_size: bytes of each block but the last of a file. Default: each file is one block.

    A scan that gives no rows gives a table without rows, with the columns that are known by then. Raises what a run would raise,
    and NotSupported for `on_bad_row="route"`: a table has no port for bad rows; `run_operator` gives those of all ports.

    >>> import pathlib, tempfile
    >>> from operators import JsonLinesFormat, ScanReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.jsonl")
    ...     _ = path.write_text('{"n": 1, "s": "one"}\n{"n": 2}\n')
    ...     scan_table(ScanReader(JsonLinesFormat()), path, columns=["s", "n"]).to_pylist()
    [{'s': 'one', 'n': 1}, {'s': None, 'n': 2}]
    """
    import pyarrow as pa

    if "batches" not in output_ports(type(reader)):
        raise UnknownName(f"output port of {type(reader).__name__}", "batches", tuple(output_ports(type(reader))))
    if getattr(reader, "on_bad_row", None) == "route":
        raise NotSupported(
            'on_bad_row is "route", but a table has no place for bad rows',
            "scan_table",
            'run_operator gives batches and errors; or on_bad_row="drop", which leaves them out',
        )
    if columns is not None:
        reader = attrs.evolve(reader, columns=columns)  # type: ignore[call-arg]  # every reader of scans has it
    reader.check()
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    blocks: list[FileBlockMetadata] = []
    for path in files:
        with explained(os.fspath(path), "reading"):
            own = blocks_of(os.fspath(path), block_size)
        blocks += [attrs.evolve(b, block_id=len(blocks) + n, previous_block_id=-1) for n, b in enumerate(own)]
    program = loaded(pickled(_program(reader), travels=False))
    agreed = reader.agree(blocks, None, OperatorContext(name=READER)) if blocks else None
    flow = Flow(program, TaskSpec.alone("test", RunOptions(base=".", durable=False), WindowFacts(agreed={READER: agreed})))
    scanning: Any = flow.nodes[READER].operator
    table: Any = flow.nodes[TABLE].operator
    with reported_errors(), flow:
        with flow.window(0):
            flow.deliver(READER, "blocks_metadata_input", blocks)
        schema = scanning.finish()
    if table.batches:
        return table_of(table.batches)
    return pa.schema([]).empty_table() if schema is None else schema.empty_table()


def table_of(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Join batches into one table. Its columns are those of the last batch, widened for all.

    >>> import pyarrow as pa
    >>> before, after = pa.record_batch({"a": [1]}), pa.record_batch({"a": ["x"], "b": [True]})
    >>> table_of([before, after]).to_pylist()
    [{'a': '1', 'b': None}, {'a': 'x', 'b': True}]
    """
    import pyarrow as pa

    from dagflow.scan.schema.cast import converted

    last = batches[-1].schema
    if all(batch.schema.equals(last) for batch in batches):
        return pa.Table.from_batches(batches)
    columns: dict[str, pa.ChunkedArray] = {}
    for f in last:
        own = [batch[f.name] if f.name in batch.schema.names else pa.nulls(len(batch), f.type) for batch in batches]
        made = [converted(values, f.type) for values in own]
        if any(bad is not None for _, bad in made):
            made = [converted(values, pa.string()) for values in own]
        columns[f.name] = pa.chunked_array([values for values, _ in made])
    return pa.table(columns)


def scan_reader_of(reader: Operator, *, files: CountedFiles | None = None) -> MakeReader:
    """Return a `make_reader` of a ScanReader, for `assert_reader_is_splittable`. Its records are the rows, as dicts.

    The position of a row is its `block_offset`, which the format must know. `files` opens the files; by default, by their paths.
    """
    from dagflow.scan import AgreedSchema, make_scan

    opened = CountedFiles() if files is None else files
    scanning: Any = reader
    asked = ("*",) if scanning.columns is None else scanning.columns
    scanning = attrs.evolve(scanning, columns=(*asked, OFFSET))
    agreements: dict[str, Any] = {}

    def make_reader(path: str, tracker: RangeTracker[int]) -> Iterator[tuple[int, bool, Any]]:
        length = opened.status(path).length
        if path not in agreements:
            whole = FileBlockMetadata(0, path, 0, length, length, is_last_block=True)
            agreements[path] = AgreedSchema.of(scanning.agree([whole], None, OperatorContext(name=READER)))
        start, stop = tracker.start_position, tracker.stop_position
        scan = make_scan(scanning.format)(
            format=scanning.format,
            settings=scanning.scan_settings,
            agreed=agreements[path],
            context=OperatorContext(name=READER, services=OperatorServices(stealable=_Shared())),
            open_stream=lambda block: opened.open(block.file_path),
            tracker_of=lambda start, stop: tracker,
        )
        last = None
        try:
            for batch in scan.read(FileBlockMetadata(0, path, start, stop, length, is_last_block=stop == length)):
                for row in batch.to_pylist():
                    position = row.pop(OFFSET)
                    yield position, position != last, row
                    last = position
        finally:
            scan.close()

    return make_reader


class _Shared:
    """Work that others might take over: readers claim few rows at a time."""

    def track(self, tracker: Any) -> None:
        """See StealableWork."""

    def check(self) -> None:
        """See StealableWork."""

    def completes(self, operator: str) -> bool:
        """See StealableWork."""
        return True


@attrs.define
class Batches(Operator):
    """A sink that keeps batches in their order."""

    input = InputPort[Any]()

    def __attrs_post_init__(self) -> None:
        self.__dict__["batches"] = []

    @input.batch
    def keep(self, batch: pa.RecordBatch) -> None:
        """Keep a batch."""
        self.__dict__["batches"].append(batch)

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """All batches so far."""
        taken: list[pa.RecordBatch] = self.__dict__["batches"]
        return taken


def _program(reader: Operator) -> Program:
    into = {"blocks_metadata_input": PortPlan(RECORD, FileBlockMetadata)}
    out = {"batches": OutputPlan(Any, ((TABLE, "input"),), True)}
    table = ProgramOperator(TABLE, Batches(), {"input": PortPlan(BATCH, Any)}, {})
    return Program("test", (ProgramOperator(READER, reader, into, out), table))
