"""Tracing a row of a dataset: to the entry that committed it, its window, the ranges that were read, and the record itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from dagflow.config.errors import ConfigErrors, MissingSetting
from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication, build
from dagflow.launching.record import rebuild
from dagflow.ledger import DataFile, ExecuteQuery, InputSlice, Ledger, LedgerEntry
from dagflow.ledger.dataset.find import find_dataset
from dagflow.ledger.errors import NoSuchEntry
from dagflow.ledger.snapshots import CURRENT, PARTITIONS, snapshot_of
from dagflow.lineage.contributions import Contribution, Contributions
from dagflow.lineage.errors import CodeNotNamed, SourceSilent
from dagflow.lineage.history import FileOrigin, Item, PastWindow, changed_sources, stage_of, standing_in, states_kept
from dagflow.lineage.row_search import Origin, hash_of, origin_of, position_of
from dagflow.model.operator.base import ErrorRecord, Operator
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.protocols import RereadsRecords
from dagflow.model.types.plain_data import decode
from dagflow.planning.plan import Plan
from dagflow.runtime.task.compile import loaded, pickled, stage_program
from dagflow.scan.bad_rows import BadRow, RowOrigin
from dagflow.storage import absolute, is_local, join

MOST = 1 << 20
"""Of a longer record, the first bytes are shown."""
_NOT_AGAIN = (
    "run again, the task does not write this file as it was committed: the row may have been made of another record "
    "(`dagflow verify --replay` compares row by row)"
)
_BEHIND = "it was written behind an exchange: any of these ranges may have a part in it"
_KEPT = "these are the ranges of all windows up to the row's that are kept: {names} continues from window to window"


@attrs.frozen(kw_only=True)
class SourceRecord:
    """The record from which a row was made, as it is in its source.

    Attributes:
        item: the work item (a block of a file, mostly) that it was in.
        position, length: bytes from the start of the file; its terminator counts. Of a source without files (`path` is empty),
            a position of its own.
        data: its bytes, the first MiB.
        line: the number of the line in which it begins, from 1; None where the reader began inside the file, or counts none.
    """

    item: Item
    path: str
    position: Any
    length: int
    data: bytes
    line: int | None = None


@attrs.frozen(kw_only=True)
class Trace:
    """The path of a row from its source.

    Attributes:
        entry, file, row: the entry that committed it, the file that holds it, and which row of that it is (from 0).
        run_folder: where the window's plan is.
        written: the operator that wrote the file, and in which task.
        items: the work items that the task had; of a row that one record was made of, and with `exact`, the one with it.
        inputs: of a derived dataset, the parts of its inputs that the window took.
        source: the record itself, with `exact`; None where the row was made of several.
        parts: with `exact`, the records that a row behind an exchange was made of, by window and file.
        several: why the row was made of more than one record.
        remarks: what may make the answer less than certain.
        problem: why it could not be traced further.
    """

    dataset: str
    offset: int
    entry: LedgerEntry
    file: DataFile
    row: int
    run_folder: str | None = None
    written: FileOrigin | None = None
    head: str | None = None
    items: tuple[Item, ...] = ()
    inputs: tuple[InputSlice, ...] = ()
    source: SourceRecord | None = None
    parts: tuple[Contribution, ...] = ()
    several: str | None = None
    remarks: tuple[str, ...] = ()
    problem: DagflowError | None = None

    @property
    def window(self) -> int:
        """The number of the window that made it."""
        assert self.entry.data is not None
        return self.entry.data.txn.window_id

    @property
    def application(self) -> str:
        """The id of the application that made it."""
        assert self.entry.data is not None
        return self.entry.data.txn.app_id


@attrs.frozen(kw_only=True)
class ApplicationLocator:
    """Finds the application again: as the caller names it or, where the caller trusts it, as the run folder does.

    Attributes:
        run_folder: where the run folder is now, if not where the dataset says.
        application: the application as for `dagflow launch`, or a function `populate_dag`; None: what the run folder says.
        trust: without an `application`, the code that the run folder names may run; with one, it gets the settings that the run
            folder has.
        definitions, conf_files: settings, as for `-D` and `--conf`; with what the run folder says, `-D` adds to that.
    """

    run_folder: str | None = None
    application: Any = None
    trust: bool = False
    definitions: Sequence[str] = ()
    conf_files: Sequence[str] = ()

    def built(self, window: PastWindow) -> tuple[LoadedApplication, str, tuple[str, ...]]:
        """Return the application that made a window, the folder where it ran, and remarks.

        Raises NotTraceable (CodeNotNamed: nothing was loaded), ConfigError, DagError.
        """
        if self.application is not None:
            recorded = tuple(window.launched().definitions) if self.trust else ()
            definitions = (*recorded, *self.definitions)
            try:
                application = build(self.application, environment=os.environ, conf_files=self.conf_files, definitions=definitions)
            except (MissingSetting, ConfigErrors) as error:
                if not self.trust:
                    error.add_note("  help: the run folder has the settings of its launch: --trust uses them, beside yours")
                raise
            return application, os.getcwd(), ()
        record = window.launched()
        if not self.trust:
            raise CodeNotNamed(record.application or record.name, record.folder, window.run_folder, tuple(record.definitions))
        names = {text.partition("=")[0].strip() for text in self.definitions}
        missing = ", ".join(key for key in record.left_out if key not in names)
        remark = f"the run folder does not keep these settings, which are now as by default: {missing} (-D)"
        with standing_in(record.folder):
            return rebuild(record, self.definitions), record.folder, (remark,) if missing else ()


def trace(dataset: str, offset: int, *, exact: bool = False, locator: ApplicationLocator | None = None) -> Trace:
    """Trace a row of a dataset to its source.

    Args:
        dataset: its folder, by path or URL, or anything in it.
        offset: the row's number in the dataset, from 0.
        exact: runs the row's task again up to the row, record by record, to find the record that it was made of, and reads
            that again from the source; then once as a whole, to compare the file with the committed one (a remark tells if it
            differs). Operators before the sink run; their side effects are repeated.
        locator: how to find the application again; with `exact`, it names the application or trusts the run folder.

    The result has any obstacle in `problem`; raises only when there is no such row: NoSuchDataset, LedgerMissing,
    NoSuchEntry, LedgerDamaged.
    """
    folder = find_dataset(dataset)
    ledger = Ledger.open(folder, durable=False)
    entry = ledger.entry_of(offset)
    assert entry.data is not None
    assert entry.data.new_data is not None
    file = next(file for file in entry.data.new_data.files if file.interval.start <= offset <= file.interval.end)
    inputs = entry.data.inputs if isinstance(entry.data, ExecuteQuery) else ()
    result = Trace(
        dataset=folder,
        offset=offset,
        entry=entry,
        file=file,
        row=offset - file.interval.start,
        inputs=tuple(inputs),
        remarks=tuple(_replaced(ledger, entry, file)),
    )
    try:
        for step in _steps(locator or ApplicationLocator(), exact):
            result = step(result)
    except DagflowError as problem:
        result = attrs.evolve(result, problem=problem)
    return result


def _replaced(ledger: Ledger, entry: LedgerEntry, file: DataFile) -> Iterator[str]:
    """Yield a remark if the row is not content of the dataset any more."""
    head = ledger.refresh()
    if head is None or head.carried.replaced is None or entry.seq >= head.carried.replaced:
        return
    replacing = ledger.entry(head.carried.replaced).data
    kept = [] if replacing is None or replacing.new_data is None else replacing.new_data.kept_files
    if not kept:
        yield f"the row is no longer in the dataset: entry {head.carried.replaced} replaced all rows before its own"
    elif file not in kept:
        yield f"the row is no longer in the dataset: entry {head.carried.replaced}, or one before it, replaced it"


def row_of(place: str, line: int) -> int:
    """Return the offset of a row of a committed file, by its number in that file (from 1).

    Raises NoSuchEntry if the file is not committed, or has fewer rows.
    """
    folder = find_dataset(place)
    name = absolute(place)[len(folder) :].lstrip("/")
    ledger = Ledger.open(folder, durable=False)
    names = _committed_names(ledger, name)
    for entry in ledger.data_entries():
        for file in entry.data.new_data.files if entry.data is not None and entry.data.new_data is not None else ():
            if file.path in names:
                if not 1 <= line <= file.rows:
                    raise NoSuchEntry(folder, f"row {line} of {name}", f"that file has {file.rows}")
                return file.interval.start + line - 1
    raise NoSuchEntry(folder, f"committed file {name or place!r}", "only files that its ledger names are committed")


def _committed_names(ledger: Ledger, name: str) -> list[str]:
    """Return the names that a file may be committed by, which is reached by this name or by that of the newest snapshot."""
    word, slash, rest = name.partition("/")
    if not slash or word != CURRENT:
        return [name]
    head = ledger.refresh()
    replaced = None if head is None or head.carried.replaced is None else ledger.entry(head.carried.replaced).data
    snapshots = [] if replaced is None else [f"{snapshot_of(replaced.txn.window_id)}/{rest}"]
    return [*snapshots, f"{PARTITIONS}/{rest}"]


def _steps(locator: ApplicationLocator, exact: bool) -> Sequence[Callable[[Trace], Trace]]:
    """Return the steps of a trace. Each adds to it; a step that cannot raises, and the findings before it stay."""
    past: list[PastWindow] = []

    def window(traced: Trace) -> Trace:
        past.append(PastWindow.of(traced.dataset, traced.entry, locator.run_folder))
        return attrs.evolve(traced, run_folder=past[0].run_folder)

    def task(traced: Trace) -> Trace:
        published = past[0].published(traced.dataset, traced.file)
        if published is None:
            return traced
        written = past[0].written(published)
        if written.task is not None and past[0].level_of(written.task):
            if exact:
                return attrs.evolve(traced, written=written)
            kept = past[0].keeping_above(written.operator)
            earlier = sorted(window for window in past[0].log.windows("plan") if window < past[0].window) if kept else []
            before = (past[0].other(window) for window in earlier)
            windows = [*(each for each in before if each is not None), past[0]]
            above = tuple(item for each in windows for item in each.items_above(written.operator))
            remarks = [*traced.remarks, *([_BEHIND] if above else [])]
            if kept:
                remarks.append(_KEPT.format(names=", ".join(kept)))
            return attrs.evolve(traced, written=written, items=above, remarks=tuple(remarks))
        head = past[0].head_above(written.operator)
        items = past[0].items(head, int(written.task.rpartition("-")[2])) if head is not None and written.task is not None else []
        return attrs.evolve(traced, written=written, head=head, items=tuple(items))

    def record(traced: Trace) -> Trace:
        return _exactly(traced, past[0], locator) if traced.written is not None else traced

    return (window, task, record) if exact else (window, task)


def _exactly(traced: Trace, past: PastWindow, locator: ApplicationLocator) -> Trace:
    written = _written(traced)
    built, folder, remarks = locator.built(past)
    traced = attrs.evolve(traced, remarks=(*traced.remarks, *remarks))
    with standing_in(folder):
        plan = past.planned(built)
        changed = past.check_application(built, plan)
        if changed:
            traced = attrs.evolve(traced, remarks=(*traced.remarks, f"properties have changed since: {'; '.join(changed)}"))
        if written.task is not None and past.level_of(written.task):
            search = Contributions(built, past, plan, folder)
            parts = search.of_row(written, traced.row)
            items = tuple(item for part in parts for item in part.items)
            traced = attrs.evolve(traced, parts=parts, items=items, remarks=(*traced.remarks, *dict.fromkeys(search.remarks)))
            if len(parts) == 1 and parts[0].rows == len(parts[0].positions) == 1:
                program = pickled(stage_program(plan, plan.stage_of(parts[0].head).name), plan, travels=False)
                reader = next(o.operator for o in loaded(program).operators if o.name == parts[0].head)
                if isinstance(reader, RereadsRecords):
                    return attrs.evolve(
                        traced, source=_again(plan, parts[0].head, reader, items[0], parts[0].positions[0], traced.window)
                    )
            return traced
        stage, partition = stage_of(plan, _written(traced), past.window)
        program = pickled(stage_program(plan, stage.name), plan, travels=False)
        written, spec = _written(traced), past.task(plan, stage, partition, folder)
        states = past.states(plan, stage, spec)
        with states_kept(spec):
            origin = origin_of(program, spec, states, head=stage.head, written=written, row=traced.row)
        algorithm = traced.file.physical_hash.partition(":")[0]
        try:
            is_same = hash_of(program, spec, states, written=written, algorithm=algorithm) == traced.file.physical_hash
        except DagflowError:  # behind the row: before it, the run above would have failed too
            is_same = False
        doubts = [f"{what}: the row may have been made of another record" for what in changed_sources(traced.items)]
        if not is_same and not doubts:
            doubts.append(_NOT_AGAIN)
        fresh = next(o.operator for o in loaded(program).operators if o.name == stage.head)
        return _told(attrs.evolve(traced, remarks=(*traced.remarks, *doubts)), origin, plan, stage.head, fresh)


def _told(traced: Trace, origin: Origin | None, plan: Plan, head: str, reader: Operator) -> Trace:
    """Return the trace with the findings of the task's second run."""
    kind = type(reader).__name__
    if origin is not None and origin.is_uncertain:
        raise SourceSilent(head, kind, f"operator {_written(traced).operator!r} counts its rows too late to tell which is whose")
    if origin is None:
        raise SourceSilent(head, kind, "run again, the task did not write this row: the application does not do the same twice")
    if origin.keeping:
        remark = f"{', '.join(origin.keeping)} keeps something from record to record: earlier ones may have a part in the row"
        traced = attrs.evolve(traced, remarks=(*traced.remarks, remark))
    if origin.emitted is None:
        return attrs.evolve(traced, several="it was written when all records of its task had been read")
    at = origin.arrived if isinstance(origin.arrived, ErrorRecord) else origin.emitted.record
    if isinstance(at, BadRow):
        where = f"byte {at.position}" if at.line is None else f"byte {at.position}, line {at.line:,}"
        raise SourceSilent(head, kind, f"the row is a bad row, which has its place itself: {where} of {at.file_path}")
    if isinstance(at, ErrorRecord):
        number = next((n for n, item in enumerate(traced.items) if _holds(item, at)), origin.emitted.item)
        place = at.position
    else:
        number = origin.emitted.item
        known = position_of(origin.arrived) or position_of(origin.emitted.record)
        place = None if known is None else known[1]
        if known is not None:
            number = next((n for n, item in enumerate(traced.items) if _block_of(item) == known[0]), number)
    item = traced.items[number]
    traced = attrs.evolve(traced, items=(item,))
    if origin.emitted.place is not None:
        return attrs.evolve(traced, source=_row(item, origin.emitted.place, head, kind))
    if place is None:
        raise SourceSilent(head, kind, "its records do not say where they were read")
    return attrs.evolve(traced, source=_again(plan, head, reader, item, place, traced.window))


def _again(plan: Plan, head: str, reader: Operator, item: Item, place: Any, window: int) -> SourceRecord:
    """Read a record again. Raises SourceSilent."""
    kind = type(reader).__name__
    if not isinstance(reader, RereadsRecords):
        raise SourceSilent(head, kind, f"it has no method record_at; the record is at {place}")
    tp = next(plan.dag.types[sink] for _, sink in plan.dag.upstream(head) if sink.port == item.port)
    reader.setup(OperatorContext(name=head, window=window))
    try:
        data = reader.record_at(decode(item.value, tp), place)
    finally:
        reader.teardown()
    if data is None:
        raise SourceSilent(head, kind, f"no record begins at {f'byte {place}' if item.path else f'position {place!r}'}")
    return SourceRecord(item=item, path=_whole(item.path or ""), position=place, length=len(data), data=data[:MOST])


def _row(item: Item, place: RowOrigin, head: str, kind: str) -> SourceRecord:
    """Return the record of a row of a scan. Raises SourceSilent if its format does not read row by row."""
    if place.position is None:
        raise SourceSilent(head, kind, "its format does not say where a row was read")
    if place.data is None:
        where = f"those with this one begin at byte {place.position} of {item.path}"
        if place.row is not None:
            where += f", and it is row {place.row:,} of that file (from 0)"
        raise SourceSilent(head, kind, f"its format reads many rows at once; {where}")
    data = bytes(place.data[:MOST])
    length = len(place.data)
    return SourceRecord(
        item=item, path=_whole(item.path or ""), position=place.position, length=length, data=data, line=place.line
    )


def _written(traced: Trace) -> FileOrigin:
    assert traced.written is not None
    return traced.written


def _block_of(item: Item) -> int | None:
    return item.value.get("block_id") if isinstance(item.value, dict) else None


def _holds(item: Item, error: ErrorRecord) -> bool:
    if item.path is None or item.path != error.file_path or error.position is None or item.start is None or item.stop is None:
        return False
    return item.start <= error.position < item.stop


def _whole(path: str) -> str:
    """Resolve a path relative to the folder where the application ran."""
    return join(os.getcwd(), path) if path and is_local(path) and not os.path.isabs(path) and "://" not in path else path
