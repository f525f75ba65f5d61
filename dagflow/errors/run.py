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
    """An operator emitted, or was given, something that is not of its port's type."""

    port: str
    expected: str
    got: str
    record: str
    doing: str = "was emitted"
    code: ClassVar[str] = "DF304"

    def message(self) -> str:
        return f"{self.port} carries {self.expected}, but {self.got} {self.doing}: {self.record}"


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
class WindowFailed(RunError):
    """A window failed as often as it may."""

    window: int
    attempts: int
    reason: str
    code: ClassVar[str] = "DF306"

    def message(self) -> str:
        return f"window {self.window} failed {self.attempts} times; the last time: {self.reason}\n  help: launch again to go on from this window"


@error
class WindowIncomplete(RunError):
    """A window's tasks ended, but not all of them reported."""

    window: int
    missing: tuple[str, ...]
    code: ClassVar[str] = "DF307"

    def message(self) -> str:
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
