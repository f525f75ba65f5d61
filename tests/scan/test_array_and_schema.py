"""No column of a given schema is null all the way down without a word."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import attrs
import pyarrow as pa
import pytest

from dagflow.errors import ReaderMisbehaves
from dagflow.scan import FileSchemaNegotiator, Format, ManagedReader, RowOrigin
from dagflow.testing import run_dag, scan_table
from operators import CsvFormat, FileSplitterInput, JsonLinesFormat, JsonLinesWriter, ScanReader


class Fields(ManagedReader[FileSchemaNegotiator]):
    """Loads the fields of each line as the array, or by name where it asks which of them it is to be."""

    def open(self, negotiator: FileSchemaNegotiator) -> bool:
        self.options: Any = negotiator.options
        self.is_array = negotiator.is_array or not self.options.asks
        self.names = [field.name for field in negotiator.provided_schema or ()]
        self.lines = negotiator.stream.read(1 << 20).splitlines(keepends=True)
        self.loader = negotiator.build()
        return True

    def next(self) -> bool:
        at = 0
        for line in self.lines:
            fields = line.decode().strip().split(",")
            values = {"columns": fields} if self.is_array else dict(zip(self.names, fields, strict=False))
            if self.options.in_batches:
                self.loader.add_batch(pa.RecordBatch.from_pylist([values]))
            elif self.loader.start(RowOrigin(position=at)):
                for name, value in values.items():
                    self.loader.set(name, value)
                self.loader.save()
            at += len(line)
        return False


@attrs.define
class Commas(Format):
    """Lines of fields, without a header."""

    offers_array: ClassVar[bool] = True
    has_header: bool = False
    asks: bool = False
    in_batches: bool = False

    def make_reader(self) -> Fields:
        return Fields()


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "in" / "a.txt"
    file.parent.mkdir()
    file.write_text("1,a\n2,b\n")
    return str(file)


@pytest.mark.parametrize("in_batches", [False, True])
@pytest.mark.parametrize("columns", [None, ["id"], ["*"]])
def test_a_reader_that_loads_the_array_where_columns_have_names_is_refused(path: str, columns: Any, in_batches: bool) -> None:
    reader = ScanReader(Commas(in_batches=in_batches), columns=columns, schema="id: int64, name: string")
    with pytest.raises(ReaderMisbehaves, match=r"loads the array `columns`, .* have names \(id, name\): load these"):
        scan_table(reader, path)


@pytest.mark.parametrize("in_batches", [False, True])
def test_one_that_asks_is_not(path: str, in_batches: bool) -> None:
    fmt = Commas(asks=True, in_batches=in_batches)
    named = scan_table(ScanReader(fmt, schema="id: int64, name: string"), path)
    assert named.to_pydict() == {"id": [1, 2], "name": ["a", "b"]}
    assert scan_table(ScanReader(fmt), path).to_pydict() == {"columns": [["1", "a"], ["2", "b"]]}


def test_rows_loaded_one_by_one_say_where_they_stand(path: str) -> None:
    found = scan_table(ScanReader(Commas(), columns=["columns[0]", "block_offset"]), path)
    assert found.column(1).to_pylist() == [0, 4]


@pytest.mark.parametrize(("kind", "text", "rows"), [(CsvFormat(), "a,b\n1,2\n", 1), (JsonLinesFormat(), '{"a": 1}\n', 1)])
def test_rows_of_files_with_none_of_the_columns_are_counted(tmp_path: Path, kind: Any, text: str, rows: int) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text(text)

    def application(dag: Any, conf: Any) -> None:
        files = dag.add_operator("files", FileSplitterInput([str(tmp_path / "in")]))
        reader = dag.add_operator("reader", ScanReader(kind, columns=["id"], schema="id: int64"))
        writer = dag.add_operator("writer", JsonLinesWriter(str(tmp_path / "out")))
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("rows", reader.batches, writer.input)

    report = run_dag(application, None, runner="local")
    assert report.operators["reader"].counters["rows_without_values"] == rows
