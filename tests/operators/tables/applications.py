"""An application that copies a table to a folder, launched as often as a test wants; what it has copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa

from dagflow import DAG, FileBlockMetadata, InputPort, Operator, launch
from dagflow.ledger import Ledger, read_dataset
from dagflow.model.types.plain_data import decode, dumps, encode, loads
from dagflow.planning.steps import make_plan
from dagflow.runtime.run_folder.window_log import WindowPlan
from dagflow.runtime.stage.program import RunOptions
from dagflow.runtime.windows.plan_window import Driver
from dagflow.scaling import Partition, PartitioningContext
from dagflow.state import MapLog
from dagflow.storage import MemoryStore
from dagflow.testing import FakeClock
from operators import DeltaInput, IcebergInput, ParquetFormat, ParquetWriter, ScanReader
from operators.tables.table_input import AbstractTableInput


def copying(operator: AbstractTableInput, folder: Path, reader: ScanReader[Any] | None = None) -> Callable[[DAG, Any], None]:
    """Return an application that copies the rows of a table to the folder `out`."""

    def populate_dag(dag: DAG, conf: Any) -> None:
        table = dag.add_operator("table", operator)
        rows = dag.add_operator("rows", ScanReader(ParquetFormat()) if reader is None else reader)
        out = dag.add_operator("out", ParquetWriter(str(folder / "out")))
        dag.add_stream("blocks", table.blocks_metadata_output, rows.blocks_metadata_input)
        dag.add_stream("read", rows.batches, out.input)

    return populate_dag


def read_on(
    operator: AbstractTableInput, folder: Path, reader: ScanReader[Any] | None = None, runner: str = "local", **settings: Any
) -> None:
    """Launch the application once, until nothing is new."""
    launch(copying(operator, folder, reader), {"run_folder": str(folder / "run"), **settings}, runner=runner).wait()


def copied(folder: Path) -> pa.Table:
    """Return the rows that were copied so far, in their order."""
    return read_dataset(folder / "out").to_table()


def numbers(folder: Path, column: str = "n") -> list[Any]:
    """Return a column of the rows that were copied so far."""
    return list(copied(folder).column(column).to_pylist())


def windows(folder: Path) -> int:
    """Return how many windows had rows."""
    ledger = Ledger.open(str(folder / "out"))
    head = ledger.head()
    return 0 if head is None else sum(1 for _ in ledger.rows_after(None, head.seq))


def delta(folder: Path, **options: Any) -> DeltaInput:
    return DeltaInput(str(folder / "table"), **options)


ON_SERVERS: dict[Path, dict[str, str]] = {}
"""The properties of the catalogs that servers have, by the folder of the test."""


def catalog_in(folder: Path) -> dict[str, str]:
    return ON_SERVERS.get(folder) or {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}/warehouse",
    }


def iceberg(folder: Path, **options: Any) -> IcebergInput:
    return IcebergInput("shop.numbers", catalog_in(folder), **options)


@attrs.define
class Sink(Operator):
    """Stands for readers: what is in the plan of a window is what it gets."""

    partitioner = "self"
    input = InputPort[FileBlockMetadata]()

    @input.process
    def each(self, block: FileBlockMetadata) -> None: ...

    def define_partitions(self, partitions: list[Partition], context: PartitioningContext) -> list[Partition]:
        return partitions


def plans(
    operator: AbstractTableInput, last: WindowPlan | None = None, clock: FakeClock | None = None, *, continuous: bool = False
) -> Iterator[WindowPlan | None]:
    """Yield the plans of a launch's windows after `last`, each after its journey through the window log; None: nothing is new."""
    dag = DAG()
    table = dag.add_operator("table", operator)
    dag.add_stream("blocks", table.blocks_metadata_output, dag.add_operator("sink", Sink()).input)
    options = RunOptions(slots=2, continuous=continuous, durable=False)
    number = 0 if last is None else last.window + 1
    with Driver(make_plan(dag), options, "r", clock or FakeClock(), last, MapLog(MemoryStore())) as driver:
        while True:
            plan = driver.plan_window(number, 0.5 if continuous else None, lambda: False)
            if plan is None and not continuous:
                return
            number += plan is not None
            yield None if plan is None else decode(loads(dumps(encode(plan, "plan"))), WindowPlan)


def files_in(plan: WindowPlan | None) -> list[str]:
    """Return the files of which a window has blocks."""
    return [] if plan is None else [decode(item, FileBlockMetadata).file_path for _, item in plan.items["sink"]]
