"""The splitter that finds its files itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from typing import Any, ClassVar, Literal, get_args

import attrs

from dagflow import FileInfo, InputOperator, MapState, OperatorContext, State
from dagflow.config import one_of
from dagflow.scaling import Backlog
from dagflow.storage import FileStatus, explained, local_path, translate
from operators.files.blocks import FileBlocks
from operators.files.errors import FileModified, FileNotAppended, PlannedFileGone
from operators.files.growing import Growth, ReadPart, look
from operators.files.scanner import TimeBasedDirectoryScanner, check_paths, inputs, paths
from operators.files.splitter_base import AbstractFileSplitter
from operators.files.stamps import FOLDER, in_words, is_same, key_of, length_in, stamp
from operators.files.tree import Visit, name_below
from operators.problems import all_problems, problems_of

EventTime = Literal["modified"]
WAIT_SECONDS = 0.1  # how long one call of emit_tuples waits for a scan that is under way
MOST_WARNINGS = 10  # of files that are read again, in a launch; all are counted


@attrs.frozen
class ScannedFileInfo(FileInfo):
    """A file that a scan found, with its facts at that time."""

    status: FileStatus


class Arriving:
    """The visit of the scanner from which files are being taken, and the file that was taken last.

    `weighed`: what visits hold that have not been taken, as far as it was needed; each is looked through once. `growth`: what
    the file that was taken last has that is new, in append mode. `warned`: how many warnings of files read again were due.
    `has_looked`: whether it is known what the first scan of this launch has found.
    """

    def __init__(self) -> None:
        self.visit = Visit(None, [])
        self.found: Iterator[FileStatus] = iter([])
        self.last: ScannedFileInfo | None = None
        self.weighed: list[tuple[Visit, Backlog]] = []
        self.growth: Growth | None = None
        self.warned = 0
        self.has_looked = False

    @property
    def root(self) -> str | None:
        """The input below which the files lie."""
        return self.visit.root

    def begin(self, visit: Visit) -> None:
        """Continue with another visit."""
        self.visit, self.found = visit, iter(visit.found)

    def weigh(self, waiting: Iterable[Visit], blocks_of: Callable[[FileStatus], Backlog]) -> Backlog:
        """Weigh what is left of the current visit, and of those that wait."""
        before = self.weighed
        self.weighed = []
        for visit in (self.visit, *waiting):
            known = next((backlog for each, backlog in before if each is visit), None)
            if known is None:
                left = visit.found[len(visit.found) - length_hint(self.found) :] if visit is self.visit else visit.found
                known = sum(map(blocks_of, left), Backlog())
            self.weighed.append((visit, known))
        return sum((backlog for _, backlog in self.weighed), Backlog())

    def taken(self, backlog: Backlog) -> None:
        """Take note that a file of the current visit, with this backlog, has been taken."""
        self.weighed = [(visit, left - backlog if visit is self.visit else left) for visit, left in self.weighed]

    def take(self, status: FileStatus) -> ScannedFileInfo:
        """Make `status` the file that was taken last."""
        path, root = status.path, self.root
        if root is None or root.endswith("://"):
            self.last = ScannedFileInfo(None, path, status)
        else:
            self.last = ScannedFileInfo(root, name_below(root, path), status)
        return self.last


def _scanner(given: TimeBasedDirectoryScanner | None) -> TimeBasedDirectoryScanner:
    return TimeBasedDirectoryScanner() if given is None else given


@attrs.define(slots=False)
class FileSplitterInput(AbstractFileSplitter, InputOperator):
    """Finds files, new and modified ones, and cuts them into blocks without opening them.

    A run with `--once` scans once, and is done when all that was found has been split; a continuous one scans again after each
    interval. What was split is remembered over windows and launches, by path, modification time, length and ETag (of servers that
    have such); files that vanish stay remembered. A path that several inputs or links lead to is split once. On disks, a file is
    looked at again before it is split: one that is gone since the scan is left for the scan that finds it again.

    >>> import os, tempfile
    >>> from dagflow.testing import run_operator
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.txt", "b.txt"):
    ...         with open(os.path.join(folder, name), "w") as file:
    ...             _ = file.write("hello")
    ...     found = run_operator(FileSplitterInput(files=[folder], block_size=4), {})
    >>> [(os.path.basename(b.file_path), b.start, b.stop) for b in found["blocks_metadata_output"]]
    [('a.txt', 0, 4), ('a.txt', 4, 5), ('b.txt', 0, 4), ('b.txt', 4, 5)]

    Attributes:
        files: files or folders, as paths or URLs; one stands for a list of one. A scanner without files gets them.
            A file that symbolic links lead to is read once.
        scanner: what finds the files.
        event_time: where the watermark comes from. `modified`: it is the newest modification time of the files whose blocks have
            all been planned; for folders to which files come in the order of their times. None: there is none.
    """

    at_once: ClassVar[int | None] = 10_000  # so that a window can also be closed by time

    files: list[str] = attrs.field(factory=list, converter=paths, validator=check_paths)
    scanner: TimeBasedDirectoryScanner = attrs.field(
        default=None,
        converter=_scanner,
        validator=attrs.validators.instance_of(TimeBasedDirectoryScanner),
    )
    event_time: EventTime | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(one_of(get_args(EventTime)))
    )

    file_times = State[list[int | None]](factory=list)  # modified: the newest of all files but the last one; the last one
    seen = MapState[str, str]()  # path → stamp, of files and folders
    parts = MapState[str, str]()  # path → ReadPart, of files that may be appended to

    def check(self) -> None:
        """Raise ValueError for missing files, bad regular expressions, and sizes that leave no blocks."""
        with all_problems(super().check) as problems:
            if not self.files and not self.scanner.files:
                problems.append("files is empty: name at least one file or folder")
            if self.files and self.scanner.files and inputs(self.files) != inputs(self.scanner.files):
                problems.append(f"files is {self.files} and scanner.files is {self.scanner.files}: give them in one place")
            if self.scanner.modified == "append" and not self.idempotent:
                problems.append("scanner.modified is append, which needs idempotent = true: parts are read as they were planned")
            problems.extend(problems_of(self.scanner.check, "scanner."))

    def input_paths(self) -> list[str]:
        """Return the files and folders of the scanner."""
        return inputs(self.scanner.files or self.files)

    def check_inputs(self, context: OperatorContext) -> None:
        """Raise InputMissing, InputNotFile."""
        self.scanner.look(context, self.files)

    def setup(self, context: OperatorContext) -> None:
        """Start the scanner. Raises InputMissing, InputNotFile."""
        super().setup(context)
        self._arriving = Arriving()
        self.scanner.setup(context, self.files)

    def teardown(self) -> None:
        """Stop the scanner."""
        self.scanner.teardown()

    def emit_tuples(self) -> None:
        """Emit the rest of earlier windows, then the files that the scanner has found."""
        super().emit_tuples()
        for reason, n in self.scanner.newly_skipped().items():
            self.context.count(reason, n)
        if not self._arriving.has_looked and self.scanner.is_idle() and length_hint(self._arriving.found) == 0:
            self._arriving.has_looked = True
            self._warn_of_nothing()

    def _warn_of_nothing(self) -> None:
        """Warn of paths that the first scan has passed over, when neither it nor an earlier launch has found a file."""
        if all(known == FOLDER for known in self.seen.values()) and (passed_over := self.scanner.passed_over()):
            self.context.warn(f"found no file to read in {', '.join(self.input_paths())}; passed over: {passed_over}")

    def is_exhausted(self) -> bool:
        """Return True if all that the scan found has been split. Never in a continuous run."""
        if self.context.continuous or not super().is_exhausted():
            return False
        return length_hint(self._arriving.found) == 0 and self.scanner.is_idle()

    def backlog(self) -> Backlog:
        """Return the number of blocks of scanned files, and of the current file, that are not in a window yet."""
        backlog = super().backlog()
        if length_hint(self._arriving.found) == 0 and self.scanner.is_idle():
            return backlog
        return backlog + self._arriving.weigh(self.scanner.waiting(), self._blocks_to_come)

    def _blocks_to_come(self, status: FileStatus) -> Backlog:
        if is_same(self.seen.get(key_of(status)), status):
            return Backlog()
        part = self.parts.get(key_of(status))
        if part is not None:
            status = attrs.evolve(status, length=max(0, status.length - ReadPart.of(part).end))
        return self.blocks_of(status)

    def get_file_info(self) -> FileInfo | None:
        """Return the next file that is new or has changed; None when the scanner has nothing now."""
        arriving = self._arriving
        while True:
            for status in arriving.found:
                if not is_same(self.seen.get(key_of(status)), status):
                    info = self._wanted(status)
                    if info is not None:
                        return info
            visit = self.scanner.take(WAIT_SECONDS)
            if visit is None:
                return None
            arriving.begin(visit)

    def get_file_status(self, path: str) -> FileStatus:
        """Return what the scan saw of the file that `get_file_info` returned last; of other files, what is there now."""
        last = self._arriving.last
        return last.status if last is not None and last.status.path == path else super().get_file_status(path)

    def planned(self, info: FileInfo, status: FileStatus) -> None:
        """Remember the file as it was split."""
        if self._arriving.weighed:
            self._arriving.taken(self._blocks_to_come(status))
        self._remember(status)
        if self._arriving.growth is not None and not self._arriving.growth.compression:
            self.parts[key_of(status)] = str(self._arriving.growth.part)
        if not status.is_directory:
            self.file_times = [self._newest_time(), status.modified_ns // 1000 or None]

    def tells_watermark(self) -> bool:
        """Return True if `event_time` is set."""
        return self.event_time is not None

    def watermark(self) -> int | None:
        """Return the newest modification time of the files whose blocks have all been planned, if `event_time` is set."""
        if self.event_time is None or not self.file_times:
            return None
        return self._newest_time() if self.unplanned is None else self.file_times[0]

    def _newest_time(self) -> int | None:
        return max((each for each in self.file_times if each is not None), default=None)

    def resume(self, blocks: FileBlocks) -> None:
        """Check that the file is still the one whose blocks have been planned so far; apply `on_modified` if not."""
        self._arriving.last = None
        path = blocks.path
        try:
            status = self.get_file_status(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            self.unplanned = None
            gone = PlannedFileGone(operator=self.context.name, path=path, planned=blocks.planned, blocks=blocks.count)
            gone.__cause__ = error
            self.set_aside(path, gone)
            return
        except OSError as error:
            raise translate(error, path, "splitting a file") from error
        status = self._as_remembered(status)
        if is_same(self.seen.get(key_of(status)), status):  # a change that was ignored is in there already
            return
        if blocks.record_end is not None:
            try:
                with explained(path, "splitting a file"):
                    self._looked_into(status)  # the rest of the part is as it was planned; the next scan finds what follows it
            except FileNotAppended as error:
                self.unplanned = None
                self._set_aside(status, error)
        elif self._wants_modified(status):
            self.unplanned = None
            root = next((root for root in self.input_paths() if path.startswith(f"{root.rstrip('/')}/")), None)
            self.split(FileInfo(root, path if root is None else name_below(root, path)), status)

    def _as_remembered(self, status: FileStatus) -> FileStatus:
        """Return a file with the target under which it is remembered, if links led to it."""
        if status.path in self.seen:
            return attrs.evolve(status, target=None)
        plain = local_path(status.path)
        return status if plain is None else attrs.evolve(status, target=os.path.realpath(plain))

    def _wanted(self, status: FileStatus) -> ScannedFileInfo | None:
        """Return the file if it still exists, and is new or to be split again; in append mode, if it has new records."""
        self._arriving.growth = None
        now = self._looked_again(status)
        if now is None:
            return None
        before = self.seen.get(key_of(now))
        if is_same(before, now):
            return None
        if self.scanner.modified == "append" and now.is_regular:
            return self._wanted_part(now)
        return self._arriving.take(now) if before is None or self._wants_modified(now) else None

    def _looked_again(self, status: FileStatus) -> FileStatus | None:
        """Return the present status of a file on a disk; None if it is gone since the scan, or is being written again.

        For files of object stores, the listing counts: a request for each would cost more than reading small files.
        """
        if status.inode is None or status.is_directory:
            return status
        try:
            now = super().get_file_status(status.path)
        except (FileNotFoundError, NotADirectoryError):
            self.context.count("files_gone_since_scan")
            return None
        except OSError:
            return status  # splitting it says what is wrong
        if self.scanner.min_age and stamp(now) != stamp(status):
            self.context.count("files_younger_than_min_age")
            return None
        return attrs.evolve(now, target=status.target)

    def _wanted_part(self, status: FileStatus) -> ScannedFileInfo | None:
        """Return a file that may be appended to, if it has records that are not in a window."""
        key = key_of(status)
        is_new = key not in self.seen
        try:
            growth = self._looked_into(status)
        except FileNotFoundError:
            self.context.count("files_gone_since_scan")
            return None
        except FileNotAppended as error:
            self._set_aside(status, error)
            return None
        except OSError as error:
            raise translate(error, status.path, "splitting a file") from error
        if growth.held_back:
            self.context.count("bytes_held_back", growth.held_back)
        if growth.begin == growth.part.end and not growth.compression and (status.length or not is_new):
            self.parts[key] = str(growth.part)
            self._remember(status)
            return None
        if not is_new:
            self.context.count("files_appended")
        self._arriving.growth = growth
        return self._arriving.take(status)

    def _looked_into(self, status: FileStatus) -> Growth:
        """Return the growth of a file behind its planned part. Raises FileNotAppended, FileNotFoundError, StorageError."""
        scanner, name, key = self.scanner, self.context.name, key_of(status)
        known = self.parts.get(key)
        if known is None and key in self.seen:
            why = "it is compressed, or was read before `modified` was append: which of its bytes were read is not known"
            raise FileNotAppended(operator=name, path=status.path, read=length_in(self.seen[key]), length=status.length, why=why)
        part = None if known is None else ReadPart.of(known)
        quote = None if scanner.record_quote is None else scanner.record_quote.encode()
        return look(status, part, scanner.record_end.encode(), quote, name)

    def _set_aside(self, status: FileStatus, error: Exception) -> None:
        self._remember(status)  # so that it is set aside once for each change
        self.set_aside(status.path, error)

    def part_of(self, status: FileStatus) -> dict[str, Any]:
        """Return, in append mode, the fields of the part with the new records."""
        growth, scanner = self._arriving.growth, self.scanner
        if growth is None or growth.compression:
            return {}
        ends = {"record_end": scanner.record_end, "record_quote": scanner.record_quote}
        return {"begin": growth.begin, "length": growth.part.end, **ends}

    def _wants_modified(self, status: FileStatus) -> bool:
        what = self.scanner.modified
        if what == "error":
            before, after = in_words(self.seen[key_of(status)]), in_words(stamp(status))
            raise FileModified(operator=self.context.name, path=status.path, before=before, after=after)
        if what == "ignore":
            self.context.count("modified_files_ignored")
            self._remember(status)  # so that each change is counted once
            return False
        self.context.count("files_read_again")
        self._arriving.warned += 1
        if self._arriving.warned <= MOST_WARNINGS:
            more = "; no more of these warnings follow" if self._arriving.warned == MOST_WARNINGS else ""
            self.context.warn(
                f"{status.path} has changed since it was read, and is read again, whole (scanner.modified=append "
                f"reads only what was appended){more}"
            )
        return True

    def _remember(self, status: FileStatus) -> None:
        self.seen[key_of(status)] = stamp(status)
