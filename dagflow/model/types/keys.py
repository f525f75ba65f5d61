"""Partitioning by key: the key of a record, and the hash that sends equal keys to one partition.

The hash of a key is the same in every process and for both forms of records: that of Python would differ from one worker to
the next. Keys that are equal have equal hashes, also 1, 1.0 and True.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import functools
import inspect
import struct
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, get_origin
from zlib import crc32

import attrs

from dagflow.model.errors.partitioning import ColumnNotThere, KeyNotHashable
from dagflow.model.types.columns import column_type, names_of, record_class
from dagflow.model.types.comparison import annotations_of
from dagflow.model.types.equality import compared
from dagflow.model.types.expressions import resolve
from dagflow.model.types.forms import VALUE, columns_of, objects_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

GROUPS = 1 << 16
"""The number of groups that keys are hashed to. Partitions have groups, so the number of partitions may change."""
_WORD, _GROUP = (1 << 64) - 1, GROUPS - 1
_NONE, _SEQUENCE = 0x9E3779B9, 0x85EBCA6B


WHOLE = "*"
"""The name that stands for all columns of a record as its key."""


@attrs.frozen
class Key:
    """A key: a function of the record, or names of columns (of fields of its class); `WHOLE` for all of them."""

    columns: tuple[str, ...] = ()
    function: Callable[[Any], Any] | None = None

    def __str__(self) -> str:
        if self.function is None:
            return ", ".join(self.columns)
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return "a function" if name == "<lambda>" else f"{name}()"

    def of_record(self, tp: Any) -> Callable[[Any], Any]:
        """Return the function that gives the key of a record of type `tp`: of one column its value, of several a tuple.

        >>> from dagflow.model.types.records import ReaderRecord
        >>> Key(columns=("position",)).of_record(ReaderRecord)(ReaderRecord(1, 20, "x"))
        20
        >>> Key(columns=("town", "year")).of_record(Any)({"year": 2026, "town": "Lund", "people": 1})
        ('Lund', 2026)
        """
        if self.function is not None:
            return self.function
        if self.columns == (VALUE,) and columns_of(tp) is None:
            return _itself
        if self.columns == (WHOLE,):
            return values_of_row
        return attrgetter(*self.columns) if columns_of(tp) is not None else _Fields(self.columns)

    def types(self, tp: Any) -> list[Any]:
        """Return the types of the values that make the key of a record of type `tp`, as far as they are known."""
        if self.function is None:
            return [column_type(tp, name) for name in self.columns if name != WHOLE]
        return [self.function if inspect.isclass(self.function) else annotations_of(self.function).get("return", Any)]


class _Fields:
    """The function that gives the key of a record whose type is not known: a dict is a row."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._of_object, self._of_row = attrgetter(*columns), itemgetter(*columns)

    def __call__(self, record: Any) -> Any:
        return self._of_row(record) if isinstance(record, dict) else self._of_object(record)


def _itself(record: Any) -> Any:
    return record


def values_of_row(record: Any) -> tuple[Any, ...]:
    """Return the values by which a record is sent where its key is the whole row, in the order of the names of their columns.

    A null counts as a column that is not there: rows stay the same where files of a later launch have a further column. Columns
    like `#rows`, by which operators count equal rows, do not count.

    >>> values_of_row({"b": 2, "a": "x"}) == values_of_row({"a": "x", "a2": None, "b": 2, "#rows": 3}) == ("x", 2)
    True
    """
    if isinstance(record, Mapping):
        return tuple(record[name] for name in _sent_by(record) if record[name] is not None)
    kind: Any = type(record)
    values = [getattr(record, name) for name in _names_of_class(kind)] or [record]
    return tuple(value for value in values if value is not None)


@functools.cache
def _names_of_class(cls: type) -> list[str]:
    return _sent_by(names_of(cls))


def _sent_by(names: Iterable[Any]) -> list[Any]:
    return sorted((name for name in names if not str(name).startswith("#")), key=str)


def key_of(given: Any) -> Key | None:
    """Return the key for the value that a user has set: a function, a name, several names, or None. Raises ValueError.

    >>> key_of("word"), key_of(("host", "hour")), str(key_of(len))
    (Key(columns=('word',), function=None), Key(columns=('host', 'hour'), function=None), 'len()')
    """
    if given is None or isinstance(given, Key):
        return given
    if isinstance(given, str):
        given = (given,)
    if isinstance(given, Sequence) and given and all(isinstance(name, str) and name for name in given):
        return Key(columns=tuple(given))
    if callable(given):
        return Key(function=given)
    raise ValueError("it is neither a function of the record nor names of columns")


def known_columns(tp: Any) -> tuple[str, ...] | None:
    """Return the columns of records of a type; None if they are unknown."""
    tp = resolve(tp)
    if tp is Any or tp is object:
        return None
    columns = columns_of(tp)
    if columns is not None:
        return tuple(field.name for field in columns)
    outer = get_origin(tp) or tp
    rows = record_class(outer)
    return (VALUE,) if rows is None else rows.names


def key_hash(key: Any) -> int:
    """Return the hash of the values that `==` compares of a key, from 0 to 2**64 - 1. Raises TypeError if they are unknown.

    >>> key_hash(1) == key_hash(1.0) == key_hash(True), key_hash("a") == key_hash("b")
    (True, False)
    """
    kind = type(key)
    if kind is str:
        return mixed(crc32(key.encode("utf-8", "surrogatepass")))
    if kind is int or kind is bool:
        return mixed(key)
    of = _OF.get(kind)
    if of is not None:
        return of(key)
    value = compared(key)
    of = _OF.get(type(value))
    if of is not None:
        return of(value)
    if type(value) is not kind:
        return key_hash(value)
    return next(known for base, known in _OF.items() if isinstance(value, base))(value)


def mixed(value: int) -> int:
    """Mix an integer, so that the hashes of neighbours lie far apart (the last step of splitmix64)."""
    value &= _WORD
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _WORD
    return value ^ (value >> 31)


def _of_float(key: float) -> int:
    if key == key and abs(key) != float("inf") and key == int(key):  # not a number equals nothing
        return mixed(int(key))
    return mixed(crc32(struct.pack("<d", key if key == key else float("nan"))))


def _of_decimal(key: decimal.Decimal) -> int:
    compared(key)
    if key.is_finite() and key == key.to_integral_value():
        return mixed(_lowest_bits(key))
    if not key.is_finite() or decimal.Decimal(float(key)) == key:
        return _of_float(float(key))
    return mixed(crc32(f"{key:f}".rstrip("0").encode()))


def _lowest_bits(key: decimal.Decimal) -> int:
    """Return the lowest 64 bits of an integer, without writing out the zeros of 1e999999."""
    sign, digits, exponent = key.as_tuple()
    assert isinstance(exponent, int)
    if exponent <= 0:
        return int(key) & _WORD
    value = int("".join(map(str, digits))) * pow(10, exponent, _WORD + 1)
    return (-value if sign else value) & _WORD


def _of_time(key: datetime.datetime | datetime.time) -> int:
    value = compared(key)
    return _of_several(value) if type(value) is tuple else mixed(crc32(value.isoformat().encode()))


def _of_several(values: Sequence[Any]) -> int:
    mixture = _SEQUENCE
    for value in values:
        mixture = mixed((mixture * 31 + key_hash(value)) & _WORD)
    return mixture


_OF: dict[type, Callable[[Any], int]] = {
    type(None): lambda key: mixed(_NONE),
    bytes: lambda key: mixed(crc32(key)),
    float: _of_float,
    tuple: _of_several,
    list: _of_several,
    datetime.datetime: _of_time,
    datetime.date: lambda key: mixed(crc32(key.isoformat().encode())),
    datetime.time: _of_time,
    datetime.timedelta: lambda key: mixed(key // datetime.timedelta(microseconds=1)),
    decimal.Decimal: _of_decimal,
    uuid.UUID: lambda key: mixed(crc32(key.bytes)),
}


def group_of(key: Any) -> int:
    """Return the group of a key: the lowest 16 bits of its hash."""
    return key_hash(key) & _GROUP


@attrs.frozen
class KeyAssignment:
    """The assignment of keys, by their groups, to partitions.

    Without `owners`, each partition has a run of neighbouring groups. With them, a group has the partition
    `owners[group & (len(owners) - 1)]`; their number is a power of two.

    >>> [KeyAssignment(3).of_group(group) for group in (0, 30_000, 65_535)]
    [0, 1, 2]
    >>> [KeyAssignment(3, owners=(0, 1, 2, 0)).of_group(group) for group in (4, 5, 6, 7)]
    [0, 1, 2, 0]
    """

    partitions: int
    owners: tuple[int, ...] = ()

    def of_group(self, group: int) -> int:
        """Return the partition that has a group."""
        return self.owners[group & (len(self.owners) - 1)] if self.owners else group * self.partitions // GROUPS

    def of_groups(self, groups: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the partitions that have groups."""
        import numpy as np

        places = groups.astype(np.int64)
        if not self.owners:
            return places * self.partitions >> 16
        partitions: np.ndarray[Any, Any] = self._table[places & (len(self.owners) - 1)]
        return partitions

    @cached_property
    def _table(self) -> np.ndarray[Any, Any]:
        import numpy as np

        return np.array(self.owners, dtype=np.int64)


class Router:
    """The partition of each record, by its key.

    Args:
        port: the port to name in errors.
        key: the key of the records.
        tp: the type of the records.
        assignment: the assignment of keys to partitions.

    `keys_seen`, called with every 61st key (and others of a batch), learns which are hot.
    """

    STRIDE = 61
    TRY = 16  # of so many columns of text in which most values come once, it looks into one whether that is still so
    _KNOWN = 1 << 16

    def __init__(
        self, port: str, key: Key, tp: Any, assignment: KeyAssignment, keys_seen: Callable[[list[Any]], None] | None = None
    ) -> None:
        self._port = port
        self._key = key
        self._type = tp
        self._of_record = key.of_record(tp)
        self._assignment = assignment
        self._keys_seen = keys_seen
        self._known: dict[Any, int] = {}
        self._repeats = False
        self._columns = 0
        self._count = 0

    def key(self, record: Any) -> Any:
        """Return the key of a record."""
        return self._of_record(record)

    def of_record(self, record: Any) -> int:
        """Return the partition of a record. Raises KeyNotHashable, and what the user's function raises."""
        key = self._of_record(record)
        self._count += 1
        if self._keys_seen is not None and self._count % self.STRIDE == 0:
            self._keys_seen([key])
        try:
            return self._known[key]
        except (KeyError, TypeError):
            partition = self._assignment.of_group(self._group(key))
            if len(self._known) < self._KNOWN:
                with contextlib.suppress(TypeError):  # a list has no hash of Python's
                    self._known[key] = partition
            return partition

    def of_batch(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
        """Return the partitions of the rows of a batch, of a key of columns. Raises ColumnNotThere, KeyNotHashable."""
        partitions = self._assignment.of_groups(self.groups(batch))
        self._see(batch)
        return partitions

    def sees(self, batch: pa.RecordBatch) -> bool:
        """Note the keys of a batch, whose partition is known. False where hashing them could fail, so that it must be tried."""
        import pyarrow as pa

        names = self._key.columns
        if not set(names) <= set(batch.schema.names) or any(resolve(column_type(self._type, name)) is not Any for name in names):
            return False
        if any(pa.types.is_nested(batch.schema.field(name).type) for name in names):
            return False
        self._see(batch)
        return True

    def is_foreign(self, batch: pa.RecordBatch, partition: int) -> np.ndarray[Any, Any]:
        """Return a mask of the rows of a batch that belong to another partition."""
        mask: np.ndarray[Any, Any] = self._assignment.of_groups(self.groups(batch)) != partition
        return mask

    def groups(self, batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
        """Return the groups of the rows of a batch, of a key of columns. Raises ColumnNotThere, KeyNotHashable."""
        import numpy as np

        is_whole = self._key.columns == (WHOLE,)
        names = _sent_by(batch.schema.names) if is_whole else self._key.columns
        for name in names:
            if name not in batch.schema.names:
                raise ColumnNotThere.of(f"the key of {self._port}", name, batch.schema)
        columns = [(batch.column(name), column_type(self._type, name)) for name in names]
        if len(columns) == 1 and not is_whole:
            return self._hashes(*columns[0]) & np.uint64(_GROUP)
        mixture = np.full(batch.num_rows, _SEQUENCE, dtype=np.uint64)
        with np.errstate(over="ignore"):
            for column, tp in columns:
                before, mixture = mixture, mixed_all(mixture * np.uint64(31) + self._hashes(column, tp))
                if is_whole and column.null_count:
                    mixture = np.where(column.is_null().to_numpy(zero_copy_only=False), before, mixture)
        return mixture & np.uint64(_GROUP)

    def _see(self, batch: pa.RecordBatch) -> None:
        if self._keys_seen is None:
            return
        import numpy as np

        from dagflow.arrow_types.held import without_hidden

        rows = np.arange((-1 - self._count) % self.STRIDE, batch.num_rows, self.STRIDE)
        self._count += batch.num_rows
        if not len(rows):
            return
        names = _sent_by(batch.schema.names) if self._key.columns == (WHOLE,) else self._key.columns
        columns = [without_hidden(batch.column(name).take(rows))[0].to_pylist() for name in names]
        self._keys_seen(columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)))

    def _hashes(self, column: pa.Array, tp: Any) -> np.ndarray[Any, Any]:
        import numpy as np
        import pyarrow as pa

        from dagflow.arrow_types.held import without_hidden

        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        kind = column.type
        if column.null_count and resolve(tp) is Any and pa.types.is_primitive(kind):
            hashes = np.full(len(column), key_hash(None), dtype=np.uint64)
            hashes[column.is_valid().to_numpy(zero_copy_only=False)] = self._hashes(column.drop_null(), tp)
            return hashes
        if not column.null_count:
            if pa.types.is_string(kind) or pa.types.is_large_string(kind):
                column = column.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
                kind = column.type
            if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
                return self._of_bytes(column)
            if pa.types.is_integer(kind):
                values = column.to_numpy(zero_copy_only=False)
                return mixed_all(values.astype(np.int64 if pa.types.is_signed_integer(kind) else np.uint64).view(np.uint64))
            if pa.types.is_floating(kind) and resolve(tp) in (Any, float):
                return _of_floats(column.to_numpy().astype(np.float64))
        if not column.null_count and (pa.types.is_temporal(kind) or pa.types.is_decimal(kind)):
            encoded = column.dictionary_encode()
            if 2 * len(encoded.dictionary) < len(column):  # each value is hashed once
                by_value: np.ndarray[Any, Any] = self._hashes(encoded.dictionary, tp)[encoded.indices.to_numpy()]
                return by_value
        # where rows stand for objects of a class, its `==` counts; rows of no known class are compared as tuples
        # Rows of values that no Python object holds go where their text does; what makes records of them has bad records.
        column, hidden = without_hidden(column)
        values = map(_row, column.to_pylist()) if resolve(tp) is Any else objects_of(column, tp)
        hashes = np.fromiter(map(self._hash, values), dtype=np.uint64, count=len(column))
        for row, text in hidden.items():
            hashes[row] = key_hash(text)
        return hashes

    def _of_bytes(self, column: pa.Array) -> np.ndarray[Any, Any]:
        """Return the hashes of a column of bytes. Each value is hashed once if the column before had few distinct ones."""
        import numpy as np

        codes = None
        if self._repeats or self._columns % self.TRY == 0:
            encoded = column.dictionary_encode()
            codes, values = encoded.indices.to_numpy(), encoded.dictionary
            self._repeats = len(values) * 2 < len(column)
            column = values
        self._columns += 1
        hashes = mixed_all(np.fromiter(map(crc32, column.to_pylist()), dtype=np.uint64, count=len(column)))
        return hashes if codes is None else hashes[codes]

    def _hash(self, key: Any) -> int:
        try:
            return key_hash(key)
        except TypeError as error:
            raise KeyNotHashable(self._port, repr(key)[:200], str(error)) from error

    def _group(self, key: Any) -> int:
        return self._hash(key) & _GROUP


def _of_floats(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `key_hash` of all values."""
    import numpy as np

    values = np.where(np.isnan(values), np.nan, values)  # one NaN
    is_whole = np.isfinite(values) & (np.trunc(values) == values)
    is_large = is_whole & (np.abs(values) >= 1 << 63)
    hashes = mixed_all(np.where(is_whole & ~is_large, values, 0).astype(np.int64).view(np.uint64))
    hashes[is_large] = [_of_float(value) for value in values[is_large].tolist()]
    others = np.flatnonzero(~is_whole)
    hashes[others] = mixed_all(_crc32_all(values[others].astype("<f8").view(np.uint8).reshape(-1, 8)))
    return hashes


def _crc32_all(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `crc32` of the bytes of each row."""
    import numpy as np

    sums = np.full(len(rows), 0xFFFFFFFF, dtype=np.uint32)
    table = _crc32_table()
    for column in rows.T:
        sums = table[(sums & np.uint32(0xFF)) ^ column] ^ (sums >> np.uint32(8))
    return (sums ^ np.uint32(0xFFFFFFFF)).astype(np.uint64)


@functools.cache
def _crc32_table() -> np.ndarray[Any, Any]:
    """Return the step of `crc32` for each byte."""
    import numpy as np

    steps = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        steps = np.where(steps & np.uint32(1), np.uint32(0xEDB88320) ^ (steps >> np.uint32(1)), steps >> np.uint32(1))
    return steps


def _row(value: Any) -> Any:
    """Return a value of a column of structs, or of lists of these, as tuples."""
    if isinstance(value, dict):
        value = tuple(value.values())
    return tuple(map(_row, value)) if type(value) in (tuple, list) else value


def mixed_all(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return `mixed` of all values."""
    import numpy as np

    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixtures: np.ndarray[Any, Any] = values ^ (values >> np.uint64(31))
    return mixtures
