"""Windows of event time that are open: which keys have them, and what was emitted of each; kept over the windows of a run."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import KeyedTable
from operators.aggregate.event_time.spans import Spans
from operators.aggregate.kept_keys import as_kept, as_plain, entry_of, from_plain, key_of

START, ITSELF = "#start", "#itself"
"""The columns of the start of a window, and of a key that is an object, as JSON."""
_FIRED, _CHANGED, _VALUE, _COUNT = "fired", "changed", "value", "count"
Keys: TypeAlias = "pa.Array | pa.RecordBatch"
Results = Callable[[Keys], tuple[pa.Array, pa.Array]]
"""Returns the results, and the numbers of values, of windows by their keys."""


@attrs.frozen
class Firing:
    """The content of a window of a key when it fires; `number`: how often it did before. The last firing is taken back."""

    key: Any
    start: int
    value: Any
    count: int
    number: int
    retracts: bool = False


@attrs.frozen
class OpenWindows:
    """The windows that are open, by start and key.

    Attributes:
        kept: a row for each. It has the start, the key, how often the window has fired, whether it has changed since, and what
            was emitted last.
        names: the columns of the key; None where keys are objects, or all rows are one group.
        keys_of: returns the keys of rows by `names`, with the partitions that they go to.
        spans: which windows are due, and which over.
        has_integers: whether results are sums of integers. They are kept as decimals, which all of them fit into.
    """

    kept: KeyedTable
    names: Sequence[str] | None
    keys_of: Callable[[pa.RecordBatch, Sequence[str]], pa.RecordBatch]
    spans: Spans
    has_integers: bool = False

    def keys(self, table: pa.Table | pa.RecordBatch) -> Keys:
        """Return the keys of rows that have a start and a key, as they are kept."""
        if self.names is None:
            starts, keys = table.column(START).to_pylist(), table.column(ITSELF).to_pylist()
            entries = (entry_of_window(start, from_plain(json.loads(key))) for start, key in zip(starts, keys, strict=True))
            return pa.array([entry.encode("utf-8", "surrogatepass") for entry in entries], pa.binary())
        rows = pa.RecordBatch.from_arrays([_one(table.column(name)) for name in self.names], names=list(self.names))
        return self.keys_of(rows, self.names).append_column(START, _one(table.column(START)))

    def change(self, table: pa.Table, keys: Keys) -> None:
        """Note windows that have changed: a table with their starts and keys."""
        before, rows = self.kept.lookup(keys), table.num_rows
        fired = before.column(_FIRED).fill_null(0) if before.num_columns else pa.array([0] * rows, pa.int64())
        sent = {name: before.column(name) for name in (_VALUE, _COUNT) if name in before.schema.names}
        self.kept.put(keys, {**self._own(table), _FIRED: fired, _CHANGED: pa.array([True] * rows, pa.bool_()), **sent})

    def fire(self, before: int | None, results: Results) -> Iterator[Firing]:
        """Yield the windows that start before a time (None: all) and have changed. What no longer holds comes first."""
        rows = self._where(lambda row: row.column(_CHANGED) if before is None else _changed_before(row, before))
        if rows is None:
            return
        keys = self.keys(rows)
        values, counts = results(keys)
        if _VALUE in rows.column_names:
            again = rows.filter(pc.greater(rows.column(_FIRED), 0))
            for firing in self.results(again, again.column(_VALUE), again.column(_COUNT), retracts=True):
                yield attrs.evolve(firing, number=firing.number - 1)
        yield from self.results(rows, values, counts)
        now = {
            _FIRED: pc.add(_one(rows.column(_FIRED)), 1),
            _CHANGED: pa.array([False] * rows.num_rows),
            _VALUE: values,
            _COUNT: counts,
        }
        self.kept.put(keys, {**self._own(rows), **now})

    def over(self) -> Keys | None:
        """Forget the windows that are over, and return their keys; None without any."""
        limit = self.spans.over_before
        rows = None if limit is None else self._where(lambda row: pc.less(row.column(START), limit))
        if rows is None:
            return None
        keys = self.keys(rows)
        self.kept.remove(keys)
        return keys

    @property
    def _key_columns(self) -> Sequence[str]:
        return (ITSELF,) if self.names is None else self.names

    def _where(self, holds: Callable[[pa.RecordBatch], pa.Array]) -> pa.Table | None:
        """Return the rows for which something holds; None without any."""
        parts = [batch.filter(holds(batch)) for batch in self.kept.batches()]
        rows = pa.Table.from_batches([part.drop_columns(["key"]) for part in parts]) if parts else None
        return (
            rows.rename_columns([name.removeprefix("=") for name in rows.column_names])
            if rows is not None and len(rows)
            else None
        )

    def _own(self, rows: pa.Table) -> dict[str, pa.Array]:
        """Return the start and the key of rows as columns that are kept."""
        keys = {f"={name}": _one(rows.column(name)) for name in self._key_columns}
        return {START: _one(rows.column(START)), **keys}

    def results(self, rows: pa.Table, values: Any, counts: Any, *, retracts: bool = False) -> Iterator[Firing]:
        """Yield rows of windows with their results, by start and key."""
        starts = rows.column(START).to_pylist()
        fired = rows.column(_FIRED).to_pylist() if _FIRED in rows.column_names else [0] * len(starts)
        columns = [rows.column(name).to_pylist() for name in self._key_columns]
        keys: Any = zip(*columns, strict=True) if self.names is not None else (from_plain(json.loads(key)) for key in columns[0])
        kept = [
            Firing(key, start, self._object(value), count.as_py(), number, retracts)
            for key, start, value, count, number in zip(keys, starts, values, counts, fired, strict=True)
        ]
        yield from sorted(kept, key=lambda each: (each.start, *_in_order(each.key)))

    def _object(self, value: pa.Scalar) -> Any:
        return int(value.as_py()) if self.has_integers and value.is_valid else value.as_py()


def _changed_before(row: pa.RecordBatch, time: int) -> pa.Array:
    return pc.and_(row.column(_CHANGED), pc.less(row.column(START), time))


def _in_order(key: Any) -> tuple[str, Any]:
    kept = as_kept(key)
    return type(kept).__name__, kept


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def plain_key(key: Any) -> bytes:
    """Return a key that is an object as JSON. Raises ValueNotKept for one that would not come back."""
    return json.dumps(as_plain(key)).encode()


def entry_of_window(start: int, key: Any) -> str:
    """Return the name under which a window of a key is kept, which shows whether the key is text or an integer."""
    entry = entry_of(key)
    return f"{start} #{entry}" if isinstance(entry, int) else f"{start} '{entry}"


def key_of_window(entry: bytes) -> Any:
    """Return a key that goes to the same partition as that of the window kept under a name."""
    _, _, key = entry.decode("utf-8", "surrogatepass").partition(" ")
    return key_of(int(key[1:]) if key[0] == "#" else key[1:])
