"""The rows that the writers of tables have written, as the ledger gives them back."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputOperator, Operator, OutputPort
from dagflow.ledger import Ledger, read_dataset
from dagflow.testing import run_dag
from operators import BlockReader, CsvWriter, FileSplitterInput, JsonLinesWriter, ParquetWriter, RecordWriter

WRITERS: dict[str, Any] = {"parquet": ParquetWriter, "csv": CsvWriter, "json": JsonLinesWriter}


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
@pytest.mark.parametrize("partition_columns", [[], ["country"], ["day", "country"]])
def test_the_ledger_gives_back_what_was_written(kind: str, partition_columns: list[str], tmp_path: Path) -> None:
    run_dag(populate(WRITERS[kind](str(tmp_path), partition_columns=partition_columns, max_file_rows=2)))
    table = read_dataset(str(tmp_path)).to_table()
    assert table.num_rows == Ledger.open(str(tmp_path)).resume().next_offset == 20
    assert table.schema.names == ["country", "day", "amount", "units"]
    assert sorted(table.to_pylist(), key=lambda row: row["units"]) == [attrs.asdict(sale) for sale in SALES]


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("compression", ["gzip", "bgzf", "bz2", "xz", "zstd"])
def test_what_is_packed_is_given_back(kind: str, compression: str, tmp_path: Path) -> None:
    run_dag(populate(WRITERS[kind](str(tmp_path), compression=compression, partition_columns=["country"])))
    table = read_dataset(str(tmp_path)).to_table()
    assert sorted(table.to_pylist(), key=lambda row: row["units"]) == [attrs.asdict(sale) for sale in SALES]


DIALECTS = [
    {"delimiter": "\t"},
    {"delimiter": ";", "quote": "'"},
    {"terminator": "\r\n", "quoting": "all"},
    {"header": False, "null": "NULL", "suffix": ".txt"},
]


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("properties", DIALECTS)
def test_the_ledger_knows_the_dialect_of_csv(properties: dict[str, Any], compression: str, tmp_path: Path) -> None:
    run_dag(populate(CsvWriter(str(tmp_path), compression=compression, partition_columns=["country"], **properties)))
    table = read_dataset(str(tmp_path)).to_table()
    assert sorted(table.to_pylist(), key=lambda row: row["units"]) == [attrs.asdict(sale) for sale in SALES]


@attrs.frozen
class Deep:
    lists: list[list[float] | None]
    of: dict[str, list[int]]
    at: datetime.datetime | None
    span: datetime.timedelta
    sale: Sale | None


DEEP = [
    Deep(
        [[1.0, 2.5], None, []],
        {"a": [1], "": []},
        datetime.datetime.fromisoformat("2026-01-31"),
        datetime.timedelta(seconds=1),
        SALES[0],
    ),
    Deep([], {}, None, datetime.timedelta(0), None),
]


@attrs.define
class Deeps(Sales):
    output = OutputPort[Deep]()

    def emit_tuples(self) -> None:
        if next(self.left, None) is SALES[0]:
            self.output.emit_all(DEEP)
        self.context.close_window()


@pytest.mark.parametrize("kind", ["parquet", "json"])
def test_lists_structs_and_maps_are_given_back(kind: str, tmp_path: Path) -> None:
    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.add_stream(
            "deep", dag.add_operator("deep", Deeps()).output, dag.add_operator("sink", WRITERS[kind](str(tmp_path))).input
        )

    run_dag(populate_dag)
    rows = read_dataset(str(tmp_path)).to_table().to_pylist(maps_as_pydicts="strict")
    assert rows == [attrs.asdict(deep) for deep in DEEP]


def test_a_dialect_that_has_changed(tmp_path: Path) -> None:
    """Rows of earlier windows are read as they were written."""
    run_dag(populate(CsvWriter(str(tmp_path))), name="sales")
    run_dag(populate(CsvWriter(str(tmp_path), delimiter=";", null="-")), name="sales", fresh=False)
    assert read_dataset(str(tmp_path)).to_table().num_rows == 40


@pytest.mark.parametrize("compression", ["none", "gzip", "bgzf", "bz2", "xz", "zstd"])
def test_lines_that_are_packed_are_given_back(compression: str, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("".join(f"line {n}, with\ta tab\n" for n in range(50)))

    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(source)], block_size=100))
        lines = dag.add_operator("lines", BlockReader[str]())
        sink = RecordWriter[Any](str(tmp_path / "out"), suffix=".csv", compression=compression, max_file_rows=7)
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("text", lines.messages, dag.add_operator("sink", sink).input)

    run_dag(populate_dag)
    assert sorted(read_dataset(str(tmp_path / "out")).to_table().column("value").to_pylist()) == sorted(
        source.read_text().splitlines()
    )


@attrs.frozen
class Wider(Sale):
    paid: bool | None = None


@attrs.define
class Widers(Sales):
    output = OutputPort[Wider]()  # type: ignore[assignment]  # a column more

    def emit_tuples(self) -> None:
        sale = next(self.left, None)
        if sale is not None:
            self.output.emit(Wider(**attrs.asdict(sale), paid=True))
        self.context.close_window()


Widers.__qualname__ = Sales.__qualname__  # the application is the same, with new code


@pytest.mark.parametrize("writer", [ParquetWriter, JsonLinesWriter, CsvWriter, lambda path: CsvWriter(path, header=False)])
def test_columns_that_came_later_are_empty_in_earlier_rows(writer: Any, tmp_path: Path) -> None:
    run_dag(populate(writer(str(tmp_path))), name="sales")

    def populate_dag(dag: DAG, conf: Any) -> None:
        dag.add_stream("sales", dag.add_operator("sales", Widers()).output, dag.add_operator("sink", writer(str(tmp_path))).input)

    run_dag(populate_dag, name="sales")
    table = read_dataset(str(tmp_path)).to_table()
    assert table.column("paid").to_pylist() == [None] * 20 + [True] * 20
    assert table.column("units").to_pylist() == [sale.units for sale in SALES] * 2
