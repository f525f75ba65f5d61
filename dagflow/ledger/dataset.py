"""Reading a dataset: the files that its ledger names, and no others."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from dagflow.errors.ledger import LedgerMissing, NoSuchEntry
from dagflow.ledger.chain import Ledger
from dagflow.ledger.events import SetSchema
from dagflow.storage import file_system, is_local, join, local_path

if TYPE_CHECKING:
    import pyarrow.dataset

_FORMATS = {
    "parquet": "parquet",
    "csv": "csv",
    "arrow": "ipc",
    "feather": "ipc",
    "orc": "orc",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
}


def committed_files(path: str, as_of: int | datetime.datetime | None = None) -> list[str]:
    """The paths of all committed files of a dataset, in the order of their rows.

    `as_of`: an entry's number, or a time: what was committed up to it. Raises LedgerMissing, NoSuchEntry, LedgerDamaged.
    """
    return _files(Ledger.open(path), as_of)[0]


def read_dataset(path: str, as_of: int | datetime.datetime | None = None) -> pyarrow.dataset.Dataset:
    """The committed data of a dataset folder, in the order of its rows; a consistent state, whatever is being written.

    Files are read by their suffix: Parquet, CSV, Arrow, ORC, JSON lines; all others as lines of text in one column `value`
    (these are held in memory).

    Args:
        path: the dataset's folder, by path or URL.
        as_of: an entry's number, or a time (with its zone): what was committed up to it.

    Raises LedgerMissing, NoSuchEntry, LedgerDamaged.
    """
    import pyarrow.dataset as ds

    ledger = Ledger.open(path)
    files, schema = _files(ledger, as_of)
    groups: list[tuple[str, list[str]]] = []
    for file in files:
        kind = _FORMATS.get(file.rpartition("/")[2].rpartition(".")[2].lower(), "text")
        if not groups or groups[-1][0] != kind:
            groups.append((kind, []))
        groups[-1][1].append(file)
    if not groups:
        return ds.dataset(_empty(schema))
    parts = [_text(group) if kind == "text" else _formatted(group, kind) for kind, group in groups]
    return parts[0] if len(parts) == 1 else ds.dataset(parts)


def _files(ledger: Ledger, as_of: int | datetime.datetime | None) -> tuple[list[str], SetSchema | None]:
    head = ledger.refresh()
    if head is None or ledger.folder is None:
        raise LedgerMissing(ledger.place)
    if isinstance(as_of, datetime.datetime):
        found = ledger.entry_at(as_of)
        if found is None:
            raise NoSuchEntry(ledger.place, f"entry up to {as_of}", "its first is later")
        newest = found.seq
    else:
        newest = head.seq if as_of is None else ledger.entry(as_of).seq
    files: list[str] = []
    for entry in ledger.data_entries(newest):  # newest first
        if entry.data is not None and entry.data.new_data is not None:
            files += [join(ledger.folder, file.path) for file in reversed(entry.data.new_data.files)]
    return files[::-1], ledger.schema_at(newest)


def _formatted(files: list[str], kind: str) -> Any:
    import pyarrow.dataset as ds
    import pyarrow.fs

    if is_local(files[0]):
        return ds.dataset([local_path(file) for file in files], format=kind, filesystem=pyarrow.fs.LocalFileSystem())
    system, _ = pyarrow.fs.FileSystem.from_uri(files[0])
    return ds.dataset([pyarrow.fs.FileSystem.from_uri(file)[1] for file in files], format=kind, filesystem=system)


def _text(files: list[str]) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    batches = []
    for file in files:
        with file_system(file).open(file) as reader:
            data = b"".join(iter(lambda reader=reader: reader.read(1 << 20), b""))  # type: ignore[misc]
        lines = data.split(b"\n")
        if lines[-1] == b"":
            lines.pop()
        texts = pa.array([line.removesuffix(b"\r") for line in lines], pa.binary())
        batches.append(pa.RecordBatch.from_arrays([texts.cast(pa.string())], names=["value"]))
    return ds.dataset(batches)


def _empty(schema: SetSchema | None) -> Any:
    """A table without rows: of the schema in effect, as far as the names of its types are simple ones."""
    import pyarrow as pa

    fields = []
    for field in schema.schema if schema is not None else ():
        try:
            fields.append(pa.field(field.name, pa.type_for_alias(field.type)))
        except ValueError:
            fields.append(pa.field(field.name, pa.null()))
    return pa.schema(fields).empty_table()
