"""The proof is only worth what it finds: readers with one fault each must be refused, by the law that says why."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.ranges import ByteKeyRangeTracker, ClaimedRecords, OffsetRangeTracker, UnsplittableRangeTracker
from dagflow.testing.readers import CountedFiles
from dagflow.testing.splittable import assert_reader_is_splittable

Found = tuple[Any, bool, Any]
LINES = b"one\ntwo\n\nthree\r\nfour\nfive\nsix"


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "data.txt"
        path.write_bytes(data)
        return path

    return write


def found_lines(path: str, start: int) -> Iterator[Found]:
    """Lines from the first one on that starts at or after `start`."""
    data = Path(path).read_bytes()
    at = data.find(b"\n", start - 1) + 1 or len(data) if start else 0
    while at < len(data):
        end = data.find(b"\n", at) + 1 or len(data)
        yield at, True, data[at:end]
        at = end


def sound(path: str, tracker: Any) -> Iterator[Found]:
    return ClaimedRecords(tracker, found_lines(path, tracker.start_position))


def test_a_sound_reader_passes(file: Any) -> None:
    assert_reader_is_splittable(sound, file(LINES))
    assert_reader_is_splittable(sound, str(file(b"".join(b"line %d\n" % i for i in range(300)))))


# Readers with one fault each


def claims_late(path: str, tracker: Any) -> Iterator[Found]:
    for found in found_lines(path, tracker.start_position):
        if found[0] >= tracker.stop_position:
            return
        yield found
        tracker.try_return_record_at(True, found[0])


def claims_when_the_next_is_asked_for(path: str, tracker: Any) -> Iterator[Found]:
    """As an iterator whose has_next() promises what only next() claims: all but the first are late."""
    before = None
    for found in found_lines(path, tracker.start_position):
        if before is not None and not tracker.try_return_record_at(True, before[0]):
            return
        if found[0] < tracker.stop_position:
            yield found
        before = found


def claims_nothing(path: str, tracker: Any) -> Iterator[Found]:
    return (found for found in found_lines(path, tracker.start_position) if found[0] < tracker.stop_position)


def ignores_the_answer(path: str, tracker: Any) -> Iterator[Found]:
    stop = tracker.stop_position
    for found in found_lines(path, tracker.start_position):
        if found[0] >= stop:
            return
        tracker.try_return_record_at(True, found[0])
        yield found


def claims_another_position(path: str, tracker: Any) -> Iterator[Found]:
    for position, _, record in found_lines(path, tracker.start_position):
        if not tracker.try_return_record_at(True, position + len(record)):
            return
        yield position, True, record


def skips_a_record_at_a_cut(path: str, tracker: Any) -> Iterator[Found]:
    """As a reader that always skips to the next line end, also where a line starts at the cut."""
    start = tracker.start_position
    return ClaimedRecords(tracker, found_lines(path, start + 1 if start else 0))


def takes_a_record_before_the_cut(path: str, tracker: Any) -> Iterator[Found]:
    start = tracker.start_position
    for position, _, record in found_lines(path, max(0, start - 1)):
        if not tracker.try_return_record_at(True, max(start, position)):
            return
        yield max(start, position), True, record


def takes_a_record_behind_the_cut(path: str, tracker: Any) -> Iterator[Found]:
    """As the seed family's read-ahead: a line that starts exactly at the stop is read, and skipped by the next reader."""
    start, stop = tracker.start_position, tracker.stop_position
    for position, _, record in found_lines(path, start + 1 if start else 0):
        if position > stop:
            return
        if position == stop or tracker.try_return_record_at(True, position):
            yield position, position != stop, record


def tail_and_lines(path: str, start: int) -> Iterator[Found]:
    """Bytes before the first split point are not a record of this range."""
    data = Path(path).read_bytes()
    end = data.find(b"\n", start) + 1
    if start and data[start - 1 : start] != b"\n" and end:
        yield start, False, data[start:end]
    yield from found_lines(path, start)


def begins_in_the_middle(path: str, tracker: Any) -> Iterator[Found]:
    for position, is_split_point, record in tail_and_lines(path, tracker.start_position):
        if is_split_point and not tracker.try_return_record_at(True, position):
            return
        yield position, is_split_point, record


def claims_that_it_begins_in_the_middle(path: str, tracker: Any) -> Iterator[Found]:
    return ClaimedRecords(tracker, tail_and_lines(path, tracker.start_position))


def gives_out_its_buffer(path: str, tracker: Any) -> Iterator[Found]:
    """Returns what it has read already although the range ends before."""
    found = list(found_lines(path, tracker.start_position))
    for i in range(0, len(found), 2):
        if not tracker.try_return_record_at(True, found[i][0]):
            return
        yield from found[i : i + 2]


def claims_all_at_once(path: str, tracker: Any) -> Iterator[Found]:
    found = list(found_lines(path, tracker.start_position))
    return iter(found[: tracker.try_return_batch_at([position for position, _, _ in found])])


def stops_at_the_first_split(path: str, tracker: Any) -> Iterator[Found]:
    stop = tracker.stop_position
    for found in sound(path, tracker):
        yield found
        if tracker.stop_position != stop:
            return


def numbers_its_records(path: str, tracker: Any) -> Iterator[Found]:
    for number, (position, is_split_point, record) in enumerate(sound(path, tracker)):
        yield position, is_split_point, (number, record)


def goes_backwards(path: str, tracker: Any) -> Iterator[Found]:
    found = [*found_lines(path, tracker.start_position)]
    return ClaimedRecords(tracker, reversed([f for f in found if f[0] < tracker.stop_position]))


def returns_everything_twice(path: str, tracker: Any) -> Iterator[Found]:
    for found in sound(path, tracker):
        yield found
        yield found


def returns_nothing(path: str, tracker: Any) -> Iterator[Found]:
    return iter(())


@attrs.define
class OneStream:
    """All its readers share a file's position."""

    stream: Any = None
    at: int = 0

    def __call__(self, path: str, tracker: Any) -> Iterator[Found]:
        self.at = next(iter(found_lines(path, tracker.start_position)), (1 << 30, True, b""))[0]
        data = Path(path).read_bytes()
        while self.at < len(data) and tracker.try_return_record_at(True, self.at):
            begin, self.at = self.at, data.find(b"\n", self.at) + 1 or len(data)
            yield begin, True, data[begin : self.at]


FAULTS: list[tuple[Callable[..., Any], str]] = [
    (claims_late, "1, claims: .* had not been claimed"),
    (claims_when_the_next_is_asked_for, "1, claims: .* had not been claimed"),
    (claims_nothing, "1, claims: .* had not been claimed"),
    (ignores_the_answer, r"4, splits|1, claims: .* had not been claimed"),
    (claims_another_position, "1, claims: .* had not been claimed"),
    (skips_a_record_at_a_cut, r"2, cuts: .* is not \[0, 29\)\n  lost  \(4, True, b'two"),
    (takes_a_record_before_the_cut, r"1, claims|2, cuts"),
    (takes_a_record_behind_the_cut, "2, cuts|1, claims: .* (no|not a) split point"),
    (begins_in_the_middle, "1, claims: .*the first record of .* is (no|not a) split point"),
    (claims_that_it_begins_in_the_middle, "1, claims: .*the first record returned of the range .* (no|not a) split point"),
    (gives_out_its_buffer, "1, claims: .* had not been claimed"),
    (claims_all_at_once, "4, splits: .* none succeeded"),
    (stops_at_the_first_split, "4, splits: .*\n  lost"),
    (numbers_its_records, "2, cuts: .*\n  new "),
    (goes_backwards, "1, claims: .*comes after the one at"),
    (returns_everything_twice, "1, claims: .* follows 0"),
    (returns_nothing, "has 0 split points: too few"),
    (OneStream(), "3, re-entrant"),
]


@pytest.mark.parametrize(("reader", "message"), FAULTS, ids=lambda value: getattr(value, "__name__", "") or None)
def test_a_fault_is_found_and_named(file: Any, reader: Any, message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_reader_is_splittable(reader, file(LINES))
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)
    assert "data.txt" in str(caught.value)


@pytest.mark.parametrize("seed", range(8))
def test_another_thread_has_its_split_however_late_the_reader_waits(file: Any, seed: int) -> None:
    """All but the first eight records are claimed at once: only a reader that waits at one of those can be split."""

    def claims_eight_then_all(path: str, tracker: Any) -> Iterator[Found]:
        found = list(found_lines(path, tracker.start_position))
        for part in filter(None, [*([each] for each in found[:8]), found[8:]]):
            granted = tracker.try_return_batch_at([position for position, _, _ in part])
            yield from part[:granted]
            if granted < len(part):
                return

    path = file(b"".join(b"%d\n" % number for number in range(40)))
    assert_reader_is_splittable(claims_eight_then_all, path, effort=0.2, seed=seed)


@pytest.mark.full
def test_a_fault_in_the_time_between_a_look_and_a_claim_is_found(file: Any) -> None:
    """Without another thread, such a reader does all well."""

    def looks_then_claims(path: str, tracker: Any) -> Iterator[Found]:
        for found in found_lines(path, tracker.start_position):
            if found[0] >= tracker.stop_position:
                return
            time.sleep(0)  # gives other threads a chance, and takes no time
            tracker.try_return_record_at(True, found[0])
            yield found

    path = file(b"".join(b"%d\n" % i for i in range(30)))
    assert_reader_is_splittable(looks_then_claims, path, while_reading=False, effort=0.2)
    with pytest.raises(AssertionError, match="had not been claimed"):
        assert_reader_is_splittable(looks_then_claims, path)


class SplitsUnbegun(OffsetRangeTracker):
    """A tracker that is split before it has begun; the start-up of a reader does not look at that."""

    def _try_split(self, position: int) -> bool:
        last = self._start if self._last is None else self._last
        is_split = not self._is_over and last < position < self.stop_position
        self._stop = position if is_split else self._stop
        return is_split


def test_splits_that_are_harmless_are_no_fault(file: Any) -> None:
    assert_reader_is_splittable(sound, file(LINES), make_tracker=SplitsUnbegun)


def test_what_is_never_split_proves_nothing(file: Any) -> None:
    with pytest.raises(AssertionError, match="none succeeded"):
        assert_reader_is_splittable(sound, file(LINES), make_tracker=UnsplittableRangeTracker)
    assert_reader_is_splittable(sound, file(LINES), make_tracker=UnsplittableRangeTracker, while_reading=False)


def test_a_file_of_one_record_proves_nothing_unless_that_is_what_is_tried(file: Any) -> None:
    with pytest.raises(AssertionError, match="has 1 split points: too few to prove anything"):
        assert_reader_is_splittable(sound, file(b"only"))
    assert_reader_is_splittable(sound, file(b"only"), least_split_points=1)
    assert_reader_is_splittable(sound, file(b""), least_split_points=0)


def test_errors_of_the_reader_itself_are_its_own(file: Any) -> None:
    def broken(path: str, tracker: Any) -> Iterator[Found]:
        raise OSError("no such disk")

    with pytest.raises(OSError, match="no such disk"):
        assert_reader_is_splittable(broken, file(LINES))


# Split points that are not records, keys


def blocks(path: str, tracker: Any, *, claims_all: bool, reads_tail: bool = False) -> Iterator[Found]:
    """Lines; blocks begin with those that start with `#`, and other lines belong to the block before."""
    begun = reads_tail
    for position, _, record in found_lines(path, tracker.start_position):
        is_split_point = record.startswith(b"#")
        begun = begun or is_split_point
        if begun and (is_split_point or claims_all) and not tracker.try_return_record_at(is_split_point, position):
            return
        if begun:
            yield position, is_split_point, record


@pytest.mark.parametrize("claims_all", [False, True])
def test_blocks_of_records(file: Any, claims_all: bool) -> None:
    path = file(b"#a\n1\n2\n#b\n#c\n3\n#d\n4\n5\n6")
    assert_reader_is_splittable(partial(blocks, claims_all=claims_all), path)
    with pytest.raises(AssertionError, match=r"is (no|not a) split point|and no split point"):
        assert_reader_is_splittable(partial(blocks, claims_all=claims_all, reads_tail=True), path)


TABLE = {b"": -1} | {bytes([i // 8, i * 37 % 256][: 1 + i % 3]): i for i in range(60)}


def rows(path: str, tracker: Any, *, skipped: int = 0) -> Iterator[Found]:
    keys = sorted(key for key in TABLE if key >= tracker.start_position)
    return ClaimedRecords(tracker, ((key, True, TABLE[key]) for key in keys[skipped if tracker.start_position else 0 :]))


@pytest.mark.parametrize("bounds", [(b"", b""), (b"\0\x10", b""), (b"", b"\x06\0"), (b"\x01", b"\x06\0")])
def test_keys(bounds: tuple[bytes, bytes]) -> None:
    assert_reader_is_splittable(rows, "table", bounds=bounds, make_tracker=ByteKeyRangeTracker)
    with pytest.raises(AssertionError, match="2, cuts"):
        assert_reader_is_splittable(partial(rows, skipped=1), "table", bounds=bounds, make_tracker=ByteKeyRangeTracker)


# Efficiency


def counted(
    path: str, tracker: Any, *, files: CountedFiles, from_start: bool = False, ahead: int = 0, header: int = 0
) -> Iterator[Found]:
    """Lines, read in buffers of 16 bytes."""
    start, stop = tracker.start_position, tracker.stop_position
    at = 0 if from_start else max(0, start - 1)
    with files.open(path) as stream:
        stream.read(header)
        stream.seek(at)
        data = stream.read(stop - at + ahead) if ahead else b""

        def more() -> bool:
            nonlocal data
            piece = stream.read(16)
            data += piece
            return len(piece) > 0

        def line_end(begin: int) -> int:
            while (end := data.find(b"\n", begin) + 1) == 0 and more():
                pass
            return end or len(data)

        begin = line_end(start - 1 - at) if start else 0
        while (begin < len(data) or more()) and tracker.try_return_record_at(True, at + begin):
            end = line_end(begin)
            yield at + begin, True, data[begin:end]
            begin = end


LONG = b"".join(b"%d," % i * (i % 12) + b"\n" for i in range(150))


@pytest.mark.parametrize("fault", [{"from_start": True}, {"ahead": 120}])
def test_a_range_is_read_in_bytes_like_its_own(file: Any, fault: dict[str, Any]) -> None:
    path, files = file(LONG), CountedFiles()
    how: dict[str, Any] = {"files": files, "buffer_bytes": 16, "effort": 0.2}
    assert_reader_is_splittable(partial(counted, files=files), path, **how)
    with pytest.raises(AssertionError, match=r"6, efficiency: .*reading \[\d+, \d+\) took \d+ bytes, more than \d+"):
        assert_reader_is_splittable(partial(counted, files=files, **fault), path, **how)
    assert_reader_is_splittable(partial(counted, files=files, header=500), path, besides_bytes=500, **how)
    with pytest.raises(AssertionError, match=r"6, efficiency: .*\n.*, besides 100 of a header or footer$"):
        assert_reader_is_splittable(partial(counted, files=files, header=500), path, besides_bytes=100, **how)
    with pytest.raises(AssertionError, match="was not read through `files`"):
        assert_reader_is_splittable(partial(counted, files=CountedFiles()), path, **how)
