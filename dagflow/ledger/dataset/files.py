"""The data of a dataset: the files that its ledger names, and no others."""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING, Any

from dagflow.ledger.chain import Ledger
from dagflow.ledger.columns import schema_of_fields
from dagflow.ledger.dataset.find import find_dataset
from dagflow.ledger.dataset.tables import FileGroup, kind_of_file
from dagflow.ledger.errors import LedgerError, LedgerMissing, NoSuchEntry, ObjectDamaged, ObjectMissing
from dagflow.ledger.events import DataFile, SchemaField, SetSchema
from dagflow.ledger.tail import ENTRIES, HINTS, entry_name, entry_number
from dagflow.storage import file_system, inside

if TYPE_CHECKING:
    import pyarrow.dataset

_CHECKPOINTS = "ledger-checkpoints"  # of ledgers of earlier versions
LINES = (SchemaField(name="value", type="string"),)
"""The schema of the lines that RecordWriter writes."""


def committed_files(path: str, as_of: int | datetime.datetime | None = None) -> list[str]:
    """Return the paths of all committed files of a dataset, in the order of their rows.

    `as_of`: an entry's number, or a time: what was committed up to it.
    Raises LedgerMissing, NoSuchEntry, LedgerDamaged, PathOutside.
    """
    return [file for file, _ in _files(Ledger.open(path), as_of)[0]]


def named_files(path: str) -> tuple[list[str], int]:
    """Return the names of all files that any readable entry names, and how many entries cannot be read. For starting over."""
    ledger = Ledger.open(path, durable=False)
    files: list[str] = []
    unreadable = 0
    for seq in _numbers(ledger):
        try:
            event = ledger.entry(seq).data
        except LedgerError:
            unreadable += 1
            continue
        if event is not None and event.new_data is not None:
            files += [file.path for file in event.new_data.files]
    return files, unreadable


def erase(path: str) -> None:
    """Remove the ledger of a dataset folder, but none of its files. A caller that is killed in between calls it again."""
    ledger = Ledger.open(path, durable=False)
    names = [entry_name(seq) for seq in _numbers(ledger)]
    for prefix in (HINTS, _CHECKPOINTS):
        names += ledger.store.names(f"{prefix}/")
    for name in reversed(names):
        ledger.store.discard(name)


def _numbers(ledger: Ledger) -> list[int]:
    numbers = (entry_number(name) for name in ledger.store.names(f"{ENTRIES}/"))
    return [seq for seq in numbers if seq is not None]


def read_dataset(path: str | os.PathLike[str], as_of: int | datetime.datetime | None = None) -> pyarrow.dataset.Dataset:
    """Return the committed data of a dataset folder, in the order of its rows. The state is consistent, also during a window.

    Files are read in the format that the ledger records, or else by their suffix: Parquet, CSV, Arrow, ORC. Lines of text, as
    RecordWriter writes them, become one column `value`. Lines of text, JSON lines and packed files are held in memory. The
    columns are those of the ledger's schema, where it has one. Folders `key=value` are columns.

    Args:
        path: the dataset's folder, by path or URL, or anything in it.
        as_of: an entry's number, or a time (with its zone): what was committed up to it.

    Raises NoSuchDataset, LedgerMissing, NoSuchEntry, LedgerDamaged; ObjectMissing and ObjectDamaged for a file that is gone or
    has another length than was committed (`dagflow verify` reads files whole); PathOutside for an entry that names a file
    outside the folder.
    """
    import pyarrow.dataset as ds

    if isinstance(as_of, bool) or not isinstance(as_of, int | datetime.datetime | None):
        raise TypeError(f"as_of is {as_of!r}: give the number of an entry, or a datetime with its zone")
    ledger = Ledger.open(find_dataset(os.fspath(path)))
    files, schema = _files(ledger, as_of)
    if not files:
        return ds.dataset(_empty(schema))
    columns = None if schema is None or not schema.schema else schema_of_fields(schema.schema)
    groups: list[tuple[str, SetSchema | None, list[str]]] = []
    for path, then in files:
        kind = (None if then is None else then.written.get("kind")) or kind_of_file(path)
        if kind in ("csv", "json") and then is not None and then.schema == LINES:
            kind = "text"
        if not groups or groups[-1][:2] != (kind, then):
            groups.append((kind, then, []))
        groups[-1][2].append(path)
    parts = []
    for kind, then, group in groups:
        written, names = ({}, ()) if then is None else (then.written, tuple(field.name for field in then.schema))
        parts.append(FileGroup(kind, group, ledger.folder, columns, written, names).dataset())
    return parts[0] if len(parts) == 1 else ds.dataset(parts)


def _files(ledger: Ledger, as_of: int | datetime.datetime | None) -> tuple[list[tuple[str, SetSchema | None]], SetSchema | None]:
    """Return the files with the schemas that they were written under, and the newest one."""
    head = ledger.refresh()
    if head is None or ledger.folder is None:
        raise LedgerMissing(ledger.place)
    if isinstance(as_of, datetime.datetime):
        entry = ledger.entry_at(as_of)
        if entry is None:
            raise NoSuchEntry(ledger.place, f"entry up to {as_of}", "its first is later")
        newest = entry.seq
    else:
        newest = head.seq if as_of is None else ledger.entry(as_of).seq
    files: list[tuple[str, SetSchema | None]] = []
    for entry in ledger.data_entries(newest):  # newest first
        if entry.data is not None and entry.data.new_data is not None:
            schema = ledger.schema_at(entry.seq)
            files += [(_checked(ledger, entry.seq, file), schema) for file in reversed(entry.data.new_data.files)]
    return files[::-1], ledger.schema_at(newest)


def _checked(ledger: Ledger, seq: int, file: DataFile) -> str:
    """Return the path of a committed file, if it is there with its size. Raises ObjectMissing, ObjectDamaged, PathOutside."""
    assert ledger.folder is not None
    path = inside(ledger.folder, file.path)
    try:
        length = file_system(path).status(path).length
    except FileNotFoundError as error:
        raise ObjectMissing(ledger.folder, seq, f"{file.path} is not there; {file.rows} rows were committed in it") from error
    if length != file.size:
        raise ObjectDamaged(ledger.folder, seq, f"{file.path} has {length} bytes, {file.size} were committed")
    return path


def _empty(schema: SetSchema | None) -> Any:
    """Return a table without rows: of the schema in effect."""
    import pyarrow as pa

    arrow_schema = None if schema is None else schema_of_fields(schema.schema)
    return (pa.schema([]) if arrow_schema is None else arrow_schema).empty_table()
