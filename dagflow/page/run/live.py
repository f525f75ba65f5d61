"""The events of the newest launch, folded into figures as they are written."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, ClassVar

import attrs

from dagflow.errors import DagflowError
from dagflow.runtime.events import read_event
from dagflow.runtime.run_folder.layout import EVENTS
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.storage import Store, base_name, inside, local_path, open_store
from dagflow.storage.errors import PathOutside
from dagflow.storage.records.bounded import max_bytes, open_regular

MAX_BYTES = 256 << 20
"""Of the events of a launch, at most so much is read: the newest files."""
LISTED_EVERY = 10.0  # seconds between two listings of events in an object store
MAX_TEXTS = 100
MAX_POINTS = 400
DETAILED = 48
"""The tasks of this many of the newest windows are kept one by one, and of half as many of the slowest."""


@attrs.define
class WindowFigures:
    """The figures of a window, as its events state them. Times are seconds since the epoch."""

    window: int
    planned: float | None = None
    started: float | None = None
    decided: float | None = None
    done: float | None = None
    items: int = 0
    bytes: int = 0
    tasks: int = 0
    files: int = 0
    written: int = 0
    records: int = 0
    read: float = 0.0
    compute: float = 0.0
    write: float = 0.0
    wait: float = 0.0
    retries: int = 0
    steals: int = 0
    launch: str = ""

    @property
    def seconds(self) -> float:
        """The time from its plan to its decision."""
        return max(0.0, (self.decided or 0.0) - (self.planned or self.started or self.decided or 0.0))


@attrs.define
class LaunchEvents:
    """The events of one launch, folded.

    Attributes:
        started, ended: the first event and the last one, as they are written; None until they are.
        last: the time of the newest event.
        windows: the figures of each window; `tasks` of some of them, one row for each task: name, attempt, start, end, records,
            seconds of reading, computing, writing and waiting.
        progress: the newest `operator_progress`; `curve`: its backlogs over time.
        seconds: of each operator, over all tasks that have ended.
        readers: each change of a number of readers.
        rejects: by operator, the window that a limit of rejected records has ended, how many they were, and samples.
        decided: the figures of operators in decided windows, summed; `undecided`: in the tasks of the other windows.
        steals: the newest steals; `stolen`: how many there were in all, `stolen_bytes` their size.
    """

    launch: str
    started: dict[str, Any] | None = None
    ended: dict[str, Any] | None = None
    last: float = 0.0
    windows: dict[int, WindowFigures] = attrs.field(factory=dict)
    tasks: dict[int, list[list[Any]]] = attrs.field(factory=dict)
    progress: dict[str, Any] | None = None
    curve: list[list[Any]] = attrs.field(factory=list)
    seconds: dict[str, float] = attrs.field(factory=dict)
    readers: deque[list[Any]] = attrs.field(factory=lambda: deque(maxlen=2 * MAX_POINTS))
    steals: deque[list[Any]] = attrs.field(factory=lambda: deque(maxlen=MAX_TEXTS))
    stolen: int = 0
    stolen_bytes: int = 0
    warnings: deque[list[Any]] = attrs.field(factory=lambda: deque(maxlen=MAX_TEXTS))
    retries: deque[list[Any]] = attrs.field(factory=lambda: deque(maxlen=MAX_TEXTS))
    expectations: dict[tuple[str, str], dict[str, Any]] = attrs.field(factory=dict)
    rejects: dict[str, tuple[int, int, list[str]]] = attrs.field(factory=dict)
    decided: dict[str, dict[str, float]] = attrs.field(factory=dict)
    undecided: dict[int, dict[str, dict[str, float]]] = attrs.field(factory=dict)
    fractions: dict[int, float] = attrs.field(factory=dict)
    _every: int = 1
    _seen: int = 0

    def add(self, event: dict[str, Any]) -> None:
        """Add an event. Skip what this version cannot interpret."""
        try:
            self.last = max(self.last, event["at"])
            if (handler := self._HANDLERS.get(event["event"])) is not None:
                handler(self, event)
        except (KeyError, TypeError, ValueError, AttributeError):
            return

    def _window(self, event: dict[str, Any]) -> WindowFigures:
        number = int(event["window"])
        if number not in self.windows:
            self.windows[number] = WindowFigures(number, launch=self.launch)
        return self.windows[number]

    def _run_started(self, event: dict[str, Any]) -> None:
        self.started = event

    def _run_ended(self, event: dict[str, Any]) -> None:
        self.ended = event

    def _planned(self, event: dict[str, Any]) -> None:
        window = self._window(event)
        window.planned = event["at"]
        window.items, window.bytes, window.tasks = event["items"], event["bytes"], event["tasks"]

    def _started(self, event: dict[str, Any]) -> None:
        window = self._window(event)
        window.started = event["at"]
        window.read = window.compute = window.write = window.wait = 0.0  # of the attempt that counts
        self.tasks[window.window] = []
        self.undecided.pop(window.window, None)
        if len(self.tasks) > 4 * DETAILED:
            self._forget()

    def _forget(self) -> None:
        """Keep the tasks of the newest windows, and of the slowest ones."""
        kept = self.detailed()
        self.tasks = {number: tasks for number, tasks in self.tasks.items() if number in kept}

    def detailed(self) -> set[int]:
        """Return the windows whose tasks are kept one by one."""
        slowest = sorted(self.tasks, key=lambda number: -self.windows[number].seconds)[: DETAILED // 2]
        return {*sorted(self.tasks)[-DETAILED:], *slowest}

    def _task(self, event: dict[str, Any]) -> None:
        window = self._window(event)
        times = [float(event.get(part) or 0.0) for part in ("read", "compute", "write", "wait")]
        window.read += times[0]
        window.compute += times[1]
        window.write += times[2]
        window.wait += times[3]
        row = [event["task"], event["attempt"], event["started"], event["ended"], event["records"], *times]
        self.tasks.setdefault(window.window, []).append(row)
        operators = event.get("operators") or {}
        for name, figures in operators.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + float(figures.get("seconds") or 0.0)
        _add(self.undecided.setdefault(window.window, {}), operators)

    def _decided(self, event: dict[str, Any]) -> None:
        window = self._window(event)
        window.decided = event["at"]
        window.files, window.written, window.records = event["files"], event["bytes"], event["records"]
        self.fractions.pop(window.window, None)
        ended = self.undecided.pop(window.window, {})
        _add(self.decided, event.get("operators") or ended)

    def _done(self, event: dict[str, Any]) -> None:
        self._window(event).done = event["at"]

    def _readers(self, event: dict[str, Any]) -> None:
        row = [event["at"], event["window"], event["operator"], event["before"], event["readers"]]
        self.readers.append([*row, event["backlog"], event["backlog_bytes"]])

    def _fraction(self, event: dict[str, Any]) -> None:
        self.fractions[int(event["window"])] = float(event["fraction_consumed"])

    def _stolen(self, event: dict[str, Any]) -> None:
        self._window(event).steals += 1
        self.stolen += 1
        self.stolen_bytes += event["bytes"]
        self.steals.append([event["at"], event["window"], event["from"], event["to"], event["parts"], event["bytes"]])

    def _retried(self, event: dict[str, Any]) -> None:
        self._window(event).retries += 1
        what = {"task_retried": f"task {event.get('task')}", "step_retried": event.get("doing")}.get(event["event"], "the window")
        self.retries.append([event["at"], event["window"], what, event.get("reason") or "an earlier attempt did not report"])

    def _warned(self, event: dict[str, Any]) -> None:
        self.warnings.append([event["at"], event["text"]])

    def _expectation(self, event: dict[str, Any]) -> None:
        key = (str(event["operator"]), str(event["name"]))
        total = self.expectations.setdefault(
            key, {"operator": key[0], "name": key[1], "records": 0, "rejected": 0, "breaches": 0}
        )
        total["records"] += event["records"]
        total["rejected"] += event["rejected"]
        total["breaches"] += event["status"] != "ok"
        total.update(max_share=event.get("max_share"), status=event["status"], window=event["window"])
        if event["status"] == "failed":
            self.rejects[key[0]] = (event["window"], event["rejected"], event.get("samples") or [])

    def _progress(self, event: dict[str, Any]) -> None:
        self.progress = event
        self._seen += 1
        if self._seen % self._every == 0:
            self.curve.append([event["at"], event.get("backlog"), event.get("backlog_bytes")])
            if len(self.curve) > MAX_POINTS:
                self.curve = self.curve[::2]
                self._every *= 2

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the figures of operators in this launch, windows that are not decided included.

        Those that tasks and windows have ended with count where the newest `operator_progress` is older, or lacks short tasks.
        """
        result = {name: dict(own) for name, own in self.decided.items()}
        for operators in self.undecided.values():
            _add(result, operators)
        for name, own in ((self.progress or {}).get("operators") or {}).items():
            ended = result.get(name, {})
            result[name] = {**own, **{key: max(value, own.get(key, 0)) for key, value in ended.items()}}
        return result

    def undecided_rejects(self) -> dict[str, int]:
        """Return the rejected records of windows that are not decided, by operator."""
        rejects = {}
        for name, own in self.figures().items():
            if (errors := int(own.get("errors", 0) - self.decided.get(name, {}).get("errors", 0))) > 0:
                rejects[name] = errors
        return rejects

    _HANDLERS: ClassVar[dict[str, Callable[[LaunchEvents, dict[str, Any]], None]]] = {
        "run_started": _run_started,
        "run_ended": _run_ended,
        "window_planned": _planned,
        "window_started": _started,
        "window_progress": _fraction,
        "task_ended": _task,
        "window_decided": _decided,
        "window_done": _done,
        "readers_changed": _readers,
        "stolen": _stolen,
        "task_retried": _retried,
        "window_retried": _retried,
        "step_retried": _retried,
        "warned": _warned,
        "expectation": _expectation,
        "operator_progress": _progress,
    }


class EventFiles:
    """The event files of a run folder. `update` reads what has been added since the last call.

    Those of an object store never change: each is copied to a temporary folder once it is asked for.
    """

    def __init__(self, run_folder: str) -> None:
        top = local_path(run_folder)
        self._copies = None
        if top is None:
            self._copies = _Copies(open_store(run_folder, durable=False))
            top = self._copies.folder
        self._top = top
        self._read: dict[tuple[int, int], int] = {}  # by the number of the file, which keeps it when it is put aside
        self._summaries: dict[str, dict[str, Any]] = {}
        self.newest: LaunchEvents | None = None
        self.skipped_bytes = 0
        self.refused: dict[str, str] = {}
        """Files that no launch has written, each with the reason. They are not read."""

    def update(self) -> None:
        """Read what is new. A line that is only half written waits for the next call."""
        launches = self._launches()
        if not launches:
            return
        name = max(launches)
        if self.newest is None or self.newest.launch != name:
            self.newest, self._read = LaunchEvents(name), {}
            self.skipped_bytes = self._skipped(launches[name])
        skip = self.skipped_bytes
        for file_name in launches[name]:
            skip = self._add(file_name, skip)

    def earlier(self) -> Iterator[dict[str, Any]]:
        """Yield the first and the last event of each earlier launch, newest first, as one object each."""
        launches = self._launches()
        for name in sorted(launches, reverse=True)[1:]:
            if name not in self._summaries:
                first, last = self._first(launches[name][0]), self._last(launches[name][-1])
                self._summaries[name] = {"launch": name, "started": first, "ended": last}
            yield self._summaries[name]

    def events(self, launch: str) -> Iterator[dict[str, Any]]:
        """Yield the events of a launch that can be read, without the oldest ones of very many."""
        names = self._launches().get(launch, [])
        skip = self._skipped(names)
        for name in names:
            with self._opened(name) as (file, size):
                file.seek(begin := min(skip, size))
                skip -= begin
                lines = file.read(size - begin).splitlines()
            yield from (event for line in lines if (event := read_event(line)) is not None)

    def _skipped(self, names: Sequence[str]) -> int:
        """Return how many bytes to skip of the files of a launch."""
        total = 0
        for name in names:
            with self._opened(name) as (_, size):
                total += size
        return max(0, total - MAX_BYTES)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[BinaryIO, int]]:
        """Open a file of events, and return it with its size. One that is gone, or that no launch has written, is empty."""
        record = f"{EVENTS.folder}/{name}"
        try:
            if self._copies is not None:
                self._copies.make(name)
            descriptor, status = open_regular(inside(self._top, record))
        except (OSError, DagflowError) as error:
            if not isinstance(error, FileNotFoundError):  # put aside or removed just now
                self.refused[name] = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            yield io.BytesIO(), 0
            return
        with os.fdopen(descriptor, "rb") as file:
            if status.st_size > (limit := max_bytes(record)):
                self.refused[name] = f"its {status.st_size:,} bytes are more than the {limit:,} that it can have"
                yield io.BytesIO(), 0
            else:
                yield file, status.st_size

    def _first(self, name: str) -> dict[str, Any] | None:
        with self._opened(name) as (file, _):
            return read_event(file.readline())

    def _last(self, name: str) -> dict[str, Any] | None:
        """Return the event that ended a launch; None if the launch did not write one."""
        with self._opened(name) as (file, size):
            file.seek(max(0, size - 65536))
            lines = file.read().splitlines()
        events = [event for line in lines[-5:] if (event := read_event(line)) is not None]
        return next((event for event in reversed(events) if event.get("event") == "run_ended"), None)

    def _launches(self) -> dict[str, list[str]]:
        """Return the names of the files of each launch, oldest first: those that were put aside have numbers."""
        names: list[str] = []
        if self._copies is not None:
            names = self._copies.names()
        else:
            with suppress(OSError, PathOutside):  # there are none yet, or the folder is a link to elsewhere
                names = os.listdir(inside(self._top, EVENTS.folder))
        launches: dict[str, list[str]] = {}
        for name in sorted(names, key=lambda name: (name.count(".") < 2, name)):
            if EVENTS.match(f"{EVENTS.folder}/{name}"):
                launches.setdefault(name.partition(".")[0], []).append(name)
        return launches

    def _add(self, name: str, skip: int) -> int:
        """Add the new lines of a file, behind its first `skip` bytes; return how much there is to skip in the next one."""
        assert self.newest is not None
        with self._opened(name) as (file, size):
            if size:
                status = os.fstat(file.fileno())
                key = (status.st_dev, status.st_ino)
                begin = self._read.get(key, min(skip, size))
                file.seek(begin)
                data = file.read(max(0, size - begin))
                whole = data.rfind(b"\n") + 1
                self._read[key] = begin + whole
                for line in data[:whole].splitlines():
                    if (event := read_event(line)) is not None:
                        self.newest.add(event)
            return max(0, skip - size)


class _Copies:
    """Copies of the event files of a run folder in an object store, in a temporary folder."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.folder = tempfile.mkdtemp(prefix="dagflow-events-")
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        os.mkdir(os.path.join(self.folder, EVENTS.folder))
        self._names: list[str] = []
        self._listed = float("-inf")

    def names(self) -> list[str]:
        """Return the names of the files, as they were some seconds ago: a page that is open asks each second."""
        if time.monotonic() - self._listed >= LISTED_EVERY:
            self._names = [base_name(name) for name in self._store.names(f"{EVENTS.folder}/")]
            self._listed = time.monotonic()
        return self._names

    def make(self, name: str) -> None:
        """Copy a file, if there is no copy of it. One that is gone is left out."""
        path = os.path.join(self.folder, EVENTS.folder, name)
        if os.path.exists(path):
            return
        data = self._store.read(f"{EVENTS.folder}/{name}")
        if data is not None:
            with open(path, "wb") as file:
                file.write(data)


def _add(total: dict[str, dict[str, float]], operators: dict[str, dict[str, float]]) -> None:
    for name, figures in operators.items():
        own = total.setdefault(name, {})
        own.update({key: own.get(key, 0) + value for key, value in figures.items()})


def as_figures(own: dict[str, Any]) -> OperatorFigures:
    """Return the figures of an operator that an event holds."""
    counters = {"bytes": int(own["bytes"])} if "bytes" in own else {}
    records_in, records_out, errors = (int(own.get(name, 0)) for name in ("records_in", "records_out", "errors"))
    seconds = float(own.get("seconds", 0.0))
    return OperatorFigures(records_in, records_out, errors=errors, counters=counters, seconds=seconds)
