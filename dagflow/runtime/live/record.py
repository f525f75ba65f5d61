"""The record that a task at work rewrites in the run folder."""

from __future__ import annotations

import json

import attrs

from dagflow.runtime.run_folder.reports import OperatorFigures

WAITS = "(waits)"
"""Stands for the name of an operator in `LiveRecord.doing`: the task waits."""


@attrs.frozen(kw_only=True)
class LiveRecord:
    """The figures of an attempt of a task so far.

    Attributes:
        epoch, task, stage: of the task.
        at: seconds since the epoch.
        has_ended: the figures are final.
        doing: the operator at work, empty for the framework, or `WAITS`.
        operators: the figures so far, by name. Of the counters, only `bytes`.
    """

    epoch: str
    task: str
    stage: str
    at: float
    has_ended: bool
    doing: str
    operators: dict[str, OperatorFigures]

    def to_bytes(self) -> bytes:
        """Return the record as a line of JSON."""
        operators = {
            name: [figures.records_in, figures.records_out, figures.errors, figures.bytes, figures.seconds]
            for name, figures in self.operators.items()
        }
        return json.dumps({**attrs.asdict(self, recurse=False), "operators": operators}).encode()

    @classmethod
    def of(cls, data: bytes) -> LiveRecord:
        """Return the record that `to_bytes` was called for. Raises ValueError, TypeError or KeyError for a torn one."""
        fields = json.loads(data)
        operators = {
            name: OperatorFigures(
                records_in=figures[0],
                records_out=figures[1],
                errors=figures[2],
                counters={"bytes": figures[3]} if figures[3] else {},
                seconds=figures[4],
            )
            for name, figures in fields.pop("operators").items()
        }
        return cls(**fields, operators=operators)
