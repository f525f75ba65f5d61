"""What ends a run: one class a cause."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import RunError, error


@error
class OperatorFailed(RunError):
    """User code in an operator raised.

    `window` is None outside windows; `source` is `PATH` or `PATH, position N` of the record where known; `frames` is the
    traceback of the user's own code, innermost last; `trace` the whole one, for `--debug`.
    """

    operator: str
    doing: str
    error: str
    window: int | None = None
    source: str | None = None
    record: str | None = None
    frames: str = ""
    trace: str = ""
    code: ClassVar[str] = "DF301"

    def message(self) -> str:
        lines = [f"operator {self.operator!r} failed in {self.doing}: {self.error}"]
        if self.frames:
            lines.append(self.frames.rstrip("\n"))
        facts = [("window", self.window), ("source", self.source), ("record", self.record)]
        lines += [f"  {name:<7} {value}" for name, value in facts if value is not None]
        return "\n".join(lines)


@error
class PartitionerFailed(RunError):
    """The partitioner of an operator raised, or did not return partitions."""

    operator: str
    partitioner: str
    reason: str
    code: ClassVar[str] = "DF365"

    def message(self) -> str:
        return (
            f"the partitioner of operator {self.operator!r} ({self.partitioner}) {self.reason}\n"
            "  help: define_partitions(partitions, context) returns a list of at least one dagflow.scaling.Partition;\n"
            "        dagflow.scaling.resized(partitions, count) makes one of any length"
        )


@error
class FieldFrozen(RunError, AttributeError):
    """An operator assigns a field while it runs; the value would be lost."""

    operator: str
    field: str
    code: ClassVar[str] = "DF302"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"{self.operator} assigns {self.field!r} while it runs: an operator's fields are frozen after setup(), since an instance lives\n"
            "  for one task of one window and what it assigns would be lost\n"
            f"  help: declare it at class level, `{self.field} = WindowState(0)` for a value within the window\n"
            f"        or `{self.field} = State(0)` for one that is kept over windows"
        )


@error
class StateDeclaration(RunError, TypeError):
    """A `State` or `WindowState` is declared wrongly."""

    declaration: str
    reason: str
    code: ClassVar[str] = "DF303"

    def message(self) -> str:
        return f"{self.declaration}: {self.reason}"


@error
class WrongRecordType(RunError, TypeError):
    """An operator emitted, or was given, something that is not of its port's type.

    `frames`: the lines of the user's that emitted it, where they are known.
    """

    port: str
    expected: str
    got: str
    record: str
    doing: str = "was emitted"
    window: int | None = None
    frames: str = ""
    code: ClassVar[str] = "DF304"

    def message(self) -> str:
        lines = [f"{self.port} carries {self.expected}, but {self.got} {self.doing}: {self.record}"]
        lines += [self.frames] if self.frames else []
        lines += [f"  window  {self.window}"] if self.window is not None else []
        if self.got in ("RecordBatch", "Table") and self.doing == "was emitted":
            lines.append(
                f"  help: a batch goes by self.{self.port.rpartition('.')[2]}.emit_batch(batch); emit() takes one record"
            )
        return "\n".join(lines)


@error
class StateNotPlain(RunError, TypeError):
    """A `State` or a work item holds something that cannot be written down as plain data."""

    where: str
    got: str
    code: ClassVar[str] = "DF305"

    def message(self) -> str:
        return (
            f"{self.where} holds {self.got}, which cannot be kept durably\n"
            "  help: keep None, bool, int, float, str, bytes, and lists, tuples, dicts with text keys and attrs classes of these"
        )


@error
class StateMistyped(RunError, TypeError):
    """A `State` holds a value that is not of its declared type: refused before the window is decided."""

    operator: str
    state: str
    declared: str
    got: str
    code: ClassVar[str] = "DF364"

    def message(self) -> str:
        return (
            f"State {self.state!r} of operator {self.operator!r} is declared as {self.declared}, but {self.got}\n"
            f"  help: assign values of that type, or declare what it may hold: State[{self.declared} | None](…)"
        )


@error
class StateLost(RunError):
    """What an operator kept in a partition is no longer what the last decision says."""

    operator: str
    path: str
    reason: str
    code: ClassVar[str] = "DF360"

    def message(self) -> str:
        return (
            f"the State of operator {self.operator!r} cannot be read: {self.reason} ({self.path})\n"
            "  help: bring the file back from a copy of the run folder; or launch with --fresh to start over"
        )


@error
class SegmentMissing(RunError):
    """What windows have left in `MapState` is not all there: a segment is gone."""

    path: str
    window: int
    code: ClassVar[str] = "DF361"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"the MapState after window {self.window} cannot be read: there is no {self.path}\n"
            "  help: bring the file back from a copy of the run folder; or launch with --fresh to start over"
        )


@error
class SegmentDamaged(RunError):
    """A segment of `MapState` is not what a window has written."""

    path: str
    window: int
    reason: str
    code: ClassVar[str] = "DF362"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"the MapState after window {self.window} cannot be read: {self.path} is damaged ({self.reason})\n"
            "  help: bring the file back from a copy of the run folder; or launch with --fresh to start over"
        )


@error
class ChangedInPlace(RunError):
    """An operator has changed a value of a `MapState` in place: that would not be saved."""

    operator: str
    state: str
    key: str
    code: ClassVar[str] = "DF363"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"{self.operator} has changed the value of {self.key} in MapState {self.state!r} in place: only what is assigned is saved\n"
            f"  help: assign it again, `self.{self.state}[{self.key}] = value`"
        )


@error
class WindowFailed(RunError):
    """A window failed as often as it may. `places`: where its dead tasks were; `look`: a command that shows what is there."""

    window: int
    attempts: int
    reason: str
    places: tuple[str, ...] = ()
    look: str | None = None
    code: ClassVar[str] = "DF306"

    def message(self) -> str:
        times = "once" if self.attempts == 1 else f"{self.attempts} times"
        lines = [f"window {self.window} failed {times}; the last time: {self.reason}", *(f"  {place}" for place in self.places)]
        see = f"`{self.look}` shows what is there; " if self.look else ""
        return "\n".join([*lines, f"  help: {see}launch again to go on from this window"])


@error
class WindowIncomplete(RunError):
    """A window's tasks ended, but not all of them reported, or what they have read is not the window's plan."""

    window: int
    missing: tuple[str, ...]
    uncovered: tuple[str, ...] = ()
    code: ClassVar[str] = "DF307"

    def message(self) -> str:
        if self.uncovered:
            more = f", and {len(self.uncovered) - 3} more" if len(self.uncovered) > 3 else ""
            return f"window {self.window}: its tasks have not read all of it once: {'; '.join(self.uncovered[:3])}{more}"
        return f"window {self.window}: no report from {', '.join(self.missing)}"


@error
class Interrupted(RunError):
    """The run was stopped from outside."""

    by: str
    code: ClassVar[str] = "DF308"
    exit_code: ClassVar[int] = 130

    def message(self) -> str:
        return f"stopped by {self.by}; launch again to go on from here"


@error
class PlanMismatch(RunError):
    """What the run folder holds does not fit this application."""

    folder: str
    reason: str
    code: ClassVar[str] = "DF309"
    exit_code: ClassVar[int] = 2

    def message(self) -> str:
        return (
            f"{self.folder} cannot be continued: {self.reason}\n  help: launch with --fresh to start over, or name another output"
        )
