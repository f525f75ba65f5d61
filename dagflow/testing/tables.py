"""Files of rows and columns, read without a run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.errors.dag import UnknownName
from dagflow.model.context import OperatorContext
from dagflow.model.operator import Operator
from dagflow.model.ports import BATCH, RECORD, InputPort, output_ports
from dagflow.model.records import FileBlockMetadata
from dagflow.runtime.compile import loaded, pickled
from dagflow.runtime.failure import Abort
from dagflow.runtime.program import OutputPlan, PortPlan, Program, ProgramOperator, TaskSpec
from dagflow.runtime.task import Flow
from dagflow.testing.files import blocks_of

if TYPE_CHECKING:
    import pyarrow as pa

READER, TABLE = "reader", "table"
Path = str | os.PathLike[str]


def scan_table(
    reader: Operator, paths: Path | Sequence[Path], columns: Sequence[str] | None = None, block_size: int | None = None
) -> pa.Table:
    r"""What a ScanReader reads of files, as one table, without Spark: files in the order given, their blocks in order.

    Args:
        reader: a `ScanReader`; it works on a copy.
        paths: one file, or several.
        columns: the columns to read, instead of the reader's own.
        block_size: bytes of each block but the last of a file. Default: each file is one block.

    A scan that gives no rows gives a table without rows, with the columns that are known by then. Raises what a run would raise.

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
    if columns is not None:
        reader = attrs.evolve(reader, columns=columns)  # type: ignore[call-arg]  # every reader of scans has it
    reader.check()
    files = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    blocks: list[FileBlockMetadata] = []
    for path in files:
        own = blocks_of(os.fspath(path), block_size)
        blocks += [attrs.evolve(b, block_id=len(blocks) + n, previous_block_id=-1) for n, b in enumerate(own)]
    program = loaded(pickled(_program(reader), travels=False))
    agreed = reader.agree(blocks, None, OperatorContext(name=READER)) if blocks else None
    flow = Flow(program, attrs.evolve(_SPEC, agreed={READER: agreed}))
    scanning: Any = flow.nodes[READER].operator
    found: Any = flow.nodes[TABLE].operator
    try:
        with flow:
            flow.begin_window(0)
            flow.deliver(READER, "blocks_metadata_input", blocks)
            flow.end_window()
            schema = scanning.known_schema
    except Abort as end:
        raise end.error from end.__cause__
    if found.batches:
        return pa.Table.from_batches(found.batches)
    return pa.schema([]).empty_table() if schema is None else schema.empty_table()


@attrs.define
class Batches(Operator):
    """Keeps batches as they come."""

    input = InputPort[Any]()

    def __attrs_post_init__(self) -> None:
        self.__dict__["batches"] = []

    @input.batch
    def keep(self, batch: pa.RecordBatch) -> None:
        """Keeps a batch."""
        self.__dict__["batches"].append(batch)

    @property
    def batches(self) -> list[pa.RecordBatch]:
        """All batches so far."""
        found: list[pa.RecordBatch] = self.__dict__["batches"]
        return found


_SPEC = TaskSpec(
    window=0,
    round="test",
    stage="test",
    partition=0,
    partitions=1,
    slots=1,
    continuous=False,
    base=".",
    durable=False,
    checked=False,
)


def _program(reader: Operator) -> Program:
    into = {"blocks_metadata_input": PortPlan(RECORD, FileBlockMetadata)}
    out = {"batches": OutputPlan(Any, ((TABLE, "input"),), True)}
    table = ProgramOperator(TABLE, Batches(), {"input": PortPlan(BATCH, Any)}, {})
    return Program("test", (ProgramOperator(READER, reader, into, out), table))
