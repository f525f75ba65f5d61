"""Errors of stored state."""

from __future__ import annotations

from dagflow.errors import RunError
from dagflow.errors.base import error


@error("DF364")
class StateMistyped(RunError, TypeError):
    """A `State` holds a value that is not of its declared type."""

    operator: str
    state: str
    declared: str
    got: str
    template = (
        "State {state!r} of operator {operator!r} is declared as {declared}, but {got}\n"
        "  help: assign values of that type, or declare what it may hold: State[{declared} | None](…)"
    )
    example = {"operator": "total", "state": "sum", "declared": "int", "got": "it holds '7', a str"}


@error("DF360")
class StateLost(RunError):
    """The stored state of a partition is missing, or differs from the last decision."""

    operator: str
    path: str
    reason: str
    template = (
        "the State of operator {operator!r} cannot be read: {reason} ({path})\n"
        "  help: restore the file from a copy of the run folder, or launch with --fresh to start over"
    )
    example = {"operator": "total", "path": "out/_dagflow/state/3", "reason": "its hash differs"}


@error("DF361", is_fatal=True)
class SegmentMissing(RunError):
    """A stored segment of a `MapState` is missing."""

    path: str
    window: int
    template = (
        "the MapState after window {window} cannot be read: there is no {path}\n"
        "  help: restore the file from a copy of the run folder, or launch with --fresh to start over"
    )
    example = {"path": "out/_dagflow/map/3", "window": 3}


@error("DF362", is_fatal=True)
class SegmentDamaged(RunError):
    """A stored segment of a `MapState` is damaged."""

    path: str
    window: int
    reason: str
    template = (
        "the MapState after window {window} cannot be read: {path} is damaged ({reason})\n"
        "  help: restore the file from a copy of the run folder, or launch with --fresh to start over"
    )
    example = {"path": "out/_dagflow/map/3", "window": 3, "reason": "its hash differs"}


@error("DF373")
class ForeignStateKey(RunError, KeyError):
    """A keyed operator stored an entry whose key belongs to another partition."""

    operator: str
    state: str
    key: str
    template = (
        "operator {operator!r} keeps {key} in its MapState {state!r}, which is not a key of its partition\n"
        "  help: the keys of entries must be those by which the operator's records are partitioned,\n"
        "        or a function of the key gives them: MapState(partition_by=lambda key: …)"
    )
    example = {"operator": "total", "state": "sums", "key": "'b'"}


@error("DF363", is_fatal=True)
class ChangedInPlace(RunError):
    """An operator changed a value of a `MapState` in place, which is not saved."""

    operator: str
    state: str
    key: str
    template = (
        "{operator} has changed the value of {key} in MapState {state!r} in place: only what is assigned is saved\n"
        "  help: assign it again, `self.{state}[{key}] = value`"
    )
    example = {"operator": "total", "state": "sums", "key": "'a'"}


@error("DF900", is_fatal=True)
class StateFormatChanged(RunError):
    """The rows that an operator has kept have another format than the code reads and writes."""

    folder: str
    operator: str
    state: str
    kept: int
    now: int
    template = (
        "operator {operator!r} has kept rows of format {kept} in {folder}, and its TableState {state!r} has format {now} now\n"
        "  help: resume with the version of the operator's package that wrote them,\n"
        "        or launch with --fresh, which reads all input again"
    )
    example = {"folder": "out/_dagflow", "operator": "totals", "state": "kept", "kept": 1, "now": 2}
