"""The first rows of a dataset, or of one of its windows, from as few of its files as hold them."""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.ledger.chain import Ledger
from dagflow.ledger.columns import schema_of_fields
from dagflow.ledger.dataset.files import committed_path, group_of
from dagflow.ledger.errors import LedgerMissing, NoSuchColumn, NoSuchEntry, ObjectDamaged
from dagflow.ledger.events import DataFile, LedgerEntry, SetSchema
from dagflow.ledger.reader import LedgerReader
from dagflow.ledger.snapshots import root_of
from dagflow.ledger.verify import file_problem
from dagflow.storage import explained

if TYPE_CHECKING:
    import pyarrow as pa

MAX_HASHED = 64 << 20
"""Files up to this size are checked by their hash before their rows are returned; larger ones by their size."""


@attrs.frozen
class FirstRows:
    """Rows of a dataset.

    Attributes:
        table: the rows, in their order.
        first: the offset of the first row in the dataset.
        total: how many rows the dataset has, or the window that was asked for.
    """

    table: pa.Table
    first: int
    total: int


def first_rows(
    folder: str, most: int | None = 20, *, columns: Sequence[str] | None = None, window: int | None = None
) -> FirstRows:
    """Return the first committed rows of a dataset, or of a window, None for all.

    Only files that the ledger names are read, and only those that are needed. Raises LedgerMissing, NoSuchEntry for an unknown
    window, NoSuchColumn, and ObjectMissing or ObjectDamaged for a file that is not as it was committed.
    """
    import pyarrow as pa

    ledger = Ledger.open(folder, durable=False)
    head = ledger.refresh()
    if head is None or ledger.folder is None:
        raise LedgerMissing(ledger.place)
    newest = ledger.schema_at(head.seq)
    schema = None if newest is None or not newest.schema else schema_of_fields(newest.schema)
    files: Iterator[tuple[LedgerEntry, int, DataFile]]
    if window is None:
        files = ((entry, *each) for entry in ledger.rows_after(None) for each in entry.content)
        total = ledger.content_rows()
    else:
        files, total = _of_window(ledger, window)
    tables: list[Any] = []
    first = -1
    missing = total if most is None else min(most, total)
    for entry, then, file in files if missing else ():
        table = _rows(ledger, entry.seq, file, missing, ledger.schema_at(then), schema)
        first = file.interval.start if first < 0 else first
        tables.append(_selected(table, columns, ledger.place))
        missing -= table.num_rows
        if missing <= 0:
            break
    if not tables:
        empty = (pa.schema([]) if schema is None else schema).empty_table()
        return FirstRows(_selected(empty, columns, ledger.place), 0, total)
    return FirstRows(pa.concat_tables(tables, promote_options="permissive"), first, total)


def _of_window(ledger: LedgerReader, window: int) -> tuple[Iterator[tuple[LedgerEntry, int, DataFile]], int]:
    """Return the files that a window has added, and its number of rows. Raises NoSuchEntry."""
    windows = ledger.resume().windows
    entry = next((each for app in windows if (each := ledger.find_window(app, window)) is not None), None)
    if entry is None or entry.data is None:
        newest = max(windows.values(), default=None)
        raise NoSuchEntry(
            ledger.place, f"window {window}", "it has no windows" if newest is None else f"its newest window is {newest}"
        )
    data = entry.data.new_data
    if data is None:
        return iter(()), 0
    added = [(entry, schema, file) for schema, file in entry.content if file.interval.start >= data.interval.start]
    return iter(added), data.interval.rows


def _rows(ledger: Ledger, seq: int, file: DataFile, most: int, then: SetSchema | None, schema: Any) -> pa.Table:
    """Return rows of a committed file. Raises ObjectMissing, ObjectDamaged, PathOutside, StorageError."""
    import pyarrow as pa

    assert ledger.folder is not None
    path = committed_path(ledger, seq, file)
    if file.size <= MAX_HASHED and (problem := file_problem(ledger.folder, seq, file)) is not None:
        raise problem
    group = group_of([path], then, root_of(ledger.folder, path), schema)
    with explained(path, "reading"):
        try:
            return group.first(most)
        except (pa.ArrowException, OSError, EOFError, ValueError, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # Arrow's own errors have none
                raise
            reason = str(error).strip().partition("\n")[0]
            raise ObjectDamaged(ledger.folder, seq, f"{file.path} cannot be read: {reason}") from error


def _selected(table: pa.Table, columns: Sequence[str] | None, place: str) -> pa.Table:
    if columns is None:
        return table
    for name in columns:
        if name not in table.schema.names:
            raise NoSuchColumn(place, name, tuple(table.schema.names))
    return table.select(list(columns))
