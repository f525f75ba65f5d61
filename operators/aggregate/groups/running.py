"""The totals of aggregates over windows: rows by key, which a window reads and writes for its own groups only.

A key is an integer or text as it is, or JSON. A value is in the column of its type: an integer, a float, or JSON for all others.
"""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import KeyedTable
from operators.aggregate.groups.columns import COUNT, KEY, VALUE
from operators.aggregate.groups.grouping import Grouping, Groups
from operators.aggregate.groups.totals import as_plain, entry_of, from_plain, key_of

COLUMNS = {"count": "int64", "integer": "int64", "real": "double", "other": "binary", "key_itself": "binary"}
"""The columns of totals. `key_itself`: the key as JSON, where the row has another form of it and all totals are emitted."""
_LARGE = 1 << 63
Total = tuple[Any, Any, int]
"""A key, the value and the count."""


def record_key(entry: bytes) -> Any:
    """Return a key that goes to the same partition as the group kept as JSON."""
    return key_of("\0" + entry.decode())


def as_kept(key: Any) -> int | str | bytes:
    r"""Return the key under which a group is kept. Raises TypeError for a key that cannot be written down.

    >>> as_kept("a"), as_kept(True), as_kept(1 << 63), as_kept(None), as_kept("\0")
    ('a', 1, b'9223372036854775808', b'null', b'"\\u0000"')
    """
    entry = entry_of(key)
    if type(entry) is int:
        return entry if -_LARGE <= entry < _LARGE else b"%d" % entry
    text = str(entry)
    if text.startswith("\0"):
        return text[1:].encode()
    return json.dumps(text).encode() if any("\ud800" <= letter <= "\udfff" for letter in text) else text


def add_groups(totals: KeyedTable, groups: Groups, grouping: Grouping, *, whole: bool) -> None:
    """Add a window's groups to the totals, and make them those of all windows so far. `whole`: keys come back as they were."""
    by_type: dict[type, list[tuple[Any, int | str | bytes]]] = {}
    for key in groups:
        kept = as_kept(key)
        by_type.setdefault(type(kept), []).append((key, kept))
    for kind, pairs in by_type.items():
        keys = pa.array([kept for _, kept in pairs], {int: pa.int64(), str: pa.string(), bytes: pa.binary()}[kind])
        rows = []
        for (key, kept), (value, count) in zip(pairs, _values(totals.lookup(keys)), strict=True):
            if count is not None:
                group = groups[key]
                groups[key] = [value, count]
                grouping.add(groups, key, *group)
            itself = as_plain(key) if whole and type(key) is not type(kept) else None
            rows.append((*_row(*groups[key]), None if itself is None else json.dumps(itself).encode()))
        totals.put(keys, {name: pa.array(column) for name, column in zip(COLUMNS, zip(*rows, strict=True), strict=True)})


def all_totals(totals: KeyedTable) -> Iterator[Total]:
    """Yield the totals of all groups."""
    for batch in totals.batches():
        pairs = zip(batch.column("key").to_pylist(), batch.column("key_itself").to_pylist(), _values(batch), strict=True)
        for kept, itself, (value, count) in pairs:
            if itself is not None:
                yield from_plain(json.loads(itself)), value, count
            else:
                yield record_key(kept) if type(kept) is bytes else kept, value, count


def _values(rows: pa.RecordBatch) -> Iterable[tuple[Any, Any]]:
    """Return values and counts as Python objects; None for a row of nulls."""
    columns = (rows.column(name).to_pylist() for name in ("integer", "real", "other", "count"))
    for integer, real, other, count in zip(*columns, strict=True):
        value = integer if integer is not None else real
        yield from_plain(json.loads(other)) if other is not None else value, count


def _row(value: Any, count: int) -> tuple[int, int | None, float | None, bytes | None]:
    """Return count, integer, float and JSON. Raises ValueNotKept for a value that would come back changed."""
    plain = as_plain(value)
    if type(plain) is int and -_LARGE <= plain < _LARGE:
        return count, plain, None, None
    if type(plain) is float:
        return count, None, plain, None
    return count, None, None, None if plain is None else json.dumps(plain).encode()


def add_columns(
    totals: KeyedTable, table: pa.Table, grouping: Grouping
) -> Iterator[tuple[pa.Array, pa.Array | None, pa.Array] | Groups]:
    """Add the groups of a table, by one column, to the totals. Yield those of all windows so far, in the same order.

    Most come as arrays of keys, values (None for counts) and counts; single ones, which need Python objects, as groups.
    """
    keys, counts = _one(table.column(KEY)), _one(table.column(COUNT)).cast(pa.int64())
    values = None if grouping.merge is None else _as_number(_one(table.column(VALUE)))
    column = None if values is None else "integer" if values.type == pa.int64() else "real"
    is_odd = keys.is_null().to_numpy(zero_copy_only=False)
    kept = keys.cast(pa.int64()) if pa.types.is_boolean(keys.type) or pa.types.is_integer(keys.type) else keys
    if is_odd.any():
        kept = pc.fill_null(kept, "" if pa.types.is_string(kept.type) else 0)
    if pa.types.is_string(kept.type):
        is_odd = is_odd | pc.starts_with(kept, "\0").to_numpy(zero_copy_only=False)
    before = totals.lookup(kept)
    others = [name for name in ("integer", "real", "other") if name != column]
    for name in others:
        is_odd = is_odd | before.column(name).is_valid().to_numpy(zero_copy_only=False)
    results = None
    if values is not None and grouping.merge is not None:
        results, is_large = _merged(before.column(column), values, grouping.merge.arrow)
        is_odd = is_odd | is_large
    sums = pc.add(counts, pc.fill_null(before.column("count"), 0))
    plain = pa.array(~is_odd)
    rows = {field.name: pa.nulls(len(sums), field.type) for field in before.schema} | {"count": sums}
    if column is not None:
        rows[column] = results
    totals.put(kept.filter(plain), {name: array.filter(plain) for name, array in rows.items()})
    at = 0
    for odd in [*np.flatnonzero(is_odd).tolist(), len(keys)]:
        if odd > at:
            part = slice(at, odd)
            yield keys[part], None if results is None else results[part], sums[part]
        if odd < len(keys):
            groups: Groups = {keys[odd].as_py(): [None if values is None else values[odd].as_py(), counts[odd].as_py()]}
            add_groups(totals, groups, grouping, whole=False)
            yield groups
        at = odd + 1


def can_add_columns(table: pa.Table, grouping: Grouping) -> bool:
    """Return True for groups whose keys and values are columns that totals have, too."""
    if type(grouping.by) is not str:  # one name in a tuple makes keys that are tuples
        return False
    types: Any = pa.types
    key = table.schema.field(KEY).type
    has_keys = types.is_string(key) or types.is_boolean(key) or _is_integer(key)
    if grouping.merge is None:
        return bool(has_keys)
    value = table.schema.field(VALUE).type
    return bool(has_keys and (value == pa.float64() or _is_integer(value)))


def _is_integer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) and kind != pa.uint64())


def _as_number(values: pa.Array) -> pa.Array:
    return values.cast(pa.int64()) if pa.types.is_integer(values.type) else values


def _one(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def _merged(before: pa.Array, values: pa.Array, merge: str) -> tuple[pa.Array, np.ndarray[Any, Any]]:
    """Return totals and values together, as `Merge.of` does, and a mask of the sums that no column holds."""
    old, new = (pc.fill_null(each, 0).to_numpy(zero_copy_only=False) for each in (before, values))
    is_large = np.zeros(len(old), dtype=bool)
    with np.errstate(all="ignore"):
        if merge == "sum":
            both = old + new
            if both.dtype == np.int64:
                is_large = ((old ^ both) & (new ^ both)) < 0
        else:
            is_better = new < old if merge == "min" else new > old
            both = np.where(is_better | (old != old), new, old)
    together = pc.if_else(before.is_valid(), pa.array(both), values)
    return pc.if_else(pc.and_(before.is_valid(), values.is_null()), before, together), is_large
