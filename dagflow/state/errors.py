"""Errors of stored state."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError
from dagflow.errors.base import error


@error
class StateMistyped(RunError, TypeError):
    """A `State` holds a value that is not of its declared type."""

    operator: str
    state: str
    declared: str
    got: str
    code: ClassVar[str] = "DF364"
    example = {"operator": "total", "state": "sum", "declared": "int", "got": "it holds '7', a str"}

    def message(self) -> str:
        return (
            f"State {self.state!r} of operator {self.operator!r} is declared as {self.declared}, but {self.got}\n"
            f"  help: assign values of that type, or declare what it may hold: State[{self.declared} | None](…)"
        )


@error
class StateLost(RunError):
    """The stored state of a partition is missing, or differs from the last decision."""

    operator: str
    path: str
    reason: str
    code: ClassVar[str] = "DF360"
    example = {"operator": "total", "path": "out/_dagflow/state/3", "reason": "its hash differs"}

    def message(self) -> str:
        return (
            f"the State of operator {self.operator!r} cannot be read: {self.reason} ({self.path})\n"
            "  help: restore the file from a copy of the run folder, or launch with --fresh to start over"
        )


@error
class SegmentMissing(RunError):
    """A stored segment of a `MapState` is missing."""

    path: str
    window: int
    code: ClassVar[str] = "DF361"
    example = {"path": "out/_dagflow/map/3", "window": 3}
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"the MapState after window {self.window} cannot be read: there is no {self.path}\n"
            "  help: restore the file from a copy of the run folder, or launch with --fresh to start over"
        )


@error
class SegmentDamaged(RunError):
    """A stored segment of a `MapState` is damaged."""

    path: str
    window: int
    reason: str
    code: ClassVar[str] = "DF362"
    example = {"path": "out/_dagflow/map/3", "window": 3, "reason": "its hash differs"}
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"the MapState after window {self.window} cannot be read: {self.path} is damaged ({self.reason})\n"
            "  help: restore the file from a copy of the run folder, or launch with --fresh to start over"
        )


@error
class ForeignStateKey(RunError, KeyError):
    """A keyed operator stored an entry whose key belongs to another partition."""

    operator: str
    state: str
    key: str
    code: ClassVar[str] = "DF373"
    example = {"operator": "total", "state": "sums", "key": "'b'"}

    def message(self) -> str:
        return (
            f"operator {self.operator!r} keeps {self.key} in its MapState {self.state!r}, which is not a key of its partition\n"
            "  help: the keys of entries must be those by which the operator's records are partitioned,\n"
            "        or a function of the key gives them: MapState(partition_by=lambda key: …)"
        )


@error
class ChangedInPlace(RunError):
    """An operator changed a value of a `MapState` in place, which is not saved."""

    operator: str
    state: str
    key: str
    code: ClassVar[str] = "DF363"
    example = {"operator": "total", "state": "sums", "key": "'a'"}
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"{self.operator} has changed the value of {self.key} in MapState {self.state!r} in place: only what is assigned is saved\n"
            f"  help: assign it again, `self.{self.state}[{self.key}] = value`"
        )


@error
class StateFormatChanged(RunError):
    """The rows that an operator has kept have another format than the code reads and writes."""

    folder: str
    operator: str
    state: str
    kept: int
    now: int
    code: ClassVar[str] = "DF900"
    example = {"folder": "out/_dagflow", "operator": "totals", "state": "kept", "kept": 1, "now": 2}
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"operator {self.operator!r} has kept rows of format {self.kept} in {self.folder}, and its TableState {self.state!r} has "
            f"format {self.now} now\n"
            f"  help: resume with the version of the operator's package that wrote them,\n"
            f"        or launch with --fresh, which reads all input again"
        )
