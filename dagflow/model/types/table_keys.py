"""Keys of a table by type, with their codes: computed once for any number of lookups and changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.model.types.keyed_rows import (
    GROUP,
    HASH,
    KINDS,
    as_bytes,
    codes_of,
    codes_with_groups,
    kind_of,
    same_keys,
    sent_groups,
)

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

_INTEGERS = -(1 << 63), 1 << 63
"""The integers of 64 bits."""


@attrs.frozen(eq=False)
class KeysOfKind:
    """Keys of one type among others.

    Attributes:
        kind: that of `KINDS`.
        places: their places among all keys, in ascending order.
        keys: the keys; `codes`: their codes.
    """

    kind: str
    places: np.ndarray[Any, Any]
    keys: pa.Array
    codes: np.ndarray[Any, Any]

    def at(self, numbers: np.ndarray[Any, Any], places: np.ndarray[Any, Any]) -> KeysOfKind:
        """Return those with some numbers, at other places."""
        from dagflow.arrow_types.buffers import of_numbers

        return KeysOfKind(self.kind, places, self.keys.take(of_numbers(numbers)), self.codes[numbers])


@attrs.frozen(eq=False)
class TableKeys:
    """Keys of a `TableState`, computed once for any number of lookups and changes.

    A table has several rows of a key where these have numbers: see `numbered`.

    Attributes:
        count: the number of keys, those included that are null: they are in none of the parts.
        parts: the keys of each type.

    >>> import numpy as np, pyarrow as pa
    >>> keys = TableKeys.of_columns(pa.record_batch({"a": [5.0, None, 0.5]}))
    >>> [(part.kind, part.places.tolist()) for part in keys.parts], len(keys.take(np.array([0, 0])))
    ([('int64', [0]), ('binary', [2])], 2)
    """

    count: int
    parts: Sequence[KeysOfKind]

    @classmethod
    def of_columns(cls, columns: pa.RecordBatch, tp: Any = Any) -> TableKeys:
        """Return the keys that rows of some columns are; null where a column is. `tp`: the type of the records."""
        import numpy as np

        from dagflow.arrow_types.buffers import of_numbers

        masks = [column.is_null().to_numpy(zero_copy_only=False) for column in columns.columns if column.null_count]
        if not masks:
            return cls(columns.num_rows, keys_of_columns(columns, tp))
        there = np.flatnonzero(~np.logical_or.reduce(masks))
        parts = keys_of_columns(columns.take(of_numbers(there)), tp)
        return cls(columns.num_rows, [attrs.evolve(part, places=there[part.places]) for part in parts])

    @classmethod
    def of_bytes(cls, keys: pa.Array, groups: np.ndarray[Any, Any]) -> TableKeys:
        """Return keys that are bytes, or null, and have groups."""
        import numpy as np

        there = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
        keys = keys.drop_null()
        return cls(len(groups), [KeysOfKind("binary", there, keys, codes_with_groups(keys, groups[there]))])

    @staticmethod
    def distinct(several: Sequence[TableKeys]) -> tuple[list[np.ndarray[Any, Any]], TableKeys]:
        """Return the number of each key among the different ones, -1 for null, and these, by type in the order of their codes.

        >>> import pyarrow as pa
        >>> sides = [TableKeys.of_columns(pa.record_batch({"a": values})) for values in ([5, 7, None], [7.0, 0.5])]
        >>> (left, right), keys = TableKeys.distinct(sides)
        >>> left.tolist()[2], left.tolist()[1] == right.tolist()[0], len(keys)
        (-1, True, 3)
        """
        import numpy as np
        import pyarrow as pa

        from dagflow.arrow_types.buffers import order_of

        numbers, distinct, count = [np.full(len(keys), -1) for keys in several], [], 0
        for kind in KINDS:
            parts = [(of, part) for of, keys in zip(numbers, several, strict=True) for part in keys.parts if part.kind == kind]
            if not any(len(part.codes) for _, part in parts):
                continue
            codes = np.concatenate([part.codes for _, part in parts])
            keys = pa.concat_arrays([part.keys for _, part in parts])
            order = order_of(codes)
            in_order = codes[order]
            is_new = np.append(True, in_order[1:] != in_order[:-1])
            same = np.flatnonzero(~is_new)
            if len(same) and not same_keys(keys, order[same - 1], keys, order[same]).all():  # different keys have one code
                values = keys.dictionary_encode().indices.to_numpy()
                order = np.lexsort((values, codes))
                in_order, values = codes[order], values[order]
                is_new = np.append(True, (in_order[1:] != in_order[:-1]) | (values[1:] != values[:-1]))
            number = np.empty(len(codes), np.int64)
            number[order] = np.cumsum(is_new) + (count - 1)
            start = 0
            for of, part in parts:
                of[part.places] = number[start : start + len(part.codes)]
                start += len(part.codes)
            first = order[is_new]
            distinct.append(KeysOfKind(kind, order, keys, codes).at(first, np.arange(count, count + len(first))))
            count += len(first)
        return numbers, TableKeys(count, distinct)

    def __len__(self) -> int:
        return self.count

    def take(self, places: np.ndarray[Any, Any]) -> TableKeys:
        """Return the keys at some places."""
        import numpy as np

        if len(self.parts) == 1 and len(self.parts[0].places) == self.count:
            return TableKeys(len(places), [self.parts[0].at(places, np.arange(len(places)))])
        parts = []
        for part in self.parts:
            numbers = np.full(self.count, -1)
            numbers[part.places] = np.arange(len(part.places))
            asked = numbers[places]
            parts.append(part.at(asked[asked >= 0], np.flatnonzero(asked >= 0)))
        return TableKeys(len(places), parts)

    def numbered(self, numbers: np.ndarray[Any, Any]) -> TableKeys:
        """Return the keys of rows that have numbers among the rows of their key. The first one, 0, has the key itself.

        Rows of a key are neighbours in a table.
        """
        import numpy as np

        def numbered(part: KeysOfKind) -> KeysOfKind:
            hashes = (part.codes + numbers[part.places].astype(np.uint64)) & np.uint64(HASH)
            return attrs.evolve(part, codes=(part.codes & ~np.uint64(HASH)) | hashes)

        return TableKeys(self.count, list(map(numbered, self.parts)))


def keys_of_columns(columns: pa.RecordBatch, tp: Any = Any) -> list[KeysOfKind]:
    """Return the keys that the rows of some columns are, by type.

    A row of one column of text or numbers is that value, if it is text, or an integer of 64 bits; others, also nulls, are the
    values as bytes. Equal values are equal keys, and have the group by which an exchange sends records of type `tp` with this
    key, or that of a column `$group`.

    >>> import pyarrow as pa
    >>> [(part.kind, part.places.tolist()) for part in keys_of_columns(pa.record_batch({"a": [5.0, None, 0.5]}))]
    [('int64', [0]), ('binary', [1, 2])]
    """
    import numpy as np

    from dagflow.arrow_types.buffers import numbers_of, of_numbers

    row_keys, rest = [], np.arange(columns.num_rows)
    if columns.num_columns == 1:
        kind, is_plain, keys = _plain_keys(columns.column(0))
        places, rest = np.flatnonzero(is_plain), np.flatnonzero(~is_plain)
        if len(places):
            keys = keys if not len(rest) else keys.take(of_numbers(places))
            row_keys.append(KeysOfKind(kind, places, keys, codes_of(keys)))
    if len(rest):
        columns = columns if len(rest) == columns.num_rows else columns.take(of_numbers(rest))
        names = [name for name in columns.schema.names if name != GROUP]
        groups = numbers_of(columns.column(GROUP)) if GROUP in columns.schema.names else sent_groups(columns, names, tp)
        keys = as_bytes(columns.select(names))
        row_keys.append(KeysOfKind("binary", rest, keys, codes_with_groups(keys, groups)))
    return row_keys


def _plain_keys(column: pa.Array) -> tuple[str, np.ndarray[Any, Any], pa.Array]:
    """Return a type of keys, which values of a column are such keys, and these."""
    import numpy as np
    import pyarrow as pa

    from dagflow.arrow_types.buffers import of_numbers

    types, kind = pa.types, kind_of(column.type)
    if kind in ("int64", "string") or types.is_boolean(column.type):
        keys = column.cast(pa.int8()) if kind is None else column
        return (
            kind or "int64",
            column.is_valid().to_numpy(zero_copy_only=False),
            keys.cast(pa.string() if kind == "string" else pa.int64()),
        )
    if types.is_floating(column.type):
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)  # null is NaN
        least, end = map(float, _INTEGERS)
        is_plain = (np.trunc(values) == values) & (values >= least) & (values < end)
        return "int64", is_plain, of_numbers(np.where(is_plain, values, 0).astype(np.int64))
    if types.is_decimal(column.type) or types.is_uint64(column.type):
        encoded = column.dictionary_encode()
        keys = pa.array([_integer(value) for value in encoded.dictionary.to_pylist()], pa.int64()).take(encoded.indices)
        return "int64", keys.is_valid().to_numpy(zero_copy_only=False), keys
    return "binary", np.zeros(len(column), bool), column


def _integer(value: Any) -> int | None:
    """Return the integer of 64 bits that a number equals; None where there is none."""
    is_integer = value == int(value) and _INTEGERS[0] <= value < _INTEGERS[1]
    return int(value) if is_integer else None
