"""Records that are emitted as a window begins: they reach operators whose own window has begun, wherever in a DAG."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pyarrow.parquet as pq
import pytest

from dagflow import DAG, FileInfo, FileMetadata, InputPort, Operator, OutputPort
from dagflow.errors import PortUnbound
from dagflow.scaling import StatelessPartitioner
from dagflow.testing import Collector, run_dag, run_operator
from operators import Count, CsvWriter, FileSplitterBase, JsonLinesWriter, Map, ParquetWriter, RecordWriter, Sum, TopN
from tests.conformance.windows import InWindows

FILES = 12


@attrs.frozen
class Length:
    name: str
    length: int
    all: str = "all"


def length_of(file: FileMetadata) -> Length:
    return Length(file.file_name, file.file_length)


def splitting(folder: Path, *behind: Any, partitions: int = 0) -> Any:
    """An application whose splitter emits 4 files a window, most of them as a window begins; operators behind it."""
    folder.mkdir()
    for number in range(FILES):
        (folder / f"f{number:02}.txt").write_text("ab")
    infos = [FileInfo(str(folder), f"f{number:02}.txt") for number in range(FILES)]

    def populate_dag(dag: DAG, conf: object) -> None:
        given = dag.add_operator("given", InWindows[FileInfo]([infos]))
        splitter = dag.add_operator("splitter", FileSplitterBase(blocks_threshold=4))
        last: Any = dag.add_operator("lengths", Map(length_of))
        if partitions:
            dag.set_attributes(last, partitioner=StatelessPartitioner(partitions))
        dag.add_stream("infos", given.output, splitter.input)
        dag.add_stream("files", splitter.files_metadata_output, last.input)
        for number, operator in enumerate(behind):
            added = dag.add_operator(f"behind{number}", operator)
            dag.add_stream(f"to {number}", last.output, added.input)
            last = added

    return populate_dag


@pytest.mark.parametrize("partitions", [0, 2], ids=["on the driver", "in tasks"])
def test_aggregates_get_all_that_a_splitter_emits(tmp_path: Path, partitions: int) -> None:
    seen: Any
    for number, (operator, expected) in enumerate(
        [
            (Sum[Length, str, int](of="length", by="all", scope="window"), [8, 8, 8]),
            (Count[Length, str](by="all", scope="window"), [4, 4, 4]),
        ]
    ):
        seen = Collector[Any]()
        assert run_dag(splitting(tmp_path / f"{number}", operator, seen, partitions=partitions)).windows == 3
        assert [each.value for each in seen.records] == expected
    seen = Collector[Length]()
    run_dag(splitting(tmp_path / "top", TopN[Length](3, of="name", scope="window"), seen, partitions=partitions))
    assert sorted(each.name for each in seen.records) == [f"f{n:02}.txt" for n in range(FILES) if n % 4]


@attrs.define
class Named(RecordWriter[Length]):
    def get_bytes_for_tuple(self, record: Length) -> bytes:
        return f"{record.name}\n".encode()


def test_writers_have_named_the_files_of_the_window(tmp_path: Path) -> None:
    expected = Counter(f"f{n:02}.txt" for n in range(FILES))
    for number, writer in enumerate([Named, CsvWriter, JsonLinesWriter, ParquetWriter]):
        output = tmp_path / writer.__name__
        application = splitting(tmp_path / f"{number}", writer(str(output)))
        assert [run_dag(application, max_windows=1).windows for _ in range(3)] == [1, 1, 1]  # each in a launch of its own
        found: Counter[str] = Counter()
        for path in (each for each in output.iterdir() if each.name[0] not in "._"):
            if writer is Named:
                found.update(path.read_text().split())
            elif writer is CsvWriter:
                found.update(row["name"] for row in csv.DictReader(path.read_text().splitlines()))
            elif writer is JsonLinesWriter:
                found.update(json.loads(line)["name"] for line in path.read_text().splitlines())
            else:
                found.update(pq.read_table(path).column("name").to_pylist())
        assert found == expected, writer


@attrs.define
class Early(Operator):
    """Emits in `setup`: one record, more than an outlet holds, or a batch."""

    how: str = "emit"
    input = InputPort[int]()
    output = OutputPort[int]()

    def setup(self, context: object) -> None:
        if self.how == "emit":
            self.output.emit(1)
        else:
            self.output.emit_all(range(10_000))

    @input.process
    def each(self, number: int) -> None:
        self.output.emit(number)


@attrs.define
class Passing(Operator):
    input = InputPort[int]()
    output = OutputPort[int]()

    @input.process
    def each(self, number: int) -> None:
        self.output.emit(number)


PLACES = ["on the driver", "first in tasks", "fused", "behind an exchange", "last"]


@pytest.mark.parametrize("how", ["emit", "emit_all"])
@pytest.mark.parametrize("place", PLACES)
def test_emitting_in_setup_is_refused_at_every_place(place: str, how: str) -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        last: Any = dag.add_operator("given", InWindows[int]([[1]]))
        for name in PLACES:
            operator: Any = dag.add_operator(name.replace(" ", "_"), Early(how) if name == place else Passing())
            if name in ("first in tasks", "behind an exchange"):
                dag.set_attributes(operator, partitioner=StatelessPartitioner(2))
            dag.add_stream(f"to {name}", last.output, operator.input)
            last = operator

    with pytest.raises(PortUnbound) as caught:
        run_dag(populate_dag)
    assert str(caught.value).startswith(
        f"{place.replace(' ', '_')}.output: emit() works only within a window: in begin_window(), "
    )
    assert str(caught.value).endswith(", not in setup()")


@attrs.define
class Late(Passing):
    def teardown(self) -> None:
        self.output.emit(1)


def test_emitting_in_teardown_is_refused() -> None:
    with pytest.raises(PortUnbound, match=r"not in teardown\(\)"):
        run_operator(Late(), {"input": [1]})
