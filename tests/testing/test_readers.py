"""The shipped reader contexts are proved, alone and in block readers: those that may be cut anywhere pass, the others fail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.ranges import OffsetRangeTracker
from dagflow.testing.readers import CountedFiles, reader_of
from dagflow.testing.splittable import assert_reader_is_splittable
from operators import BlockReader, Entity, FSSliceReader, ReaderContext
from operators.contexts import (
    FixedBytesReaderContext,
    FixedRecordsReaderContext,
    LineReaderContext,
    Piece,
    ReadAheadLineReaderContext,
)
from operators.readers.reading.claiming import Claiming
from tests.operators.context_reader import context_reader
from tests.testing.faulty import SplitsConsumed

LINES = b"one\ntwo\n\nthree\r\nfour\nfive\nsix"
LONG = b"".join(b"%d," % i * (i % 12) + b"\n" for i in range(150))


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "data.txt"
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize(
    ("context", "data"),
    [
        (partial(ReadAheadLineReaderContext, piece_bytes=16), LINES),
        (partial(ReadAheadLineReaderContext, piece_bytes=16), LINES + b"\n"),
        (partial(FixedRecordsReaderContext, 4, piece_bytes=8), b"aaaabbbbccccddddeeee"),
        (partial(FixedRecordsReaderContext, 4, partial="emit", piece_bytes=8), b"aaaabbbbccccddddee"),
        (partial(FixedRecordsReaderContext, 1, piece_bytes=2), b"abcdef"),
    ],
)
def test_contexts_that_may_be_cut_anywhere(file: Any, context: Any, data: bytes, in_pieces: bool) -> None:
    assert context().cuts == "any"
    assert_reader_is_splittable(context_reader(context, in_pieces=in_pieces), file(data))


@pytest.mark.parametrize("in_pieces", [False, True])
@pytest.mark.parametrize("context", [LineReaderContext, partial(FixedBytesReaderContext, 4)])
def test_contexts_that_depend_on_the_cuts(file: Any, context: Any, in_pieces: bool) -> None:
    assert context().cuts == "fixed"
    with pytest.raises(AssertionError, match=r"2, cuts: .*is not \[0, 29\)"):
        assert_reader_is_splittable(context_reader(context, in_pieces=in_pieces), file(LINES))


def test_slices_are_compared_by_their_bytes(file: Any) -> None:
    """However a file is cut into blocks, their slices hold the same bytes; but a slice that was begun is not divided."""
    make_reader = context_reader(partial(FixedBytesReaderContext, 4))
    assert_reader_is_splittable(make_reader, file(LINES), compare=b"".join, while_reading=False)
    with pytest.raises(AssertionError, match=r"4, splits: .*\n  expected b"):
        assert_reader_is_splittable(make_reader, file(LINES), compare=b"".join)
    with pytest.raises(AssertionError, match=r"2, cuts: .*\n  expected b"):
        assert_reader_is_splittable(context_reader(LineReaderContext), file(LINES), compare=b"".join, while_reading=False)


def test_contexts_read_their_range_and_little_more(file: Any) -> None:
    files, path = CountedFiles(), file(LONG)
    for context in (ReadAheadLineReaderContext, partial(FixedRecordsReaderContext, 50, partial="emit")):
        make_reader = context_reader(partial(context, piece_bytes=64), files=files)
        assert_reader_is_splittable(make_reader, path, files=files, buffer_bytes=64, effort=0.2)


# Defects known elsewhere, which ours must not have


@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("piece_bytes", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    ("terminators", "data", "records"),
    [
        # A range that starts inside a delimiter of many bytes (Beam 2.77, Python): the record behind it was lost.
        (b"cabdab", b"bcabdabb", [b"b", b"b"]),
        (b"cabdab", b"cabdabcabdabxcabda", [b"", b"", b"xcabda"]),
        (b"||", b"|||||x||y", [b"", b"", b"|x", b"y"]),
        (b"aba", b"xababay", [b"x", b"bay"]),
        # A partial match of a delimiter before the whole one (Beam #32251), also over the edge of a buffer (#32249, #15864).
        (b"abcabd", b"abcabcabdabcabdz", [b"abc", b"", b"z"]),
        # CRLF cut in half, a cut right behind LF at a buffer's edge (Beam #29146).
        (["\n", "\r\n"], b"a\r\nb\r\n\r\nc\rd\r\ne", [b"a", b"b", b"", b"c\rd", b"e"]),
        (["\n", "\r\n", "\r"], b"a\r\nb\r\n\r\nc\rd\r\r\n\re", [b"a", b"b", b"", b"c", b"d", b"", b"", b"e"]),
        (b"\r\n", b"a\r\n\r\r\nb\nc\r", [b"a", b"\r", b"b\nc\r"]),
        # An unterminated last line that ends where a buffer does; one that is only CR.
        (["\n", "\r\n"], b"ab\ncdefgh", [b"ab", b"cdefgh"]),
        (["\n", "\r\n"], b"ab\nc\r", [b"ab", b"c"]),
        (["\n", "\r\n"], b"ab\nc\n\r", [b"ab", b"c"]),
        (["\n", "\r\n"], b"ab\r\n\r\r", [b"ab", b"\r"]),
        (["\n", "\r\n"], b"\n\n\n", [b"", b"", b""]),
        # Characters of several bytes at a cut: U+010A and U+0A0D have LF and CR in their numbers, not in their UTF-8.
        (["\n", "\r\n"], "ä€🙂\nĊਊ\n🙂".encode(), ["ä€🙂".encode(), "Ċਊ".encode(), "🙂".encode()]),
        ("é", "aéé\nbé🙂".encode(), [b"a", b"", b"\nb", "🙂".encode()]),
    ],
)
@pytest.mark.parametrize("in_pieces", [False, True])
def test_defects_known_elsewhere(
    file: Any, terminators: Any, data: bytes, records: list[bytes], piece_bytes: int, most: int | None, in_pieces: bool
) -> None:
    path = file(data)
    context = partial(ReadAheadLineReaderContext, terminators=terminators, piece_bytes=piece_bytes)
    make_reader = context_reader(context, files=CountedFiles(most), in_pieces=in_pieces)
    found = [record for _, _, record in make_reader(str(path), OffsetRangeTracker(0, len(data)))]
    assert found == records
    is_claimed_at_once = in_pieces and piece_bytes >= len(data)
    assert_reader_is_splittable(make_reader, path, while_reading=not is_claimed_at_once, effort=0.2)


def test_an_unterminated_last_line_at_the_edge_of_the_original_s_buffer(file: Any) -> None:
    for length in (8191, 8192, 8193):
        path = file(b"first\n" + b"x" * length)
        assert_reader_is_splittable(context_reader(ReadAheadLineReaderContext), path)


def test_files_count_every_byte_that_is_read(file: Any) -> None:
    path = str(file(b"abcdefgh"))
    files, short = CountedFiles(), CountedFiles(most=3)
    assert files.status(path).length == 8
    for opened, whole, filled in ((files, b"abcdefgh", 5), (short, b"abc", 3)):
        with opened.open(path) as stream:
            assert stream.read() == whole
            assert stream.seek(2) == 2
            buffer = bytearray(5)
            assert stream.readinto(buffer) == filled
            assert buffer[:filled] == b"cdefg"[:filled]
        assert opened.bytes_read == len(whole) + filled
        with pytest.raises(ValueError, match="closed"):
            stream.read()


# Block readers: the code that runs


@attrs.define
class OneByOne(ReadAheadLineReaderContext):
    """Overrides `next`, so that it is read one record at a time."""

    def next(self) -> Entity | None:
        return super().next()


CONTEXTS = {"in pieces": ReadAheadLineReaderContext, "one by one": OneByOne}
MANY_LINES = b"".join(b"%d," % (n * n) + b"\n" * (n % 3) for n in range(60))


@pytest.mark.parametrize("in_batches", [False, True])
@pytest.mark.parametrize("kind", CONTEXTS)
def test_a_block_reader_is_proved_as_it_runs(file: Any, kind: str, in_batches: bool) -> None:
    reader = BlockReader(reader_context=CONTEXTS[kind](piece_bytes=64))
    assert_reader_is_splittable(reader_of(reader, in_batches=in_batches), file(MANY_LINES), effort=0.5)


def test_what_a_block_reader_claims_at_once_is_returned_at_once(file: Any) -> None:
    """Four records at first, then as many as take 50 ms at the pace that the proof makes up."""
    data = b"line\n" * 100
    tracker = OffsetRangeTracker(0, len(data))
    records = reader_of(BlockReader())(str(file(data)), tracker)
    claimed = [tracker.split_points()[0] for _ in records]
    assert claimed[:8] == [3, 3, 3, 3, 7, 7, 7, 7]
    assert claimed[8] - 7 in (39, 40)  # 50 ms at 1.25 ms each, by sums of fractions


def test_slices_in_a_run_are_compared_by_their_bytes(file: Any) -> None:
    make_reader = reader_of(FSSliceReader(reader_context=FixedBytesReaderContext(4)))
    assert_reader_is_splittable(make_reader, file(LINES), compare=b"".join, while_reading=False)
    with pytest.raises(AssertionError, match=r"4, splits: .* none succeeded"):
        assert_reader_is_splittable(make_reader, file(LINES), compare=b"".join)
    with pytest.raises(AssertionError, match="2, cuts"):
        assert_reader_is_splittable(make_reader, file(LINES))


# Faults, one each, in what a run consists of


@attrs.define
class Skips(OneByOne):
    """Skips to the next line end, also where a line starts at the cut."""

    def initialize(self, stream: Any, block: Any, consecutive: bool) -> None:
        start = min(block.stop, block.start + bool(block.start))
        super().initialize(stream, attrs.evolve(block, start=start), consecutive)


@attrs.define
class SkipsInPieces(Skips):
    """The same in pieces."""

    def next_piece(self) -> Piece | None:
        return ReadAheadLineReaderContext.next_piece(self)


@attrs.define
class BeginsInTheMiddle(OneByOne):
    """A defect: it also gives out the bytes before the first line."""

    is_first: bool = False

    def initialize(self, stream: Any, block: Any, consecutive: bool) -> None:
        super().initialize(stream, block, consecutive)
        self.is_first = block.start > 0

    def next(self) -> Entity | None:
        found = super().next()
        if found is None or not self.is_first:
            return found
        self.is_first = False
        return found._replace(is_split_point=False)


@attrs.define
class Doubles(ReaderContext):
    """Its first record comes twice."""

    inner: OneByOne = attrs.field(factory=OneByOne)
    again: Entity | None = None

    def initialize(self, stream: Any, block: Any, consecutive: bool) -> None:
        self.inner.initialize(stream, block, consecutive)

    def next(self) -> Entity | None:
        if self.again is not None:
            found, self.again = self.again, None
            return found
        found = self.inner.next()
        self.again = found if found is not None and found.position == 0 else None
        return found


@attrs.define
class ClaimsLate(Claiming):
    """Hands on first."""

    late: int | None = None

    def parts(self, piece: Piece) -> Iterator[Piece]:
        yield piece
        self.is_over = self.tracker.try_return_batch_at(piece.split_points) < len(piece)

    def entity(self, context: ReaderContext, entity: Entity) -> bool:
        if self.late is not None and self.late < entity.position:
            self.tracker.try_return_record_at(True, self.late)
        self.late = entity.position
        self.is_over = entity.position >= self.tracker.stop_position
        return not self.is_over


@attrs.define
class ClaimsAllAtOnce(Claiming):
    """Looks at the whole range before it hands on anything."""

    def parts(self, piece: Piece) -> Iterator[Piece]:
        if not self.is_over:
            granted = self.tracker.try_return_batch_at(piece.split_points)
            self.is_over = granted < len(piece)
            yield from filter(None, [piece.before(granted)])


@attrs.define
class IgnoresTheAnswer(Claiming):
    """Claims, and takes what it was refused."""

    def entity(self, context: ReaderContext, entity: Entity) -> bool:
        stop = self.tracker.stop_position
        super().entity(context, entity)
        self.is_over = entity.position >= stop + 4
        return not self.is_over

    def parts(self, piece: Piece) -> Iterator[Piece]:
        taken = 0
        for part in super().parts(piece):
            taken += len(part)
            yield part
        if self.is_over:
            yield piece.part(taken, len(piece))


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (Skips, r"2, cuts: .*\n  lost"),
        (SkipsInPieces, r"2, cuts: .*\n  lost"),
        (BeginsInTheMiddle, "1, claims: .* not a split point"),
        (Doubles, "1, claims"),
    ],
)
def test_a_fault_of_a_context_is_found(file: Any, context: Any, message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_reader_is_splittable(reader_of(BlockReader(reader_context=context())), file(MANY_LINES))
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)


@pytest.mark.parametrize("in_batches", [False, True])
@pytest.mark.parametrize(
    ("claiming", "kind", "message"),
    [
        (ClaimsLate, "in pieces", "1, claims: .* had not been claimed"),
        (ClaimsLate, "one by one", "1, claims: .* had not been claimed"),
        (ClaimsAllAtOnce, "in pieces", "4, splits: .* none succeeded"),
        (IgnoresTheAnswer, "in pieces", "1, claims: .* had not been claimed"),
        (IgnoresTheAnswer, "one by one", "1, claims: .* had not been claimed"),
    ],
)
def test_a_fault_of_what_claims_is_found(
    file: Any, monkeypatch: pytest.MonkeyPatch, claiming: Any, kind: str, message: str, in_batches: bool
) -> None:
    monkeypatch.setattr("operators.readers.reading.block_loop.Claiming", claiming)
    reader = BlockReader(reader_context=CONTEXTS[kind]())
    with pytest.raises(AssertionError) as caught:
        assert_reader_is_splittable(reader_of(reader, in_batches=in_batches), file(MANY_LINES))
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)


@pytest.mark.parametrize("kind", CONTEXTS)
def test_a_fault_of_a_tracker_is_found_in_a_run(file: Any, kind: str) -> None:
    make_reader = reader_of(BlockReader(reader_context=CONTEXTS[kind](piece_bytes=64)))
    with pytest.raises(AssertionError, match=r"7, trackers: .*SplitsConsumed.* granted a split"):
        assert_reader_is_splittable(make_reader, file(MANY_LINES), make_tracker=SplitsConsumed)


def test_a_reader_with_a_tracker_of_its_own_is_refused(file: Any) -> None:
    @attrs.define
    class Own(BlockReader[str]):
        def read_block(self, block: Any) -> Any:
            self._loop.context.track(OffsetRangeTracker(block.start, block.stop))
            return super().read_block(block)

    with pytest.raises(TypeError, match="none that its tracker_of"):
        assert_reader_is_splittable(reader_of(Own()), file(MANY_LINES))
