from __future__ import annotations

import contextlib
import errno
import json
import time
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dagflow import DAG, OperatorContext
from dagflow.errors import BadRowFound, DagflowError, InfrastructureError, ProjectionError
from dagflow.scan import AgreedSchema, BatchLimits
from dagflow.testing import Collector, run_dag, run_operator, scan_table
from dagflow.testing.files import blocks_of
from operators import CsvFormat, FileSplitterInput, JsonLinesFormat, Map, ParquetFormat, ScanReader
from operators.contexts.errors import FileShortened
from operators.readers.errors import FileChanged, FileGone

FORMATS = [JsonLinesFormat(), CsvFormat(), CsvFormat(header=False), ParquetFormat()]


@attrs.frozen
class Trip:
    n: int
    name: str | None
    tags: list[str] | None = None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "f.jsonl"
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(100)))
    return path


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"columns": "a"}, "columns is the text 'a', but must be a list of names"),
        ({"schema": "a"}, "'a' is not a column: write NAME: TYPE"),
        ({"on_bad_row": "ignore"}, "on_bad_row"),
        ({"drift": "null"}, "drift"),
        ({"sample_files": 0}, "sample_files"),
    ],
)
def test_properties_are_checked_when_they_are_set(properties: dict[str, Any], problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        ScanReader(JsonLinesFormat(), **properties)


def test_a_format_is_asked_for() -> None:
    with pytest.raises(TypeError, match=r"format is .*CsvFormat.*, but must be a format"):
        ScanReader(CsvFormat)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reader", "problem"),
    [
        (ScanReader(JsonLinesFormat(), columns=["a", "a"]), "asked for twice"),
        (ScanReader(JsonLinesFormat(), null_type="nothing"), "names no type"),
        (ScanReader(JsonLinesFormat(), on_error="route"), 'set on_bad_row = "route"'),
        (ScanReader(CsvFormat(header=False), columns=["a"]), "no header"),
        (ScanReader[Trip](JsonLinesFormat(), columns=["n"]), "are the fields of Trip"),
        (ScanReader(JsonLinesFormat(), min_readers=5, max_readers=2), "min_readers"),
    ],
)
def test_properties_that_do_not_go_together(reader: ScanReader, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        reader.check()


def test_what_is_asked_for_is_understood_in_formats_without_the_array(path: Path) -> None:
    path.write_text('{"columns": 1, "x": 2}\n')
    assert scan_table(ScanReader(JsonLinesFormat(), columns=["columns", "x"]), path).to_pylist() == [{"columns": 1, "x": 2}]
    with pytest.raises(ProjectionError):
        scan_table(ScanReader(CsvFormat(), columns=["columns", "x"]), path)


def test_figures(path: Path) -> None:
    emitted = run_operator(ScanReader(JsonLinesFormat()), {"blocks_metadata_input": blocks_of(str(path), 50)})
    size = path.stat().st_size
    expected = {"blocks": -(-size // 50), "bytes": size, "records": 100, "streams_opened": -(-size // 50)}
    assert {name: emitted.counters[name] for name in expected} == expected


@pytest.mark.parametrize("block_size", [None, 7, 1000])
def test_counting(path: Path, block_size: int | None) -> None:
    path.write_text('{"n": 1}\n\n  \n{"n": 2}\n{"n": 3}')
    reader = ScanReader(JsonLinesFormat())
    assert scan_table(reader, path, columns=[], block_size=block_size).num_rows == 3
    assert scan_table(reader, path, columns=["block_offset"], block_size=block_size).column(0).to_pylist() == [0, 13, 22]


def test_agreeing_happens_once() -> None:
    plain = AgreedSchema(columns=(("a", "list<struct<`x y`: int8>>"),), files=3, root="/w", keys={"k": "int64"}).to_plain()
    assert ScanReader(JsonLinesFormat()).agree([], plain, OperatorContext()) is plain
    assert AgreedSchema.of(plain).to_plain() == plain


def test_records_of_a_class(path: Path) -> None:
    path.write_text('{"n": 1, "other": 2}\n{"name": "b", "n": 2, "tags": ["x"]}\n')
    reader = ScanReader[Trip](JsonLinesFormat())
    assert run_operator(reader, {"blocks_metadata_input": blocks_of(str(path))})["batches"] == [
        Trip(1, None),
        Trip(2, "b", ["x"]),
    ]
    assert reader.describe_columns("batches") == "n: int64, name: string, tags: list<string>"
    path.write_text('{"name": "c"}\n')
    with pytest.raises(BadRowFound, match="column 'n': is null, but the column must have a value"):
        scan_table(reader, path)


def test_the_type_of_its_records_is_known_downstream(path: Path, tmp_path: Path) -> None:
    path.write_text('{"n": 1, "name": "a"}\n')
    seen = Collector[int]()

    def populate(dag: DAG, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(path)]))
        trips = dag.add_operator("trips", ScanReader[Trip](JsonLinesFormat()))
        numbers = dag.add_operator("numbers", Map(lambda trip: trip.n))
        keep = dag.add_operator("keep", seen)
        dag.add_stream("blocks", files.blocks_metadata_output, trips.blocks_metadata_input)
        dag.add_stream("trips", trips.batches, numbers.input)
        dag.add_stream("n", numbers.output, keep.input)

    run_dag(populate, {})
    assert seen.records == [1]


# Bad input


@pytest.mark.parametrize("format", FORMATS[:3], ids=repr)
def test_an_empty_file_has_no_rows(tmp_path: Path, format: Any) -> None:
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert scan_table(ScanReader(format), path).num_rows == 0
    assert scan_table(ScanReader(format, schema="a: string"), path).schema.names == ["a"]


@pytest.mark.parametrize("format", FORMATS, ids=repr)
@pytest.mark.parametrize("size", [1, 1000, 3_000_000])
def test_what_is_no_such_format_is_told_or_read_as_text_never_a_crash(tmp_path: Path, format: Any, size: int) -> None:
    path = tmp_path / "noise"
    path.write_bytes(bytes(range(256)) * (size // 256 + 1))
    with contextlib.suppress(DagflowError):
        scan_table(ScanReader(format), path, block_size=size // 2 + 1)


@pytest.mark.parametrize("format", FORMATS, ids=repr)
def test_a_folder_named_like_a_file(tmp_path: Path, format: Any) -> None:
    folder = tmp_path / "f.csv"
    folder.mkdir()
    block = attrs.evolve(blocks_of(__file__)[0], file_path=str(folder), modified_ns=None)
    with pytest.raises(DagflowError, match=r"f\.csv"):
        run_operator(ScanReader(format, schema="a: string"), {"blocks_metadata_input": [block]})


def test_a_file_that_may_not_be_read(path: Path) -> None:
    class Denied(ScanReader):
        """On a file system that says no, also to root."""

        def get_file_system(self) -> Any:
            return self

        def open(self, path: str) -> Any:
            raise PermissionError(errno.EACCES, "Permission denied", path)

    with pytest.raises(InfrastructureError, match=rf"{path.name}(.|\n)*permission to read"):
        scan_table(Denied(JsonLinesFormat()), path)


@pytest.mark.parametrize("schema", [None, "n: int64"])
def test_a_file_that_is_gone_or_has_changed_since_it_was_planned(path: Path, schema: str | None) -> None:
    reader, planned = ScanReader(JsonLinesFormat(), schema=schema), blocks_of(str(path))
    path.write_text('{"n": 1}\n')
    with pytest.raises(FileChanged):
        run_operator(reader, {"blocks_metadata_input": planned})
    path.unlink()
    with pytest.raises(FileGone):
        run_operator(reader, {"blocks_metadata_input": planned})


def test_a_file_that_is_cut_short_while_it_is_read(path: Path) -> None:
    planned = [attrs.evolve(block, file_length=block.file_length + 10, stop=block.stop + 10) for block in blocks_of(str(path))]

    class Cut(ScanReader):
        """Does not check the file before it reads it."""

        def setup_stream(self, block: Any) -> Any:
            return open(block.file_path, "rb")

    with pytest.raises(FileShortened, match=r"has 990 bytes, but had 1000 when its blocks were planned"):
        run_operator(Cut(JsonLinesFormat(), schema="n: int64"), {"blocks_metadata_input": planned})


def test_files_that_are_read_as_they_are_by_then(path: Path) -> None:
    planned = [attrs.evolve(block, as_planned=False) for block in blocks_of(str(path), 300)]
    path.write_text("".join(f'{{"n": {n}}}\n' for n in range(40)))
    emitted = run_operator(ScanReader(JsonLinesFormat(), schema="n: int64"), {"blocks_metadata_input": planned})
    assert [row["n"] for row in emitted["batches"]] == list(range(40))
    assert emitted.counters["blocks_beyond_end"] == 2


def test_blocks_that_cannot_be_read_may_be_let_pass(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "gone.jsonl"
    other.write_text('{"n": 1}\n')
    planned = [*blocks_of(str(other)), *blocks_of(str(path))]
    other.unlink()
    emitted = run_operator(
        ScanReader(JsonLinesFormat(), schema="n: int64", columns=["n"], on_error="skip"), {"blocks_metadata_input": planned}
    )
    assert len(emitted["batches"]) == 100
    assert emitted.skipped == 1


def test_a_name_that_stands_for_two_columns(tmp_path: Path) -> None:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table([[1], [2], [3]], names=["a", "a", "b"]), path)
    assert scan_table(ScanReader(ParquetFormat(), columns=["b"]), path).to_pylist() == [{"b": 3}]
    with pytest.raises(DagflowError, match="several columns 'a'"):
        scan_table(ScanReader(ParquetFormat(), columns=["a"]), path)


@pytest.mark.parametrize("schema", [None, "*: int64", "b: int64"])
def test_a_column_called_star(tmp_path: Path, schema: str | None) -> None:
    (tmp_path / "a.jsonl").write_text('{"*": 1, "b": 2}\n')
    pq.write_table(pa.table({"*": [1], "b": [2]}), tmp_path / "a.parquet")
    for kind, name in ((JsonLinesFormat(), "a.jsonl"), (ParquetFormat(), "a.parquet")):
        for columns, wanted in ((None, ["*", "b"]), (["`*`"], ["*"]), (["b", "*"], ["b", "*"]), (["`*`", "*"], ["*", "b"])):
            table = scan_table(ScanReader(kind, columns=columns, schema=schema), tmp_path / name)
            assert sorted(table.column_names) == sorted(wanted)
            assert table.to_pylist() == [{key: {"*": 1, "b": 2}[key] for key in table.column_names}]


@pytest.mark.parametrize(
    ("properties", "declared"),
    [
        ({"schema": "a: int32, m: struct<x: int8>"}, [("a", "int32"), ("m", "struct<x: int8>")]),
        ({"schema": "a: int32, b: string", "columns": ["b", "*"]}, [("b", "string"), ("a", "int32")]),
        ({"schema": "a: int32, m: struct<x: int8>", "columns": ["m.x"]}, [("m.x", "int8")]),
        ({"schema": "a: int32", "columns": ["a", "b"]}, None),  # only files say the type of b
        ({"columns": ["a"]}, None),
        ({}, None),
    ],
)
def test_the_columns_that_are_known_before_any_file(properties: dict[str, Any], declared: Any) -> None:
    reader = ScanReader[Any](JsonLinesFormat(), **properties)
    assert reader.declared_columns("batches") == declared
    assert reader.declared_columns("errors") is None


def test_a_folder_of_rows_without_a_value(tmp_path: Path) -> None:
    for value in ("__HIVE_DEFAULT_PARTITION__", "%5F_HIVE_DEFAULT_PARTITION__", "se"):
        (tmp_path / f"k={value}").mkdir()
        (tmp_path / f"k={value}" / "a.jsonl").write_text('{"n": 1}\n')
    table = scan_table(ScanReader(JsonLinesFormat()), sorted(tmp_path.glob("*/*")))
    assert set(table["k"].to_pylist()) == {None, "__HIVE_DEFAULT_PARTITION__", "se"}


def test_thousands_of_columns(path: Path) -> None:
    row = {f"c{n}": n for n in range(3_000)}
    path.write_text(json.dumps(row) + "\n")
    began = time.process_time()
    assert scan_table(ScanReader(JsonLinesFormat()), path).to_pylist() == [row]
    assert time.process_time() - began < 3


def test_an_error_names_the_reader_in_its_advice(path: Path) -> None:
    path.write_text('{"n": 1}\n{"n"\n')
    with pytest.raises(BadRowFound, match=r"-D operator\.reader\.on_bad_row=drop"):
        scan_table(ScanReader(JsonLinesFormat()), path)


def test_small_batches(path: Path) -> None:
    reader = ScanReader(JsonLinesFormat(), limits=BatchLimits(rows=7))
    table = scan_table(reader, path)
    assert table.num_rows == 100
    assert max(batch.num_rows for batch in table.to_batches()) == 7
