"""The memory of a task: it scans and writes in a process of its own. Counted is its peak beyond what the imports take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.scan.ours import Settings, csv_to_parquet
from dagflow import DAG, launch
from dagflow.config import MiB
from operators import CsvFormat, FileSplitterInput, ParquetWriter, ScanReader

FOLDERS = 50


def to_folders(dag: DAG, conf: Settings) -> None:
    """CSV to Parquet, in a folder for each value of a column."""
    files = dag.add_operator("splitter", FileSplitterInput(files=conf.input, block_size=conf.block_size))
    reader = dag.add_operator("reader", ScanReader(CsvFormat()))
    writer = dag.add_operator("writer", ParquetWriter(path=conf.output, partition_columns=["folder"]))
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("rows", reader.batches, writer.input)


def with_folders(source: Path, target: Path) -> Path:
    """The same rows, with one more column of so many values."""
    with source.open("rb") as rows, target.open("wb") as file:
        file.write(b"folder," + rows.readline())
        for number, row in enumerate(rows):
            file.write(b"f%d," % (number % FOLDERS) + row)
    return target


def with_huge_field(target: Path, size: int) -> Path:
    """A CSV file of a few rows, one of which has a field of so many bytes."""
    with target.open("wb") as file:
        file.write(b'id,text\n0,x\n1,"')
        for _ in range(size // MiB):
            file.write(b"some, text with\nlines and so on " * (MiB // 32))
        file.write(b'"\n2,y\n')
    return target


def fields_to_parquet(dag: DAG, conf: Settings) -> None:
    """CSV of any columns to Parquet."""
    files = dag.add_operator("splitter", FileSplitterInput(files=conf.input, block_size=conf.block_size))
    reader = dag.add_operator("reader", ScanReader(CsvFormat(), schema="id: int64, text: string"))
    writer = dag.add_operator("writer", ParquetWriter(path=conf.output))
    dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("rows", reader.batches, writer.input)


APPLICATIONS = {"wide": csv_to_parquet, "folders": to_folders, "field": fields_to_parquet}


def peak(application: str, source: Path, target: Path) -> int:
    """The bytes that a process took at most to write `source` to the folder `target`, beyond those that it began with."""
    command = [sys.executable, "-m", __name__, application, str(source), str(target)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main(application: str, source: str, target: str) -> None:
    """Run the application in this process, and print the bytes."""
    import pyarrow.compute
    import pyarrow.csv
    import pyarrow.parquet

    _ = pyarrow.parquet, pyarrow.csv, pyarrow.compute
    begin = f"{target}-{application}"
    tiny = Path(f"{begin}.csv")
    with Path(source).open("rb") as file:
        tiny.write_bytes(file.readline() + file.readline())
    run = APPLICATIONS[application]
    launch(run, Settings([str(tiny)], begin), progress="none", runner="local", durability="process")
    before = _memory("VmRSS")
    launch(run, Settings([source], target), progress="none", runner="local", durability="process")
    print(_memory("VmHWM") - before)


def _memory(name: str) -> int:
    """Bytes of memory that the process takes now (VmRSS), or took at most (VmHWM); getrusage knows those of its parent, too."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
