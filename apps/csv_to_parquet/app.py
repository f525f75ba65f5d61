"""Write CSV files whose columns change over time as Parquet, in folders by value; rows that cannot be read go beside it."""

from __future__ import annotations

import attrs

from dagflow import DAG
from dagflow.config import Bytes, MiB
from dagflow.scan import Drift
from operators import CsvFormat, FileSplitterInput, JsonLinesWriter, ParquetWriter, ScanReader


@attrs.define
class Settings:
    """Write CSV files as Parquet; rows that cannot be read are kept as JSON lines."""

    input: list[str]  # files or folders
    output: str
    rejects: str  # a folder of its own
    columns: list[str] = attrs.field(factory=lambda: ["*"])
    schema: str = ""  # "id: int64, day: date32"; the types of other columns come from the files
    partition_by: list[str] = attrs.field(factory=list)
    delimiter: str = ","
    encoding: str = "utf-8"
    block_size: Bytes = 64 * MiB


def populate_dag(dag: DAG, conf: Settings) -> None:
    """Connect splitter → reader → Parquet, and bad rows → JSON lines."""
    splitter = dag.add_operator("splitter", FileSplitterInput(files=conf.input, block_size=conf.block_size))
    reader = dag.add_operator(
        "reader",
        ScanReader(
            CsvFormat(delimiter=conf.delimiter, encoding=conf.encoding),
            columns=conf.columns,
            schema=conf.schema or None,
            drift=Drift(missing="null", extra="widen", changed="error"),
            on_bad_row="route",
        ),
    )
    writer = dag.add_operator(
        "writer", ParquetWriter(path=conf.output, partition_columns=conf.partition_by, on_schema_change="new_file")
    )
    rejects = dag.add_operator("rejects", JsonLinesWriter(path=conf.rejects))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("rows", reader.batches, writer.input)
    dag.add_stream("bad rows", reader.errors, rejects.input)
