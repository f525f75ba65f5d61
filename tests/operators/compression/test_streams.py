"""gzip, bzip2, xz, zstd: one stream, all members of it, and what is wrong with it is told."""

from __future__ import annotations

import builtins
import bz2
import gzip
import itertools
import lzma
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow import FileBlockMetadata
from dagflow.errors import PackageMissing
from dagflow.testing import read_file
from dagflow.testing.files import blocks_of
from operators import BlockReader, FixedBytesReaderContext, FixedRecordsReaderContext, ReadAheadLineReaderContext
from operators.compression import (
    CompressionCorrupt,
    CompressionTruncated,
    CompressionUnexpected,
    DecompressingContext,
    recognise,
)
from operators.contexts import BadText, RecordTooLong
from operators.contexts.entity import ReaderContext
from tests.operators.compression.samples import PYTHON, TOOLS, bgzf, zstd_compress
from tests.operators.compression.tasks import run
from tests.strategies import file_contents, lines_of
from tests.tiers import examples

FORMATS = ["gzip", "bz2", "xz", "zstd"]
every_format = pytest.mark.parametrize("name", FORMATS)
in_tmp_path = settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@in_tmp_path
@given(
    name=st.sampled_from(FORMATS),
    parts=st.lists(file_contents(), max_size=3),
    size=st.none() | st.integers(1, 50),
    piece_bytes=st.sampled_from([1, 7, 1 << 20]),
    consecutive=st.booleans(),
)
def test_all_members_are_read_by_the_first_block(
    tmp_path: Path, name: str, parts: list[bytes], size: int | None, piece_bytes: int, consecutive: bool
) -> None:
    packed = b"".join(map(PYTHON[name], parts or [b""]))
    path = tmp_path / "file"
    path.write_bytes(packed)
    reader = BlockReader(reader_context=ReadAheadLineReaderContext(piece_bytes=piece_bytes))
    expected = [line.decode() for line in lines_of(b"".join(parts))]
    assert read_file(reader, path, block_size=size, consecutive=consecutive) == expected


@pytest.mark.parametrize("name", [*FORMATS, "bgzf"])
def test_what_the_tools_write(tmp_path: Path, name: str) -> None:
    data = b"".join(b"line %d of many\r\n" % n for n in range(20_000))
    path = tmp_path / "file"
    path.write_bytes(TOOLS[name](data) + TOOLS[name](b"and one\n") + TOOLS[name](b""))
    assert recognise(path.read_bytes()) == name
    lines = [f"line {n} of many" for n in range(20_000)]
    for size in (None, 10_000):
        assert read_file(BlockReader(), path, block_size=size) == [*lines, "and one"]


@every_format
def test_positions_count_decompressed_bytes_and_blocks_cannot_be_cut(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(PYTHON[name](b"one\ntwo\n") + PYTHON[name](b"three"))
    reader = BlockReader()
    block, *others = blocks_of(str(path), 10)
    records, counters = run(reader, [block, *others])
    assert [(record.position, record.record) for record in records] == [(0, "one"), (4, "two"), (8, "three")]
    assert counters["bytes"] == path.stat().st_size
    assert counters["bytes_unpacked"] == 13
    assert counters["blocks_unsplittable"] == len(others)
    assert [reader.record_at(block, position) for position in (0, 4, 5, 8)] == [b"one\n", b"two\n", None, b"three"]
    context = DecompressingContext(ReadAheadLineReaderContext(piece_bytes=1))
    for each in (block, others[0]):
        with path.open("rb") as stream:
            context.initialize(stream, each, False)
            assert not context.can_be_cut()
            pieces = list(iter(context.next_piece, None))
            assert [piece.split_points.tolist() for piece in pieces] == ([[0], [], []] if each is block else [])
            assert [piece.before(0) is piece for piece in pieces] == ([False, True, True] if each is block else [])


def test_batches_and_records_agree(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bz2.compress("eins\r\nzwei\nfünf".encode()))
    blocks = blocks_of(str(path), 20)
    records, _ = run(BlockReader(), blocks)
    assert run(BlockReader(), blocks, batches=True)[0] == records
    assert [record.record for record in records] == ["eins", "zwei", "fünf"]


@every_format
def test_padding_and_what_is_none(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    one, two = PYTHON[name](b"one\n"), PYTHON[name](b"two\n")
    for packed in (one + bytes(8) + two, one + two + bytes(100_000)):
        path.write_bytes(packed)
        if name in ("gzip", "xz"):
            assert read_file(BlockReader(), path) == ["one", "two"]
        else:
            with pytest.raises(CompressionCorrupt):
                read_file(BlockReader(), path)
    path.write_bytes(one + b"garbage")
    with pytest.raises(
        CompressionCorrupt, match=f"{path}: the {name} data at byte {len(one)} of the file cannot be unpacked .4 bytes were"
    ) as caught:
        read_file(BlockReader(), path)
    assert caught.value.position == len(one)


@every_format
def test_a_file_cut_off_anywhere_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    one = PYTHON[name](b"one\n")
    packed = one + PYTHON[name](b"two\n" * 9)
    for length in range(len(packed)):
        path.write_bytes(packed[:length])
        if length == len(one):
            assert read_file(BlockReader(compression=name), path) == ["one"]  # as whole as any file of one member
        elif length:
            kinds = CompressionTruncated if length > len(one) else (CompressionTruncated, CompressionUnexpected)
            with pytest.raises(kinds, match=str(path)):
                read_file(BlockReader(compression=name), path)


@every_format
def test_damage_anywhere_is_an_error_or_does_no_harm(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    packed = PYTHON[name](b"".join(b"%d squared is %d\n" % (n, n * n) for n in range(30)))
    path.write_bytes(packed)
    whole = read_file(BlockReader(), path)
    for at in range(len(packed)):
        path.write_bytes(packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :])
        try:
            assert read_file(BlockReader(compression=name, encoding_errors="replace"), path) == whole
        except (CompressionCorrupt, CompressionTruncated, CompressionUnexpected) as error:
            assert str(path) in str(error)  # noqa: PT017


@every_format
def test_a_bomb_of_one_line_ends_at_max_record_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    size = 100 << 20
    if name == "gzip":
        squeezer: Any = __import__("zlib").compressobj(6, 8, 31)
    else:
        squeezer = {"bz2": bz2.BZ2Compressor, "xz": lzma.LZMACompressor, "zstd": _zstd_compressor}[name]()
    with path.open("wb") as file:
        for _ in range(size >> 20):
            file.write(squeezer.compress(bytes(1 << 20)))
        file.write(squeezer.flush())
    reader = BlockReader(reader_context=ReadAheadLineReaderContext(max_record_bytes=1 << 20, piece_bytes=1 << 16))
    tracemalloc.start()
    try:
        with pytest.raises(RecordTooLong, match="starts at byte 0 of the decompressed text is longer than max_record_bytes"):
            read_file(reader, path)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def _zstd_compressor() -> Any:
    import zstandard

    return zstandard.ZstdCompressor().compressobj()


@pytest.mark.parametrize("module", ["zstandard", "other"])
def test_either_package_reads_zstd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    if module == "zstandard":
        hide(monkeypatch, "compression", "backports")
    elif sys.version_info < (3, 14):
        pytest.importorskip("backports.zstd")
    skippable = b"\x51\x2a\x4d\x18\x03\0\0\0abc"
    path = tmp_path / "file"
    path.write_bytes(skippable + zstd_compress(b"one\n" * 100_000) + skippable + zstd_compress(b"two\n") + skippable)
    assert read_file(BlockReader(), path) == ["one"] * 100_000 + ["two"]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(zstd_compress(b"one\n"))
    hide(monkeypatch, "compression", "backports", "zstandard")
    with pytest.raises(PackageMissing, match=r"pip install 'dagflow\[zstd\]'"):
        read_file(BlockReader(on_error="skip"), path)


def hide(monkeypatch: pytest.MonkeyPatch, *hidden: str) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.partition(".")[0] in hidden:
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)


def test_content_decides_and_not_the_name(tmp_path: Path) -> None:
    for name in ("plain.gz", "plain.zst", "plain"):
        (tmp_path / name).write_bytes(b"one\ntwo\n")
        assert read_file(BlockReader(), tmp_path / name, block_size=3) == ["one", "two"]
    for format_, name in itertools.product(FORMATS, ("a.gz", "a.txt", "a")):
        (tmp_path / name).write_bytes(PYTHON[format_](b"one\ntwo\n"))
        assert read_file(BlockReader(), tmp_path / name, block_size=9) == ["one", "two"]


def test_text_that_begins_like_compressed_data_is_text() -> None:
    assert recognise(b"BZh9 text") is None
    assert recognise(b"\x1f\x8b") is None
    assert recognise(b"") is None
    assert recognise(bgzf(b"")) == "bgzf"


def test_compression_can_be_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    packed = gzip.compress(b"one\n", mtime=0)
    path.write_bytes(packed)
    assert read_file(BlockReader(compression="gzip"), path) == ["one"]
    with pytest.raises(
        CompressionUnexpected, match=r"compression = bgzf, but the file begins with 1f 8b 08 00 .*, which is gzip"
    ):
        read_file(BlockReader(compression="bgzf"), path)
    raw = read_file(BlockReader(compression="none", encoding="latin-1"), path)
    assert "\n".join(raw).encode("latin-1") == packed.removesuffix(b"\n")
    with pytest.raises(BadText, match="compression=auto"):
        read_file(BlockReader(compression="none"), path)
    with pytest.raises(ValueError, match="compression"):
        BlockReader(compression="zip")  # type: ignore[arg-type]


def test_bad_text_is_named_by_its_place_in_the_decompressed_text(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(b"good\nb\xe4d\nfine\n"))
    with pytest.raises(
        BadText, match=r"byte 6 \(e4\), in the record that starts at byte 5 of the decompressed text, is not utf-8"
    ):
        read_file(BlockReader(), path)
    assert read_file(BlockReader(on_error="skip"), path) == ["good", "fine"]
    path.write_bytes(bgzf(b"good\nb\xe4d\nfine\n", [6]))
    with pytest.raises(
        BadText, match=r"byte 1 \(e4\), in the record that starts at virtual offset 5 \(byte 5 within the member at byte 0"
    ):
        read_file(BlockReader(), path)


class Pairs(ReaderContext):
    """Two bytes at a time, with nothing but what a stream has."""

    def initialize(self, stream: Any, block: Any, consecutive: bool) -> None:
        self.stream, self.at, self.stop = stream, block.start, block.stop
        stream.seek(self.at)

    def next(self) -> Any:
        from operators import Entity

        data = self.stream.read(2) if self.at < self.stop else b""
        self.at += len(data)
        return Entity(data, len(data), self.at - len(data)) if data else None


@every_format
def test_any_context_reads_streams(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(PYTHON[name](b"abcdefg"))
    for context, records in [
        (Pairs(), ["ab", "cd", "ef", "g"]),
        (FixedBytesReaderContext(3), ["abc", "def", "g"]),
        (FixedRecordsReaderContext(7), ["abcdefg"]),
        (FixedRecordsReaderContext(5, partial="drop"), ["abcde"]),
    ]:
        assert read_file(BlockReader(reader_context=context), path, block_size=11) == records


def test_a_window_that_asks_for_too_much_memory_is_told(tmp_path: Path) -> None:
    import zstandard

    squeezer = zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(window_log=28)).compressobj()
    path = tmp_path / "file"
    path.write_bytes(squeezer.compress(b"one\n") + squeezer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + squeezer.flush())
    with pytest.raises(CompressionCorrupt, match="128 MiB for zstd"):
        read_file(BlockReader(), path)


@pytest.mark.parametrize("name", [*FORMATS, "bgzf"])
@pytest.mark.parametrize("find", ["next", "next_piece"])
def test_an_empty_block_yields_nothing(tmp_path: Path, name: str, find: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(TOOLS[name](b"one\ntwo\n"))
    length = path.stat().st_size
    context = DecompressingContext(ReadAheadLineReaderContext())
    with path.open("rb") as stream:
        for at in (0, length // 2, length):
            context.initialize(stream, FileBlockMetadata(0, str(path), at, at, length), False)
            assert getattr(context, find)() is None
        context.initialize(stream, FileBlockMetadata(0, str(path), 0, length, length), False)
        assert getattr(context, find)() is not None
