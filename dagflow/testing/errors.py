"""Errors that the test kit reports."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import InfrastructureError, RunError
from dagflow.errors.base import error


@error
class WindowNotBegun(RunError, RuntimeError):
    """`OperatorTask.end_window` was called outside of a window."""

    operator: str
    code: ClassVar[str] = "DF780"
    example = {"operator": "Filter"}
    is_fatal: ClassVar[bool] = True

    def message(self) -> str:
        return (
            f"no window of {self.operator} is open: end_window() was called before a window has begun, or twice\n"
            '  help: give it records first, `task.give("input", […])`, or begin a window without any: `task.begin_window()`'
        )


@error
class HypothesisMissing(InfrastructureError, ImportError):
    """`check_operator` needs Hypothesis, which is not installed."""

    code: ClassVar[str] = "DF490"
    example = {}

    def message(self) -> str:
        return "check_operator needs the package Hypothesis, which is not installed\n  help: pip install hypothesis"
