"""All that the page of a run shows, as one plain object: bounded in size, and without secrets."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, islice
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.errors.codes import classes_by_code
from dagflow.errors.shown import without_secrets
from dagflow.ledger import Ledger
from dagflow.ledger.events import LedgerEntry
from dagflow.ledger.history import history
from dagflow.lineage.trace import ApplicationLocator
from dagflow.page.diagram.picture import group_title, picture_of
from dagflow.page.run.committed import CommittedWindows
from dagflow.page.run.findings import findings, slot_use
from dagflow.page.run.inputs import TaskInputs, items_of_failure
from dagflow.page.run.live import EventFiles
from dagflow.page.run.place import RunPlace, find_run
from dagflow.page.run.resume import resume_command
from dagflow.page.run.rows import sample_rows
from dagflow.planning.view import PlanView
from dagflow.runtime.events import ExpectationChecked, StepRetried, TaskRetried, WindowRetried
from dagflow.runtime.run_folder.reports import OperatorFigures
from dagflow.runtime.run_folder.window_log import WindowLog, WindowPlan
from dagflow.runtime.run_report import ExpectationFigures
from dagflow.runtime.run_view import RunView, WindowView
from dagflow.storage import explained, lock_holder, may_follow, open_store

VERSION = 1
MAX_WINDOWS = 20_000
MAX_LAUNCHES = 50
MAX_ENTRIES = 60
MAX_FILES = 200
MAX_TASKS = 4_000
COLUMNS = ("planned", "started", "decided", "done")
COUNTS = ("items", "bytes", "tasks", "files", "written", "records", "retries", "steals")
SECONDS = ("read", "compute", "write", "wait")


class RunReader:
    """Reads a run repeatedly while it is running. Each call of `data` reads only what is new.

    `place`: an output folder, a path in it, or a run folder; `now`: the clock.
    """

    def __init__(self, place: str, now: Callable[[], float] = time.time) -> None:
        self.place = place
        self._now = now
        self._place: RunPlace | None = None
        self._events: EventFiles | None = None
        self._committed: CommittedWindows | None = None
        self._inputs: TaskInputs | None = None
        self._graph: tuple[PlanView, dict[str, Any]] | None = None

    def data(self, *, rows: bool = True, locator: ApplicationLocator | None = None) -> dict[str, Any]:
        """Return the run as it is now.

        `rows`: with a sample of output rows and their origins; `locator`: as `sample_rows` takes it.
        Raises NoRun where there is none, StorageError.
        """
        if self._place is None or self._place.run_folder is None:
            self._open(find_run(self.place))
        assert self._place is not None
        if self._events is not None:
            self._events.update()
        if self._committed is not None:
            self._committed.update()
        live = None if self._events is None else self._events.newest
        exchanges = {} if self._committed is None else self._committed.exchanges
        result = {
            "v": VERSION,
            "at": self._now(),
            "dagflow": _version(),
            "output": self._place.output,
            "run": self._run(live),
            "launches": list(self._launches(live)),
            "graph": self._drawn(),
            "operators": self._operators(live),
            "exchanges": {port: {**attrs.asdict(own), "hottest": own.hot()} for port, own in exchanges.items()},
            "windows": self._windows(live),
            "tasks": self._tasks(live),
            "live": self._live(live),
            "rejects": self._rejects(live),
            **self._settings(),
            "ledgers": [_ledger(dataset) for dataset in self._datasets()],
            "problems": list(self._problems()),
        }
        result["run"]["slot_use"] = slot_use(result["windows"], result["run"]["slots"])
        result["findings"] = findings(result)
        if rows:
            result["rows"] = list(sample_rows(self._datasets(), locator))
        plain: dict[str, Any] = _plain(result)
        return plain

    @property
    def plan(self) -> WindowPlan | None:
        """The newest plan. Call `data` first."""
        return None if self._committed is None else self._committed.plan

    def rows(self) -> list[dict[str, Any]]:
        """Return a sample of the output rows, with their origins. Call `data` first."""
        rows: list[dict[str, Any]] = _plain(list(sample_rows(self._datasets())))
        return rows

    def _open(self, place: RunPlace) -> None:
        self._place = place
        if place.run_folder is not None:
            self._events = EventFiles(place.run_folder)
            log = WindowLog(open_store(place.run_folder, durable=False))
            self._committed, self._inputs = CommittedWindows(log), TaskInputs(log)

    def _datasets(self) -> list[str]:
        """Return the outputs of the run. If they were moved, return at least the one that was asked for."""
        assert self._place is not None
        plan = None if self._committed is None else self._committed.plan
        outputs = () if plan is None else [each for each in plan.outputs if may_follow(self._place.output, each)]
        return list(dict.fromkeys([*self._place.datasets, *outputs]))

    def _run(self, live: RunView | None) -> dict[str, Any]:
        committed, place = self._committed, self._place
        assert place is not None
        started, ended = _ends(live)
        launched = None if committed is None else committed.launched
        windows = {} if committed is None else committed.windows
        last = (
            ended.get("at")
            or (live.last if live is not None else None)
            or max((w.decided or 0 for w in windows.values()), default=None)
        )
        return {
            "application": started.get("application") or (launched.name if launched is not None else ""),
            "status": self._status(live),
            "runner": started.get("runner"),
            "slots": started.get("slots"),
            "ui": _web_address(started.get("ui")),
            "launch": None if live is None else live.launch,
            "run_folder": place.run_folder,
            "outputs": self._datasets(),
            "sinks": self._sinks(started.get("sinks") or {}),
            "started": started.get("at"),
            "last": last,
            "seconds": ended.get("seconds"),
            "first_window": started.get("first_window"),
            "decided": len(windows),
            "planned": 0 if committed is None else committed.planned,
            "error": self._error(ended),
            "resume": None if launched is None else resume_command(launched),
        }

    def _sinks(self, destinations: dict[str, str]) -> list[dict[str, Any]]:
        """Return the sinks that do not write files, with the rows that they have got in committed windows."""
        figures = {} if self._committed is None else self._committed.operators
        return [
            {"operator": name, "destination": text, "rows": own.records_in - own.errors}
            for name, text in destinations.items()
            for own in (figures.get(name, OperatorFigures()),)
        ]

    def _error(self, ended: dict[str, Any]) -> dict[str, Any] | None:
        """Return the error that ended the newest launch, with its remedy and the work items of the window that failed."""
        if not ended.get("error"):
            return None
        error: dict[str, Any] = {name: ended.get(key) for name, key in _ERROR.items()}
        cls = None if "help:" in error["text"] else classes_by_code().get(error["code"])
        error["remedy"] = "" if cls is None else cls.remedy_at(error["operator"])
        plan = None if self._committed is None else self._committed.planned_window(error["window"])
        return error if plan is None else {**error, **items_of_failure(plan, self._heads(), error["text"])}

    def _heads(self) -> dict[str, str]:
        """Return the operator at the head of each stage."""
        graph = self._drawn()
        return {} if graph is None else {stage["name"]: stage["head"] for stage in graph["stages"]}

    def _status(self, live: RunView | None) -> str:
        """Return `done`, `failed`, `interrupted`, `running`, `killed`, or `unknown` where nothing tells."""
        if live is not None and live.ended is not None:
            return live.ended.status
        assert self._place is not None
        if self._place.run_folder is None:
            return "unknown"
        try:
            holder = lock_holder(self._place.run_folder)
        except (DagflowError, OSError):
            holder = None
        if holder is not None:
            return "killed" if holder.is_dead() else "running"
        if live is not None:
            return "killed"
        if self._committed is None or not self._committed.windows:
            return "unknown"
        return "done" if max(self._committed.windows) + 1 >= self._committed.planned else "killed"

    def _launches(self, live: RunView | None) -> Iterator[dict[str, Any]]:
        if live is None or self._events is None:
            return
        for number, each in enumerate(islice(chain([live], self._events.earlier()), MAX_LAUNCHES)):
            started, ended = _ends(each)
            yield {
                "launch": each.launch,
                "at": started.get("at"),
                "runner": started.get("runner"),
                "first_window": started.get("first_window"),
                "windows": ended.get("windows"),
                "seconds": ended.get("seconds"),
                "status": ended.get("status") or (self._status(live) if number == 0 else "killed"),
                "error": ended.get("error"),
            }

    def _drawn(self) -> dict[str, Any] | None:
        view = None if self._committed is None else self._committed.view
        if view is None:
            return None
        if self._graph is None or self._graph[0] != view:
            self._graph = (view, drawn(view))
        return self._graph[1]

    def _operators(self, live: RunView | None) -> dict[str, dict[str, Any]]:
        committed = self._committed
        figures = {} if committed is None else {name: attrs.asdict(own) for name, own in committed.operators.items()}
        ended = {} if live is None else live.figures()
        for name, own in figures.items():
            own.pop("samples", None)
            if not own.get("seconds") and name in ended:
                own["seconds"] = round(ended[name].get("seconds", 0.0), 3)
        return figures

    def _windows(self, live: RunView | None) -> dict[str, Any]:
        """Return the figures of all windows as columns. Times are milliseconds after `t0`."""
        windows: dict[int, WindowView] = {} if self._committed is None else dict(self._committed.windows)
        if live is not None:
            windows.update(live.windows)
        rows = [windows[number] for number in sorted(windows)][-MAX_WINDOWS:]
        times = [at for row in rows for at in (row.planned, row.started, row.decided) if at is not None]
        t0 = min(times, default=0.0)
        table: dict[str, Any] = {"t0": t0, "left_out": len(windows) - len(rows), "window": [row.window for row in rows]}
        for name in COLUMNS:
            table[name] = [None if (at := getattr(row, name)) is None else round((at - t0) * 1000) for row in rows]
        for name in COUNTS:
            table[name] = [getattr(row, name) for row in rows]
        for name in SECONDS:
            table[name] = [round(getattr(row.times, name), 3) for row in rows]
        launches = list(dict.fromkeys(row.launch for row in rows))
        table["launches"], table["launch"] = launches, [launches.index(row.launch) for row in rows]
        return table

    def _tasks(self, live: RunView | None) -> dict[str, Any]:
        """Return the tasks of the newest and the slowest windows as rows. Times are milliseconds after `t0`."""
        if live is None:
            return {"t0": 0, "rows": []}
        times = [task.started for tasks in live.tasks.values() for task in tasks]
        t0, windows = min(times, default=0.0), sorted(live.detailed(), reverse=True)
        decided = {window: live.windows[window].decided is not None for window in windows}
        inputs = {} if self._inputs is None else self._inputs.of(decided, self._heads())
        rows: list[list[Any]] = []
        for window in windows:
            if len(rows) < MAX_TASKS:
                for t in sorted(live.tasks[window], key=lambda task: task.started)[: MAX_TASKS - len(rows)]:
                    figures = [_milliseconds(t.started - t0), _milliseconds(t.ended - t0), t.records]
                    figures += map(_milliseconds, (t.read, t.compute, t.write, t.wait))
                    rows.append([window, t.task, *figures, inputs.get(window, {}).get(t.task)])
        return {"t0": t0, "rows": rows}

    def _live(self, live: RunView | None) -> dict[str, Any]:
        if live is None:
            return {}
        progress = {} if live.progress is None else live.progress.as_json()
        return {
            "operators": live.figures(),
            "backlog": progress.get("backlog"),
            "backlog_bytes": progress.get("backlog_bytes"),
            "waiting": progress.get("waiting") or {},
            "remaining": progress.get("remaining"),
            "at": progress.get("at"),
            "curve": live.curve,
            "readers": [[e.at, e.window, e.operator, e.before, e.readers, e.backlog, e.backlog_bytes] for e in live.changes],
            "steals": [[e.at, e.window, e.source, e.to, e.parts, e.bytes] for e in live.steals],
            "stolen": live.report.rebalanced,
            "stolen_bytes": live.report.rebalanced_bytes,
            "rebalancing": live.report.rebalancing,
            "warnings": [[e.at, e.text] for e in live.warnings],
            "retries": list(map(_retry, live.retries)),
            "expectations": [_limit(live.report.expectations[key], last) for key, last in live.limits.items()],
            "fractions": {str(number): each.fraction for number, each in live.open.items() if each.fraction is not None},
        }

    def _rejects(self, live: RunView | None) -> list[dict[str, Any]]:
        """Return the rejected records of committed windows, and of windows that this launch has begun."""
        committed = self._committed
        windows = {} if committed is None else committed.windows
        rejects: dict[str, dict[str, Any]] = {
            name: {"operator": name, "errors": own.errors, "samples": committed.samples.get(name, [])}
            for name, own in ({} if committed is None else committed.operators).items()
            if committed is not None and own.errors
        }
        if live is None or windows.keys() & live.open.keys():  # its events do not show yet that a window is committed
            return list(rejects.values())
        failed = (last for last in live.limits.values() if last.status == "failed" and last.window not in windows)
        limits = {last.operator: last for last in failed}
        figures = live.figures()
        for name in dict.fromkeys([*limits, *figures]):
            own = rejects.get(name, {"operator": name, "errors": 0, "samples": []})
            decided = live.operators.get(name, {}).get("errors", 0)
            more = max(0, int(figures.get(name, {}).get("errors", 0) - decided))
            if (last := limits.get(name)) is not None:
                more = max(more, last.rejected)
                own = {**own, "samples": [*own["samples"], *([last.window, text] for text in last.samples)]}
            if more:
                rejects[name] = {**own, "errors": own["errors"] + more}
        return list(rejects.values())

    def _settings(self) -> dict[str, Any]:
        launched = None if self._committed is None else self._committed.launched
        if launched is None:
            return {"settings": [], "versions": {}}
        rows = launched.settings or [["application", *text.partition("=")[::2], "-D"] for text in launched.definitions]
        kept = {"left_out": launched.left_out, "application": launched.application, "folder": launched.folder}
        return {"settings": rows, "versions": launched.versions, "launched": kept}

    def _problems(self) -> Iterator[dict[str, str]]:
        assert self._place is not None
        if self._place.why_not is not None:
            yield {"what": "run folder", "text": self._place.why_not}
        if self._events is not None and self._events.newest is None:
            yield {"what": "events", "text": "there are none: times, tasks, retries and warnings of launches are not known"}
        for name, why in () if self._events is None else self._events.refused.items():
            yield {"what": f"events/{name}", "text": f"it is not read: {why}"}
        if self._events is not None and self._events.skipped_bytes:
            yield {"what": "events", "text": f"the first {self._events.skipped_bytes:,} bytes of events are not shown"}
        if self._committed is not None:
            if not self._committed.windows and self._has_decided():
                yield {"what": "decisions", "text": "there are none: no window is committed, or the run folder has lost them"}
            for what, problem in self._committed.problems.items():
                yield {"what": what, "code": problem.code, "text": problem.message()}

    def _has_decided(self) -> bool:
        """Return whether decisions are to be expected: not where the first window still runs, or failed."""
        if self._events is None or self._events.newest is None:
            return True
        earlier = any(each.ended is not None and each.ended.windows for each in self._events.earlier())
        return earlier or any(window.decided for window in self._events.newest.windows.values())


_ERROR = {"text": "error", "code": "error_code", "operator": "error_operator", "window": "error_window"}


def run_data(place: str, *, locator: ApplicationLocator | None = None) -> dict[str, Any]:
    """Return all that is known of a run as plain data. Raises NoRun, StorageError."""
    with explained(place, "reading the run"):
        return RunReader(place).data(locator=locator)


def drawn(view: PlanView) -> dict[str, Any]:
    """Return a view with the places of its boxes and the ways of its streams, as plain data."""
    picture = picture_of(view, lines=3)
    boxes = {id(box): number for number, box in enumerate(picture.root.groups())}
    inside = {id(child): boxes[id(group)] for group in picture.root.groups() for child in group.children}
    groups = [
        {
            "name": box.name,
            "kind": box.kind,
            "title": group_title(box, picture.view),
            "at": [box.x, box.y, box.width, box.height],
            "inside": inside.get(id(box)),
        }
        for box in picture.root.groups()
    ]
    nodes = [
        {
            "name": operator.name,
            "class": operator.class_name,
            "where": operator.where,
            "placement": operator.placement,
            "why": operator.why,
            "covers": operator.covers,
            "emits": operator.emits,
            "keeps": operator.keeps,
            "depends": operator.depends_on_windows,
            "stage": operator.stage,
            "module": operator.inside,
            "properties": [[each.name, each.value, each.origin] for each in operator.properties],
            "at": [box.x, box.y, box.width, box.height],
            "inside": inside.get(id(box)),
        }
        for box, operator in picture.boxes()
    ]
    edges = [
        {
            "from": arrow.source,
            "to": arrow.target,
            "stream": arrow.stream.name,
            "type": arrow.stream.type,
            "changed_by": arrow.stream.changed_by,
            "identified_by": arrow.stream.identified_by,
            "depends": arrow.stream.depends_on_windows,
            "rows": arrow.stream.rows,
            "source": arrow.stream.source,
            "sink": arrow.sink.port,
            "exchange": arrow.sink.exchange,
            "items": arrow.sink.crosses,
            "conversion": arrow.sink.conversion,
            "points": [number for point in arrow.points for number in point],
        }
        for arrow in picture.arrows
    ]
    stages = [attrs.asdict(stage) for stage in picture.view.stages]
    size = [picture.root.width, picture.root.height]
    return {
        "application": picture.view.application,
        "size": size,
        "nodes": nodes,
        "groups": groups,
        "edges": edges,
        "stages": stages,
    }


def _ends(launch: RunView | None) -> list[dict[str, Any]]:
    """Return the first event of a launch and the last one as plain data; empty where they are not written."""
    events = () if launch is None else (launch.started, launch.ended)
    return [{} if event is None else event.as_json() for event in events] or [{}, {}]


def _retry(event: TaskRetried | WindowRetried | StepRetried) -> list[Any]:
    if isinstance(event, TaskRetried):
        return [event.at, event.window, f"task {event.task}", "an earlier attempt did not report"]
    return [event.at, event.window, event.doing if isinstance(event, StepRetried) else "the window", event.reason]


def _limit(figures: ExpectationFigures, last: ExpectationChecked) -> dict[str, Any]:
    """Return a limit of rejected records: the sums over windows, and the last verdict."""
    breaches = sum(windows for status, windows in figures.windows.items() if status != "ok")
    counts = {"records": figures.records, "rejected": figures.rejected, "breaches": breaches}
    verdict = {"max_share": last.max_share, "status": last.status, "window": last.window}
    return {"operator": last.operator, "name": last.name, **counts, **verdict}


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _ledger(dataset: str) -> dict[str, Any]:
    """Return the newest entries of a dataset and the files in them."""
    entries: list[dict[str, Any]] = []
    files: list[list[Any]] = []
    result: dict[str, Any] = {"dataset": dataset, "entries": entries, "files": files}
    try:
        ledger = Ledger.open(dataset, durable=False)
        head = ledger.head()
        rows = ledger.content_rows()
        result.update(id=ledger.seed().dataset_id, count=0 if head is None else head.seq + 1, rows=rows)
        for step in history(ledger):
            entry = step.entry
            entries.append(_entry(entry))
            data = None if entry.data is None else entry.data.new_data
            if data is not None and len(files) < MAX_FILES:
                files += [[f.path, f.rows, f.size, f.physical_hash, entry.seq, f.interval.start] for f in data.files]
            if len(entries) == MAX_ENTRIES:
                break
    except DagflowError as problem:
        result["problem"] = {"code": problem.code, "text": problem.message()}
    del files[MAX_FILES:]
    return result


def _entry(entry: LedgerEntry) -> dict[str, Any]:
    data = None if entry.data is None else entry.data.new_data
    return {
        "seq": entry.seq,
        "at": entry.system_time / 1e6,
        "kind": type(entry.event).__name__,
        "hash": entry.hash,
        "window": None if entry.data is None else entry.data.txn.window_id,
        "rows": None if data is None else [data.interval.start, data.interval.end],
        "files": 0 if data is None else len(data.files),
        "bytes": 0 if data is None else sum(file.size for file in data.files),
    }


def _web_address(address: Any) -> str | None:
    """Return an address that a page may link to: of the web, and nothing that runs."""
    return address if isinstance(address, str) and address.startswith(("http://", "https://")) else None


def _plain(value: Any) -> Any:
    return _finite(without_secrets(value))


def _finite(value: Any) -> Any:
    """Return data that JSON can hold: without infinities, and with lone surrogates escaped."""
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_finite(key): _finite(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [_finite(each) for each in value]
    return value


def _version() -> str:
    try:
        return version("dagflow")
    except PackageNotFoundError:
        return f"on Python {platform.python_version()}"
