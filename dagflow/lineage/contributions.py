"""The records that a row behind an exchange was made of: windows are run again, level by level, from the row up to the sources.

The operator that made the row is found in the row's task: the last one before the sink that keeps something, or that records
reach over an exchange. Which rows of its input it made the row of, its key says, or the row itself (`Wanted`). Then the tasks
that emit such rows run again, and so on. Operators in between are functions of their rows: a chunk after which a wanted row
arrives is handed on once more in halves, until the record is found.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import attrs

from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication
from dagflow.lineage.errors import BehindExchange
from dagflow.lineage.history import FileOrigin, Item, PastWindow, stage_of, states_kept
from dagflow.lineage.row_search import (
    Origin,
    Watch,
    leading_to,
    origin_of,
    part_of,
    position_of,
    run_again,
    stages_leading_to,
    unwatched,
)
from dagflow.local.spool import Spool
from dagflow.model.graph.dag import PortName
from dagflow.model.graph.partitioning import key_of_port
from dagflow.model.operator.ports import input_ports
from dagflow.model.operator.protocols import ComputesKey, GroupsByTime, LocatesRows, NamesSources
from dagflow.model.operator.state import state_fields
from dagflow.model.types.forms import to_records
from dagflow.model.types.keys import Key
from dagflow.model.types.records import ReaderRecord
from dagflow.planning.plan import Plan, Stage
from dagflow.runtime.stage.program import TaskSpec
from dagflow.runtime.task.compile import loaded, pickled, stage_program
from dagflow.runtime.task.flow import Flow
from dagflow.runtime.windows.jobs import levels_of
from dagflow.state.task_states import declared_states

Chunk = Any
"""A list of records, or a batch."""
PLACES = 10
"""The places of so many records are found."""
_NUMBER = "$row"
"""The column of the numbers of rows, while an operator computes columns of its key."""
MAX_KEYS = 1 << 20
"""The most rows whose own sources are looked for; where there are more, all rows count as theirs."""


@attrs.frozen(kw_only=True)
class Contribution:
    """The records of one file, or of another source, of which a row was made.

    Attributes:
        window: in which they were read; `head`: by which operator.
        path: the file; None for a source without files.
        items: the work items that they were in, blocks of a file mostly.
        rows: their number.
        positions: where the first of them begin, as far as their reader says so.
    """

    window: int
    head: str
    path: str | None
    items: tuple[Item, ...]
    rows: int
    positions: tuple[Any, ...] = ()


@attrs.frozen
class Wanted:
    """The rows of an input of which some rows of the output were made.

    Attributes:
        values: what they have for `of`; None: all rows are.
        of: makes the values of a chunk's rows.
    """

    values: frozenset[Hashable] | None = None
    of: Callable[[Chunk], list[Hashable]] = lambda chunk: [None] * len(chunk)

    def places(self, chunk: Chunk) -> list[int]:
        """Return the numbers of the wanted rows of a chunk."""
        if self.values is None:
            return list(range(len(chunk)))
        return [number for number, value in enumerate(self.of(chunk)) if value in self.values]


@attrs.define
class Contributions:
    """The search for the records that a row was made of.

    Attributes:
        built: the application.
        past: the row's window; `plan`: that of the application then.
        base: the folder where it ran.
        remarks: what may make the answer less than certain.
    """

    built: LoadedApplication
    past: PastWindow
    plan: Plan
    base: str
    remarks: list[str] = attrs.field(factory=list)
    _parts: dict[tuple[int, str, str], Contribution] = attrs.field(factory=dict, init=False)
    _places: int = attrs.field(default=0, init=False)
    _read: set[str] = attrs.field(factory=set, init=False)
    _plans: dict[str, Plan] = attrs.field(factory=dict, init=False)

    def of_row(self, written: FileOrigin, row: int) -> tuple[Contribution, ...]:
        """Return what a row of a file was made of. Raises BehindExchange, and what running the application again raises."""
        self._plans[self.past.launch] = self.plan
        stage, partition = stage_of(self.plan, written, self.past.window)
        head, receives = self._head(stage, written.operator, is_sink=True)
        origin = self._row_of(stage, partition, head, receives, written, row)
        if origin is None or origin.emitted is None or origin.emitted.record is None:
            raise BehindExchange(written.operator, written.task or "")
        one = origin.emitted.record
        rows = {self.past.window: [one if _is_batch(one) else [one]]}
        self._behind(head, receives, rows)
        if not self._parts:
            raise BehindExchange(written.operator, written.task or "")
        return tuple(part for _, part in sorted(self._parts.items()))

    def _head(self, stage: Stage, operator: str, *, is_sink: bool = False) -> tuple[str, bool]:
        """Return the operator from which records come to an operator of a stage, and whether it only passes them on."""
        while True:
            node = self.plan.dag.nodes[operator]
            into = list(self.plan.dag.upstream(operator))
            if (state_fields(type(node.operator)) and not is_sink) or (stage.level == 0 and operator == stage.head):
                return operator, False
            if any(sink in self.plan.exchanges for _, sink in into) or len(into) != 1:
                return operator, True
            operator, is_sink = into[0][0].operator, False

    def _row_of(self, stage: Stage, partition: int, head: str, receives: bool, written: FileOrigin, row: int) -> Origin | None:
        program = pickled(stage_program(self.plan, stage.name), self.plan, travels=False)
        spec = self.past.task(self.plan, stage, partition, self.base)
        states = self.past.states(self.plan, stage, spec)
        with Spool(keeps=True) as spool, states_kept(spec):
            self._run_below(self.past, self.plan, stage, written.operator, spool)
            incoming = functools.partial(spool.rows, spec.layout.level, spec.layout.place)
            return origin_of(program, spec, states, head=head, written=written, row=row, receives=receives, incoming=incoming)

    def _run_below(self, past: PastWindow, plan: Plan, stage: Stage, operator: str, spool: Spool) -> None:
        """Run the tasks of a window again that send something to a stage, for an operator of it."""
        below = [(each, program) for each, program in stages_leading_to(plan, [operator]) if each.level < stage.level]
        for each, program in below:
            for spec in past.tasks(plan, each, self.base):
                spool.transform(plan, spec)
                self._run(past, plan, each, program, spec, spool)
        for first in islice(past.tasks(plan, stage, self.base), 1):
            spool.transform(plan, first)

    def _run(
        self,
        past: PastWindow,
        plan: Plan,
        stage: Stage,
        program: bytes,
        spec: TaskSpec,
        spool: Spool,
        watch: Watch = unwatched,
    ) -> None:
        """Run a task again. `watch` listens to its flow, and returns what is told the numbers of work items."""
        channels = spool.channels(spec, levels_of(plan))
        with states_kept(spec):
            run_again(loaded(program), spec, past.states(plan, stage, spec), channels, watch)

    def _behind(self, operator: str, receives: bool, rows: Mapping[int, list[Chunk]]) -> None:
        """Find what rows were made of that an operator has emitted in windows, or received."""
        node = self.plan.dag.nodes[operator]
        windows = self._windows() if not receives and declared_states(node.operator) else None
        for source, sink in self.plan.dag.upstream(operator):
            if source.operator in self.plan.driver:
                continue
            if windows is not None:
                all_rows = [chunk for chunks in rows.values() for chunk in chunks]
                one = self._wanted(operator, sink.port, all_rows, receives)
                wanted = dict.fromkeys(windows, one)
            else:
                wanted = {window: self._wanted(operator, sink.port, chunks, receives) for window, chunks in rows.items()}
            self._arriving(source, wanted)

    def _windows(self) -> list[int]:
        """Return the row's window and all before it, as far as they are kept."""
        kept = sorted(window for window in self.past.log.windows("plan") if window <= self.past.window)
        if kept and kept[0]:
            self.remarks.append(f"windows before {kept[0]} are no longer kept, and count nothing (retain_windows)")
        return kept

    def _wanted(self, operator: str, port: str, rows: Sequence[Chunk], receives: bool) -> Wanted:
        """Return the rows of an input of which an operator made some rows."""
        node = self.plan.dag.nodes[operator]
        if sum(map(len, rows)) > MAX_KEYS:
            return self._all(operator, f"more than {MAX_KEYS:,} rows")
        if receives or node.operator.selects_rows:
            return Wanted(frozenset(value for chunk in rows for value in _whole(chunk)), _whole)
        if isinstance(node.operator, NamesSources) and (named := _named(node.operator, port, rows)) is not None:
            return named
        key = self._key(operator, port)
        if key is None:
            return self._all(operator, "its input has no key")
        if key.function is None:
            columns = [_columns(chunk, key.columns) for chunk in rows]
            if all(each is not None for each in columns):
                values = frozenset(value for each in columns for value in each or ())
                return Wanted(values, lambda chunk: _columns(chunk, key.columns) or [None] * len(chunk))
        keys = [value for chunk in rows for value in _columns(chunk, ("key",)) or [None]]
        if keys == [(None,)] * len(keys):  # of all rows
            return Wanted()
        if None in keys:
            return self._all(operator, f"its rows do not have its key ({key})")
        if isinstance(node.operator, GroupsByTime) and node.operator.groups_by_time:
            self.remarks.append(f"{operator!r} groups by time, too: records of its key in other time windows count as well")
        tp = self.plan.dag.types[PortName(operator, port)]
        own = frozenset(map(_alone, keys))
        return Wanted(own, lambda chunk: [_canonical(_alone(value)) for value in _keys(chunk, key, tp)])

    def _key(self, operator: str, port: str) -> Key | None:
        """Return the key of an input port; of a partial aggregation, that of the operator behind it."""
        if (key := key_of_port(self.plan.dag.nodes[operator], port)) is not None:
            return key
        sinks = [sink for stream in self.plan.dag.streams.values() if stream.source.operator == operator for sink in stream.sinks]
        for sink in sinks:
            behind = self.plan.dag.nodes[sink.operator]
            for name in input_ports(type(behind.operator)):
                partial = behind.operator.partial_aggregation(name)
                if partial is not None and partial[1] == sink.port:
                    return key_of_port(behind, name)
        return None

    def _all(self, operator: str, why: str) -> Wanted:
        self.remarks.append(f"all records that reach {operator!r} count: {why}")
        return Wanted()

    def _arriving(self, port: PortName, wanted: Mapping[int, Wanted]) -> None:
        """Find what the wanted rows were made of that came from an output port, and continue from there."""
        stage = self.plan.stage_of(port.operator)
        head, receives = self._head(stage, port.operator)
        if stage.level == 0 and head == stage.head:
            if head in self._read:
                self.remarks.append(f"records of {head!r} lead to the row in several ways, and count once for each")
            self._read.add(head)
        chunks: dict[int, list[Chunk]] = {}
        for window, some in sorted(wanted.items()):
            past = self.past if window == self.past.window else self.past.other(window)
            if past is None:  # its records go while we look
                continue
            try:
                rows = self._of_window(past, stage, head, receives, port, some)
            except DagflowError as error:
                self.remarks.append(f"window {window} could not be run again, and counts nothing: {str(error).splitlines()[0]}")
                continue
            if rows:
                chunks[window] = rows
        if not chunks:
            return
        if stage.level or head != stage.head:
            self._behind(head, receives, chunks if receives else _standing(chunks))

    def _of_window(
        self, past: PastWindow, stage: Stage, head: str, receives: bool, port: PortName, wanted: Wanted
    ) -> list[Chunk]:
        """Run the tasks of a stage again. Return the rows of the head from which wanted ones came, unless it reads."""
        if (plan := self._plans.get(past.launch)) is None:
            plan = self._plans[past.launch] = past.planned(self.built)
        past.check_application(self.built, plan)
        program = pickled(leading_to(stage_program(plan, stage.name), [port.operator]), plan, travels=False)
        is_reader = stage.level == 0 and head == stage.head
        rows: list[Chunk] = []
        with Spool() as spool:
            if stage.level:
                self._run_below(past, plan, stage, port.operator, spool)
            for spec in past.tasks(plan, stage, self.base):
                watching = _Watch(head, receives, port, wanted, is_reader, PLACES - self._places)
                self._run(past, plan, stage, program, spec, spool, watching.watch)
                rows += watching.rows
                if is_reader:
                    self._note(past, head, past.items(stage.head, spec.partition), watching)
        return rows

    def _note(self, past: PastWindow, head: str, items: Sequence[Item], watching: _Watch) -> None:
        for number, count in sorted(watching.counts.items()):
            item, positions = items[number], tuple(watching.positions.get(number, ()))
            self._places += len(positions)
            key = (past.window, head, item.path or "")
            first = Contribution(window=past.window, head=head, path=item.path, items=(), rows=0)
            known = self._parts.get(key, first)
            self._parts[key] = attrs.evolve(
                known,
                items=known.items if item in known.items else (*known.items, item),
                rows=known.rows + count,
                positions=tuple(dict.fromkeys((*known.positions, *positions))),
            )


class _Watch:
    """Listens to a task: which records of its head lead to wanted rows at a port.

    Attributes:
        rows: the records, with their signs where they are taken back, if the head is an operator between exchanges.
        counts: the number of wanted rows, by work item; `positions`: of the first records.
    """

    def __init__(self, head: str, receives: bool, port: PortName, wanted: Wanted, is_reader: bool, places: int) -> None:
        self._head, self._receives, self._port, self._wanted = head, receives, port, wanted
        self._is_reader, self._left = is_reader, places
        self._item = 0
        self._arrived = 0
        self.rows: list[Chunk] = []
        self.counts: Counter[int] = Counter()
        self.positions: dict[int, list[Any]] = {}
        self._place: Callable[[int], Any] | None = None

    def watch(self, flow: Flow) -> Callable[[int | None], None]:
        """Listen to a flow; return the function that is told the number of each work item."""
        node = flow.nodes[self._head]
        self._place = node.operator.origin_of if isinstance(node.operator, LocatesRows) else None
        outlet = flow.nodes[self._port.operator].outlets[self._port.port]
        if self._receives:
            flow.tap(emitted={}, received={self._head: self._parts})
        else:
            flow.tap(emitted={self._head: self._parts}, received={})
        if self._head == self._port.operator and not self._receives:
            outlet.tap = self._parts_that_arrive
        else:
            outlet.tap = self._arrivals
        return self._begin

    def _begin(self, number: int | None) -> None:
        self._item = self._item if number is None else number

    def _arrivals(self, chunk: Chunk, retracts: bool) -> Iterator[Chunk]:
        self._arrived += len(self._wanted.places(chunk))
        yield chunk

    def _parts_that_arrive(self, chunk: Chunk, retracts: bool) -> Iterator[Chunk]:
        for part in self._parts(chunk, retracts):
            yield from self._arrivals(part, retracts)

    def _parts(self, chunk: Chunk, retracts: bool) -> Iterator[Chunk]:
        """Hand on a chunk, and again in halves while wanted rows arrive after it."""
        before = self._arrived
        yield chunk
        count, self._arrived = self._arrived - before, before
        if not count:
            return
        if self._is_reader:
            self.counts[self._item] += count
            if self._left <= 0:
                return
        yield from self._halves(chunk, 0, len(chunk), retracts)

    def _halves(self, chunk: Chunk, start: int, stop: int, retracts: bool) -> Iterator[Chunk]:
        if stop - start == 1:
            self._found(part_of(chunk, start, stop), start, retracts)
            return
        middle = (start + stop) // 2
        for low, high in ((start, middle), (middle, stop)):
            if self._is_reader and self._left <= 0:
                return
            before = self._arrived
            yield part_of(chunk, low, high)
            count, self._arrived = self._arrived - before, before
            if count:
                yield from self._halves(chunk, low, high, retracts)

    def _found(self, record: Chunk, row: int, retracts: bool) -> None:
        if not self._is_reader:
            self.rows.append(_Taken(record) if retracts else record)
            return
        self._left -= 1
        known = position_of(record[0] if isinstance(record, list) else record)
        place = known[1] if known is not None else None
        if place is None and self._place is not None and not isinstance(record, list):
            origin = self._place(row)
            place = None if origin is None else origin.position
        if place is not None:
            self.positions.setdefault(self._item, []).append(place)


@attrs.frozen
class _Taken:
    """A record that is taken back."""

    record: Chunk


def _standing(rows: Mapping[int, list[Chunk]]) -> dict[int, list[Chunk]]:
    """Return the rows that were not taken back in a later window, or the same one."""
    counts: Counter[Hashable] = Counter()
    for chunks in rows.values():
        for chunk in chunks:
            sign, record = (-1, chunk.record) if isinstance(chunk, _Taken) else (1, chunk)
            counts[_whole(record)[0]] += sign
    standing = {
        window: [chunk for chunk in chunks if not isinstance(chunk, _Taken) and counts[_whole(chunk)[0]] > 0]
        for window, chunks in rows.items()
    }
    return {window: chunks for window, chunks in standing.items() if chunks}


def _is_batch(record: Any) -> bool:
    import pyarrow as pa

    return isinstance(record, pa.RecordBatch)


def _row(record: Any) -> Mapping[str, Any] | None:
    """Return the fields of a record by their names; None for one without fields."""
    if isinstance(record, ReaderRecord):
        return record._asdict()
    if isinstance(record, Mapping):
        return record
    if attrs.has(type(record)):
        return {field.name: getattr(record, field.name) for field in attrs.fields(type(record))}
    return None


def _columns(chunk: Chunk, names: Collection[str]) -> list[Hashable] | None:
    """Return the values of columns for each row of a chunk; None where it does not have them."""
    if _is_batch(chunk):
        if not set(names) <= set(chunk.schema.names):
            return None
        columns = [[_canonical(value) for value in chunk.column(name).to_pylist()] for name in names]
        return list(zip(*columns, strict=True)) if columns else [() for _ in range(len(chunk))]
    values: list[Hashable] = []
    for record in chunk:
        row = _row(record)
        try:
            parts = [getattr(record, name) if row is None or name not in row else row[name] for name in names]
        except AttributeError:
            return None
        values.append(tuple(map(_canonical, parts)))
    return values


def _whole(chunk: Chunk) -> list[Hashable]:
    """Return a value for each row of a chunk: equal for rows with the same columns."""
    if _is_batch(chunk):
        return _columns(chunk, sorted(chunk.schema.names)) or []
    rows = [_row(record) for record in chunk]
    return [
        _canonical(record) if row is None else tuple(_canonical(row[name]) for name in sorted(row))
        for record, row in zip(chunk, rows, strict=True)
    ]


def _named(operator: NamesSources, port: str, rows: Sequence[Chunk]) -> Wanted | None:
    """Return the rows of an input whose columns have the values of an operator's own rows; None where it does not say which."""
    import pyarrow as pa

    named_rows: list[Mapping[str, Any]] = []
    for chunk in rows:
        named_rows += chunk.to_pylist() if _is_batch(chunk) else [row for record in chunk if (row := _row(record)) is not None]
    made = tuple(named_rows[0]) if named_rows else ()
    if operator.source_columns(port, (), made) is None:
        return None
    known: dict[tuple[str, ...], tuple[list[str], frozenset[Hashable]]] = {}

    def of(chunk: Chunk) -> list[Hashable]:
        if not isinstance(operator, ComputesKey) or not len(chunk):
            return matching(chunk)
        rows = chunk if _is_batch(chunk) else pa.RecordBatch.from_pylist([dict(_row(record) or {}) for record in chunk])
        try:
            grouped = operator.with_key(port, rows.append_column(_NUMBER, pa.array(range(len(rows)))))
            if grouped is None:
                return matching(chunk)
            inside = [zip(some.column(_NUMBER).to_pylist(), matching(some), strict=True) for some in grouped]
        except ValueError:  # for a row that is in no group
            return [False] if len(rows) == 1 else [each for at in range(len(rows)) for each in of(part_of(chunk, at, at + 1))]
        numbers = {number for some in inside for number, is_wanted in some if is_wanted is True}
        return [number in numbers for number in range(len(rows))]

    def matching(chunk: Chunk) -> list[Hashable]:
        columns = tuple(chunk.schema.names) if _is_batch(chunk) else tuple(_row(chunk[0]) or ()) if chunk else ()
        if columns not in known:
            same = operator.source_columns(port, columns, made) or {}
            known[columns] = list(same), frozenset(tuple(_canonical(each[name]) for name in same.values()) for each in named_rows)
        names, values = known[columns]
        return [value in values for value in _columns(chunk, names) or ()]

    return Wanted(frozenset([True]), of) if named_rows else None


def _keys(chunk: Chunk, key: Key, tp: Any) -> list[Any]:
    if not _is_batch(chunk):
        return list(map(key.of_record(tp), chunk))
    if key.function is None:
        return list(_columns(chunk, key.columns) or ())
    return list(map(key.function, to_records(chunk, tp)))


def _alone(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _canonical(value: Any) -> Hashable:
    """Return a hashable value that is the same for equal ones; NaN is equal to itself."""
    if isinstance(value, float) and value != value:
        return ("NaN",)
    if isinstance(value, Mapping):
        return tuple(sorted((str(name), _canonical(each)) for name, each in value.items()))
    if isinstance(value, list | tuple):
        return tuple(map(_canonical, value))
    return value if isinstance(value, Hashable) else repr(value)
