"""Console: prints records, for debugging."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Generic

import attrs
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, ReaderRecord, WindowState

T = TypeVar("T", default=Any)

WIDTH = 1_000
"""Longer lines are cut: what is printed travels in the task's report."""


@attrs.define
class Console(Operator, Generic[T]):
    """Print records where the application was launched, when their window is decided.

    Text is printed as it is, and other records as `repr` shows them; of a `ReaderRecord`, the record. Lines are cut at 1,000
    characters. A record that is taken back begins with `-`.

    Args:
        prefix: text before each record.
        limit: the most records that a task prints of a window. The others are counted as `not_shown`.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Console(prefix="got ", limit=2), {"input": ["a", 1, "b"]})
    got a
    got 1
    got … 1 more records are not shown (limit = 2)
    {}
    """

    prefix: str = attrs.field(default="", validator=attrs.validators.instance_of(str))
    limit: int = attrs.field(default=1_000, kw_only=True, validator=attrs.validators.ge(0))

    takes_changes: ClassVar[bool] = True

    input = InputPort[T]()

    shown = WindowState(0)
    not_shown = WindowState(0)

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which carries lines to the driver."""
        self._context = context

    @input.process
    def show_record(self, record: T) -> None:
        """Note one record."""
        self.show_all(iter((record,)))

    @input.stream
    def show_all(self, records: Iterator[T]) -> None:
        """Note many records."""
        for record in islice(records, self.limit - self.shown):
            self._context.note(self._line(record))
            self.shown += 1
        more = sum(1 for _ in records)
        if more:
            self.not_shown += more
            self._context.count("not_shown", more)

    def end_window(self) -> None:
        """Say how many records were left out."""
        if self.not_shown:
            self._context.note(f"{self.prefix}… {self.not_shown} more records are not shown (limit = {self.limit})")

    def show(self, lines: list[str], window: int) -> None:
        """Print what the window's tasks noted. Called on the driver's instance when the window is decided."""
        for line in lines:
            print(line)  # noqa: T201  # what it is for

    def _line(self, record: object) -> str:
        if isinstance(record, ReaderRecord):
            record = record.record
        text = record if isinstance(record, str) else repr(record)
        sign = "- " if self._context.retracts else ""
        return self.prefix + sign + (text if len(text) <= WIDTH else text[:WIDTH] + "…")
