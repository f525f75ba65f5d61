"""`OpenedTable`: a table of any format, as the sinks need it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from dagflow import WindowMark
from operators.sinks.table_formats.published import Published
from operators.sinks.tables.modes import Mode

REQUIRED = "required."
"""Facts of a note that name a column that takes no nulls begin so."""


def moment(milliseconds: int) -> str:
    """Return a moment, given in milliseconds since the epoch, as messages show it.

    >>> moment(1_500)
    '1970-01-01T00:00:01Z'
    """
    return f"{datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC):%Y-%m-%dT%H:%M:%SZ}"


class OpenedTable(Protocol):
    """A table as of the version, or snapshot, that was read last."""

    @property
    def id(self) -> str:
        """The id that the table got when it was created."""
        ...

    @property
    def version(self) -> int:
        """The version, or the id of the snapshot; -1 for none."""
        ...

    @property
    def state(self) -> object:
        """A value that each commit changes."""
        ...

    @property
    def columns(self) -> pa.Schema:
        """The columns, in types that `stored_type` of the sink returns. One that takes no nulls is not nullable."""
        ...

    @property
    def partition_columns(self) -> list[str]:
        """The columns that it is partitioned by."""
        ...

    @property
    def data_folder(self) -> str:
        """The folder or URL below which its files lie."""
        ...

    @property
    def facts(self) -> dict[str, int]:
        """Numbers of this version that `rolled_back` needs once the table no longer has it."""
        ...

    def refusals(self, mode: Mode, *, by_row: bool = False) -> Sequence[str]:
        """Return a phrase for each reason for which the table takes no commits of a mode, whatever the rows.

        `by_row`: rows are found by all of their columns.
        """
        ...

    def has_rows(self) -> bool:
        """Return whether it has any rows."""
        ...

    def mark(self, key: str) -> WindowMark:
        """Return the newest window of a sink (`window_key`) that the table holds."""
        ...

    def rows_with(self, values: pa.Table) -> pa.Table:
        """Return the rows that a commit removes for some values: at least those that have one of these rows in its columns."""
        ...

    def rolled_back(self, note: Published) -> str | None:
        """Return how the table lost what it had when a note was written; None if it has it."""
        ...

    def foreign_changes(self, note: Published, key: str) -> Sequence[str]:
        """Return a phrase for each commit since a note by which another writer has changed rows."""
        ...

    def evolve(self, columns: pa.Schema) -> None:
        """Add columns behind those of the table, and promote types. Raises one of the sink's `conflicts`."""
        ...

    def secure(self, *, files: bool) -> None:
        """Wait until the table, as it is, survives a power cut.

        `files`: the package has written files of rows. Those that tasks have staged survive already.
        """
        ...
