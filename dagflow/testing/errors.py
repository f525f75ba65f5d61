"""Errors that the test kit reports."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import InfrastructureError, RunError
from dagflow.errors.base import error


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
class HypothesisMissing(InfrastructureError, ImportError):
    """`check_operator` makes its records with Hypothesis, which is not installed."""

    code: ClassVar[str] = "DF490"

    def message(self) -> str:
        return "check_operator needs the package Hypothesis, which is not installed\n  help: pip install hypothesis"
