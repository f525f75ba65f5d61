"""Files of a dataset as tables: what Arrow reads by itself, and what is read whole, as its ledger says that it was written."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote

import attrs

from dagflow.storage import BinaryReader, file_system, is_local, local_path

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    "parquet": "parquet",
    "csv": "csv",
    "arrow": "ipc",
    "feather": "ipc",
    "orc": "orc",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
}
PACKED = {".gz": "gzip", ".bgz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}


def kind_of_file(path: str) -> str:
    """Return the kind of a file by its name: one of `KINDS`' values, or `text`.

    >>> kind_of_file("a/part-000000-0000.csv.gz"), kind_of_file("part-000000-0000")
    ('csv', 'text')
    """
    name = path.rpartition("/")[2].lower().removesuffix(packing_of(path)[0])
    return KINDS.get(name.rpartition(".")[2], "text")


def packing_of(path: str) -> tuple[str, str | None]:
    """Return the suffix that says how a file is packed, and the codec."""
    return next(((suffix, packing) for suffix, packing in PACKED.items() if path.lower().endswith(suffix)), ("", None))


@attrs.frozen
class FileGroup:
    """Files that are read in one way, in the order of their rows.

    Attributes:
        kind: one of `KINDS`' values, or `text`.
        paths: by path or URL.
        folder: the dataset's; folders `key=value` below it are columns. None: there are none.
        schema: of the rows, with such columns; None: what the files say.
        written: how they were written, where the ledger says it; see `SetSchema`.
        names: the columns that there were then, those that folders are among them; for files that do not name them.
        sizes: of the files, in bytes, as the ledger has them; none where they do not matter.
    """

    kind: str
    paths: Sequence[str]
    folder: str | None = None
    schema: pa.Schema | None = None
    written: Mapping[str, Any] = attrs.field(factory=dict)
    names: tuple[str, ...] = ()
    sizes: Sequence[int] = ()

    def dataset(self) -> Any:
        """Return the dataset of the files: read when it is used, where Arrow can do that, else held in memory."""
        import pyarrow.dataset as ds

        if self.kind == "text":
            return ds.dataset([lines(path) for path in self.paths])
        is_packed = any(packing_of(path)[1] is not None for path in self.paths)
        if self.kind in ("csv", "json") and (is_packed or (self.kind == "json" and self.schema is not None)):
            return ds.dataset([table for path in self.paths if (table := self._table(path, content(path))).num_rows])
        return self._lazily()

    def first(self, most: int) -> pa.Table:
        """Return the first rows of the first file, without reading the rest where its form allows that."""
        path = self.paths[0]
        if self.kind == "text":
            import pyarrow as pa

            return pa.Table.from_batches([_lines(beginning(path, most))])
        if self.kind == "json":
            return self._table(path, beginning(path, most))
        if self.kind == "csv" and packing_of(path)[1] is not None:
            return self._table(path, content(path)).slice(0, most)  # a line end may be within a value
        return self._lazily().head(most)

    def _lazily(self) -> Any:
        import pyarrow.dataset as ds
        import pyarrow.fs

        keys = list(self._folders(self.paths[0]))
        paths: Sequence[Any] = self.paths
        base = self.folder
        if is_local(paths[0]):
            system: Any = pyarrow.fs.LocalFileSystem()
            paths, base = [local_path(path) for path in paths], local_path(base) if base is not None else None
        else:
            system, _ = pyarrow.fs.FileSystem.from_uri(paths[0])
            paths = [pyarrow.fs.FileSystem.from_uri(path)[1] for path in paths]
            base = pyarrow.fs.FileSystem.from_uri(base)[1] if base is not None else None
        options = self._csv(keys) if self.kind == "csv" else None
        return ds.dataset(
            paths,
            schema=self.schema,
            format=self.kind if options is None else ds.CsvFileFormat(**options),
            filesystem=system,
            partitioning=self._partitioning(keys) if keys else None,
            partition_base_dir=base if keys else None,
        )

    def _folders(self, path: str) -> dict[str, str | None]:
        """Return the columns that the folders of a file stand for, and their values: `{"year": "2026"}` of `year=2026/part`."""
        if self.folder is None:
            return {}
        below = [part.partition("=") for part in path.removeprefix(self.folder).strip("/").split("/")[:-1]]
        if not all(equals for _, equals, _ in below):
            return {}
        return {unquote(key): None if value == NO_VALUE else unquote(value) for key, _, value in below}

    def _partitioning(self, keys: Sequence[str]) -> Any:
        import pyarrow as pa
        import pyarrow.dataset as ds

        known = () if self.schema is None else self.schema.names
        types = [(key, self.schema.field(key).type if self.schema and key in known else pa.string()) for key in keys]
        return ds.partitioning(pa.schema(types), flavor="hive")

    def _csv(self, keys: Sequence[str]) -> dict[str, Any] | None:
        """Return the options for Arrow's CSV reader; None for its defaults."""
        import pyarrow.csv as c

        if self.schema is None and not self.written:
            return None
        types = {field.name: field.type for field in self.schema or () if field.name not in keys}
        written = {"delimiter": ",", "quote": '"', "null": "", "header": True, **self.written}
        names = None if written["header"] or not types else [name for name in self.names or types if name not in keys]
        return {
            "read_options": c.ReadOptions(column_names=names, autogenerate_column_names=not written["header"] and not types),
            "parse_options": c.ParseOptions(delimiter=written["delimiter"], quote_char=written["quote"], newlines_in_values=True),
            "convert_options": c.ConvertOptions(
                column_types=types,
                null_values=[written["null"]],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        }

    def _table(self, path: str, data: bytes) -> pa.Table:
        """Return the rows of a file of CSV or JSON lines."""
        import pyarrow as pa
        import pyarrow.csv

        folders = self._folders(path)
        if self.kind == "csv":
            table = pyarrow.csv.read_csv(io.BytesIO(data), **(self._csv(list(folders)) or {}))
        elif self.schema is None:
            table = _parsed(data)
        else:
            table = json_table(data, pa.schema([field for field in self.schema if field.name not in folders]))
        for name, value in folders.items():
            kind = pa.string() if self.schema is None else self.schema.field(name).type
            column = pa.array([value], pa.string()).cast(kind)[0]
            table = table.append_column(pa.field(name, kind), pa.repeat(column, table.num_rows))
        if self.schema is None:
            return table
        missing = [field for field in self.schema if field.name not in table.schema.names]
        for field in missing:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table.select(self.schema.names)


BEGINNINGS = {"gzip": b"\x1f\x8b", "bz2": b"BZh", "xz": b"\xfd7zXZ\0", "zstd": b"\x28\xb5\x2f\xfd"}
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def content(path: str) -> bytes:
    """Return the bytes of a file, unpacked."""
    with _unpacked(path) as stream:
        data: bytes = stream.read()
    return data


def beginning(path: str, lines: int) -> bytes:
    """Return the first lines of a file, unpacked. No more of it is read than is needed for them."""
    with _unpacked(path) as stream:
        return b"".join(itertools.islice(stream, lines))


@contextlib.contextmanager
def _unpacked(path: str) -> Iterator[IO[bytes]]:
    """Open a file for reading its unpacked bytes, forwards."""
    import pyarrow as pa

    with file_system(path).open(path) as reader:
        stream: Any = io.BufferedReader(_RawFile(reader), 1 << 20)
        packing = packing_of(path)[1]
        if packing is None or not stream.peek(6).startswith(BEGINNINGS[packing]):
            yield stream
        elif packing == "xz":
            with lzma.open(stream) as unpacked:
                yield unpacked
        else:
            with pa.CompressedInputStream(stream, packing) as native:
                yield io.BufferedReader(native)


class _RawFile(io.RawIOBase):
    """A file of a file system, as the standard library's streams take it."""

    def __init__(self, reader: BinaryReader) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        return self._reader.readinto(buffer)


def lines(path: str) -> pa.RecordBatch:
    """Read a file of text: one row per line."""
    return _lines(content(path))


def _lines(data: bytes) -> pa.RecordBatch:
    import pyarrow as pa

    found = data.split(b"\n")
    if found[-1] == b"":
        found.pop()
    texts = pa.array([line.removesuffix(b"\r") for line in found], pa.binary())
    return pa.RecordBatch.from_arrays([texts.cast(pa.string())], names=["value"])


def json_table(data: bytes, schema: pa.Schema) -> pa.Table:
    r"""Read lines of JSON as a table: dates, times and decimals as they are written, which Arrow's own reader does not know.

    >>> import pyarrow as pa
    >>> json_table(b'{"at":"2026-01-31T11:00:00Z"}\n', pa.schema({"at": pa.timestamp("s", "UTC")}))["at"].to_pylist()
    [datetime.datetime(2026, 1, 31, 11, 0, tzinfo=zoneinfo.ZoneInfo(key='UTC'))]
    """
    import pyarrow as pa
    import pyarrow.json as pj

    plain = [pa.field(field.name, _plain(field.type)) for field in schema]
    if any(_has_own_form(field.type) for field in schema):
        rows = [json.loads(line, parse_float=Decimal) for line in data.split(b"\n") if line]
        columns = [pa.array([_value(row.get(field.name), field.type) for row in rows], field.type) for field in schema]
        return pa.Table.from_arrays(columns, schema=schema)
    options = pj.ParseOptions(explicit_schema=pa.schema(plain), unexpected_field_behavior="ignore")
    return _parsed(data, options).cast(schema)


def _parsed(data: bytes, options: Any = None) -> pa.Table:
    r"""Read lines of JSON with Arrow. Raises ArrowInvalid where a line is not an object; Arrow crashes where the first is `null`.

    >>> _parsed(b'null\n{"a": 1}\n')
    Traceback (most recent call last):
    ...
    pyarrow.lib.ArrowInvalid: JSON parse error: a line is not an object: b'null'
    """
    import pyarrow as pa
    import pyarrow.json

    odd = next((line for line in data.split(b"\n") if line.strip() and not line.startswith(b"{")), None)
    if odd is not None:
        raise pa.ArrowInvalid(f"JSON parse error: a line is not an object: {odd[:100]!r}")
    return pyarrow.json.read_json(io.BytesIO(data), parse_options=options)


def _plain(kind: Any) -> Any:
    """Return a type as Arrow reads it from JSON."""
    import pyarrow as pa
    import pyarrow.types as t

    return pa.string() if t.is_temporal(kind) and not t.is_duration(kind) else pa.int64() if t.is_duration(kind) else kind


def _has_own_form(kind: Any) -> bool:
    """Return whether Arrow's reader cannot read a type, not even as another."""
    import pyarrow.types as t

    if t.is_nested(kind):
        if t.is_map(kind) or t.is_fixed_size_list(kind) or t.is_large_list(kind):
            return True
        return any(
            _has_own_form(kind.field(n).type) or _plain(kind.field(n).type) != kind.field(n).type for n in range(kind.num_fields)
        )
    return bool(t.is_decimal(kind) or t.is_dictionary(kind) or t.is_float16(kind))


def _value(value: Any, kind: Any) -> Any:
    """Return a value of parsed JSON as Arrow takes it for a type."""
    import pyarrow as pa
    import pyarrow.types as t

    if value is None:
        return None
    if t.is_struct(kind):
        return {field.name: _value(value.get(field.name), field.type) for field in kind}
    if t.is_map(kind):
        return [(key, _value(each, kind.item_type)) for key, each in value.items()]
    if t.is_nested(kind):
        return [_value(each, kind.value_type) for each in value]
    if t.is_dictionary(kind):
        return _value(value, kind.value_type)
    if t.is_temporal(kind) and not t.is_duration(kind):
        return pa.scalar(value, pa.string()).cast(kind)
    if t.is_decimal(kind):
        return Decimal(value)
    return float(value) if t.is_floating(kind) else value
