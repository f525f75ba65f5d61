"""`TableHistory`: the versions of a table, and the files that each of them added."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import attrs


@attrs.frozen
class TableFile:
    """A Parquet file of a table.

    Attributes:
        path: its path or URL.
        size: in bytes, by the log of the table.
        folder_columns: the columns that its path gives its rows (`country` of a folder `country=se`), with their types.
    """

    path: str
    size: int
    folder_columns: tuple[tuple[str, str], ...] = ()


@attrs.frozen(kw_only=True)
class TablePosition:
    """The place up to which a table was read. Plain data, kept with the plan of each window.

    Attributes:
        table: the id that the table got when it was created.
        version: the version, or the id of the snapshot; -1 for a table without any.
        is_whole: whether all files of that version are read; False: those that it added.
        files: how many of these were taken; None: all.
        mark: what else identifies the version: a hash of its entry in the log, the sequence number of a snapshot.
        columns: the schema of the table at that version, as its log has it, where later ones are compared with it.
        rows: how many rows the table has at that version, where its log says so.
    """

    table: str
    version: int
    is_whole: bool = False
    files: int | None = None
    mark: str = ""
    columns: str = ""
    rows: int | None = None


class TableHistory(Protocol):
    """A table of any format, as of the version that was read last."""

    @property
    def id(self) -> str:
        """The id that the table got when it was created."""
        ...

    def start(self, version: int | None) -> TablePosition:
        """Return the position of a reader that takes all files of a version; None: of the newest one.

        Raises InputTableHistoryGone, InputTableUnsupported.
        """
        ...

    def after(self, position: TablePosition) -> Sequence[TablePosition]:
        """Return the positions that follow, one for each version.

        Raises InputTableChanged where one did more than append, InputTableRolledBack, InputTableHistoryGone,
        InputTableUnsupported.
        """
        ...

    def files(self, position: TablePosition) -> Iterator[TableFile]:
        """Yield the files of a version, or those that it added, always in the same order.

        Raises InputTableUnsupported, InputTableHistoryGone.
        """
        ...

    def has_news(self) -> bool:
        """Return True if the table has changed since it was opened, or is gone. Cheap."""
        ...
