"""Avro container files, read by blocks."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import numpy as np
import pyarrow as pa

from dagflow.errors import PackageMissing
from dagflow.scan import FileSchemaNegotiator, Format, ManagedReader, ResultSetLoader, RowOrigin
from dagflow.storage import read_fully
from operators.formats.binary.avro_schema import AvroSchema, Mend, NoArrowForm, NoSchema
from operators.formats.binary.counting import count_rows
from operators.formats.errors import FileCutShort, FileDamaged, FormatUnsupported, NotOfFormat

if TYPE_CHECKING:
    from dagflow.storage import BinaryReader

MAGIC = b"Obj\x01"
SYNC = 16
HEADER_BYTES = 64 << 10
PIECE_BYTES = 1 << 20
MOST_BLOCKS = 10_000
MOST_ROWS = 1 << 31
"""A block whose head has a larger number is damaged."""
HEAD_BYTES = 20
"""The most bytes of the two numbers before a block's data."""
CODECS = {"null": "", "deflate": "", "bzip2": "", "xz": "", "snappy": "cramjam", "zstandard": "backports.zstd", "lz4": "lz4"}
"""The supported codecs, and the package that each needs."""

_BROKEN = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)
"""The exceptions that reading an invalid schema raises."""


@attrs.define
class AvroFormat(Format):
    """Avro container files. They can be cut at any byte: an Avro block belongs to the range that has its first byte.

    Blocks are found by the sync marks between them. Fields are columns. Columns that are not needed are skipped; to count rows,
    only the heads of the blocks are read. Columns are matched by name: files may lack some, or have other types that convert.
    Dates, times, timestamps and decimals get the Arrow types of their logical types, and enums are strings. A union of null and
    one type is nullable, a union of numbers has the widest type, and in other unions the values are strings. An empty file has
    no rows.

    Needs the package `fastavro` (`pip install 'dagflow[avro]'`). Codecs: null, deflate, bzip2, xz; snappy, zstandard and lz4
    need further packages.

    Raises NotOfFormat, FileCutShort, FileDamaged and FormatUnsupported, which name file and byte; PackageMissing.

    >>> import pathlib, tempfile, fastavro
    >>> from dagflow.testing import scan_table
    >>> from operators import AvroFormat, ScanReader
    >>> fields = [{"name": "name", "type": "string"}, {"name": "people", "type": "int"}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.avro")
    ...     with path.open("wb") as file:
    ...         schema = {"type": "record", "name": "Town", "fields": fields}
    ...         fastavro.writer(file, schema, [{"name": "Lund", "people": 94703}, {"name": "Åhus", "people": 10500}])
    ...     scan_table(ScanReader(AvroFormat()), path, columns=["people", "name"]).to_pylist()
    [{'people': 94703, 'name': 'Lund'}, {'people': 10500, 'name': 'Åhus'}]
    """

    cuts: ClassVar[Literal["any", "none"]] = "any"
    suffixes: ClassVar[tuple[str, ...]] = ("avro",)

    def make_reader(self) -> AvroReader:
        """Return a reader for one block."""
        return AvroReader()

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
        """Return the columns of the header."""
        return Header.of(stream, path, length).arrow if length else None


@attrs.frozen(eq=False)
class Header:
    """The header before the first block, which begins at `end`."""

    path: str
    schema: AvroSchema
    codec: str
    sync: bytes
    end: int

    @classmethod
    def of(cls, stream: BinaryReader, path: str, length: int) -> Header:
        """Return the header of a file. Raises NotOfFormat, FileCutShort, FileDamaged, FormatUnsupported, PackageMissing."""
        size, data = HEADER_BYTES, b""
        while True:
            stream.seek(0)
            data = read_fully(stream, min(size, length))
            if data[:4] != MAGIC:
                raise NotOfFormat(path=path, format="Avro", head=data[:64])
            try:
                entries, end = _map_at(data, 4)
                sync = data[end : end + SYNC]
                if len(sync) == SYNC:
                    return cls._made(path, entries, sync, end + SYNC)
            except IndexError:
                pass
            if size >= length:
                raise FileCutShort(path=path, format="Avro", position=length, missing="the end of its header")
            size *= 16

    @classmethod
    def _made(cls, path: str, entries: Mapping[str, bytes], sync: bytes, end: int) -> Header:
        codec = entries.get("avro.codec", b"null").decode("utf-8", "replace") or "null"
        try:
            header = cls(path, AvroSchema(json.loads(entries["avro.schema"])), codec, sync, end)
            _ = header.arrow, header.plain()
        except _BROKEN as error:
            if isinstance(error, NoArrowForm) and not isinstance(error, NoSchema):
                raise _unsupported(path, str(error)) from error
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise FileDamaged(path=path, format="Avro", position=0, part="the header", reason=reason) from error
        if codec not in CODECS:
            raise _unsupported(path, f"codec {codec!r} is not one of {', '.join(CODECS)}")
        return header

    @property
    def arrow(self) -> pa.Schema:
        """The columns. Raises NoArrowForm."""
        kinds = []
        for name in self.schema.fields:
            try:
                kinds.append((name, self.schema.kind_of(name)[0]))
            except NoArrowForm as error:
                raise type(error)(f"column {name!r} cannot be read: {error}") from None
        return pa.schema(kinds)

    def plain(self) -> bytes:
        """Return a header of the same blocks without logical types."""
        schema = json.dumps(self.schema.reduced()).encode()
        entries = b"".join(_number(len(part)) + part for part in (b"avro.schema", schema, b"avro.codec", self.codec.encode()))
        return MAGIC + _number(2) + entries + _number(0) + self.sync


@attrs.frozen
class Block:
    """A block of a file: where it begins and ends (its mark included), and how many rows are in it."""

    begin: int
    end: int
    rows: int


@attrs.define(eq=False)
class AvroReader(ManagedReader[FileSchemaNegotiator]):
    """Reads the blocks that begin in a range."""

    _position: int = attrs.field(init=False, default=0)
    _buffer: bytes = attrs.field(init=False, default=b"")
    _at: int = attrs.field(init=False, default=0)

    def open(self, negotiator: FileSchemaNegotiator) -> bool:
        """Read the header, and go to the first block."""
        split = negotiator.split
        if not split.file_length:
            return False
        self._negotiator, self._path, self._length = negotiator, split.path, split.file_length
        self._header = Header.of(negotiator.stream, self._path, self._length)
        negotiator.set_table_schema(self._header.arrow, complete=True)
        self._loader: ResultSetLoader = negotiator.build()
        schema = self._header.schema
        self._columns = [name for name in schema.fields if negotiator.is_projected(name)]
        self._kinds = [(name, *schema.kind_of(name)) for name in self._columns]
        self._plain = self._header.plain()
        self._wanted = schema.reduced(self._columns)
        first = self._first(split.start, split.stop)
        self._position = self._length if first is None else first
        return True

    def next(self) -> bool:
        """Load the blocks in about 1 MiB; at least one."""
        blocks: list[Block] = []
        stop = min(self._negotiator.split.stop, self._length)
        while len(blocks) < MOST_BLOCKS and self._position < (stop if blocks else self._length):
            block = self._block(self._position, blocks[0].begin if blocks else self._position)
            if block is None:
                break
            blocks.append(block)
            self._position = block.end
        if not blocks:
            return False
        granted = self._negotiator.claim([block.begin for block in blocks])
        mine = blocks[:granted]
        if mine and not self._columns:
            for block in mine:
                count_rows(self._loader, block.rows, block.begin)
        elif mine:
            self._load(mine)
        return granted == len(blocks)

    def close(self) -> None:
        """Drop the bytes that were read."""
        self._buffer = b""

    def _first(self, start: int, stop: int) -> int | None:
        """Return the start of the first block that begins in a range: right behind a mark."""
        if start <= self._header.end:
            return self._header.end if self._header.end < stop else None
        at, rest = start - SYNC, b""
        stream = self._negotiator.stream
        while at + SYNC - len(rest) < stop:
            stream.seek(at)
            data = read_fully(stream, min(HEADER_BYTES, stop - at))
            if not data:
                return None
            data, at = rest + data, at + len(data)
            marker = data.find(self._header.sync)
            if marker >= 0:
                begin = at - len(data) + marker + SYNC
                return begin if begin < stop else None
            rest = data[1 - SYNC :]
        return None

    def _bytes(self, begin: int, size: int) -> bytes:
        """Some bytes of the file, fewer at its end. What stands before `begin` is let go of when more must be read."""
        end = self._at + len(self._buffer)
        if not self._at <= begin <= end:
            self._buffer, self._at, end = b"", begin, begin
        if begin + size > end and end < self._length:
            self._negotiator.stream.seek(end)
            kept = self._buffer[begin - self._at :]
            self._buffer, self._at = kept + read_fully(self._negotiator.stream, min(begin + size, self._length) - end), begin
        return self._buffer[begin - self._at : begin - self._at + size]

    def _block(self, begin: int, first: int) -> Block | None:
        """The block that begins there; None where it is to be read with those behind it: `first` begins those at hand.

        Raises FileCutShort, FileDamaged.
        """
        end_at_hand = self._at + len(self._buffer)
        if begin == first:
            ahead = min(PIECE_BYTES, self._negotiator.split.stop - begin) if self._columns else 0
            head = self._bytes(begin, max(HEAD_BYTES, ahead))[:HEAD_BYTES]
        elif self._columns and begin + HEAD_BYTES > min(end_at_hand, self._length):
            return None
        else:
            head = self._bytes(begin, HEAD_BYTES)
        rows = size = at = 0
        try:
            rows, at = _number_at(head, 0)
            size, at = _number_at(head, at)
        except IndexError:
            if begin + len(head) < self._length:
                raise self._damaged(begin, "its head is none") from None
        if not 0 <= rows <= MOST_ROWS or size < 0:
            raise self._damaged(begin, f"it would have {rows} rows, and {size} bytes")
        end = begin + at + size + SYNC
        if end > self._length:
            raise FileCutShort(
                path=self._path, format="Avro", position=self._length, missing=f"the end of the block at byte {begin}"
            )
        if self._columns and begin > first and end > end_at_hand:
            return None
        whole = self._bytes(begin, end - begin) if self._columns else self._bytes(end - SYNC, SYNC)
        if whole[-SYNC:] != self._header.sync:
            raise self._damaged(begin, "it does not end with the mark that ends all blocks of the file")
        return Block(begin, end, rows)

    def _load(self, blocks: list[Block]) -> None:
        records = self._records(blocks)
        arrays = []
        for name, kind, mend in self._kinds:
            values = records if not self._header.schema.is_record else [record[name] for record in records]
            try:
                arrays.append(pa.array(_mended(values, mend), kind))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                if len(blocks) > 1:
                    for block in blocks:
                        self._load([block])
                    return
                raise self._damaged(blocks[0].begin, f"column {name!r}: {error}") from error
        begins = np.repeat([block.begin for block in blocks], [block.rows for block in blocks])
        batch = pa.RecordBatch.from_arrays(arrays, names=self._columns)
        self._loader.add_batch(batch, lambda row: RowOrigin(int(begins[row])), pa.array(begins, pa.int64()))

    def _records(self, blocks: list[Block]) -> list[Any]:
        """Return the decoded rows of consecutive blocks."""
        fastavro = _fastavro(self._path)
        data = self._plain + self._bytes(blocks[0].begin, blocks[-1].end - blocks[0].begin)
        rows = sum(block.rows for block in blocks)
        try:
            records: list[Any] = []
            for block in fastavro.block_reader(io.BytesIO(data), reader_schema=self._wanted):
                records += block
                if block.bytes_.read(1):
                    raise ValueError("it has more rows than it says")
            if len(records) != rows:
                raise ValueError(f"it has {len(records)} rows, and should have {rows}")
        except Exception as error:  # whatever fastavro raises for bytes that are none
            if "need to install" in str(error):
                package = CODECS[self._header.codec]
                raise PackageMissing(needed_by=self._path, package=package, install=package) from None
            if len(blocks) == 1:
                raise self._damaged(blocks[0].begin, f"{type(error).__name__}: {error}".rstrip(": ")) from error
            return [record for block in blocks for record in self._records([block])]
        return records

    def _damaged(self, begin: int, reason: str) -> FileDamaged:
        return FileDamaged(path=self._path, format="Avro", position=begin, part="a block", reason=reason)


def _unsupported(path: str, reason: str) -> FormatUnsupported:
    return FormatUnsupported(path=path, format="Avro", position=0, part="the header", reason=reason)


def _fastavro(path: str) -> Any:
    try:
        import fastavro
    except ImportError:
        raise PackageMissing(needed_by=path, package="fastavro", install="'dagflow[avro]'") from None
    return fastavro


def _mended(values: list[Any], mend: Mend | None) -> list[Any]:
    return values if mend is None else [None if value is None else mend(value) for value in values]


def _number(value: int) -> bytes:
    """Return a number as Avro writes it. It must not be negative."""
    value, octets = value << 1, bytearray()
    while value > 0x7F:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*octets, value])


def _number_at(data: bytes, at: int) -> tuple[int, int]:
    r"""Return a number and its end. Raises IndexError if the data end within it, or it is longer than 64 bits.

    >>> _number_at(b"\x80\x02\x01", 0), _number_at(b"\x01", 0)
    ((128, 2), (-1, 1))
    """
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        if shift > 63:
            raise IndexError("no number")


def _map_at(data: bytes, at: int) -> tuple[dict[str, bytes], int]:
    """Return a map of bytes and its end. Raises IndexError if the data end within it."""
    entries: dict[str, bytes] = {}
    while True:
        count, at = _number_at(data, at)
        if not count:
            return entries, at
        if count < 0:
            count, (_, at) = -count, _number_at(data, at)
        for _ in range(count):
            parts = []
            for _ in range(2):
                size, at = _number_at(data, at)
                if size < 0 or at + size > len(data):
                    raise IndexError("the data end")
                parts.append(data[at : at + size])
                at += size
            entries[parts[0].decode("utf-8", "replace")] = parts[1]
