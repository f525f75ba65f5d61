"""`TableState`: rows by key over windows, read and changed batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, overload

import attrs

from dagflow.model.errors.running import StateDeclaration
from dagflow.model.operator.map_state import KeyedState
from dagflow.model.types.keyed_rows import CODE, KEY, KINDS, REMOVED, KeyedRows, RecordKey, codes_of, merged, rows_of, schema_of

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    import pyarrow as pa

Found = list[tuple[Any, KeyedRows, Any]]
"""Rows of keys: the places of the keys, rows, and the numbers of their rows."""


class SavedTable(Protocol):
    """The rows of a table that are saved, by type of key."""

    def find(self, kind: str, codes: np.ndarray[Any, Any], keys: pa.Array) -> Found:
        """Return the rows of keys, whose codes are sorted."""
        ...

    def rows(self, kind: str) -> KeyedRows | None:
        """Return all rows; None where there are none."""
        ...


@attrs.define(eq=False)
class KeyedTable:
    """The value of a `TableState`: rows by key. What is looked up is read; what is put or removed is saved with the window.

    Keys are an array of integers, of text, or of bytes, which stand for other keys (`TableState.record_key`).

    >>> import pyarrow as pa
    >>> table = KeyedTable({"n": "int64"})
    >>> table.put(pa.array(["a", "b"]), {"n": pa.array([1, 2])})
    >>> table.remove(pa.array(["b"]))
    >>> table.lookup(pa.array(["b", "a"])).to_pylist()
    [{'n': None}, {'n': 1}]
    """

    columns: Mapping[str, str]
    record_key: RecordKey | None = None
    saved_rows: SavedTable | None = None
    _changes: list[tuple[str, KeyedRows]] = attrs.field(factory=list, init=False)

    def lookup(self, keys: pa.Array) -> pa.RecordBatch:
        """Return the rows of keys, in their order: nulls where there is none. Raises TypeError for keys of other types."""
        import numpy as np
        import pyarrow as pa

        kind, keys = _kind_of(keys)
        codes = codes_of(keys, self._record_key(kind))
        order = np.argsort(codes, kind="stable")
        codes, keys = codes[order], keys.take(pa.array(order))
        found: Found = []
        waiting = np.arange(len(codes))
        for rows in (rows for each, rows in reversed(self._changes) if each == kind):
            at = rows.find(codes[waiting], keys, waiting)
            is_hit = at >= 0
            hits, at = waiting[is_hit], at[is_hit]
            there = ~rows.removed[at]
            found.append((hits[there], rows, at[there]))
            waiting = waiting[~is_hit]
        if self.saved_rows is not None and len(waiting) == len(codes):
            found += self.saved_rows.find(kind, codes, keys)
        elif self.saved_rows is not None and len(waiting):
            others = self.saved_rows.find(kind, codes[waiting], keys.take(pa.array(waiting)))
            found += [(waiting[places], rows, at) for places, rows, at in others]
        return self._together([(order[places], rows, at) for places, rows, at in found if len(places)], len(codes))

    def put(self, keys: pa.Array, columns: Mapping[str, pa.Array]) -> None:
        """Put rows in the place of those that the keys have. Raises TypeError for other columns than those that are declared."""
        kind, keys = _kind_of(keys)
        schema = self._schema(kind)
        if columns.keys() != self.columns.keys():
            raise TypeError(f"a row has the columns {', '.join(self.columns)}, not {', '.join(columns)}")
        values = [columns[name].cast(schema.field(name).type) for name in self.columns]
        self._changes.append((kind, rows_of(keys, values, schema, record_key=self._record_key(kind))))

    def remove(self, keys: pa.Array) -> None:
        """Remove the rows of keys."""
        kind, keys = _kind_of(keys)
        rows = rows_of(keys, [], self._schema(kind), removed=True, record_key=self._record_key(kind))
        self._changes.append((kind, rows))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in the order of their keys, a batch for each type of keys: the column `key`, and those declared."""
        for kind in KINDS:
            saved = None if self.saved_rows is None else self.saved_rows.rows(kind)
            changed = [rows for each, rows in self._changes if each == kind]
            if saved is None and not changed:
                continue
            rows = merged([*([saved] if saved is not None else []), *changed]).without_removed()
            if len(rows):
                yield rows.batch.select([KEY, *self.columns]).sort_by(KEY)

    def changes(self) -> dict[str, KeyedRows]:
        """Return the rows that were put or removed since it was last saved, by type of key."""
        kinds = dict.fromkeys(kind for kind, _ in self._changes)
        return {kind: merged([rows for each, rows in self._changes if each == kind]) for kind in kinds}

    def saved(self) -> None:
        """Forget the changes, since they are saved."""
        self._changes = []

    def savepoint(self) -> int:
        """Return a savepoint to roll back to until the next save."""
        return len(self._changes)

    def roll_back(self, to: int) -> None:
        """Restore the content at a savepoint."""
        del self._changes[to:]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KeyedTable):
            return NotImplemented
        return [batch.to_pylist() for batch in self.batches()] == [batch.to_pylist() for batch in other.batches()]

    __hash__ = None  # type: ignore[assignment]  # it may change

    def __deepcopy__(self, memo: object) -> KeyedTable:
        copied = KeyedTable(self.columns, self.record_key, self.saved_rows)
        copied._changes = self._changes[:]  # batches do not change
        return copied

    def _record_key(self, kind: str) -> RecordKey | None:
        return self.record_key if kind == "binary" else None

    def _schema(self, kind: str) -> pa.Schema:
        from dagflow.arrow_types import type_named

        return schema_of(type_named(kind), [(name, type_named(each)) for name, each in self.columns.items()])

    def _together(self, found: Found, count: int) -> pa.RecordBatch:
        """Return the columns of rows in the order of their places."""
        import numpy as np
        import pyarrow as pa

        names = list(self.columns)
        if len(found) == 1 and len(found[0][0]) == count:
            (places, rows, at) = found[0]
            numbers = np.empty(count, dtype=np.int64)
            numbers[places] = at
            return rows.batch.select(names).take(pa.array(numbers))
        schema = pa.schema(list(self._schema("int64"))[2:-1])
        none = pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)
        numbers, parts, size = np.zeros(count, dtype=np.int64), [none], 1
        for places, rows, at in found:
            numbers[places] = np.arange(size, size + len(places))
            parts.append(rows.batch.select(names).take(pa.array(at)))
            size += len(places)
        (batch,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
        return batch.take(pa.array(numbers))


def _kind_of(keys: pa.Array) -> tuple[str, pa.Array]:
    """Return the type of keys as rows have it, and the keys with that type. Raises TypeError for other keys."""
    import pyarrow as pa

    kind, types = keys.type, pa.types
    if keys.null_count:
        raise TypeError("a key is null: bytes stand for keys of other types")
    if types.is_integer(kind) and str(kind) != "uint64":
        return "int64", keys.cast(pa.int64())
    if types.is_string(kind) or types.is_large_string(kind):
        return "string", keys.cast(pa.string())
    if types.is_binary(kind) or types.is_large_binary(kind):
        return "binary", keys.cast(pa.binary())
    raise TypeError(f"keys are integers of 64 bits, text or bytes, not {kind}")


class TableState(KeyedState[KeyedTable]):
    """Rows by key over windows, with columns of fixed types: a `MapState` for operators that handle batches.

    A lookup reads those blocks of the rows that may have its keys; a window saves the rows that it has put or removed. In tasks,
    only operators whose input is partitioned by key have one: each partition has the rows of its keys.

    >>> import pyarrow as pa
    >>> from dagflow import Operator, TableState
    >>> class Counted(Operator):
    ...     counts = TableState({"n": "int64"})
    >>> counted = Counted()
    >>> counted.counts.put(pa.array([7]), {"n": pa.array([1])})
    >>> counted.counts.lookup(pa.array([7, 8])).column("n").to_pylist()
    [1, None]

    Args:
        columns: the types of the columns by name, as Arrow writes them.
        record_key: a function from a key of bytes to the key of the records that it goes with.
    """

    def __init__(self, columns: Mapping[str, str], *, record_key: Callable[[bytes], object] | None = None) -> None:
        super().__init__(factory=self._empty)
        if not columns or {CODE, KEY, REMOVED} & columns.keys():
            reason = f"give the types of its columns by name, other than {KEY}, {CODE} and {REMOVED}"
            raise StateDeclaration(declaration="TableState", reason=reason)
        if record_key is not None and not callable(record_key):
            raise StateDeclaration(declaration="TableState", reason=f"record_key is {record_key!r}: give a function")
        self.columns = dict(columns)
        self.record_key = record_key

    def _empty(self) -> KeyedTable:
        return KeyedTable(self.columns, self.record_key)

    def schema_text(self) -> list[list[str]]:
        """Return the names and types of the columns, as Arrow writes them."""
        from dagflow.arrow_types import type_named

        return [[name, str(type_named(kind))] for name, kind in self.columns.items()]

    def with_merge(self) -> str:
        """See `KeyedState.with_merge`."""
        return f"{self.name} = State[dict](factory=dict, merge=merged)"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> KeyedTable: ...
    def __get__(self, instance: object | None, owner: type) -> Self | KeyedTable:
        value: Self | KeyedTable = super().__get__(instance, owner)
        return value
