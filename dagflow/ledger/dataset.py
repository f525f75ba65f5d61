"""Reading a dataset: the files that its ledger names, and no others."""

from __future__ import annotations

import datetime
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dagflow.errors.ledger import LedgerError, LedgerMissing, NoSuchEntry, ObjectDamaged, ObjectMissing
from dagflow.ledger.arrow_types import schema_of_fields
from dagflow.ledger.chain import Ledger
from dagflow.ledger.events import DataFile, SchemaField, SetSchema
from dagflow.ledger.find import find_dataset
from dagflow.ledger.reader import CHECKPOINTS
from dagflow.ledger.tail import ENTRIES, HINTS, entry_name, entry_number
from dagflow.storage import file_system, is_local, join, local_path

if TYPE_CHECKING:
    import pyarrow.dataset

FORMATS = {
    "parquet": "parquet",
    "csv": "csv",
    "tsv": "tsv",
    "arrow": "ipc",
    "feather": "ipc",
    "orc": "orc",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
}


COMPRESSED = (".gz", ".bgz", ".bz2", ".xz", ".zst")


def committed_files(path: str, as_of: int | datetime.datetime | None = None) -> list[str]:
    """The paths of all committed files of a dataset, in the order of their rows.

    `as_of`: an entry's number, or a time: what was committed up to it. Raises LedgerMissing, NoSuchEntry, LedgerDamaged.
    """
    return _files(Ledger.open(path), as_of)[0]


def named_files(path: str) -> tuple[list[str], int]:
    """The paths of all files that any readable entry names, and how many entries cannot be read. For starting over."""
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
            files += [join(ledger.folder or path, file.path) for file in event.new_data.files]
    return files, unreadable


def erase(path: str) -> None:
    """Removes the ledger of a dataset folder; of its files, nothing. Whoever dies in between calls it again."""
    ledger = Ledger.open(path, durable=False)
    names = [entry_name(seq) for seq in _numbers(ledger)]
    for prefix in (HINTS, CHECKPOINTS):
        names += ledger.store.names(f"{prefix}/")
    for name in reversed(names):
        ledger.store.discard(name)


def _numbers(ledger: Ledger) -> list[int]:
    found = (entry_number(name) for name in ledger.store.names(f"{ENTRIES}/"))
    return [seq for seq in found if seq is not None]


def read_dataset(path: str | os.PathLike[str], as_of: int | datetime.datetime | None = None) -> pyarrow.dataset.Dataset:
    """The committed data of a dataset folder, in the order of its rows; a consistent state, whatever is being written.

    Where the ledger says that rows are lines of text (what RecordWriter writes, whatever it calls its files), they are read as
    such, in one column `value`, and held in memory. Other files are read by their suffix: Parquet, CSV (`.tsv`: tabs), Arrow,
    ORC, JSON lines; the columns are those of the ledger's schema, where it knows them. Folders `key=value` are columns.

    Args:
        path: the dataset's folder, by path or URL, or anything in it.
        as_of: an entry's number, or a time (with its zone): what was committed up to it.

    Raises NoSuchDataset, LedgerMissing, NoSuchEntry, LedgerDamaged; ObjectMissing and ObjectDamaged for a file that is not what
    was committed, as far as its length tells (`dagflow verify` reads them whole).
    """
    import pyarrow.dataset as ds

    if isinstance(as_of, bool) or not isinstance(as_of, int | datetime.datetime | None):
        raise TypeError(f"as_of is {as_of!r}: give the number of an entry, or a datetime with its zone")
    ledger = Ledger.open(find_dataset(os.fspath(path)))
    files, schema = _files(ledger, as_of)
    are_lines = schema is not None and schema.schema == (SchemaField(name="value", type="string"),)
    groups: list[tuple[str, list[str]]] = []
    for file in files:
        kind = kind_of_file(file)
        if are_lines and kind in ("csv", "tsv", "json"):
            kind = "text"
        if not groups or groups[-1][0] != kind:
            groups.append((kind, []))
        groups[-1][1].append(file)
    if not groups:
        return ds.dataset(_empty(schema))
    columns = None if schema is None or not schema.schema else schema_of_fields(schema.schema)
    parts = [_text(group) if kind == "text" else formatted(group, kind, ledger.folder, columns) for kind, group in groups]
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
            files += [_checked(ledger, entry.seq, file) for file in reversed(entry.data.new_data.files)]
    return files[::-1], ledger.schema_at(newest)


def _checked(ledger: Ledger, seq: int, file: DataFile) -> str:
    """The path of a committed file, which must be there with its size. Raises ObjectMissing, ObjectDamaged."""
    assert ledger.folder is not None
    path = join(ledger.folder, file.path)
    try:
        found = file_system(path).status(path).length
    except FileNotFoundError as error:
        raise ObjectMissing(ledger.folder, seq, f"{file.path} is not there; {file.rows} rows were committed in it") from error
    if found != file.size:
        raise ObjectDamaged(ledger.folder, seq, f"{file.path} has {found} bytes, {file.size} were committed")
    return path


def kind_of_file(path: str) -> str:
    """How a file is read, told by its name: one of `FORMATS`' values, or `text`."""
    name = path.rpartition("/")[2].lower()
    for suffix in COMPRESSED:
        name = name.removesuffix(suffix)
    return FORMATS.get(name.rpartition(".")[2], "text")


def formatted(files: list[str], kind: str, folder: str | None = None, schema: Any = None) -> Any:
    """The dataset of files of a format that Arrow reads, one of `FORMATS`' values.

    Args:
        files: by path or URL.
        kind: how they are read.
        folder: where folders that are columns begin.
        schema: of the rows, with the columns that folders are; None: that of the first file.
    """
    import pyarrow.dataset as ds
    import pyarrow.fs

    keys = _keys(files[0], folder) if folder is not None else []
    if is_local(files[0]):
        system: Any = pyarrow.fs.LocalFileSystem()
        paths, base = [local_path(file) for file in files], local_path(folder) if folder is not None else None
    else:
        system, _ = pyarrow.fs.FileSystem.from_uri(files[0])
        paths = [pyarrow.fs.FileSystem.from_uri(file)[1] for file in files]
        base = pyarrow.fs.FileSystem.from_uri(folder)[1] if folder is not None else None
    return ds.dataset(
        paths,
        schema=schema,
        format=_format(kind, schema),
        filesystem=system,
        partitioning=_partitioning(keys, schema) if keys else None,
        partition_base_dir=base if keys else None,
    )


def _keys(file: str, folder: str) -> list[str]:
    """The columns that a file's folders are, `[year, country]` of `year=2026/country=se/part`."""
    below = file.removeprefix(folder).strip("/").split("/")[:-1]
    return [unquote(part.partition("=")[0]) for part in below] if below and all("=" in part for part in below) else []


def _partitioning(keys: list[str], schema: Any) -> Any:
    import pyarrow as pa
    import pyarrow.dataset as ds

    known = () if schema is None else schema.names
    types = [(key, schema.field(key).type if key in known else pa.string()) for key in keys]
    return ds.partitioning(pa.schema(types), flavor="hive")


def _format(kind: str, schema: Any) -> Any:
    import pyarrow.csv
    import pyarrow.dataset as ds

    if kind not in ("csv", "tsv"):
        return kind
    types = None if schema is None else dict(zip(schema.names, schema.types, strict=True))
    return ds.CsvFileFormat(
        parse_options=pyarrow.csv.ParseOptions(delimiter="\t" if kind == "tsv" else ",", newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        )
        if types is not None
        else None,
    )


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
    """A table without rows: of the schema in effect."""
    import pyarrow as pa

    known = None if schema is None else schema_of_fields(schema.schema)
    return (pa.schema([]) if known is None else known).empty_table()
