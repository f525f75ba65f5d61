"""The scanner: finds files, once or at intervals."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar, Literal, get_args

import attrs

from dagflow import OperatorContext
from dagflow.config import Millis, Seconds, comma_list, millis_of, not_negative, one_of, seconds_of
from dagflow.storage import absolute, file_system, is_local, translate
from operators.files.errors import InputMissing, InputNotFile
from operators.files.scan_thread import ScanThread
from operators.files.tree import Skipped, Visit, Walk
from operators.files.trigger import TriggerProperty, ends, running, starts
from operators.problems import all_problems, problems_of

Modified = Literal["reread", "append", "ignore", "error"]
OnUnreadable = Literal["fail", "skip"]
PATTERNS = ("file_pattern_regular_exp", "ignore_file_pattern_regular_exp")


def paths(given: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    r"""Return a list of paths. Commas in a string separate paths; those in the items of a list, and `\,`, are part of one.

    >>> paths("logs"), paths("a,b"), paths(["a", "b,c"]), paths(r"b\,c")
    (['logs'], ['a', 'b'], ['a', 'b,c'], ['b,c'])
    """
    if isinstance(given, str):
        return comma_list(given)
    return [os.fspath(given)] if isinstance(given, os.PathLike) else [os.fspath(p) for p in given]


def check_paths(instance: object, attribute: Any, value: list[str]) -> None:
    """Validate paths: strings that are not empty."""
    for path in value:
        if path == "":
            raise ValueError(f"{attribute.name} holds an empty path")


@attrs.define(slots=False)
class TimeBasedDirectoryScanner:
    r"""Finds the files of inputs in a thread of its own: once, or in a continuous run again after each interval.

    A scan follows one order (files of a folder by name, then its folders by name), enters each real folder once whatever
    links lead there, and opens no file. Which files are new or have changed is decided by the splitter, from its state.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.txt", "a.txt", "c.csv"):
    ...         open(os.path.join(folder, name), "w").close()
    ...     scanner = TimeBasedDirectoryScanner(files=folder, file_pattern_regular_exp=".*[.]txt")
    ...     [os.path.basename(status.path) for visit in scanner.scan_once() for status in visit.found]
    ['a.txt', 'b.txt']

    To accept files by a rule of one's own, override `accept`.

    Attributes:
        files: files or folders, as paths or URLs, as a list or as a text with commas between them (`\,` is a
            comma in a path); the splitter gives its own when there are none.
        recursive: whether folders below the inputs are entered.
        scan_interval_millis: the time from the end of one scan to the next, in milliseconds; continuous runs only.
        file_pattern_regular_exp: only files whose whole path matches are found.
        ignore_file_pattern_regular_exp: files whose whole path matches are not.
        modified: what becomes of a file that has changed since it was split: `reread` splits it again, whole, with a warning;
            `append` splits what has been appended, up to the last whole record, and ends the run if the part that was split
            before is not what it was; `ignore` leaves it; `error` ends the run.
        record_end: what ends a record of a file that is appended to.
        record_quote: a `record_end` between two of these is inside a record (CSV: `"`).
        min_age: files that were modified less than this many seconds ago are left for a later scan (a run with `--once` has
            only one: they are left for the next launch).
        wait: whether inputs that are not there are waited for; continuous runs only.
        on_unreadable: what becomes of folders below the inputs that may not be read: `fail` ends the run, `skip` counts them.
        hidden_files: whether files and folders below the inputs are read whose names begin with `.` or `_`. Spark and Hadoop
            skip them too: they are temporary files and metadata. Inputs themselves are read whatever they are called.
        trigger: `scanner.trigger = True`, or the call `scanner.trigger()`, asks for a scan at once; when one is under way, for
            another right after it. It reaches a running launch from any thread of the process: call it of the operator that
            `add_operator` returned (`files.scanner.trigger()`), or of `run.operator(name)`. Before a launch it changes nothing: a
            launch begins with a scan.
    """

    files: list[str] = attrs.field(factory=list, converter=paths, validator=check_paths)
    recursive: bool = True
    scan_interval_millis: Millis = attrs.field(default=5000, converter=millis_of, validator=not_negative)
    file_pattern_regular_exp: str | None = None
    ignore_file_pattern_regular_exp: str | None = None
    modified: Modified = attrs.field(default="reread", validator=one_of(get_args(Modified)))
    min_age: Seconds = attrs.field(default=0.0, converter=seconds_of, validator=not_negative)
    wait: bool = False
    on_unreadable: OnUnreadable = attrs.field(default="fail", validator=one_of(get_args(OnUnreadable)))
    hidden_files: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))
    record_end: str = attrs.field(default="\n", kw_only=True, validator=attrs.validators.min_len(1))
    record_quote: str | None = attrs.field(default=None, kw_only=True)

    _trigger: bool = attrs.field(default=False, kw_only=True, alias="trigger", validator=attrs.validators.instance_of(bool))

    trigger: ClassVar[TriggerProperty] = TriggerProperty()

    _token: str = attrs.field(factory=lambda: uuid.uuid4().hex, init=False, repr=False, eq=False)
    _context: OperatorContext = attrs.field(factory=OperatorContext, init=False, repr=False, eq=False)
    _inputs: list[str] = attrs.field(factory=list, init=False, repr=False, eq=False)
    _thread: ScanThread | None = attrs.field(default=None, init=False, repr=False, eq=False)
    _skipped: Skipped = attrs.field(factory=Skipped, init=False, repr=False, eq=False)

    def __reduce__(self) -> Any:
        """Copy and pickle properties only: a running thread never travels."""
        fields = {a.alias: getattr(self, a.name) for a in attrs.fields(type(self)) if a.init}
        return _remake, (type(self), fields, self._token)

    def check(self) -> None:
        """Raise ValueError for a property that cannot work."""
        with all_problems() as problems:
            for name in PATTERNS:
                problems.extend(problems_of(partial(_compiled, name, getattr(self, name))))

    def setup(self, context: OperatorContext, files: Iterable[str] = ()) -> None:
        """Check that the inputs are there (its own, or `files` when it has none), and start the first scan.

        Raises InputMissing, InputNotFile.
        """
        self._context = context
        self._skipped = Skipped()
        self._inputs = inputs(self.files or files)
        self.look(context, files)
        self._thread = ScanThread(self._scan, context)
        self._thread.start()
        starts(self._token, self)

    def teardown(self) -> None:
        """Stop the thread."""
        ends(self._token, self)
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def scan_now(self) -> None:
        """Ask for a scan, as `trigger()` does: also the running copies of a scanner that a launch was given."""
        if self._thread is not None:
            self._thread.request()
            return
        for copy in running(self._token):
            copy.scan_now()

    def accept(self, path: str) -> bool:
        """Return True if a file is wanted, by its path. Override for rules of your own; called in the scanner's thread."""
        return True

    def scan_once(self) -> Iterator[Visit]:
        """Scan once, lazily, in the thread that iterates. Raise StorageError for paths that cannot be scanned."""
        return self._walk().visits(self._inputs or inputs(self.files))

    def take(self, seconds: float = 0.0) -> Visit | None:
        """Return what was found next, None when there is nothing now. Waits for a running scan, `seconds` at most.

        Starts the next scan when it is time. Raises what ended the scanner's thread.
        """
        if self._thread is None:
            return None
        if self._context.continuous:
            self._thread.request_after(self.scan_interval_millis / 1000)
        return self._thread.take(seconds)

    def waiting(self) -> tuple[Visit, ...]:
        """Return what has been found and not been taken."""
        return () if self._thread is None else self._thread.waiting()

    def is_idle(self) -> bool:
        """Return True if nothing has been found that was not taken, and no scan is under way or asked for."""
        return self._thread is None or self._thread.is_idle()

    def passed_over(self) -> str:
        """Return what scans have passed over, in words; empty for nothing."""
        return self._skipped.in_words()

    def newly_skipped(self) -> dict[str, int]:
        """Return the number of paths scans passed over since the last call, by reason."""
        return self._skipped.counts()

    def _scan(self, at: Callable[[str], None]) -> Iterator[Visit]:
        walk = self._walk()
        visits = walk.visits(self._inputs)
        while True:
            try:
                visit = next(visits, None)
            finally:
                at(walk.at)
            if visit is None:
                return
            yield visit

    def _walk(self) -> Walk:
        now = self._context.clock.now()
        return Walk(
            recursive=self.recursive,
            accept=self._acceptance(),
            newest_ns=round((now - self.min_age) * 1e9) if self.min_age else None,
            wait=self.wait and self._context.continuous,
            skip_unreadable=self.on_unreadable == "skip",
            hidden=self.hidden_files,
            skipped=self._skipped,
        )

    def _acceptance(self) -> Callable[[str], bool]:
        wanted, unwanted = self._patterns()
        skipped = self._skipped
        own = self.accept if type(self).accept is not TimeBasedDirectoryScanner.accept else None

        def accept(path: str) -> bool:
            if wanted is not None and wanted.fullmatch(path) is None:
                why = f"do not match file_pattern_regular_exp={wanted.pattern!r}, with their whole paths"
            elif unwanted is not None and unwanted.fullmatch(path) is not None:
                why = f"match ignore_file_pattern_regular_exp={unwanted.pattern!r}"
            elif own is not None and not own(path):
                why = "are refused by accept()"
            else:
                return True
            skipped.refused(why, path)
            return False

        return accept

    def _patterns(self) -> tuple[re.Pattern[str] | None, re.Pattern[str] | None]:
        wanted, unwanted = (_compiled(name, getattr(self, name)) for name in PATTERNS)
        return wanted, unwanted

    def look(self, context: OperatorContext, files: Iterable[str] = ()) -> None:
        """Check that the inputs are there, unless it waits for them; change nothing. Raise InputMissing, InputNotFile."""
        waits = self.wait and context.continuous
        given = inputs(self.files or files)
        for path in given:
            try:
                status = file_system(path).status(path)
            except OSError as error:
                if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
                    raise translate(error, path, "looking for the input") from error
                if waits:
                    continue
                known = translate(error, path, "looking for the input")
                raise InputMissing(
                    operator=context.name,
                    path=path,
                    parent=getattr(known, "parent", None),
                    nearest=getattr(known, "nearest", None),
                    waits=self.wait,
                    with_commas=_with_commas(given, path),
                ) from error
            if not status.is_directory and not status.is_regular:
                raise InputNotFile(operator=context.name, path=path)


def inputs(files: Iterable[str]) -> list[str]:
    """Return inputs as a scan needs them: absolute, since tasks may run in another folder, each once, no trailing slashes.

    >>> inputs(["/logs/", "/logs", "s3://bucket/logs/"])
    ['/logs', 's3://bucket/logs']
    """
    whole = map(absolute, files)
    return list(dict.fromkeys(path if path.endswith("://") else path.rstrip("/") or "/" for path in whole))


def _with_commas(given: list[str], missing: str) -> str | None:
    """Return an existing path that equals the missing one and its neighbours, joined by commas."""
    at = given.index(missing)
    for first in range(at, -1, -1):
        for last in range(max(at, first + 1), len(given)):
            names = [given[first], *(os.path.relpath(path) if is_local(path) else path for path in given[first + 1 : last + 1])]
            whole = ",".join(names)
            if is_local(whole) and file_system(whole).exists(whole):
                return whole
    return None


def _compiled(name: str, pattern: str | None) -> re.Pattern[str] | None:
    if pattern is None:
        return None
    try:
        return re.compile(pattern)
    except re.error as error:
        # the column counts in the pattern's line, the caret stands under it
        line = pattern.splitlines()[(error.lineno or 1) - 1] if pattern else ""
        caret = f"\n    {line}\n    {' ' * ((error.colno or 1) - 1)}^"
        raise ValueError(
            f"{name} is not a regular expression: {error.msg} at position {error.pos or 0}{caret}\n"
            "  help: it is matched against the whole path; for all files that end in .txt: .*[.]txt"
        ) from error


def _remake(cls: type[TimeBasedDirectoryScanner], fields: dict[str, Any], token: str) -> TimeBasedDirectoryScanner:
    scanner = cls(**fields)
    scanner._token = token
    return scanner
