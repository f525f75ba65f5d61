"""The window log: what a window will do, what it did, and that all of it has followed. The decision is the commit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar, cast

import attrs

from dagflow.model.operator.sink import WindowMark
from dagflow.model.types.declared import fields_of
from dagflow.model.types.forms import ADDED
from dagflow.model.types.plain_data import decode, dumps, dumps_in_pieces, encode, loads
from dagflow.runtime.garbage import few_collections
from dagflow.runtime.run_folder.errors import ExpectationResult, FolderNotOwned
from dagflow.runtime.run_folder.files import file_paths, moved_file
from dagflow.runtime.run_folder.launch_record import LaunchRecord
from dagflow.runtime.run_folder.layout import (
    APP_ID,
    CLAIM,
    DECISION,
    DONE,
    KINDS,
    LAUNCH,
    PLAN,
    REJECTED,
    REPORT,
    Removed,
    record_name,
    stored,
)
from dagflow.runtime.run_folder.reports import ExchangeFigures, OperatorFigures, StagedFile, Steal, TaskReport
from dagflow.state import PartitionStates
from dagflow.storage import (
    LocalStore,
    SealedRecord,
    Store,
    at_once,
    is_local,
    join,
    open_store,
    read_sealed,
    seal,
    seal_of,
)
from dagflow.storage.records.errors import PlanMismatch, RecordDamaged, RecordMisplaced, RecordRefused

_SWEPT = tuple(kind for kind in KINDS if kind.removed is Removed.SWEPT and not kind.in_outputs)
_AGED = tuple(kind for kind in KINDS if kind.removed is Removed.AGED)
_KNOWN = 256  # hashes that a log remembers: more than windows can be in flight
Record = TypeVar("Record")


@attrs.frozen(kw_only=True)
class WindowPlan:
    """The plan of a window, durable before its first task.

    Attributes:
        items: the work items by the operator that gets them: `(port, encoded item)`; `-port` for one that is taken back.
        partitions, places: the number of partitions by that operator (of higher levels too), and for each item its partition.
        levels: of each stage.
        weights: the weight of each partition's items (bytes, where they are known), by that operator.
        owners: where a partitioner has assigned keys, the partition of each of these, by that operator.
        shape, properties: the operators and streams of the application that made the plan, and plain properties.
        states: the encoded states of the driver's operators after the window, by operator and name; of a `MapState`, the newest
            segment of `dagflow.state`.
        state_types: what the states of all operators are declared as, by operator and name.
        agreed: what operators have agreed on for all tasks of the window (`Operator.agree`), by operator.
        driver: what the driver's operators did while they planned it.
        advanced: the input operators that had something.
        watermarks: of the input operators that know one, after the window; microseconds since the epoch.
        inputs: what the window takes of datasets, by input operator: encoded `InputSlice`s.
        is_end: whether it is the one behind the last window of a bounded run, which has no input.
        emits: whether it is an emission point: changing streams reach sinks.
        is_final: whether it is that of a final launch: it keeps nothing, and no window follows.
        emitted_at: when the newest emission point up to this window was planned; seconds since the epoch.
        outputs: the output folders of the run, as they were called then.
    """

    window: int
    items: dict[str, list[list[Any]]]
    partitions: dict[str, int]
    places: dict[str, list[int]]
    states: dict[str, dict[str, Any]]
    driver: TaskReport
    levels: dict[str, int] = attrs.field(factory=dict)
    state_types: dict[str, dict[str, str]] = attrs.field(factory=dict)
    weights: dict[str, list[int]] = attrs.field(factory=dict)
    owners: dict[str, list[int]] = attrs.field(factory=dict)
    agreed: dict[str, Any] = attrs.field(factory=dict)
    advanced: list[str] = attrs.field(factory=list)
    watermarks: dict[str, int] = attrs.field(factory=dict)
    inputs: dict[str, Any] = attrs.field(factory=dict)
    outputs: list[str] = attrs.field(factory=list)
    shape: dict[str, str] = attrs.field(factory=dict)
    properties: dict[str, str] = attrs.field(factory=dict)
    planned_at: float = 0.0
    is_end: bool = False
    emits: bool = attrs.field(default=True, metadata={ADDED: True})
    emitted_at: float = attrs.field(default=0.0, metadata={ADDED: True})
    is_final: bool = attrs.field(default=False, metadata={ADDED: True})


@attrs.frozen(kw_only=True)
class Decision:
    """The results of a window. `outputs`: the output folders of the run, as they were called then; the rest as in its plan.

    `states`: of the driver's operators after the window; `partition_states`: of those in tasks.
    `parts`: what each task has read that did not read exactly its assignment, by `HEAD-PARTITION`: number of the item,
    start and stop (None: its own). `steals`: how that came. `exchanges`: what went over exchanges, by the port they lead to.
    `event_times`: the latest time of a record that has come so far, by operator that follows event time.
    `staged`: what `Sink.stage` has returned in the tasks, by operator. `expectations`: the verdicts on rejected records.
    `last_staged`: the newest window, up to this one, in which tasks have staged something for a sink, by operator.
    `held`: the number of changes that wait for the next emission point, by the operator that keeps them.
    """

    window: int
    round: str
    files: list[StagedFile]
    operators: dict[str, OperatorFigures]
    notes: dict[str, list[str]]
    states: dict[str, dict[str, Any]]
    partition_states: PartitionStates = attrs.field(factory=dict)
    agreed: dict[str, Any] = attrs.field(factory=dict)
    advanced: list[str] = attrs.field(factory=list)
    watermarks: dict[str, int] = attrs.field(factory=dict)
    inputs: dict[str, Any] = attrs.field(factory=dict)
    outputs: list[str] = attrs.field(factory=list)
    decided_at: float = 0.0
    parts: dict[str, list[list[Any]]] = attrs.field(factory=dict)
    steals: list[Steal] = attrs.field(factory=list)
    exchanges: dict[str, ExchangeFigures] = attrs.field(factory=dict)
    event_times: dict[str, int] = attrs.field(factory=dict)
    staged: dict[str, list[Any]] = attrs.field(factory=dict)
    expectations: list[ExpectationResult] = attrs.field(factory=list, metadata={ADDED: True})
    last_staged: dict[str, int] = attrs.field(factory=dict, metadata={ADDED: True})
    held: dict[str, int] = attrs.field(factory=dict, metadata={ADDED: True})


@attrs.frozen(kw_only=True)
class Rejection:
    """A decided window that some sinks leave out, because they cannot publish it. It builds on the decision.

    Attributes:
        window: its number.
        rows: the rows that are lost, by the sink that leaves them out.
        published: the sinks that have published the window, or will.
        launch: the launch that has rejected it.
        rejected_at: seconds since the epoch.
    """

    window: int
    rows: dict[str, int]
    published: list[str] = attrs.field(factory=list)
    launch: str = ""
    rejected_at: float = 0.0

    def text(self) -> str:
        """Return what is lost in words.

        >>> Rejection(window=3, rows={"sales": 1200}, published=["files"]).text()
        "window 3 is rejected: 1,200 rows are not in 'sales'; 'files' has it"
        """
        lost = ", ".join(
            f"{rows:,} row{'s' * (rows != 1)} {'is' if rows == 1 else 'are'} not in {sink!r}" for sink, rows in self.rows.items()
        )
        others = " and ".join(map(repr, self.published))
        return f"window {self.window} is rejected: {lost}" + (
            f"; {others} ha{'s' if len(self.published) == 1 else 've'} it" if others else ""
        )


Moved = Callable[[Sequence[str]], Mapping[str, str]]
Owns = Callable[[str], bool]


class WindowLog:
    """Plans, decisions and marks of done, each published once, and sealed (`dagflow.storage.records.sealed`).

    A plan builds on the plan before it, the first one on the run's id. A decision builds on its plan and on the decision before
    it, a mark of done on its decision. Reading a record checks its seal, its name, and those that it builds on, where these are
    still there. `dagflow.runtime.run_folder.progress` knows which must be.

    Args:
        store: for plans and decisions.
        unsynced: for what may be lost in a power cut: reports (the window then runs again) and marks of done (what follows from
            the decision is then done again). The same place as `store`, without its syncs.
        outputs: the output folders of the run; every plan and decision keeps them.
        moved: what has become of the output folders that a record names, by their names then. What the record says of files is
            read accordingly: an output that was copied or moved knows only files of its own.
        owns: whether a folder is an output of the run; decisions that name files of another one are refused. None for logs that
            are only read.
    """

    def __init__(
        self,
        store: Store,
        unsynced: Store | None = None,
        outputs: Sequence[str] = (),
        moved: Moved | None = None,
        owns: Owns | None = None,
    ) -> None:
        self.store = store
        self.unsynced = unsynced or store
        self.live = self.unsynced if is_local(self.unsynced.url) else None
        """Where tasks leave their figures while they work; None if they leave none."""
        self.secured: set[str] = set()  # the folders whose way from the top has been made durable
        self._outputs = list(outputs)
        self._moved = moved
        self._owns = owns
        self._hashes: dict[str, str] = {}  # of the records that were written or read last
        self._marked: set[int] = set()  # windows that were found to be done: a mark is removed with its decision only

    @classmethod
    def open(
        cls,
        run_folder: str,
        durable: bool,
        outputs: Sequence[str] = (),
        moved: Moved | None = None,
        owns: Owns | None = None,
    ) -> WindowLog:
        """Open the log in a run folder; `durable`: decided windows survive a power cut."""
        return cls(open_store(run_folder, durable=durable), open_store(run_folder, durable=False), outputs, moved, owns)

    def plan(self, plan: WindowPlan) -> WindowPlan:
        """Publish a plan. If there is one already, that one counts."""
        before = record_name("plan", plan.window - 1) if plan.window else APP_ID.form
        return self._publish("plan", plan.window, attrs.evolve(plan, outputs=self._outputs), (before,))

    def decide(self, decision: Decision) -> Decision:
        """Publish a decision. If there is one already, that one counts. Raises PathOutside, FolderNotOwned."""
        self._check_files(decision)
        before = (record_name("plan", decision.window), record_name("decision", decision.window - 1))
        return self._publish("decision", decision.window, attrs.evolve(decision, outputs=self._outputs), before)

    def reject(self, rejection: Rejection) -> Rejection:
        """Publish that sinks leave a decided window out. If that is published already, it counts."""
        name = REJECTED.name(window=rejection.window)
        body = dumps(encode(rejection, f"rejection of window {rejection.window}"))
        self.store.create(name, seal(name, body, self._hashes_of([record_name("decision", rejection.window)])))
        return self.read_rejection(rejection.window) or rejection

    def read_rejection(self, window: int) -> Rejection | None:
        """Read which sinks leave a window out; None if all publish it. Raises RecordRefused, PlanMismatch."""
        record = read_sealed(self.store, REJECTED.name(window=window))
        if record is None:
            return None
        self._check_links(record)
        return _decoded(record, Rejection, self.store.url)

    def rejected(self) -> list[int]:
        """Return the windows that sinks leave out, of those that are kept."""
        return [
            int(match["window"])
            for name in self.store.names(f"{REJECTED.folder}/")
            if (match := REJECTED.match(name)) is not None
        ]

    def done(self, window: int) -> None:
        """Mark that all that follows from a decision has been done."""
        name = record_name("done", window)
        data = seal(name, b"{}", self._hashes_of([record_name("decision", window)]))
        if not self.unsynced.create(name, data) and not self.is_done(window):
            self.unsynced.discard(name)  # it is not synced: a power cut may have left it empty
            self.unsynced.create(name, data)

    def repair_marks(self) -> None:
        """Make the marks of done again that a power cut has damaged, of windows before one whose mark is whole."""
        is_followed = False
        for window in reversed(self.windows("done")):
            with suppress(RecordRefused):  # of its decision: whether that matters is for its readers to say
                if self.is_done(window):
                    is_followed = True
                elif is_followed:
                    self.done(window)

    def read_plan(self, window: int) -> WindowPlan | None:
        """Read the plan of a window. Raises RecordRefused, PlanMismatch."""
        plan = self._read("plan", window, WindowPlan)
        if plan is None or not plan.driver.files:
            return plan
        moved = self._moves(plan.outputs)
        driver = attrs.evolve(plan.driver, files=[moved_file(file, moved) for file in plan.driver.files])
        return attrs.evolve(plan, driver=driver)

    def read_decision(self, window: int, *, alone: bool = False) -> Decision | None:
        """Read the decision of a window; `alone`: even if it does not fit the others.

        Raises RecordRefused, PlanMismatch; PathOutside and FolderNotOwned for its files.
        """
        decision = self._read("decision", window, Decision, alone=alone)
        if decision is None or not decision.files:
            return decision
        moved = self._moves(decision.outputs)
        decision = attrs.evolve(decision, files=[moved_file(file, moved) for file in decision.files])
        if alone or not self.is_done(window):  # of one that is done, nothing is moved any more
            self._check_files(decision)
        return decision

    def _check_files(self, decision: Decision) -> None:
        """Raise PathOutside and FolderNotOwned for files that are not where those of this run are."""
        owned: set[str] = set()
        for file in decision.files if self._owns is not None else ():
            if file.folder not in owned and self._owns is not None and not self._owns(file.folder):
                raise FolderNotOwned(file.folder, f"the decision of window {decision.window}", self.store.url)
            owned.add(file.folder)
            file_paths(file)

    def _moves(self, then: Sequence[str]) -> Mapping[str, str]:
        return self._moved(then) if self._moved is not None and list(then) != self._outputs else {}

    def is_done(self, window: int) -> bool:
        """Return whether a mark says that all has followed from the decision of a window. A damaged mark says nothing."""
        if window not in self._marked:
            try:
                record = read_sealed(self.store, record_name("done", window))
            except RecordRefused:
                return False
            if record is None or record.builds_on != self._hashes_of([record_name("decision", window)]):
                return False
            self._marked.add(window)
        return True

    def windows(self, kind: str) -> list[int]:
        """Return the windows that have a `plan`, `decision` or `done`."""
        form = next(each for each in (PLAN, DECISION, DONE) if each.folder == kind)
        return [int(match["window"]) for name in self.store.names(f"{kind}/") if (match := form.match(name)) is not None]

    def report(self, name: str, report: TaskReport) -> TaskReport:
        """Publish a task's report; the first one counts. Raises RecordRefused for one that is there and damaged."""
        if self.unsynced.create(name, seal(name, dumps(encode(report, name)))):
            return report
        return self.read_report(name) or report

    def read_report(self, name: str) -> TaskReport | None:
        """Read the report of a task. Raises RecordRefused, PlanMismatch."""
        record = read_sealed(self.unsynced, name)
        return None if record is None else _decoded(record, TaskReport, self.store.url)

    def reported_files(self, window: int) -> Iterator[StagedFile]:
        """Return the files in the intact reports and ownership logs that a window has left, in any epoch."""
        plan = self.read_plan(window)
        moved = {} if plan is None else self._moves(plan.outputs)
        names = stored(self.unsynced, (REPORT, CLAIM), window)
        for report in at_once(self._left_report, names, self.unsynced.url):
            yield from (moved_file(file, moved) for file in (() if report is None else report.files))

    def _left_report(self, name: str) -> TaskReport | None:
        try:
            return _report_in(read_sealed(self.unsynced, name), self.store.url)
        except (RecordRefused, PlanMismatch):  # what a power cut has left
            return None

    def forget(self, windows: Collection[int]) -> None:
        """Remove the reports and claims of windows that are done."""
        names = stored(self.unsynced, _SWEPT) if windows else ()
        self.unsynced.discard_all([name for name in names if int(name.rpartition("/")[2].partition(".")[0]) in windows])

    def launched(self, launch: str, record: LaunchRecord, keep: int) -> None:
        """Record how the application was launched, and forget the oldest of more than `keep` launches."""
        for name in list(stored(self.unsynced, (LAUNCH,)))[: 1 - keep or None]:
            self.unsynced.discard(name)
        name = LAUNCH.name(launch=launch)
        self.store.create(name, seal(name, dumps(encode(record, f"launch {launch}"))))

    def read_launched(self, round: str) -> LaunchRecord | None:
        """Return the record of the launch in whose `round` a window was decided; None if it is not kept.

        Raises RecordRefused, PlanMismatch.
        """
        record = read_sealed(self.unsynced, LAUNCH.name(launch=round.rstrip("+").partition(".")[0]))
        return None if record is None else _decoded(record, LaunchRecord, self.store.url)

    def sweep_temporaries(self) -> None:
        """Remove the half-written reports and states of tasks that were killed."""
        if isinstance(self.unsynced, LocalStore):
            now = time.time()
            for folder in sorted({kind.folder for kind in KINDS if kind.writer == "task" and not kind.in_outputs}):
                LocalStore(join(self.unsynced.folder, folder)).sweep(before=now)  # a zombie whose file goes writes it again

    def drop(self, windows: Iterable[int]) -> None:
        """Remove plan, decision and mark of windows that are done. Never a decision before its plan: that would run again."""
        windows = list(windows)
        self._marked.difference_update(windows)
        for kind in _AGED:
            self.unsynced.discard_all([kind.name(window=window) for window in windows])

    def hash_of(self, name: str) -> str | None:
        """Return the hash of a record by its seal, None without one. Raises RecordDamaged, RecordMisplaced, PlanMismatch."""
        digest = self._hashes.get(name)
        if digest is None and (record := read_sealed(self.store, name)) is not None:
            digest = self._remember(name, record.hash)
        return digest

    def decision_hash(self, window: int) -> str:
        """Return the hash of a decision that is there, by its seal. Raises what `hash_of` does."""
        digest = self.hash_of(record_name("decision", window))
        assert digest is not None
        return digest

    def mark_of(self, window: int) -> WindowMark:
        """Return the mark that a store has of a decided window, without the decision if that is no longer kept."""
        return WindowMark.of(window, self.hash_of(record_name("decision", window)))

    def _hashes_of(self, names: Iterable[str]) -> dict[str, str]:
        return {name: digest for name in names if (digest := self.hash_of(name)) is not None}

    def _remember(self, name: str, found: str) -> str:
        self._hashes[name] = found
        while len(self._hashes) > _KNOWN:
            self._hashes.pop(next(iter(self._hashes)))
        return found

    @few_collections()
    def _publish(self, kind: str, window: int, record: Record, before: Iterable[str]) -> Record:
        name = record_name(kind, window)
        body = dumps_in_pieces(encode(record, f"{kind} of window {window}", shares=True))
        data = seal(name, body, self._hashes_of(before))
        if self.store.create(name, data):
            self._remember(name, seal_of(data))
            return record
        existing = self.read_plan(window) if kind == "plan" else self.read_decision(window)
        if existing is None or self._hashes.get(name) == seal_of(data):  # ours, by a call whose answer was lost
            return record
        return cast("Record", existing)

    def _read(self, kind: str, window: int, cls: type[Record], *, alone: bool = False) -> Record | None:
        record = read_sealed(self.store, record_name(kind, window))
        if record is None:
            return None
        if not alone:
            self._check_links(record)
        return _decoded(record, cls, self.store.url)

    def _check_links(self, found: SealedRecord) -> None:
        if self._hashes.get(found.name, found.hash) != found.hash:
            raise RecordMisplaced(self.store.url, found.name, "it is another one than this launch has seen there")
        for base, expected in found.builds_on.items():
            if self.hash_of(base) not in (None, expected):
                raise RecordMisplaced(self.store.url, found.name, f"it builds on another {base} than the one that is there")
        self._remember(found.name, found.hash)


def _decoded(found: SealedRecord, cls: type[Record], folder: str) -> Record:
    try:
        record: Record = decode(loads(found.body), cls)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordDamaged(folder, found.name, str(error)) from error
    checks = fields_of(cls)  # type: ignore[arg-type]  # mypy takes classes for unhashable here
    wrong = [name for name, check in checks.items() if not check(getattr(record, name))]
    if wrong:
        raise RecordDamaged(folder, found.name, f"{', '.join(wrong)} cannot hold what it says")
    return record


def _report_in(found: SealedRecord | None, folder: str) -> TaskReport | None:
    """Return the report in a record, or in an entry of an ownership log."""
    if found is None or not found.body.startswith(b"{"):
        return None
    if CLAIM.match(found.name):
        try:
            data = loads(found.body).get("report")
            return None if data is None else decode(data, TaskReport)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordDamaged(folder, found.name, str(error)) from error
    return _decoded(found, TaskReport, folder)
