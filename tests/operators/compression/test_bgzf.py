"""BGZF: cut anywhere, the same records once."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dagflow import FileBlockMetadata
from dagflow.testing import assert_reader_is_splittable, read_file
from dagflow.testing.files import blocks_of
from dagflow.testing.readers import CountedFiles
from operators import BlockReader, FixedRecordsReaderContext, LineReaderContext, ReadAheadLineReaderContext
from operators.compression import CompressionCorrupt, CompressionTruncated, DecompressingContext
from operators.compression.bgzf import Members
from operators.contexts import RecordTooLong
from operators.contexts.errors import ReadError
from operators.contexts.source import Source
from tests.operators.compression.samples import END_MARK, TOOLS, bgzf, by_tool, member
from tests.operators.compression.tasks import run
from tests.operators.context_reader import context_reader
from tests.strategies import file_contents, lines_of
from tests.tiers import examples

in_tmp_path = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NESTED = bgzf(bgzf(b"".join(b"line %d\n" % n for n in range(40)), [20]), [300], level=0)


def finder(**properties: Any) -> DecompressingContext:
    return DecompressingContext(ReadAheadLineReaderContext(**properties))


class OneByOne(ReadAheadLineReaderContext):
    """Overrides `next`, so that it is read one record at a time."""

    def next(self) -> Any:
        return super().next()


def text(lines: int, seed: int = 0, longest: int = 60) -> bytes:
    at_random = random.Random(seed)
    ends = [b"\n", b"\r\n"]
    return b"".join(
        bytes(at_random.choices(b"abcdefgh \xc3", k=at_random.randint(0, longest))) + at_random.choice(ends) for _ in range(lines)
    )


@in_tmp_path
@given(
    data=file_contents(),
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    empty=st.integers(0, 12),
    context=st.sampled_from([ReadAheadLineReaderContext, OneByOne]),
    piece_bytes=st.sampled_from([1, 3, 16, 1 << 20]),
    at_random=st.randoms(),
)
def test_any_text_in_any_members_cut_anywhere(
    tmp_path: Path, data: bytes, sizes: list[int], empty: int, context: type, piece_bytes: int, at_random: random.Random
) -> None:
    members = [member(data[at:end]) for at, end in itertools.pairwise([0, *itertools.accumulate(sizes)])]
    members.append(member(data[sum(sizes) :]))
    members.insert(min(empty, len(members)), END_MARK)  # as in files that were put together of several
    packed = b"".join(members) + END_MARK
    path = tmp_path / "file"
    path.write_bytes(packed)
    expected = [line.decode() for line in lines_of(data)]
    make = lambda: BlockReader(reader_context=context(piece_bytes=piece_bytes))  # noqa: E731
    cuts = sorted(at_random.choices(range(len(packed) + 1), k=at_random.randint(0, 8)))
    assert read_file(make(), path) == expected
    assert read_file(make(), path, cuts=cuts) == expected
    assert read_file(make(), path, cuts=cuts, consecutive=True) == expected


@pytest.mark.parametrize("context", [ReadAheadLineReaderContext, OneByOne])
def test_every_cut_of_a_small_file(tmp_path: Path, context: type) -> None:
    data = "ä\r\n\r\nzwei\n\ndrei vier\nfünf".encode()
    path = tmp_path / "file.txt"
    for sizes in ([1], [2, 3, 1], [4], [3, 7], [100]):
        packed = bgzf(data, sizes)
        path.write_bytes(packed)
        for at in range(0, len(packed) + 1, 1 if len(sizes) > 1 else 5):
            found = read_file(BlockReader(reader_context=context()), path, cuts=[at])
            assert found == ["ä", "", "zwei", "", "drei vier", "fünf"], (sizes, at)


@pytest.mark.parametrize("terminators", [["\n", "\r\n", "\r"], "ab||", "x", "\r\n"])
def test_other_terminators_that_members_cut(tmp_path: Path, terminators: Any) -> None:
    data = b"one\r\ntwoab||thr\reexfour\nab||\r\r\n\nlast"
    path = tmp_path / "file"
    plain = tmp_path / "plain"
    plain.write_bytes(data)
    make = lambda: BlockReader(reader_context=ReadAheadLineReaderContext(terminators=terminators))  # noqa: E731
    for sizes in ([1], [2], [3, 1, 2], [5]):
        path.write_bytes(bgzf(data, sizes))
        for size in (7, 29, 31, 100):
            assert read_file(make(), path, block_size=size) == read_file(make(), plain)


@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_small_file_is_splittable(tmp_path: Path, in_pieces: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(bgzf(b"one\ntwo\r\n\nthree, which is longer\nfour\n", [5, 1, 9, 3]))
    make_reader = context_reader(lambda: finder(piece_bytes=8), in_pieces=in_pieces)
    assert_reader_is_splittable(make_reader, path, effort=0.3)


@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_file_of_bgzip_is_splittable_and_is_read_efficiently(tmp_path: Path, in_pieces: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(TOOLS["bgzf"](text(12_000)))
    files = CountedFiles()
    make_reader = context_reader(lambda: finder(piece_bytes=64 * 1024), files=files, in_pieces=in_pieces)
    assert_reader_is_splittable(make_reader, path, files=files, buffer_bytes=64 * 1024, effort=0.05)


def test_positions_are_virtual_offsets_and_split_points_the_first_records_of_members(tmp_path: Path) -> None:
    first, second, third = member(b"one\ntwo\nth"), member(b"ree and no end"), member(b"\nfour\nfive\n")
    data = first + second + third + END_MARK
    path = tmp_path / "file"
    path.write_bytes(data)
    context = finder()
    with path.open("rb") as stream:
        context.initialize(stream, FileBlockMetadata(0, str(path), 0, len(data), len(data)), False)
        assert context.can_be_cut()
        found = []
        while (entity := context.next()) is not None:
            found.append(
                (entity.record, divmod(entity.position, 1 << 16), entity.is_split_point, context.claimed_at(entity.position))
            )
    last = len(first) + len(second)
    assert found == [
        (b"one", (0, 0), True, 0),
        (b"two", (0, 4), False, 0),
        (b"three and no end", (0, 8), False, 0),
        (b"four", (last, 1), True, last),
        (b"five", (last, 6), False, last),
    ]


def test_pieces_tell_what_to_claim_and_what_is_left_when_it_is_refused(tmp_path: Path) -> None:
    members = [member(b"one\ntwo\nth"), member(b"ree\nfour\nfi"), member(b"ve\n"), END_MARK]
    path = tmp_path / "file"
    path.write_bytes(b"".join(members))
    context = finder()
    with path.open("rb") as stream:
        context.initialize(stream, blocks_of(str(path))[0], False)
        piece = context.next_piece()
        assert piece is not None
        assert piece.split_points.tolist() == [0, len(members[0])]
        head = piece.before(1)
        assert head is not None
        assert head.text_list() == ["one", "two", "three"]
        assert head.positions.tolist() == piece.positions.tolist()[:3]
        assert piece.before(0) is None
        assert piece.between(0, 2) is piece
        tail = piece.between(1, 2)
        assert tail is not None
        assert (tail.text_list(), tail.split_points.tolist()) == (["four", "five"], [len(members[0])])
        assert tail.positions.tolist() == piece.positions.tolist()[3:]
        assert tail.position == piece.positions.tolist()[3]
        assert piece.between(1, 1) is None


def test_what_looks_like_a_member_within_a_member_is_none(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(NESTED)
    whole = read_file(BlockReader(encoding="latin-1"), path)
    assert read_file(BlockReader(encoding="latin-1", compression="gzip"), path) == whole
    for at in range(1, len(NESTED), 3):
        assert read_file(BlockReader(encoding="latin-1"), path, cuts=[at]) == whole


def test_where_two_chains_cannot_be_told_apart_the_file_is_walked_from_its_start(tmp_path: Path) -> None:
    false = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0"
    payload = b"a\n" * 20
    # A header within a member that tells the length up to the very end of it.
    body = payload + false + b"\0\0" + b"\nb\n"
    probe = member(body, 0)
    at = probe.index(false)
    body = payload + false + (len(probe) - at - 1).to_bytes(2, "little") + b"\nb\n"
    packed = member(b"first\n", 0) + member(body, 0) + member(b"last\n", 0) + END_MARK
    path = tmp_path / "file"
    path.write_bytes(packed)
    inner = len(member(b"first\n", 0))
    end = inner + len(probe)
    with path.open("rb") as stream:
        members = Members(Source(stream, str(path), 0, 0, len(packed), 0), len(packed), len(packed))
        assert members.size_at(inner + at) == len(probe) - at
        assert members.before(end) == (inner, end)
    whole = read_file(BlockReader(encoding="latin-1"), path)
    assert whole[-2:] == ["b", "last"]
    for place in range(len(packed) + 1):
        assert read_file(BlockReader(encoding="latin-1"), path, cuts=[place]) == whole


def test_members_with_more_extra_fields(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bgzf(b"one\ntwo\nthree\n", [5], extra=b"XX\x04\0abcd"))
    for size in (None, 3, 20):
        assert read_file(BlockReader(compression="bgzf"), path, block_size=size) == ["one", "two", "three"]


def test_damage_anywhere_is_an_error_or_does_no_harm(tmp_path: Path) -> None:
    packed = bgzf(b"".join(b"%d squared is %d\n" % (n, n * n) for n in range(30)), [100])
    path = tmp_path / "file"
    path.write_bytes(packed)
    whole = read_file(BlockReader(), path)
    errors = 0
    for at in range(0, len(packed), 2):
        path.write_bytes(packed[:at] + bytes([packed[at] ^ 0x55]) + packed[at + 1 :])
        for size in (None, 70):
            try:
                assert read_file(BlockReader(encoding_errors="replace", compression="bgzf"), path, block_size=size) == whole
            except ReadError as error:
                assert str(path) in str(error)  # noqa: PT017
                errors += 1
    assert errors > len(packed) // 2


def test_a_file_cut_off_anywhere_is_an_error_or_told(tmp_path: Path) -> None:
    packed = bgzf(b"".join(b"%d squared is %d\n" % (n, n * n) for n in range(30)), [100])
    ends = set()
    at = 0
    while at < len(packed):
        at += int.from_bytes(packed[at + 16 : at + 18], "little") + 1
        ends.add(at)
    path = tmp_path / "file"
    for length in (*range(30, len(packed), 5), *ends):
        path.write_bytes(packed[:length])
        for size in (None, 70):
            if length == len(packed):
                continue
            if length in ends:
                _, counters = counted(BlockReader(), path, size)
                assert counters["bgzf_without_end_mark"] == 1
            else:
                with pytest.raises((CompressionTruncated, CompressionCorrupt), match=str(path)):
                    read_file(BlockReader(compression="bgzf"), path, block_size=size)


def counted(reader: BlockReader, path: Path, size: int | None = None, **how: bool) -> tuple[list[Any], dict[str, int]]:
    return run(reader, blocks_of(str(path), size), **how)


def test_counters_add_up_to_the_file(tmp_path: Path) -> None:
    data = text(5_000).replace(b"\xc3", b"c")
    path = tmp_path / "file"
    path.write_bytes(TOOLS["bgzf"](data))
    for size in (None, 1000, 30_000):
        records, counters = counted(BlockReader(), path, size)
        assert counters["bytes"] == path.stat().st_size
        assert counters["bytes_unpacked"] == len(data)
        assert counters["records"] == len(records) == 5_000
        assert "bgzf_without_end_mark" not in counters
        assert "blocks_unsplittable" not in counters


def test_contexts_that_need_the_whole_read_it_as_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bgzf(b"aaabbbccc", [2]))
    fixed = BlockReader(reader_context=FixedRecordsReaderContext(3))
    assert read_file(fixed, path, block_size=20) == ["aaa", "bbb", "ccc"]
    path.write_bytes(bgzf(b"a||||||b||c", [2]))
    overlapping = BlockReader(reader_context=ReadAheadLineReaderContext(terminators="||"))
    assert read_file(overlapping, path, block_size=20) == ["a", "", "", "b", "c"]
    path.write_bytes(bgzf(b"a\nbb\nccc\n", [2]))
    assert read_file(BlockReader(reader_context=LineReaderContext()), path, block_size=20) == ["a", "bb", "ccc"]


def test_a_gzip_member_behind_bgzf_is_told_and_can_be_read_as_a_stream(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bgzf(b"one\n", [3]) + by_tool("gzip", "-c")(b"two\n"))
    for size in (None, 40):
        with pytest.raises(CompressionCorrupt, match="compression = gzip"):
            read_file(BlockReader(), path, block_size=size)
    assert read_file(BlockReader(compression="gzip"), path, block_size=40) == ["one", "two"]


def test_a_member_that_holds_too_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bgzf(bytes(1 << 24), [1 << 24]))
    with pytest.raises(CompressionCorrupt, match="more than 64 KiB"):
        read_file(BlockReader(), path)


def test_a_line_that_is_too_long_is_named_by_its_virtual_offset(tmp_path: Path) -> None:
    first = member(b"ok\n" + b"x" * 100)
    path = tmp_path / "file"
    path.write_bytes(first + member(b"y" * 100) + END_MARK)
    for context in (ReadAheadLineReaderContext, OneByOne):
        with pytest.raises(RecordTooLong, match=r"virtual offset 3 \(byte 3 within the member at byte 0\)") as caught:
            read_file(BlockReader(reader_context=context(max_record_bytes=50, piece_bytes=10)), path)
        assert caught.value.position == 3


def test_a_record_is_found_again_by_its_position(tmp_path: Path) -> None:
    data = text(300, seed=3).replace(b"\xc3", b"c")
    path = tmp_path / "file"
    path.write_bytes(bgzf(data, [500]))
    block = blocks_of(str(path))[0]
    reader = BlockReader()
    records, _ = counted(BlockReader(), path)
    found = [reader.record_at(block, record.position) for record in records]
    assert b"".join(part for part in found if part is not None) == data
    assert reader.record_at(block, records[5].position + 1) is None
    in_batches, _ = counted(BlockReader(), path, 700, batches=True)
    assert [tuple(record)[1:] for record in in_batches] == [tuple(record)[1:] for record in records]


def test_a_member_that_is_longer_than_what_it_holds_is_refused(tmp_path: Path) -> None:
    packed = bytearray(member(b"one\n") + b"junk")
    packed[16:18] = (len(packed) - 1).to_bytes(2, "little")
    path = tmp_path / "file"
    path.write_bytes(packed + END_MARK)
    with pytest.raises(CompressionCorrupt, match="length is not what its header says"):
        read_file(BlockReader(), path)
