"""Runs a task again until it writes one row, and finds the record that the reader emitted for it."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import attrs

from dagflow.lineage.history import FileOrigin
from dagflow.model.operator.protocols import LocatesRows
from dagflow.model.operator.state import state_fields
from dagflow.model.types.records import BLOCK_ID, POSITION, ReaderRecord
from dagflow.planning.plan import Plan, Stage
from dagflow.runtime.exchange.channels import TaskChannels
from dagflow.runtime.exchange.rows import Row
from dagflow.runtime.stage.failure import reported_errors
from dagflow.runtime.stage.program import Program, TaskSpec
from dagflow.runtime.task.compile import loaded, pickled, stage_program
from dagflow.runtime.task.flow import Flow
from dagflow.runtime.task.recording_files import RecordedFile, RecordingFiles
from dagflow.scan.bad_rows import RowOrigin
from dagflow.state.task_states import TaskStates
from dagflow.storage import new_hash

PIECE = 256
"""The records of a piece: a chunk is narrowed down to pieces, then to single records."""


@attrs.frozen
class EmittedChunk:
    """A chunk, a piece of one or a record that the head of a stage emitted.

    Attributes:
        item: the number of the work item.
        path: which chunk it was, which piece of that, which record of the piece; as far as it was taken apart.
        record: of a single record, the record itself: an object, or a batch of one row.
        place: of a row of a batch, where it stands, if the head knows (`origin_of(row)`).
    """

    item: int
    path: tuple[int, ...] = ()
    record: Any = None
    place: RowOrigin | None = None


@attrs.frozen(kw_only=True)
class Origin:
    """The source of a row.

    Attributes:
        emitted: the record of which it was made; None when it was made of several, or that is not certain.
        arrived: what arrived at the sink.
        is_uncertain: the sink counted the row together with others, and did not write all that had arrived.
        keeping: operators between reader and sink that keep something between records: earlier ones may have a part in it.
    """

    emitted: EmittedChunk | None
    arrived: Any = None
    is_uncertain: bool = False
    keeping: tuple[str, ...] = ()


def origin_of(
    program: bytes,
    spec: TaskSpec,
    states: TaskStates,
    *,
    head: str,
    written: FileOrigin,
    row: int,
    receives: bool = False,
    incoming: Callable[[], Iterable[Row]] = tuple,
) -> Origin | None:
    """Return the source of a row; None if the task, run again, does not write it.

    The task runs in chunks as always, which finds the chunk of the record; then it runs that chunk in pieces, then one piece
    record by record. So it takes three times as long as the task took up to the row.

    Args:
        program: of the task's stage.
        spec: the task.
        states: those that its operators begin with.
        head: the operator whose records are looked at: the one that gets the work items, or one behind an exchange.
        written: the file, by who wrote it.
        row: which row of that file, from 0.
        receives: the records that the head receives are looked at, not those that it emits.
        incoming: returns the rows that came over exchanges.

    Raises DagflowError, as the task would.
    """
    path: tuple[int, ...] = ()
    while True:
        leading = leading_to(loaded(program), [written.operator])
        run = _Run(leading, head, written.operator, (written.number, row), path, receives=receives)
        origin = run.until_found(spec, states, incoming())
        if origin is None or origin.emitted is None or origin.emitted.record is not None:
            return origin
        if origin.emitted.path[: len(path)] != path or len(origin.emitted.path) <= len(path):
            return None if origin.emitted.path else origin  # it did not do the same twice; or the row came before any record
        path = origin.emitted.path


def unwatched(flow: Flow) -> Callable[[int | None], None]:
    """Listen to nothing."""
    return lambda number: None


Watch = Callable[[Flow], Callable[[int | None], None]]
"""Listens to a flow. What it returns is called with the number of each work item before it, and with None behind the last."""


def run_again(
    program: Program,
    spec: TaskSpec,
    states: TaskStates,
    channels: TaskChannels,
    watch: Watch = unwatched,
    files: RecordingFiles | None = None,
) -> None:
    """Run a task in this process. Raises DagflowError, as the task would."""
    flow = Flow(program, spec, files or RecordingFiles(), send=channels.send)
    with reported_errors():
        flow.restore(states)
        begin = watch(flow)
        with flow, flow.window(spec.window):
            for number, (item, part) in enumerate(spec.work.with_parts()):
                begin(number)
                flow.deliver_item(item, flow.decoded(item), part)
            begin(None)
            flow.cursor.move(None, None)
            flow.deliver_rows(channels.incoming)


def hash_of(program: bytes, spec: TaskSpec, states: TaskStates, *, written: FileOrigin, algorithm: str) -> str | None:
    """Return the hash of a file that a task writes when all of it runs again; None if it does not write that file.

    Args as for `origin_of`; `algorithm`: as in the hash that was committed. Raises DagflowError, as the task would.
    """
    hashes = defaultdict[RecordedFile, Any](functools.partial(new_hash, algorithm))
    files = RecordingFiles(on_write=lambda file, data: hashes[file].update(data))
    run_again(leading_to(loaded(program), [written.operator]), spec, states, TaskChannels(), files=files)
    made = files.files_of(written.operator)
    return f"{algorithm}:{hashes[made[written.number]].hexdigest()}" if written.number < len(made) else None


class _RowWritten(BaseException):
    """The row was written. Not an `Exception`: user code must not catch it."""

    def __init__(self, arrived: _Arrival | None) -> None:
        super().__init__()
        self.arrived = arrived


@attrs.define
class _Arrival:
    """Records of one emitted chunk that have arrived at the sink; `record`: the last one, where it came alone."""

    emitted: EmittedChunk | None
    count: int
    record: Any = None


class _Run:
    """A task that runs until a row is written.

    Args:
        program: only the operators that lead to the sink; used up.
        head: the operator that gets the work items.
        sink: the operator that writes the file.
        wanted: which of its files, and which row.
        path: which chunk the head hands on in pieces, and which of these pieces record by record.
    """

    def __init__(
        self, program: Program, head: str, sink: str, wanted: tuple[int, int], path: tuple[int, ...], *, receives: bool
    ) -> None:
        self._program = program
        self._receives = receives
        self._head = head
        self._sink = sink
        self._wanted = wanted
        self._path = path
        self._chunks = 0
        self._place: Callable[[int], RowOrigin] | None = None
        self._item = 0
        self._emitted: EmittedChunk | None = None
        self._arriving: _Arrival | None = None
        self._uncounted: list[_Arrival] = []  # what has arrived at the sink since it last counted rows

    def until_found(self, spec: TaskSpec, states: TaskStates, incoming: Iterable[Row]) -> Origin | None:
        """Run the task, and return the records that were handed on when the row was written."""
        try:
            run_again(self._program, spec, states, TaskChannels(incoming), self._watch, RecordingFiles(on_records=self._count))
        except _RowWritten as found:
            if found.arrived is None:
                return Origin(emitted=None, is_uncertain=True)
            return Origin(emitted=found.arrived.emitted, arrived=found.arrived.record, keeping=self._keeping())
        return None

    def _keeping(self) -> tuple[str, ...]:
        between = [o for o in self._program.operators if o.name not in (self._head, self._sink)]
        return tuple(o.name for o in between if state_fields(type(o.operator)))

    def _begin(self, number: int | None) -> None:
        self._item = self._item if number is None else number
        self._emitted = None if number is None else EmittedChunk(number)

    def _watch(self, flow: Flow) -> Callable[[int | None], None]:
        """Listen between the head and the operators behind it, and before the sink."""
        head = flow.nodes[self._head].operator
        self._place = head.origin_of if isinstance(head, LocatesRows) else None
        if not self._receives:
            flow.tap(emitted={self._head: self._portions}, received={self._sink: self._arrivals})
        elif self._head == self._sink:
            flow.tap(emitted={}, received={self._head: self._arrivals_of_portions})
        else:
            flow.tap(emitted={}, received={self._head: self._portions, self._sink: self._arrivals})
        return self._begin

    def _arrivals_of_portions(self, chunk: Any, retracts: bool) -> Iterator[Any]:
        for part in self._portions(chunk, retracts):
            yield from self._arrivals(part, retracts)

    def _portions(self, chunk: Any, retracts: bool) -> Iterator[Any]:
        """Hand on a chunk of the head: as a whole, or taken apart as far as the path says."""
        number, self._chunks = self._chunks, self._chunks + 1
        row = 0
        for path, part in _taken_apart(chunk, (number,), self._path):
            single = _only(part) if _size(part) == 1 else None
            place = self._place(row) if self._place is not None and single is not None and not isinstance(chunk, list) else None
            self._emitted = EmittedChunk(self._item, path, single, place)
            yield part
            row += _size(part)
        self._emitted = EmittedChunk(self._item, (number,))

    def _arrivals(self, chunk: Any, retracts: bool) -> Iterator[Any]:
        """Note records that arrive at the sink; the results of a single record one by one."""
        is_single = self._emitted is not None and self._emitted.record is not None
        for part in _parts(chunk, 1) if is_single else (chunk,):
            last = self._uncounted[-1] if self._uncounted else None
            if last is not None and last.emitted is self._emitted and not is_single:
                last.count += _size(part)
            else:
                self._uncounted.append(_Arrival(self._emitted, _size(part), _only(part) if is_single else None))
            self._arriving = self._uncounted[-1]
            yield part
            self._arriving = None

    def _count(self, file: RecordedFile, rows: int) -> None:
        """Note that the sink has written a number of rows to a file."""
        if file.operator != self._sink:
            return
        wanted, row = self._wanted
        if file.number == wanted and file.rows <= row < file.rows + rows:
            raise _RowWritten(self._made_of(row - file.rows, rows))
        self._uncounted.clear()

    def _made_of(self, row: int, rows: int) -> _Arrival | None:
        since = self._uncounted
        if rows == sum(arrived.count for arrived in since):  # a row for each
            for arrived in since:
                if row < arrived.count:
                    return arrived
                row -= arrived.count
        if since and all(arrived.emitted is since[0].emitted for arrived in since):  # all of one
            return attrs.evolve(since[0], record=since[0].record if len(since) == 1 else None)
        if self._arriving is not None and rows <= self._arriving.count:  # the sink counts at once: what came before was dropped
            return self._arriving
        return None


def leading_to(program: Program, sinks: Iterable[str]) -> Program:
    """Only the operators that lead to some sinks, of this stage or of others; the others' records go nowhere."""
    kept = set(sinks)
    for item in reversed(program.operators):
        is_sending = any(each.source[0] == item.name and each.sink[0] in kept for each in program.sends)
        if is_sending or any(name in kept for out in item.outputs.values() for name, _ in out.sinks):
            kept.add(item.name)
    leading = []
    for item in program.operators:
        if item.name in kept:
            outputs = {
                port: attrs.evolve(out, sinks=tuple(s for s in out.sinks if s[0] in kept)) for port, out in item.outputs.items()
            }
            leading.append(attrs.evolve(item, outputs=outputs))
    sends = tuple(each for each in program.sends if each.sink[0] in kept)
    receives = {tag: to for tag, to in program.receives.items() if to[0] in kept}
    return Program(program.stage, tuple(leading), sends, receives)


def stages_leading_to(plan: Plan, sinks: Iterable[str]) -> list[tuple[Stage, bytes]]:
    """Return the programs of the stages that lead to some sinks, lower levels first."""
    leading: list[tuple[Stage, bytes]] = []
    kept = set(sinks)
    for stage in reversed(plan.stages):
        program = leading_to(stage_program(plan, stage.name), kept)
        kept |= {item.name for item in program.operators}
        if program.operators:
            leading.append((stage, pickled(program, plan, travels=False)))
    return leading[::-1]


def position_of(record: Any) -> tuple[int, int] | None:
    """Return the block and the position of a record that has them; a row of a batch may have them as columns."""
    if isinstance(record, ReaderRecord):
        return record.block_id, record.position
    names = getattr(getattr(record, "schema", None), "names", None)
    if names is not None and {BLOCK_ID, POSITION} <= set(names):
        return record.column(BLOCK_ID)[0].as_py(), record.column(POSITION)[0].as_py()
    return None


def _taken_apart(chunk: Any, at: tuple[int, ...], path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield the parts of a chunk at a place, and their places: smaller ones along the path."""
    if at != path[: len(at)] or _size(chunk) == 1:
        yield at, chunk
        return
    size = PIECE if len(at) == 1 and _size(chunk) > PIECE else 1
    for number, part in enumerate(_parts(chunk, size)):
        yield from _taken_apart(part, (*at, number), path)


def part_of(chunk: Any, start: int, stop: int) -> Any:
    """Return the records of a list or a batch from one number up to another."""
    return chunk[start:stop] if isinstance(chunk, list) else chunk.slice(start, stop - start)


def _parts(chunk: Any, size: int) -> Iterator[Any]:
    for start in range(0, _size(chunk), size):
        yield part_of(chunk, start, start + size)


def _size(chunk: Any) -> int:
    return len(chunk) if isinstance(chunk, list) else int(chunk.num_rows)


def _only(chunk: Any) -> Any:
    """Return the record of a chunk of one."""
    return chunk[0] if isinstance(chunk, list) else chunk
