"""What tests find out about operators, and what they need for it."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors.base import RunError, SurroundingsError, error


@error
class HypothesisMissing(SurroundingsError, ImportError):
    """`check_operator` makes its records with Hypothesis, which is not installed."""

    code: ClassVar[str] = "DF080"

    def message(self) -> str:
        return "check_operator needs the package Hypothesis, which is not installed\n  help: pip install hypothesis"


@error
class RecordChanged(RunError):
    """An operator has changed a record that it had received or emitted, and that other operators have, too.

    `doing`: the call after which it was found; `how`: `received` or `emitted`.
    """

    operator: str
    port: str
    how: str
    doing: str
    before: str
    after: str
    window: int | None = None
    code: ClassVar[str] = "DF081"
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        lines = [
            f"operator {self.operator!r} has changed a record that it had {self.how} on port {self.port!r}, found after {self.doing}",
            f"  before  {self.before}",
            f"  after   {self.after}",
        ]
        lines += [f"  window  {self.window}"] if self.window is not None else []
        help_text = (
            "other operators may have the same object: emit a new one, attrs.evolve(record, …), {**record, …} or [*record]"
        )
        return "\n".join([*lines, f"  help: {help_text}"])
