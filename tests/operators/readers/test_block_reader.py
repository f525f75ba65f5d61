from __future__ import annotations

import io
import os
import pickle
import random
from pathlib import Path
from typing import Any

import attrs
import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow import FileBlockMetadata, ReaderRecord
from dagflow.errors import InfrastructureError
from dagflow.model.graph.infer import own_bindings, port_types
from dagflow.storage import FileStatus
from dagflow.testing import OperatorTask
from operators import BlockReader, Entity, FixedRecordsReaderContext, FSSliceReader, LineReaderContext, ReaderContext
from operators.contexts import BadText, FixedBytesReaderContext
from operators.readers.errors import FileChanged, FileGone

PATH = "log.txt"
CONTENTS = st.text(alphabet="ab\n\ré", max_size=30).map(str.encode)


@attrs.define
class OneFile:
    """A file system of one file."""

    data: bytes
    modified_ns: int = 1

    def open(self, path: str) -> Any:
        return io.BytesIO(self.data)

    def status(self, path: str) -> FileStatus:
        return FileStatus(path, len(self.data), self.modified_ns, is_directory=False, is_regular=True)


def blocks_of(data: bytes, size: int, path: str = PATH, modified_ns: int | None = 1) -> list[FileBlockMetadata]:
    starts = range(0, len(data), size)
    return [
        FileBlockMetadata(
            n + 1, path, start, min(start + size, len(data)), len(data), start + size >= len(data), n or -1, modified_ns
        )
        for n, start in enumerate(starts)
    ]


def reader_of(data: bytes, cls: type[Any] = BlockReader, *arguments: Any, **properties: Any) -> Any:
    @attrs.define
    class OfMemory(cls):  # type: ignore[misc]
        def get_file_system(self) -> OneFile:
            return OneFile(data)

    return OfMemory(*arguments, **properties)


def read(reader: Any, blocks: list[FileBlockMetadata], *, batches: bool = False) -> OperatorTask:
    with OperatorTask(reader, in_batches=batches) as task:
        task.give("blocks_metadata_input", blocks)
    return task


def lines_of(data: bytes) -> list[str]:
    """As `sed 's/\\r$//'` has it."""
    *lines, last = [line.removesuffix("\r") for line in data.decode().split("\n")]
    return [*lines, last] if last else lines


@given(CONTENTS, st.integers(1, 40), st.booleans(), st.permutations(range(8)))
def test_any_cut_gives_the_same_lines(data: bytes, size: int, batches: bool, order: list[int]) -> None:
    blocks = blocks_of(data, size)
    shuffled = [blocks[n] for n in order if n < len(blocks)] + blocks[8:]
    task = read(reader_of(data), shuffled, batches=batches)
    found = sorted(task.emitted["messages"], key=lambda record: record.position)
    assert [record.record for record in found] == lines_of(data)
    assert all(blocks[r.block_id - 1].start <= r.position < blocks[r.block_id - 1].stop for r in found)
    is_half_an_end_left = data.endswith(b"\n\r") or data == b"\r"  # not a line, so no block counts it
    assert task.counters.get("bytes", 0) == len(data) - is_half_an_end_left
    assert {kind for kind, _ in task.chunks["messages"]} <= ({"batch"} if batches else {"records"})


@given(CONTENTS, st.integers(1, 40))
def test_batches_and_records_agree_also_with_a_conversion_and_with_entities(data: bytes, size: int) -> None:
    class NoPieces(LineReaderContext):
        supports_pieces = False

    blocks = blocks_of(data, size)
    by_batches = read(reader_of(data), blocks, batches=True).emitted["messages"]
    assert read(reader_of(data), blocks).emitted["messages"] == by_batches
    assert read(reader_of(data, BlockReader, bytes.decode), blocks).emitted["messages"] == by_batches
    whole = blocks_of(data, 100)
    assert (
        read(reader_of(data, reader_context=NoPieces()), whole).emitted["messages"]
        == read(reader_of(data), whole).emitted["messages"]
    )


def test_a_thousand_lines_of_123_bytes() -> None:
    lines = [f"2016-01-{n % 28 + 1:02d},{n:0111d}" for n in range(1000)]
    data = "".join(line + "\n" for line in lines).encode()
    assert len(data) == 123_000
    for size in (1_000, 123_000):
        blocks = blocks_of(data, size)
        task = read(reader_of(data), blocks)
        assert [record.record for record in task.emitted["messages"]] == lines
        assert (task.counters["blocks"], task.counters["streams_opened"]) == (len(blocks), 1)
        assert (task.counters["records"], task.counters["bytes"]) == (1000, 123_000)
    strides = [block for first in range(10) for block in blocks_of(data, 1_000)[first::10]]
    task = read(reader_of(data), strides)
    assert sorted(record.record for record in task.emitted["messages"]) == sorted(lines)
    assert task.counters["streams_opened"] == 123


def test_partial_lines_are_dropped_by_the_conversion() -> None:
    data = b"".join(b"2016-01-01,%0111d\n" % n for n in range(1000))
    whole = lambda line: line.decode() if line.startswith(b"2016") and len(line) == 122 else None  # noqa: E731
    task = read(reader_of(data, BlockReader, whole, reader_context=LineReaderContext()), blocks_of(data, 1_000))
    assert [record.record for record in task.emitted["messages"]] == data.decode().split("\n")[:-1]
    assert task.counters["dropped"] == 122
    assert task.counters["bytes"] == 130_503


def test_which_forms_it_emits() -> None:
    @attrs.define
    class Overridden(BlockReader[int]):
        def convert_to_record(self, data: bytes) -> int | None:
            return len(data)

    class Custom(ReaderContext):
        def initialize(self, stream: Any, block: Any, consecutive: bool) -> None: ...

        def next(self) -> Entity | None:
            return None

    def forms(reader: Any) -> frozenset[str]:
        return reader.emitted_forms("messages", "record")

    assert forms(BlockReader()) == forms(FSSliceReader()) == {"record", "batch"}
    assert forms(Overridden()) == forms(BlockReader(int)) == forms(BlockReader(reader_context=Custom())) == {"record"}
    assert BlockReader().emitted_forms("blocks_metadata_output", "record") == {"record"}


def test_types() -> None:
    def parsed(line: bytes) -> float | None:
        return float(line) if line else None

    def messages(reader: Any) -> Any:
        return port_types(reader, own_bindings(reader))["messages"]

    assert messages(BlockReader()) == ReaderRecord[str]
    assert messages(BlockReader(int)) == messages(BlockReader[int](lambda line: 1)) == ReaderRecord[int]
    assert messages(BlockReader(lambda line: 1)) == ReaderRecord[Any]
    assert messages(FSSliceReader()) == ReaderRecord[bytes]
    assert port_types(BlockReader(), own_bindings(BlockReader()))["blocks_metadata_input"] is FileBlockMetadata


@pytest.mark.parametrize("batches", [False, True])
def test_short_lines_come_in_bounded_portions(batches: bool) -> None:
    data = b"\n" * 200_000
    task = read(reader_of(data), blocks_of(data, 1 << 20), batches=batches)
    assert len(task.emitted["messages"]) == 200_000
    assert max(count for _, count in task.chunks["messages"]) <= (65_536 if batches else 16_384)
    assert [record.position for record in task.emitted["messages"]] == list(range(200_000))


BAD = b"good\nb\xffd\nfine\n"


@pytest.mark.parametrize("batches", [False, True])
def test_bad_text(batches: bool) -> None:
    with pytest.raises(BadText) as caught:
        read(reader_of(BAD), blocks_of(BAD, 100), batches=batches)
    assert (caught.value.path, caught.value.position, caught.value.byte_offset) == (PATH, 5, 6)
    assert [
        r.record
        for r in read(reader_of(BAD, encoding_errors="replace"), blocks_of(BAD, 100), batches=batches).emitted["messages"]
    ] == [
        "good",
        "b\ufffdd",
        "fine",
    ]
    assert read(reader_of(BAD, encoding="latin-1"), blocks_of(BAD, 100), batches=batches).emitted["messages"][1].record == "bÿd"


@pytest.mark.parametrize("batches", [False, True])
def test_bad_text_is_routed_record_by_record(batches: bool) -> None:
    task = read(reader_of(BAD, on_error="route"), blocks_of(BAD, 100), batches=batches)
    assert task.emitted["messages"] == [ReaderRecord(1, 0, "good"), ReaderRecord(1, 9, "fine")]
    (error,) = task.emitted["errors"]
    assert (error.file_path, error.position, error.record) == (PATH, 5, "b\\xffd")
    assert error.error.startswith(
        f"operators.contexts.errors.BadText: {PATH}: byte 6 (ff), in the record that starts at byte 5, is not utf-8"
    )
    assert (task.skipped, task.counters["records"]) == (1, 2)
    assert {kind for kind, _ in task.chunks["messages"]} == ({"batch"} if batches else {"records"})


def test_a_context_of_three_methods_and_bad_text() -> None:
    class ByLines(ReaderContext):
        def initialize(self, stream: Any, block: Any, consecutive: bool) -> None:
            self.lines, self.position = iter(stream.read(100).splitlines(keepends=True)), 0

        def next(self) -> Entity | None:
            line = next(self.lines, None)
            if line is None:
                return None
            self.position += len(line)
            return Entity(line.rstrip(b"\n"), len(line), self.position - len(line))

    with pytest.raises(BadText) as caught:
        read(reader_of(BAD, reader_context=ByLines()), blocks_of(BAD, 100))
    assert (caught.value.path, caught.value.position) == (PATH, 5)


def test_other_contexts() -> None:
    data = b"aabbcc"
    task = read(reader_of(data, reader_context=FixedRecordsReaderContext(2)), blocks_of(data, 3))
    assert [record.record for record in task.emitted["messages"]] == ["aa", "bb", "cc"]


# A file that is not what was planned


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "log.txt"
    path.write_bytes(b"first\nsecond\n")
    os.utime(path, ns=(0, 1_700_000_000_123_456_789))
    return path


def planned(path: Path) -> list[FileBlockMetadata]:
    return blocks_of(path.read_bytes(), 100, str(path), path.stat().st_mtime_ns)


def test_a_file_on_disk(file: Path) -> None:
    assert [r.record for r in read(BlockReader(), planned(file)).emitted["messages"]] == ["first", "second"]
    assert [r.record for r in read(BlockReader(), blocks_of(b"x" * 13, 100, f"file://{file}", None)).emitted["messages"]] == [
        "first",
        "second",
    ]


def test_a_deleted_file(file: Path) -> None:
    blocks = planned(file)
    file.unlink()
    with pytest.raises(FileGone) as caught:
        read(BlockReader(), blocks)
    assert str(caught.value) == (
        f"{file}: the file is gone; it had 13 bytes when its blocks were planned\n"
        "  help: put it back and launch again; or continue without its blocks: -D operator.operator.on_error=skip"
    )


def test_a_replaced_file(file: Path) -> None:
    blocks = planned(file)
    file.write_bytes(b"FIRST\nSECOND\n")
    os.utime(file, ns=(0, 1_700_000_060_000_000_000))
    for properties in ({}, {"allow_growth": True}):
        with pytest.raises(FileChanged) as caught:
            read(BlockReader(**properties), blocks)
    assert str(caught.value) == (
        f"{file}: the file has changed since its blocks were planned\n"
        "  planned  13 bytes, modified 2023-11-14 22:13:20.123456789 UTC\n"
        "  found    13 bytes, modified 2023-11-14 22:14:20.000000000 UTC\n"
        "  help: put the planned file back, or launch with --fresh to plan again; files must not change while they are read:\n"
        "        write a new file and rename it\n"
        "        (if this one is only ever appended to: -D operator.operator.allow_growth=true)"
    )


def test_a_shortened_file_whose_time_is_unknown(file: Path) -> None:
    blocks = blocks_of(file.read_bytes(), 100, str(file), None)
    file.write_bytes(b"first\n")
    with pytest.raises(FileChanged, match="planned  13 bytes, modified at an unknown time"):
        read(BlockReader(), blocks)


def test_a_file_that_has_grown(file: Path) -> None:
    blocks = planned(file)
    with file.open("ab") as growing:
        growing.write(b"third\n")
    with pytest.raises(FileChanged):
        read(BlockReader(), blocks)
    assert [r.record for r in read(BlockReader(allow_growth=True), blocks).emitted["messages"]] == ["first", "second"]


def test_an_error_of_the_device_names_the_file() -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    @attrs.define
    class OnBrokenDisk(BlockReader[str]):
        def setup_stream(self, block: FileBlockMetadata) -> Any:
            return Broken()

    reader = OnBrokenDisk()
    with OperatorTask(reader) as task, pytest.raises(InfrastructureError, match=f"{PATH}.*while reading"):
        task.give("blocks_metadata_input", blocks_of(b"abc", 10))


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"encoding": "utf-9"}, "encoding 'utf-9' is not a text encoding that Python knows"),
        ({"encoding": "utf-16"}, "encoding 'utf-16' cannot be read by lines"),
    ],
)
def test_encodings_that_do_not_fit(properties: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BlockReader(**properties).check()


def test_an_unknown_policy() -> None:
    with pytest.raises(
        ValueError, match="encoding_errors is 'drop', but must be 'strict', 'replace', 'ignore' or 'backslashreplace'"
    ):
        BlockReader(encoding_errors="drop")


def test_it_pickles() -> None:
    reader = pickle.loads(cloudpickle.dumps(BlockReader(lambda line: len(line), max_readers=3)))
    assert reader.max_readers == 3
    assert reader.convert_to_record(b"abc") == 3


# Slices


@pytest.mark.parametrize("batches", [False, True])
def test_slices_never_cross_a_block(batches: bool) -> None:
    data = bytes(range(25))
    task = read(reader_of(data, FSSliceReader, reader_context=FixedBytesReaderContext(4)), blocks_of(data, 10), batches=batches)
    assert [len(record.record) for record in task.emitted["messages"]] == [4, 4, 2, 4, 4, 2, 4, 1]
    assert b"".join(record.record for record in task.emitted["messages"]) == data
    assert task.counters["streams_opened"] == 1


@given(st.binary(max_size=60), st.integers(1, 70), st.integers(1, 20))
def test_slices_in_both_forms(data: bytes, size: int, length: int) -> None:
    blocks = blocks_of(data, size)
    forms = [
        read(reader_of(data, FSSliceReader, reader_context=FixedBytesReaderContext(length)), blocks, batches=batches).emitted[
            "messages"
        ]
        for batches in (False, True)
    ]
    assert forms[0] == forms[1]
    assert b"".join(record.record for record in forms[0]) == data


def test_slices_of_a_default_length_are_the_file() -> None:
    data = random.Random(7).randbytes(123_000)
    task = read(reader_of(data, FSSliceReader), blocks_of(data, 1_500))
    assert b"".join(record.record for record in task.emitted["messages"]) == data
    assert task.counters["blocks"] == 82


def test_slices_are_not_copied_into_batches() -> None:
    data = random.Random(7).randbytes(1 << 20)
    reader = reader_of(data, FSSliceReader, reader_context=FixedBytesReaderContext(1000))
    with OperatorTask(reader, in_batches=True) as task:
        batches: list[Any] = []
        reader.messages.emit_batch = batches.append
        task.give("blocks_metadata_input", blocks_of(data, 1 << 20))
    assert sum(batch.column(2).buffers()[2].size for batch in batches) == len(data)
    assert sum(batch.num_rows for batch in batches) == 1049
