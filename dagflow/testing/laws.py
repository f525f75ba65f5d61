"""The laws that hold for every operator, tried with many records by Hypothesis."""

from __future__ import annotations

import functools
import os
import pickle
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.model.graph.changes import follows_changes
from dagflow.model.graph.checks import states_saved
from dagflow.model.graph.class_checks import line_of_name, of_operator, shared_values
from dagflow.model.operator.base import ErrorRecord, Operator, fields_of
from dagflow.model.operator.map_state import MapState
from dagflow.model.operator.ports import BATCH, NET, RECORD, STREAM, OutputPort, handlers_of, input_ports, output_ports
from dagflow.model.operator.state import state_fields
from dagflow.model.types.forms import schema_of
from dagflow.model.types.plain_data import dumps, loads
from dagflow.runtime.stage.errors import OperatorFailed, RecordChanged
from dagflow.runtime.stage.failure import reported_errors
from dagflow.runtime.stage.program import RunOptions, TaskSpec
from dagflow.runtime.task.recording_files import RecordedFile, RecordingFiles
from dagflow.state.errors import ChangedInPlace
from dagflow.state.task_states import declared_states
from dagflow.state.values import decode_state, encode_state
from dagflow.testing.errors import HypothesisMissing
from dagflow.testing.operators import NAME, Bench, TakenBack

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


def check_operator(
    operator: Operator,
    strategy: SearchStrategy[Any],
    *,
    port: str | None = None,
    raises: type[Exception] | tuple[type[Exception], ...] = (),
    max_records: int = 20,
    max_examples: int = 50,
) -> None:
    """Try the laws of operators with lists of records that `strategy` makes; Hypothesis finds the smallest that breaks one.

    A DAG must accept its class. Whatever the records, a list of none included, *it runs*: no handler raises, nor `begin_window`
    or `end_window`, unless `on_error` or `raises` covers the exception. And:

    1. *It pickles*: an unpickled copy does the same, and its properties are unchanged afterwards.
    2. *It forgets*: the output of a window does not depend on the windows before (unless it declares `State`), and no class
       attribute changes.
    3. *Forms agree*: records, streams and batches, as many of these as it handles, give the same output and the same files.
    4. *Chunks do not matter*: however a window's records are split, the output is the same, and so it is when the operator before
       emits some of them in `begin_window()` and some in `end_window()`.
    5. *Partitions do not matter*: the outputs of two copies that share the records are the output of one. Left out for operators
       that must not be copied, that declare what they keep, or that ask which partition they are.
    6. *State resumes*: what it keeps as `State` is the same when it has been written down and read again; its `merge` gives the
       same whether several values become one at once or one after the other, with those of idle partitions or without. No
       value of a `MapState` is changed in place.
    7. *Records stay as they are*: it changes none that it has received or emitted.
    8. *Changes cancel*, where it can follow them: of rows that come and are taken back, in any order, nothing is left.

    Every record is checked against its port's type. Of records that `on_error` skips, laws compare which, not why.

    `port` is the input port to feed, by default the only one. `raises`: the exceptions with which it refuses records. Raises
    AssertionError, naming the law, the smallest records that break it, and both outputs.

    >>> from hypothesis import strategies as st
    >>> from operators import Filter
    >>> check_operator(Filter(str.isalpha), st.text())
    """
    try:
        from hypothesis import HealthCheck, Phase, given, settings
        from hypothesis import strategies as st
    except ModuleNotFoundError as error:
        raise HypothesisMissing from error

    laws = _Laws(operator, port or _only_port(operator), raises)
    for problem in (*of_operator(operator), *states_saved(operator)):
        raise AssertionError(f"{type(operator).__name__}: a DAG refuses it: {problem}") from problem

    phases = (Phase.generate, Phase.shrink)  # explaining which lines are to blame takes longer than all else

    @settings(
        max_examples=max_examples, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], phases=phases
    )
    @given(st.lists(strategy, max_size=max_records), st.integers(0, max_records), st.integers(0, max_records))
    def hold(records: list[Any], one: int, other: int) -> None:
        laws.hold(records, *sorted((min(one, len(records)), min(other, len(records)))))

    laws.hold([], 0, 0)
    hold()


def _only_port(operator: Operator) -> str:
    ports = tuple(input_ports(type(operator)))
    if len(ports) != 1:
        raise ValueError(f"{type(operator).__name__} has the input ports {', '.join(ports) or '(none)'}: say which, port=…")
    return ports[0]


@attrs.frozen
class _Output:
    """The output of a window: records by port, files by name, and the error that ended it."""

    ports: dict[str, list[Any]]
    files: dict[str, bytes]
    skipped: int = 0
    error: str | None = None


@attrs.frozen
class _Laws:
    operator: Operator
    port: str
    raises: type[Exception] | tuple[type[Exception], ...] = ()

    def hold(self, records: list[Any], first: int, second: int) -> None:
        """Try all laws with one list of records, split at two places."""
        shared = shared_values(type(self.operator))
        before = {key: copy for key, value in shared.items() if (copy := _comparable_copy(value)) is not _NONE}
        self._hold(records, first, second)
        for (cls, name), value in before.items():
            if not _equal(value, shared[cls, name]):
                setattr(cls, name, value)  # so that Hypothesis can try again
                kind = type(value).__name__
                raise AssertionError(
                    f"{self._name}: it forgets: the class attribute {name!r} has changed while it ran "
                    f"({line_of_name(cls, name)})\n  before  {value!r}\n  after   {shared[cls, name]!r}\n  records {records!r}\n"
                    f"  help: what an operator keeps is declared: {name} = WindowState(factory={kind})"
                )

    def _hold(self, records: list[Any], first: int, second: int) -> None:
        whole = [records]
        reference = self._run(whole)
        self._same("it travels: two copies give the same", records, reference, self._run(whole))
        self._fields_unchanged(records)
        if not declared_states(self.operator):
            again = self._run(whole, warm=records)
            self._same("it forgets: a window after another one gives the same", records, reference, again)
        elif any(isinstance(declared, MapState) for declared in declared_states(self.operator).values()):
            self._run(whole, warm=records)  # which raises where it changes in place what the first window has kept
        parts = [records[:first], records[first:second], records[second:]]
        for form in self._forms(records):
            if form != reference_form(self.operator, self.port):
                self._same(f"forms agree: {form}", records, reference, self._run(whole, form))
            split = self._run(parts, form)
            self._same(f"chunks do not matter: {form}, split at {first} and {second}", records, reference, split)
            law = f"chunks do not matter: {form}, {first} emitted in begin_window(), those from {second} on in end_window()"
            self._same(law, records, reference, self._run(parts, form, emitted=True))
        if declared_states(self.operator):
            self._state_resumes(records, first, second)
        if follows_changes(self.operator) and reference.error is None:
            self._changes_cancel(records, parts[1])
        if self._is_partitioned_freely():
            one, other = self._run([records[:second]]), self._run([records[second:]])
            if reference.error is None and reference.files == {} and one.files == {} and other.files == {}:
                ports = {name: one.ports[name] + other.ports[name] for name in reference.ports}
                joined = _Output(ports, {}, one.skipped + other.skipped)
                self._same(f"partitions do not matter: split at {second}", records, reference, joined)

    def _changes_cancel(self, records: list[Any], some: list[Any]) -> None:
        """Try a window with all records and a window with some more, which are taken back: before, or after all others."""
        given, extra, gone = {self.port: records}, {self.port: some}, TakenBack({self.port: some})
        for form in self._forms(records):
            standing = self._standing(form, given)
            for when, taken_back, expected, chunks in (
                ("before they come", some, standing, (gone, given, extra)),
                ("after they came", some, standing, (extra, given, gone)),
                ("all of them", records, {}, (given, TakenBack(given))),
            ):
                left_over = self._standing(form, *chunks)
                if any(
                    not _equal_in_any_order(left_over.get(port, []), expected.get(port, [])) for port in {*left_over, *expected}
                ):
                    raise AssertionError(
                        f"{self._name}: changes cancel: {form}, records are taken back {when}\n  records    {records!r}\n"
                        f"  taken back {taken_back!r}\n  expected   {expected!r}\n  found      {left_over!r}"
                    )

    def _standing(self, form: str, *chunks: Any) -> dict[str, list[Any]]:
        """Return what stands by port after a window: what was emitted and not taken back, and what was taken back without that.

        Rejected records are left out: they are rejected once, whether or not they are taken back.
        """
        bench = Bench(self.operator, {self.port: [r for chunk in chunks for r in chunk[self.port]]}, form=form, is_changing=True)
        with reported_errors(), bench.flow(_SPEC, RecordingFiles()) as flow:
            bench.run(flow, 0, *chunks)
        standing = {}
        for port in {*bench.emitted, *bench.emitted.retracted} - {"errors"}:
            emitted, retracted = list(bench.emitted.get(port, [])), bench.emitted.retracted.get(port, [])
            missing = [record for record in retracted if not _removed(emitted, record)]
            standing[port] = [*emitted, *(("taken back", record) for record in missing)]
        return standing

    def _is_partitioned_freely(self) -> bool:
        return self.operator.partitionable and not state_fields(type(self.operator))

    def _forms(self, records: Sequence[Any]) -> list[str]:
        offered = self.operator.offered_forms(self.port) & set(handlers_of(type(self.operator)).get(self.port, ()))
        if BATCH in offered and offered != {BATCH}:
            tp = Bench(self.operator, {self.port: records}).types[self.port]
            if tp is Any or schema_of(tp) is None:
                offered -= {BATCH}  # records that have no Arrow form never come in batches
        return [form for form in (RECORD, STREAM, BATCH, NET) if form in offered]

    def _run(
        self, chunks: list[list[Any]], form: str | None = None, warm: list[Any] | None = None, emitted: bool = False
    ) -> _Output:
        """Run one window. `warm`: the records of one before it; `emitted`: the first chunk as it begins, the last at its end."""
        bench = Bench(self.operator, {self.port: [r for chunk in chunks for r in chunk]}, form=form)
        contents = defaultdict[RecordedFile, bytearray](bytearray)
        files = RecordingFiles(on_write=lambda file, data: contents[file].extend(data))
        error = None
        try:
            with reported_errors(), bench.flow(_SPEC, files, before=_Emits(chunks) if emitted else None) as flow:
                if warm is not None:
                    bench.run(flow, 0, {self.port: warm})
                    files.opened.clear()
                    bench.emitted.forget()
                bench.run(flow, 0, *({self.port: chunk} for chunk in (chunks[1:-1] if emitted else chunks)))
        except OperatorFailed as failed:
            if not isinstance(failed.__cause__, self.raises):
                given = [record for chunk in [warm or [], *chunks] for record in chunk]
                raise AssertionError(
                    f"{self._name}: it runs: {failed}\n  records {given!r}\n"
                    f"  help: handle such records, set on_error, or tell that it refuses them: "
                    f"check_operator(…, raises={type(failed.__cause__).__name__})"
                ) from failed.__cause__
            error = failed.record or failed.error
        except ChangedInPlace as changed:
            given = [record for chunk in [warm or [], *chunks] for record in chunk]
            raise AssertionError(f"{self._name}: state resumes: {changed}\n  records {given!r}, in two windows") from changed
        except RecordChanged as changed:
            given = [record for chunk in chunks for record in chunk]
            raise AssertionError(f"{self._name}: records stay as they are: {changed}\n  records {given!r}") from changed
        ports = {name: bench.emitted.get(name, []) for name in output_ports(type(self.operator))}
        written = {f"{file.folder}/{file.name}": bytes(contents[file]) for file in files.opened.values()}
        return _Output({} if error else ports, {} if error else written, bench.emitted.skipped, error)

    def _fields_unchanged(self, records: list[Any]) -> None:
        bench = Bench(self.operator, {self.port: records})
        with bench.flow(_SPEC, RecordingFiles()) as flow:
            live = flow.nodes[NAME].operator
            before = {name: copy for name, value in fields_of(live).items() if (copy := _comparable_copy(value)) is not _NONE}
            try:
                with reported_errors():
                    bench.run(flow, 0, {self.port: records})
            except OperatorFailed:
                return
            for name, value in before.items():
                now = getattr(live, name)
                if not _equal(value, now):
                    raise AssertionError(
                        f"{self._name}: it travels: its property {name!r} has changed while it ran\n  before  {value!r}\n"
                        f"  after   {now!r}\n  records {records!r}\n"
                        f"  help: what an operator keeps is declared: {name} = WindowState(factory={type(now).__name__})"
                    )

    def _state_resumes(self, records: list[Any], first: int, second: int) -> None:
        parts = [self._kept(part) for part in (records, records[:first], records[first:second], records[second:])]
        for name, declared in declared_states(self.operator).items():
            values = [part[name] for part in parts if part is not None]
            for value in values:
                back = decode_state(declared, loads(dumps(encode_state(declared, value, f"State {name!r} of {self._name}"))))
                self._same_state("state resumes: what is read again", name, records, value, back)
            if declared.merge is None or len(values) < len(parts):
                continue
            merge, initial, several = declared.merge, declared.initial, values[1:]
            for value in values:
                for both in ([value, initial()], [initial(), value]):
                    law = "state resumes: merged with that of an idle partition"
                    self._same_state(law, name, records, value, merge(both))
            stepwise = functools.reduce(lambda one, other: merge([one, other]), several)
            law = f"state resumes: merged at once and one after the other, split at {first} and {second}"
            self._same_state(law, name, records, merge(several), stepwise)

    def _kept(self, records: list[Any]) -> dict[str, Any] | None:
        """Return the operator's state after a window with these records; None when it fails."""
        bench = Bench(self.operator, {self.port: records})
        try:
            with reported_errors(), bench.flow(_SPEC, RecordingFiles()) as flow:
                bench.run(flow, 0, {self.port: records})
                live = flow.nodes[NAME].operator
                return {name: getattr(live, name) for name in declared_states(live)}
        except OperatorFailed:
            return None

    def _same_state(self, law: str, name: str, records: list[Any], expected: Any, found: Any) -> None:
        if not _equal(expected, found):
            raise AssertionError(
                f"{self._name}: {law}: State {name!r} differs\n  records  {records!r}\n"
                f"  expected {expected!r}\n  found    {found!r}"
            )

    def _same(self, law: str, records: list[Any], expected: _Output, found: _Output) -> None:
        for what, left, right in (
            ("error", expected.error, found.error),
            *((f"port {n}", v, found.ports.get(n)) for n, v in expected.ports.items()),
            ("files", expected.files, found.files),
            ("records that on_error skipped", expected.skipped, found.skipped),
        ):
            if not _equal(_without_reasons(left), _without_reasons(right)):
                raise AssertionError(
                    f"{self._name}: {law}: {what} differ\n  records  {records!r}\n  expected {left!r}\n  found    {right!r}"
                )

    @property
    def _name(self) -> str:
        return type(self.operator).__name__


def reference_form(operator: Operator, port: str) -> str:
    """Return the form in which records are handled by default."""
    from dagflow.planning.forms import preferred_form

    return preferred_form(RECORD, operator.offered_forms(port))


_SPEC = TaskSpec.alone("test", RunOptions(durable=False, checked=True, enforce_immutability=True, base=os.sep))


def _without_reasons(value: Any) -> Any:
    """Leave out the reasons of errors, which forms word differently: the record counts."""
    if isinstance(value, list):
        return [v.record if isinstance(v, ErrorRecord) else v for v in value]
    return value


def _equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same: also where `==` says no, as for NaN."""
    try:
        if bool(one == other):
            return True
    except Exception:  # noqa: BLE001  # whatever has an `==` of its own
        return one is other
    try:
        return pickle.dumps(one) == pickle.dumps(other) and repr(one) == repr(other)
    except Exception:  # noqa: BLE001
        return False


def _removed(records: list[Any], record: Any) -> bool:
    """Remove a record from a list. Return False if it is not there."""
    place = next((number for number, each in enumerate(records) if _equal(each, record)), None)
    if place is not None:
        del records[place]
    return place is not None


def _equal_in_any_order(one: list[Any], other: list[Any]) -> bool:
    left = list(other)
    return len(one) == len(other) and all(_removed(left, record) for record in one)


_NONE: Any = object()


def _comparable_copy(value: Any) -> Any:
    """Copy a property's value, if such copies can be compared with it."""
    import cloudpickle

    try:
        copied = pickle.loads(cloudpickle.dumps(value))  # made the moment before
    except Exception:  # noqa: BLE001  # what does not travel has been refused already
        return _NONE
    return copied if _equal(copied, value) else _NONE


@attrs.define
class _Emits(Operator):
    """An operator before the tested one: it emits the first chunk as the window begins, the last one as it ends."""

    chunks: list[list[Any]]
    output = OutputPort[Any]()

    def begin_window(self, window: int) -> None:
        self.output.emit_all(self.chunks[0])

    def end_window(self) -> None:
        self.output.emit_all(self.chunks[-1])
