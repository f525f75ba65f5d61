"""Proof that a reader may be cut anywhere, before it reads and while it does: `assert_reader_is_splittable`."""

from __future__ import annotations

import io
import itertools
import os
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import attrs

from dagflow.ranges import OffsetRangeTracker, RangeTracker
from dagflow.ranges.errors import RangeError
from dagflow.testing.readers import CountedFiles, MakeReader
from dagflow.testing.trackers import Watched, check_tracker, has_fractions, watched

Found = tuple[Any, bool, Any]  # position, is_split_point, record

ALL_CUTS_BELOW = 256  # positions; of longer ranges, cuts are drawn
ALL_RANGES_BELOW = 16
MOST_RECORDS = 200_000  # are read for a law (times the effort), so that long files take no longer than short ones
FRACTIONS = [step / 10 for step in range(11)]
HALF_OF_THE_REST = -1.0  # of what is not consumed when a split is tried
ATTEMPTS = 20  # of another thread to split while a reader stands


def assert_reader_is_splittable(
    make_reader: MakeReader,
    path: str | os.PathLike[str],
    expected: Sequence[Any] | None = None,
    *,
    bounds: tuple[Any, Any] | None = None,
    make_tracker: Callable[[Any, Any], RangeTracker[Any]] = OffsetRangeTracker,
    compare: Callable[[list[Any]], Any] | None = None,
    while_reading: bool = True,
    files: CountedFiles | None = None,
    buffer_bytes: int = io.DEFAULT_BUFFER_SIZE,
    besides_bytes: int = 0,
    least_split_points: int = 2,
    effort: float = 1.0,
    seed: int = 0,
) -> None:
    r"""Assert that a reader returns the same records wherever its range is cut, also while it is read (Beam: SourceTestUtils).

    The laws, tried in this order:

    1. *Claims*: what is returned has been claimed, at its position, and positions are in order; the first is a split point.
    2. *Cuts*: [A, B) + [B, C) is [A, C), and all that [A, B) returns lies in it. Every cut of a small file, every A, B, C of
       a tiny one; of a longer one cuts before, at and behind records, and at random.
    3. *Re-entrant*: a second reader does not disturb the first, wherever that one stands.
    4. *Splits*: split after any record, at any position or fraction: primary and residual make up the whole, and the primary is
       what a reader of its range returns; the same for splits of splits. Some splits must succeed, else nothing is proved.
    5. *Races*: the same while another thread splits.
    6. *Efficiency*, if `files` is given: reading a range takes no more bytes than its own, one record's and two buffers', beside
       those of a header or footer.
    7. *Trackers*, at all times: a claim is granted before the stop only; a split moves the stop to where the residual starts;
       fractions are from 0 to 1 and never fall; a copy has a life of its own.
    8. *Records*, if `expected` is given: the whole range has these.

    No law may hold because nothing was tried: cuts must have records on both sides, and splits must succeed.

    Args:
        make_reader: `make_reader(path, tracker)` yields (position, is_split_point, record) of the tracker's range, and claims
            each split point before it yields it. `reader_of(reader)` makes one of a block reader.
        path: what is read, as `make_reader` gets it.
        expected: the records of the whole range in order. Without them, a reader that always drops or doubles a record passes.
        bounds: the whole range; by default all bytes of the file.
        make_tracker: makes the tracker of a range; positions may be integers or keys.
        compare: what is compared of the records of a range, for readers whose records depend on the cuts: `b"".join` for slices.
        while_reading: False leaves out laws 4 and 5, for readers that are never split within a block.
        files: the CountedFiles that the reader opens its files with.
        buffer_bytes: what the reader reads at a time. Law 6 says something of files that are several times longer.
        besides_bytes: what each reader reads of a header or footer, whatever its range is.
        least_split_points: fewer in the file are an error, since there would be nothing to prove.
        effort: multiplies how much is tried. With 1, hundreds of reads of a file of a thousand records, fewer of longer ones.
        seed: of what is drawn at random.

    Raises AssertionError with the law, the range, where it was cut, and which records were lost or came twice.

    >>> import pathlib, tempfile
    >>> from dagflow.testing.readers import reader_of
    >>> from operators import BlockReader, FixedBytesReaderContext, FSSliceReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "lines.txt")
    ...     _ = path.write_bytes(b"one\ntwo\r\nthree\nfour\nfive\n")
    ...     assert_reader_is_splittable(reader_of(BlockReader()), path)
    ...     try:
    ...         assert_reader_is_splittable(reader_of(FSSliceReader(reader_context=FixedBytesReaderContext(4))), path)
    ...     except AssertionError as error:
    ...         print(str(error).partition(": ")[0])
    law 2, cuts
    """
    proof = _Proof(
        make_reader=make_reader,
        path=os.fspath(path),
        bounds=bounds or (0, (files or CountedFiles()).status(os.fspath(path)).length),
        make_tracker=make_tracker,
        compare=compare,
        effort=effort,
        at_random=random.Random(seed),
    )
    proof.whole_has(least_split_points)
    if expected is not None:
        proof.records(list(expected))
    proof.cuts()
    proof.reentrant()
    if while_reading:
        proof.trackers()
        proof.splits()
        proof.splits_of_splits()
        proof.races()
    if files is not None:
        proof.efficiency(files, buffer_bytes, besides_bytes)


@attrs.define(eq=False, kw_only=True)
class _Proof:
    make_reader: MakeReader
    path: str
    bounds: tuple[Any, Any]
    make_tracker: Callable[[Any, Any], RangeTracker[Any]]
    compare: Callable[[list[Any]], Any] | None
    effort: float
    at_random: random.Random
    known: dict[tuple[Any, Any], list[Found]] = attrs.field(factory=dict)
    splittable: list[int] = attrs.field(factory=list)  # after so many records, half of the rest could be split off

    # Reading

    def open(self, start: Any, stop: Any) -> tuple[Watched, Iterator[Found]]:
        """Open a reader of a range. Law 1 checks its records as they come."""
        watch = watched(self.make_tracker, start, stop, self.fail)
        return watch, self._checked(watch, f"[{start}, {stop})", start)

    def _checked(self, watch: Watched, where: str, start: Any) -> Iterator[Found]:
        last = None
        try:
            for position, is_split_point, record in self.make_reader(self.path, watch):
                if last is None and not is_split_point:
                    self.fail("1, claims", f"the first record of {where}, at {position}, is not a split point", record)
                if is_split_point and position not in watch.claimed:
                    self.fail(
                        "1, claims",
                        f"the record at {position} of {where} was returned, but had not been claimed:\n"
                        "  a split there would give away what was returned already",
                        record,
                        help="`if not tracker.try_return_record_at(is_split_point, position): return` before it is yielded",
                    )
                if position < start or (last is not None and (position <= last[0] if is_split_point else position < last[1])):
                    self.fail("1, claims", f"in {where}, {position} follows {start if last is None else last[1]}", record)
                last = (position if is_split_point or last is None else last[0], position)
                yield position, is_split_point, record
        except RangeError as error:
            raise AssertionError(f"law 1, claims: {self.path}: while {where} was read: {error}") from error

    def read(self, start: Any, stop: Any) -> list[Found]:
        """Read all of a range, once; later calls return the same."""
        if (start, stop) not in self.known:
            if len(self.known) > 4096:
                self.known.clear()
            self.known[start, stop] = list(self.open(start, stop)[1])
        return self.known[start, stop]

    @property
    def whole(self) -> list[Found]:
        return self.read(*self.bounds)

    # Laws

    @property
    def points(self) -> list[Any]:
        """The split points of the whole range."""
        return [position for position, is_split_point, _ in self.whole if is_split_point]

    def records(self, expected: list[Any]) -> None:
        records: list[list[Found]] = [[(None, True, record) for record in of] for of in (expected, [f[2] for f in self.whole])]
        self.same("8, records", "the whole range has other records than expected", *records)

    def trackers(self) -> None:
        check_tracker(self.make_tracker, self.bounds, self.some(self.points, 200), self.fail)

    def whole_has(self, least: int) -> None:
        count = len(self.points)
        if count < least:
            raise AssertionError(
                f"{self.path} has {count} split points: too few to prove anything\n"
                f"  help: give a file with more (or least_split_points={count}, if that is what you try)"
            )

    def cuts(self) -> None:
        start, stop = self.bounds
        places = self.places(60)
        for cut in places:
            self.add_up("2, cuts", [(start, cut), (cut, stop)], self.bounds)
        if len(self.points) > 1 and not any(self.read(start, cut) and self.read(cut, stop) for cut in places):
            self.fail("2, cuts", f"of {len(places)} cuts none had records on both sides: nothing was tried")
        if isinstance(start, int) and stop - start < ALL_RANGES_BELOW:
            ranges: Any = itertools.combinations_with_replacement(range(start, stop + 1), 3)
        else:
            places = self.places(60)
            ranges = [sorted(self.at_random.choices(places, k=3)) for _ in range(self.times(60))]
            ranges += [(*sorted(self.at_random.choices(places, k=2)), stop) for _ in range(self.times(10))]
        for first, cut, last in ranges:
            self.add_up("2, cuts", [(first, cut), (cut, last)], (first, last))

    def add_up(self, law: str, parts: list[tuple[Any, Any]], of: tuple[Any, Any]) -> None:
        parts_read = [self.read(*part) for part in parts]
        wording = " + ".join(f"[{start}, {stop})" for start, stop in parts)
        self.same(law, f"{wording} is not [{of[0]}, {of[1]})", self.read(*of), [*itertools.chain(*parts_read)])
        for (start, stop), records in zip(parts, parts_read, strict=True):
            for position, is_split_point, record in records:
                if position < start or (is_split_point and position >= stop and stop != b""):
                    self.fail(law, f"the record at {position} is not in [{start}, {stop}), which returned it", record)

    def reentrant(self) -> None:
        for count in self.some(range(1, len(self.whole) + 1), 10):
            _, one = self.open(*self.bounds)
            begun = list(itertools.islice(one, count))
            _, other = self.open(*self.bounds)
            wording = f"while another reader stood after {count} records, a second one read something else"
            self.same("3, re-entrant", wording, self.whole, list(other))
            wording = f"after {count} records, another reader read all; the first one went on wrongly"
            self.same("3, re-entrant", wording, self.whole, begun + list(one))

    def splits(self) -> None:
        must: list[tuple[int, Any, Any]] = []  # after so many records, at this position or else at this fraction
        may = must[:]
        for count in sorted({min(1, len(self.whole)), *self.some(range(len(self.whole) + 1), 60)}):
            near = [position for position, _, _ in self.whole[max(0, count - 1) : count + 1]]
            must += [(count, position, None) for position in dict.fromkeys([*near, *map(self.after, near)])]
            must.append((count, None, HALF_OF_THE_REST))
            may += [(count, position, None) for position in self.places(3)]
            may += [(count, None, fraction) for fraction in FRACTIONS]
        trials, succeeded = [*must, *self.some(may, 400)], 0
        for count, position, wanted in trials:
            watch, reader = self.open(*self.bounds)
            records = list(itertools.islice(reader, count))
            fraction = (1 + watch.fraction_consumed) / 2 if wanted == HALF_OF_THE_REST else wanted
            at = f"fraction {fraction}" if position is None else f"position {position}"
            is_split = (
                watch.try_split_at_fraction(fraction) is not None if position is None else watch.try_split_at_position(position)
            )
            records += reader
            wording = f"[{self.bounds[0]}, {self.bounds[1]}) was split at {at} after {count} records"
            if not is_split:
                self.same("4, splits", f"{wording}, which was refused; then it", self.whole, records)
                continue
            if wanted == HALF_OF_THE_REST:
                self.splittable.append(count)
            start, stop, end = *self.bounds, watch.stop_position
            rest = self.read(end, stop)
            succeeded += bool(records and rest)
            self.same("4, splits", f"{wording}, and with the residual [{end}, {stop})", self.whole, records + rest)
            self.same("4, splits", f"{wording}, and is not what [{start}, {end})", self.read(start, end), records)
        if not succeeded and len(self.points) > 1:
            self.fail(
                "4, splits",
                f"of {len(trials)} splits of [{self.bounds[0]}, {self.bounds[1]}) none succeeded with records on both sides:\n"
                "  the reader claims all records before it returns the first",
                help="claim less at a time, or give a file that is longer than what is claimed at once",
            )

    def splits_of_splits(self) -> None:
        for _ in range(self.times(20)):
            wording: list[str] = []
            records = self._read_while_split(self.bounds, wording)
            self.same("4, splits", f"split again and again: {', '.join(wording)}", self.whole, records)

    def _read_while_split(self, bounds: tuple[Any, Any], wording: list[str]) -> list[Found]:
        watch, reader = self.open(*bounds)
        records, residuals = [], []
        for record in reader:
            records.append(record)
            if self.at_random.random() < 0.2:
                fraction = watch.fraction_consumed
                residual = watch.try_split_at_fraction(min(1.0, fraction + self.at_random.random() * (1 - fraction)))
                if residual is not None:
                    wording.append(f"at {residual.start} after {len(records)} records from {bounds[0]} on")
                    residuals.append((residual.start, residual.stop))
        for residual in reversed(residuals):
            records += self._read_while_split(residual, wording)
        return records

    def races(self) -> None:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            splits = sum(self._race(f"trial {trial}") for trial in range(self.times(10)))
        finally:
            sys.setswitchinterval(interval)
        if not splits and has_fractions(self.make_tracker(*self.bounds)) and len(self.points) > 1:
            self.fail("5, races", "no split by another thread succeeded: nothing was tried")

    def _race(self, wording: str) -> int:
        """Read while another thread splits; return how often it did.

        The reader waits once, where half of its rest can be split off, so that there is a split on any machine.
        """
        watch, reader = self.open(*self.bounds)
        results: list[Found] = []
        failed: list[BaseException] = []
        pause, tried = self.at_random.choice(self.splittable or [1]), threading.Event()

        def read() -> None:
            try:
                for record in reader:
                    results.append(record)
                    if len(results) == pause:
                        tried.wait(10)
            except BaseException as error:  # noqa: BLE001  # raised again in the thread of the test
                failed.append(error)

        thread = threading.Thread(target=read)
        thread.start()
        residuals, attempts = [], 0
        try:
            while thread.is_alive():
                share = self.at_random.random() if attempts < ATTEMPTS - 1 else 0.5
                fraction = watch.fraction_consumed
                residual = watch.try_split_at_fraction(min(1.0, fraction + share * (1 - fraction)))
                if residual is not None:
                    residuals.append((residual.start, residual.stop))
                attempts += len(results) >= pause
                if attempts >= ATTEMPTS or (residual is not None and attempts):
                    tried.set()
        finally:
            tried.set()
        thread.join()
        if failed:
            raise failed[0]
        for start, stop in reversed(residuals):
            results += self.read(start, stop)
            wording += f", split at {start}"
        self.same("5, races", f"{wording} by another thread", self.whole, results)
        return len(residuals)

    def efficiency(self, files: CountedFiles, buffer_bytes: int, besides_bytes: int) -> None:
        start, stop = self.bounds
        starts = [*(position for position, is_split_point, _ in self.whole if is_split_point), stop]
        longest = max((after - before for before, after in itertools.pairwise(starts)), default=0)
        places = sorted({start, stop, *self.places(20)})
        pairs = [*itertools.pairwise(places), *(sorted(self.at_random.sample(places, 2)) for _ in range(20)), (start, stop)]
        begun = files.bytes_read
        for first, last in pairs:
            before = files.bytes_read
            for _ in self.open(first, last)[1]:
                pass
            used, most = files.bytes_read - before, last - first + longest + 2 * buffer_bytes + besides_bytes
            if used > most:
                self.fail(
                    "6, efficiency",
                    f"reading [{first}, {last}) took {used} bytes, more than {most}:\n"
                    f"  the range's {last - first}, the longest record's {longest}, and two buffers of {buffer_bytes}"
                    + (f", besides {besides_bytes} of a header or footer" if besides_bytes else ""),
                )
        if files.bytes_read == begun:
            raise AssertionError(f"{self.path} was not read through `files`: give the same CountedFiles to make_reader")

    # What is tried, and what is said

    def places(self, count: int) -> list[Any]:
        """Return the positions at which to cut the whole range: all if it is short, otherwise records and random ones."""
        start, stop = self.bounds
        if isinstance(start, int) and stop - start <= ALL_CUTS_BELOW and count > 3:
            return list(range(start, stop + 1))
        tracker = self.make_tracker(start, stop)
        positions = {tracker.position_at_fraction(self.at_random.random()) for _ in range(self.times(count))}
        for position, _, _ in self.some(self.whole, count):
            positions |= {position, self.after(position)} | ({position - 1} if isinstance(position, int) else set())
        # A range is not cut at an empty key: as a stop, it would mean no end.
        return sorted(place for place in positions if start <= place and place != b"" and (stop == b"" or place <= stop))

    def times(self, count: int) -> int:
        """Return the number of trials that read all records, if a short file gets `count`."""
        return max(2, int(self.effort * min(count, MOST_RECORDS // (1 + len(self.whole)))))

    def after(self, position: Any) -> Any:
        """Return the smallest position after one."""
        return position + 1 if isinstance(position, int) else position + b"\0"

    def some(self, values: Any, count: int) -> Any:
        """At most so many (times the effort) of some values, in their order."""
        count = self.times(count)
        return values if len(values) <= count else [values[i] for i in sorted(self.at_random.sample(range(len(values)), count))]

    def same(self, law: str, wording: str, expected: list[Found], found: list[Found]) -> None:
        if self.compare is not None:
            one, other = (self.compare([record for _, _, record in records]) for records in (expected, found))
            if not equal(one, other):
                self.fail(law, f"{wording}\n  expected {one!r:.500}\n  found    {other!r:.500}")
        elif not equal(expected, found):
            self.fail(law, f"{wording}{difference(expected, found)}")

    def fail(self, law: str, wording: str, record: Any = None, help: str | None = None) -> NoReturn:
        shown = f"\n  record {record!r:.200}" if record is not None else ""
        raise AssertionError(f"law {law}: {self.path}: {wording}{shown}" + (f"\n  help: {help}" if help else ""))


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same, also if `==` is false, as for NaN, or not a boolean, as for arrays."""
    try:
        if bool(one == other):
            return True
    except ValueError:
        pass
    if isinstance(one, float) and isinstance(other, float):
        return one != one and other != other
    if isinstance(one, (list, tuple)) and isinstance(other, type(one)):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, Mapping) and isinstance(other, type(one)):
        return one.keys() == other.keys() and all(equal(value, other[key]) for key, value in one.items())
    try:
        return pickle.dumps(one) == pickle.dumps(other)
    except Exception:  # noqa: BLE001  # what cannot be pickled is not the same
        return False


def difference(expected: list[Any], found: list[Any]) -> str:
    """Return lines that list the records that were lost, came twice, or are new, near the first difference.

    >>> print(difference(["a", "b", "c"], ["a", "a", "c"]))
    <BLANKLINE>
      twice 'a'
      lost  'b'
      (3 records expected, 3 found)
    """
    first = next(
        (i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if not equal(a, b)), min(len(expected), len(found))
    )
    wording, seen = [], [*found[:first]]
    for record in found[first : first + 20]:
        is_known = any(equal(record, known) for known in expected)
        if not is_known or any(equal(record, known) for known in seen):
            wording.append(f"{'twice' if is_known else 'new  '} {record!r:.200}")
        seen.append(record)
    wording += [f"lost  {record!r:.200}" for record in expected[first : first + 20] if not any(equal(record, f) for f in found)]
    wording = wording or [f"order {record!r:.200}" for record in found[first : first + 3]]
    return "".join(f"\n  {line}" for line in wording[:6]) + f"\n  ({len(expected)} records expected, {len(found)} found)"
