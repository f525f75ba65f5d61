"""Maps and tables as rows of a log: what `MapState` and `TableState` keep.

The entries of a `MapState` are rows with one column, the value as JSON. Keys that no column of integers or text holds are bytes:
integers of more than 64 bits, and text with lone surrogates, which names of files may have.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dagflow.model.operator.map_state import ABSENT, Changes, TrackedDict
from dagflow.model.operator.table_state import Found, KeyedTable, TableState
from dagflow.model.types.keyed_rows import END, KeyedRows, Marks, RecordKey, merged, rows_of, schema_of
from dagflow.model.types.plain_data import encode, loads
from dagflow.model.types.spilled_rows import Runs, SpillFile
from dagflow.state.errors import ChangedInPlace
from dagflow.state.log import Policy, Retry, StateLog, once
from dagflow.state.segment import MapId, SegmentRef, TableId
from dagflow.state.values import encode_keys, state_type
from dagflow.storage import Store, TemporarySpillFile
from dagflow.storage.records.errors import PlanMismatch

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

VALUE = "value"
Kept = TrackedDict[Any, Any] | KeyedTable
_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_MAP = [[VALUE, "large_binary"]]  # the columns of a map; those of a table are read as they are needed
_PIECE = 1 << 16  # values that are read at a time


@attrs.frozen(eq=False)
class TableInLog:
    """The rows of one `TableState` in a log."""

    log: StateLog
    id: MapId

    def find(self, kind: str, codes: np.ndarray[Any, Any], keys: pa.Array) -> Found:
        """See `SavedTable.find`."""
        return self.log.find((*self.id, kind), codes, keys)

    def rows(self, kind: str, start: int = 0, stop: int = END) -> KeyedRows | None:
        """See `SavedTable.rows`."""
        return self.log.rows((*self.id, kind), start, stop)

    def marks(self, kind: str) -> Marks:
        """See `SavedTable.marks`."""
        return self.log.marks((*self.id, kind))

    def columns(self) -> list[list[str]] | None:
        """See `SavedTable.columns`."""
        from dagflow.arrow_types import joint_type, type_named

        kinds: dict[str, str] = {}
        for name, kind in (column for table in self.log.tables(self.id) for column in self.log.columns[table]):
            # it may have become wider after rows of this type of keys were saved
            kinds[name] = str(joint_type(type_named(kinds.get(name, kind)), type_named(kind)))
        return [list(each) for each in kinds.items()] or None

    def new_file(self) -> SpillFile:
        """See `SavedTable.new_file`."""
        return TemporarySpillFile()


class MapLog:
    """The maps and tables of a driver, or of an operator in one partition, saved window by window.

    No other writer uses the same segments at the same time.

    Attributes:
        log: the log of their rows.
        changed: the maps that had changes in the last call of `save`.

    >>> from dagflow.storage import MemoryStore
    >>> store, seen = MemoryStore(), TrackedDict()
    >>> log = MapLog(store)
    >>> seen["a"] = 1
    >>> ref = log.save(0, {("files", "seen"): seen})
    >>> ref.name.partition("-")[0]
    'state/0000000000'
    >>> log.save(1, {("files", "seen"): seen}) == ref  # nothing has changed
    True
    >>> MapLog(store).restore(ref, 1, [("files", "seen")])
    {('files', 'seen'): {'a': 1}}
    """

    def __init__(self, store: Store, policy: Policy | None = None, retry: Retry = once) -> None:
        self.log = StateLog(store, policy, retry)
        self.changed: set[MapId] = set()

    @property
    def store(self) -> Store:
        """The store of the segments."""
        return self.log.store

    def restore(self, newest: SegmentRef | None, window: int, ids: Iterable[MapId]) -> dict[MapId, dict[Any, Any]]:
        """Return the maps after a window, by its newest segment: keys and encoded values, in no order.

        Maps that are not in `ids` are dropped: a later map of the same name begins empty. Called at most once, before anything is
        saved. Raises SegmentMissing, SegmentDamaged.
        """
        wanted = list(ids)
        self.log.restore(newest, window, wanted)
        self.log.bury_unknown(window)
        return self.entries(wanted)

    def entries(self, ids: Collection[MapId]) -> dict[MapId, dict[Any, Any]]:
        """Return maps: keys and encoded values, in no order. If there are any, all segments are read and checked."""
        if ids:
            self.log.read_all()
        by_map: dict[MapId, dict[Any, Any]] = {}
        for map_id in ids:
            entries = by_map[map_id] = {}
            for table in self.log.tables(map_id):
                if self.log.columns[table] == _MAP and (rows := self.log.rows(table)) is not None:
                    entries.update(zip(_keys_back(rows, table[2]), _values_back(rows), strict=True))
        self.log.forget_content()
        return by_map

    def save(
        self,
        window: int,
        maps: Mapping[MapId, Kept],
        record_keys: Mapping[MapId, RecordKey] | None = None,
        check: Callable[[TableId, KeyedRows], None] | None = None,
    ) -> SegmentRef | None:
        """Save all changes durably, before the plan of a window. Return the segment for the plan; None if there is none yet.

        `record_keys`: of maps whose entries have other keys than their records; `check` may refuse the changes of a table.
        Raises StateNotPlain, StorageError.
        """
        changes = changed_rows(maps, record_keys or {})
        if check is not None:
            for table, changed in changes.items():
                for rows in changed.chunks():
                    check(table, rows)
        newest = self.log.save(window, changes)
        self.changed = {table[:2] for table in changes}
        for map_id, kept in maps.items():
            kept.saved()
            if isinstance(kept, KeyedTable):
                kept.saved_rows = TableInLog(self.log, map_id)
        return newest

    def sweep(self, needed_from: int) -> int:
        """See `StateLog.sweep`."""
        return self.log.sweep(needed_from)


def changed_rows(maps: Mapping[MapId, Kept], record_keys: Mapping[MapId, RecordKey]) -> dict[TableId, KeyedRows | Runs]:
    """Return the changes of maps and tables since they were last saved. Raises StateNotPlain, ChangedInPlace."""
    changed: dict[TableId, KeyedRows | Runs] = {}
    for map_id, kept in maps.items():
        by_kind: Mapping[str, KeyedRows | Runs]
        if isinstance(kept, KeyedTable):
            by_kind = kept.changes()
        else:
            if (key := kept.changed_in_place()) is not ABSENT:
                raise ChangedInPlace(*map_id, repr(key))
            by_kind = _rows_of_changes(
                kept.changes(), f"MapState {map_id[1]!r} of operator {map_id[0]!r}", record_keys.get(map_id)
            )
        changed |= {(*map_id, kind): rows for kind, rows in by_kind.items() if len(rows)}
    return changed


def _rows_of_changes(changes: Changes[Any, Any], where: str, record_key: RecordKey | None) -> dict[str, KeyedRows]:
    values = _as_json(changes.assigned.values(), where)
    by_name: dict[str, list[KeyedRows]] = {}
    for keys, column in ((list(changes.assigned), values), (changes.removed, None)):
        for kind, array, places in _arrays(encode_keys(keys, where)):
            of_record = _of_bytes(record_key) if kind == "binary" else record_key
            columns = [] if column is None else [column if places is None else column.take(places)]
            rows = rows_of(array, columns, _schema(array.type), removed=column is None, record_key=of_record)
            by_name.setdefault(kind, []).append(rows)
    return {kind: merged(rows) for kind, rows in by_name.items()}


def _schema(key: pa.DataType) -> pa.Schema:
    import pyarrow as pa

    return schema_of(key, [(VALUE, pa.large_binary())])


def _as_json(values: Collection[Any], where: str) -> pa.Array:
    """Return the values of a map as JSON. Raises StateNotPlain."""
    import pyarrow as pa

    from dagflow.arrow_types.buffers import of_bytes

    if set(map(type, values)) <= {int}:
        return of_bytes([b"%d" % value for value in values], pa.large_binary())
    texts = map(_written, encode(list(values), where))
    # Names of files may hold bytes that are not UTF-8, as lone surrogates: `\udc80` is also how JSON writes them.
    return of_bytes([text.encode("utf-8", "backslashreplace") for text in texts], pa.large_binary())


def _values_back(rows: KeyedRows) -> Iterable[Any]:
    """Return the encoded values of a map."""
    column = rows.batch.column(VALUE)
    for at in range(0, len(rows), _PIECE):
        yield from loads(b"[%s]" % b",".join(column[at : at + _PIECE].to_pylist()))


def _arrays(keys: Sequence[Any]) -> Iterable[tuple[str, pa.Array, Any]]:
    """Yield the keys of each type, with their places among all; None: these are all."""
    import numpy as np

    from dagflow.arrow_types.buffers import of_numbers

    if not keys:
        return
    types = set(map(type, keys))
    try:
        if len(types) == 1:
            kind = "int64" if types == {int} else "string"
            yield kind, _array(keys, kind), None
            return
    except (OverflowError, UnicodeEncodeError):
        pass
    kinds: dict[str, list[int]] = {}
    for place, key in enumerate(keys):
        kinds.setdefault(_kind(key), []).append(place)
    for kind, places in kinds.items():
        yield kind, _array([keys[place] for place in places], kind), of_numbers(np.array(places))


def _array(keys: Sequence[Any], kind: str) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    from dagflow.arrow_types.buffers import of_bytes, of_numbers

    if kind == "int64":
        return of_numbers(np.array(keys, dtype=np.int64))
    if kind == "string":
        return of_bytes([key.encode() for key in keys], pa.string())
    return of_bytes(list(map(_as_bytes, keys)), pa.binary())


def _kind(key: str | int) -> str:
    if type(key) is int:
        return "int64" if -(1 << 63) <= key < 1 << 63 else "binary"
    return "binary" if any("\ud800" <= letter <= "\udfff" for letter in str(key)) else "string"


def _as_bytes(key: str | int) -> bytes:
    return b"i%d" % key if type(key) is int else b"s" + str(key).encode("utf-8", "surrogatepass")


def _from_bytes(key: bytes) -> str | int:
    return int(key[1:]) if key[:1] == b"i" else key[1:].decode("utf-8", "surrogatepass")


def _of_bytes(record_key: RecordKey | None) -> Callable[[bytes], Any]:
    return _from_bytes if record_key is None else lambda key: record_key(_from_bytes(key))


def _keys_back(rows: KeyedRows, kind: str) -> list[Any]:
    keys: list[Any] = rows.batch.column("key").to_pylist()
    return list(map(_from_bytes, keys)) if kind == "binary" else keys


def first_foreign(rows: KeyedRows, kind: str, is_foreign: np.ndarray[Any, Any]) -> str:
    """Return the first key that a mask selects, as text for messages."""
    import numpy as np

    one = KeyedRows(rows.batch.slice(int(np.flatnonzero(is_foreign)[0]), 1))
    keys = _keys_back(one, kind) if rows.columns == _MAP else one.batch.column("key").to_pylist()
    return repr(keys[0])[:200]


def table_of(log: StateLog, map_id: MapId, declared: TableState) -> KeyedTable:
    """Return the value of a `TableState` whose rows are in a log. Raises PlanMismatch where these have other columns."""
    for table in log.tables(map_id):
        was = ", ".join(f"{name}: {kind}" for name, kind in log.columns[table])
        if declared.columns is not None and log.columns[table] != declared.schema_text():
            raise PlanMismatch(
                log.store.url,
                f"State {map_id[1]!r} of operator {map_id[0]!r} has rows of the columns {was}, and is declared as "
                f"{state_type(declared)}",
            )
    return KeyedTable(declared.columns, declared.record_key, TableInLog(log, map_id))
