"""The data of a dataset: the files that its ledger names, and no others."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dagflow.ledger.chain import Ledger
from dagflow.ledger.columns import schema_of_fields
from dagflow.ledger.dataset.find import find_dataset
from dagflow.ledger.dataset.tables import FileGroup, kind_of_file
from dagflow.ledger.errors import LedgerError, LedgerMissing, NoSuchEntry, ObjectDamaged, ObjectMissing
from dagflow.ledger.events import DataFile, SchemaField, SetSchema
from dagflow.ledger.snapshots import root_of
from dagflow.ledger.tail import ENTRIES, HINT_EVERY, HINTS, entry_name, entry_number
from dagflow.storage import file_system, inside

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.dataset

_CHECKPOINTS = "ledger-checkpoints"  # of ledgers of earlier versions
LINES = (SchemaField(name="value", type="string"),)
"""The schema of the lines that RecordWriter writes."""


def committed_files(path: str, as_of: int | datetime.datetime | None = None) -> list[str]:
    """Return the paths of all committed files of a dataset, in the order of their rows.

    `as_of`: an entry's number, or a time: what was committed up to it.
    Raises LedgerMissing, NoSuchEntry, LedgerDamaged, PathOutside.
    """
    return [file for file, _, _ in _files(Ledger.open(path), as_of)[0]]


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
            files += [file.path for file in event.new_data.files]  # an earlier entry has added those that are kept
    return files, unreadable


def erase(path: str) -> None:
    """Remove the ledger of a dataset folder, but none of its files. A caller that is killed in between calls it again."""
    ledger = Ledger.open(path, durable=False)
    numbers = _numbers(ledger)
    names = [entry_name(seq) for seq in numbers]
    names += [f"{HINTS}/{seq:012d}" for seq in numbers if not seq % HINT_EVERY]  # a listing may not show them yet
    for prefix in (HINTS, _CHECKPOINTS):
        names += ledger.store.names(f"{prefix}/")
    for name in reversed(dict.fromkeys(names)):
        ledger.store.discard(name)


def _numbers(ledger: Ledger) -> list[int]:
    """Return the numbers of all entries: those that are listed and there, and those that follow without a gap."""
    listed = [entry_number(name) for name in ledger.store.names(f"{ENTRIES}/")]
    numbers = [seq for seq in listed if seq is not None]
    while numbers and ledger.store.read(entry_name(numbers[-1])) is None:  # the listing is old
        numbers.pop()
    following = numbers[-1] + 1 if numbers else 0
    while ledger.store.read(entry_name(following)) is not None:
        numbers.append(following)
        following += 1
    return numbers


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

    files, columns = dataset_files(path, as_of)
    if not files:
        return ds.dataset((_no_columns() if columns is None else columns).empty_table())
    parts = [group.dataset() for group in files]
    return parts[0] if len(parts) == 1 else ds.dataset(parts)


def dataset_files(
    path: str | os.PathLike[str], as_of: int | datetime.datetime | None = None
) -> tuple[list[FileGroup], pyarrow.Schema | None]:
    """Return the committed files of a dataset, in the order of their rows and grouped by how they are read, and its columns.

    The arguments and errors are those of `read_dataset`. The columns are None where the ledger does not have them.
    """
    ledger = _ledger(path, as_of)
    files, schema = _files(ledger, as_of)
    assert ledger.folder is not None
    columns = _columns(schema)
    groups: list[tuple[str, SetSchema | None, str, list[str], list[int]]] = []
    for file, size, then in (each for each in files if each[1]):  # a file of lines without any has no schema
        key = (kind_of(file, then), then, root_of(ledger.folder, file))
        if not groups or groups[-1][:3] != key:
            groups.append((*key, [], []))
        groups[-1][3].append(file)
        groups[-1][4].append(size)
    return [group_of(group, then, root, columns, sizes) for _, then, root, group, sizes in groups], columns


def dataset_columns(path: str | os.PathLike[str], as_of: int | datetime.datetime | None = None) -> pyarrow.Schema | None:
    """Return the columns of a dataset, None where the ledger does not have them. Reads the ledger, and looks at no file.

    The arguments are those of `read_dataset`. Raises NoSuchDataset, LedgerMissing, NoSuchEntry, LedgerDamaged.
    """
    ledger = _ledger(path, as_of)
    return _columns(ledger.schema_at(_newest(ledger, as_of)))


def _ledger(path: str | os.PathLike[str], as_of: int | datetime.datetime | None) -> Ledger:
    if isinstance(as_of, bool) or not isinstance(as_of, int | datetime.datetime | None):
        raise TypeError(f"as_of is {as_of!r}: give the number of an entry, or a datetime with its zone")
    return Ledger.open(find_dataset(os.fspath(path)))


def _columns(schema: SetSchema | None) -> pyarrow.Schema | None:
    return None if schema is None or not schema.schema else schema_of_fields(schema.schema)


def kind_of(path: str, then: SetSchema | None) -> str:
    """Return the kind of a file, by the schema that it was written under or else by its name."""
    kind: str = (None if then is None else then.written.get("kind")) or kind_of_file(path)
    return "text" if kind in ("csv", "json") and then is not None and then.schema == LINES else kind


def group_of(paths: Sequence[str], then: SetSchema | None, root: str, columns: Any, sizes: Sequence[int] = ()) -> FileGroup:
    """Return files of one kind that were written under one schema, below one root. `columns`: the schema to read them as."""
    written, names = ({}, ()) if then is None else (then.written, tuple(field.name for field in then.schema))
    return FileGroup(kind_of(paths[0], then), paths, root, columns, written, names, sizes)


def _newest(ledger: Ledger, as_of: int | datetime.datetime | None) -> int:
    """Return the number of the entry that `as_of` means. Raises LedgerMissing, NoSuchEntry."""
    head = ledger.refresh()
    if head is None or ledger.folder is None:
        raise LedgerMissing(ledger.place)
    if isinstance(as_of, datetime.datetime):
        entry = ledger.entry_at(as_of)
        if entry is None:
            raise NoSuchEntry(ledger.place, f"entry up to {as_of}", "its first is later")
        return entry.seq
    return head.seq if as_of is None else ledger.entry(as_of).seq


def _files(
    ledger: Ledger, as_of: int | datetime.datetime | None
) -> tuple[list[tuple[str, int, SetSchema | None]], SetSchema | None]:
    """Return the files with their sizes and the schemas that they were written under, and the newest schema."""
    newest = _newest(ledger, as_of)
    files: list[tuple[str, int, SetSchema | None]] = []
    for entry, schema, file in ledger.content_files(newest):
        files.append((committed_path(ledger, entry.seq, file), file.size, ledger.schema_at(schema)))
    return files, ledger.schema_at(newest)


def committed_path(ledger: Ledger, seq: int, file: DataFile) -> str:
    """Return the path of a committed file, if it is there with its size. Raises ObjectMissing, ObjectDamaged, PathOutside."""
    assert ledger.folder is not None
    path = inside(ledger.folder, file.path)
    try:
        length = file_system(path).status(path).length
    except FileNotFoundError as error:
        reason = f"{file.path} is not there; {file.rows} rows were committed in it"
        head = ledger.refresh()
        if head is not None and head.carried.replaced is not None and seq < head.carried.replaced:
            reason += f". Entry {head.carried.replaced} has replaced them since, and old snapshots are swept"
        raise ObjectMissing(ledger.folder, seq, reason) from error
    if length != file.size:
        raise ObjectDamaged(ledger.folder, seq, f"{file.path} has {length} bytes, {file.size} were committed")
    return path


def _no_columns() -> pyarrow.Schema:
    import pyarrow as pa

    return pa.schema([])
