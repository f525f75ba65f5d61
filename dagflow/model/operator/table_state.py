"""`TableState`: rows by key over windows, read and changed batch by batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

import attrs

from dagflow.model.errors.running import StateDeclaration
from dagflow.model.operator.map_state import KeyedState
from dagflow.model.types.keyed_rows import (
    CODE,
    END,
    KEY,
    KINDS,
    REMOVED,
    KeyedRows,
    Marks,
    RecordKey,
    codes_of,
    edges,
    kind_of,
    merged,
    ranges_of,
    rows_of,
    schema_of,
    with_columns,
)
from dagflow.model.types.spilled_rows import Runs, SpilledRows, SpillFile
from dagflow.model.types.table_keys import KeysOfKind, TableKeys, keys_of_columns

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    import pyarrow as pa

    from dagflow.model.types.net_changes import NetRows

MAX_WAITING_BYTES = 64 << 20
"""The bytes of changed rows that wait in memory for the window's end. More wait in a temporary file."""
Found = list[tuple[Any, KeyedRows, Any]]
"""Rows of keys: the places of the keys, rows, and the numbers of their rows."""


class SavedTable(Protocol):
    """The rows of a table that are saved, by type of key."""

    def find(self, kind: str, codes: np.ndarray[Any, Any], keys: pa.Array) -> Found:
        """Return the rows of keys, whose codes are sorted."""
        ...

    def rows(self, kind: str, start: int = 0, stop: int = END) -> KeyedRows | None:
        """Return all rows with codes in `[start, stop)`; None where there are none."""
        ...

    def marks(self, kind: str) -> Marks:
        """Return the codes of some of the rows, and about the bytes of those from each to the next one."""
        ...

    def columns(self) -> list[list[str]] | None:
        """Return the names and types of the columns of all saved rows; None where there are none."""
        ...

    def new_file(self) -> SpillFile:
        """Return a temporary file for rows that wait to be saved."""
        ...


@attrs.define(eq=False)
class KeyedTable:
    """The value of a `TableState`: rows by key. What is looked up is read; what is put or removed is saved with the window.

    In tasks, changes of more than `MAX_WAITING_BYTES` wait for that in a temporary file. `is_saved`: False in a final launch,
    where only this window can look up what is put.

    Keys are an array of integers, of text, or of bytes, which stand for other keys (`TableState.record_key`). A record batch is
    keys of its columns, whatever their types: the partition is that of the operator's input, whose key has these columns.
    `TableKeys` are keys that were computed before; with numbers, a key has several rows.

    >>> import pyarrow as pa
    >>> table = KeyedTable({"n": "int64"})
    >>> table.put(pa.array(["a", "b"]), {"n": pa.array([1, 2])})
    >>> table.remove(pa.array(["b"]))
    >>> table.lookup(pa.array(["b", "a"])).to_pylist()
    [{'n': None}, {'n': 1}]
    """

    declared: Mapping[str, str] | None = None
    record_key: RecordKey | None = None
    saved_rows: SavedTable | None = None
    is_saved: bool = True
    _changes: list[tuple[str, KeyedRows | SpilledRows]] = attrs.field(factory=list, init=False)
    _file: SpillFile | None = attrs.field(default=None, init=False)
    _last_keys: tuple[pa.RecordBatch, Sequence[KeysOfKind]] | None = attrs.field(default=None, init=False)

    @property
    def columns(self) -> pa.Schema | None:
        """The columns of its rows; None where they are not declared, and no row was put yet."""
        import pyarrow as pa

        from dagflow.arrow_types import type_named

        if self.declared is not None:
            return pa.schema([(name, type_named(kind)) for name, kind in self.declared.items()])
        if self._changes:
            last = self._changes[-1][1]
            return pa.schema(list(last.schema if isinstance(last, SpilledRows) else last.batch.schema)[2:-1])
        saved = None if self.saved_rows is None else self.saved_rows.columns()
        return None if saved is None else pa.schema([(name, type_named(kind)) for name, kind in saved])

    def lookup(self, keys: pa.Array | pa.RecordBatch | TableKeys) -> pa.RecordBatch:
        """Return the rows of keys, in their order: nulls where there is none. Raises TypeError for keys of other types."""
        import pyarrow as pa

        from dagflow.arrow_types.buffers import of_numbers, order_of

        parts: Found = []
        schema = self.columns
        for part in self._keys(keys) if schema is not None else ():
            if not self._may_have(part.kind, part.codes):
                continue
            order = order_of(part.codes)
            for at, rows, numbers in self._found(part.kind, part.codes[order], part.keys.take(of_numbers(order))):
                parts.append((part.places[order[at]], rows, numbers))
        return _together(parts, len(keys), schema or pa.schema([]))

    def put(self, keys: pa.Array | pa.RecordBatch | TableKeys, columns: Mapping[str, pa.Array]) -> None:
        """Put rows in the place of those that the keys have. Raises TypeError for other columns than those that are declared.

        Where none are declared, earlier rows have null in columns that are new, and a column may become wider. Raises TypeError
        where it has a type that cannot hold its values as they are.
        """
        import pyarrow as pa

        from dagflow.arrow_types.buffers import of_numbers

        declared = self._together_with({name: each.type for name, each in columns.items()})
        values = [columns[name].cast(kind) if name in columns else pa.nulls(len(keys), kind) for name, kind in declared.items()]
        for part in self._keys(keys):
            some = values if len(part.places) == len(keys) else [each.take(of_numbers(part.places)) for each in values]
            schema = schema_of(part.keys.type, list(declared.items()))
            self._changes.append((part.kind, rows_of(part.keys, some, schema, codes=part.codes)))
            self._bound()

    def keep(self, net: NetRows[Any], column: str, counts: np.ndarray[Any, Any], *, with_rows: bool = False) -> None:
        """Put into a column how many of each of some rows there are from now on, and remove those of which there are none.

        `with_rows`: the columns of the rows too, each under its name behind a dot.
        """
        from dagflow.arrow_types.buffers import of_numbers

        stays = net.where(counts != 0)
        columns = {f".{name}": stays.rows.column(name) for name in stays.rows.schema.names if with_rows}
        self.put(stays.keys, {column: of_numbers(counts[counts != 0]), **columns})
        self.remove(net.where(counts == 0).keys)

    def remove(self, keys: pa.Array | pa.RecordBatch | TableKeys) -> None:
        """Remove the rows of keys."""
        for part in self._keys(keys):
            schema = schema_of(part.keys.type, [(field.name, field.type) for field in self.columns or ()])
            self._changes.append((part.kind, rows_of(part.keys, [], schema, removed=True, codes=part.codes)))
            self._bound()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in the order of their keys, a batch for each type of keys: the column `key`, and those declared."""
        for rows in self.all_rows().values():
            yield rows.batch.select([KEY, *self.columns.names]).sort_by(KEY)  # type: ignore[union-attr]

    def portions(self, max_bytes: int, groups: Collection[int] | None = None) -> Iterator[list[pa.RecordBatch]]:
        """Yield all rows like `batches`, but in the order of their hashes, and about so many bytes at a time.

        `groups`: rows of other groups (`InputPort.keys_of`) may be left out, and are not read where these are few.
        """
        parts = [rows.marks() for _, rows in self._changes]
        parts += [] if self.saved_rows is None else map(self.saved_rows.marks, KINDS)
        for start, stop in itertools.pairwise(edges(parts, max_bytes)):
            ranges = [(start, stop)] if groups is None else ranges_of(groups, start, stop)
            pieces = [rows for each in ranges for rows in self.all_rows(*each).values()]
            if pieces or groups is None:
                yield [rows.batch.select([KEY, *self.columns.names]) for rows in pieces]  # type: ignore[union-attr]

    def all_rows(self, start: int = 0, stop: int = END) -> dict[str, KeyedRows]:
        """Return all rows, by type of key, with codes in `[start, stop)`."""
        tables = {}
        for kind in KINDS:
            saved = None if self.saved_rows is None else self.saved_rows.rows(kind, start, stop)
            changed = [rows.between(start, stop) for each, rows in self._changes if each == kind]
            if saved is not None or changed:
                rows = merged([*([saved] if saved is not None else []), *changed]).without_removed()
                if len(rows):
                    tables[kind] = self._alike(rows)
        return tables

    def changes(self) -> dict[str, KeyedRows | Runs]:
        """Return the rows that were put or removed since it was last saved, by type of key."""
        changed: dict[str, KeyedRows | Runs] = {}
        for kind in dict.fromkeys(kind for kind, _ in self._changes):
            parts = [rows for each, rows in self._changes if each == kind]
            in_memory = [rows for rows in parts if isinstance(rows, KeyedRows)]
            changed[kind] = (
                self._alike(merged(in_memory)) if len(in_memory) == len(parts) else Runs(parts, self._schema(parts[-1]))
            )
        return changed

    def restore(self, kind: str, rows: KeyedRows) -> None:
        """Put rows that `all_rows` of another table has returned."""
        self._changes.append((kind, rows))

    def saved(self) -> None:
        """Forget the changes, since they are saved."""
        self._changes, self._file, self._last_keys = [], None, None

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
        copied = KeyedTable(self.declared, self.record_key, self.saved_rows)
        copied._changes = self._changes[:]  # batches do not change
        return copied

    def _together_with(self, given: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """Return the columns of the table with those of more rows. Raises TypeError where these are not declared, or differ."""
        from dagflow.arrow_types import joint_type

        known = {field.name: field.type for field in self.columns or ()}
        if self.declared is not None:
            if known.keys() != given.keys():
                raise TypeError(f"a row has the columns {', '.join(known)}, not {', '.join(given)}")
            return known
        for name, kind in given.items():
            joint = joint_type(known.get(name, kind), kind)
            if joint is None:
                raise TypeError(f"the column {name!r} is {kind}, and was {known[name]}")
            known[name] = joint
        return known

    def _keys(self, keys: pa.Array | pa.RecordBatch | TableKeys) -> Sequence[KeysOfKind]:
        """Return keys by type. Raises TypeError for other keys."""
        import numpy as np
        import pyarrow as pa

        if isinstance(keys, TableKeys):
            return keys.parts
        if isinstance(keys, pa.RecordBatch):
            if self._last_keys is None or self._last_keys[0] is not keys:  # what is looked up is often put then
                self._last_keys = keys, keys_of_columns(keys)
            return self._last_keys[1]
        kind = kind_of(keys.type)
        if kind is None or keys.null_count:
            what = "a key is null" if kind else f"keys are integers of 64 bits, text or bytes, not {keys.type}"
            raise TypeError(f"{what}: bytes, or a record batch, stand for other keys")
        keys = keys.cast(getattr(pa, kind)())
        return [KeysOfKind(kind, np.arange(len(keys)), keys, codes_of(keys, self.record_key if kind == "binary" else None))]

    def _may_have(self, kind: str, codes: np.ndarray[Any, Any]) -> bool:
        """Return False where no row can have one of some keys: a window that is taken in portions has other keys in each."""
        if not len(codes):
            return False
        first, last = int(codes.min()), int(codes.max())
        is_put = any(rows.span[0] <= last and rows.span[1] >= first for each, rows in self._changes if each == kind)
        return is_put or (self.saved_rows is not None and self.saved_rows.columns() is not None)

    def _found(self, kind: str, codes: np.ndarray[Any, Any], keys: pa.Array) -> Found:
        """Return the rows of keys whose codes are sorted."""
        import numpy as np
        import pyarrow as pa

        parts: Found = []
        waiting = np.arange(len(codes))
        for each, changed in reversed(self._changes):
            if each != kind or not len(waiting):
                continue
            if changed.span[0] > int(codes[waiting[-1]]) or changed.span[1] < int(codes[waiting[0]]):
                continue
            rows = changed.near(codes[waiting])
            at = rows.find(codes[waiting], keys, waiting)
            is_hit = at >= 0
            hits, at = waiting[is_hit], at[is_hit]
            there = ~rows.removed[at]
            parts.append((hits[there], rows, at[there]))
            waiting = waiting[~is_hit]
        if self.saved_rows is not None and len(waiting) == len(codes):
            parts += self.saved_rows.find(kind, codes, keys)
        elif self.saved_rows is not None and len(waiting):
            others = self.saved_rows.find(kind, codes[waiting], keys.take(pa.array(waiting)))
            parts += [(waiting[places], rows, at) for places, rows, at in others]
        return [each for each in parts if len(each[0])]

    def _bound(self) -> None:
        """Let changes wait in a file, where they are too large for memory."""
        in_memory = sum(rows.weight for _, rows in self._changes if isinstance(rows, KeyedRows))
        if self.saved_rows is not None and in_memory > MAX_WAITING_BYTES:
            file = self._file = self._file or self.saved_rows.new_file()
            self._changes = [
                (kind, SpilledRows.of(rows, file) if isinstance(rows, KeyedRows) else rows) for kind, rows in self._changes
            ]

    def _alike(self, rows: KeyedRows) -> KeyedRows:
        """Return rows with the columns that the table has now."""
        now = self._schema(rows)
        return rows if rows.batch.schema.equals(now) else KeyedRows(with_columns(rows.batch, now))

    def _schema(self, rows: KeyedRows | SpilledRows) -> pa.Schema:
        """Return the columns of all rows with keys of the type that these have."""
        schema = rows.schema if isinstance(rows, SpilledRows) else rows.batch.schema
        return schema_of(schema.field(KEY).type, [(field.name, field.type) for field in self.columns or ()])


def _together(found: Found, count: int, schema: pa.Schema) -> pa.RecordBatch:
    """Return the columns of rows in the order of their places: nulls at the others."""
    import numpy as np
    import pyarrow as pa

    if len(found) == 1 and len(found[0][0]) == count:
        (places, rows, at) = found[0]
        numbers = np.empty(count, dtype=np.int64)
        numbers[places] = at
        return with_columns(rows.batch, schema).take(pa.array(numbers))
    none = pa.RecordBatch.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)
    numbers, parts, size = np.zeros(count, dtype=np.int64), [none], 1
    for places, rows, at in found:
        numbers[places] = np.arange(size, size + len(places))
        parts.append(with_columns(rows.batch.take(pa.array(at)), schema))
        size += len(places)
    if not schema.names:
        return none
    (batch,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
    return batch.take(pa.array(numbers))


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
        columns: the types of the columns by name, as Arrow writes them. None: those of the rows that are put.
        record_key: a function from a key of bytes to the key of the records that it goes with.
        format_version: the number of the form in which columns have what they have. Raise it when rows that were kept before
            would be read as something else: a launch that finds rows of another format is refused (DF900).
    """

    def __init__(
        self,
        columns: Mapping[str, str] | None = None,
        *,
        record_key: Callable[[bytes], object] | None = None,
        format_version: int = 1,
    ) -> None:
        super().__init__(factory=self._empty)
        if columns is not None and (not columns or {CODE, KEY, REMOVED} & columns.keys()):
            reason = f"give the types of its columns by name, other than {KEY}, {CODE} and {REMOVED}"
            raise StateDeclaration(declaration="TableState", reason=reason)
        if record_key is not None and not callable(record_key):
            raise StateDeclaration(declaration="TableState", reason=f"record_key is {record_key!r}: give a function")
        self.columns = None if columns is None else dict(columns)
        self.record_key = record_key
        self.format_version = format_version

    def _empty(self) -> KeyedTable:
        return KeyedTable(self.columns, self.record_key)

    def schema_text(self) -> list[list[str]] | None:
        """Return the names and types of the columns, as Arrow writes them; None where they are not declared."""
        from dagflow.arrow_types import type_named

        return None if self.columns is None else [[name, str(type_named(kind))] for name, kind in self.columns.items()]

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
