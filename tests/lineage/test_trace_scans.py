"""From a row that a scan gave back to the bytes of its file."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow import DAG, launch
from dagflow.errors import SourceSilent
from dagflow.render.datasets.trace import trace_text
from dagflow.scan import BadRow, Format
from operators import (
    CsvFormat,
    FileSplitterInput,
    FixedWidthFormat,
    JsonLinesFormat,
    JsonLinesWriter,
    Map,
    ParquetFormat,
    RecordWriter,
    RegexFormat,
    ScanReader,
)
from tests.lineage import traced
from tests.lineage.traced import exactly, record

FORMATS: dict[str, Format] = {
    "csv": CsvFormat(),
    "json": JsonLinesFormat(),
    "regex": RegexFormat(r"n=(?P<n>\d+)", types={"n": "int64"}),
    "fixed": FixedWidthFormat({"n": (0, 4)}, types={"n": "int64"}),
    "parquet": ParquetFormat(),
}
"""By the prefix in the settings."""


def scanned(dag: DAG, conf: traced.Settings) -> None:
    splitter = dag.add_operator("splitter", FileSplitterInput(files=conf.input, block_size=conf.block_size))
    scan = ScanReader(FORMATS[conf.prefix], schema="n: int8", on_bad_row="route", max_readers=conf.readers)
    reader = dag.add_operator("reader", scan)
    writer = dag.add_operator("writer", JsonLinesWriter(f"{conf.output}/rows"))
    words = dag.add_operator("words", Map[BadRow, str](lambda row: row.raw))
    bad = dag.add_operator("bad", RecordWriter(f"{conf.output}/bad"))
    dag.add_stream("blocks", splitter.blocks_metadata_output, reader.blocks_metadata_input)
    dag.add_stream("batches", reader.batches, writer.input)
    dag.add_stream("errors", reader.errors, words.input)
    dag.add_stream("words", words.output, bad.input)


def run(source: Path, out: Path, name: str, **conf: Any) -> None:
    given = {"input": str(source), "output": str(out), "prefix": name, **conf}
    launch(scanned, given, runner="local", durability="process")


LINES = {
    "csv": (b"n\n", b'"%d"\r\n'),
    "json": (b"\n", b'{"n": %d}\n'),
    "regex": (b"", b"n=%d\n"),
    "fixed": (b"", b"%04d\n"),
}


@pytest.mark.parametrize("block_size", [64, 1 << 20])
@pytest.mark.parametrize("name", LINES)
def test_a_row_leads_to_its_bytes_and_line(name: str, block_size: int, tmp_path: Path) -> None:
    """Every seventh row is a bad one, which is left out: numbers of rows are not those of lines."""
    head, line = LINES[name]
    numbers = [n % 100 if n % 7 else 999 for n in range(200)]
    (tmp_path / "a").write_bytes(head + b"".join(line % n for n in numbers))
    run(tmp_path / "a", tmp_path / "out", name, block_size=block_size, readers=2)
    first_line = 2 if head else 1
    for offset in (5, 150):
        found = exactly(tmp_path / "out" / "rows", offset)
        number = [n for n, value in enumerate(numbers) if value != 999][offset]
        assert record(found) == line % numbers[number]
        assert found.source is not None
        assert found.source.position == len(head) + sum(len(line % n) for n in numbers[:number])
        if found.source.item.start == 0 or found.source.line is not None:  # CSV with quotes counts lines everywhere
            assert found.source.line == number + first_line
            assert f", line {number + first_line:,}, bytes [" in trace_text(found)


def test_a_row_of_a_compressed_file_has_its_place_in_what_that_holds(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"n\n1\n2\n"))
    run(tmp_path / "a.csv.gz", tmp_path / "out", "csv")
    found = exactly(tmp_path / "out" / "rows", 1).source
    assert found is not None
    assert (found.position, found.line, found.data) == (4, 3, b"2\n")


def test_a_format_that_reads_many_rows_at_once_says_where_they_begin(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1, 2, 3, 4]}), tmp_path / "a", row_group_size=2)
    second = pq.read_metadata(tmp_path / "a").row_group(1).column(0)
    begin = second.dictionary_page_offset or second.data_page_offset
    run(tmp_path / "a", tmp_path / "out", "parquet")
    place = rf"reads many rows at once; those with this one begin at byte {begin} of .*a, and it is row 3 of that file \(from 0\)"
    with pytest.raises(SourceSilent, match=place):
        exactly(tmp_path / "out" / "rows", 3)


def test_a_bad_row_has_its_place_itself(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"n\n1\nx\n")
    run(tmp_path / "a", tmp_path / "out", "csv")
    with pytest.raises(SourceSilent, match=r"a bad row, which has its place itself: byte 4, line 3 of .*a"):
        exactly(tmp_path / "out" / "bad", 0)
