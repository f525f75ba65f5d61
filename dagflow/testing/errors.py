"""Errors that the test kit reports."""

from __future__ import annotations

from dagflow.errors import InfrastructureError, RunError
from dagflow.errors.base import error


@error("DF780", is_fatal=True)
class WindowNotBegun(RunError, RuntimeError):
    """`OperatorTask.end_window` was called outside of a window."""

    operator: str
    template = (
        "no window of {operator} is open: end_window() was called before a window has begun, or twice\n"
        '  help: give it records first, `task.give("input", […])`, or begin a window without any: `task.begin_window()`'
    )
    example = {"operator": "Filter"}


@error("DF490")
class HypothesisMissing(InfrastructureError, ImportError):
    """`check_operator` needs Hypothesis, which is not installed."""

    template = "check_operator needs the package Hypothesis, which is not installed\n  help: pip install hypothesis"
    example = {}
