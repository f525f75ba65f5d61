"""What the writers of tables have written, as the ledger gives it back."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputOperator, Operator, OutputPort
from dagflow.ledger import Ledger, read_dataset
from dagflow.testing import run_dag
from operators import ParquetWriter

WRITERS: dict[str, Any] = {"parquet": ParquetWriter}


@attrs.frozen
class Sale:
    country: str
    day: datetime.date
    amount: float | None
    units: int


SALES = [Sale(["se", "no", "01"][n % 3], datetime.date(2026, 1, 1 + n % 2), n / 4 if n % 5 else None, n) for n in range(20)]


@attrs.define
class Sales(InputOperator):
    """Five in a window."""

    output = OutputPort[Sale]()

    def setup(self, context: Any) -> None:
        self.context = context
        self.left = iter(SALES)

    def emit_tuples(self) -> None:
        for _ in range(5):
            sale = next(self.left, None)
            if sale is not None:
                self.output.emit(sale)
        self.context.close_window()


def populate(sink: Operator) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.add_stream("sales", dag.add_operator("sales", Sales()).output, dag.add_operator("sink", sink).input)

    return populate_dag


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("partition_by", [[], ["country"], ["day", "country"]])
def test_the_ledger_gives_back_what_was_written(kind: str, partition_by: list[str], tmp_path: Path) -> None:
    run_dag(populate(WRITERS[kind](str(tmp_path), partition_by=partition_by, max_file_rows=2)))
    table = read_dataset(str(tmp_path)).to_table()
    assert table.num_rows == Ledger.open(str(tmp_path)).resume().next_offset == 20
    assert table.schema.names == ["country", "day", "amount", "units"]
    assert sorted(table.to_pylist(), key=lambda row: row["units"]) == [attrs.asdict(sale) for sale in SALES]
