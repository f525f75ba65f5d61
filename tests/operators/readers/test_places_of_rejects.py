"""The places of rejected records: exact wherever the format knows them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dagflow import DAG, InputPort, Operator, ReaderRecord
from dagflow.errors import OperatorFailed
from dagflow.scan import Column
from dagflow.testing import Collector, run_dag
from operators import (
    BlockReader,
    CsvFormat,
    Expect,
    FileSplitterInput,
    Filter,
    FixedWidthFormat,
    JsonLinesFormat,
    Map,
    RegexFormat,
    ScanReader,
)

ROWS = 60
BAD = 41
HEADS = {"csv": "n\n", "json": "", "regex": "", "fixed": ""}
LINES = {"csv": '"%s"\n', "json": '{"n": "%s"}\n', "regex": "n=%s\n", "fixed": "%4s\n"}
FORMATS: dict[str, Any] = {
    "csv": CsvFormat(),
    "json": JsonLinesFormat(),
    "regex": RegexFormat(r"n=(?P<n>.*)"),
    "fixed": FixedWidthFormat({"n": (0, 4)}),
}


@attrs.define
class Refuses(Operator):
    """Raises for a value, in records or in batches."""

    value: int
    batches: bool = False
    input = InputPort[Any]()

    @input.process(when=lambda operator: not operator.batches)
    def take(self, record: Any) -> None:
        if record["n"] == self.value:
            raise ValueError("refused")

    @input.batch(when=lambda operator: operator.batches)
    def take_batch(self, batch: pa.RecordBatch) -> None:
        if pc.index(batch.column("n"), self.value).as_py() >= 0:
            raise ValueError("refused")


@attrs.define
class RefusesMany(Operator):
    """Raises for batches of several rows, of which no single one is to blame."""

    input = InputPort[ReaderRecord[str]]()

    @input.batch
    def take(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows > 1:
            raise ValueError("too many")


def write(path: Path, name: str, bad: str) -> tuple[int, int]:
    """Write a file with one bad row. Return its position and its line."""
    texts = [HEADS[name], *(LINES[name] % (bad if n == BAD else n) for n in range(ROWS))]
    text = "".join(texts).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return len("".join(texts[: BAD + 1])), BAD + (2 if HEADS[name] else 1)


def reading(source: Path, reader: Operator, *then: Operator, block_size: int = 1 << 20) -> Any:
    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(source)], block_size=block_size))
        dag.add_operator("reader", reader)
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)  # type: ignore[attr-defined]
        output = reader.batches if isinstance(reader, ScanReader) else reader.messages  # type: ignore[attr-defined]
        for number, operator in enumerate([*then, Collector[Any]()]):
            dag.add_operator(f"then{number}", operator)
            dag.add_stream(f"rows{number}", output, operator.input)  # type: ignore[attr-defined]
            output = getattr(operator, "output", None)
            if output is None:
                break

    return populate_dag


def scan(name: str, **properties: Any) -> ScanReader[Any]:
    return ScanReader(FORMATS[name], schema="n: int64", **properties)


@pytest.mark.parametrize("block_size", [64, 1 << 20])
@pytest.mark.parametrize("name", FORMATS)
def test_a_row_that_cannot_be_read_has_its_line(name: str, block_size: int, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    position, line = write(path, name, "x")
    figures = run_dag(reading(path, scan(name, on_bad_row="drop"), block_size=block_size)).operators["reader"]
    assert figures.errors == 1
    assert figures.samples[0].startswith("column 'n': 'x' is not a valid int64 (")
    assert figures.samples[0].endswith(f", {path}:{line}, position {position})")


@pytest.mark.parametrize("name", ["csv", "json"])
def test_a_row_of_a_compressed_file_has_its_line_and_its_place_in_the_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.gz"
    position, line = write(path, name, "x")
    [sample] = run_dag(reading(path, scan(name, on_bad_row="drop"))).operators["reader"].samples
    assert sample.endswith(f", {path}:{line}, position {position})")


def test_a_null_names_its_column(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n{"m": 2}\n')
    reader = ScanReader(JsonLinesFormat(), schema={"n": Column("int64", nullable=False)}, on_bad_row="drop")
    [sample] = run_dag(reading(tmp_path / "a.jsonl", reader)).operators["reader"].samples
    assert sample.startswith("column 'n' is null, but the column must have a value (")
    assert sample.endswith("a.jsonl:2, position 9)")


def test_records_without_line_ends_have_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"  1\n  2\n  x\n")
    reader = ScanReader(FixedWidthFormat({"n": (0, 3)}, types={"n": "int64"}, line_end=""), on_bad_row="drop")
    assert all(
        ":" not in sample.rpartition("(")[2] for sample in run_dag(reading(tmp_path / "a", reader)).operators["reader"].samples
    )


@pytest.mark.parametrize("block_size", [64, 1 << 20])
@pytest.mark.parametrize(
    "behind",
    [
        Expect(pc.field("n") != 999, on_breach="warn"),
        Expect(lambda row: row["n"] != 999, on_breach="warn"),
        Refuses(999, on_error="skip"),
        Refuses(999, batches=True, on_error="skip"),
    ],
    ids=["expectation of batches", "of records", "handler of records", "of batches"],
)
def test_a_row_that_is_refused_behind_its_reader_has_its_line(behind: Operator, block_size: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    position, line = write(path, "csv", "999")
    figures = run_dag(reading(path, scan("csv"), behind, block_size=block_size)).operators["then0"]
    assert figures.errors == 1
    assert figures.samples[0].endswith(f", {path}:{line}, position {position})")


@pytest.mark.parametrize("batches", [False, True])
def test_an_error_behind_a_reader_names_the_line(batches: bool, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    position, line = write(path, "csv", "999")
    with pytest.raises(OperatorFailed) as caught:
        run_dag(reading(path, scan("csv"), Refuses(999, batches=batches), block_size=64))
    assert caught.value.source == f"{path}:{line}, position {position}"


def test_further_on_a_place_that_is_not_exact_says_so(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write(path, "csv", "999")
    figures = run_dag(reading(path, scan("csv"), Map(dict), Refuses(999, on_error="skip"))).operators["then1"]
    assert figures.samples[0].endswith(f"{path}, at or after position 0)")


def test_a_record_of_joined_small_blocks_names_its_file_or_that_there_are_several(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(f"a{number}\nb{number}\n")
    keep = Filter(~pc.starts_with(pc.field("record"), "."))
    [sample] = run_dag(reading(tmp_path, BlockReader(), keep, Map(number_of, on_error="skip"))).operators["then1"].samples
    assert sample.endswith((f"{tmp_path}/2.txt, position 3)", f"{tmp_path}/2.txt:2, position 3)"))
    with pytest.raises(OperatorFailed) as caught:
        run_dag(reading(tmp_path, BlockReader(max_readers=1), keep, RefusesMany()))
    assert caught.value.source == f"{tmp_path}/0.txt or one of 3 files read with it"


def test_a_reader_that_cannot_convert_a_record_names_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("1\n2\nx\n4\n")
    reader = BlockReader(convert_to_record=int)
    with pytest.raises(OperatorFailed) as caught:
        run_dag(reading(path, reader))
    assert "at or after" not in str(caught.value.source)
    assert str(caught.value.source).endswith("position 4")


def test_secrets_in_the_text_of_an_exception_are_masked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    figures = run_dag(reading(tmp_path / "a.txt", BlockReader(), Map(unreachable, on_error="skip"))).operators["then0"]
    assert "postgres://ada:***@host/" in figures.samples[0]
    assert "s3cret" not in figures.samples[0]


def number_of(line: Any) -> Any:
    if line.record == "b2":
        raise ValueError("not this one")
    return line


def unreachable(line: Any) -> None:
    raise OSError("cannot reach postgres://ada:s3cret@host/db")
