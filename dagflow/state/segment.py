"""A segment: sorted rows of tables, in blocks of Arrow, and an index. Nothing in it ever changes.

    blocks of rows and filters ‥ the index, a sealed record ‥ its length, in 10 digits and a line end

A segment has layers, a layer has rows of some tables, and these are cut into blocks of about `BLOCK` bytes, each a record batch
in the format of Arrow IPC. The index says of each block its first code, its place and its hash. The hash of the index is that of
the segment, by which decisions and plans name it. So each block can be read and checked without the others. Behind many rows is
a Bloom filter of their codes: a lookup that it answers reads no block.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.model.types.keyed_rows import END, KeyedRows, cut, schema_of, together
from dagflow.model.types.keys import mixed_all
from dagflow.model.types.plain_data import dumps, loads
from dagflow.model.types.spilled_rows import Runs
from dagflow.state.errors import SegmentDamaged, SegmentMissing
from dagflow.storage import SealedRecord, Store, hash_bytes, is_object_store, seal, seal_of, unseal
from dagflow.storage.records.errors import RecordDamaged, RecordMisplaced, RecordRefused

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

FOLDER = "state"
BLOCK = 16 << 10
"""The bytes of a block, about."""
_NAMES = re.compile(rf"{FOLDER}/(\d{{10}})-[0-9a-f]{{16}}")
_LENGTH = 11  # of the last line
_BLOCKS = [("code", "<u8"), ("start", "<u8"), ("stop", "<u8"), ("rows", "<u4"), ("hash", "S64")]
_INDEX = 64 << 10  # bytes that are read at the end of a segment, which mostly has the whole index in them
_SHARE = 128  # of a large segment, more than what its index is
_BLOOM_ROWS = 1024
_FILTER = 2
"""The version of Bloom filters. Those of other versions are not used."""
_GAP, _FAR_GAP = 64 << 10, 128 << 10
"""The bytes between two blocks that are read along rather than by a second request, which takes longest from an object store."""

MapId = tuple[str, str]
"""An operator's name, and that of its `MapState` or `TableState`."""
TableId = tuple[str, str, str]
"""The same, and a type of keys."""
Call = Callable[[Callable[[], Any]], Any]


@attrs.frozen
class SegmentRef:
    """A reference to a segment: its name, the hash of its index, and its size.

    Attributes:
        name: `state/WINDOW-HASH`. If the plan of a window was never published, the number is used again; other bytes then have
            another name.
        hash: `sha256:` and hexadecimal digits.
        size: in bytes.
    """

    name: str
    hash: str
    size: int

    @property
    def window(self) -> int:
        """The window that wrote it."""
        return window_of(self.name)


@attrs.frozen(eq=False)
class TableIndex:
    """The index of a table's rows in a layer. `blocks`: an array with a row for each block; `bloom`: the same for a filter."""

    columns: list[list[str]]
    key: str
    blocks: np.ndarray[Any, Any]
    bloom: np.ndarray[Any, Any]

    def schema(self) -> pa.Schema:
        """Return the columns."""
        from dagflow.arrow_types import type_named

        return schema_of(type_named(self.key), [(name, type_named(kind)) for name, kind in self.columns])


@attrs.frozen(eq=False)
class LayerIndex:
    """A layer of a segment: rows with codes in `[start, stop)`, of about `weight` bytes. `level`: see `dagflow.state.log`."""

    level: int
    start: int
    stop: int
    weight: int
    tables: dict[TableId, TableIndex]


@attrs.frozen(eq=False, kw_only=True)
class SegmentIndex:
    """The index of a segment.

    Attributes:
        head: what the log says about itself, as plain data; see `dagflow.state.log`.
        layers: the layers, the older ones first.
    """

    head: dict[str, Any]
    layers: list[LayerIndex]


Layer = tuple[int, int, int, Mapping[TableId, KeyedRows]]
"""A layer to write: its level, the codes that it covers, and its rows."""


def weight_of(tables: Mapping[TableId, KeyedRows | Runs]) -> int:
    """Return about the number of bytes of rows in a segment."""
    return sum(rows.weight for rows in tables.values())


def write(store: Store, window: int, head: dict[str, Any], layers: Sequence[Layer]) -> SegmentRef:
    """Publish a segment."""
    import numpy as np

    file = io.BytesIO()  # each block is hashed and copied while the processor has it at hand

    def added(code: int, rows: int, data: Any) -> tuple[int, int, int, int, bytes]:
        at = file.tell()
        file.write(data)
        return code, at, file.tell(), rows, hash_bytes(memoryview(data))[7:].encode()

    described, tables = [], []
    for level, start, stop, content in layers:
        named = []
        for table, rows in content.items():
            blocks = [added(first, block.num_rows, block.serialize()) for first, block in cut(rows, BLOCK)]
            if has_bloom := len(rows) >= _BLOOM_ROWS:
                blocks.append(added(0, 0, bloom_of(rows.codes).data.cast("B")))
            named.append([*table, str(rows.batch.schema.field(1).type), rows.columns, len(blocks) - has_bloom, int(has_bloom)])
            tables.append(np.array(blocks, dtype=_BLOCKS))
        described.append([level, start, stop, weight_of(content), named])
    record = f"{FOLDER}/{window:010d}"
    body = (dumps({**head, "filter": _FILTER, "own": described}), b"\n", *(each.tobytes() for each in tables))
    index = seal(record, body)
    file.write(index + b"%010d\n" % len(index))
    ref = SegmentRef(_name(record, seal_of(index)), seal_of(index), file.tell())
    if not store.create(ref.name, file.getbuffer()):
        check(store, ref.name, window, ref)  # an earlier attempt, or a launch that died before its plan, wrote the same
    return ref


def check(store: Store, name: str, needed_by: int, ref: SegmentRef | None = None) -> None:
    """Check all bytes of a segment. Raises SegmentMissing, SegmentDamaged."""
    data = store.read(name)
    if data is None:
        raise SegmentMissing(path=f"{store.url}/{name}", window=needed_by)
    whole = ref or SegmentRef(name, "", len(data))
    OpenSegment(store, whole, needed_by, content=data).check()


class OpenSegment:
    """A segment that is read block by block. All methods raise SegmentMissing and SegmentDamaged.

    Args:
        needed_by: the window that needs it, for messages.
        call: calls the actions that read; it may repeat them.
        content: all bytes, where they are known.
    """

    def __init__(
        self,
        store: Store,
        ref: SegmentRef,
        needed_by: int,
        call: Call = lambda action: action(),
        content: bytes | None = None,
    ) -> None:
        self.ref = ref
        self._store, self._needed_by, self._call = store, needed_by, call
        self._content = content
        self._blooms: dict[int, np.ndarray[Any, Any]] = {}
        self.index = self._read_index()

    def read_all(self) -> OpenSegment:
        """Read all bytes at once, since all are needed."""
        if self._content is None:
            self._content = self._parts([(0, self.ref.size)])[0]
        return self

    def rows(self, layer: int, table: TableId, start: int = 0, stop: int = END) -> Iterator[KeyedRows]:
        """Yield the rows of a table with codes in `[start, stop)`, some blocks at a time."""
        import numpy as np

        of_table = self.index.layers[layer].tables.get(table)
        if of_table is None:
            return
        blocks = of_table.blocks
        first = max(0, int(np.searchsorted(blocks["code"], np.uint64(start), side="right")) - 1)
        last = len(blocks) if stop >= END else int(np.searchsorted(blocks["code"], np.uint64(stop)))
        for at in range(first, last, 64):
            yield self._read(of_table, np.arange(at, min(last, at + 64))).between(start, stop)

    def rows_near(self, layer: int, table: TableId, codes: np.ndarray[Any, Any]) -> KeyedRows | None:
        """Return the rows of those blocks that may have some of these codes, which are sorted; None where no block has."""
        import numpy as np

        of_table = self.index.layers[layer].tables.get(table)
        if of_table is None:
            return None
        if len(of_table.bloom) and self.index.head.get("filter") == _FILTER:
            codes = codes[may_have(self._bloom(of_table), codes)]
        at = np.searchsorted(of_table.blocks["code"], codes, side="right") - 1
        numbers = np.unique(at[at >= 0])
        return self._read(of_table, numbers) if len(numbers) else None

    def closed(self) -> OpenSegment:
        """Free the bytes that were read, but for the index."""
        self._content = None
        return self

    def check(self) -> None:
        """Read and check all blocks."""
        self.read_all()
        stop = 0
        for layer in self.index.layers:
            for table in layer.tables.values():
                for block in [*table.blocks.tolist(), *table.bloom.tolist()]:
                    self._block(block, *self._parts([(stop, block[2])]))
                    stop = block[2]
        if stop != self._index_at:
            raise self._damaged("it has bytes that its index does not name")

    def _bloom(self, table: TableIndex) -> np.ndarray[Any, Any]:
        """Return the filter of a table, which stays in memory."""
        import numpy as np

        (block,) = table.bloom.tolist()
        if (known := self._blooms.get(block[1])) is None:
            data = self._block(block, self._parts([(block[1], block[2])])[0])
            known = self._blooms[block[1]] = np.frombuffer(data, "<u8")
        return known

    def _read(self, table: TableIndex, numbers: np.ndarray[Any, Any]) -> KeyedRows:
        """Read blocks by their numbers."""
        import pyarrow as pa

        schema, parts = table.schema(), []
        runs = _runs(table.blocks, numbers, _FAR_GAP if is_object_store(self._store.url) else _GAP)
        ranges = [(int(run[0]["start"]), int(run[-1]["stop"])) for run in runs]
        for run, (start, _), data in zip(runs, ranges, self._parts(ranges), strict=True):
            for block in run.tolist():
                part = self._block(block, data[block[1] - start : block[2] - start])
                try:
                    parts.append(KeyedRows(pa.ipc.read_record_batch(pa.py_buffer(part), schema)))
                except (pa.ArrowInvalid, OSError) as error:
                    raise self._damaged(f"a block of it is not readable: {error}") from error
        return together(parts)

    def _block(self, block: Any, data: bytes) -> bytes:
        if hash_bytes(data)[7:].encode() != block[4]:
            raise self._damaged(f"its bytes from {block[1]} to {block[2]} are not those that were written")
        return data

    def _parts(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes in ranges of the segment."""
        if self._content is not None:
            return [self._content[start:stop] for start, stop in ranges]
        parts: list[bytes] | None = self._call(lambda: self._store.read_ranges(self.ref.name, ranges))
        if parts is None:
            raise SegmentMissing(path=f"{self._store.url}/{self.ref.name}", window=self._needed_by)
        return parts

    def _read_index(self) -> SegmentIndex:
        import numpy as np

        size = self.ref.size
        start = max(0, size - max(_INDEX, size // _SHARE))
        (tail,) = self._parts([(start, size + 1)])
        if (actual := start + len(tail)) != size:
            longer = "more" if actual > size else actual
            raise self._damaged(f"it has {longer} bytes, and should have {size}")
        digits = tail[-_LENGTH:]
        length = int(digits) if re.fullmatch(rb"\d{10}\n", digits) else 0
        self._index_at = size - _LENGTH - length
        if not 0 < length <= size - _LENGTH:
            self._refuse(tail)
        data = tail[-_LENGTH - length : -_LENGTH]
        if len(data) < length:
            (data,) = self._parts([(self._index_at, size - _LENGTH)])
        sealed = self._unsealed(data)
        try:
            first, _, rest = sealed.body.partition(b"\n")
            head = loads(first)
            blocks = np.frombuffer(rest, dtype=_BLOCKS)
            layers, at = [], 0
            for level, start, stop, weight, tables in head.pop("own"):
                content = {}
                for operator, state, kind, key, columns, count, filters in tables:
                    end = at + count
                    content[operator, state, kind] = TableIndex(columns, key, blocks[at:end], blocks[end : end + filters])
                    at = end + filters
                layers.append(LayerIndex(level, start, stop, weight, content))
            return SegmentIndex(head=head, layers=layers)
        except (ValueError, KeyError, TypeError, AttributeError) as error:  # it is sealed, but not by dagflow
            raise self._damaged(f"it is not a segment: {error}") from error

    def _refuse(self, data: bytes) -> None:
        """Raise the error of a segment without an index."""
        if len(data) == self.ref.size:
            self._unsealed(data)  # raises PlanMismatch for what another version has written
        raise self._damaged("it does not end with the length of an index: it was cut short")

    def _unsealed(self, data: bytes) -> SealedRecord:
        try:
            sealed = unseal_index(data, self.ref.name, self._store.url)
        except RecordRefused as error:
            raise self._damaged(error.reason) from error
        if self.ref.hash and sealed.hash != self.ref.hash:
            raise self._damaged("its bytes are not those that were written")
        return sealed

    def _damaged(self, reason: str) -> SegmentDamaged:
        return SegmentDamaged(path=f"{self._store.url}/{self.ref.name}", window=self._needed_by, reason=reason)


def bloom_of(codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a Bloom filter of codes: 10 to 20 bits for each, of which a code sets 5 in one word. Two in a hundred others pass.

    >>> import numpy as np
    >>> codes = np.arange(1000, dtype=np.uint64) << np.uint64(40)
    >>> bool(may_have(bloom_of(codes), codes).all()), int(may_have(bloom_of(codes), codes + np.uint64(1)).sum()) < 30
    (True, True)
    """
    import numpy as np

    words = np.zeros(1 << (10 * len(codes)).bit_length() - 6, dtype="<u8")
    hashes = np.sort(mixed_all(codes))  # those of a word are neighbours
    places = _word_of(hashes, len(words))
    starts = np.flatnonzero(np.append(True, places[1:] != places[:-1]))
    words[places[starts]] = np.bitwise_or.reduceat(_bits_of(hashes), starts)
    return words


def may_have(bloom: np.ndarray[Any, Any], codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a mask of the codes that a filter lets through: all that it was made of, and few others."""
    hashes = mixed_all(codes)
    bits = _bits_of(hashes)
    passes: np.ndarray[Any, Any] = bloom[_word_of(hashes, len(bloom))] & bits == bits
    return passes


def _word_of(hashes: np.ndarray[Any, Any], words: int) -> np.ndarray[Any, Any]:
    """Return the places of the words of hashes among so many, a power of two: their highest bits."""
    import numpy as np

    places: np.ndarray[Any, Any] = (hashes >> np.uint64(65 - words.bit_length())).view(np.int64)
    return places


def _bits_of(hashes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the bits that hashes set in their words: five, or fewer where some are the same."""
    import numpy as np

    one, numbers = np.uint64(1), hashes.view(np.int64)
    bits: np.ndarray[Any, Any] = one << (hashes >> np.uint64(24) & np.uint64(63))
    single = one << np.arange(64, dtype=np.uint64)
    pairs = (single[:, None] | single).ravel()  # of the numbers of two bits: a look at it costs less than to shift twice
    bits |= pairs[numbers & 4095]
    bits |= pairs[(numbers >> 12) & 4095]
    return bits


def _runs(blocks: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any], gap: int) -> list[np.ndarray[Any, Any]]:
    """Return blocks, those together that are read by one request: at most `gap` bytes lie between two of them."""
    import numpy as np

    chosen = blocks[numbers]
    apart = chosen["start"][1:] - chosen["stop"][:-1] > gap
    return np.split(chosen, np.flatnonzero(apart) + 1)


def unseal_index(data: bytes, name: str, place: str) -> SealedRecord:
    """Check the bytes of the index of a segment. Raises the errors of `unseal`."""
    record = name.partition("-")[0]
    sealed = unseal(data, record, place)
    if _name(record, sealed.hash) != name:
        raise RecordMisplaced(place, name, f"it is {_name(record, sealed.hash)}")
    return sealed


def unseal_segment(store: Store, name: str) -> bool:
    """Check all bytes of a segment, and return True; False where it is gone. Raises RecordDamaged."""
    try:
        check(store, name, window_of(name))
    except SegmentMissing:
        return False
    except SegmentDamaged as error:
        raise RecordDamaged(store.url, name, error.reason) from error
    return True


def _name(record: str, digest: str) -> str:
    return f"{record}-{digest.partition(':')[2][:16]}"


def window_of(name: str) -> int:
    """Return the window that wrote a segment, from its name; -1 for other names.

    >>> window_of("state/0000000012-0123456789abcdef"), window_of("state/notes")
    (12, -1)
    """
    match = _NAMES.fullmatch(name)
    return int(match[1]) if match else -1


def segments(store: Store) -> list[str]:
    """Return the names of all segments in a store, also of those that do not count."""
    return [name for name in store.names(f"{FOLDER}/") if window_of(name) >= 0]


def erase_segments(store: Store) -> None:
    """Remove all segments from a store."""
    for name in segments(store):
        store.discard(name)
