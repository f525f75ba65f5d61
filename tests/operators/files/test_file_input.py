from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, ErrorRecord, FileMetadata
from dagflow.errors import UnknownProperty
from dagflow.model.graph.checks import check
from dagflow.model.graph.dag import PortName
from dagflow.testing import Collector, run_dag
from operators import BlockReader, FileInput, FileSplitterInput, FixedBytesReaderContext, TimeBasedDirectoryScanner


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_text("1\n22\n333\n")
    (tmp_path / "in" / "deep" / "b.log").write_text("4\nx\n")
    return tmp_path / "in"


def application(made: FileInput[Any], **sinks: Collector[Any]) -> Any:
    def populate_dag(dag: DAG, conf: Any) -> None:
        files = dag.add_module("files", made)
        for port, sink in sinks.items():
            dag.add_operator(port, sink)
            dag.add_stream(port, getattr(files, port), sink.input)

    return populate_dag


def test_all_its_ports(folder: Path) -> None:
    files, blocks, lines = Collector[FileMetadata](), Collector[Any](), Collector[Any]()
    made = FileInput(folder, block_size=4, scanner=TimeBasedDirectoryScanner(file_pattern_regular_exp=r".*\.txt"))
    report = run_dag(application(made, files_metadata_output=files, blocks_metadata_output=blocks, messages=lines))
    assert [file.file_name for file in files.records if not file.is_directory] == ["a.txt"]
    assert [(block.start, block.stop) for block in blocks.records] == [(0, 4), (4, 8), (8, 9)]
    assert [line.record for line in lines.records] == ["1", "22", "333"]
    assert report.operators["files.reader"].counters["blocks"] == 3


def test_records_of_another_type_and_bad_ones(folder: Path) -> None:
    numbers, errors = Collector[Any](), Collector[ErrorRecord]()
    made = FileInput(folder, convert_to_record=int)
    run_dag(application(made, messages=numbers, errors=errors), {"operator.files.reader.on_error": "route"})
    assert sorted(number.record for number in numbers.records) == [1, 4, 22, 333]
    assert [(error.operator, error.record) for error in errors.records] == [("files.reader", "x")]


def test_its_properties_can_be_set_and_those_of_its_operators(folder: Path) -> None:
    lines = Collector[Any]()
    settings = {
        "operator.files.block_size": 2,
        "operator.files.scanner.recursive": False,
        "operator.files.reader_context.length": 3,
        "operator.files.reader.max_readers": 1,
    }
    made = FileInput(folder, reader_context=FixedBytesReaderContext(length=5))
    report = run_dag(application(made, messages=lines), settings)
    # slices are of any bytes, and restart at every cut
    assert "".join(line.record for line in lines.records) == "1\n22\n333\n"
    assert {len(line.record) for line in lines.records} == {1, 2}
    assert report.operators["files.splitter"].counters["blocks_planned"] == 5


def test_a_misspelt_property_is_told_with_what_there_is(folder: Path) -> None:
    with pytest.raises(UnknownProperty) as found:
        run_dag(application(FileInput(folder), messages=Collector()), {"operator.files.block_sise": "2"})
    assert (found.value.operator, found.value.operator_class, found.value.name) == ("files", "FileInput", "block_sise")
    assert {"block_size", "splitter", "reader"} <= set(found.value.known)


@pytest.mark.parametrize("inner", [FileSplitterInput, BlockReader])
def test_its_defaults_are_those_of_its_operators(inner: type) -> None:
    theirs = {field.name: field.default for field in attrs.fields(inner)}
    for field in attrs.fields(FileInput):
        if field.name in theirs and not isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
            assert field.default == theirs[field.name] or field.name == "scanner", field.name


def test_the_type_of_its_records_is_that_of_the_conversion() -> None:
    def to_int(data: bytes) -> int:
        return int(data)

    dag = DAG()
    plain, numbers = dag.add_module("plain", FileInput("/")), dag.add_module("numbers", FileInput("/", convert_to_record=to_int))
    for name, module in (("a", plain), ("b", numbers)):
        dag.add_stream(name, module.messages, dag.add_operator(f"sink_{name}", Collector[Any]()).input)
    types = check(dag).types
    assert str(types[PortName("plain.reader", "messages")]).endswith("ReaderRecord[str]")
    assert str(types[PortName("numbers.reader", "messages")]).endswith("ReaderRecord[int]")
