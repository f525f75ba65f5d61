"""Write sales from CSV as Parquet, with the amount of each."""

import datetime

import attrs

from dagflow import DAG, InputPort, Operator, OutputPort
from operators import CsvFormat, FileSplitterInput, ParquetWriter, ScanReader


@attrs.define
class Settings:
    """The settings, which `dagflow launch . --help` lists."""

    input: list[str]  # files or folders
    output: str  # a folder of its own
    delimiter: str = ","


@attrs.frozen
class Sale:
    """A row of the input: its columns and their types."""

    day: datetime.date
    item: str
    pieces: int
    price: float


@attrs.frozen
class PricedSale(Sale):
    """A row of the output."""

    amount: float


@attrs.define
class Price(Operator):
    """Multiply the pieces of a sale by its price."""

    input = InputPort[Sale]()
    output = OutputPort[PricedSale]()

    @input.process
    def each(self, sale: Sale) -> None:
        """Process one row."""
        amount = round(sale.pieces * sale.price, 2)
        self.output.emit(PricedSale(sale.day, sale.item, sale.pieces, sale.price, amount))


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect files → rows → price → writer."""
    files = dag.add_operator("files", FileSplitterInput(conf.input))
    rows = dag.add_operator("rows", ScanReader[Sale](CsvFormat(delimiter=conf.delimiter)))
    price = dag.add_operator("price", Price())
    writer = dag.add_operator("writer", ParquetWriter(conf.output))
    dag.add_stream("blocks", files.blocks_metadata_output, rows.blocks_metadata_input)
    dag.add_stream("sales", rows.batches, price.input)
    dag.add_stream("priced sales", price.output, writer.input)
