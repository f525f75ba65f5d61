"""Rows by key, as Arrow keeps them: sorted by group, hash and key, with each key once.

Keys are integers of 64 bits, text or bytes: `KINDS`. Bytes stand for keys of other types, which a function makes of them. A
*code* is the order of a key: the group that its partition follows from, then the other bits of its hash. So the rows of a range
of groups are neighbours, and a search compares numbers first.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from zlib import crc32

import attrs

from dagflow.model.types.keys import Key, KeyAssignment, Router, group_of, mixed_all

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

CODE, KEY, REMOVED = "$code", "key", "$removed"
GROUP = "$group"
"""The column of keys that has the group of each, where it is known. It is not part of the key."""
KINDS = ("int64", "string", "binary")
"""The types of keys, each of which has rows of its own."""
END = 1 << 64
"""The end of all codes."""
RecordKey = Callable[[Any], Any]
Marks = tuple[Any, Any]
"""The codes of some rows, and about the bytes of the rows from each to the next one: two arrays."""
HASH = (1 << 48) - 1
"""The bits of a code that are of the hash. The others are the group."""
_MANY_SIZES = 4096
_MANY_GROUPS = 64


def codes_of(keys: pa.Array, record_key: RecordKey | None = None) -> np.ndarray[Any, Any]:
    """Return the codes of keys. `record_key`: returns the key of the records that a key goes with, where it is another.

    >>> import pyarrow as pa
    >>> from dagflow.model.types.keys import group_of
    >>> [int(code) >> 48 for code in codes_of(pa.array([5, -1]))] == [group_of(5), group_of(-1)]
    True
    """
    import numpy as np
    import pyarrow as pa

    from dagflow.arrow_types.buffers import numbers_of

    if pa.types.is_integer(keys.type):
        hashes = mixed_all(numbers_of(keys).view(np.uint64))
    else:
        hashes = mixed_all(np.fromiter(map(crc32, keys.cast(pa.binary()).to_pylist()), dtype=np.uint64, count=len(keys)))
    groups = hashes
    if record_key is not None:
        of_group = (group_of(record_key(key)) for key in keys.to_pylist())
        groups = np.fromiter(of_group, dtype=np.uint64, count=len(keys))
    codes: np.ndarray[Any, Any] = (groups << np.uint64(48)) | (hashes >> np.uint64(16))
    return codes


def codes_with_groups(keys: pa.Array, groups: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the codes of keys that have other groups than those of their own hashes."""
    import numpy as np

    codes: np.ndarray[Any, Any] = (groups.astype(np.uint64) << np.uint64(48)) | (codes_of(keys) & np.uint64(HASH))
    return codes


def sent_groups(columns: pa.RecordBatch, names: Sequence[str], tp: Any = Any) -> np.ndarray[Any, Any]:
    """Return the groups by which an exchange sends records of type `tp` by some of their columns, or by `WHOLE`."""
    return Router("the key of a state", Key(columns=tuple(names)), tp, KeyAssignment(1)).groups(columns)


def kind_of(kind: pa.DataType) -> str | None:
    """Return that of `KINDS` which has keys of an Arrow type; None for others."""
    import pyarrow as pa

    types = pa.types
    if types.is_integer(kind) and str(kind) != "uint64":
        return "int64"
    if types.is_string(kind) or types.is_large_string(kind):
        return "string"
    return "binary" if types.is_binary(kind) or types.is_large_binary(kind) else None


def as_bytes(columns: pa.RecordBatch) -> pa.Array:
    """Return the values of rows as bytes: the same for values that are equal in Python, for nulls, for NaN, and for no others.

    >>> import pyarrow as pa
    >>> as_bytes(pa.record_batch({"a": pa.array([1.0, 0.5, None])}))[0] == as_bytes(pa.record_batch({"a": [True]}))[0]
    True
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    parts: list[pa.Array] = []
    for column in columns.columns:
        mark, content = _content(column)
        parts += [_heads(mark, content), compute.fill_null(content, b"")]
    whole = compute.binary_join_element_wise(*parts, b"").cast(pa.binary())
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def row_as_bytes(rows: pa.RecordBatch) -> pa.Array:
    """Return whole rows as bytes: the same for rows with equal values in columns of the same names, whatever others are null.

    >>> import pyarrow as pa
    >>> narrow, wide = pa.record_batch({"a": [1, 2]}), pa.record_batch({"a": [1, 2], "b": [None, "x"]})
    >>> [one == other for one, other in zip(row_as_bytes(narrow).to_pylist(), row_as_bytes(wide).to_pylist())]
    [True, False]
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from dagflow.arrow_types.buffers import of_numbers

    compute: Any = pc
    columns, parts = rows.select(sorted(rows.schema.names)), list[pa.Array]()
    patterns = np.zeros(rows.num_rows, np.int64)  # a number for each set of columns that have values
    sets: list[tuple[str, ...]] = [()]
    for name, column in zip(columns.schema.names, columns.columns, strict=True):
        mark, content = _content(column)
        heads, content = _heads(mark, content), compute.fill_null(content, b"")
        if not column.null_count:
            sets = [(*each, name) for each in sets]
        else:
            heads = compute.if_else(column.is_valid(), heads, b"")
            has_value = column.is_valid().to_numpy(zero_copy_only=False)
            numbers, patterns = np.unique(patterns * 2 + has_value, return_inverse=True)
            sets = [(*sets[number >> 1], name) if number & 1 else sets[number >> 1] for number in numbers.tolist()]
        parts += [heads, content]
    digests = pa.array([blake2b(repr(each).encode(), digest_size=8).digest() for each in sets], pa.binary())
    whole = compute.binary_join_element_wise(digests.take(of_numbers(patterns)), *parts, b"").cast(pa.binary())
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole


def _heads(mark: str, content: pa.Array) -> pa.Array:
    """Return the bytes before the values of a column: their kind and size. There is one null, of whatever kind."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    sizes = compute.fill_null(compute.binary_length(content), -1)
    largest = compute.max(sizes).as_py() or 0
    if largest < _MANY_SIZES:
        heads = pa.array([b":-1:", *(f"{mark}:{size}:".encode() for size in range(largest + 1))], pa.binary())
        return heads.take(compute.add(sizes, 1))
    marks = compute.if_else(content.is_valid(), mark, "")
    return compute.binary_join_element_wise(marks, sizes.cast(pa.string()), "", ":").cast(pa.binary())


def _content(column: pa.Array) -> tuple[str, pa.Array]:
    """Return a letter for a kind of values, and these values as bytes."""
    import pyarrow as pa

    types: Any = pa.types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "s", column.cast(pa.binary())
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind) or types.is_binary_view(kind):
        return "b", column.cast(pa.binary())
    if types.is_null(kind):
        return "", column.cast(pa.binary())
    if types.is_floating(kind):
        return "n", _text_of_floats(column.cast(pa.float64())).cast(pa.binary())
    if types.is_integer(kind) or types.is_boolean(kind):
        return "n", (column.cast(pa.int8()) if types.is_boolean(kind) else column).cast(pa.string()).cast(pa.binary())
    if types.is_decimal(kind):
        encoded = column.dictionary_encode()
        texts = pa.array(
            [None if each is None else _text_of_decimal(each) for each in encoded.dictionary.to_pylist()], pa.binary()
        )
        return "n", texts.take(encoded.indices)
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _text_of_times(column)
    return "v", pa.array([None if value is None else repr(value).encode() for value in column.to_pylist()], pa.binary())


def _text_of_floats(column: pa.Array) -> pa.Array:
    """Return floats as text: integers as such, others by their bits."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from dagflow.arrow_types.buffers import of_marks, of_numbers

    compute: Any = pc
    values = compute.fill_null(column, 0.0).to_numpy()
    values = np.where(np.isnan(values), np.nan, values)  # one NaN
    is_small = (np.trunc(values) == values) & (np.abs(values) < 1 << 63)
    others: Any = compute.binary_join_element_wise("f", of_numbers(values.view(np.int64)).cast(pa.string()), "")
    texts = compute.if_else(
        of_marks(is_small), of_numbers(np.where(is_small, values, 0).astype(np.int64)).cast(pa.string()), others
    )
    is_large = (np.abs(values) >= 1 << 63) & np.isfinite(values)
    if is_large.any():
        whole = pa.array([str(int(value)) for value in values[is_large].tolist()], pa.string())
        texts = compute.replace_with_mask(texts, of_marks(is_large), whole)
    return compute.if_else(column.is_valid(), texts, None)


def _text_of_decimal(value: decimal.Decimal) -> bytes:
    """Return a decimal as text, the same as that of an integer or a float that equals it."""
    if value == value.to_integral_value():
        return b"%d" % int(value)
    if decimal.Decimal(float(value)) == value:
        (bits,) = struct.unpack("<q", struct.pack("<d", float(value)))
        return b"f%d" % bits
    return f"{value:f}".rstrip("0").encode()


_ZEROS = {"s": 9, "ms": 6, "us": 3, "ns": 0}


def _text_of_times(column: pa.Array) -> tuple[str, pa.Array]:
    """Return a letter for a kind of times, and these in nanoseconds (dates in days), as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    types: Any = pa.types
    if types.is_date64(column.type):
        column = column.cast(pa.date32())
    kind = column.type
    texts = column.view(pa.int32() if kind.bit_width == 32 else pa.int64()).cast(pa.string())
    if types.is_date(kind):
        return "d", texts.cast(pa.binary())
    padded = compute.binary_join_element_wise(texts, "0" * _ZEROS[kind.unit], "")
    texts = compute.if_else(compute.equal(texts, "0"), texts, padded).cast(pa.binary())
    return "u" if types.is_duration(kind) else "h" if types.is_time(kind) else "t" if kind.tz is None else "z", texts


def groups_of(codes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the groups of codes."""
    groups: np.ndarray[Any, Any] = (codes >> 48).astype("int64")
    return groups


def ranges_of(groups: Collection[int], start: int, stop: int) -> list[tuple[int, int]]:
    """Return ranges of codes within `[start, stop)` that have all codes of some groups: one range where the groups are many.

    >>> ranges_of([3, 1], 1 << 48, 5 << 47) == [(1 << 48, 2 << 48)], ranges_of(range(0, 200, 2), 0, 1 << 64) == [(0, 199 << 48)]
    (True, True)
    """
    some = [(max(start, group << 48), min(stop, (group + 1) << 48)) for group in sorted(set(groups))]
    ranges = [(first, last) for first, last in some if first < last]
    return ranges if len(ranges) <= _MANY_GROUPS else [(ranges[0][0], ranges[-1][1])]


@attrs.frozen(eq=False, slots=False)
class KeyedRows:
    """Rows in the order of their codes, and of their keys where codes are the same.

    Attributes:
        batch: the columns `$code` and `key`, those of the table, and `$removed`: True for a key that is gone.
    """

    batch: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def columns(self) -> list[list[str]]:
        """The names and types of the columns of the table."""
        return [[field.name, str(field.type)] for field in list(self.batch.schema)[2:-1]]

    @cached_property
    def codes(self) -> np.ndarray[Any, Any]:
        """The codes as numbers."""
        from dagflow.arrow_types.buffers import numbers_of

        return numbers_of(self.batch.column(CODE))

    @cached_property
    def removed(self) -> np.ndarray[Any, Any]:
        """The marks of keys that are gone."""
        from dagflow.arrow_types.buffers import marks_of

        return marks_of(self.batch.column(REMOVED))

    def find(self, codes: np.ndarray[Any, Any], keys: pa.Array, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the numbers of the rows of keys, -1 where there is none. `codes`: those of the keys at `places`, sorted."""
        import numpy as np

        rows = np.full(len(places), -1, dtype=np.int64)
        if not len(self) or not len(places):
            return rows
        own = self.codes
        at = np.searchsorted(own, codes)
        asked = np.flatnonzero(at < len(own))
        asked = asked[own[at[asked]] == codes[asked]]
        while len(asked):
            same = same_keys(self.batch.column(KEY), at[asked], keys, places[asked])
            rows[asked[same]] = at[asked[same]]
            asked = asked[~same]  # another key with the same code: it may be the next one
            at[asked] += 1
            asked = asked[at[asked] < len(own)]
            asked = asked[own[at[asked]] == codes[asked]]
        return rows

    @cached_property
    def weight(self) -> int:
        """The bytes of the rows."""
        return int(self.batch.nbytes)

    @property
    def span(self) -> tuple[int, int]:
        """The lowest and the highest code; the lowest is higher where there are no rows."""
        return (int(self.codes[0]), int(self.codes[-1])) if len(self) else (END, 0)

    def marks(self) -> Marks:
        """Return the codes of some of the rows, and about the bytes of those from each to the next one."""
        import numpy as np

        codes = self.codes[:: max(1, len(self) >> 10)]
        return codes, np.full(len(codes), self.weight / max(1, len(codes)))

    def near(self, codes: np.ndarray[Any, Any]) -> KeyedRows:
        """Return the rows that may have some of these codes: all of them, since they are in memory."""
        return self

    def chunks(self) -> Iterator[KeyedRows]:
        """Yield the rows, some at a time: all of them."""
        yield self

    def between(self, start: int, stop: int) -> KeyedRows:
        """Return the rows with codes in `[start, stop)`."""
        import numpy as np

        first = np.searchsorted(self.codes, np.uint64(start)) if start else 0
        last = np.searchsorted(self.codes, np.uint64(stop)) if stop < END else len(self)
        return self if last - first == len(self) else KeyedRows(self.batch.slice(int(first), int(last - first)))

    def where(self, mask: np.ndarray[Any, Any]) -> KeyedRows:
        """Return the rows that a mask selects."""
        from dagflow.arrow_types.buffers import of_marks

        return self if mask.all() else KeyedRows(self.batch.filter(of_marks(mask)))

    def without_removed(self) -> KeyedRows:
        """Return the rows of keys that are there."""
        return self.where(~self.removed)


def same_keys(own: pa.Array, rows: np.ndarray[Any, Any], keys: pa.Array, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return whether keys are equal, pair by pair."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from dagflow.arrow_types.buffers import marks_of, numbers_of, of_numbers

    if pa.types.is_integer(own.type):
        equal: np.ndarray[Any, Any] = numbers_of(own)[rows] == numbers_of(keys)[places]
        return equal
    pairs = own.take(of_numbers(rows)), keys.take(of_numbers(places))
    return marks_of(pc.equal(*pairs))  # pyright: ignore[reportAttributeAccessIssue]


def rows_of(
    keys: pa.Array,
    columns: Sequence[pa.Array],
    schema: pa.Schema,
    *,
    removed: bool = False,
    codes: np.ndarray[Any, Any] | None = None,
    record_key: RecordKey | None = None,
) -> KeyedRows:
    """Return rows of keys, in any order: of a key that comes twice, the last row. `removed`: the keys are gone, `columns` empty.

    >>> import pyarrow as pa
    >>> schema = schema_of(pa.int64(), [("n", pa.int64())])
    >>> rows = rows_of(pa.array([7, 1, 7]), [pa.array([1, 2, 3])], schema)
    >>> sorted(zip(rows.batch.column("key").to_pylist(), rows.batch.column("n").to_pylist()))
    [(1, 2), (7, 3)]
    """
    import numpy as np
    import pyarrow as pa

    from dagflow.arrow_types.buffers import of_marks, of_numbers

    codes = codes_of(keys, record_key) if codes is None else codes
    if removed:
        columns = [pa.nulls(len(keys), field.type) for field in list(schema)[2:-1]]
    marks = of_marks(np.full(len(keys), removed))
    return _sorted(pa.RecordBatch.from_arrays([of_numbers(codes), keys, *columns, marks], schema=schema), codes)


def schema_of(key: pa.DataType, columns: Sequence[tuple[str, pa.DataType]]) -> pa.Schema:
    """Return the columns of `KeyedRows`, of a type of keys and with these columns."""
    import pyarrow as pa

    return pa.schema([(CODE, pa.uint64()), (KEY, key), *columns, (REMOVED, pa.bool_())])


def cut(rows: KeyedRows, size: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield blocks of about so many bytes, with their first codes. Rows with the same code stay together."""
    batch, codes, at = rows.batch, rows.codes, 0
    step = max(1, size * len(rows) // max(1, batch.nbytes))
    while at < len(rows):
        stop = min(len(rows), at + step)
        while stop < len(rows) and codes[stop] == codes[stop - 1]:
            stop += 1
        yield int(codes[at]), batch.slice(at, stop - at)
        at = stop


def edges(parts: Sequence[Marks], size: int) -> list[int]:
    """Return the edges of ranges of codes, from 0 to `END`, which have about so many bytes each."""
    import numpy as np

    codes = np.concatenate([np.zeros(0, np.uint64), *(codes for codes, _ in parts)])
    weights = np.concatenate([np.zeros(0), *(weights for _, weights in parts)])
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(weights[order])
    count = 1 + int(ends[-1] // size) if len(ends) else 1
    inner = codes[order][np.searchsorted(ends, size * np.arange(1, count))]
    return sorted({0, *map(int, inner), END})


def together(rows: Sequence[KeyedRows]) -> KeyedRows:
    """Return rows one after the other, where each has higher codes than those before it."""
    return rows[0] if len(rows) == 1 else KeyedRows(_one([each.batch for each in rows]))


def merged(rows: Sequence[KeyedRows]) -> KeyedRows:
    """Return the rows of all, later ones first: of a key in several, its row in the last of them. The last has all columns."""
    import numpy as np

    some = [each for each in rows if len(each)] or list(rows[:1])
    if len(some) == 1:
        return some[0]
    schema = some[-1].batch.schema
    return _sorted(_one([with_columns(each.batch, schema) for each in some]), np.concatenate([each.codes for each in some]))


def with_columns(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with the columns of a schema: others are null, and those without values get their type."""
    import pyarrow as pa

    if batch.schema.equals(schema):
        return batch
    names, rows = set(batch.schema.names), batch.num_rows
    columns = [batch.column(each.name).cast(each.type) if each.name in names else pa.nulls(rows, each.type) for each in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


def _sorted(batch: pa.RecordBatch, codes: np.ndarray[Any, Any]) -> KeyedRows:
    import numpy as np

    from dagflow.arrow_types.buffers import of_numbers, order_of

    order = order_of(codes)
    codes = codes[order]
    same = np.flatnonzero(codes[1:] == codes[:-1])
    if len(same):
        equal = same_keys(batch.column(KEY), order[same], batch.column(KEY), order[same + 1])
        keep = np.ones(len(order), dtype=bool)
        keep[same[equal]] = False  # an older row of the same key
        if not equal.all():
            order, keep = _by_key(batch, codes, order, keep, same[~equal])
        order = order[keep]
    return KeyedRows(batch if len(order) == len(batch) and _is_range(order) else batch.take(of_numbers(order)))


def _is_range(order: np.ndarray[Any, Any]) -> bool:
    return bool((order[1:] > order[:-1]).all())


def _by_key(
    batch: pa.RecordBatch,
    codes: np.ndarray[Any, Any],
    order: np.ndarray[Any, Any],
    keep: np.ndarray[Any, Any],
    odd: np.ndarray[Any, Any],
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Sort rows of different keys that have one code, and keep the last one of each key. Such codes are rare."""
    import numpy as np

    from dagflow.arrow_types.buffers import of_numbers

    order, keys = order.copy(), batch.column(KEY)
    for code in np.unique(codes[odd]):
        first, last = np.searchsorted(codes, code), np.searchsorted(codes, code, side="right")
        rows = order[first:last]
        newest = dict(zip(keys.take(of_numbers(rows)).to_pylist(), rows.tolist(), strict=True))
        kept = [newest[key] for key in sorted(newest)]
        order[first : first + len(kept)] = kept
        keep[first:last] = False
        keep[first : first + len(kept)] = True
    return order, keep
