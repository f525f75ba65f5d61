"""The datasets of a run: the ledger of each output folder, which follows from the decisions of windows."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import attrs

from dagflow.errors.shown import without_secrets
from dagflow.ledger import (
    DERIVATIVE,
    ROOT,
    AddData,
    Checkpoint,
    DataFile,
    ExecuteQuery,
    InputSlice,
    KeptFiles,
    Ledger,
    LedgerEntry,
    ResumeState,
    SchemaField,
    SetSchema,
    SetSource,
    SetTransform,
    SourceState,
    Txn,
    schema_hash,
    smallest_watermark,
)
from dagflow.ledger.codec import canonical
from dagflow.ledger.columns import is_widened
from dagflow.ledger.errors import HeadMoved, LedgerCut, LedgerDamaged, WindowPassed
from dagflow.ledger.snapshots import PARTITIONS, sweep_snapshots
from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import INSERTED, RETRACTED
from dagflow.model.operator.protocols import EmitsItems, NamesPosition
from dagflow.model.operator.sink import WindowMark
from dagflow.model.types.forms import schema_of
from dagflow.model.types.plain_data import decode
from dagflow.planning.emission import writes_whole
from dagflow.planning.late_columns import late_columns
from dagflow.planning.plan import Plan
from dagflow.runtime.run_folder.files import Replaces
from dagflow.runtime.run_folder.progress import RunProgress, progress_of
from dagflow.runtime.run_folder.reports import StagedFile
from dagflow.runtime.run_folder.window_log import Decision, WindowLog
from dagflow.runtime.windows.compatibility import shape
from dagflow.runtime.windows.errors import DatasetTwice, ModesDiffer, SchemasDiffer
from dagflow.runtime.windows.marks import disagreement
from dagflow.storage import absolute, explained, hash_bytes, is_object_store
from dagflow.storage.records.errors import PlanMismatch

SOURCE = "dagflow/window"
"""The kind of the sources of root datasets: `value` is the last window in which the input operator had something."""
POSITION = "dagflow/position"
"""The kind of sources that name their position (`NamesPosition`): `value` is that, after the window."""
_ANY = 1 << 62
"""A window behind all that any run has decided."""


@runtime_checkable
class ReadsDataset(Protocol):
    """An input operator that reads a dataset."""

    def dataset_id(self) -> str | None:
        """Return the id of the dataset; None as long as there is no dataset."""

    def input_slice(self) -> InputSlice | None:
        """Return the slice that the current window takes of it, positions included; None as long as there is no dataset."""


@attrs.frozen(kw_only=True)
class OutputDataset:
    """A dataset as the application sees it.

    Attributes:
        folder: the output folder.
        schema: of its rows.
        kept_snapshots: how many replaced snapshots are kept, where windows replace the rows of those before; None: they add rows.
        late: the sink whose columns are known only once readers have agreed on them; None: `schema` is all.
        inputs: the input operators that lead to its sinks, in the order of the DAG.
        datasets: of these, those that read datasets, and the ids of these, None where there is no dataset yet; a dataset whose
            inputs are all such is derived.
    """

    folder: str
    schema: SetSchema
    inputs: tuple[str, ...]
    datasets: Mapping[str, str | None] = attrs.field(factory=dict)
    late: str | None = None
    kept_snapshots: int | None = None

    @property
    def kind(self) -> str:
        """`root` or `derivative`."""
        return DERIVATIVE if self.inputs and len(self.datasets) == len(self.inputs) else ROOT


def datasets_of(plan: Plan) -> Iterator[OutputDataset]:
    """Return the datasets that an application writes. Raises SchemasDiffer, ModesDiffer if sinks of one folder do not agree."""
    sinks: dict[str, list[str]] = {}
    replacing = replacing_sinks(plan)
    for name, node in plan.dag.nodes.items():
        for folder in node.operator.output_folders():
            sinks.setdefault(absolute(folder), []).append(name)
    for folder, names in sinks.items():
        schemas = {name: _schema(plan, name) for name in names}
        first = schemas[names[0]]
        for name, schema in schemas.items():
            if schema != first:
                raise SchemasDiffer(folder=folder, first=names[0], second=name, one=_told(first), other=_told(schema))
        kept = {name: plan.dag.nodes[name].operator.kept_snapshots() for name in names}
        for name in names:
            if (kept[name], replacing.get(name)) != (kept[names[0]], replacing.get(names[0])):
                raise ModesDiffer(folder=folder, first=names[0], second=name)
        above = set(names).union(*map(plan.dag.above, names))
        inputs = tuple(name for name in plan.dag.nodes if name in above and _is_input(plan, name))
        operators = {name: plan.dag.nodes[name].operator for name in inputs}
        ids = {name: operator.dataset_id() for name, operator in operators.items() if isinstance(operator, ReadsDataset)}
        _refuse_twice(folder, ids)
        late = names[0] if not first.schema and plan.dag.nodes[names[0]].operator.written_schema() is None else None
        yield OutputDataset(folder=folder, schema=first, inputs=inputs, datasets=ids, late=late, kept_snapshots=kept[names[0]])


@attrs.frozen
class ContentChange:
    """The change of a dataset's content by a window.

    Attributes:
        added: the files that are published. Where a result has become empty, one without rows says so.
        replaces: whether they take the place of earlier files.
        kept: the earlier files that stay then.
        before: the entry after which the window comes; None: the newest.
    """

    added: list[StagedFile]
    replaces: bool = attrs.field(kw_only=True)
    kept: tuple[KeptFiles, ...] = ()
    before: int | None = None


def replacing_sinks(plan: Plan) -> dict[str, Replaces]:
    """Return the sinks whose files replace those of earlier windows."""
    nodes = plan.dag.nodes
    sinks = {name: node.operator for name, node in nodes.items() if node.operator.kept_snapshots() is not None}
    return {name: _replaces(sink, is_result=writes_whole(plan.written, plan.written.nodes[name])) for name, sink in sinks.items()}


def _replaces(sink: Operator, *, is_result: bool) -> Replaces:
    if not is_result:
        return Replaces.ROWS
    return Replaces.PARTITIONS if sink.replaces_partitions() else Replaces.RESULT


def _refuse_twice(folder: str, ids: Mapping[str, str | None]) -> None:
    first_readers: dict[str, str] = {}
    for name, dataset in ids.items():
        if dataset is not None and first_readers.setdefault(dataset, name) != name:
            raise DatasetTwice(folder=folder, dataset=dataset, first=first_readers[dataset], second=name)


def _is_input(plan: Plan, name: str) -> bool:
    return isinstance(plan.dag.nodes[name].operator, EmitsItems) and not list(plan.dag.upstream(name))


def _schema(plan: Plan, name: str) -> SetSchema:
    operator = plan.dag.nodes[name].operator
    fields, written = operator.written_schema(), operator.written_format()
    if fields is not None:
        return SetSchema(schema=tuple(SchemaField(name=column, type=kind) for column, kind in fields), written=written)
    (sink,) = (sink for _, sink in plan.dag.upstream(name))
    tp = plan.dag.types[sink]
    arriving = None if tp is Any else schema_of(tp)
    kinds = {field.name: str(field.type) for field in arriving or ()}
    kinds |= operator.added_columns() if kinds else {}
    columns = tuple(SchemaField(name=name, type=kind, optional=True) for name, kind in kinds.items())
    return SetSchema(schema=columns, written=written)


def _told(schema: SetSchema) -> str:
    columns = ", ".join(f"{field.name}: {field.type}" for field in schema.schema) or "the columns that arrive"
    return columns if not schema.written else f"{columns} as " + ", ".join(f"{k} {v!r}" for k, v in schema.written.items())


class Datasets:
    """The ledgers of a run, each of which takes one entry for each decided window that advanced it.

    Args:
        app_id: of the application on this run folder, the same over all launches.
        now: what time it is, in seconds since the epoch.
        tried: the stores, by URL, that have passed their trial (`probe`) in this launch.
    """

    def __init__(
        self, plan: Plan, app_id: str, durable: bool, now: Callable[[], float] = time.time, tried: Collection[str] = ()
    ) -> None:
        self._plan = plan
        self.app_id = self._app_id = app_id
        self._durable = durable
        self._now = now
        self._tried = tried
        self._ledgers: dict[str, tuple[OutputDataset, Ledger]] = {}

    def open(
        self, log: WindowLog | None = None, check: Callable[[], None] = lambda: None, progress: RunProgress | None = None
    ) -> None:
        """Begin the ledgers that are not there, and note what has changed of schema, sources and inputs.

        `log`: knows what the ledgers must hold. `check` is called before a change, and may raise. `progress`: of the log, as it
        is now.

        Raises LedgerDamaged where they do not hold what they must, PlanMismatch where they hold more,
        LedgerTaken, LedgerRuleError for changes that a dataset cannot take, SchemasDiffer, StoreRefused.
        """
        for declared in datasets_of(self._plan):
            ledger = Ledger.open(declared.folder, clock=self._now, durable=self._durable)
            if log is not None:
                _compare(log, progress or progress_of(log), ledger, declared.folder, self._app_id)
            ledger.begin(dataset_kind=declared.kind, tried=self._tried)
            head = ledger.known_head()
            assert head is not None
            before = ledger.schema_at(head.seq)
            if declared.late is not None and before is not None:  # what was agreed on stays
                fed = attrs.evolve(declared, schema=attrs.evolve(before, written=declared.schema.written))
            else:
                fed = declared
            if before != fed.schema:
                check()
                ledger.append(fed.schema)
            if fed.kind == DERIVATIVE:
                ids = list(fed.datasets.values())
                known = [each for each in ids if each is not None]
                transform = self._transform(known, fed.datasets)
                now = ledger.transform_at(head.seq)
                # what is not there at the moment may have been read before: it stays declared
                if known and now != transform and (now is None or None not in ids):
                    check()
                    ledger.append(transform)
            else:
                for name in fed.inputs:
                    operator = self._plan.dag.nodes[name].operator
                    source = SetSource(name=name, spec=_spec(operator))
                    if ledger.source_at(head.seq, name) != source:
                        check()
                        ledger.append(source)
            self._ledgers[fed.folder] = (fed, ledger)

    def _plan_hash(self) -> str:
        return hash_bytes(canonical(shape(self._plan)))

    def _transform(self, inputs: Sequence[str], ids: Mapping[str, str | None]) -> SetTransform:
        paths = {each: self._plan.dag.nodes[name].operator.input_paths()[0] for name, each in ids.items() if each is not None}
        return SetTransform(inputs=tuple(inputs), plan_hash=self._plan_hash(), spec={"paths": without_secrets(paths)})

    def heads(self) -> dict[str, str]:
        """Return the newest entry of each ledger, by folder."""
        heads = {folder: ledger.known_head() for folder, (_, ledger) in self._ledgers.items()}
        return {folder: str(head.ref) for folder, head in heads.items() if head is not None}

    def has_window(self, folder: str, window: int) -> bool:
        """Return whether a ledger knows a window of the run, or a later one. Its folder is, or was, an output of the run."""
        known = self._ledgers.get(absolute(folder))
        ledger = known[1] if known is not None else Ledger.open(folder, durable=False)
        return ledger.resume().windows.get(self._app_id, -1) >= window

    def change(self, folder: str, window: int, files: Sequence[StagedFile]) -> ContentChange:
        """Return the change of a folder's content by the files that a window has staged for it."""
        known = self._ledgers.get(absolute(folder))
        return self._change(known[1] if known is not None else Ledger.open(folder, durable=False), window, files)

    def names_after(self, folder: str, change: ContentChange) -> list[str]:
        """Return the names of all files of a folder's content after a change."""
        if change.replaces:
            stay = [file.path for each in change.kept for file in each.files]
        else:
            known = self._ledgers.get(absolute(folder))
            ledger = known[1] if known is not None else Ledger.open(folder, durable=False)
            stay = [file.path for _, _, file in ledger.content_files(change.before)]
        return [*stay, *(file.name for file in change.added)]

    def _change(self, ledger: Ledger, window: int, files: Sequence[StagedFile]) -> ContentChange:
        touched = {file.name.rpartition("/")[0] for file in files if file.is_partition}
        if not touched:
            return ContentChange(list(files), replaces=any(file.replaces for file in files))

        def is_replaced(file: DataFile) -> bool:
            folder = file.path.rpartition("/")[0]
            return folder in touched or not folder.startswith(f"{PARTITIONS}/")

        is_there = ledger.resume().windows.get(self._app_id, -1) >= window
        entry = ledger.find_window(self._app_id, window) if is_there else None
        before = None if entry is None else entry.seq - 1  # the content that the window has found
        kept = ledger.files_kept(is_replaced, before)
        added = [file for file in files if not file.is_marker]
        if not added and kept == ():
            added = list(files[:1])
        return ContentChange(added, replaces=kept is not None, kept=kept or (), before=before)

    def is_replaced(self, folder: str) -> bool:
        """Return whether windows have replaced the rows of a folder: its newest snapshot has a name."""
        if absolute(folder) not in self._ledgers:
            return False
        ledger = self._ledgers[absolute(folder)][1]
        head = ledger.known_head() if is_object_store(folder) else ledger.refresh()  # there, looking costs eight requests
        return head is not None and head.carried.replaced is not None

    def sweep_snapshots(self, folders: Iterable[str]) -> None:
        """Remove the replaced snapshots that the sinks of some folders do not keep."""
        for folder in folders:
            known, ledger = self._ledgers.get(absolute(folder), (None, None))
            if known is not None and ledger is not None and known.kept_snapshots is not None:
                with explained(folder, "removing old snapshots"):
                    sweep_snapshots(ledger, known.kept_snapshots)

    def follow(self, decision: Decision, checkpoint: str, again: bool = False) -> Iterator[tuple[str, LedgerEntry]]:
        """Append to every ledger that a decided window advanced, as often as it takes; return the folders and their entries.

        The files must have their final names. Windows must be followed in their order. `checkpoint`: the hash of the decision.
        `again`: it may have been done before. Raises LedgerError, StorageError.
        """
        for folder, (known, ledger) in list(self._ledgers.items()):
            # In an object store, the end that this launch has written is taken for the end, and files are there that it has just
            # published: looking costs ten requests. Where that was wrong, the entry's name is taken.
            looks = again or not is_object_store(folder)
            try:
                entry = self._append(known, ledger, decision, checkpoint, again, looks=looks)
            except HeadMoved:
                if looks:
                    raise
                entry = self._append(known, ledger, decision, checkpoint, again, looks=True)
            if entry is not None:
                yield folder, entry

    def _append(
        self, known: OutputDataset, ledger: Ledger, decision: Decision, checkpoint: str, again: bool, *, looks: bool
    ) -> LedgerEntry | None:
        """Append the entry of a window to a ledger, and return it; None if the window does not advance it."""
        state = ledger.resume(refresh=looks)
        committed = state.windows.get(self._app_id, -1)
        if again and committed > decision.window:
            return None  # in order: what is not there of this window never was to be
        fed = self._late(known, ledger, decision)
        event = self._event(fed, ledger, state, decision)
        if event is None or (committed < decision.window and not state.is_advanced_by(event)):
            return None
        try:
            return ledger.append(attrs.evolve(event, new_checkpoint=Checkpoint(hash=checkpoint)), check_files=looks)
        except WindowPassed:
            if not again:
                raise
            return None

    def _late(self, fed: OutputDataset, ledger: Ledger, decision: Decision) -> OutputDataset:
        """Return a dataset with the columns that its readers agree on now. New columns are set before the window's rows.

        Columns in the ledger stay, since rows rely on them; types may become wider, or any where the window replaces all rows.
        """
        is_new = any(file.replaces for file in decision.files if absolute(file.folder) == fed.folder)
        by_name = dict((None if fed.late is None else late_columns(self._plan, decision.agreed, fed.late)) or ())
        if by_name and fed.late is not None:
            by_name |= self._plan.dag.nodes[fed.late].operator.added_columns()
        names = {field.name for field in fed.schema.schema}
        columns = [
            attrs.evolve(field, type=by_name[field.name])
            if field.name in by_name and (is_new or is_widened(field.type, by_name[field.name]))
            else field
            for field in fed.schema.schema
        ]
        columns += [SchemaField(name=name, type=kind, optional=True) for name, kind in by_name.items() if name not in names]
        if tuple(columns) != fed.schema.schema:
            is_other = any(
                new.type != old.type and not is_widened(old.type, new.type)
                for old, new in zip(fed.schema.schema, columns, strict=False)
            )
            fed = attrs.evolve(fed, schema=attrs.evolve(fed.schema, schema=tuple(columns), replaces=is_other))
            ledger.append(fed.schema)
            self._ledgers[fed.folder] = (fed, ledger)
        return fed

    def _event(self, fed: OutputDataset, ledger: Ledger, state: ResumeState, decision: Decision) -> AddData | ExecuteQuery | None:
        files = [file for file in decision.files if absolute(file.folder) == fed.folder]
        change = self._change(ledger, decision.window, files)
        rows = state.data_slice(
            [(file.name, file.records, file.size, file.hash) for file in change.added],
            schema_hash=schema_hash(fed.schema),
            replaces=change.replaces,
            kept=change.kept,
        )
        txn = Txn(self._app_id, decision.window, decision.round)
        extra = _extra(decision) | self._changes(fed.folder, decision)
        watermark = smallest_watermark(decision.watermarks.get(name) for name in fed.inputs)
        if fed.kind == DERIVATIVE:
            slices = self._slices(fed, ledger, state, decision)
            if not slices:
                return None
            event = state.execute_query(txn, slices, rows, watermark=watermark, extra=extra)
            # of an input that is still waited for nothing is known, and it is not among the slices
            return event if watermark is not None else attrs.evolve(event, new_watermark=state.watermark)
        advanced = [self._source_state(name, decision) for name in fed.inputs if name in decision.advanced]
        return state.add_data(txn, rows, watermark=watermark, sources=advanced, extra=extra)

    def _changes(self, folder: str, decision: Decision) -> dict[str, Any]:
        """Return how many rows came into the result of a folder, and left it, as a ledger keeps them."""
        nodes = self._plan.dag.nodes
        sinks = [name for name, node in nodes.items() if folder in map(absolute, node.operator.output_folders())]
        sources = {source.operator for sink in sinks for source, _ in self._plan.dag.upstream(sink)} & decision.operators.keys()
        counters = [decision.operators[name].counters for name in sources]
        if not any(INSERTED in each or RETRACTED in each for each in counters):
            return {}
        counts = {"inserted": INSERTED, "retracted": RETRACTED}
        return {"changes": {word: sum(each.get(name, 0) for each in counters) for word, name in counts.items()}}

    def _source_state(self, name: str, decision: Decision) -> SourceState:
        operator = self._plan.dag.nodes[name].operator
        if isinstance(operator, NamesPosition):
            return SourceState(name=name, kind=POSITION, value=operator.position_text(decision.states.get(name, {})))
        return SourceState(name=name, kind=SOURCE, value=str(decision.window))

    def _slices(self, fed: OutputDataset, ledger: Ledger, state: ResumeState, decision: Decision) -> list[InputSlice]:
        """Return the slices that a window took of all declared inputs. New inputs are declared first."""
        taken = {name: decode(decision.inputs[name], InputSlice) for name in fed.datasets if name in decision.inputs}
        ids = {name: each.dataset_id for name, each in taken.items()}
        _refuse_twice(fed.folder, ids)
        head = ledger.head()
        transform = None if head is None else ledger.transform_at(head.seq)
        declared = () if transform is None else transform.inputs
        new = [each for each in ids.values() if each not in declared]
        if new:
            declared = (*declared, *new)
            ledger.append(self._transform(declared, {**fed.datasets, **ids}))
        by_id = {each.dataset_id: each for each in taken.values()}
        return [by_id.get(each) or state.inputs.get(each, InputSlice(dataset_id=each)) for each in declared]


def _spec(operator: Operator) -> dict[str, Any]:
    """Return the description of an input operator that a ledger keeps."""
    return {"operator": type(operator).__qualname__, "paths": without_secrets(operator.input_paths())}


def _extra(decision: Decision) -> dict[str, Any]:
    """Return the verdicts on a window's rejected records as a ledger keeps them: without floats."""
    results = [
        {
            "operator": result.operator,
            "name": result.name,
            "records": result.records,
            "rejected": result.rejected,
            "limit": result.limit,
            "status": result.status,
        }
        for result in decision.expectations
    ]
    return {"expectations": results} if results else {}


def _compare(log: WindowLog, progress: RunProgress, ledger: Ledger, folder: str, app_id: str) -> None:
    """Compare a ledger with the window log. An old copy of one of them would commit rows twice, or lose them silently.

    Raises LedgerDamaged when windows that are done have no entry, PlanMismatch when the ledger has windows of which the log knows
    nothing.
    """

    def read(window: int) -> Decision | None:
        return progress.last_decision if window == progress.newest else log.read_decision(window)

    committed = _check_end(log, progress.marked, read, ledger, folder, app_id, progress.newest)
    if committed > progress.newest:
        here = f"the log ends with window {progress.newest}" if progress.newest >= 0 else "the log is empty"
        raise PlanMismatch(log.store.url, f"{here}, but the ledger of {folder} has window {committed} of this run")


def check_end(log: WindowLog, folder: str, app_id: str) -> int:
    """Return the newest window in the ledger of a folder, -1 for none. Raises LedgerDamaged if a window that is done has none."""
    marked = log.windows("done")
    # its end is read after the log: a run may be going on
    return _check_end(log, marked, log.read_decision, Ledger.open(folder, durable=False), folder, app_id, _ANY)


def _check_end(
    log: WindowLog,
    marked: Sequence[int],
    read: Callable[[int], Decision | None],
    ledger: Ledger,
    folder: str,
    app_id: str,
    newest: int,
) -> int:
    """Return the newest window in a ledger, whose newest entry is its mark. Raises LedgerDamaged if the log disagrees.

    `newest`: the newest window that is decided.
    """
    expected = next((window for window in reversed(marked) if _has_rows(read(window), folder)), -1)
    mark = _mark_of(ledger, app_id)
    difference = disagreement(log, mark, expected=expected, newest=newest)
    if difference == "store is older":
        head = ledger.head()
        if head is None:
            raise LedgerDamaged(folder, 0, "the ledger is gone, but the run has committed windows to it")
        reason = f"it is the newest, but the run has committed window {expected} after it: the end of the ledger is lost"
        raise LedgerCut(folder, head.seq, reason)
    if difference == "histories differ":
        at = ledger.resume(refresh=False).at
        assert at is not None
        event = ledger.entry(at.seq).data
        assert event is not None
        assert event.new_checkpoint is not None
        decided = f"the decision of window {mark.number} has the hash {log.decision_hash(mark.number)}"
        raise LedgerDamaged(ledger.place, at.seq, f"its checkpoint is {event.new_checkpoint.hash}, {decided}")
    return mark.number


def _mark_of(ledger: Ledger, app_id: str) -> WindowMark:
    """Return the mark of a run in a ledger. Only the newest data entry says from which decision it was made."""
    state = ledger.resume()
    committed = state.windows.get(app_id, -1)
    event = None if state.at is None else ledger.entry(state.at.seq).data
    if event is None or event.new_checkpoint is None or event.txn.app_id != app_id or event.new_checkpoint.size:
        return WindowMark(committed)  # earlier versions named a record of their own
    return WindowMark.of(event.txn.window_id, event.new_checkpoint.hash)


def _has_rows(decision: Decision | None, folder: str) -> bool:
    return decision is not None and any(file.records and absolute(file.folder) == folder for file in decision.files)
