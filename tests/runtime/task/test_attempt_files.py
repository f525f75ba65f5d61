"""Names of files from user code are checked before they are decided: a decided window must be committed some day."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow import DAG, InputOperator, InputPort, Operator, OperatorContext, OutputPort, State, launch
from dagflow.errors import OperatorFailed
from dagflow.ledger import Ledger, read_dataset
from dagflow.runtime.task.attempt_files import AttemptFiles
from dagflow.storage.local.files import LocalFileSystem
from operators import BlockReader, Console, FileSplitterInput, RecordWriter

EACH = "each() of port 'input'"


@attrs.define
class Once(InputOperator):
    """Emits one record."""

    mark: Any = None
    output = OutputPort[str]()
    emitted = State(False)

    def emit_tuples(self) -> None:
        if not self.emitted:
            self.output.emit("x")
            self.emitted = True

    def watermark(self) -> int | None:
        mark: int | None = self.mark
        return mark


@attrs.define
class Sink(Operator):
    """Writes a file."""

    folder: str
    name: Any = "a"
    count: Any = 1
    input = InputPort[str]()

    def setup(self, context: OperatorContext) -> None:
        self.context = context

    def output_folders(self) -> list[str]:
        return [self.folder]

    @input.process
    def each(self, record: str) -> None:
        file = self.context.create_file(self.folder, self.name)
        file.write(b"row\n")
        file.records(self.count)


def run(folder: Path, mark: Any = None, **sink: Any) -> None:
    def populate_dag(dag: DAG, conf: object) -> None:
        once = dag.add_operator("once", Once(mark))
        dag.add_stream("lines", once.output, dag.add_operator("sink", Sink(str(folder), **sink)).input)

    launch(populate_dag, runner="local", progress="none")


def refused(folder: Path, doing: str, **said: Any) -> str:
    with pytest.raises(OperatorFailed) as caught:
        run(folder, **said)
    assert caught.value.doing == doing
    assert not list(folder.parent.rglob("decision/*"))
    run(folder)  # nothing was decided, and nothing stands in the way
    assert [path.name for path in folder.iterdir() if path.is_file()] == ["a"]
    assert Ledger.open(str(folder)).verify().is_clean
    return caught.value.error


@pytest.mark.parametrize("name", ["", ".", "../b", "/tmp/b", "b/", "b//c", "b/./c", "b\0", "s3://bucket/b", 5])
def test_names_that_no_file_of_an_output_can_have(tmp_path: Path, name: Any) -> None:
    told = refused(tmp_path / "out", EACH, name=name)
    assert told == f"ValueError: create_file: {name!r} is not the name of a file below the output folder"


@pytest.mark.parametrize("name", ["_dagflow/owner", "_dagflow/decision/0000000007", "_DAGFLOW/b"])
def test_names_that_are_our_own(tmp_path: Path, name: str) -> None:
    assert "which is dagflow's own" in refused(tmp_path / "out", EACH, name=name)


@pytest.mark.parametrize("count", [-1, 1.5, True, "1", None])
def test_numbers_of_records_that_are_none(tmp_path: Path, count: Any) -> None:
    assert refused(tmp_path / "out", EACH, count=count).startswith(f"ValueError: records({count!r}): it must be")


@pytest.mark.parametrize("mark", [1.5, "2026-01-01", True, 1 << 80])
def test_watermarks_that_are_none(tmp_path: Path, mark: Any) -> None:
    told = refused(tmp_path / "out", "watermark()", mark=mark)
    assert told == f"TypeError: {mark!r} is not an integer of microseconds since the epoch"


def test_names_that_are_no_utf_8(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "caf\udce9.txt"
    path.write_bytes(b"one\n")

    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(tmp_path / "in"))
        lines = dag.add_operator("lines", BlockReader())
        dag.add_stream("blocks", files.blocks_metadata_output, lines.blocks_metadata_input)
        dag.add_stream("text", lines.messages, dag.add_operator("out", RecordWriter(tmp_path / "out")).input)

    assert [launch(populate_dag, runner="local", progress="none").report.windows for _ in range(2)] == [1, 0]
    assert read_dataset(str(tmp_path / "out")).to_table().num_rows == 1
    for log in (tmp_path / "out" / "_dagflow" / "events").iterdir():
        for line in log.read_text(encoding="utf-8").splitlines():
            json.loads(line)


@pytest.mark.parametrize("doing", ["committed", "show", "is_exhausted"])
def test_what_operators_raise_where_they_are_asked_by_the_loop(tmp_path: Path, monkeypatch: Any, doing: str) -> None:
    def raises(self: Any, *args: Any) -> None:
        raise ValueError("mine")

    def populate_dag(dag: DAG, conf: object) -> None:
        once = dag.add_operator("once", Once())
        dag.add_stream("lines", once.output, dag.add_operator("shown", Console[str]()).input)

    monkeypatch.setattr(Console if doing == "show" else Once, doing, raises)
    with pytest.raises(OperatorFailed) as caught:
        launch(populate_dag, runner="local", progress="none")
    assert (caught.value.doing, caught.value.error) == (f"{doing}()", "ValueError: mine")
    assert "in raises" in caught.value.frames


def test_a_folder_whose_name_is_no_utf_8(tmp_path: Path) -> None:
    out = tmp_path / "caf\udce9"
    run(out)
    run(out)
    assert read_dataset(str(out)).to_table().num_rows == 1


def test_an_error_of_the_driver_while_abandoning_does_not_replace_the_one_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def raising(_: Any, writer: Any) -> None:
        writer.close()
        raise AttributeError("discard")

    monkeypatch.setattr(LocalFileSystem, "abandon", raising)
    files = AttemptFiles(0, "epoch", "attempt", durable=False)
    files.create("sink", str(tmp_path), "a").write(b"x" * (1 << 20))
    files.abandon()


@pytest.mark.parametrize("durable", [True, False])
def test_a_large_durable_file_goes_to_the_disk_while_it_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, durable: bool
) -> None:
    started: list[int] = []
    start_sync = LocalFileSystem.start_sync

    def noting(self: LocalFileSystem, writer: Any, start: int) -> None:
        started.append(start)
        start_sync(self, writer, start)

    monkeypatch.setattr(LocalFileSystem, "start_sync", noting)
    files = AttemptFiles(0, "epoch", "attempt", durable=durable)
    large, small = files.create("sink", str(tmp_path), "large"), files.create("sink", str(tmp_path), "small")
    content = random.Random(1).randbytes(3 << 20)
    for _ in range(8):
        large.write(content)
        small.write(b"row\n")
    staged = {file.name: Path(file.attempt).read_bytes() for file in files.finish()}
    assert staged == {"large": content * 8, "small": b"row\n" * 8}
    assert started == ([0, 9 << 20] if durable else [])
