"""Records of small blocks that are emitted together are those that each block has by itself."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import DAG, FileBlockMetadata, InputPort, Operator, ReaderRecord
from dagflow.errors import DagflowError
from dagflow.model.operator.context import ItemPart
from dagflow.runtime.stage.parts import Part, narrowed
from dagflow.storage import FileStatus
from dagflow.testing import FakeClock, OperatorTask, run_dag
from operators import BlockReader, FileSplitterInput, Filter, Map, ReadAheadLineReaderContext, RecordWriter
from operators.contexts import BadText
from operators.readers.reading.joined_pieces import MAX_BLOCK_BYTES
from tests.operators.readers.test_claiming import Splitter

TEXT = st.text(alphabet="ab|\n\ré", max_size=20).map(str.encode)


@attrs.define
class Files:
    """A file system of some files."""

    contents: dict[str, bytes]

    def open(self, path: str) -> Any:
        return io.BytesIO(self.contents[path])

    def status(self, path: str) -> FileStatus:
        return FileStatus(path, len(self.contents[path]), 1, is_directory=False, is_regular=True)


@attrs.define
class OfMemory(BlockReader):
    files: Files = attrs.field(kw_only=True)

    def get_file_system(self) -> Files:
        return self.files


def blocks_of(contents: list[bytes], size: int) -> tuple[Files, list[FileBlockMetadata]]:
    """Files with these contents, and their blocks."""
    files = Files({f"{number:03d}.txt": data for number, data in enumerate(contents)})
    blocks: list[FileBlockMetadata] = []
    for path, data in files.contents.items():
        for start in range(0, len(data), size):
            stop, number = min(start + size, len(data)), len(blocks)
            blocks.append(FileBlockMetadata(number, path, start, stop, len(data), stop == len(data), number - 1 if start else -1))
    return files, blocks


def task_of(reader: Any, joins: bool = True, clock: FakeClock | None = None) -> OperatorTask:
    task = OperatorTask(reader, in_batches=True, clock=clock)
    reader.blocks_metadata_output.is_connected = False
    reader.messages.takes_mixed_batches = joins
    return task


def read(reader: Any, blocks: list[FileBlockMetadata], joins: bool = True) -> OperatorTask:
    with task_of(reader, joins) as task:
        task.give("blocks_metadata_input", blocks)
    return task


@pytest.mark.parametrize("terminators", [("\n", "\r\n"), ("\n", "\r\n", "\r"), ("||",), ("ab",)])
@given(contents=st.lists(TEXT, max_size=6), size=st.integers(3, 30))
def test_joined_or_not_the_records_are_the_same(terminators: tuple[str, ...], contents: list[bytes], size: int) -> None:
    files, blocks = blocks_of(contents, size)

    def reader() -> OfMemory:
        return OfMemory(files=files, reader_context=ReadAheadLineReaderContext(terminators=terminators))

    one_by_one, together = read(reader(), blocks, joins=False), read(reader(), blocks)
    assert together.emitted["messages"] == one_by_one.emitted["messages"]
    counters = ("bytes", "records", "blocks", "streams_opened")
    assert [together.counters.get(name) for name in counters] == [one_by_one.counters.get(name) for name in counters]


@given(contents=st.lists(TEXT, max_size=6), seed=st.integers(0, 99))
def test_parts_of_blocks_may_still_be_taken_over(contents: list[bytes], seed: int) -> None:
    files, blocks = blocks_of(contents, 12)
    chance = random.Random(seed)
    waiting: list[tuple[FileBlockMetadata, Any]] = [(block, None) for block in blocks]
    found: list[Any] = []
    while waiting:
        task = task_of(OfMemory(files=files))
        splitter = task.context.services.stealable = Splitter(chance)
        several, waiting = waiting, []
        with task:
            for block, part in several:
                splitter.tracker = None
                task.context.services.cursor.part = None if part is None else ItemPart(block, part.start, part.stop)
                task.give("blocks_metadata_input", [block if part is None else narrowed(block, part)])
                waiting += [(block, Part(0, *residual)) for residual in splitter.residuals]
                splitter.residuals.clear()
        found += task.emitted["messages"]
    assert sorted(found) == sorted(read(OfMemory(files=files), blocks, joins=False).emitted["messages"])


def test_small_blocks_become_few_batches_and_large_ones_do_not_wait() -> None:
    files, blocks = blocks_of([b"a line\n" * 10] * 100, 1000)
    assert read(OfMemory(files=files), blocks).chunks["messages"] == [("batch", 1000)]
    large = b"x" * 99 + b"\n"
    files, blocks = blocks_of([b"small\n", large * (MAX_BLOCK_BYTES // 100 + 1), b"last"], 1 << 20)
    rows = [count for _, count in read(OfMemory(files=files), blocks).chunks["messages"]]
    assert rows == [1, MAX_BLOCK_BYTES // 100 + 1, 1]


def test_slow_records_do_not_wait_for_others() -> None:
    files, blocks = blocks_of([b"line\n" * 10] * 20, 1000)
    clock, calls = FakeClock(), []
    task = task_of(OfMemory(files=files), clock=clock)
    messages: Any = task.operator.messages  # type: ignore[attr-defined]
    emit = messages.emit_batch

    def slowly(batch: pa.RecordBatch) -> None:
        calls.append(batch.num_rows)
        clock.advance(0.02 * batch.num_rows)
        emit(batch)

    messages.emit_batch = slowly
    task.context.services.stealable = Splitter(random.Random(1), rate=0)
    with task:
        task.give("blocks_metadata_input", blocks)
    assert sum(calls) == 200
    assert max(calls) <= 4


def test_bad_text_names_its_file() -> None:
    files, blocks = blocks_of([b"one\n", b"two\nb\xffd\n", b"three\n"], 100)
    with pytest.raises(BadText) as caught:
        read(OfMemory(files=files), blocks)
    assert (caught.value.path, caught.value.position) == (blocks[1].file_path, 4)
    task = read(OfMemory(files=files, on_error="route"), blocks)
    assert [record.record for record in task.emitted["messages"]] == ["one", "two", "three"]
    (error,) = task.emitted["errors"]
    assert (error.file_path, error.position) == (blocks[1].file_path, 4)


def test_a_reader_that_ends_the_window_in_its_own_way_loses_nothing() -> None:
    @attrs.define
    class Own(OfMemory):
        def end_window(self) -> None:
            """Without super()."""

    files, blocks = blocks_of([b"one\n", b"two\n"], 100)
    assert len(read(Own(files=files), blocks).emitted["messages"]) == 2


# Whole applications


@attrs.define
class Refuses(Operator):
    """A sink of batches that refuses a record."""

    refused: str

    input = InputPort[ReaderRecord[str]]()

    @input.batch
    def take(self, batch: pa.RecordBatch) -> None:
        """Raise for the record."""
        if pc.index(batch.column("record"), self.refused).as_py() >= 0:
            raise ValueError(f"no {self.refused}")


def files_in(folder: Path) -> list[Path]:
    paths = [folder / f"{number}.txt" for number in range(5)]
    for number, path in enumerate(paths):
        path.write_text(f".{number}\nline {number}\nend {number}")
    return paths


def kept(sink: Any, folder: Path) -> Any:
    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(folder)]))
        reader = dag.add_operator("reader", BlockReader())
        keep = dag.add_operator("keep", Filter(~pc.starts_with(pc.field("record"), ".")))
        dag.add_operator("sink", sink)
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, keep.input)
        dag.add_stream("kept", keep.output, sink.input)

    return populate_dag


def test_an_error_behind_the_reader_names_the_file_of_the_record(tmp_path: Path) -> None:
    paths = files_in(tmp_path)
    with pytest.raises(DagflowError) as caught:
        run_dag(kept(Refuses("line 3"), tmp_path))
    assert f"{paths[3]}, position 3" in str(caught.value)
    report = run_dag(kept(Refuses("end 4", on_error="skip"), tmp_path))
    assert f"{paths[4]}, position 10" in report.operators["sink"].samples[0]


def test_each_block_has_its_file(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    files_in(tmp_path / "in")
    run_dag(kept(RecordWriter(str(tmp_path / "out"), per_block=True), tmp_path / "in"))
    written = {path.name: path.read_text() for path in (tmp_path / "out").iterdir() if path.name[0] != "_"}
    assert written == {f"{number:x}": f"line {number}\nend {number}\n" for number in range(5)}


def test_records_that_do_not_name_their_block_come_file_by_file(tmp_path: Path) -> None:
    paths = files_in(tmp_path)

    @attrs.define
    class RefusesText(Operator):
        input = InputPort[str]()

        @input.batch
        def take(self, batch: pa.RecordBatch) -> None:
            """Raise for a line."""
            if pc.index(batch.column("value"), "line 3").as_py() >= 0:
                raise ValueError("no line 3")

    def populate_dag(dag: DAG, conf: object) -> None:
        files = dag.add_operator("files", FileSplitterInput(files=[str(tmp_path)]))
        reader = dag.add_operator("reader", BlockReader())
        text = dag.add_operator("text", Map[ReaderRecord[str], str](pc.field("record")))
        refuses = dag.add_operator("refuses", RefusesText())
        dag.add_stream("blocks", files.blocks_metadata_output, reader.blocks_metadata_input)
        dag.add_stream("lines", reader.messages, text.input)
        dag.add_stream("texts", text.output, refuses.input)

    with pytest.raises(DagflowError) as caught:
        run_dag(populate_dag)
    assert str(paths[3]) in str(caught.value)


def test_what_waits_is_not_of_the_part_that_follows() -> None:
    files, blocks = blocks_of([b"one\n", b"two\n", b"three\n"], 100)
    task = task_of(OfMemory(files=files))
    messages: Any = task.operator.messages  # type: ignore[attr-defined]
    parts, emit = [], messages.emit_batch

    def noting(batch: pa.RecordBatch) -> None:
        parts.append((batch.column("record").to_pylist(), task.context.part))
        emit(batch)

    messages.emit_batch = noting
    with task:
        task.give("blocks_metadata_input", blocks[:2])
        part = task.context.services.cursor.part = ItemPart(blocks[2], 2, 6)
        task.give("blocks_metadata_input", [narrowed(blocks[2], Part(0, 2, 6))])
        task.give("blocks_metadata_input", [narrowed(blocks[2], Part(0, 0, 2))])
    assert parts == [(["one", "two"], None), (["three"], part)]


def test_quick_records_are_claimed_block_by_block_and_emitted_together() -> None:
    files, blocks = blocks_of([b"a line\n" * 10] * 100, 1000)
    task = task_of(OfMemory(files=files))
    task.context.services.stealable = Splitter(random.Random(1), rate=0)
    with task:
        task.give("blocks_metadata_input", blocks)
    assert [count for _, count in task.chunks["messages"]] == [4, 996]
