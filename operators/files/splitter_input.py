"""The splitter that finds its files itself."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator
from operator import length_hint
from typing import ClassVar, Literal, get_args

import attrs

from dagflow import FileInfo, InputOperator, MapState, OperatorContext, State
from dagflow.errors.choices import one_of
from dagflow.scaling import Backlog
from dagflow.storage import FileStatus, translate
from operators.files.blocks import FileBlocks
from operators.files.errors import FileGone, FileModified
from operators.files.scanner import TimeBasedDirectoryScanner, check_paths, inputs, paths
from operators.files.splitter_base import AbstractFileSplitter
from operators.files.tree import Visit, name_below
from operators.problems import all_problems, told_in

EventTime = Literal["modified"]
FOLDER = "folder"  # the stamp of folders: they are reported once, whatever happens in them
WAIT_SECONDS = 0.1  # how long one call of emit_tuples waits for a scan that is under way


@attrs.frozen
class ScannedFileInfo(FileInfo):
    """A file that a scan found, with what the scan saw of it."""

    status: FileStatus


class Arriving:
    """The visit of the scanner from which files are being taken, and the file that was taken last.

    `weighed`: what visits hold that have not been taken, as far as anybody has asked; each is looked through once.
    """

    def __init__(self) -> None:
        self.visit = Visit(None, [])
        self.found: Iterator[FileStatus] = iter([])
        self.last: ScannedFileInfo | None = None
        self.weighed: list[tuple[Visit, Backlog]] = []

    @property
    def root(self) -> str | None:
        """The input below which the files lie."""
        return self.visit.root

    def begin(self, visit: Visit) -> None:
        """Goes on with another visit."""
        self.visit, self.found = visit, iter(visit.found)

    def weigh(self, waiting: Iterable[Visit], blocks_of: Callable[[FileStatus], Backlog]) -> Backlog:
        """What is left of the visit at hand, and of those that wait."""
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
        """A file of the visit at hand has been taken that has so much."""
        self.weighed = [(visit, left - backlog if visit is self.visit else left) for visit, left in self.weighed]

    def take(self, status: FileStatus) -> ScannedFileInfo:
        """Makes `status` the file that was taken last."""
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
    interval. What was split is remembered over windows and launches, by path, modification time and length; files that vanish
    stay remembered. A path that several inputs lead to is split once.

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

    def check(self) -> None:
        """Raises ValueError for missing files, bad regular expressions, and sizes that leave no blocks."""
        with all_problems() as problems:
            with told_in(problems):
                super().check()
            if not self.files and not self.scanner.files:
                problems.append("files is empty: name at least one file or folder")
            if self.files and self.scanner.files and inputs(self.files) != inputs(self.scanner.files):
                problems.append(f"files is {self.files} and scanner.files is {self.scanner.files}: give them in one place")
            with told_in(problems, "scanner."):
                self.scanner.check()

    def input_paths(self) -> list[str]:
        """The files and folders that the scanner looks at."""
        return inputs(self.scanner.files or self.files)

    def check_inputs(self, context: OperatorContext) -> None:
        """Raises InputMissing, InputNotFile."""
        self.scanner.look(context, self.files)

    def setup(self, context: OperatorContext) -> None:
        """Starts the scanner. Raises InputMissing, InputNotFile."""
        super().setup(context)
        self._arriving = Arriving()
        self.scanner.setup(context, self.files)

    def teardown(self) -> None:
        """Stops the scanner."""
        self.scanner.teardown()

    def emit_tuples(self) -> None:
        """Emits what is left of earlier windows, then what the scanner has found."""
        super().emit_tuples()
        for reason, n in self.scanner.newly_skipped().items():
            self.context.count(reason, n)

    def is_exhausted(self) -> bool:
        """Whether all that the scan found has been split. Never in a continuous run."""
        if self.context.continuous or not super().is_exhausted():
            return False
        return length_hint(self._arriving.found) == 0 and self.scanner.is_idle()

    def backlog(self) -> Backlog:
        """The blocks of what a scan has found, and of the file at hand, that no window has yet."""
        found = super().backlog()
        if length_hint(self._arriving.found) == 0 and self.scanner.is_idle():
            return found
        return found + self._arriving.weigh(self.scanner.waiting(), self._blocks_to_come)

    def _blocks_to_come(self, status: FileStatus) -> Backlog:
        return Backlog() if self.seen.get(status.path) == stamp(status) else self.blocks_of(status)

    def get_file_info(self) -> FileInfo | None:
        """The next file that is new or has changed; None when the scanner has nothing now."""
        arriving, seen = self._arriving, self.seen
        while True:
            for status in arriving.found:
                before = seen.get(status.path)
                if before is None or (before != stamp(status) and self._wants_modified(status, before)):
                    return arriving.take(status)
            visit = self.scanner.take(WAIT_SECONDS)
            if visit is None:
                return None
            arriving.begin(visit)

    def get_file_status(self, path: str) -> FileStatus:
        """What the scan saw of the file that `get_file_info` returned last; of others, what is there now."""
        last = self._arriving.last
        return last.status if last is not None and last.status.path == path else super().get_file_status(path)

    def planned(self, info: FileInfo, status: FileStatus) -> None:
        """Remembers the file as it was split."""
        if self._arriving.weighed:
            self._arriving.taken(self._blocks_to_come(status))
        self._remember(status)
        if not status.is_directory:
            self.file_times = [self._newest_time(), status.modified_ns // 1000 or None]

    def tells_watermark(self) -> bool:
        """Where `event_time` wants that."""
        return self.event_time is not None

    def watermark(self) -> int | None:
        """The newest modification time of the files whose blocks have all been planned, where `event_time` wants that."""
        if self.event_time is None or not self.file_times:
            return None
        return self._newest_time() if self.unplanned is None else self.file_times[0]

    def _newest_time(self) -> int | None:
        return max((each for each in self.file_times if each is not None), default=None)

    def resume(self, blocks: FileBlocks) -> None:
        """Looks whether the file is still the one whose blocks have been planned so far; does what `on_modified` says if not."""
        self._arriving.last = None
        path = blocks.path
        try:
            status = self.get_file_status(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            self.unplanned = None
            gone = FileGone(operator=self.context.name, path=path, planned=blocks.planned, blocks=blocks.count)
            gone.__cause__ = error
            self.set_aside(path, gone)
            return
        except OSError as error:
            raise translate(error, path, "splitting a file") from error
        before = self.seen[path]  # a change that was ignored is in there already
        if before != stamp(status) and self._wants_modified(status, before):
            self.unplanned = None
            self.split(FileInfo(None, path), status)

    def _wants_modified(self, status: FileStatus, before: str) -> bool:
        what = self.scanner.on_modified
        if what == "fail":
            raise FileModified(
                operator=self.context.name, path=status.path, before=_in_words(before), after=_in_words(stamp(status))
            )
        self.context.count("files_read_again" if what == "reread" else "modified_files_ignored")
        if what == "ignore":
            self._remember(status)  # so that each change is counted once
        return what == "reread"

    def _remember(self, status: FileStatus) -> None:
        self.seen[status.path] = stamp(status)


def stamp(status: FileStatus) -> str:
    """By what a file is known again: modification time and length. One short text, since a run keeps one for every file."""
    return FOLDER if status.is_directory else f"{status.modified_ns}:{status.length}"


def _in_words(text: str) -> str:
    if text == FOLDER:
        return "a folder"
    modified_ns, _, length = text.partition(":")
    moment = datetime.datetime.fromtimestamp(int(modified_ns) // 10**9, tz=datetime.UTC)
    return f"{int(length):,} bytes, modified {moment:%Y-%m-%d %H:%M:%S}.{int(modified_ns) % 10**9:09d} UTC"
